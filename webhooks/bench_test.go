package webhooks

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
)

// largePayload is GitHub's pull_request payload with as many bytes as usual ones have,
// most of them in front of what is read last.
func largePayload(t testing.TB, size int) []byte {
	t.Helper()
	body := readFixture(t, filepath.Join(fixtures, GitHub, "pull_request.opened.json"))
	var text bytes.Buffer
	for i := 0; text.Len() < size-len(body); i++ {
		fmt.Fprintf(&text, `"link_%d": "https://api.github.example/repos/acme/fleet/issues/%d{/number}", "labels_%d": [{"id": %d, "name": "a \"label\"", "default": false}], `, i, i, i, i)
	}
	return bytes.Replace(body, []byte(`"pull_request": {`), append([]byte(`"pull_request": {`), text.Bytes()...), 1)
}

func BenchmarkParse(b *testing.B) {
	for _, size := range []int{3 << 10, 25 << 10, 1 << 20} {
		body := largePayload(b, size)
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if e, err := Parse(GitHub, "d", "pull_request", body); err != nil || e.Number == 0 || e.Sender == "" {
					b.Fatal(e, err)
				}
			}
		})
	}
}
