package cli

import (
	"os"
	"strings"
	"testing"
)

// TestInitPrintsTheDocumentedApp: what docs/github-app.md shows is what the command prints.
func TestInitPrintsTheDocumentedApp(t *testing.T) {
	doc, err := os.ReadFile("../../docs/github-app.md")
	if err != nil {
		t.Fatal(err)
	}
	out, err := run(t, "init", "--github-app", "--external-url", "https://liftlock.example.com", "--app-name", "Liftlock at Acme")
	if err != nil || !strings.Contains(string(doc), "```json\n"+out+"```") {
		t.Errorf("the documentation doesn't have this: %v\n%s", err, out)
	}
	out, err = run(t, "init", "--github-app", "--external-url", "https://hooks.example.com/", "--forge", "corp", "--public")
	if err != nil || !strings.Contains(out, `"url": "https://hooks.example.com/webhooks/corp"`) || !strings.Contains(out, `"public": true`) {
		t.Errorf("%v\n%s", err, out)
	}
	for want, args := range map[string][]string{
		"say with --external-url where GitHub reaches the server":                          {"--github-app"},
		`--external-url: "liftlock.example.com" is not an address`:                         {"--github-app", "--external-url", "liftlock.example.com"},
		"--write says nothing here: --github-app prints a manifest":                        {"--github-app", "--external-url", "https://liftlock.example.com", "--write"},
		"--forge says nothing here: it goes with --github-app":                             {"--forge", "hub"},
		"--external-url says nothing here: it goes with --github-app":                      {"--external-url", "https://liftlock.example.com"},
		"--output says nothing here: --github-app prints a manifest and looks at no check": {"--github-app", "-o", "json"},
	} {
		if out, err := run(t, append([]string{"init"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
}
