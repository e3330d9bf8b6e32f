package facts

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
)

// TestJoinViews holds that what one component finds out about a shared promotion is so for all that are
// in it, in that environment, and for nothing else.
func TestJoinViews(t *testing.T) {
	ada, grace, old := policies.Account{ID: 1, Login: "ada"}, policies.Account{ID: 2, Login: "grace"}, policies.Account{ID: 1, Login: "grace"}
	view := func(number int, why, authorsErr string, authors ...policies.Account) *promotion.Pull {
		p := &promotion.Pull{Number: number, Review: policies.Facts{Authors: authors, AuthorsErr: authorsErr}}
		p.MarkModified(why)
		return p
	}
	component := func(name string, dev, qa promotion.Env) *ComponentEvaluation {
		return &ComponentEvaluation{ComponentBasis: branch.ComponentBasis{Facts: promotion.ComponentFacts{Unit: promotion.Unit{Component: name}, Envs: []promotion.Env{dev, qa}}}}
	}
	web := component("web", promotion.Env{Open: view(3, "", "", ada)}, promotion.Env{Open: view(3, "", "", grace, ada), Revert: view(4, "", "", ada)})
	api := component("api", promotion.Env{}, promotion.Env{Open: view(5, "", "", ada), WrongKind: view(3, "it carries another release", "nobody knows", old, grace)})
	job := component("job", promotion.Env{}, promotion.Env{Open: view(3, "", "", ada)})
	ev := &Evaluation{envs: []promotion.Env{{Name: "dev"}, {Name: "qa"}}, Components: []*ComponentEvaluation{web, api, job}, OpenPulls: map[int]*OpenPull{
		3: {Environment: "qa", Pull: promotion.Pull{Number: 3}}, 4: {Environment: "qa", Revert: true, Pull: promotion.Pull{Number: 4}}, 5: {Environment: "qa", Pull: promotion.Pull{Number: 5}}}}
	ev.joinViews(1)
	shared := view(3, "it carries another release", "nobody knows", ada, old, grace)
	for what, c := range map[string]struct{ got, want *promotion.Pull }{
		"web's":                           {web.Facts.Envs[1].Open, shared},
		"api's":                           {api.Facts.Envs[1].WrongKind, shared},
		"job's":                           {job.Facts.Envs[1].Open, shared},
		"the same one elsewhere":          {web.Facts.Envs[0].Open, view(3, "", "", ada)},
		"a revert":                        {web.Facts.Envs[1].Revert, view(4, "", "", ada)},
		"another promotion":               {api.Facts.Envs[1].Open, view(5, "", "", ada)},
		"what is told of it as such":      {&ev.OpenPulls[3].Pull, view(3, "it carries another release", "")},
		"what is told of another as such": {&ev.OpenPulls[5].Pull, view(5, "", "")},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	ev.OpenPulls[6] = &OpenPull{Environment: "qa", Revert: true, Pull: promotion.Pull{Number: 5, HeadState: promotion.HeadModified, HeadReason: "x"}}
	ev.joinViews(1)
	if got := api.Facts.Envs[1].Open; got.HeadReason != "" {
		t.Errorf("of a promotion is said what is so of a revert: %+v", got)
	}
}

// TestIsReverted holds which promotion a revert of a component takes back: an earlier merged one of ours
// that landed with the release in its branch's name.
func TestIsReverted(t *testing.T) {
	w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
	n, _, _ := openToQA(w)
	w.mergeBy(n, "linus", "merge")
	ev, _ := w.evaluate("web", false)
	var promotionPull *pullRecord
	for _, p := range ev.pulls["web"]["qa"] {
		if p.PR.Number == n {
			promotionPull = p
		}
	}
	landed := ev.Components[0].Env("qa").Release.Value.ID
	later := w.commit("linus", "Something else", map[string]string{"README.md": "x\n"})
	w.fetch()
	for name, c := range map[string]struct {
		short  string
		change func(p *pullRecord)
		number int
		want   bool
	}{
		"its release":         {short: landed[:12], number: n + 1, want: true},
		"another release":     {short: release("a")[:12], number: n + 1},
		"no release":          {number: n + 1},
		"it is newer":         {short: landed[:12], number: n - 1},
		"it is a revert":      {short: landed[:12], number: n + 1, change: func(p *pullRecord) { p.ref.Revert = true }},
		"it was closed":       {short: landed[:12], number: n + 1, change: func(p *pullRecord) { p.PR.State = forge.Closed }},
		"somebody else's":     {short: landed[:12], number: n + 1, change: func(p *pullRecord) { p.PR.Author, p.PR.AuthorID, p.PR.Body = "mallory", 99, "" }},
		"it landed elsewhere": {short: landed[:12], number: n + 1, change: func(p *pullRecord) { p.PR.Base, p.PR.MergeCommit, p.landing = "elsewhere", landedHash, landingUnread }},
		"it landed nothing":   {short: landed[:12], number: n + 1, change: func(p *pullRecord) { p.PR.MergeCommit = later }},
		"no commit is named":  {short: landed[:12], number: n + 1, change: func(p *pullRecord) { p.PR.MergeCommit = "" }},
	} {
		p := *promotionPull
		p.members, p.membersKnown = nil, false
		if c.change != nil {
			c.change(&p)
		}
		revert := &pullRecord{Pull: stored.Pull{PR: forge.PullRequest{Number: c.number}}, ref: promotion.BranchRef{Revert: true, Environment: "qa", Component: "web", Short: c.short}}
		if got, err := w.o.isReverted(w.ctx(), ev, revert, &p); got != c.want || err != nil {
			t.Errorf("%s: %t, %v", name, got, err)
		}
		if c.want && (!p.membersKnown || len(p.members) != 1 || p.members[0] != (promotion.Member{Component: "web", Release: landed})) {
			t.Errorf("%s: it moved %+v", name, p.members)
		}
	}
}

// TestFindReverted finds the newest promotion that landed what a revert takes back: one that a person
// merged when that was there already isn't it.
func TestFindReverted(t *testing.T) {
	w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
	n, _, _ := openToQA(w)
	w.mergeBy(n, "linus", "merge")
	later := w.commit("linus", "Something else", map[string]string{"README.md": "x\n"})
	w.fetch()
	ev, _ := w.evaluate("web", false)
	w.must(w.store.Tx(w.ctx(), "settle", func(tx *store.Tx) error { return w.o.SettlePulls(w.ctx(), tx, ev.Components[0]) }))
	pulls := ev.pulls["web"]["qa"]
	first := pulls[slices.IndexFunc(pulls, func(p *pullRecord) bool { return p.PR.Number == n })]
	short := ev.Components[0].Env("qa").Release.Value.ID[:12]
	again := func(number int, commit string) *pullRecord {
		p := *first
		p.PR.Number, p.PR.MergeCommit, p.members, p.membersKnown = number, commit, nil, false
		return &p
	}
	for _, c := range []struct {
		name  string
		pulls []*pullRecord
		want  int
	}{
		{"it alone", []*pullRecord{first}, n},
		{"it and one that landed nothing", []*pullRecord{first, again(n+1, later)}, n},
		{"it and one that landed it again", []*pullRecord{first, again(n+1, first.PR.MergeCommit)}, n + 1},
		{"none that landed it, which the store has", []*pullRecord{again(n+1, later)}, n},
	} {
		ev.pulls["web"]["qa"] = c.pulls
		revert := &pullRecord{Pull: stored.Pull{PR: forge.PullRequest{Number: n + 2}}, ref: promotion.BranchRef{Revert: true, Environment: "qa", Component: "web", Short: short}}
		got, err := w.o.findReverted(w.ctx(), ev, revert)
		if w.must(err); got == nil || got.PR.Number != c.want {
			t.Errorf("%s: %+v, want #%d", c.name, got, c.want)
		}
	}
}

// readMembers reads whom a pull request is about, as failUntilDone wants it.
func (sto *story) readMembers(ev *Evaluation, number int) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		_, _, err := sto.o.PullMembers(ctx, ev, number)
		return err
	}
}

