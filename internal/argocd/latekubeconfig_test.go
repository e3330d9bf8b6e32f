package argocd

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestAwaitedRESTConfig: requests fail with the reason until the kubeconfig is there, and then
// go where it says, below the path that it says, with its token.
func TestAwaitedRESTConfig(t *testing.T) {
	var paths []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.Path+" "+r.Header.Get("Authorization"))
		fmt.Fprint(w, `{}`)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "config")
	config := AwaitedRESTConfig(file, "")
	client, err := newClient(config, "/apis", schema.GroupVersion{Group: "argoproj.io", Version: "v1alpha1"})
	if err != nil {
		t.Fatal(err)
	}
	get := func() error {
		return client.Get().Namespace("argocd").Resource("applications").Do(t.Context()).Error()
	}
	if err := get(); err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("without the file: %v", err)
	}
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("clusters: 7\nusers: [{name: u, user: {token: secret-token}}]\n")
	if err := get(); err == nil || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "secret-token") {
		t.Errorf("with a broken file: %v", err)
	}
	if len(paths) > 0 {
		t.Fatalf("something was sent: %q", paths)
	}
	write(strings.Replace(kubeconfig, `"https://one.example.com"`, `"`+server.URL+`/k8s/c-1", insecure-skip-tls-verify: true`, 1))
	if err := get(); err != nil {
		t.Fatalf("with the file: %v", err)
	}
	if want := "/k8s/c-1/apis/argoproj.io/v1alpha1/namespaces/argocd/applications Bearer secret-token"; len(paths) != 1 || paths[0] != want {
		t.Errorf("it asks for %q, not %s", paths, want)
	}
}
