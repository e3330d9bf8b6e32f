package promotion

import (
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/policies"
)

// simWorld is a small model of everything outside Decide: a tracked branch, a
// forge, Argo CD and the store. What is in book is what really happened; Decide
// never sees it, and it survives the loss of the store.
type simWorld struct {
	now   time.Time
	specs []pipeline.Environment
	spec  pipeline.Spec

	likely []string // events, the likeliest first
	rest   bool     // Argo CD has nothing more to tell

	log      []simCommit
	pulls    []*simPull
	heads    int // heads made so far
	released int // releases made so far

	targets  map[string][]*simTarget // by environment
	holds    []Hold
	holdsErr string
	broken   string
	problems []string
	refused  map[string]bool // environment|release that can't be composed
	weather  []Weather
	limits   Limits

	store     simStore
	asks      int64 // commands given so far
	book      simBook
	decisions int // taken so far
}

// simCommit changes one environment's release, or only touches its files.
type simCommit struct {
	sha, env      string
	before, after string
	by            string // "" for the start, person, ours
	kind, trailer string // of our commits, unless they were lost
	at            time.Time
}

func (c *simCommit) moves() bool { return c.before != c.after }

// simPull is a pull request on a branch named like ours.
type simPull struct {
	number        int
	env           string
	revert, ours  bool
	release       string // what its head carries; a revert: what it takes back
	claimed       string // what its description says
	back          string // a revert: what it restores
	base          int    // length of the log it was composed on
	head          string
	open, merged  bool
	held, super   bool
	spoilt        string // somebody else's work on its head
	approvals     map[string]string
	mergeable     string
	commit        string
	made, changed time.Time
	ended         time.Time
	byUs          bool // merged by Liftlock itself
}

// simTarget is one target with the verdict about what is in its environment.
type simTarget struct {
	name, cluster string
	state         verification.State
	since         time.Time
}

// simStore is what may be deleted at any time.
type simStore struct {
	seq     int64
	history map[string][]Arrival // newest first
	asks    []Ask
	before  map[int]bool // by pull request: were the targets well while it was open?
}

// simBook is the truth that the properties are judged by.
type simBook struct {
	verified map[string]bool      // environment|release: all targets were verified with it once
	promotes map[string]time.Time // by environment: when a person last asked
}

func (w *simWorld) now1(env string) string {
	for i := len(w.log) - 1; i >= 0; i-- {
		if w.log[i].env == env {
			return w.log[i].after
		}
	}
	panic("nothing in " + env)
}

// landed is the commit that brought env to where it is; index into the log.
func (w *simWorld) landed(env string) int {
	for i := len(w.log) - 1; i >= 0; i-- {
		if c := &w.log[i]; c.env == env && (c.moves() || c.by == "") {
			return i
		}
	}
	panic("nothing in " + env)
}

func (w *simWorld) tip() string { return w.log[len(w.log)-1].sha }

// commit puts a release into an environment; the targets have to take it.
func (w *simWorld) commit(env, release, by string) *simCommit {
	c := simCommit{sha: fmt.Sprintf("%040d", len(w.log)+1), env: env, before: w.now1(env), after: release, by: by, at: w.now}
	w.log = append(w.log, c)
	if c.moves() {
		for _, t := range w.targets[env] {
			t.state, t.since = verification.Arriving, w.now
		}
	}
	return &w.log[len(w.log)-1]
}

func (w *simWorld) touched(env string, since int) (moved, any bool) {
	for _, c := range w.log[since:] {
		if c.env == env {
			any = true
			moved = moved || c.moves()
		}
	}
	return moved, any
}

func (w *simWorld) pull(number int) *simPull { return w.pulls[number-1] }

func (w *simWorld) openOurs(env string, revert bool) *simPull {
	for _, p := range w.pulls {
		if p.open && p.ours && p.env == env && p.revert == revert {
			return p
		}
	}
	return nil
}

func (w *simWorld) newHead() string {
	w.heads++
	return fmt.Sprintf("h%039d", w.heads)
}

// create opens a pull request, or finds the one that is open on the same branch.
func (w *simWorld) create(p *simPull) *simPull {
	for _, o := range w.pulls {
		if o.open && o.env == p.env && o.revert == p.revert && (!p.revert || Short(o.release) == Short(p.release)) {
			return o
		}
	}
	p.number, p.open, p.made, p.changed, p.head = len(w.pulls)+1, true, w.now, w.now, w.newHead()
	p.mergeable, p.approvals = "yes", map[string]string{}
	w.pulls = append(w.pulls, p)
	return p
}

