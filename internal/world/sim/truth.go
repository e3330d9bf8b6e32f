package sim

import (
	"slices"
	"time"
)

// deployment is a release in a target.
type deployment struct {
	target target
	tag    string
}

// landing is a tag that came to a target.
type landing struct {
	tag      string
	at       time.Time
	byPerson bool   // by a person's own push
	before   string // the commit before it
	wasWell  bool   // the target was healthy then, and a process had the time to see it
	restores bool   // a revert put it back
	adopted  bool   // by a person, as the service would have: it may go on from there
}

// truth is what the world knows of what happened.
type truth struct {
	quality          map[deployment]quality
	health           map[deployment]*health
	landings         map[target][]landing
	arrived          map[string]string        // the last release of each component that came everywhere
	reverted         map[deployment]time.Time // taken back by a revert pull request
	lifted           map[target]time.Time     // when a person asked for a promotion, whatever it moves
	liftedBefore     map[target]time.Time     // the same, of what was asked before the database was lost
	requestedReverts map[target]bool          // a person asked for a revert
	approvals        map[int]map[string]string
	reviewed         map[approval]bool
	heldSince        map[int]time.Time
	holdComments     map[int64]int      // what holds a pull request by a command, by comment
	seen             seenBranch         // what a process has told the others of the branch last
	forged           map[int]bool       // pull requests with another account's head
	acknowledged     map[int]time.Time  // since when the service says that it holds a pull request
	wideHolds        map[int64]wideHold // holds on more than a pull request, by the comment that set them
	vetoed           map[deployment]int // the pull request that a person closed
	brokenSince      time.Time          // the pipeline file; zero: it isn't broken
	comments         map[string]int
	requested        map[string]requests   // by pull request, head and login
	deployed         map[string]int        // how often, by environment, task and commit
	pushed           map[string]pushedHead // heads of the service's branches that don't show where they stand, by branch
	queued           map[int]queuedPull    // what joined the merge queue last, by pull request
	joined           map[int]joinedHead    // which head the service had join it, and how often
	mended           map[string]bool       // heads whose pipeline people have mended
	lastWrite        time.Time
	bystanders       map[deployment]bool       // well, and taken back by the revert of what came with it
	excused          map[string]string         // components that people left in a state of their own
	excusedAt        map[string]time.Time      // when they last did
	withdrawn        map[deployment]withdrawal // a person went back from it where it was
	superseded       map[int]bool              // closed pull requests of which the service itself says that they were replaced
	grudges          map[target]string         // what an insider pushes over the next pull request that is about it
	said             map[int64]saidHold        // what people said of holds, by comment, until the service answers
	resetAt          time.Time                 // when a person last reset the branch
	revertedAside    map[deployment]time.Time  // whose revert was merged into another branch: it is kept out, and was not taken back
	promotes         map[target]int            // how many were asked for since one was merged
	mergeable        map[int]time.Time         // reverts that the service merges by itself, and since when nothing is in the way
	revertComments   map[int64][]deployment    // what people want to be taken back, by comment
	wantedBack       map[deployment]time.Time  // since when the service says that it takes it back
	further          []furtherMove             // what it merged of late
	aside            map[target]bool           // whose next revert is merged into another branch
	strangers        map[int64]string          // what people without rights asked for, by comment
	rewritten        map[string]requests       // how often the same was written again, by what it is written on
	calmAt           time.Time                 // when the faults ended
	eligible         map[target]eligible       // what may come to a target by itself, and since when
	squatters        map[string]squatter       // by branch
	merges           []time.Time               // of promotions, by the service, of late
	obsolete         map[int]time.Time         // promotions with what may not come any more, and since when
	// taken back by a person, so that it may be kept out or not: merged further on by one, or in what nobody
	// may have seen
	waived     map[deployment]bool
	makers     map[deployment][]string // who put a release where it comes from
	revertedBy map[deployment]*task    // which run has opened a revert of it last
	unmarked   map[string]bool         // components with a pull request whose text somebody has edited
}

// requests are how often a review was requested.
type requests struct {
	times          int
	failuresBefore int // of the database, when it was first
}

