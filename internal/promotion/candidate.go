package promotion

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/wording"
)

// candidate is a release that all `after` environments of an environment have
// verified.
type candidate struct {
	Release string
	Name    string
	Rank    int64 // newer is larger
	Since   time.Time
	Commit  string
	// RevertedFrom is an environment that verified it only before it was reverted from there.
	RevertedFrom string
}

// canMoveOnward says whether an arrival can carry a release onward: a source's by whomever,
// elsewhere only a promotion's. A release that a revert put back is old and keeps the rank of its
// first arrival. One that was there before the pipeline stays where it is. Both move only at a
// command; with adopt: converge a source environment's release from before moves too. Nothing
// upstream has verified a person's own change in the middle of the pipeline.
func (ev *evaluator) canMoveOnward(u *Env, a *Arrival, requested bool) bool {
	switch a.By {
	case ByPromotion, ByHand:
		return true
	case ByPerson:
		return u.Source()
	case ByBaseline:
		return requested || ev.adopts(u)
	case ByRevert:
		return requested
	}
	return false
}

// adopts says that a release that an environment has had since before the pipeline moves on by
// itself. That holds only where releases arrive, because nothing upstream has verified one further
// on.
func (ev *evaluator) adopts(u *Env) bool {
	return ev.spec.Adopt == pipeline.AdoptConverge && u.Source()
}

// candidatesKey names the candidates of an environment; requested as in canMoveOnward.
type candidatesKey struct {
	env       string
	requested bool
}

// listCandidates are newest first; requested as in canMoveOnward. Nobody changes what it returns.
func (ev *evaluator) listCandidates(e *Env, requested bool) []candidate {
	key := candidatesKey{e.Name, requested}
	known, ok := ev.candidates[key]
	if !ok {
		known = ev.findCandidates(e, requested)
		ev.candidates[key] = known
	}
	return known
}

func (ev *evaluator) findCandidates(e *Env, requested bool) []candidate {
	var all map[string]candidate
	for _, name := range e.Spec.After {
		u := ev.facts.findEnv(name)
		if u == nil {
			return nil
		}
		here := map[string]candidate{}
		for i := range u.History {
			a := &u.History[i]
			if !ev.canMoveOnward(u, a, requested) || !a.IsVerified() || ev.with.blockedBy[arrivalKey(u.Name, a.Commit)] != "" {
				continue
			}
			if _, newer := here[a.Release]; !newer {
				c := candidate{Release: a.Release, Name: a.Name, Rank: a.Seq, Since: a.VerifiedAt, Commit: a.Commit}
				if a.By == ByRevert {
					c.Rank = u.arrivalRank(a.Release)
				}
				if a.By == ByBaseline && a == u.currentArrival() {
					// what has differed for longest comes first
					c.Since = slices.MinFunc([]time.Time{c.Since, u.Landed.Value.At}, time.Time.Compare)
				}
				if u.isReverted(i) {
					c.RevertedFrom = u.Name
				}
				here[a.Release] = c
			}
		}
		if all == nil {
			all = here
			continue
		}
		for id, c := range all {
			h, ok := here[id]
			if !ok {
				delete(all, id)
				continue
			}
			c.Rank = max(c.Rank, h.Rank)
			c.RevertedFrom = cmp.Or(c.RevertedFrom, h.RevertedFrom)
			c.Since = latest(c.Since, h.Since)
			all[id] = c
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.Rank, a.Rank), cmp.Compare(a.Release, b.Release))
	})
}

// VerifiedInAll says that the history shows a release verified in all of the
// environments named in after. It may have been degraded since, and a history
// that was lost proves nothing.
func VerifiedInAll(envs []Env, after []string, release string) bool {
	for _, name := range after {
		i := slices.IndexFunc(envs, func(e Env) bool { return e.Name == name })
		if i < 0 || !slices.ContainsFunc(envs[i].History, func(a Arrival) bool { return a.Release == release && !a.VerifiedAt.IsZero() }) {
			return false
		}
	}
	return len(after) > 0
}

// releaseName is what people call a release, as far as any environment has seen it.
func (ev *evaluator) releaseName(release string) string {
	for _, e := range ev.facts.Envs {
		for _, a := range e.History {
			if a.Release == release {
				return a.Name
			}
		}
	}
	return wording.Short(release)
}

// releaseRank is how new a release is for e: its latest arrival in an `after`
// environment; 0 when none of them has seen it.
func (ev *evaluator) releaseRank(e *Env, release string) int64 {
	var r int64
	for _, name := range e.Spec.After {
		if u := ev.facts.findEnv(name); u != nil {
			r = max(r, u.arrivalRank(release))
		}
	}
	return r
}

