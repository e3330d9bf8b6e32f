package promotion

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A release is withdrawn from an environment when the release before it comes back in its place, or
// when its commit goes from the branch. It is too when a person replaces it by hand where
// promotions bring releases. It then goes no further, from there or from later environments, until
// it arrives there again, however many others arrive meanwhile.

// ListWithdrawn lists which of an environment's arrivals its newest one takes back for good, by
// their place in its history.
func (e *Env) ListWithdrawn() []int {
	if len(e.History) < 2 {
		return nil
	}
	var out []int
	now := e.History[0].Release
	if before := slices.IndexFunc(e.History[1:], func(a Arrival) bool { return a.Release == now }); before > 0 {
		for i := 1; i <= before; i++ {
			out = append(out, i)
		}
	}
	// A person's own release may turn out to be the one that would have been promoted, as long as
	// it is there.
	if i := e.replacedByHand(1); i > 0 && !slices.Contains(out, i) {
		out = append(out, i)
	}
	return slices.DeleteFunc(out, func(i int) bool { return e.History[i].Release == now || !e.History[i].WithdrawnAt.IsZero() })
}

// replacedByHand is the place of the arrival that the one at a place replaced, where a person did
// that in an environment to which promotions bring releases. It is 0 where it wasn't so.
func (e *Env) replacedByHand(by int) int {
	if e.Source() || by+1 >= len(e.History) || e.History[by].By != ByPerson || e.History[by].Release == e.History[by+1].Release {
		return 0
	}
	return by + 1
}

// findArrival is the newest arrival of a release in the environment; -1: there is none.
func (e *Env) findArrival(release string) int {
	return slices.IndexFunc(e.History, func(a Arrival) bool { return a.Release == release })
}

// withdrawnAt is when a release was taken back from the environment, as its newest arrival there
// says; zero: it wasn't, as far as is known.
func (e *Env) withdrawnAt(release string) time.Time {
	i := e.findArrival(release)
	if i < 0 {
		return time.Time{}
	}
	if at := e.History[i].WithdrawnAt; !at.IsZero() {
		return at
	}
	if i > 0 && e.currentArrival() == &e.History[0] && e.replacedByHand(0) == i {
		return e.History[0].At
	}
	return time.Time{}
}

// reasonWithdrawn says why people's changes in an environment before e keep a release from going
// on; "" when nothing does. Environments before e are known to have had the release, if only
// because Liftlock put it on its way. Where one has no record of it any more, its present release
// tells.
func (ev *evaluator) reasonWithdrawn(e *Env, release, name string) string {
	for _, u := range ev.listUpstream(e) {
		if at := u.withdrawnAt(release); !at.IsZero() {
			return fmt.Sprintf("%s was taken back from %s at %s; it goes on once it is there again and verified", name, u.Name,
				at.UTC().Format(time.RFC3339))
		}
		if !u.Release.OK || !u.Landed.OK || u.Release.Value.ID == release || u.findArrival(release) >= 0 {
			continue
		}
		switch {
		case !u.Source() && u.Landed.Value.By == ByPerson:
			return fmt.Sprintf("%s was changed by hand to %s, and whether %s was taken back there is not known any more", u.Name,
				u.Release.Value, name)
		case slices.Contains(e.Spec.After, u.Name) && u.Release.Value.ID == e.Release.Value.ID:
			return fmt.Sprintf("%s went back to %s, which %s carries", u.Name, u.Release.Value, e.Name)
		}
	}
	return ""
}

// reasonOutdated says why a release is no newer for e than what is there; "" when it is. A release
// of which the environments before e have no record any more is older than one of which they have
// one.
func (ev *evaluator) reasonOutdated(e *Env, release, name string) string {
	there := ev.releaseRank(e, e.Release.Value.ID)
	if there == 0 || ev.releaseRank(e, release) > there {
		return ""
	}
	if slices.ContainsFunc(e.Spec.After, func(name string) bool {
		u := ev.facts.findEnv(name)
		return u != nil && u.Release.OK && u.Release.Value.ID == e.Release.Value.ID
	}) {
		return fmt.Sprintf("%s went back to %s, which %s carries", strings.Join(e.Spec.After, ", "), e.Release.Value, e.Name)
	}
	return fmt.Sprintf("%s carries %s, which came to %s later than %s", e.Name, e.Release.Value, strings.Join(e.Spec.After, ", "), name)
}

// adoptByHand takes a person's own change of e for a promotion's, where it is the release that
// would be promoted there now. That is the newest release that all environments before have
// verified, with nothing against it, and no older than any that was there. Then nothing has
// diverged.
func (ev *evaluator) adoptByHand(e *Env) {
	isReadable := e.Release.OK && e.Landed.OK
	if !isReadable || !e.isChangedByHand() || e.Revert != nil {
		return
	}
	a, all := e.currentArrival(), ev.listCandidates(e, false)
	if a == nil || len(all) == 0 || all[0].Release != a.Release {
		return
	}
	if ev.facts.PipelineErr != "" || len(ev.facts.Problems) > 0 {
		return
	}
	if why, _ := ev.reasonNotToCome(e, &all[0], nil); why.Text != "" {
		return
	}
	rank := ev.releaseRank(e, a.Release)
	if slices.ContainsFunc(e.History, func(was Arrival) bool { return ev.releaseRank(e, was.Release) > rank }) {
		return // what was newer may be well again in a moment
	}
	a.By, e.Landed.Value.By = ByHand, ByHand
	ev.addAction(Record{Environment: e.Name, Release: a.Release, Commit: a.Commit, ByHand: true})
}

// KeepPersonsWord keeps a person's own change of an environment theirs where a reset of the branch
// left the same release there by an older commit, which landed says. at is the place in the history of
// that commit. The release that they withdrew with it isn't wanted again.
func (e *Env) KeepPersonsWord(at int, landed *Landed) {
	newest := &e.History[0]
	if newest.Release != e.Release.Value.ID || newest.By != ByPerson {
		return
	}
	landed.By, landed.Author, landed.Pull = newest.By, newest.Author, 0
	if at < len(e.History) && e.History[at].By == ByHand {
		landed.By = ByHand
	}
}