// pushedHead is a head that the service gave a branch of its own.
type pushedHead struct {
	commit string
	at     time.Time
}

// withdrawal is that a person went back from something.
type withdrawal struct {
	at    time.Time
	inGit bool // its history tells, should the database be lost
}

// wideHold is a hold on more than a pull request.
type wideHold struct {
	pull       int // on which it was said
	scope, env string
	components []string
	since      time.Time // since when the service says that it holds; zero: it hasn't yet
}

// covers says whether a hold stands against bringing something to a target.
func (w wideHold) covers(p target) bool {
	switch w.scope {
	case "component":
		return slices.Contains(w.components, p.component)
	case "environment":
		return w.env == p.env
	}
	return true
}

// seenBranch is where a process saw the branch, which it wrote into a database.
type seenBranch struct {
	head  string
	at    time.Time
	store int // which of the databases that there were
}

func newTruth() truth {
	return truth{quality: map[deployment]quality{}, health: map[deployment]*health{}, landings: map[target][]landing{},
		arrived: map[string]string{}, reverted: map[deployment]time.Time{},
		lifted: map[target]time.Time{}, liftedBefore: map[target]time.Time{}, requestedReverts: map[target]bool{},
		approvals: map[int]map[string]string{}, reviewed: map[approval]bool{}, heldSince: map[int]time.Time{},
		holdComments: map[int64]int{}, acknowledged: map[int]time.Time{}, forged: map[int]bool{}, wideHolds: map[int64]wideHold{},
		vetoed: map[deployment]int{}, comments: map[string]int{}, requested: map[string]requests{}, deployed: map[string]int{},
		pushed: map[string]pushedHead{}, queued: map[int]queuedPull{}, joined: map[int]joinedHead{}, mended: map[string]bool{},
		bystanders: map[deployment]bool{}, excused: map[string]string{}, unmarked: map[string]bool{},
		withdrawn: map[deployment]withdrawal{}, superseded: map[int]bool{}, grudges: map[target]string{}, said: map[int64]saidHold{},
		revertedAside: map[deployment]time.Time{}, promotes: map[target]int{}, eligible: map[target]eligible{},
		mergeable: map[int]time.Time{}, aside: map[target]bool{}, revertComments: map[int64][]deployment{},
		wantedBack: map[deployment]time.Time{}, squatters: map[string]squatter{}, waived: map[deployment]bool{},
		obsolete: map[int]time.Time{}, makers: map[deployment][]string{}, revertedBy: map[deployment]*task{}, strangers: map[int64]string{},
		rewritten: map[string]requests{}, excusedAt: map[string]time.Time{}}
}

// returns notes that what was taken back is there again because a person wanted it: how it
// was before no longer counts.
func (t *truth) returns(d deployment) {
	delete(t.revertedAside, d)
	if _, ok := t.reverted[d]; !ok {
		return
	}
	delete(t.reverted, d)
	if h := t.health[d]; h != nil && !h.left.IsZero() {
		delete(t.health, d)
	}
}

// qualityOf is what becomes of a release in a target.
func (sim *Simulation) qualityOf(p target, tag string) quality {
	return sim.truth.quality[deployment{p, tag}]
}

// noteLook records that a run has evaluated an Application that is degraded.
func (sim *Simulation) noteLook(name string) {
	for _, x := range sim.argocd.apps {
		if h := sim.truth.health[deployment{x.target, x.tag}]; x.state.Name == name && h != nil {
			h.looked = true
		}
	}
}

// arrive notes that a deployment is there: how it was when it was there before is another
// story.
func (sim *Simulation) arrive(x *app) {
	if h := sim.truth.health[deployment{x.target, x.tag}]; h != nil {
		h.endBad()
	}
}

// leave notes that a deployment makes way for another.
func (sim *Simulation) leave(x *app) {
	h := sim.truth.health[deployment{x.target, x.tag}]
	if h == nil {
		return
	}
	h.left = sim.now
	if x.incident {
		h.endBad() // that isn't its doing
	}
	if !h.wellSince.IsZero() {
		h.endWell(sim.now)
	}
}

