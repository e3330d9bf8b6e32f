package act

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// fakeForge is a forge in memory over the bare repository of a fixture. Every call to it passes the
// fixture's faults and is counted there. Methods that act and facts don't call aren't there.
type fakeForge struct {
	forge.Forge
	w        *fixture
	pulls    map[int]*forge.PullRequest
	comments map[int][]forge.Comment
	statuses map[string]forge.Status // the newest, by commit
	nextID   int64
	author   string           // of what is opened
	closed   map[int][]string // the labels at the moment of a close
	merges   []forge.MergeRequest
	refuse   error  // what a merge is answered with
	merging  func() // comes between a merge's request and its effect
	landed   string // what a merge makes of the base; empty: the head
	updates  int    // how often it was sent to bring a head up to date

	refuseUpdates error // what that is answered with
	rules         forge.BranchRules
	refuseRules   error  // what a read of the rules is answered with
	refuseLabels  error  // what new labels are answered with
	unseen        string // the head that a new pull request shows at first; empty: its branch's
	refuseTexts   error  // what a new comment or an edit of one is answered with
	refuseStatus  error  // what a commit status is answered with
	refuseOpening error  // what a new pull request is answered with
	opensLater    error  // what is said before one, that it can't be opened yet
	queues        bool   // it merges by a queue, which never moves
	undeleted     bool   // branches can't be deleted

	textsAgain time.Time      // until when its limits leave no call of comments' priority; zero: they leave them
	urgency    forge.Priority // of the newest status

	requested      []string // from whom reviews are requested
	refuseRequests error    // what a request for reviews is answered with

	deployments       []forge.Deployment // oldest first
	deploymentStates  map[int64]forge.DeploymentState
	refuseDeployments error // what a deployment is answered with
}

func newFakeForge(w *fixture) *fakeForge {
	return &fakeForge{w: w, author: bot, pulls: map[int]*forge.PullRequest{}, comments: map[int][]forge.Comment{}, statuses: map[string]forge.Status{}, closed: map[int][]string{}, deploymentStates: map[int64]forge.DeploymentState{}}
}

// pass runs an effect between the faults that the fixture has for a call.
func (f *fakeForge) pass(effect func() error, format string, args ...any) error {
	return f.w.faults.Pass("forge: "+fmt.Sprintf(format, args...), effect)
}

// limit refuses a call of comments' priority while the forge's limits leave none, as the drivers do.
func (f *fakeForge) limit(ctx context.Context) error {
	if forge.PriorityOf(ctx) != forge.PriorityComment || !f.w.now.Before(f.textsAgain) {
		return nil
	}
	return &forge.Error{Op: "write a text", Kind: forge.ErrRateLimited, RetryAfter: f.textsAgain, OnlyLower: true}
}

// find is a pull request as the forge has it now; the branch says where its head is.
func (f *fakeForge) find(number int) (*forge.PullRequest, error) {
	pr := f.pulls[number]
	if pr == nil {
		return nil, &forge.Error{Op: fmt.Sprintf("read #%d", number), Kind: forge.ErrNotFound}
	}
	if head := f.w.remoteHead(pr.Branch); pr.State == forge.Open && head != "" {
		pr.Head = head
	}
	return pr, nil
}

func (f *fakeForge) CommitURL(r forge.Repo, commit string) string {
	return "https://git.example/" + r.String() + "/commit/" + commit
}

func (f *fakeForge) Commits(_ context.Context, r forge.Repo, base, head string) ([]forge.Commit, error) {
	if r.String() == "acme/slow" {
		return nil, &forge.Error{Op: "compare", Kind: forge.ErrRateLimited, Message: "request ID " + f.w.now.String()}
	}
	tags, commits := base == "v1.0.0" && head == "v2.0.0", base == strings.Repeat("1", 40) && head == strings.Repeat("2", 40)
	if r.String() != "acme/web-app" || !tags && !commits {
		return nil, &forge.Error{Op: "compare", Kind: forge.ErrNotFound}
	}
	return []forge.Commit{{SHA: strings.Repeat("a", 40), Author: "Ada", Message: "Begin (#3)\n\nmore", At: f.w.now}, {SHA: strings.Repeat("b", 40), Author: "Grace", Message: "End", At: f.w.now}}, nil
}

