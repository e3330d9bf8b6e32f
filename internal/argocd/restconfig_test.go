package argocd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: one
clusters:
- {name: one, cluster: {server: "https://one.example.com"}}
- {name: two, cluster: {server: "https://two.example.com"}}
contexts:
- {name: one, context: {cluster: one, user: u}}
- {name: two, context: {cluster: two, user: u}}
users:
- {name: u, user: {token: secret-token}}
`

func TestRESTConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("users: [{name: u, user: {token: secret-token}}]\nclusters: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, env, kubeconfig, context string
		want                           string // the host, or what the error says
	}{
		{"the file's current context", "", file, "", "https://one.example.com"},
		{"another context", "", file, "two", "https://two.example.com"},
		{"the usual lookup", file, "", "", "https://one.example.com"},
		{"the usual lookup with a context", file, "", "two", "https://two.example.com"},
		{"no such context", "", file, "three", "three"},
		{"no such file", "", file + ".gone", "", file + ".gone"},
		{"a broken file", "", broken, "", broken},
		{"nothing anywhere", file + ".gone", "", "", "the usual places (KUBECONFIG, then ~/.kube/config)"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			t.Setenv("KUBECONFIG", c.env)
			config, err := RESTConfig(c.kubeconfig, c.context)
			if err == nil {
				if config.Host != c.want {
					t.Errorf("host %s, want %s", config.Host, c.want)
				}
				return
			}
			if strings.HasPrefix(c.want, "https://") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if strings.Contains(err.Error(), "secret-token") {
				t.Errorf("a secret in the error: %v", err)
			}
		})
	}
}
