package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/cache/lock"
	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// settledAfter is how long a state must have lasted for the service to report it, while nothing
// goes wrong: a verification, the watch after it, and a sweep.
const settledAfter = 45 * time.Minute

// judgeShown judges, when everything has come to rest, what the service shows people against what is.
func (sim *Simulation) judgeShown() {
	open := sim.ours()
	for _, c := range sim.scenario.components {
		view, err := sim.viewOf(c)
		if err != nil || view == nil {
			sim.broke(ruleShown, "nothing is shown of %s: %v", c, err)
			return
		}
		for i := range view.Decision.Envs {
			st := &view.Decision.Envs[i]
			p := target{c, st.Environment}
			sim.judgeShownState(p, st)
			sim.judgeShownPull(p, st, open)
			sim.judgeShownDeployment(p, st)
		}
	}
	sim.judgeBranches()
}

// judgeText judges that a pull request says what it moves.
func (sim *Simulation) judgeText(pr *forge.PullRequest, ref promotion.BranchRef) {
	if sim.truth.resetAt.After(insightOf(sim.current).lookedAt) {
		return // what it is compared with isn't what it was composed on
	}
	for _, c := range sim.movedBy(pr.Number, ref.Environment) {
		p := target{c, ref.Environment}
		base, _, err := sim.remote.MergeBase(sim.ctx, sim.head(), pr.Head)
		sim.must(err)
		for _, tag := range []string{sim.tagAt(base, p), sim.tagAt(pr.Head, p)} {
			if !strings.Contains(pr.Body, tag) || !strings.Contains(pr.Title+pr.Body, c) {
				sim.broke(ruleText, "%s changes %s in %s, and doesn't say so: %s\n%s", describePull(pr.Number, pr.Branch), tag, p,
					pr.Title, pr.Body)
			}
		}
	}
}

// judgeShownState judges what is said of a release that is there and has been well for long.
func (sim *Simulation) judgeShownState(p target, st *promotion.EnvState) {
	x, last, tag := sim.appOf(p), sim.lastLanding(p), sim.tagAt(sim.head(), p)
	if !strings.Contains(st.Name, tag) {
		sim.broke(ruleShown, "%s has %s, and what is shown is %s", p, tag, st.Name)
		return
	}
	h := sim.truth.health[deployment{p, tag}]
	if x.tag != tag || !x.runsAll() || h.isWellFor(sim.now) < settledAfter {
		return
	}
	want := []string{promotion.Verified, promotion.Idle}
	if len(sim.truth.landings[p]) == 0 {
		want = append(want, promotion.Baseline)
	}
	switch {
	case !sim.scenario.isSource(p.env) && (last.byPerson || sim.excuseOf(p.component) != "" || sim.scenario.needsCommand(p.env)):
		// It may be what somebody pushed over a head, or what waits for a person since it wasn't well in time.
		want = append(want, promotion.Diverged, promotion.Failed, promotion.Degraded)
	case len(sim.truth.landings[p]) == 0:
	case last.byPerson, !last.restores && sim.excuseOf(p.component) == "":
		want = want[:1]
	}
	if !slices.Contains(want, st.State) {
		sim.broke(ruleShown, "%s has been well with %s since %v, and is shown as %s (%s)", p, tag, h.wellSince.Sub(sim.began),
			st.State, st.Reason)
	}
}

// judgeShownPull judges which pull requests are said to be open.
func (sim *Simulation) judgeShownPull(p target, st *promotion.EnvState, open []forge.PullRequest) {
	promotes, reverts := 0, 0
	for i := range open {
		ref, ok := promotion.ParseBranch(open[i].Branch)
		if !ok || ref.Environment != p.env || !sim.changes(&open[i], p) {
			continue
		}
		if ref.Revert {
			reverts = open[i].Number
		} else {
			promotes = open[i].Number
		}
	}
	if sim.excuseOf(p.component) == "" && (promotes != st.Pull || reverts != st.Revert) {
		sim.broke(ruleShown, "of %s #%d and the revert #%d are open, and #%d and #%d are shown", p, promotes, reverts, st.Pull, st.Revert)
	}
}

