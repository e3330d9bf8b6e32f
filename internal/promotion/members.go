package promotion

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/wording"
)

// BatchName stands where a component's name does in what several components of
// a pipeline share: branches, trailers and wake keys. No component of a pipeline
// with batch: environment may have it.
const BatchName = "batch"

// Member is one component in a pull request that moves several.
type Member struct {
	Component string `json:"component"`
	Release   string `json:"release"` // the identity that moves in; of a revert: the one that is taken back
	Name      string `json:"name,omitempty"`
	CommandID int64  `json:"ask,omitempty"` // the command that its part fulfils, 0 without one
}

// String is the component with its release, for messages.
func (p Member) String() string {
	return p.Component + " " + cmp.Or(p.Name, wording.Short(p.Release))
}

// BatchID is the identity of what moves together: sha256, 64 hex digits, over
// the components with their releases, sorted. "" for nobody.
func BatchID(members []Member) string {
	if len(members) == 0 {
		return ""
	}
	lines := make([]string, 0, len(members))
	for _, p := range members {
		lines = append(lines, p.Component+" "+p.Release+"\n")
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(sum[:])
}

// FindMember finds a component among passengers; false when it isn't one of them.
func FindMember(members []Member, component string) (Member, bool) {
	i := slices.IndexFunc(members, func(p Member) bool { return p.Component == component })
	if i < 0 {
		return Member{}, false
	}
	return members[i], true
}

// closeWrongKind closes an open promotion from when spec.batch said otherwise: nothing is
// carried by two pull requests at once. A held one is left to who holds it.
func (j *evaluator) closeWrongKind(e *Env, st *EnvState) {
	p := e.WrongKind
	if p.Held {
		st.Promotion = Held
		st.addReason("hold", fmt.Sprintf("#%d from before spec.batch became %s has the label liftlock/hold; nothing else opens until it is lifted or #%d is closed", p.Number, j.spec.Batch, p.Number))
		return
	}
	if p.HeadModified != "" {
		st.addReason("unsound", fmt.Sprintf("%s; spec.batch is %s by now, and nothing else opens until #%d is closed", p.HeadModified, j.spec.Batch, p.Number))
		return
	}
	st.addReason("batch", fmt.Sprintf("#%d is closed first: spec.batch is %s by now", p.Number, j.spec.Batch))
	j.addAction(Close{Environment: e.Name, Pull: p.Number, Why: fmt.Sprintf("spec.batch is %s by now: what is ready opens anew that way", j.spec.Batch)})
}

// reasonNotToJoin says why a component that is ready can't join the open pull request
// of the others; "" when it can, or when none is open.
func reasonNotToJoin(e *Env, forced *PendingCommand) string {
	t := e.BatchPull
	switch {
	case t == nil:
	case t.HeadModified != "":
		return t.HeadModified
	case forced != nil:
	case isApproved(t):
		return fmt.Sprintf("it waits its turn behind #%d, which is approved without it", t.Number)
	case t.Held:
		return fmt.Sprintf("it waits its turn behind #%d, which is on hold", t.Number)
	}
	return ""
}

// reasonToLeave says why a component leaves the pull request in which it travels with
// others: it is itself on hold, and the others needn't wait for it. What is
// approved or held stays what it is, and is kept by its gates.
func (j *evaluator) reasonToLeave(e *Env) string {
	p := e.Open
	if len(p.Members) == 0 || p.Held || isApproved(p) || j.facts.HoldsErr != "" {
		return ""
	}
	why := ""
	for _, h := range j.facts.Holds {
		switch h.Scope {
		case "component":
			why = fmt.Sprintf("it is on hold by %s since %s", orSomebody(h.By), h.At.UTC().Format(time.RFC3339))
		case "pipeline":
			return ""
		case "environment":
			if h.Environment == e.Name {
				return ""
			}
		}
	}
	return why
}

// unverifiedReason says who of those that came by the same pull request is not verified
// where an arrival is, so that it doesn't move on without them; "" when all are.
// One that moved on since counts as what took its place there.
func unverifiedReason(member *Facts, e *Env, a *Arrival) string {
	name := member.Unit.Component + " " + cmp.Or(a.Name, wording.Short(a.Release))
	if !e.Release.OK || !e.Landed.OK {
		return fmt.Sprintf("%s came with it, and %s can't be read now: %s", name, e.Name, cmp.Or(e.Release.Err, e.Landed.Err, "not read yet"))
	}
	r, l := rollUpTargets(e), e.Landed.Value
	if l.Commit == a.Commit {
		if isVerified(a) && r.state != Degraded {
			return ""
		}
		return fmt.Sprintf("%s came with it and is not verified in %s: %s", name, e.Name, r.reason)
	}
	if isVerified(a) || l.By != ByPromotion {
		return ""
	}
	if now := e.currentArrival(); now == nil || !isVerified(now) || r.state == Degraded {
		return fmt.Sprintf("%s came with it, and %s, which took its place in %s, is not verified: %s", name, e.Release.Value, e.Name, r.reason)
	}
	return ""
}
