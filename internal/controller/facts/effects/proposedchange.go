package effects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/appset/impact"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
)

// ChangeGatherer says what somebody's pull request would do.
type ChangeGatherer struct {
	targets *branch.TargetGatherer
	sandbox *sandbox.Runner // for what strangers wrote

	externals *branch.ExternalFiles // nil: none
}

// NewChangeGatherer needs a sandbox to evaluate anything.
func NewChangeGatherer(targets *branch.TargetGatherer, strangers *sandbox.Runner, externals *branch.ExternalFiles) *ChangeGatherer {
	return &ChangeGatherer{targets: targets, sandbox: strangers, externals: externals}
}

// ProposedChange is what somebody's pull request would do to the targets.
type ProposedChange struct {
	Into branch.Head // what it is to be merged into
	Base string      // the newest commit that it has in common with it; empty: none
	Head string
	Key  string // everything that the answer depends on: the same key, the same answer

	fromFork     bool     // readers of the repository could have pushed it
	Changed      []string // files
	pipelines    []*pipeline.Pipeline
	ChangesRules bool     // pipeline files are among them
	AlsoChanged  []string // those that the branch has changed since, too
}

// ChangeReport is what was found out about a change.
type ChangeReport struct {
	Report      *impact.Report // nil: Failed says why there is none
	Failed      string
	PipelineErr string
	Unknown     []string // what is not known of the running Argo CDs

	// Rendered are what it does to the manifests of the targets that it touches, but for
	// NotRendered of them, which are too many; RenderedErr says why that can't be told.
	Rendered    []RenderedChange
	NotRendered int
	RenderedErr string
}

// TouchesPipeline says that it changes, or brings, pipeline files.
func (p *ProposedChange) TouchesPipeline() bool { return p.ChangesRules }

// ReadChange fetches the head of a pull request into a line and says what
// there is to judge. A *RefusedHeadError: there is nothing, also another time.
func (cg *ChangeGatherer) ReadChange(ctx context.Context, s *branch.Snapshot, l branch.Head, pr *forge.PullRequest) (*ProposedChange,
	error) {
	m := s.Repo.Mirror
	if err := m.FetchRef(ctx, pr.Ref, pr.Head); err != nil {
		return nil, fmt.Errorf("fetch #%d: %w", pr.Number, refuseHead("its head can't be fetched: ", err))
	}
	c := &ProposedChange{Into: l, Head: pr.Head, fromFork: pr.Fork}
	base, common, err := m.MergeBase(ctx, l.Commit, pr.Head)
	if err != nil {
		return nil, fmt.Errorf("find what #%d is based on: %w", pr.Number, refuseHead("its head is too much: ", err))
	}
	if common {
		c.Base = base
	}
	since, err := branch.ChangedPaths(ctx, m, c.Base, l.Commit)
	if err != nil { // how old the base is, the author says
		return nil, refuseHead("what changed on "+l.Branch+" since its base is too much (rebase it): ", err)
	}
	if c.Changed, err = branch.ChangedPaths(ctx, m, c.Base, pr.Head); err != nil {
		return nil, refuseHead("its head is too much: ", err)
	}
	there := make(map[string]bool, len(since))
	for _, f := range since {
		there[f] = true
	}
	for _, f := range c.Changed {
		c.ChangesRules = c.ChangesRules || l.Branch == s.Repo.Branch && pipeline.IsPipelinePath(f)
		if there[f] && common {
			c.AlsoChanged = append(c.AlsoChanged, f)
		}
	}
	for _, p := range s.Pipelines {
		c.pipelines = append(c.pipelines, p.Pipeline)
	}
	sets := "" // otherwise they are not part of the change
	if l.Branch != s.Repo.Branch {
		sets = l.Branch + " " + s.Commit
	}
	raw, err := json.Marshal([]any{c.Base, c.Head, c.pipelines, c.AlsoChanged, s.NoPipelines, sets})
	if err != nil {
		return nil, fmt.Errorf("write down what #%d is judged by: %w", pr.Number, err)
	}
	sum := sha256.Sum256(raw)
	c.Key = hex.EncodeToString(sum[:16])
	return c, nil
}