// shownDeployments is how the forge shows a state.
var shownDeployments = map[string]forge.DeploymentState{promotion.Verifying: forge.DeploymentInProgress,
	promotion.Verified: forge.DeploymentSuccess, promotion.Degraded: forge.DeploymentFailure, promotion.Failed: forge.DeploymentError}

// judgeShownDeployment judges how the forge shows what the service brought to an environment.
func (sim *Simulation) judgeShownDeployment(p target, st *promotion.EnvState) {
	want := shownDeployments[st.State]
	if st.LandedPull == 0 || want == "" {
		return
	}
	of := p.component
	if sim.scenario.batch {
		of = promotion.BatchName
		if want != forge.DeploymentSuccess {
			return // another component's state may speak for it
		}
	}
	task := promotion.DeploymentTask(promotion.Unit{Pipeline: pipeline, Component: of})
	all, err := sim.forge.As(reviewer).Deployments(sim.ctx, sim.repo, p.env, task)
	sim.must(err)
	i := slices.IndexFunc(all, func(d forge.Deployment) bool { return d.Commit == st.Commit })
	if i < 0 {
		if sim.lastLanding(p).at.After(sim.truth.calmAt) {
			sim.broke(ruleShown, "no deployment shows what #%d brought to %s", st.LandedPull, p)
		}
		return
	}
	state, err := sim.forge.As(reviewer).DeploymentState(sim.ctx, sim.repo, all[i].ID)
	sim.must(err)
	if sim.storeOpened.Sub(sim.lastLanding(p).at) > watchFor {
		return // what landed before the database was lost, and isn't watched any more, is shown as it was
	}
	if state != want && !sim.scenario.batch {
		sim.broke(ruleShown, "the deployment of #%d is %s, and %s is %s", st.LandedPull, state, p, st.State)
	}
}

// judgeBranches judges whether the service's branches are gone with their pull requests.
func (sim *Simulation) judgeBranches() {
	all, err := sim.forge.As(reviewer).PullRequests(sim.ctx, sim.repo, time.Time{})
	sim.must(err)
	for branch, head := range sim.remote.Heads() {
		if _, ours := promotion.ParseBranch(branch); !ours {
			continue
		}
		for _, pr := range all {
			landed := pr.Branch == branch && pr.Head == head && pr.State == forge.Merged
			if landed && pr.Base == trunk && !sim.truth.forged[pr.Number] {
				sim.broke(ruleShown, "%s is still there, and #%d is merged", branch, pr.Number)
			}
		}
	}
}

// appOf is a target's Application.
func (sim *Simulation) appOf(p target) *app {
	i := slices.IndexFunc(sim.argocd.apps, func(x *app) bool { return x.target == p })
	return sim.argocd.apps[i]
}

// noteStatus judges whether a commit's status says something else than before.
func (sim *Simulation) noteStatus(commit string, s forge.Status) {
	all, err := sim.forge.As(reviewer).Statuses(sim.ctx, sim.repo, commit)
	sim.must(err)
	i := slices.IndexFunc(all, func(o forge.Status) bool { return o.Context == s.Context })
	if i >= 0 && all[i].State == s.State && all[i].Description == s.Description {
		sim.noteRewritten(statusOf(commit))
	}
}

// statusOf names a commit's status.
func statusOf(commit string) string { return "the status of " + commit }

// noteUpdate judges whether a change of a pull request changes anything.
func (sim *Simulation) noteUpdate(number int, u forge.PullRequestUpdate) {
	pr, err := sim.forge.As(reviewer).PullRequest(sim.ctx, sim.repo, number)
	sim.must(err)
	if err != nil || u.State != nil || u.Base != nil {
		return
	}
	if title, body := cmp.Or(u.Title, &pr.Title), cmp.Or(u.Body, &pr.Body); *title == pr.Title && *body == pr.Body {
		sim.noteRewritten(describePull(number, pr.Branch))
	}
}