// merge merges a pull request as it is; false when it conflicts.
func (w *simWorld) merge(p *simPull, byUs, trailers bool) bool {
	if moved, _ := w.touched(p.env, p.base); moved || !p.open {
		return false
	}
	to := p.release
	if p.revert {
		to = p.back
	}
	c := w.commit(p.env, to, "ours")
	if trailers {
		c.kind, c.trailer = KindPromotion, Short(p.release)
		if p.revert {
			c.kind = KindRevert
		}
	}
	p.open, p.merged, p.commit, p.ended, p.byUs = false, true, c.sha, w.now, byUs
	return true
}

// loseStore forgets everything that isn't in Git, on the forge or in Argo CD.
func (w *simWorld) loseStore() {
	w.store = simStore{history: map[string][]Arrival{}, before: map[int]bool{}}
	for _, ts := range w.targets {
		for _, t := range ts {
			switch t.state {
			case verification.Verified, verification.Soaking, verification.Degraded, verification.Failed:
				t.state, t.since = verification.Refreshing, w.now
			}
		}
	}
}

// facts is what observe would gather.
func (w *simWorld) facts() Facts {
	f := Facts{Now: w.now, Unit: Unit{Repo: "hub:acme/fleet", Pipeline: "shop", Component: "web"}, Pipeline: &pipeline.Pipeline{Spec: w.spec},
		Broken: w.broken, Problems: w.problems, Tip: w.tip(), HoldsErr: w.holdsErr, Weather: w.weather, Asks: slices.Clone(w.store.asks)}
	if f.HoldsErr == "" {
		f.Holds = slices.Clone(w.holds)
	}
	f.Limits = w.limits
	f.Limits.RevertsByEnv = map[string]int{}
	for _, p := range w.pulls {
		if p.ours && p.revert && w.now.Sub(p.made) < 10*time.Minute {
			f.Limits.RevertsByEnv[p.env]++
			if f.Limits.OldestRevertInTen.IsZero() || p.made.Before(f.Limits.OldestRevertInTen) {
				f.Limits.OldestRevertInTen = p.made
			}
		}
		if p.byUs && !p.revert && w.now.Sub(p.ended) < time.Hour {
			f.Limits.MergesLastHour++
			if f.Limits.OldestMerge.IsZero() {
				f.Limits.OldestMerge = p.ended
			}
		}
	}
	for _, s := range w.specs {
		f.Envs = append(f.Envs, w.env(s, f.Envs))
	}
	return f
}

func (w *simWorld) env(s pipeline.Environment, before []Env) Env {
	i := w.landed(s.Name)
	c := &w.log[i]
	e := Env{Name: s.Name, Branch: "main", Tip: w.tip(), Spec: s, Gates: s.Gates, Now: Sure(Release{ID: c.after, Name: c.after[:4]}), Composed: map[string]Composed{}}
	l := Landed{Commit: c.sha, At: c.at, By: ByPerson, Who: "linus"}
	if c.by == "" {
		l.By = ByBaseline
	}
	for _, p := range w.pulls {
		if p.ours && p.merged && p.commit == c.sha {
			l.By, l.Pull, l.At = ByPromotion, p.number, p.ended
			if p.revert {
				l.By = ByRevert
			}
		}
	}
	e.Landed = Sure(l)
	w.arrive(&e)
	e.History = slices.Clone(w.store.history[s.Name])
	w.pullsOf(&e, before)
	for _, t := range w.targets[s.Name] {
		v := Target{Unwell: []verification.Resource{{Kind: "Deployment", Name: "web", Health: "Degraded"}}, Name: t.name, Cluster: t.cluster, Verdict: verification.Verdict{State: t.state, Reason: string(t.state), Since: t.since}}
		switch {
		case w.rest:
		case t.state == verification.Refreshing:
			v.Verdict.Refresh, v.Verdict.Next = true, w.now.Add(time.Minute)
		case t.state != verification.Verified:
			v.Verdict.Next = w.now.Add(time.Minute)
		}
		if well, ok := w.store.before[l.Pull]; ok {
			v.WellBefore = Sure(well)
		} else {
			v.WellBefore = Unsure[bool]("the record is lost")
		}
		e.Targets = append(e.Targets, v)
	}
	if e.Open != nil {
		w.store.before[e.Open.Number] = w.all(s.Name, verification.Verified)
	}
	if w.all(s.Name, verification.Verified) {
		w.book.verified[s.Name+"|"+c.after] = true
	}
	seen := map[string]bool{}
	for j := len(w.log) - 1; j >= 0; j-- {
		if c := &w.log[j]; c.env == s.Name && c.trailer != "" && !seen[c.trailer] {
			seen[c.trailer] = true
			if c.kind == KindRevert {
				e.Reverted = append(e.Reverted, c.trailer)
			}
		}
	}
	return e
}