// TestMembersOfPulls holds which components a pull request moves, also where only the store or its
// body says it. A call that fails never counts as none.
func TestMembersOfPulls(t *testing.T) {
	members := func(w *story, ev *Evaluation, number int) (env string, names string) {
		w.t.Helper()
		env, list, err := w.o.PullMembers(w.ctx(), ev, number)
		w.must(err)
		return env, strings.Join(effects.ComponentNames(list), " ")
	}
	t.Run("one that the look didn't read", func(t *testing.T) {
		w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web", "api")
		n, _, _ := openToQA(w)
		w.mergeBy(n, "linus", "merge")
		ev, _ := w.evaluate("api", false)
		if env, names := members(w, ev, n); env != "" || names != "" {
			t.Errorf("another component's is of %q in %q", names, env)
		}
		ev, _ = w.evaluate("web", false)
		ev.pulls = pullIndex{"web": {}}
		if env, names := members(w, ev, n); env != "qa" || names != "web" {
			t.Errorf("it is of %q in %q", names, env)
		}
		w.failUntilDone("members", func() { ev.pulls = pullIndex{"web": {}} }, w.readMembers(ev, n))
	})
	t.Run("a batch", func(t *testing.T) {
		w := newStory(t, "  batch: environment\n"+threeEnvs, []string{"dev", "qa", "prod"}, "api", "job", "web")
		w.components = []string{"api", "web"}
		n, branch, head := openToQA(w)
		w.bringUpToDate(n, branch, head, nil)
		forget := func(ev *Evaluation) *pullRecord {
			p := ev.openRecord("qa", n)
			p.members, p.membersKnown = nil, false
			return p
		}
		ev, _ := w.evaluate("web", false)
		if p := forget(ev); p != nil {
			p.PR.Body = "" // its head says it
		}
		if env, names := members(w, ev, n); env != "qa" || names != "api web" {
			t.Errorf("brought up to date it is of %q in %q", names, env)
		}
		w.failUntilDone("members", func() { forget(ev) }, w.readMembers(ev, n))
		ev, _ = w.evaluate("web", false)
		gone := forget(ev)
		gone.PR.Head = landedHash
		if env, names := members(w, ev, n); env != "qa" || names != "api web" {
			t.Errorf("where its head is gone its body says %q in %q", names, env)
		}
		gone.PR.Body = "Somebody's words"
		forget(ev)
		if env, names := members(w, ev, n); env != "qa" || names != "" {
			t.Errorf("where nothing says it it is of %q in %q", names, env)
		}
		w.mergeBy(n, "linus", "squash")
		ev, _ = w.evaluate("web", false)
		for _, p := range ev.pulls[promotion.BatchName]["qa"] {
			p.members, p.membersKnown, p.PR.Head, p.PR.Body = nil, false, landedHash, ""
		}
		if env, names := members(w, ev, n); env != "qa" || names != "api web" {
			t.Errorf("merged it is of %q in %q", names, env)
		}
		if list, err := w.o.landedMembers(w.ctx(), ev.Components[0], "qa", n); err != nil || len(list) != 2 {
			t.Errorf("with it landed %+v, %v", list, err)
		}
		for what, number := range map[string]int{"none": 0, "another": n + 1} {
			if list, err := w.o.landedMembers(w.ctx(), ev.Components[0], "qa", number); err != nil || list != nil {
				t.Errorf("with %s landed %+v, %v", what, list, err)
			}
		}
	})
	t.Run("a batch's revert", func(t *testing.T) {
		w := newStory(t, "  batch: environment\n"+threeEnvs, []string{"dev", "qa", "prod"}, "api", "job", "web")
		w.components = []string{"api", "web"}
		n, _, _ := openToQA(w)
		w.mergeBy(n, "mallory", "merge")
		w.soak("web")
		w.command("web", store.PendingCommand{Environment: "qa", Verb: "revert", By: "grace", Source: "comment 1"})
		revert := w.openRevert(w.evaluate("web", false))
		ev, _ := w.evaluate("web", false)
		p := ev.openRecord("qa", revert)
		forget := func() { p.members, p.membersKnown = nil, false }
		forget()
		if env, names := members(w, ev, revert); env != "qa" || names != "api web" {
			t.Errorf("it is of %q in %q", names, env)
		}
		w.failUntilDone("members", forget, w.readMembers(ev, revert))
		p.ref.Short = release("a")[:12] // its promotion isn't known
		forget()
		if env, names := members(w, ev, revert); env != "qa" || names != "api web" {
			t.Errorf("by its body it is of %q in %q", names, env)
		}
		p.PR.Body = ""
		forget()
		if env, names := members(w, ev, revert); env != "qa" || names != "api web" {
			t.Errorf("by its head it is of %q in %q", names, env)
		}
	})
}

