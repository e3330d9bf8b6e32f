package promotion

import (
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// simulation is a small model of everything outside Decide: a tracked branch, a forge, Argo CD and
// the store. book has what really happened; Decide never sees it, and it survives the loss of the
// store.
type simulation struct {
	now   time.Time
	skew  time.Duration // of the clock of the server that decides, against the world's
	specs []pipeline.Environment
	spec  pipeline.Spec

	likely []string // events, the likeliest first
	rest   bool     // Argo CD has nothing more to tell

	log      []simCommit
	pulls    []*simPull
	heads    int // heads made so far
	released int // releases made so far

	targets   map[string][]*simTarget // by environment
	holds     []Hold
	holdsErr  string
	broken    string
	problems  []string
	refused   map[string]bool // environment|release that can't be composed
	incidents []ClusterIncident
	limits    Limits

	store     simStore
	commands  int64 // commands given so far
	truth     simTruth
	seen      map[string]bool // commits that were evaluated while they were there, since the store was lost
	adopted   map[string]bool // commits of people that brought what would have been promoted
	adopting  map[string]bool // those of which the decision that is checked says so
	decisions int             // taken so far
}

// simCommit changes one environment's release, or only touches its files.
type simCommit struct {
	sha, env      string
	before, after string
	by            string // "" for the start, person, ours
	kind, trailer string // of our commits, unless they were lost
	at            time.Time
}

func (s *simCommit) moves() bool { return s.before != s.after }

// simPull is a pull request on a branch named like ours.
type simPull struct {
	number        int
	env           string
	revert, ours  bool
	release       string // what its head carries; a revert: what it takes back
	declared      string // what its description says
	back          string // a revert: what it restores
	base          int    // length of the log it was composed on
	head          string
	open, merged  bool
	held, super   bool
	headModified  string // another account's work on its head
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
	drift         string // drifted, untold; empty: it is as Git says
}

// simStore is what may be deleted at any time.
type simStore struct {
	seq     int64
	history map[string][]Arrival // newest first
	pending []PendingCommand
	before  map[int]bool // by pull request: were the targets well while it was open?
}

// simTruth is the truth that the properties are judged by.
type simTruth struct {
	verified   map[string]bool      // environment|release: all targets were verified with it once
	promotedAt map[string]time.Time // by environment: when a person last asked
}

func (si *simulation) currentRelease(env string) string {
	for i := len(si.log) - 1; i >= 0; i-- {
		if si.log[i].env == env {
			return si.log[i].after
		}
	}
	panic("nothing in " + env)
}

// landed is the commit that brought env to where it is; index into the log.
func (si *simulation) landed(env string) int {
	for i := len(si.log) - 1; i >= 0; i-- {
		if c := &si.log[i]; c.env == env && (c.moves() || c.by == "") {
			return i
		}
	}
	panic("nothing in " + env)
}

func (si *simulation) tip() string { return si.log[len(si.log)-1].sha }

// commit puts a release into an environment; the targets have to take it.
func (si *simulation) commit(env, release, by string) *simCommit {
	c := simCommit{sha: fmt.Sprintf("%040d", len(si.log)+1), env: env, before: si.currentRelease(env), after: release, by: by, at: si.now}
	si.log = append(si.log, c)
	if c.moves() {
		for _, t := range si.targets[env] {
			t.state, t.since, t.drift = verification.Arriving, si.now, ""
		}
	}
	return &si.log[len(si.log)-1]
}

func (si *simulation) changedSince(env string, since int) (moved, any bool) {
	for _, c := range si.log[since:] {
		if c.env == env {
			any = true
			moved = moved || c.moves()
		}
	}
	return moved, any
}

func (si *simulation) pull(number int) *simPull { return si.pulls[number-1] }

func (si *simulation) openOurs(env string, revert bool) *simPull {
	for _, p := range si.pulls {
		if p.open && p.ours && p.env == env && p.revert == revert {
			return p
		}
	}
	return nil
}

func (si *simulation) newHead() string {
	si.heads++
	return fmt.Sprintf("h%039d", si.heads)
}

// create opens a pull request, or finds the one that is open on the same branch.
func (si *simulation) create(p *simPull) *simPull {
	for _, o := range si.pulls {
		if o.open && o.env == p.env && o.revert == p.revert && (!p.revert || wording.Short(o.release) == wording.Short(p.release)) {
			return o
		}
	}
	p.number, p.open, p.made, p.changed, p.head = len(si.pulls)+1, true, si.now, si.now, si.newHead()
	p.mergeable, p.approvals = "yes", map[string]string{}
	si.pulls = append(si.pulls, p)
	return p
}

// merge merges a pull request as it is; false when it conflicts.
func (si *simulation) merge(p *simPull, byUs, trailers bool) bool {
	if moved, _ := si.changedSince(p.env, p.base); moved || !p.open {
		return false
	}
	to := p.release
	if p.revert {
		to = p.back
	}
	c := si.commit(p.env, to, "ours")
	if trailers {
		c.kind, c.trailer = KindPromotion, wording.Short(p.release)
		if p.revert {
			c.kind = KindRevert
		}
	}
	p.open, p.merged, p.commit, p.ended, p.byUs = false, true, c.sha, si.now, byUs
	return true
}

// loseStore forgets everything that isn't in Git, on the forge or in Argo CD.
func (si *simulation) loseStore() {
	si.seen = map[string]bool{}
	si.store = simStore{history: map[string][]Arrival{}, before: map[int]bool{}}
	for _, ts := range si.targets {
		for _, t := range ts {
			switch t.state {
			case verification.Verified, verification.Soaking, verification.Degraded, verification.Failed:
				t.state, t.since = verification.Refreshing, si.now
			}
		}
	}
}

// facts is what observe would gather.
func (si *simulation) facts() ComponentFacts {
	f := ComponentFacts{Now: si.clock(), Unit: Unit{Repo: "hub:acme/fleet", Pipeline: "shop", Component: "web"}, Pipeline: &pipeline.Pipeline{Spec: si.spec},
		PipelineErr: si.broken, Problems: si.problems, Tip: si.tip(), Holds: Unsure[[]Hold](si.holdsErr), ClusterIncidents: si.incidents, PendingCommands: slices.Clone(si.store.pending)}
	if si.holdsErr == "" {
		f.Holds = Sure(slices.Clone(si.holds))
	}
	f.Limits = si.limits
	f.Limits.RevertsByEnv = map[string]int{}
	for _, p := range si.pulls {
		if p.ours && p.revert && si.now.Sub(p.made) < 10*time.Minute {
			f.Limits.RevertsByEnv[p.env]++
			if f.Limits.OldestRecentRevert.IsZero() || p.made.Before(f.Limits.OldestRecentRevert) {
				f.Limits.OldestRecentRevert = p.made
			}
		}
		if p.byUs && !p.revert && si.now.Sub(p.ended) < time.Hour {
			f.Limits.MergesLastHour++
			if f.Limits.OldestMerge.IsZero() {
				f.Limits.OldestMerge = p.ended
			}
		}
	}
	for _, s := range si.specs {
		f.Envs = append(f.Envs, si.env(s, f.Envs))
	}
	return f
}

func (si *simulation) env(s pipeline.Environment, before []Env) Env {
	i := si.landed(s.Name)
	c := &si.log[i]
	e := Env{Name: s.Name, Branch: "main", Tip: si.tip(), Spec: s, Gates: s.Gates, Release: Sure(Release{ID: c.after, Name: c.after[:4]}), Compositions: map[string]Composition{}}
	si.seen[c.sha] = true
	l := Landed{Commit: c.sha, At: c.at, By: ByPerson, Author: "linus"}
	if c.by == "" {
		l.By = ByBaseline
	}
	for _, p := range si.pulls {
		if p.ours && p.merged && p.commit == c.sha {
			l.By, l.Pull, l.At = ByPromotion, p.number, p.ended
			if p.revert {
				l.By = ByRevert
			}
		}
	}
	if l.By == ByPerson && slices.ContainsFunc(si.store.history[s.Name], func(a Arrival) bool { return a.Commit == c.sha && a.By == ByHand }) {
		l.By = ByHand
	}
	e.Landed = Sure(l)
	si.recordArrival(&e)
	e.History = slices.Clone(si.store.history[s.Name])
	si.addPulls(&e, before)
	for _, t := range si.targets[s.Name] {
		v := Target{Name: t.name, Cluster: t.cluster, Verdict: verification.Verdict{State: t.state, Reason: string(t.state), Since: t.since}}
		switch t.drift {
		case "drifted":
			v.Verdict.Drift = &verification.Drift{Since: t.since, Total: 1}
		case "untold":
			v.Verdict.DriftUntold = "a sync is under way"
		default:
			v.Verdict.InSync = true
		}
		switch {
		case si.rest:
		case t.state == verification.Refreshing:
			v.Verdict.Refresh, v.Verdict.Next = true, si.now.Add(time.Minute)
		case t.state != verification.Verified:
			v.Verdict.Next = si.now.Add(time.Minute)
		}
		if well, ok := si.store.before[l.Pull]; ok {
			v.HealthyBefore = Sure(well)
		} else {
			v.HealthyBefore = Unsure[bool]("the record is lost")
		}
		e.Targets = append(e.Targets, v)
	}
	if e.Open != nil {
		si.store.before[e.Open.Number] = si.all(s.Name, verification.Verified)
	}
	if si.all(s.Name, verification.Verified) {
		si.truth.verified[s.Name+"|"+c.after] = true
	}
	seen := map[string]bool{}
	for j := len(si.log) - 1; j >= 0; j-- {
		if c := &si.log[j]; c.env == s.Name && c.trailer != "" && !seen[c.trailer] {
			seen[c.trailer] = true
			if c.kind == KindRevert {
				e.RevertedReleases = append(e.RevertedReleases, c.trailer)
			}
		}
	}
	return e
}

func (si *simulation) all(env string, s verification.State) bool {
	return !slices.ContainsFunc(si.targets[env], func(t *simTarget) bool { return t.state != s })
}

// recordArrival writes down what is in the environment where that is new.
func (si *simulation) recordArrival(e *Env) {
	h := si.store.history[e.Name]
	l := e.Landed.Value
	for i := range h {
		if h[i].Commit == l.Commit {
			h[i].By = l.By
			return
		}
	}
	si.store.seq++
	si.store.history[e.Name] = append([]Arrival{{Seq: si.store.seq, Release: e.Release.Value.ID, Name: e.Release.Value.Name, Commit: l.Commit, By: l.By, At: si.now}}, h...)
	arrived := Env{Spec: e.Spec, History: si.store.history[e.Name]}
	for _, i := range arrived.ListWithdrawn() {
		arrived.History[i].WithdrawnAt = si.now
	}
}

func (si *simulation) addPulls(e *Env, before []Env) {
	for _, p := range si.pulls {
		switch {
		case p.env != e.Name || !p.ours && !p.open:
		case !p.ours && !p.revert:
			e.MarkUnmanaged(fmt.Sprintf("#%d by mallory", p.number))
		case !p.ours:
			if p.release == e.Release.Value.ID {
				e.MarkRevertUnmanaged(fmt.Sprintf("#%d by mallory", p.number))
			}
		case p.open:
			if p.revert {
				e.Revert = si.openPull(p, e, before)
			} else {
				e.Open = si.openPull(p, e, before)
			}
		default:
			e.PastPulls = append(e.PastPulls, PastPull{Number: p.number, Revert: p.revert, Release: p.release, Merged: p.merged, Superseded: p.super, At: p.ended, Commit: p.commit})
		}
	}
	slices.Reverse(e.PastPulls)
	slices.SortStableFunc(e.PastPulls, func(a, b PastPull) int { return b.At.Compare(a.At) })
}

// mergeability is the forge's word on a pull request: what is composed on the tip isn't behind it.
func (si *simulation) mergeability(p *simPull) MergeState {
	if m := MergeState(p.mergeable); m != MergeBehind || p.base < len(si.log) {
		return m
	}
	return MergeClean
}

func (si *simulation) openPull(p *simPull, e *Env, before []Env) *Pull {
	out := &Pull{Number: p.number, Head: p.head, Release: p.release, DeclaredRelease: Known[string]{Value: p.declared, OK: p.declared != ""}, Name: p.release[:4], CreatedAt: p.made, UpdatedAt: p.changed,
		Held: p.held, Mergeable: si.mergeability(p)}
	out.MarkModified(p.headModified)
	if out.HeadState != HeadModified && !p.revert && p.declared != p.release && !VerifiedInAll(before, e.Spec.After, p.release) {
		out.MarkModified("it carries another release")
	}
	moved, any := si.changedSince(p.env, p.base)
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

// answerRequest gathers what a Look asks for.
func (si *simulation) answerRequest(f *ComponentFacts, l FactRequest) {
	e := simEnv(f, l.Environment)
	switch l.What {
	case RequestComposition:
		c := Composition{Tip: e.Tip}
		if l.Release == e.Release.Value.ID {
			c.State = EditEmpty
		}
		if si.refused[l.Environment+"|"+l.Release] {
			c.Refuse("base/kustomization.yaml is also read by others")
		}
		e.Compositions[l.Release] = c
	case RequestRestore:
		e.Restore = Sure(Composition{Tip: e.Tip})
	case RequestBlame:
		_, any := si.changedSince(e.Name, si.landed(e.Name)+1)
		for i := range e.Targets {
			var by []string
			if any {
				by = []string{"abc"}
			}
			e.Targets[i].ChangedSince = Sure(by)
		}
	case RequestCulprits:
		for i := range e.Targets {
			e.Targets[i].Unhealthy = si.unhealthyResources(e.Landed.Value.Commit)
		}
	case RequestChangedObjects:
		for i := range e.Targets {
			e.Targets[i].ChangedObjects = si.changedObjects(e.Landed.Value.Commit)
		}
	}
}

// unhealthyResources is the degraded resources, or the fact that they aren't known.
func (si *simulation) unhealthyResources(commit string) Known[[]verification.Resource] {
	if commit[len(commit)-1]%5 == 0 {
		return Unsure[[]verification.Resource]("403 Forbidden")
	}
	return Sure([]verification.Resource{{Kind: "Deployment", Name: "web", Health: "Degraded"}})
}

// changedObjects is what a commit changed of manifests: what is degraded, something
// else, or nobody can tell.
func (si *simulation) changedObjects(commit string) Known[[]Object] {
	switch commit[len(commit)-1] % 3 {
	case 0:
		return Sure([]Object{{Kind: "Deployment", Name: "web"}})
	case 1:
		return Sure([]Object{{Kind: "ConfigMap", Name: "web"}})
	}
	return Unsure[[]Object]("rendering took longer than 30s")
}

func simEnv(f *ComponentFacts, name string) *Env {
	return &f.Envs[slices.IndexFunc(f.Envs, func(e Env) bool { return e.Name == name })]
}

// clock is what the server that decides takes for the time.
func (si *simulation) clock() time.Time { return si.now.Add(si.skew) }