// arrivalRank is the place in line of a release's latest arrival in e that no revert was; 0 when the
// record has none.
func (e *Env) arrivalRank(release string) int64 {
	var r int64
	for i := range e.History {
		if a := &e.History[i]; a.Release == release && a.By != ByRevert {
			r = max(r, a.Seq)
		}
	}
	return r
}

// pickCandidate chooses the release that should move into e; nil with the reasons in st, and with
// the veto where one is all that stands in the way. A forced one was given as a command. Then an
// earlier revert from e itself or veto doesn't count, and neither does the release's age where a
// person's own change is replaced.
func (ev *evaluator) pickCandidate(e *Env, st *EnvState, forced *PendingCommand) (*candidate, *PastPull) {
	now := e.Release.Value.ID
	cands := ev.listCandidates(e, forced != nil)
	if len(cands) == 0 {
		ev.explainNoCandidate(e, st)
		return nil, nil
	}
	floor := ev.releaseRank(e, now)
	takeover := forced != nil && e.Landed.Value.By == ByPerson
	for i := range cands {
		c := &cands[i]
		if c.Release == now || floor > 0 && c.Rank <= floor && !takeover {
			return nil, nil
		}
		why, veto := ev.reasonNotToCome(e, c, forced)
		if why.Text == "" {
			return c, nil
		}
		st.Why = append(st.Why, why)
		if veto != nil {
			st.Promotion = Closed
			st.Candidate, st.CandidateName = c.Release, c.Name
			return nil, veto
		}
	}
	return nil, nil
}

// reasonNotToCome says why a release that is newer than what e carries may not come there, and the
// veto where that is why; no text: it may. It is asked before a promotion is opened and before it is
// merged. forced as for pickCandidate.
func (ev *evaluator) reasonNotToCome(e *Env, c *candidate, forced *PendingCommand) (Reason, *PastPull) {
	if why := ev.reasonBarredUpstream(e, c.Release); why != "" {
		return Reason{Code: cause.Quarantined, Text: fmt.Sprintf("%s: %s", c.Name, why)}, nil
	}
	if why := ev.reasonWithdrawn(e, c.Release, c.Name); why != "" {
		return Reason{Code: cause.Withdrawn, Text: why}, nil
	}
	if c.RevertedFrom != "" {
		return Reason{Code: cause.Unverified, Text: fmt.Sprintf("%s has not verified %s again since it was reverted from there", c.RevertedFrom,
			c.Name)}, nil
	}
	why, since := ev.quarantineReason(e, c.Release)
	v := findVeto(e, c.Release)
	if forced != nil {
		overridesQuarantine := why == "" || forced.At.After(since)
		overridesVeto := v == nil || forced.At.After(v.At)
		if overridesQuarantine && overridesVeto {
			return Reason{}, nil
		}
	}
	if why != "" {
		return Reason{Code: cause.Quarantined, Text: fmt.Sprintf("%s %s; /liftlock promote %s brings it back", c.Name, why, e.Name)}, nil
	}
	if v != nil {
		return Reason{Code: cause.Closed, Text: fmt.Sprintf("#%d with %s was closed by a person; it stays closed until /liftlock retry or a "+
			"new release", v.Number, c.Name)}, v
	}
	return Reason{}, nil
}

// explainNoCandidate tells what the environment waits for when nothing can come.
func (ev *evaluator) explainNoCandidate(e *Env, st *EnvState) {
	for _, name := range e.Spec.After {
		u := ev.facts.findEnv(name)
		switch {
		case u != nil && ev.isNotIn(u):
			st.addReason(cause.Upstream, fmt.Sprintf("%s is not in %s, so nothing comes from there", ev.facts.Unit.Component, name))
			continue
		case u == nil || !u.Release.OK || !u.Landed.OK:
			st.addReason(cause.Upstream, fmt.Sprintf("%s can't be read", name))
			continue
		}
		if u.Release.Value.ID == e.Release.Value.ID {
			continue
		}
		l, here := u.Landed.Value, u.currentArrival()
		blocked := ev.with.blockedBy[arrivalKey(name, l.Commit)]
		switch {
		case blocked != "" && here != nil && here.IsVerified():
			st.addReason(cause.BatchMembers, fmt.Sprintf("%s in %s goes on when all that came with it do: %s", u.Release.Value, name, blocked))
		case l.By == ByBaseline && ev.adopts(u):
			st.addReason(cause.Unverified, fmt.Sprintf("%s has not verified %s, which it carries since before the pipeline came in: %s", name,
				u.Release.Value, ev.rollups[name].reason))
		case l.By == ByBaseline && ev.spec.Adopt == pipeline.AdoptConverge:
			st.addReason(cause.Baseline, fmt.Sprintf("%s carries %s since before the pipeline came in, and no environment before it verified "+
				"that; what comes through %s moves, or /liftlock promote %s", name, u.Release.Value, strings.Join(u.Spec.After,
				", "), e.Name))
		case l.By == ByBaseline:
			st.addReason(cause.Baseline, fmt.Sprintf("%s carries %s since before the pipeline came in (adopt: baseline); the next release "+
				"moves, or /liftlock promote %s", name, u.Release.Value, e.Name))
		case u.isChangedByHand():
			st.addReason(cause.Diverged, fmt.Sprintf("%s was changed by hand to %s; that is not carried on", name, u.Release.Value))
		case l.By == ByRevert:
			st.addReason(cause.Reverted, fmt.Sprintf("%s is back at %s after a revert", name, u.Release.Value))
		case here != nil && here.IsVerified():
			st.addReason(cause.Unverified, fmt.Sprintf("%s has verified %s; it moves when all of %s have", name, u.Release.Value,
				strings.Join(e.Spec.After, ", ")))
		default:
			r := ev.rollups[name]
			st.addReason(cause.Unverified, fmt.Sprintf("%s has not verified %s: %s", name, u.Release.Value, r.reason))
		}
	}
}