func (f *fakeForge) CompareURL(r forge.Repo, base, head string) string {
	return "https://git.example/" + r.String() + "/compare/" + base + "..." + head
}

func (f *fakeForge) change(number int, do func(*forge.PullRequest)) error {
	pr, err := f.find(number)
	if err == nil {
		do(pr)
		pr.UpdatedAt = f.w.now
	}
	return err
}

func (f *fakeForge) PullRequests(_ context.Context, _ forge.Repo, since time.Time) (out []forge.PullRequest, err error) {
	err = f.pass(func() error {
		for _, n := range slices.Backward(slices.Sorted(maps.Keys(f.pulls))) {
			pr, err := f.find(n)
			if err != nil {
				return err
			}
			if !pr.UpdatedAt.Before(since) {
				out = append(out, clonePull(pr))
			}
		}
		return nil
	}, "list")
	return out, err
}

func clonePull(pr *forge.PullRequest) forge.PullRequest {
	out := *pr
	out.Labels = slices.Clone(pr.Labels)
	return out
}

func (f *fakeForge) PullRequest(_ context.Context, _ forge.Repo, number int) (out *forge.PullRequest, err error) {
	err = f.pass(func() error {
		pr, err := f.find(number)
		if err == nil {
			c := clonePull(pr)
			out = &c
		}
		return err
	}, "read #%d", number)
	return out, err
}

func (f *fakeForge) MayOpen(context.Context, forge.Repo) error { return f.opensLater }

func (f *fakeForge) CreatePullRequest(_ context.Context, _ forge.Repo, n forge.NewPullRequest) (out *forge.PullRequest, created bool, err error) {
	err = f.pass(func() error {
		if f.refuseOpening != nil {
			return f.refuseOpening
		}
		for _, pr := range f.pulls {
			if pr.State == forge.Open && pr.Branch == n.Branch && pr.Base == n.Base {
				c := clonePull(pr)
				out = &c
				return nil
			}
		}
		head := f.w.remoteHead(n.Branch)
		if head == "" {
			return &forge.Error{Op: "open a pull request", Kind: forge.ErrInvalid}
		}
		created = true
		c := clonePull(f.add(n, f.author, head))
		c.Head = cmp.Or(f.unseen, c.Head)
		out = &c
		return nil
	}, "create %s", n.Branch)
	return out, created, err
}

// add opens a pull request.
func (f *fakeForge) add(n forge.NewPullRequest, author, head string) *forge.PullRequest {
	number := len(f.pulls) + 1
	pr := &forge.PullRequest{Number: number, Title: n.Title, Body: n.Body, Author: author, Branch: n.Branch, Head: head, Base: n.Base, State: forge.Open,
		Labels: slices.Sorted(slices.Values(n.Labels)), Mergeable: forge.MergeableYes, CreatedAt: f.w.now, UpdatedAt: f.w.now}
	f.pulls[number] = pr
	return pr
}

func (f *fakeForge) UpdatePullRequest(ctx context.Context, _ forge.Repo, number int, c forge.PullRequestUpdate) error {
	what := "text"
	if c.State != nil {
		what = string(*c.State)
	}
	return f.pass(func() error {
		if err := f.limit(ctx); err != nil {
			return err
		}
		return f.change(number, func(pr *forge.PullRequest) {
			if c.Title != nil {
				pr.Title = *c.Title
			}
			if c.Body != nil {
				pr.Body = *c.Body
			}
			if c.State != nil {
				pr.State, pr.ClosedAt = *c.State, f.w.now
				f.closed[number] = slices.Clone(pr.Labels)
			}
		})
	}, "update #%d %s", number, what)
}