// TestUnmanagedReverts names another account's work on the branch that a revert of the landed
// release would use, and nothing that is on another branch, ours, or closed.
func TestUnmanagedReverts(t *testing.T) {
	members := []promotion.Member{{Component: "api", Release: release("b")}, {Component: "web", Release: release("a")}}
	id, batch := release("a")[:12], promotion.BatchID(members)[:12]
	for name, c := range map[string]struct {
		component, short, author string
		state                    forge.State
		revert                   bool
		want                     bool
	}{
		"on its own":              {"web", id, "mallory", forge.Open, true, true},
		"in capitals":             {"web", strings.ToUpper(id), "mallory", forge.Open, true, true},
		"on that of all":          {promotion.BatchName, batch, "mallory", forge.Open, true, true},
		"of its release, but all": {promotion.BatchName, id, "mallory", forge.Open, true, false},
		"of all, but its own":     {"web", batch, "mallory", forge.Open, true, false},
		"ours":                    {"web", id, storyBot, forge.Open, true, false},
		"closed":                  {"web", id, "mallory", forge.Closed, true, false},
		"a promotion":             {"web", id, "mallory", forge.Open, false, false},
		"of another release":      {"web", release("c")[:12], "mallory", forge.Open, true, false},
		"of no release":           {"web", "", "mallory", forge.Open, true, false},
	} {
		p := &pullRecord{Pull: stored.Pull{PR: forge.PullRequest{Number: 3, Author: c.author, Branch: "the branch", State: c.state}}, batch: c.component == promotion.BatchName, ref: promotion.BranchRef{Component: c.component, Short: c.short, Revert: c.revert}}
		f := newRecordFixture()
		f.c.Evaluation.pulls = pullIndex{c.component: {"qa": {p}}}
		f.env.Release, f.env.Landed = promotion.Sure(promotion.Release{ID: release("a")}), promotion.Sure(promotion.Landed{Members: members})
		if name == "of no release" {
			f.env.Release.Value.ID = ""
		}
		f.c.markUnmanagedReverts(f.env)
		if is := f.env.RevertBranchState == promotion.BranchUnmanaged; is != c.want || c.want && f.env.RevertBranchReason != "#3 by mallory uses the branch the branch, which Liftlock would use; close it and delete the branch" {
			t.Errorf("%s: %q, %s", name, f.env.RevertBranchState, f.env.RevertBranchReason)
		}
	}
}