// reasonBarredUpstream says why a release may not go past an environment before e.
func (ev *evaluator) reasonBarredUpstream(e *Env, release string) string {
	for _, u := range ev.listUpstream(e) {
		if why, _ := ev.quarantineReason(u, release); why != "" {
			return why
		}
		for i := range u.History {
			a := &u.History[i]
			if a.Release != release {
				continue
			}
			if a.IsDegraded() {
				return fmt.Sprintf("degraded in %s at %s", u.Name, a.DegradedAt.UTC().Format(time.RFC3339))
			}
			break // the newest arrival speaks
		}
		if ev.rollups[u.Name].state == Degraded && u.Release.OK && u.Release.Value.ID == release {
			return "is degraded in " + u.Name // not written down: nobody needed to know how it is there
		}
	}
	return ""
}

// quarantineReason says why a release may not come (back) to e nor pass it, and since when, where
// that is known. A revert of it is open or was merged, and no later promotion of it was.
func (ev *evaluator) quarantineReason(e *Env, release string) (why string, since time.Time) {
	if e.Revert != nil && SameRelease(release, wording.Short(e.Revert.Release)) {
		return fmt.Sprintf("is being reverted from %s by #%d", e.Name, e.Revert.Number), e.Revert.CreatedAt
	}
	if r := ev.reverting[e.Name]; r != "" && r == release {
		return "is being reverted from " + e.Name, ev.facts.Now
	}
	var lifted *PastPull // the last promotion that brought it
	for i := range e.PastPulls {
		if p := &e.PastPulls[i]; p.lifts(release) && (lifted == nil || p.isAfter(lifted)) {
			lifted = p
		}
	}
	older := false
	for i := range e.PastPulls {
		p := &e.PastPulls[i]
		if !p.Revert || !p.Merged && !p.OnOtherBranch || !SameRelease(release, wording.Short(p.Release)) {
			continue
		}
		switch {
		case lifted != nil && !p.isAfter(lifted):
		case p.OnOtherBranch:
			return fmt.Sprintf("was to be reverted from %s by #%d, which was merged into another branch", e.Name, p.Number), p.At
		default:
			return fmt.Sprintf("was reverted from %s by #%d", e.Name, p.Number), p.At
		}
		older = true
	}
	// A revert's commit outlives its pull request's record. One that was answered by
	// a later promotion is named here only if that lost its trailers in a merge by hand.
	for _, short := range e.RevertedReleases {
		if SameRelease(release, short) && !older {
			return fmt.Sprintf("was reverted from %s by a commit", e.Name), time.Time{}
		}
	}
	return "", time.Time{}
}

// lifts says that a promotion brought a release by Liftlock's own merge, or at the word of somebody who
// may: that ends what kept the release out before.
func (p *PastPull) lifts(release string) bool {
	return !p.Revert && p.Merged && !p.Unrequested && p.Release == release
}

// isAfter says that a pull request was merged or closed after another. Some of the times are a
// forge's, to the millisecond, and some a commit's, to the second. Within one second the numbers
// decide, as a revert is opened after the merge that it undoes.
func (p *PastPull) isAfter(o *PastPull) bool {
	return cmp.Or(p.At.Truncate(time.Second).Compare(o.At.Truncate(time.Second)), p.Number-o.Number) > 0
}

// findVeto finds the pull request of ours that a person closed with this release and that no later
// merged promotion of the same release has overruled. One whose release is unknown stands for every
// release until any other was merged.
func findVeto(e *Env, release string) *PastPull {
	merged := false
	for i := range e.PastPulls {
		p := &e.PastPulls[i]
		switch {
		case p.Revert || p.Superseded && !p.Merged:
		case p.lifts(release):
			return nil
		case p.Merged:
			merged = true
		case SameRelease(release, p.Release), p.Release == "" && !merged:
			return p
		}
	}
	return nil
}
