package console

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/console/api"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with a file in testdata, or rewrites it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run the test with -update to write it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got; refresh with -update):\n%s", file, diff)
	}
}

// digests are in the addresses of styles and scripts.
var digests = regexp.MustCompile(`\?v=[0-9a-f]{12}`)

func TestPagesAreAsTheGoldenFilesSay(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	w.troubles = []api.Trouble{
		{Part: "pipeline file of hub:acme/data", Message: ".liftlock.yaml:14: spec.environments[1].afer: unknown key; did you mean \"after\"?", Since: before(7 * 60e9)},
		{Part: "argocd hub", Message: "list Applications: dial tcp 10.0.0.1:6443: connection refused"},
	}
	for name, path := range map[string]string{
		"home.html": "/", "pipeline.html": "/pipelines/lake", "component.html": "/pipelines/shop/web", "compare.html": "/pipelines/shop/web/compare", "compare-same.html": "/pipelines/shop/web/compare?from=dev&to=qa",
		"compare-unknown.html": "/pipelines/shop/cart/compare", "promotions.html": "/promotions",
		"promotion.html": "/promotions/3", "revert.html": "/promotions/4", "filtered.html": "/?q=cart+2.3&show=attention", "nothing.html": "/?q=none",
		"missing.html": "/pipelines/none",
	} {
		t.Run(name, func(t *testing.T) {
			status, header, body := w.get(path)
			want := 200
			if name == "missing.html" {
				want = 404
			}
			if status != want || header.Get("Content-Type") != "text/html; charset=utf-8" {
				t.Fatalf("%s: %d %s", path, status, header.Get("Content-Type"))
			}
			golden(t, name, digests.ReplaceAllString(body, "?v=DIGEST"))
		})
	}
}