// RefusedHeadError says that the head of a pull request isn't evaluated: it costs more than any
// may, or git refuses it. It would be so every time.
type RefusedHeadError struct {
	Why string // for people, in none of the author's words
	Err error
}

// Error says why, and what happened.
func (r *RefusedHeadError) Error() string { return r.Why + ": " + r.Err.Error() }

// Unwrap is what happened.
func (r *RefusedHeadError) Unwrap() error { return r.Err }

// refuseHead makes an error of git's a RefusedHeadError where it is the head's own.
func refuseHead(what string, err error) error {
	if errors.Is(err, git.ErrTooLarge) || errors.Is(err, git.ErrRejected) {
		return &RefusedHeadError{Why: what + git.HintOf(err), Err: err}
	}
	return err
}

// EvaluateChange works out what a change does. Its base is a judged branch's history and is
// evaluated here; its head is whatever a stranger wrote, and is evaluated in a child process with
// limits. The error is for what may go well another time; a head that can't be evaluated is a
// verdict. The manifests' changes are told within the limit, target by target.
func (cg *ChangeGatherer) EvaluateChange(ctx context.Context, s *branch.Snapshot, c *ProposedChange,
	limit render.TextLimit) (*ChangeReport, error) {
	m := s.Repo.Mirror
	v := &ChangeReport{}
	if c.ChangesRules {
		problem, err := evaluate.CheckPipelinesInWorker(ctx, cg.sandbox, m.Tree(c.Head))
		var limited *sandbox.Error
		switch {
		case errors.As(err, &limited):
			problem = "the pipeline files can't be read: " + err.Error()
		case err != nil:
			return nil, fmt.Errorf("read the pipeline files of %s: %w", c.Head, err)
		}
		v.PipelineErr = problem
	}
	if c.Base == "" {
		v.Failed = "it has no commit in common with " + c.Into.Branch
		return v, nil
	}
	sur := cg.targets.NewInputCollector(s.Repo)
	in, err := sur.EvaluateInput(ctx, c.pipelines)
	if err != nil {
		return nil, err
	}
	for name, why := range in.Live.Unknown {
		v.Unknown = append(v.Unknown, fmt.Sprintf("the Argo CD %s: %s", name, why))
	}
	slices.Sort(v.Unknown)
	in.Changed, in.Scope = c.Changed, s.Scope(in.Main)
	at := func(commit string) fs.FS {
		if c.Into.Branch == s.Repo.Branch {
			in.Revision = commit
			return m.Tree(commit)
		}
		in.Revision, in.On, in.Edited = s.Commit, c.Into.Branch, appset.ExternalRef{Tree: m.Tree(commit), Commit: commit}
		return m.Tree(s.Commit)
	}
	tree := at(c.Base)
	before, err := evaluate.InProcess(ctx, cg.targets.Resolver, tree, in)
	if err != nil {
		return nil, fmt.Errorf("evaluate %s: %w", c.Base, err)
	}
	tree = at(c.Head)
	after, err := evaluate.InWorker(ctx, cg.sandbox, tree, in)
	var limited *sandbox.Error
	var refused *sandbox.HandlerError
	switch {
	case errors.As(err, &limited), errors.As(err, &refused):
		v.Failed = err.Error()
		return v, nil
	case err != nil:
		return nil, fmt.Errorf("evaluate %s: %w", c.Head, err)
	}
	if v.Report, err = impact.Compare(impact.Input{Pipelines: c.pipelines, Before: before, After: after, Changed: c.Changed,
		On: in.On}); err != nil {
		return nil, err
	}
	if err := cg.renderChange(ctx, s, c, before, after, limit, v); err != nil {
		return nil, fmt.Errorf("render %s: %w", c.Head, err)
	}
	return v, nil
}
