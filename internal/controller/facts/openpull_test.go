package facts

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
)

// TestIdentify holds which releases a pull request moves, as a whole: those of its head, or else
// those that we put there, or its body's. A revert that can't be read has its branch's.
func TestIdentify(t *testing.T) {
	a, b := release("a"), release("b")
	marked := branch.Marker{Kind: promotion.KindPromotion, Release: b}.String()
	web := func(id, name string) []promotion.Member {
		return []promotion.Member{{Component: "web", Release: id, Name: name}}
	}
	both := []promotion.Member{{Component: "api", Release: a, Name: "1.0"}, {Component: "web", Release: b, Name: "2.0"}}
	for name, c := range map[string]struct {
		p              OpenPull
		short, body    string
		release, title string
		members        []promotion.Member
		declared       promotion.Known[string]
	}{
		"its head says it":              {p: OpenPull{Pull: promotion.Pull{Members: web(a, "1.0")}, Proven: map[string]string{"web": b}}, body: marked, release: a, title: "1.0", members: web(a, "1.0"), declared: promotion.Sure(b)},
		"what we put there is known":    {p: OpenPull{Proven: map[string]string{"web": a}}, body: marked, release: a, members: web(a, ""), declared: promotion.Sure(a)},
		"its body says it":              {p: OpenPull{Proven: map[string]string{"api": a}}, body: marked, release: b, members: web(b, "")},
		"nothing says it":               {p: OpenPull{Pull: promotion.Pull{Members: web("", "")}}, members: web("", "")},
		"a revert":                      {p: OpenPull{Revert: true, Pull: promotion.Pull{Members: web(a, "1.0")}, Proven: map[string]string{"web": b}}, short: b[:12], release: a, title: "1.0", members: web(a, "1.0")},
		"a revert that nobody can read": {p: OpenPull{Revert: true}, short: a[:12], body: marked, release: a[:12], members: web(a[:12], "")},
		"a batch":                       {p: OpenPull{Pull: promotion.Pull{Batch: true, Members: both}, Proven: map[string]string{"web": b}}, release: promotion.BatchID(both), title: both[0].String() + ", " + both[1].String(), members: both},
	} {
		p := c.p
		p.identify(&pullRecord{Pull: stored.Pull{PR: forge.PullRequest{Body: c.body}}, ref: promotion.BranchRef{Component: "web", Short: c.short}})
		if p.Release != c.release || p.Name != c.title || p.DeclaredRelease != c.declared {
			t.Errorf("%s: it moves %q (%q), declared is %+v", name, p.Release, p.Name, p.DeclaredRelease)
		}
		if diff := cmp.Diff(c.members, p.Members); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestViewOf shows a shared pull request to its members alone, each with its own release.
func TestViewOf(t *testing.T) {
	batch := &OpenPull{Pull: promotion.Pull{Number: 3, Batch: true, Release: "all", Name: "both", Members: []promotion.Member{{Component: "api", Release: release("a"), Name: "1.0"}, {Component: "web", Release: release("b"), Name: "2.0"}}}, Proven: map[string]string{"web": release("b")}}
	single := &OpenPull{Pull: promotion.Pull{Number: 4, Release: release("c"), Name: "3.0", DeclaredRelease: promotion.Sure(release("c")), Members: []promotion.Member{{Component: "web", Release: release("a")}}}}
	for name, c := range map[string]struct {
		p         *OpenPull
		component string
		release   string
		declared  promotion.Known[string]
	}{
		"a member":        {batch, "web", release("b"), promotion.Sure(release("b"))},
		"one not proven":  {batch, "api", release("a"), promotion.Known[string]{}},
		"its own":         {single, "web", release("c"), promotion.Sure(release("c"))},
		"no member":       {batch, "job", "", promotion.Known[string]{}},
		"somebody else's": {single, "api", "", promotion.Known[string]{}},
	} {
		v := c.p.viewOf(c.component)
		if (v != nil) != (c.release != "") || v != nil && (v.Release != c.release || v.DeclaredRelease != c.declared || v.Number != c.p.Number) {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if batch.Release != "all" || batch.Name != "both" {
		t.Errorf("the views changed it: %+v", batch.Pull)
	}
}

// TestProvenReleases takes for proven what the store says of a branch, and, where it knows nothing of
// it, what the server signed for the head; never what a body says.
func TestProvenReleases(t *testing.T) {
	a, b := release("a"), release("b")
	for name, c := range map[string]struct {
		pushed  *branch.Pushed // nil: the store knows nothing
		kind    string
		unsign  bool
		another bool // the head isn't the one that was signed
		want    string
	}{
		"the head that was pushed":             {pushed: &branch.Pushed{{Head: "old", Releases: map[string]string{"web": b}}, {Head: "the head", Releases: map[string]string{"web": a}}}, kind: promotion.KindPromotion, want: a},
		"one that was replaced":                {pushed: &branch.Pushed{{Head: "the head", Releases: map[string]string{"web": b}}, {Head: "new", Releases: map[string]string{"web": a}}}, kind: promotion.KindPromotion, want: b},
		"pushed over it was somebody's":        {pushed: &branch.Pushed{{Head: "old", Releases: map[string]string{"web": b}}, {Head: "new", Releases: map[string]string{"web": a}}}, kind: promotion.KindPromotion, want: a},
		"nothing of it was pushed":             {pushed: &branch.Pushed{}, kind: promotion.KindPromotion},
		"the store is lost":                    {kind: promotion.KindPromotion, want: b},
		"and its body is somebody's":           {kind: promotion.KindPromotion, unsign: true},
		"and its head is another":              {kind: promotion.KindPromotion, another: true},
		"and a revert's mark was copied there": {kind: promotion.KindRevert},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
			branchName, head := promotion.Branch("shop", "qa", "web"), w.head("main")
			mark := branch.Marker{Kind: c.kind, Release: b}
			signedFor := head
			if c.another {
				signedFor = landedHash
			}
			body := w.repo.Marks.Sign(w.repo.ID, branchName, signedFor, mark)
			if c.unsign {
				body = mark.String()
			}
			if c.pushed != nil {
				for i := range *c.pushed {
					(*c.pushed)[i].Head = strings.Replace((*c.pushed)[i].Head, "the head", head, 1)
				}
				w.putRecord(branch.PushedHeads.Key(record.OfBranch(w.repo.ID, branchName)), *c.pushed)
			}
			p := &pullRecord{Pull: stored.Pull{PR: forge.PullRequest{Branch: branchName, Head: head, Body: body}}, ref: promotion.BranchRef{Component: "web"}}
			got, err := w.o.provenReleases(w.ctx(), w.repo, p)
			if err != nil || got["web"] != c.want || c.want == "" && len(got) > 0 {
				t.Errorf("proven is %v, %v, want %q", got, err, c.want)
			}
		})
	}
}

// TestAwaitsTurn leaves for later what the forge computes of a pull request whose merge queue comes to it
// later, unless it is to be merged right now.
func TestAwaitsTurn(t *testing.T) {
	w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
	ev, _ := w.evaluate("web", false)
	unknown := &forge.PullRequest{Mergeable: forge.MergeableUnknown}
	expect := func(what string, pr *forge.PullRequest, want bool) {
		t.Helper()
		if got, err := w.o.awaitsTurn(w.ctx(), ev, pr); err != nil || got != want {
			t.Errorf("%s: %t, %v", what, got, err)
		}
	}
	enqueue := func(component string) {
		t.Helper()
		w.must(w.store.Tx(w.ctx(), "merge", func(tx *store.Tx) error {
			return tx.EnqueueMerge(w.ctx(), w.repo.ID, wake.UnitName(w.unit(component)))
		}))
	}
	expect("nobody merges", unknown, false)
	enqueue("api")
	expect("another merges", unknown, false)
	enqueue("web")
	expect("it isn't known", unknown, true)
	expect("the forge hasn't said anything", &forge.PullRequest{}, true)
	expect("it is known", &forge.PullRequest{Mergeable: forge.MergeableDirty}, false)
	ev.Fresh = true
	expect("it is its turn", unknown, false)
}

// TestWantsReviews reads who reviewed a promotion only where that matters: to a gate, to a batch, or
// because something newer waits behind it.
func TestWantsReviews(t *testing.T) {
	w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
	n, _, _ := openToQA(w)
	ev, _ := w.evaluate("web", false)
	approvals := []policies.Gate{{Soak: &policies.Soak{}}, {Approvals: &policies.Approvals{Count: 1}}}
	unreadable := w.commitTo("mallory", "elsewhere", w.head("main"), "Broken", map[string]string{overlayFile("web", "qa"): "images: ["})
	for name, c := range map[string]struct {
		change func(p *pullRecord, env, dev *promotion.Env)
		want   bool
	}{
		"nothing asks for them":     {func(*pullRecord, *promotion.Env, *promotion.Env) {}, false},
		"a gate does":               {func(_ *pullRecord, env, _ *promotion.Env) { env.Gates = approvals }, true},
		"another gate does not":     {func(_ *pullRecord, env, _ *promotion.Env) { env.Gates = approvals[:1] }, false},
		"a revert":                  {func(p *pullRecord, env, _ *promotion.Env) { p.ref.Revert, env.Gates = true, approvals }, false},
		"it is closed":              {func(p *pullRecord, env, _ *promotion.Env) { p.PR.State, env.Gates = forge.Closed, approvals }, false},
		"a batch":                   {func(p *pullRecord, _, _ *promotion.Env) { p.batch = true }, true},
		"its head can't be read":    {func(p *pullRecord, _, _ *promotion.Env) { p.PR.Head = unreadable }, true},
		"upstream is another":       {func(_ *pullRecord, _, dev *promotion.Env) { dev.Release.Value.ID = "another" }, true},
		"upstream can't be read":    {func(_ *pullRecord, _, dev *promotion.Env) { dev.Release.OK = false }, true},
		"upstream had another last": {func(_ *pullRecord, _, dev *promotion.Env) { dev.History = []promotion.Arrival{{Release: "another"}} }, true},
		"upstream has no history":   {func(_ *pullRecord, _, dev *promotion.Env) { dev.History = nil }, false},
		"there is nothing upstream": {func(_ *pullRecord, env, _ *promotion.Env) { env.Spec.After = []string{"gone"} }, true},
	} {
		p, env, dev := *ev.openRecord("qa", n), *ev.Environment("qa"), ev.Components[0].Env("dev")
		was := *dev
		c.change(&p, &env, dev)
		got, err := w.o.wantsReviews(w.ctx(), ev, &env, &p)
		if err != nil || got != c.want {
			t.Errorf("%s: %t, %v", name, got, err)
		}
		*dev = was
	}
	gone := *ev.openRecord("qa", n)
	gone.PR.Head = landedHash
	if _, err := w.o.wantsReviews(w.ctx(), ev, ev.Environment("qa"), &gone); !forge.IsRetryable(err) {
		t.Errorf("its head isn't there: %v", err)
	}
}

// TestReleaseOfAPersonsHead takes a well made head of a person's for what it is where all environments
// before have verified its release, and for nothing that is ours otherwise.
func TestReleaseOfAPersonsHead(t *testing.T) {
	for tag, verified := range map[string]bool{"1.0.5": true, "6.6.6": false} {
		w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
		n, branch, _ := openToQA(w)
		w.release("ada", "dev", "1.0.5", "web")
		w.soak("web")
		w.pushOver(n, branch, w.commitTo("mallory", "elsewhere", w.head("main"), "Another", map[string]string{overlayFile("web", "qa"): overlayText("web", tag)}))
		ev, _ := w.evaluate("web", false)
		p := ev.Components[0].Env("qa").Open
		if modified := p.HeadState == promotion.HeadModified; modified == verified || modified && !strings.Contains(p.HeadReason, "it carries another release than the one that Liftlock put there") {
			t.Errorf("%s: the head is %q: %s", tag, p.HeadState, p.HeadReason)
		}
	}
}

// TestCommandHoldsWithoutItsLabel holds a pull request that a command put on hold also while the label is off,
// until the hold's end.
func TestCommandHoldsWithoutItsLabel(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	n, _, _ := openToQA(w)
	if p := w.readAnew(n); p.Held {
		t.Fatal("it is held before anybody said so")
	}
	end := w.now.Add(time.Hour)
	w.putRecord(PullHolds.Key(record.OfPull(w.repo.ID, n)), []promotion.Holding{{Hold: promotion.Hold{By: "ada", At: w.now, Until: end}}})
	if p := w.readAnew(n); !p.Held || !p.HeldUntil.Equal(end) || p.PR.HasLabel(promotion.LabelHold) {
		t.Errorf("it is held: %t, until %s", p.Held, p.HeldUntil)
	}
	w.now = end.Add(time.Second)
	if p := w.readAnew(n); p.Held {
		t.Error("it is held after its end")
	}
}

// TestReachIsInspectedAgain looks again at whom an open promotion reaches: another environment began to read what
// it edits since it was opened.
func TestReachIsInspectedAgain(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	n, _, _ := openToQA(w)
	if p := w.readAnew(n); p.Reach != "" {
		t.Fatalf("it reaches %q: %s", p.Reach, p.ReachReason)
	}
	w.commit("mallory", "Have dev deploy what qa does", map[string]string{overlayFile("web", "dev"): "resources: [../qa]\nimages:\n  - name: registry.example/web\n    newTag: \"1.1.0\"\nnameSuffix: -two\n",
		"apps/web/dev2/kustomization.yaml": "resources: [../qa]\n"})
	if p := w.readAnew(n); p.Reach == "" || p.ReachReason == "" {
		t.Errorf("nobody looked again: it reaches %q (%s), its head is %q (%s)", p.Reach, p.ReachReason, p.HeadState, p.HeadReason)
	}
}