// Merge moves the base to the head, as a forge does whose repository rebases.
func (f *fakeForge) Merge(_ context.Context, _ forge.Repo, m forge.MergeRequest) (landed string, err error) {
	err = f.pass(func() error {
		f.merges = append(f.merges, m)
		if f.refuse != nil {
			return f.refuse
		}
		pr, err := f.find(m.Number)
		switch {
		case err != nil:
			return err
		case pr.Head != m.Head:
			return &forge.Error{Op: "merge", Kind: forge.ErrConflict}
		case f.queues && pr.State == forge.Open:
			pr.Queue, pr.UpdatedAt = forge.Queued, f.w.now
		case pr.State != forge.Merged:
			if f.merging != nil {
				f.merging()
			}
			landed := cmp.Or(f.landed, pr.Head)
			f.w.setRemoteHead(pr.Base, landed)
			pr.State, pr.MergeCommit, pr.MergedBy, pr.MergedAt, pr.ClosedAt, pr.UpdatedAt = forge.Merged, landed, bot, f.w.now, f.w.now, f.w.now
		}
		landed = pr.MergeCommit
		return nil
	}, "merge #%d", m.Number)
	return landed, err
}

// UpdateBranch is sent to bring a head up to date, which the forge does some time later.
func (f *fakeForge) UpdateBranch(_ context.Context, _ forge.Repo, number int, head string) error {
	return f.pass(func() error {
		pr, err := f.find(number)
		switch {
		case err != nil:
			return err
		case f.refuseUpdates != nil:
			return f.refuseUpdates
		case pr.Head != head:
			return &forge.Error{Op: "update", Kind: forge.ErrConflict}
		}
		f.updates++
		return nil
	}, "update branch #%d", number)
}

func (f *fakeForge) LeaveQueue(_ context.Context, _ forge.Repo, number int) error {
	return f.pass(func() error {
		pr, err := f.find(number)
		switch {
		case err != nil:
			return err
		case pr.State == forge.Merged:
			return &forge.Error{Op: "leave the queue", Kind: forge.ErrConflict}
		}
		pr.Queue, pr.UpdatedAt = forge.NotQueued, f.w.now
		return nil
	}, "leave queue #%d", number)
}

func (f *fakeForge) DeleteBranch(_ context.Context, _ forge.Repo, branch string) error {
	return f.pass(func() error {
		if f.undeleted {
			return &forge.Error{Op: "delete " + branch, Kind: forge.ErrForbidden}
		}
		f.w.setRemoteHead(branch, "")
		return nil
	}, "delete %s", branch)
}

func (f *fakeForge) Reviews(context.Context, forge.Repo, int) ([]forge.Review, error) {
	return nil, nil
}

func (f *fakeForge) Permission(context.Context, forge.Repo, string) (forge.Permission, error) {
	return forge.PermissionWrite, nil
}

func (f *fakeForge) Checks(context.Context, forge.Repo, string) ([]forge.Check, error) {
	return nil, nil
}

func (f *fakeForge) Rules(context.Context, forge.Repo, string) (out *forge.BranchRules, err error) {
	err = f.pass(func() error {
		rules := f.rules
		out = &rules
		return f.refuseRules
	}, "read the rules")
	return out, err
}

// RequestReviewers takes everybody but zed.
func (f *fakeForge) RequestReviewers(_ context.Context, _ forge.Repo, number int, from forge.Reviewers) (refused []forge.RefusedReviewer, err error) {
	err = f.pass(func() error {
		if f.refuseRequests != nil {
			return f.refuseRequests
		}
		names := slices.Clone(from.Users)
		for _, t := range from.Teams {
			names = append(names, t.String())
		}
		for _, n := range names {
			switch {
			case n == "zed":
				refused = append(refused, forge.RefusedReviewer{Name: n, Reason: "Not a collaborator."})
			case !slices.Contains(f.requested, n):
				f.requested = append(f.requested, n)
			}
		}
		slices.Sort(f.requested)
		return nil
	}, "request reviews of #%d", number)
	return refused, err
}

func (f *fakeForge) AddLabels(_ context.Context, _ forge.Repo, number int, labels ...string) error {
	return f.pass(func() error {
		if f.refuseLabels != nil {
			return f.refuseLabels
		}
		return f.change(number, func(pr *forge.PullRequest) {
			pr.Labels = slices.Compact(slices.Sorted(slices.Values(append(pr.Labels, labels...))))
		})
	}, "label #%d %s", number, strings.Join(labels, ","))
}