// noteEdit judges whether an edit of a comment changes anything.
func (sim *Simulation) noteEdit(number int, comment int64, body string) {
	all, err := sim.forge.As(reviewer).Comments(sim.ctx, sim.repo, number, time.Time{})
	sim.must(err)
	if slices.ContainsFunc(all, func(k forge.Comment) bool { return k.ID == comment && k.Body == body }) {
		sim.noteRewritten(fmt.Sprintf("a comment on #%d", number))
	}
}

// noteRewritten counts how often the same is written where it was already; what couldn't be written down,
// by a failure or a lost database, is done again.
func (sim *Simulation) noteRewritten(what string) {
	known, ok := sim.truth.rewritten[what]
	if !ok {
		known.failuresBefore = sim.storeFailures
	}
	known.times++
	sim.truth.rewritten[what] = known
	if known.times > maxSame+sim.storeFailures-known.failuresBefore {
		sim.broke(ruleRewritten, "%s, %d times", what, known.times)
	}
}

// judgePushed judges whether a release that the service puts on one of its branches for promotions may come:
// people who merge by themselves go by its being there.
func (sim *Simulation) judgePushed(branch, was, head string) {
	ref, ok := promotion.ParseBranch(branch)
	known := insightOf(sim.current)
	if !ok || ref.Revert || sim.current == nil {
		return
	}
	// At a person's word the release that was there is composed anew over another account's head,
	// and waits as it did before.
	if slices.ContainsFunc(sim.ours(), func(pr forge.PullRequest) bool { return pr.Branch == branch && sim.truth.forged[pr.Number] }) {
		return
	}
	for _, c := range sim.componentsOf(ref) {
		p := target{c, ref.Environment}
		tag := sim.tagAt(head, p)
		if sim.isLifted(p) || was != "" && sim.tagAt(was, p) == tag || !sim.changes(&forge.PullRequest{Branch: branch, Head: head}, p) {
			continue
		}
		for _, up := range append(sim.scenario.upstream(p.env), p.env) {
			at := sim.restrainedSince(p, up, tag)
			if !at.IsZero() && known.began.After(at) && sim.current.fetchedAt.After(at) {
				sim.broke(ruleKept, "%s is to bring %s to %s, which was taken back from %s at %v", branch, tag, p, up, at.Sub(sim.began))
			}
			pull := sim.openRevertOf(deployment{target{c, up}, tag})
			// so that it is written down
			if pull != nil && known.began.After(pull.CreatedAt) && !sim.failed.After(pull.CreatedAt.Add(-time.Second)) {
				sim.broke(ruleKept, "%s is to bring %s to %s, which #%d is about to take back from %s", branch, tag, p, pull.Number, up)
			}
		}
	}
}

// restrainedSince is since when a release may not come to a target because a revert or a person
// withdrew it from an environment; zero: it may.
func (sim *Simulation) restrainedSince(p target, env, tag string) time.Time {
	d := deployment{target{p.component, env}, tag}
	w, withdrawn := sim.truth.withdrawn[d]
	if !withdrawn || env == p.env && sim.arrivedBefore(p, tag).After(w.at) { // it is new again
		return sim.keptOutSince(d)
	}
	return w.at
}

// foreseen are the errors with which a run may end: by what went wrong, or as the world moved meanwhile.
var foreseen = []error{errKilled, errAnswerLost, context.Canceled, context.DeadlineExceeded, forge.ErrRetryable, forge.ErrRateLimited,
	forge.ErrConflict, act.ErrStale, lock.ErrLeaseOver, store.ErrLost, git.ErrRemote, git.ErrRejected, git.ErrLeaseLost,
	git.ErrUnknownCommit, forge.ErrNotMergeable, store.ErrClockMoved}

// isForeseen says that a run may end with an error.
func isForeseen(err error) bool {
	return slices.ContainsFunc(foreseen, func(f error) bool { return errors.Is(err, f) })
}