func (w *simWorld) all(env string, s verification.State) bool {
	return !slices.ContainsFunc(w.targets[env], func(t *simTarget) bool { return t.state != s })
}

// arrive writes down what is in the environment where that is new.
func (w *simWorld) arrive(e *Env) {
	h := w.store.history[e.Name]
	l := e.Landed.Value
	for i := range h {
		if h[i].Commit == l.Commit {
			h[i].By = l.By
			return
		}
	}
	w.store.seq++
	w.store.history[e.Name] = append([]Arrival{{Seq: w.store.seq, Release: e.Now.Value.ID, Name: e.Now.Value.Name, Commit: l.Commit, By: l.By, At: w.now}}, h...)
}

func (w *simWorld) pullsOf(e *Env, before []Env) {
	for _, p := range w.pulls {
		switch {
		case p.env != e.Name || !p.ours && !p.open:
		case !p.ours && !p.revert:
			e.Foreign = fmt.Sprintf("#%d by mallory", p.number)
		case !p.ours:
			if p.release == e.Now.Value.ID {
				e.ForeignUndo = fmt.Sprintf("#%d by mallory", p.number)
			}
		case p.open:
			if p.revert {
				e.Undo = w.openPull(p, e, before)
			} else {
				e.Open = w.openPull(p, e, before)
			}
		default:
			e.Past = append(e.Past, Past{Number: p.number, Revert: p.revert, Release: p.release, Merged: p.merged, Superseded: p.super, At: p.ended, Commit: p.commit})
		}
	}
	slices.Reverse(e.Past)
	slices.SortStableFunc(e.Past, func(a, b Past) int { return b.At.Compare(a.At) })
}

func (w *simWorld) openPull(p *simPull, e *Env, before []Env) *Pull {
	out := &Pull{Number: p.number, Head: p.head, Release: p.release, Claimed: p.claimed, Name: p.release[:4], CreatedAt: p.made, UpdatedAt: p.changed,
		Held: p.held, Unsound: p.spoilt, Mergeable: p.mergeable}
	if out.Unsound == "" && !p.revert && p.claimed != p.release && !Proven(before, e.Spec.After, p.release) {
		out.Unsound = "it carries another release"
	}
	moved, any := w.touched(p.env, p.base)
	out.Stale = any
	if moved {
		out.Mergeable = "dirty"
	}
	for who, what := range p.approvals {
		out.Review.Approvals = append(out.Review.Approvals, policies.Approval{User: who, MayWrite: true, Current: what == p.release})
	}
	slices.SortFunc(out.Review.Approvals, func(a, b policies.Approval) int { return len(a.User) - len(b.User) })
	return out
}

// answer gathers what a Look asks for.
func (w *simWorld) answer(f *Facts, l Look) {
	e := simEnv(f, l.Environment)
	switch l.What {
	case LookCompose:
		c := Composed{Tip: e.Tip, Empty: l.Release == e.Now.Value.ID}
		if w.refused[l.Environment+"|"+l.Release] {
			c.Refused = "base/kustomization.yaml is also read by others"
		}
		e.Composed[l.Release] = c
	case LookRestore:
		e.Restore = Sure(Composed{Tip: e.Tip})
	case LookBlame:
		_, any := w.touched(e.Name, w.landed(e.Name)+1)
		for i := range e.Targets {
			var by []string
			if any {
				by = []string{"abc"}
			}
			e.Targets[i].Touched = Sure(by)
		}
	case LookChanged:
		for i := range e.Targets {
			e.Targets[i].Changed = w.changed(e.Landed.Value.Commit)
		}
	}
}

// changed is what a commit changed of manifests: what is degraded, something
// else, or nobody can tell.
func (w *simWorld) changed(commit string) Known[[]Object] {
	switch commit[len(commit)-1] % 3 {
	case 0:
		return Sure([]Object{{Kind: "Deployment", Name: "web"}})
	case 1:
		return Sure([]Object{{Kind: "ConfigMap", Name: "web"}})
	}
	return Unsure[[]Object]("rendering took longer than 30s")
}

func simEnv(f *Facts, name string) *Env {
	return &f.Envs[slices.IndexFunc(f.Envs, func(e Env) bool { return e.Name == name })]
}
