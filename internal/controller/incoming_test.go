package controller

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

func TestDecideIncoming(t *testing.T) {
	t.Parallel()
	const release = "0123456789ab"
	no := map[string]int{release: 7}
	for name, c := range map[string]struct {
		facts incomingFacts
		want  incomingAction
		why   string
	}{
		"nothing":                       {facts: incomingFacts{}, want: incomingLeave},
		"nothing newer":                 {facts: incomingFacts{IsOver: true}, want: incomingLeave},
		"something new":                 {facts: incomingFacts{Release: release}, want: incomingOpen},
		"a no":                          {facts: incomingFacts{Release: release, Declined: no}, want: incomingLeave, why: "#7, which would have brought it in, was closed by a person"},
		"a no to another":               {facts: incomingFacts{Release: "abcdef012345", Declined: no}, want: incomingOpen},
		"open, and as it is":            {facts: incomingFacts{Release: release, IsOpen: true, IsOwn: true, UpToDate: true}, want: incomingLeave},
		"open, and newer":               {facts: incomingFacts{Release: release, IsOpen: true, IsOwn: true}, want: incomingUpdate},
		"open, and somebody has pushed": {facts: incomingFacts{Release: release, IsOpen: true}, want: incomingLeave},
		"open, and over":                {facts: incomingFacts{IsOpen: true, IsOwn: true, IsOver: true}, want: incomingClose},
		"open, over, and theirs":        {facts: incomingFacts{IsOpen: true, IsOver: true}, want: incomingLeave},
		"open, and not known":           {facts: incomingFacts{IsOpen: true, IsOwn: true}, want: incomingLeave},
		"open, and a no to the newer":   {facts: incomingFacts{Release: release, IsOpen: true, IsOwn: true, Declined: no}, want: incomingLeave},
	} {
		if got, why := decideIncoming(&c.facts); got != c.want || why != c.why {
			t.Errorf("%s: %s %q, want %s %q", name, got, why, c.want, c.why)
		}
	}
}

// incomingFixture is one with pull requests for what comes in.
func newIncomingFixture(t *testing.T) *discoveryFixture {
	t.Helper()
	f := newFixture(t, "", manualQA, "web")
	f.signMarks()
	w := discoverIn(f, anyWeb+", deliver: pull-request")
	w.versions.set("registry.example/web", "1.0.0", "1.1.0")
	return w
}

var incomingOfWeb = promotion.IncomingBranch("shop", "dev", "web")

// lookOnce looks once, and gives the pull requests.
func (d *discoveryFixture) lookOnce() []emulator.PullRequest {
	d.t.Helper()
	d.discover("web")
	return d.pulls()
}

// onBranch is the tag on the branch of the pull request; empty: there is none.
func (d *discoveryFixture) onBranch() string {
	d.t.Helper()
	text, _, err := d.forge.File(repoName, incomingOfWeb, kustomizationOf("web", "dev"))
	if err != nil {
		return ""
	}
	_, tag, _ := strings.Cut(text, "newTag: ")
	return strings.Trim(strings.TrimSpace(tag), `"`)
}

// close has a person close a pull request, and the server hear of it.
func (d *discoveryFixture) close(number int) {
	d.t.Helper()
	d.must(d.forge.ClosePull(repoName, number, "ada"))
	d.must(d.run(wake.ForPull(d.repo.ID, number)))
}

// TestIncoming opens one pull request for what comes in, and keeps it up to date. Merged, the release is there.
func TestIncoming(t *testing.T) {
	w := newIncomingFixture(t)
	before := w.tags("web")
	all := w.lookOnce()
	if len(all) != 1 || !all[0].Open || all[0].Branch != incomingOfWeb || all[0].Author != bot || all[0].Title != "Bring web 1.1.0 into dev" ||
		all[0].Base != "main" || w.onBranch() != "1.1.0" || w.tags("web") != before {
		t.Fatalf("it opens %+v with %s", all, w.onBranch())
	}
	if !strings.Contains(all[0].Body, "registry.example/web: 1.1.0, the highest version in") {
		t.Errorf("it says\n%s", all[0].Body)
	}
	w.commit("linus", "README.md", "Another.\n")
	w.runRepository()
	if again := w.lookOnce(); len(again) != 1 || again[0].Head != all[0].Head {
		t.Errorf("after a commit beside it there is %+v", again)
	}
	w.versions.set("registry.example/web", "1.0.0", "1.1.0", "1.2.0")
	again := w.lookOnce()
	if len(again) != 1 || again[0].Title != "Bring web 1.2.0 into dev" || w.onBranch() != "1.2.0" || again[0].Head == all[0].Head {
		t.Errorf("after a newer tag there is %+v with %s", again, w.onBranch())
	}
	_, err := w.forge.MergePull(repoName, again[0].Number, "ada", "merge")
	w.must(err)
	w.runRepository()
	if all := w.lookOnce(); len(all) != 1 || w.tags("web") != "1.2.0" || w.onBranch() != "" {
		t.Errorf("merged, there is %+v, with %s on its branch", all, w.onBranch())
	}
	if got := w.said("discovered"); len(got) != 1 || !strings.HasPrefix(got[0], "1.1.0 comes into dev when #") {
		t.Errorf("told are %q", got)
	}
}

