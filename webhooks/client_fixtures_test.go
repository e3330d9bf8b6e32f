package webhooks

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestClientPayloads compares the events of the payloads in the tests of GitLab's client, as they
// are in its module, with golden files (go test ./webhooks -update writes them anew).
func TestClientPayloads(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/xanzy/go-gitlab").Output()
	if err != nil {
		t.Fatalf("find the client's module: %v", err)
	}
	for folder, least := range map[string]int{"webhooks": 21, "systemhooks": 1} {
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "testdata", folder, "*.json"))
		if err != nil || len(files) < least {
			t.Fatalf("%d payloads in the client's %s: %v", len(files), folder, err)
		}
		for _, file := range files {
			name := folder + "." + filepath.Base(file)
			t.Run(name, func(t *testing.T) {
				compareGolden(t, GitLab, name, readFixture(t, file), filepath.Join(fixtures, "gitlab-client", name+".golden"))
			})
		}
	}
}
