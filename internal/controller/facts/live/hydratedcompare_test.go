package live

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// TestHydratedRepository finds the repository that manifests are hydrated into by any of its addresses,
// among those that are tracked.
func TestHydratedRepository(t *testing.T) {
	f := newHydrationFixture(t)
	f.own.URLs = append(f.own.URLs, "https://mirror.example/fleet.git")
	f.o.Repos.List = append(f.o.Repos.List, f.other)
	for url, want := range map[string]*branch.Repository{
		"":                                   f.own,
		repositoryURL:                        f.own,
		"https://mirror.example/fleet":       f.own,
		"git@git.example:acme/hydrated.git":  f.other,
		"https://git.example/acme/other.git": nil,
	} {
		if got := f.o.hydratedRepository(f.own, &verification.App{HydratedRepo: url}); got != want {
			t.Errorf("%q is %+v", url, got)
		}
	}
	f.o.Repos.List = []*branch.Repository{f.other}
	if got := f.o.hydratedRepository(f.own, &verification.App{}); got != f.own {
		t.Errorf("without an address it is %+v", got)
	}
}

// TestHydrationIsComparedAnew compares hydrated manifests again when what they are compared by is another,
// and only then.
func TestHydrationIsComparedAnew(t *testing.T) {
	f := newHydrationFixture(t)
	hydrated := f.hydrate(f.own, deployment("web:1.1.0", 1), f.landed)
	hash := func() (key [32]byte) {
		t.Helper()
		key, err := hashHydration(f.look, &f.target, f.app, f.own, hydrated, f.landed)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	known := hash()
	if hash() != known {
		t.Error("the same is compared anew")
	}
	for what, change := range map[string]func() (restore func()){
		"another folder": func() func() { f.app.HydratedPath = "x"; return func() { f.app.HydratedPath = "web" } },
		"what landed": func() func() {
			f.look.env.Landed.Value.Commit = f.before
			return func() { f.look.env.Landed.Value.Commit = f.landed }
		},
		"what was before it": func() func() {
			f.look.env.Landed.Value.Parent = ""
			return func() { f.look.env.Landed.Value.Parent = f.before }
		},
		"another release": func() func() { f.look.env.Release.Value.ID = "s"; return func() { f.look.env.Release.Value.ID = "r" } },
		"a source's options": func() func() {
			f.target.Sources[0].Options = json.RawMessage(`{"helm":{}}`)
			return func() { f.target.Sources[0].Options = nil }
		},
		"a source's path": func() func() {
			f.target.Sources[0].Path = "x"
			return func() { f.target.Sources[0].Path = "apps/web/qa" }
		},
		"the namespace": func() func() { f.target.DestNS = "x"; return func() { f.target.DestNS = "" } },
		"another environment": func() func() {
			f.look.c.Snapshot.BranchTips = map[string]string{"env/dev": f.before}
			return func() { f.look.c.Snapshot.BranchTips = nil }
		},
	} {
		restore := change()
		if hash() == known {
			t.Errorf("%s: it isn't compared anew", what)
		}
		if restore(); hash() != known {
			t.Fatalf("%s: it isn't as it was", what)
		}
	}
	for what, key := range map[string]func() ([32]byte, error){
		"another hydrated commit": func() ([32]byte, error) { return hashHydration(f.look, &f.target, f.app, f.own, f.before, f.landed) },
		"another dry commit":      func() ([32]byte, error) { return hashHydration(f.look, &f.target, f.app, f.own, hydrated, f.before) },
		"another repository":      func() ([32]byte, error) { return hashHydration(f.look, &f.target, f.app, f.other, hydrated, f.landed) },
	} {
		if got, err := key(); err != nil || got == known {
			t.Errorf("%s: it isn't compared anew (%v)", what, err)
		}
	}
}

// TestHydrationOfARunThatIsOver says of what takes too long that it can't be told, looks again, and
// remembers nothing of it.
func TestHydrationOfARunThatIsOver(t *testing.T) {
	f := newHydrationFixture(t)
	hydrated := f.hydrate(f.own, deployment("web:1.0.0", 1), f.landed)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	f.look.ctx = over
	if why := f.o.whyNotHydrated(f.look, &f.target, f.app, f.own, hydrated, f.landed); !strings.HasPrefix(why, "whether the hydrated manifests have the release can't be told: ") {
		t.Errorf("%q", why)
	}
	if want := f.look.c.Now.Add(treesRetry); !f.look.out.RetryAt.Equal(want) {
		t.Errorf("it is looked at again at %s, want %s", f.look.out.RetryAt, want)
	}
	if _, err := f.o.compareHydrated(over, f.look, &f.target, f.app, f.own, hydrated, f.landed); !errors.Is(err, context.Canceled) {
		t.Errorf("compared: %v", err)
	}
	if changes, err := f.o.renderLanded(over, f.look, &f.target, f.look.env.Landed.Value); !errors.Is(err, context.Canceled) || changes != nil {
		t.Errorf("what landed: %+v, %v", changes, err)
	}
	f.look.ctx = t.Context()
	if why := f.o.whyNotHydrated(f.look, &f.target, f.app, f.own, hydrated, f.landed); !strings.Contains(why, "Deployment web (spec.image) differs") {
		t.Errorf("once more: %q", why)
	}
}

// TestLandedIsRendered finds what landed changed in a target's manifests, and says of what can't be
// rendered, or has nothing before it, that it may be anything.
func TestLandedIsRendered(t *testing.T) {
	f := newHydrationFixture(t)
	broken := f.commit(f.own, "empty", "", map[string]string{"x": "x"}) // there is no such folder
	for name, c := range map[string]struct {
		parent, commit string
		known          bool
	}{
		"both":             {f.before, f.landed, true},
		"nothing before":   {"", f.landed, false},
		"no folder before": {broken, f.landed, false},
		"no folder since":  {f.landed, broken, false},
	} {
		changes, err := f.o.renderLanded(t.Context(), f.look, &f.target, promotion.Landed{Parent: c.parent, Commit: c.commit})
		if err != nil || (changes != nil) != c.known || c.known && (len(changes.Objects) != 1 || changes.Objects[0].Kind != "Deployment") {
			t.Errorf("%s: %+v, %v", name, changes, err)
		}
	}
}

// TestTreesOfOtherBranches has the sources of a target that follow other branches read there, as these
// are now, but for a branch that is gone, and not in another repository.
func TestTreesOfOtherBranches(t *testing.T) {
	f := newHydrationFixture(t)
	values := f.commit(f.own, "values", "", map[string]string{"values.yaml": "a: 1\n"})
	f.look.c.Snapshot.BranchTips = map[string]string{"values": values, "gone": ""}
	own := f.look.treeAt(f.own, f.landed)
	if len(own.Branches) != 1 {
		t.Fatalf("the branches are %v", own.Branches)
	}
	if _, ok := own.Branches["values"]; !ok || own.ID == nil || own.Tree == nil {
		t.Errorf("it is %+v", own)
	}
	if other := f.look.treeAt(f.other, f.landed); len(other.Branches) != 0 || other.Tree == nil {
		t.Errorf("in another repository it is %+v", other.Branches)
	}
	if got := prefixed("before: ", ""); got != "" {
		t.Errorf("nothing is said as %q", got)
	}
	if got := prefixed("before: ", "x"); got != "before: x" {
		t.Errorf("it is said as %q", got)
	}
}
