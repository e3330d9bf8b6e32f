package console

import (
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/liftlock/liftlock/internal/store"
)

// request sends a request; headers come in pairs, and a body is JSON.
func (tc *testConsole) request(method, path, body string, headers map[string]string) (int, http.Header, string) {
	tc.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(tc.t.Context(), method, tc.url+path, in)
	tc.must(err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	tc.must(err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	tc.must(err)
	checkAnswer(tc.t, method, path, res.StatusCode, res.Header.Get("Content-Type"), raw)
	return res.StatusCode, res.Header, string(raw)
}

func pathEscape(s string) string { return url.PathEscape(s) }

// pullWith is a stored pull request with any address and title.
func pullWith(number int, address, title string) store.Pull {
	return store.Pull{Repo: testRepo, Number: number, Branch: "liftlock/x", State: "open", UpdatedAt: now,
		Data: mustJSON(map[string]any{"pr": map[string]any{"Number": number, "Title": title, "URL": address}})}
}

// damaged is a stored unit that can't be read.
func damaged() store.Unit {
	return store.Unit{Key: testRepo + "|shop|cart", Repo: testRepo, Pipeline: "shop", Component: "cart", Digest: "x", UpdatedAt: now, Data: []byte(`{"unit": 3}`)}
}