// TestComponentNamedLikeTheBatch takes a component's own pull request for its own, also where its
// name is the one that stands for all in a batch.
func TestComponentNamedLikeTheBatch(t *testing.T) {
	row := func(number int, branch string) store.Pull {
		data, err := json.Marshal(stored.Pull{PR: forge.PullRequest{Number: number, Branch: branch}})
		if err != nil {
			t.Fatal(err)
		}
		return store.Pull{Number: number, Branch: branch, Data: data}
	}
	branchName := promotion.Branch("shop", "qa", promotion.BatchName)
	for _, isComponent := range []bool{true, false} {
		ev := &Evaluation{Basis: branch.Basis{Unit: promotion.Unit{Pipeline: "shop"}, Pipeline: &branch.ResolvedPipeline{Units: map[string]*branch.ResolvedUnit{}}}}
		if isComponent {
			ev.Pipeline.Units[promotion.BatchName] = &branch.ResolvedUnit{}
		}
		x := pullIndex{promotion.BatchName: {}}
		o := &pullGatherer{rows: branch.NewDecodedRows(nil, "pulls", clipLabels)}
		for _, number := range []int{5, 9, 7, 7} { // in any order, and once
			if p, err := o.addPull(ev, x, row(number, branchName), nil); err != nil || p == nil || p.PR.Number != number || p.batch == isComponent {
				t.Errorf("a component %t: #%d is %+v, %v", isComponent, number, p, err)
			}
		}
		var numbers []int
		for _, p := range x[promotion.BatchName]["qa"] {
			numbers = append(numbers, p.PR.Number)
		}
		if !slices.Equal(numbers, []int{9, 7, 5}) {
			t.Errorf("they are in the order %v", numbers)
		}
		for _, other := range []string{"topic", promotion.Branch("other", "qa", promotion.BatchName), promotion.Branch("shop", "qa", "web")} {
			if p, err := o.addPull(ev, x, row(1, other), nil); err != nil || p != nil {
				t.Errorf("%s concerns it: %+v, %v", other, p, err)
			}
		}
	}
}

// TestRestoredEdits gives what takes a promotion back as it was composed for any of those that it brought.
func TestRestoredEdits(t *testing.T) {
	edits := []fieldedit.Edit{{File: "a"}}
	component := func(name string, pull int, known bool, restored []fieldedit.Edit) *ComponentEvaluation {
		env := promotion.Env{Name: "qa", Landed: promotion.Known[promotion.Landed]{Value: promotion.Landed{Pull: pull}, OK: known}}
		return &ComponentEvaluation{ComponentBasis: branch.ComponentBasis{Facts: promotion.ComponentFacts{Unit: promotion.Unit{Component: name}, Envs: []promotion.Env{env}}}, restored: map[string][]fieldedit.Edit{"qa": restored}}
	}
	for name, c := range map[string]struct {
		components []*ComponentEvaluation
		want       bool
	}{
		"of the first":               {[]*ComponentEvaluation{component("api", 3, true, edits), component("web", 3, true, nil)}, true},
		"of the second":              {[]*ComponentEvaluation{component("api", 3, true, nil), component("web", 3, true, edits)}, true},
		"of who isn't among them":    {[]*ComponentEvaluation{component("job", 3, true, edits)}, false},
		"of another promotion":       {[]*ComponentEvaluation{component("api", 4, true, edits)}, false},
		"what landed isn't known":    {[]*ComponentEvaluation{component("api", 3, false, edits)}, false},
		"it was composed for nobody": {[]*ComponentEvaluation{component("api", 3, true, nil)}, false},
	} {
		ev := &Evaluation{Components: c.components}
		if got := ev.RestoredEdits("qa", 3, []promotion.Member{{Component: "gone"}, {Component: "api"}, {Component: "web"}}); (got != nil) != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
