package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRootsAndHereFiles(t *testing.T) {
	target := Target{
		Name: "web", GeneratorFile: "clusters/dev/config.json", GeneratorFiles: []string{"clusters/dev/config.json", "more/x.json"},
		Sources: []Source{
			{Here: true, Path: "./apps/web//", ValueFiles: []string{"values.yaml", "../shared/values.yaml", "/srv/values.yaml", "https://x/y.yaml", "../../../out.yaml", "$vals/v/dev.yaml", "$nope/x.yaml"}, Files: []string{"../../components/c", "secret.txt"}},
			{Path: "elsewhere", ValueFiles: []string{"mine.yaml"}},
			{Here: true, Path: "../../escape"},
			{Here: true, Ref: "vals"},
		},
	}
	if d := cmp.Diff([]string{"apps/shared", "apps/web", "clusters/dev", "srv", "v"}, Roots(target)); d != "" {
		t.Error("roots", d)
	}
	want := []string{"apps/shared/values.yaml", "apps/web/.argocd-source-web.yaml", "apps/web/.argocd-source.yaml", "apps/web/secret.txt", "apps/web/values.yaml",
		"clusters/dev/config.json", "components/c", "more/x.json", "srv/values.yaml", "v/dev.yaml"}
	if d := cmp.Diff(want, HereFiles(target)); d != "" {
		t.Error("files", d)
	}
	if got := Roots(Target{Sources: []Source{{Here: true, Path: "."}}}); len(got) != 1 || got[0] != "." {
		t.Error(got)
	}
}