// knownAfter is how long after a degradation an idle process has judged it so: a view's delay, the
// debounce and a failed run added up.
const knownAfter = time.Minute

// noteIdle notes that a process has nothing to do. While a key's runs fail it only waits for the next
// try: what the last one saw is lost with it.
func (sim *Simulation) noteIdle() {
	for _, failing := range sim.failing {
		if failing {
			return
		}
	}
	for _, x := range sim.argocd.apps {
		h := sim.truth.health[deployment{x.target, x.tag}]
		if h != nil && x.health == healthy && !h.wellSince.IsZero() && sim.now.After(h.wellSince) {
			h.wellSeen = true
		}
		if x.health != degraded {
			continue
		}
		if h != nil && !h.badSince.IsZero() && sim.now.Sub(h.badSince) > knownAfter && sim.now.Sub(sim.storeOpened) > knownAfter {
			h.badSeen = true
		}
	}
}

// noteLandings keeps what a move of the branch brought to each target.
func (sim *Simulation) noteLandings(before, after string, byPerson bool) {
	for _, p := range sim.scenario.targets() {
		was, is := sim.tagAt(before, p), sim.tagAt(after, p)
		if was == is {
			continue
		}
		if byPerson {
			sim.noteWithdrawn(p, was, is)
		}
		delete(sim.truth.withdrawn, deployment{p, is})
		sim.truth.landings[p] = append(sim.truth.landings[p], landing{tag: is, at: sim.now, byPerson: byPerson, before: before,
			adopted: byPerson && sim.isNewest(p, is), wasWell: sim.isWell(p) && !sim.hidesHealth()})
		delete(sim.truth.vetoed, deployment{p, is})
		delete(sim.truth.promotes, p)
		if byPerson {
			delete(sim.truth.lifted, p)
			delete(sim.truth.liftedBefore, p)
			sim.report("%s has %s now, by hand", p, is)
		} else {
			sim.report("%s has %s now", p, is)
		}
		sim.pinLanded(p)
	}
	if !byPerson {
		sim.releaseNext(after)
	}
}

// noteWithdrawn records the releases that a person withdraws by putting another one into a target.
// They are all that came since the new one was there or, further on than the source, the one that a
// person's own release replaces.
func (sim *Simulation) noteWithdrawn(p target, was, is string) {
	all := sim.truth.landings[p]
	from := len(all) - 1
	for from >= 0 && all[from].tag != is {
		from--
	}
	if from < 0 && is != firstTag {
		if !sim.scenario.isSource(p.env) {
			sim.truth.withdrawn[deployment{p, was}] = withdrawal{at: sim.now}
		}
		return
	}
	if from >= 0 && from < len(all)-1 && all[from+1].at.Sub(all[from].at) < seenThereAfter {
		for _, l := range all[from+1:] {
			sim.truth.waived[deployment{p, l.tag}] = true
		}
		return // nobody may have seen that it was there
	}
	for _, l := range all[from+1:] {
		if sim.resetting && sim.now.Sub(l.at) < seenThereAfter {
			continue // and Git doesn't tell
		}
		sim.truth.withdrawn[deployment{p, l.tag}] = withdrawal{sim.now, !sim.resetting}
	}
}

// seenThereAfter is how long a release must have been somewhere for a process to have seen it there.
const seenThereAfter = 5 * time.Minute

// noteReset notes that a person reset the branch: what was there before is there again as it was,
// and what came since is taken back.
func (sim *Simulation) noteReset(before, after string) {
	for _, p := range sim.scenario.targets() {
		was, is := sim.tagAt(before, p), sim.tagAt(after, p)
		if was == is {
			continue
		}
		sim.noteWithdrawn(p, was, is)
		delete(sim.truth.withdrawn, deployment{p, is})
		all := sim.truth.landings[p]
		for len(all) > 0 && all[len(all)-1].tag != is {
			all = all[:len(all)-1]
		}
		if len(all) > 0 {
			all[len(all)-1].wasWell = false // a person has to decide
		}
		sim.truth.landings[p] = all
		sim.excuse(p.component, "a person reset the branch")
		sim.report("%s has %s again, by a reset", p, is)
	}
	sim.truth.seen, sim.truth.resetAt = seenBranch{}, sim.now
}

