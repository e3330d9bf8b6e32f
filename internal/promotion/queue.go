package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/policies"
)

// LeaveQueue takes an open pull request out of the forge's merge queue, in which it would be
// merged later than it was judged.
type LeaveQueue struct {
	Environment string
	Pull        int
	Revert      bool
	Why         string
	Members     []Member
}

func (l LeaveQueue) environment() string { return l.Environment }

// Subject is the pull request and whom it moves.
func (l LeaveQueue) Subject() (int, []Member) { return l.Pull, l.Members }

// Describe says it in a few words.
func (l LeaveQueue) Describe() string {
	return fmt.Sprintf("take #%d out of the merge queue: %s", l.Pull, l.Why)
}

// RejoinQueue lets an open pull request that the forge dropped from its merge queue join again.
type RejoinQueue struct {
	Environment string
	Pull        int
}

func (r RejoinQueue) environment() string { return r.Environment }

// Describe says it in a few words.
func (r RejoinQueue) Describe() string {
	return fmt.Sprintf("let #%d join the merge queue again", r.Pull)
}

// isDropped says that Liftlock had this head join the forge's merge queue, didn't take it out, and
// it isn't in it. Joining by itself again could fail in the same way for ever.
func (p *Pull) isDropped() bool { return !p.JoinedQueueAt.IsZero() && !p.Queued }

// findDropped is the open pull request of an environment that the forge dropped from its merge
// queue, the revert first; nil where none is.
func (e *Env) findDropped() *Pull {
	for _, p := range []*Pull{e.Revert, e.Open} {
		if p != nil && p.isDropped() {
			return p
		}
	}
	return nil
}

// queueRecheckDelay is how often at the latest a pull request in the forge's queue is read: no
// forge reports all changes there.
const queueRecheckDelay = time.Minute

// queuedPull is an open pull request in the forge's queue, as the first component that knows
// of it does.
type queuedPull struct {
	*Pull
	environment string
	revert      bool
	members     []Member
	components  []int // who knows of it
}

// planQueue keeps in the forge's merge queue what would be merged now, and nothing else: what is in
// it lands without being judged again. A pull request that isn't merged any more, or is changed or
// closed, leaves it first. A head that isn't ours is left alone, in the queue as anywhere, unless a
// person holds it. That person wants it not to land, whoever composed it.
func (d *Decision) planQueue(f *Facts) {
	for _, q := range listQueued(f) {
		i := slices.IndexFunc(d.Actions, func(a Action) bool {
			p, is := a.(PullAction)
			return is && isAbout(p, q.Pull)
		})
		if i >= 0 {
			if _, merges := d.Actions[i].(Merge); merges {
				d.Actions = slices.Delete(d.Actions, i, i+1)
				d.stayQueued(f, q)
				continue
			}
		}
		leave := LeaveQueue{Environment: q.environment, Pull: q.Number, Revert: q.revert, Members: q.members,
			Why: "it may not be merged now"}
		switch {
		case i < 0 && q.HeadState == HeadModified:
			i = len(d.Actions)
			leave.Why = "it is on hold"
		case i < 0:
			i = len(d.Actions)
			leave.Why = cmp.Or(d.firstQueueObstacle(q), leave.Why)
		default:
			leave.Why = "it is changed or closed"
		}
		d.Actions = slices.Insert(d.Actions, i, Action(leave))
	}
}

// listQueued lists what is in the forge's queue and ours to take out of it.
func listQueued(f *Facts) []*queuedPull {
	var out []*queuedPull
	for i := range f.Components {
		c := &f.Components[i]
		if c.Pipeline == nil || c.Pipeline.Spec.Mode == pipeline.ModeDryRun {
			continue
		}
		for k := range c.Envs {
			e := &c.Envs[k]
			for _, p := range []*Pull{e.Open, e.Revert, e.WrongKind, e.BatchPull} {
				if p == nil || !p.Queued || p.HeadState == HeadModified && !c.isHeld(e, p) {
					continue
				}
				at := slices.IndexFunc(out, func(q *queuedPull) bool { return q.Number == p.Number })
				if at < 0 {
					at = len(out)
					members := p.Members
					if len(members) == 0 {
						members = []Member{{Component: c.Unit.Component, Release: p.Release, Name: p.Name}}
					}
					out = append(out, &queuedPull{Pull: p, environment: e.Name, revert: p == e.Revert, members: members})
				}
				out[at].components = append(out[at].components, i)
			}
		}
	}
	return out
}

// isHeld says that a person holds an open pull request of an environment, or all that is about it.
func (c *ComponentFacts) isHeld(e *Env, p *Pull) bool {
	return p.Held || slices.ContainsFunc(c.Holds.Value, func(h Hold) bool {
		return !h.IsOver(c.Now) && (h.Scope != "environment" || h.Environment == e.Name) && (p != e.Revert || h.Reverts)
	})
}

// stayQueued says that a pull request is in the queue, and when it is read again.
func (d *Decision) stayQueued(f *Facts, q *queuedPull) {
	d.Queued = append(d.Queued, q.Number)
	for _, i := range q.components {
		at := f.Components[i].Now.Add(queueRecheckDelay)
		c := &d.Components[i]
		c.Next, d.Next = earliest(c.Next, at), earliest(d.Next, at)
		c.Env(q.environment).addReason(cause.Queued, fmt.Sprintf("#%d is in the forge's merge queue and lands in its turn", q.Number))
	}
}

// KeepsInQueue says that a pull request is in the forge's merge queue and would be merged now. One
// that nobody judged, such as of a pipeline that is only observed, isn't kept.
func (d *Decision) KeepsInQueue(pull int) bool { return slices.Contains(d.Queued, pull) }

// firstQueueObstacle is the first thing that keeps a pull request from being merged; empty
// where the decision names none.
func (d *Decision) firstQueueObstacle(q *queuedPull) string {
	for _, i := range q.components {
		st := d.Components[i].Env(q.environment)
		gates := st.Gates
		if q.revert {
			gates = st.RevertGates
		}
		for _, g := range gates {
			if g.Outcome != policies.Pass {
				return string(g.Gate) + ": " + g.Reason
			}
		}
		if len(st.Why) > 0 {
			return st.Why[0].Text
		}
	}
	return ""
}
