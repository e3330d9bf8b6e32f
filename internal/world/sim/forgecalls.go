package sim

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/intercept"
)

// reachForge is a forge as a process reaches it: a call may fail before it has an effect or after it.
func (sim *Simulation) reachForge(f forge.Forge) forge.Forge {
	return &reachedForge{intercept.New(&judgedForge{f, sim}, sim.reachCall), sim}
}

// alwaysReached are the calls that never fail: what they tell, no rule of the simulation is about.
var alwaysReached = map[string]bool{"Rules": true, "IsTeamMember": true, "TeamNumber": true, "EnsureHook": true, "MissedDeliveries": true}

// reachCall makes a call of the forge, or fails it.
func (sim *Simulation) reachCall(ctx context.Context, c intercept.Call, do func() error) error {
	if alwaysReached[c.Name] {
		return do()
	}
	t := taskOf(ctx)
	if err := sim.reach(t, theForge, c.Name, false); err != nil {
		return err
	}
	if t != nil && c.Writes {
		sim.truth.lastWrite = sim.now
	}
	if err := do(); err != nil || !c.Writes {
		return err
	}
	sim.judgeLease(t, "calls "+c.Name)
	return sim.reach(t, theForge, c.Name, true)
}

// reachedForge notes what a process has an answer to.
type reachedForge struct {
	*intercept.Forge
	sim *Simulation
}

func (rf *reachedForge) RequestReviewers(ctx context.Context, r forge.Repo, number int,
	from forge.Reviewers) ([]forge.RefusedReviewer, error) {
	refused, err := rf.Forge.RequestReviewers(ctx, r, number, from)
	if err == nil { // without an answer it has to be done again
		rf.sim.noteRequested(number, from)
	}
	return refused, err
}

func (rf *reachedForge) Comments(ctx context.Context, r forge.Repo, number int, since time.Time) ([]forge.Comment, error) {
	all, err := rf.Forge.Comments(ctx, r, number, since)
	if err == nil {
		rf.sim.noteCommentsRead(taskOf(ctx), number)
	}
	return all, err
}

// judgedForge notes and judges what is done at the forge, also where nobody gets the answer.
type judgedForge struct {
	forge.Forge
	sim *Simulation
}

func (j *judgedForge) UpdatePullRequest(ctx context.Context, r forge.Repo, number int, u forge.PullRequestUpdate) error {
	j.sim.noteUpdate(number, u)
	return j.Forge.UpdatePullRequest(ctx, r, number, u)
}

func (j *judgedForge) LeaveQueue(ctx context.Context, r forge.Repo, number int) error {
	err := j.Forge.LeaveQueue(ctx, r, number)
	if err == nil {
		j.sim.report("%s takes #%d out of the merge queue", j.sim.nameOf(taskOf(ctx)), number)
		delete(j.sim.truth.joined, number) // it may join again when nothing stands against it
	}
	return err
}

func (j *judgedForge) UpdateComment(ctx context.Context, r forge.Repo, number int, id int64, body string) error {
	j.sim.noteEdit(number, id, body)
	return j.Forge.UpdateComment(ctx, r, number, id, body)
}

func (j *judgedForge) React(ctx context.Context, r forge.Repo, number int, comment int64, reaction string) error {
	err := j.Forge.React(ctx, r, number, comment, reaction)
	if err == nil {
		j.sim.noteReaction(comment, reaction)
	}
	return err
}

func (j *judgedForge) SetStatus(ctx context.Context, r forge.Repo, commit string, s forge.Status) error {
	j.sim.noteStatus(commit, s)
	err := j.Forge.SetStatus(ctx, r, commit, s)
	if err == nil {
		maps.DeleteFunc(j.sim.truth.pushed, func(_ string, p pushedHead) bool { return p.commit == commit })
	}
	return err
}

func (j *judgedForge) AddLabels(ctx context.Context, r forge.Repo, number int, labels ...string) error {
	err := j.Forge.AddLabels(ctx, r, number, labels...)
	if err == nil && slices.Contains(labels, promotion.LabelSuperseded) {
		j.sim.truth.superseded[number] = true
	}
	return err
}

func (j *judgedForge) CreateDeployment(ctx context.Context, r forge.Repo, d forge.Deployment) (int64, error) {
	j.sim.noteDeployment(d)
	return j.Forge.CreateDeployment(ctx, r, d)
}

// ReviewedPullRequests is the forge's own, where it reads several together.
func (j *judgedForge) ReviewedPullRequests(ctx context.Context, r forge.Repo, numbers ...int) ([]forge.ReviewedPullRequest, error) {
	bulk, is := j.Forge.(forge.BulkReader)
	if !is {
		return nil, forge.ErrUnsupported
	}
	return bulk.ReviewedPullRequests(ctx, r, numbers...)
}

// Merge merges, and the world judges it.
func (j *judgedForge) Merge(ctx context.Context, r forge.Repo, m forge.MergeRequest) (string, error) {
	sim := j.sim
	pr, err := j.Forge.PullRequest(ctx, r, m.Number)
	if err != nil {
		return "", err
	}
	before := sim.head()
	sim.merging = true
	landed, err := j.Forge.Merge(ctx, r, m)
	sim.merging = false
	if err == nil && landed == "" {
		sim.noteQueued(taskOf(ctx), pr, bot)
	} else if after := sim.head(); err == nil && after != before {
		sim.report("%s is merged by %s", describePull(pr.Number, pr.Branch), sim.nameOf(taskOf(ctx)))
		sim.judgeMerge(insightOf(taskOf(ctx)), pr, before, after)
		sim.noteMerged(pr, before, after)
	}
	return landed, err
}

// noteMerged keeps what a merge brought that was the service's.
func (sim *Simulation) noteMerged(pr *forge.PullRequest, before, after string) {
	sim.noteLandings(before, after, false)
	ref, _ := promotion.ParseBranch(pr.Branch)
	if ref.Revert {
		sim.noteBystanders(before, after)
		for _, p := range sim.scenario.targets() {
			if sim.tagAt(before, p) != sim.tagAt(after, p) {
				sim.noteRestored(p)
				sim.insist(p)
			}
		}
		return
	}
	for _, c := range sim.componentsOf(ref) {
		if p := (target{c, ref.Environment}); sim.tagAt(before, p) != sim.tagAt(after, p) {
			sim.outrun(p, sim.tagAt(after, p))
		}
	}
}

// CreateComment comments, and the world judges it.
func (j *judgedForge) CreateComment(ctx context.Context, r forge.Repo, number int, body string) (*forge.Comment, error) {
	j.sim.noteComment(number, body)
	return j.Forge.CreateComment(ctx, r, number, body)
}