// TestIncomingDeclined holds that a closed pull request is a no to its version, also where the database is lost.
func TestIncomingDeclined(t *testing.T) {
	w := newIncomingFixture(t)
	w.close(w.lookOnce()[0].Number)
	stays := func(when string) {
		t.Helper()
		for range 2 {
			if all := w.lookOnce(); len(all) != 1 || all[0].Open {
				t.Fatalf("%s there are %+v", when, all)
			}
		}
	}
	stays("closed")
	w.addProcess(store.OpenMemory(store.Options{Now: w.clock.Now}), "another")
	w.signMarks()
	w.useVersions()
	w.runRepository()
	stays("lost")
	w.versions.set("registry.example/web", "1.1.0", "1.2.0")
	if all := w.lookOnce(); len(all) != 2 || !all[1].Open || w.onBranch() != "1.2.0" {
		t.Errorf("a newer one opens %+v", all)
	}
}

// TestIncomingModified leaves a branch alone to which somebody has pushed.
func TestIncomingModified(t *testing.T) {
	w := newIncomingFixture(t)
	w.lookOnce()
	head, err := w.forge.CommitAs(repoName, "ada", incomingOfWeb, "Mine", map[string]string{"docs/a.md": "a\n"})
	w.must(err)
	w.runRepository()
	w.versions.set("registry.example/web", "1.2.0")
	for range 2 {
		if all := w.lookOnce(); len(all) != 1 || all[0].Head != head || !all[0].Open {
			t.Fatalf("there are %+v", all)
		}
	}
}

// TestIncomingIsOver closes the pull request where the version came in otherwise; that is nobody's no.
func TestIncomingIsOver(t *testing.T) {
	w := newIncomingFixture(t)
	w.lookOnce()
	w.commit("linus", kustomizationOf("web", "dev"), strings.Replace(w.file(kustomizationOf("web", "dev")), "1.0.0", "1.1.0", 1))
	w.runRepository()
	if all := w.lookOnce(); len(all) != 1 || all[0].Open || !strings.Contains(all[0].Body, "liftlock:closed at=") || w.onBranch() != "" {
		t.Fatalf("there are %+v", all)
	}
	w.versions.set("registry.example/web", "1.2.0")
	if all := w.lookOnce(); len(all) != 2 || !all[1].Open {
		t.Errorf("the next one opens %+v", all)
	}
}

// TestIncomingIsTheirs opens nothing over somebody else's branch.
func TestIncomingIsTheirs(t *testing.T) {
	w := newIncomingFixture(t)
	_, err := w.forge.CommitAs(repoName, "ada", incomingOfWeb, "Mine", map[string]string{"docs/a.md": "a\n"})
	w.must(err)
	w.runRepository()
	if err := w.run(wake.ForDiscovery(w.repo.ID)); err == nil || !strings.Contains(err.Error(), "has somebody else's commits: delete it") {
		t.Errorf("over somebody else's branch: %v", err)
	}
	if all := w.pulls(); len(all) > 0 {
		t.Errorf("it opens %+v", all)
	}
}

// TestIncomingIsObserved opens nothing in mode: observe.
func TestIncomingIsObserved(t *testing.T) {
	w := newIncomingFixture(t)
	w.setPipeline(func(text string) string { return strings.Replace(text, "spec:\n", "spec:\n  mode: observe\n", 1) })
	if all := w.lookOnce(); len(all) > 0 {
		t.Errorf("in mode: observe it opens %+v", all)
	}
}
