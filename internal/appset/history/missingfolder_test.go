package history

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
)

func TestMissingFolders(t *testing.T) {
	files := fstest.MapFS{"environments/production/a.yaml": {}, "environments/dev/a.yaml": {}, "README.md": {}}
	target := func(name, path, revision string) appset.Target {
		return appset.Target{Name: name, ApplicationSet: "core", ApplicationSetFile: "core.yaml", Sources: []appset.Source{{Here: true, Path: path, TargetRevision: revision}}}
	}
	got := MissingFolders([]appset.Target{
		target("core-dev", "environments/dev", "main"),
		target("core-prod", "environments/prod", "HEAD"),
		target("api-prod", "environments/prod", ""),
		target("core-next", "environments/next", "next"),
		target("core-eu", "elsewhere/eu", "main"),
		target("root", ".", "main"),
		{Name: "chart", Sources: []appset.Source{{Chart: "x"}}},
	}, "main", func(branch string) fs.FS {
		if branch != "main" {
			t.Errorf("asked for %s", branch)
		}
		return files
	})
	want := []appset.Problem{
		{File: "core.yaml", ApplicationSet: "core", Message: "core-prod, api-prod: environments/prod isn't in the repository; environments/production is"},
		{File: "core.yaml", ApplicationSet: "core", Message: "core-eu: elsewhere isn't in the repository"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := MissingFolders([]appset.Target{target("core-prod", "environments/prod", "main")}, "main", func(string) fs.FS { return nil }); got != nil {
		t.Errorf("a branch that isn't there tells %v", got)
	}
}
