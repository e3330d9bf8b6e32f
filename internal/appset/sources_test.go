package appset

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRootsAndRepositoryFiles(t *testing.T) {
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
	if d := cmp.Diff(want, RepositoryFiles(target)); d != "" {
		t.Error("files", d)
	}
	// One source: an unknown $name is a variable of the build environment.
	target = Target{Name: "web", Namespace: "team", DestNS: "shop", Sources: []Source{{
		Here: true, Path: "apps/web", ValueFiles: []string{"values-${ARGOCD_APP_NAME}.yaml", "$ARGOCD_APP_NAMESPACE.yaml", "a$$b.yaml", "$nothing/root.yaml"},
		FileParameters: []string{"$ARGOCD_APP_SOURCE_PATH/f.txt"}, Libs: []string{"lib", "/vendor"},
	}}}
	want = []string{"apps/web/.argocd-source-team_web.yaml", "apps/web/.argocd-source-web.yaml", "apps/web/.argocd-source.yaml", "apps/web/a$b.yaml", "apps/web/apps/web/f.txt",
		"apps/web/shop.yaml", "apps/web/values-team_web.yaml", "apps/web/values-web.yaml", "lib", "root.yaml", "vendor"}
	if d := cmp.Diff(want, RepositoryFiles(target)); d != "" {
		t.Error("files", d)
	}
	// File parameters, too, may refer to another source.
	target = Target{Name: "web", Sources: []Source{{Path: "chart", FileParameters: []string{"$v/f.txt", "own.txt"}}, {Here: true, Ref: "v"}}}
	if d := cmp.Diff([]string{"f.txt"}, RepositoryFiles(target)); d != "" {
		t.Error("files", d)
	}
	if got := Roots(Target{Sources: []Source{{Here: true, Path: "."}}}); len(got) != 1 || got[0] != "." {
		t.Error(got)
	}
}

// RepositoryFiles are all of a target's SourceFiles, and its generator files, sorted.
func RepositoryFiles(t Target) []string {
	out := append([]string(nil), t.GeneratorFiles...)
	for _, s := range t.Sources {
		f := FilesOf(t, s)
		for _, list := range [][]string{f.Values, f.Named, f.Libs, f.Overrides} {
			out = append(out, list...)
		}
	}
	return SortedUnique(out)
}

// TestLayeredValues says in which order Helm lays values files over each other.
func TestLayeredValues(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		as    ValueFilesAs
		want  []string
	}{
		"none":                                     {nil, "", []string{"charts/web/values.yaml"}},
		"in their order":                           {[]string{"/b.yaml", "/a.yaml"}, "", []string{"charts/web/values.yaml", "b.yaml", "a.yaml"}},
		"the chart's own among them":               {[]string{"/b.yaml", "values.yaml"}, "", []string{"b.yaml", "charts/web/values.yaml"}},
		"globs":                                    {[]string{"/b.yaml", "/envs/*.yaml"}, ValueFilesAsGlobs, []string{"charts/web/values.yaml", "b.yaml", "envs/*.yaml"}},
		"a glob that matches the chart's own":      {[]string{"/b.yaml", "*.yaml"}, ValueFilesAsGlobs, []string{"b.yaml", "charts/web/*.yaml"}},
		"what looks like globs, before 3.4":        {[]string{"/b.yaml", "/envs/*.yaml"}, ValueFilesAsNames, []string{"charts/web/values.yaml", "b.yaml"}},
		"globs of who knows":                       {[]string{"/b.yaml", "/envs/*.yaml"}, "", []string{"charts/web/values.yaml", "b.yaml"}},
		"one twice, where the first place counts":  {[]string{"/b.yaml", "/a.yaml", "../../b.yaml"}, ValueFilesAsGlobs, []string{"charts/web/values.yaml", "b.yaml", "a.yaml"}},
		"one twice, where the second place counts": {[]string{"/b.yaml", "/a.yaml", "../../b.yaml"}, ValueFilesAsNames, []string{"charts/web/values.yaml", "a.yaml", "b.yaml"}},
		"one twice, who knows":                     {[]string{"/b.yaml", "/a.yaml", "../../b.yaml"}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := Source{Here: true, Path: "charts/web", ValueFiles: c.files}
			got := LayeredValues(Target{Name: "web", Namespace: "other", Sources: []Source{s}, ValueFiles: c.as}, s)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
