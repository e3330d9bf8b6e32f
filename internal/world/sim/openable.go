package sim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
)

// judgeOpenable judges whether a merge's pull request to a target could have been opened then. A
// release that a person withdrew, here or before, or closed stays away until a person who may asks
// for it again, however many have come since. Nothing older comes over the release that is there,
// and the last one that came has come to its end.
func (sim *Simulation) judgeOpenable(known insight, name string, p target, tag, was string, allowed bool) {
	last := sim.lastLanding(p)
	age := sim.now.Sub(last.at)
	isUnsettled := last.before != "" && !last.byPerson && age < healthyFor-time.Second
	if isUnsettled && !sim.isUnhealthy(p) && known.late == 0 {
		sim.broke(ruleUnsettled, "%s brought %s to %s %v after %s came there", name, tag, p, age, was)
	}
	if allowed {
		return
	}
	for _, env := range append(sim.scenario.upstream(p.env), p.env) {
		w, ok := sim.truth.withdrawn[deployment{target{p.component, env}, tag}]
		if env == p.env && sim.arrivedBefore(p, tag).After(w.at) {
			continue // it arrived again before, and is new again: only what comes after here waits for it to be here
		}
		if ok && known.lookedAt.After(w.at) {
			sim.broke(ruleWithdrawn, "%s brought %s to %s, which a person took back from %s at %v", name, tag, p, env, w.at.Sub(sim.began))
		}
	}
	if number, vetoed := sim.truth.vetoed[deployment{p, tag}]; vetoed && !sim.truth.superseded[number] {
		closed, err := sim.forge.As(reviewer).PullRequest(sim.ctx, sim.repo, number)
		sim.must(err)
		if err == nil && known.began.After(closed.ClosedAt.Add(time.Second)) {
			sim.broke(ruleVeto, "%s brought %s to %s, which was closed with #%d", name, tag, p, number)
		}
	}
	if sim.truth.resetAt.After(known.lookedAt) {
		return // the order of arrivals isn't the same as at the look
	}
	if there := sim.arrivedBefore(p, was); !last.byPerson && known.lookedAt.After(there) && sim.arrivedBefore(p, tag).Before(there) {
		sim.broke(ruleOlder, "%s brought %s to %s over %s, which came before it later, at %v", name, tag, p, was, there.Sub(sim.began))
	}
}

// noteWanted notes that a person has merged a release into a target: that it was taken back before
// there may keep it no longer from going on.
func (sim *Simulation) noteWanted(p target, tag string) {
	for _, env := range sim.scenario.upstream(p.env) {
		d := deployment{target{p.component, env}, tag}
		if _, withdrawn := sim.truth.withdrawn[d]; withdrawn {
			sim.truth.waived[d] = true
		}
		delete(sim.truth.withdrawn, d)
	}
}

// isUnhealthy says that a target is degraded right now.
func (sim *Simulation) isUnhealthy(p target) bool {
	for _, x := range sim.argocd.apps {
		if x.target == p {
			return x.health == degraded || x.incident
		}
	}
	return false
}

// isResetAway says that a commit isn't on the branch any more.
func (sim *Simulation) isResetAway(commit string) bool {
	return commit != sim.head() && !sim.isBefore(commit, sim.head())
}

// noteClaim notes that a run has its key.
func (sim *Simulation) noteClaim(t *task) {
	if t != nil {
		t.leased, t.skew = sim.now, t.process.skew
	}
}

// judgeLease judges something that a run changes where others see it: its lease must not be over by
// then. A clock that was set back meanwhile doesn't tell.
func (sim *Simulation) judgeLease(t *task, does string) {
	if t == nil || t.dead || t.leased.IsZero() || t.skew != t.process.skew {
		return
	}
	if since := sim.now.Sub(t.leased); since > store.DefaultLease {
		sim.broke(ruleLease, "%s %s %v after it had its key", t.process.name, does, since)
	}
}

// judgeClaim judges what a run has just stored: no other run may have its key by then.
func (sim *Simulation) judgeClaim(ctx context.Context, transaction string) {
	c, ok := store.ClaimOf(ctx)
	if newest := sim.leased[c.Key]; ok && c.Gen < newest {
		sim.broke(ruleClaim, "%s stored %q of %s as its run %d, and %d had begun", sim.nameOf(taskOf(ctx)), transaction, c.Key,
			c.Gen, newest)
	}
}

// noteRunning notes which run of its key is at something.
func (sim *Simulation) noteRunning(ctx context.Context) {
	c, ok := store.ClaimOf(ctx)
	if !ok {
		return
	}
	sim.leased[c.Key] = max(sim.leased[c.Key], c.Gen)
	if t := taskOf(ctx); t != nil {
		t.key = c.Key
	}
}

// saidHold is what somebody said of a hold.
type saidHold struct {
	pull int
	text string
	at   time.Time
}

// answeredIn is how long what somebody says of a hold may go unanswered while nothing goes wrong.
const answeredIn = 90 * time.Second

// noteSaid keeps what people say to the service, if the forge reports it at once.
func (sim *Simulation) noteSaid(comment int64, login string, number int, text string) {
	switch isCommand := strings.HasPrefix(text, "/liftlock "); {
	case !isCommand:
	case login == stranger: // who may be put off
		if text != "/liftlock status" {
			sim.truth.strangers[comment] = text
		}
	case sim.muted.Before(sim.now):
		sim.truth.said[comment] = saidHold{number, text, sim.now}
	}
}

// judgeAnswers judges whether people's commands about holds were taken.
func (sim *Simulation) judgeAnswers() {
	for _, comment := range slices.Sorted(maps.Keys(sim.truth.said)) {
		s := sim.truth.said[comment]
		if sim.now.Sub(s.at) < answeredIn || !sim.allIdle() {
			continue
		}
		delete(sim.truth.said, comment)
		pr, err := sim.forge.As(reviewer).PullRequest(sim.ctx, sim.repo, s.pull)
		sim.must(err)
		if err == nil && pr.State == forge.Open && !sim.wasTroubledSince(s.at.Add(-answeredIn)) &&
			!sim.failed.After(s.at.Add(-answeredIn)) {
			sim.broke(ruleUnanswered, "%q was said on #%d at %v, and nothing answers", s.text, s.pull, s.at.Sub(sim.began))
		}
	}
}