// arrivedBefore is when a release came into the environments right before a target, the last time;
// zero: it didn't.
func (sim *Simulation) arrivedBefore(p target, tag string) (at time.Time) {
	for _, up := range sim.scenario.environment(p.env).after {
		for _, l := range sim.truth.landings[target{p.component, up}] {
			if l.tag == tag && !l.restores && l.at.After(at) {
				at = l.at
			}
		}
	}
	return at
}

// isNewest says that a release came into the environments right before a target, and nothing newer was
// well there.
func (sim *Simulation) isNewest(p target, tag string) bool {
	came := sim.arrivedBefore(p, tag)
	return !came.IsZero() && !slices.ContainsFunc(sim.scenario.environment(p.env).after, func(up string) bool {
		before := target{p.component, up}
		return slices.ContainsFunc(sim.truth.landings[before], func(l landing) bool {
			return l.at.After(came) && sim.wellFor(deployment{before, l.tag}) >= healthyFor
		})
	})
}

// noteUnwatched records, for targets that a person has just merged, that perhaps no process saw
// their health before. These are any of them where the pull request is young or not the service's
// own work. Otherwise they are those that became healthy while no process ran.
func (sim *Simulation) noteUnwatched(commit string, unsure bool) {
	for _, p := range sim.scenario.targets() {
		all := sim.truth.landings[p]
		if len(all) == 0 {
			continue
		}
		last := &all[len(all)-1]
		if !last.at.Equal(sim.now) || last.tag != sim.tagAt(commit, p) {
			continue
		}
		if unsure || !sim.isSeenWell(p) {
			last.wasWell = false
		}
	}
}

// isBack says that what landed last in a target was there before: what somebody else put on a
// revert's branch takes nothing back.
func (sim *Simulation) isBack(p target) bool {
	all := sim.truth.landings[p]
	last := len(all) - 1
	return last >= 0 && (all[last].tag == firstTag || slices.ContainsFunc(all[:last],
		func(l landing) bool { return l.tag == all[last].tag }))
}

// noteRestored notes that what landed last in a target was put back by a revert.
func (sim *Simulation) noteRestored(p target) {
	if all := sim.truth.landings[p]; len(all) > 0 {
		all[len(all)-1].restores = true
	}
}

// noteBystanders notes what a revert of several components takes back although it is well, as another of
// them isn't: until somebody wants it again it stays away.
func (sim *Simulation) noteBystanders(before, after string) {
	var moved []deployment
	for _, p := range sim.scenario.targets() {
		if tag := sim.tagAt(before, p); tag != sim.tagAt(after, p) {
			moved = append(moved, deployment{p, tag})
		}
	}
	isUnhealthy := func(d deployment) bool {
		h := sim.truth.health[d]
		return h != nil && !h.badSince.IsZero()
	}
	if slices.ContainsFunc(moved, isUnhealthy) {
		for _, d := range moved {
			if !isUnhealthy(d) {
				sim.truth.bystanders[d] = true
			}
		}
	}
}

// isBystander says that a component's release was taken back from an environment, or from one before it,
// for another's sake.
func (sim *Simulation) isBystander(component, environment, tag string) bool {
	for _, e := range sim.scenario.environments {
		if sim.truth.bystanders[deployment{target{component, e.name}, tag}] {
			return true
		}
		if e.name == environment {
			break
		}
	}
	return false
}

// broughtBy is the landing that first brought what a target has: the last one, or the one
// whose successors were all taken back.
func (sim *Simulation) broughtBy(p target) landing {
	var inForce []landing
	for _, l := range sim.truth.landings[p] {
		if l.restores && len(inForce) > 0 {
			inForce = inForce[:len(inForce)-1]
		} else {
			inForce = append(inForce, l)
		}
	}
	if len(inForce) == 0 {
		return landing{tag: firstTag}
	}
	return inForce[len(inForce)-1]
}

func (sim *Simulation) lastLanding(p target) landing {
	all := sim.truth.landings[p]
	if len(all) == 0 {
		return landing{tag: firstTag}
	}
	return all[len(all)-1]
}
