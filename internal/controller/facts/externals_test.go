package facts

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/render"
)

// TestOpenListedRepositories opens revisions of tracked and listed repositories, and of no others.
func TestOpenListedRepositories(t *testing.T) {
	tracked := newBranchRepo(t, nil)
	charts := newTestRepo(t, "charts", map[string]string{"web/Chart.yaml": "version 1"})
	first, _ := charts.remote.Head("main")
	charts.remote.SetRef("refs/tags/v1", first)
	now, away := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), false
	calls := 0
	mirror := git.OpenMemory(charts.remote, git.MemoryOptions{Now: func() time.Time { return now }, BeforeRemote: func(context.Context, string) error {
		calls++
		if away {
			return errors.New("nobody answers")
		}
		return nil
	}})
	x := branch.NewExternalFiles([]branch.ReadOnlySource{{URL: "https://git.example/acme/charts", Mirror: mirror}}, nil, func() time.Time { return now })
	New(Options{Repos: []*branch.Repository{tracked.Repository}, Externals: x, Now: time.Now})
	qa, _ := tracked.remote.Head("env/qa")
	at := func(url, revision string) string {
		t.Helper()
		tree, err := x.Open(t.Context(), render.External{RepoURL: url, Revision: revision})
		if err != nil {
			return err.Error()
		}
		if _, err := tree.ID("."); err != nil {
			t.Error(err)
		}
		return tree.Revision
	}
	expect := func(url, revision, want string) {
		t.Helper()
		if got := at(url, revision); !strings.Contains(got, want) {
			t.Errorf("%s at %q is %s; want %s", url, revision, got, want)
		}
	}
	expect(tracked.URLs[0], "env/qa", qa)
	expect(tracked.URLs[0], "none", "has no branch, tag or fetched commit")
	expect("https://git.example/acme/vault", "main", "is none of the repositories that this server reads")
	if calls != 0 {
		t.Errorf("%d calls for what isn't listed", calls)
	}
	away = true
	expect("https://git.example/acme/charts.git", "main", "can't be read now")
	before := x.CurrentVersion(t.Context())
	away = false
	for _, revision := range []string{"main", "", "HEAD", "refs/heads/main", "v1", "refs/tags/v1", first} {
		expect("git@git.example:acme/charts.git", revision, first)
	}
	expect("https://git.example/acme/charts", "v9", "has no branch, tag or fetched commit")
	seen := calls
	expect("https://git.example/acme/charts", "v9", "has no branch, tag or fetched commit")
	expect("https://git.example/acme/charts", "v1", first)
	if calls != seen {
		t.Errorf("%d calls for what was asked a moment ago", calls-seen)
	}
	if x.CurrentVersion(t.Context()) == before {
		t.Error("what can be had now counts as what it was")
	}
	// A branch that moves is seen after a while, and counts as another; a tag stays.
	before = x.CurrentVersion(t.Context())
	second := charts.commit("main", map[string]string{"web/Chart.yaml": "version 2"})
	expect("https://git.example/acme/charts", "main", first)
	now = now.Add(branch.SourceAge)
	if x.CurrentVersion(t.Context()) == before {
		t.Error("a branch has moved, and nothing is another")
	}
	expect("https://git.example/acme/charts", "main", second)
	expect("https://git.example/acme/charts", "v1", first)
	// While no remote answers, everything is as it was.
	away, now = true, now.Add(time.Hour)
	before = x.CurrentVersion(t.Context())
	expect("https://git.example/acme/charts", "main", second)
	expect("https://git.example/acme/charts", "v1", first)
	if x.CurrentVersion(t.Context()) != before {
		t.Error("an outage makes something another")
	}
	tree, err := x.Open(t.Context(), render.External{RepoURL: "https://git.example/acme/charts", Revision: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	if data, err := fs.ReadFile(tree.FS, "web/Chart.yaml"); string(data) != "version 1" || err != nil {
		t.Errorf("the tag's file is %q, %v", data, err)
	}
	if _, err := x.Open(t.Context(), render.External{RepoURL: "https://charts.example", Chart: "web", Revision: "1.0.0"}); !errors.Is(err, branch.ErrNoCharts) {
		t.Errorf("a chart of no list: %v", err)
	}
}

// TestTagRanges opens a source at the newest of its tags in a range of versions, and sees a newer one after a while.
func TestTagRanges(t *testing.T) {
	charts := newTestRepo(t, "charts", map[string]string{"web/Chart.yaml": "version 1"})
	first, _ := charts.remote.Head("main")
	second := charts.commit("main", map[string]string{"web/Chart.yaml": "version 2"})
	charts.remote.SetRef("refs/tags/v1.0.0", first)
	charts.remote.SetRef("refs/tags/v2.0.0", second)
	charts.remote.SetRef("refs/heads/3.x", first)
	now, away := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), false
	mirror := git.OpenMemory(charts.remote, git.MemoryOptions{Now: func() time.Time { return now }, BeforeRemote: func(context.Context, string) error {
		if away {
			return errors.New("nobody answers")
		}
		return nil
	}})
	const address = "https://git.example/acme/charts"
	x := branch.NewExternalFiles([]branch.ReadOnlySource{{URL: address, Mirror: mirror}}, nil, func() time.Time { return now })
	expect := func(revision, want string) {
		t.Helper()
		got := ""
		tree, err := x.Open(t.Context(), render.External{RepoURL: address, Revision: revision})
		if got = tree.Revision; err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("at %q it is %s; want %s", revision, got, want)
		}
	}
	expect("v1.*", first)
	expect(">=1.0.0", second)
	expect("v3.*", "it has no tag in the range \"v3.*\"")
	expect("3.x", first) // a branch of that name
	before := x.CurrentVersion(t.Context())
	third := charts.commit("main", map[string]string{"web/Chart.yaml": "version 1.1"})
	charts.remote.SetRef("refs/tags/v1.1.0", third)
	expect("v1.*", first)
	now = now.Add(branch.SourceAge)
	if x.CurrentVersion(t.Context()) == before {
		t.Error("there is a newer tag, and nothing is another")
	}
	expect("v1.*", third)
	away, now = true, now.Add(time.Hour)
	expect("v1.*", third)
	expect("~2.0", "its tags in the range")
}