func (f *fakeForge) RemoveLabel(_ context.Context, _ forge.Repo, number int, label string) error {
	return f.pass(func() error {
		return f.change(number, func(pr *forge.PullRequest) {
			pr.Labels = slices.DeleteFunc(pr.Labels, func(l string) bool { return l == label })
		})
	}, "unlabel #%d %s", number, label)
}

func (f *fakeForge) Comments(_ context.Context, _ forge.Repo, number int, _ time.Time) (out []forge.Comment, err error) {
	err = f.pass(func() error {
		out = slices.Clone(f.comments[number])
		return nil
	}, "comments #%d", number)
	return out, err
}

func (f *fakeForge) CreateComment(ctx context.Context, _ forge.Repo, number int, body string) (out *forge.Comment, err error) {
	err = f.pass(func() error {
		if err := cmp.Or(f.refuseTexts, f.limit(ctx)); err != nil {
			return err
		}
		k := f.say(number, bot, body)
		out = &k
		return nil
	}, "comment #%d", number)
	return out, err
}

// say adds a comment.
func (f *fakeForge) say(number int, by, body string) forge.Comment {
	f.nextID++
	k := forge.Comment{ID: f.nextID, User: by, Body: body, CreatedAt: f.w.now, UpdatedAt: f.w.now}
	f.comments[number] = append(f.comments[number], k)
	return k
}

func (f *fakeForge) UpdateComment(ctx context.Context, _ forge.Repo, number int, id int64, body string) error {
	return f.pass(func() error {
		if err := cmp.Or(f.refuseTexts, f.limit(ctx)); err != nil {
			return err
		}
		for i := range f.comments[number] {
			if k := &f.comments[number][i]; k.ID == id {
				k.Body, k.UpdatedAt = body, f.w.now
				return nil
			}
		}
		return &forge.Error{Op: "change a comment", Kind: forge.ErrNotFound}
	}, "recomment #%d", number)
}

func (f *fakeForge) SetStatus(ctx context.Context, _ forge.Repo, commit string, s forge.Status) error {
	return f.pass(func() error {
		if f.refuseStatus == nil {
			f.statuses[commit], f.urgency = s, forge.PriorityOf(ctx)
		}
		return f.refuseStatus
	}, "status")
}

// remoteHead is where a branch of the remote is; empty: there is none.
func (f *fixture) remoteHead(branch string) string {
	head, _ := f.remote.Head(branch)
	return head
}

// setRemoteHead moves a branch there behind the mirror's back; empty removes it.
func (f *fixture) setRemoteHead(branch, commit string) {
	f.remote.SetRef("refs/heads/"+branch, commit)
}

func (f *fakeForge) HasDeployments() bool { return true }

func (f *fakeForge) Deployments(_ context.Context, _ forge.Repo, environment, task string) (out []forge.Deployment, err error) {
	err = f.pass(func() error {
		for _, d := range slices.Backward(f.deployments) {
			if d.Environment == environment && d.Task == task {
				out = append(out, d)
			}
		}
		return nil
	}, "list deployments")
	return out, err
}

func (f *fakeForge) CreateDeployment(_ context.Context, _ forge.Repo, d forge.Deployment) (id int64, err error) {
	err = f.pass(func() error {
		if f.refuseDeployments != nil {
			return f.refuseDeployments
		}
		f.nextID++
		id, d.ID, d.CreatedAt = f.nextID, f.nextID, f.w.now
		f.deployments = append(f.deployments, d)
		return nil
	}, "create a deployment")
	return id, err
}

func (f *fakeForge) DeploymentState(_ context.Context, _ forge.Repo, id int64) (state forge.DeploymentState, err error) {
	err = f.pass(func() error { state = f.deploymentStates[id]; return nil }, "read a deployment")
	return state, err
}

func (f *fakeForge) SetDeploymentStatus(_ context.Context, _ forge.Repo, id int64, s forge.DeploymentStatus) error {
	return f.pass(func() error {
		if !slices.ContainsFunc(f.deployments, func(d forge.Deployment) bool { return d.ID == id }) {
			return &forge.Error{Op: "deploy", Kind: forge.ErrNotFound, Message: "Not Found"}
		}
		f.deploymentStates[id] = s.State
		return nil
	}, "set a deployment")
}
