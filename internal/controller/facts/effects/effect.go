package effects

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/pipeline"
)

const (
	// maxRendered is about how many bytes of manifests are remembered.
	maxRendered = 128 << 20
	// editTimeout bounds the rendering for one edit: a base that a thousand
	// targets share takes seconds.
	editTimeout = 30 * time.Second
	// FirstRetryDelay is how long after it ran out of time an edit is judged again, and
	// maxRetryDelay how long at most. The machine may have been busy, or the edit is more than it
	// can do, and every try costs its time.
	FirstRetryDelay = time.Minute
	maxRetryDelay   = time.Hour
)

// Gatherer says what edits do to targets: ours that are about to be made, and
// those of pull requests.
type Gatherer struct {
	targets *branch.TargetGatherer
	pulls   knownPulls
	now     func() time.Time
	timeout func() time.Duration

	externals      *branch.ExternalFiles // nil: none
	Renderer       *isolation.Renderer   // of what is judged now
	pastRenderer   *isolation.Renderer   // for what landed long ago
	remote         *argocdRenderer
	inspectedHeads *cache.Cache[string, inspectedHead] // by pullKey

	judgements *cache.Cache[JudgementKey, judgement]
	composed   *cache.Cache[string, []fieldedit.Edit] // by commit, place and release
}

// knownPulls are the pull requests that the store has.
type knownPulls interface {
	// KnownPull is nil where there is none.
	KnownPull(ctx context.Context, repo string, number int) (*forge.PullRequest, error)
}

// Options are a Gatherer's parts.
type Options struct {
	Targets     *branch.TargetGatherer
	Pulls       knownPulls
	Renderer    render.Renderer       // of what is on our own branches; nil: this process
	Externals   *branch.ExternalFiles // that renderings may read besides the tracked repositories; nil: none
	EditTimeout func() time.Duration  // how long an edit may be judged; nil: 30 seconds
	// OnDisagree is told of a target that its Argo CD renders otherwise than Liftlock; nil: nothing is.
	OnDisagree func(argocd, target, how string)
	Now        func() time.Time
	Caches     *cache.Group
}

// New makes a gatherer; what it remembers is in the caches of its options.
func New(o *Options) *Gatherer {
	timeout, now, group := o.EditTimeout, o.Now, o.Caches
	if timeout == nil {
		timeout = func() time.Duration { return editTimeout }
	}
	remember := func(bytes int) *isolation.Renderer {
		return isolation.New(render.MemoOptions{Caches: group, Bytes: bytes, Renderer: o.Renderer,
			External: branch.OpenExternal(o.Externals), Now: now})
	}
	remote := newArgoCDRenderer(o.Targets.Argocds, now, group)
	remote.onDisagree = o.OnDisagree
	return &Gatherer{targets: o.Targets, pulls: o.Pulls, now: now, timeout: timeout, externals: o.Externals,
		Renderer: remember(maxRendered), pastRenderer: remember(maxPastRendered),
		remote:         remote,
		inspectedHeads: branch.NewCache[string, inspectedHead](group, "inspected_heads", 10_000),
		judgements:     branch.NewCache[JudgementKey, judgement](group, "judgements", 1000), composed: newComposedParts(group)}
}

// ForgetJudgements has all edits judged anew.
func (ga *Gatherer) ForgetJudgements() { ga.judgements.Clear() }

// JudgementKey is everything that what an edit does depends on, with what is asked.
type JudgementKey [sha256.Size]byte

// judgement is what is known of an edit of one environment.
type judgement struct {
	why         string // why it must not be made, or why its effects aren't known
	effects     []isolation.Effect
	regenerated []isolation.Regenerated
	ignored     map[string]*isolation.Ignored
	retry       retryState
}

// retryState is an answer that ran out of time. The zero value is one in time.
type retryState struct {
	tries   int
	retryAt time.Time // when it is worked out again
}

// nextRetry is what it is after another try that ran out of time.
func (r retryState) nextRetry(now time.Time) retryState {
	wait := maxRetryDelay
	if r.tries < 6 { // 1, 2, 4 … 32 minutes
		wait = FirstRetryDelay << r.tries
	}
	return retryState{tries: r.tries + 1, retryAt: now.Add(wait)}
}

// isDue says that what is known isn't to be used any more.
// at is when to look again; zero: there is no need.
func (r retryState) at() time.Time {
	if r.tries == 0 {
		return time.Time{}
	}
	return r.retryAt
}

func (r retryState) isDue(now time.Time) bool { return r.tries > 0 && !now.Before(r.retryAt) }

// withEditTimeout is a context for judging an edit.
func (ga *Gatherer) withEditTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, ga.timeout())
}

// RanOutOfTime says that judging failed because its time was over, not its caller's.
func RanOutOfTime(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded)
}

// WhyNotIsolated says why edits on a commit, for an environment of some
// components, must not be made: which targets outside it they change. "" is the
// proof that there are none.
func (ga *Gatherer) WhyNotIsolated(ctx context.Context, c *branch.Basis, components []string, env, base string,
	edits []fieldedit.Edit) (string, error) {
	for _, e := range edits {
		if pipeline.IsPipelinePath(e.File) {
			return fmt.Sprintf("%s is the pipeline's own file: a promotion never changes the rules", e.File), nil
		}
	}
	late := fmt.Sprintf("that no target outside %s depends on it could not be shown within %s; it is tried again, within the hour at the "+
		"latest", env, editTimeout)
	j, err := ga.judgeEdit(ctx, c, components, env, base, edits, late,
		func(ctx context.Context, edit *isolation.Edit) (j judgement, err error) {
			if j.why, err = ga.Renderer.WhyNotIsolated(ctx, edit); j.why != "" {
				j.why += "; a promotion may only edit what no target outside " + env + " depends on"
			}
			return j, err
		})
	return j.why, err
}

// ListEffects says what edits on a commit do to the targets of an environment of
// the components. An error says for people why that isn't known; then and only
// then there are no effects.
func (ga *Gatherer) ListEffects(ctx context.Context, c *branch.Basis, components []string, env, base string,
	edits []fieldedit.Edit) ([]isolation.Effect, error) {
	if len(edits) == 0 || base == "" {
		return nil, errors.New("its head is not what Liftlock composed")
	}
	const late = "rendering took longer than %s; it is tried again, within the hour at the latest"
	j, err := ga.judgeEdit(ctx, c, components, env, base, edits, fmt.Sprintf(late, editTimeout),
		func(ctx context.Context, edit *isolation.Edit) (j judgement, err error) {
			j.effects, err = ga.Renderer.Effects(ctx, edit)
			return j, err
		})
	if err == nil && j.why != "" {
		err = errors.New(j.why)
	}
	return j.effects, err
}

// regenerated are the targets of an environment of the components whose Applications edits on a
// commit change. Reading files doesn't tell which those are, as an ApplicationSet belongs to no
// component. An error says for people why that isn't known.
func (ga *Gatherer) regenerated(ctx context.Context, c *branch.Basis, components []string, env, base string,
	edits []fieldedit.Edit) ([]isolation.Regenerated, error) {
	var files []string
	created := false
	for _, e := range edits {
		files = append(files, e.File)
		created = created || e.Created || e.Deleted
	}
	branchName := c.Snapshot.BranchFor(c.Pipeline.Pipeline, env).Branch
	changes := slices.ContainsFunc(c.Snapshot.Pipelines, func(p *branch.ResolvedPipeline) bool {
		return isolation.ChangesGenerated(c.Snapshot.TargetsOn(branchName, p.TargetSet.Targets), files, created)
	})
	if !changes || base == "" || len(edits) == 0 {
		return nil, nil
	}
	late := fmt.Sprintf("whose Applications it changes could not be worked out within %s; it is tried again, within the hour at the latest",
		editTimeout)
	j, err := ga.judgeEdit(ctx, c, components, env, base, edits, late, func(_ context.Context, edit *isolation.Edit) (judgement, error) {
		return judgement{regenerated: edit.ListRegenerated()}, nil
	})
	if err == nil && j.why != "" {
		err = errors.New(j.why)
	}
	return j.regenerated, err
}

// judgeEdit gives what is known of an edit, or finds it out. Errors are not kept, but
// running out of time is, for a while: late says so.
func (ga *Gatherer) judgeEdit(ctx context.Context, c *branch.Basis, components []string, env, base string, edits []fieldedit.Edit,
	late string,
	judge func(context.Context, *isolation.Edit) (judgement, error)) (judgement, error) {
	question := fmt.Sprintf("%s %d", late, ga.externals.CurrentVersion(ctx))
	key, err := HashJudgementInputs(ctx, c, components, env, base, edits, question)
	if err != nil {
		return judgement{}, err
	}
	known, ok := ga.judgements.Get(key)
	if !ok || known.retry.isDue(ga.now()) {
		retry := known.retry
		limited, cancel := ga.withEditTimeout(ctx)
		defer cancel()
		edit, why, err := ga.buildEdit(limited, c, components, env, base, edits)
		known = judgement{why: why}
		if err == nil && why == "" {
			known, err = judge(limited, edit)
		}
		if RanOutOfTime(ctx, err) {
			known, err = judgement{why: late, retry: retry.nextRetry(ga.now())}, nil
		}
		if err != nil {
			return judgement{}, err
		}
		ga.judgements.Put(key, known)
	}
	c.ScheduleRetry(known.retry.at())
	return known, nil
}

// HashJudgementInputs writes down what an edit's effect depends on: the files, not the
// commit that has them; the rules; and what of the world isn't in Git.
func HashJudgementInputs(ctx context.Context, c *branch.Basis, components []string, env, base string, edits []fieldedit.Edit,
	question string) (JudgementKey, error) {
	tree, err := c.Snapshot.Repo.Mirror.TreeHash(ctx, base, "")
	if err != nil {
		return JudgementKey{}, err
	}
	var rules []*pipeline.Pipeline
	for _, p := range c.Snapshot.Pipelines {
		rules = append(rules, p.Pipeline)
	}
	raw, err := json.Marshal([]any{question, c.Unit.Repo, c.Unit.Pipeline, components, env, tree, c.Snapshot.Generation, rules,
		c.Snapshot.OtherBranches(c.Snapshot.BranchFor(c.Pipeline.Pipeline, env))})
	if err != nil {
		return JudgementKey{}, fmt.Errorf("write down what an edit is judged by: %w", err)
	}
	h := sha256.New()
	h.Write(raw)
	for _, e := range edits {
		fmt.Fprintf(h, "%q %o %t %d:", e.File, e.Mode, e.Deleted, len(e.After))
		h.Write(e.After)
	}
	return JudgementKey(h.Sum(nil)), nil
}

// buildEdit gathers what an edit is judged by: the tree and the targets without it
// and with it. why says for people that it can't be.
func (ga *Gatherer) buildEdit(ctx context.Context, c *branch.Basis, components []string, env, base string,
	edits []fieldedit.Edit) (out *isolation.Edit, why string, err error) {
	m, line := c.Snapshot.Repo.Mirror, c.Snapshot.BranchFor(c.Pipeline.Pipeline, env)
	after, err := CommitEdits(ctx, m, base, edits, "What an edit would change. No branch ever has this commit.")
	if err != nil {
		return nil, "", err
	}
	out = &isolation.Edit{Revision: base, FilesByTarget: map[string][]string{}}
	created, whole := false, false
	for _, e := range edits {
		out.Files = append(out.Files, e.File)
		created = created || e.Created || e.Deleted
	}
	for _, p := range c.Snapshot.Pipelines {
		whole = whole || isolation.ChangesGenerated(c.Snapshot.TargetsOn(line.Branch, p.TargetSet.Targets), out.Files, created)
		ix, err := p.ReaderIndexes[line.Branch].Get(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil, "", err
			}
			return nil, fmt.Sprintf("which targets read %s can't be told: %v", strings.Join(out.Files, ", "), err), nil
		}
		for id, files := range ix.AffectedReaders(out.Files) {
			out.FilesByTarget[id] = files
		}
	}
	mine := map[string]bool{} // by ID: whether an edit may change the target
	if out.Before, err = ga.resolveAt(ctx, c, components, env, branch.Head{Branch: line.Branch, Commit: base}, whole, mine); err != nil {
		return nil, "", err
	}
	for i := range out.Before.Targets { // what was another's doesn't become ours by the edit
		if id := out.Before.Targets[i].ID(); !mine[id] {
			mine[id] = false
		}
	}
	came := map[string]bool{}
	if out.After, err = ga.resolveAt(ctx, c, components, env, branch.Head{Branch: line.Branch, Commit: after}, whole, came); err != nil {
		return nil, "", err
	}
	out.MayChange = func(t *appset.Target) bool {
		if own, known := mine[t.ID()]; known {
			return own
		}
		return came[t.ID()]
	}
	return out, "", nil
}

// resolveAt is a branch at a commit with the targets as the branch sees them, whole
// manifests only when they are needed: then the resolver keeps none of them.
// Where it isn't the tracked branch, the ApplicationSets are the tracked one's.
// The IDs of those that belong to the environment of the components go into mine.
func (ga *Gatherer) resolveAt(ctx context.Context, c *branch.Basis, components []string, env string, at branch.Head, whole bool,
	mine map[string]bool) (isolation.Resolution, error) {
	w := isolation.ResolutionAt(c.Snapshot.Repo.Mirror.Tree, at.Commit, c.Snapshot.OtherCommits(at))
	sur := ga.targets.NewInputCollector(c.Snapshot.Repo)
	for _, p := range c.Snapshot.Pipelines {
		in, err := sur.InputWithBranch(ctx, p.Pipeline, c.Snapshot, at)
		if err != nil {
			return w, err
		}
		if in.Manifests = whole; whole {
			in.Revision = ""
		}
		fl, err := ga.targets.Resolver.Resolve(ctx, in)
		if err != nil {
			return w, err
		}
		for _, problem := range fl.Problems {
			w.Problems = append(w.Problems, problem.Text())
		}
		if len(fl.Problems) > 0 {
			fl = history.EffectiveTargets(fl, p.TargetSet, p.File)
		}
		w.Targets = append(w.Targets, c.Snapshot.TargetsOn(at.Branch, fl.Targets)...)
		if p.Name() != c.Pipeline.Name() {
			continue
		}
		for i := range fl.Targets {
			if t := &fl.Targets[i]; slices.Contains(components, t.Component) && t.Environment == env {
				mine[t.ID()] = true
			}
		}
	}
	return w, nil
}

// CommitEdits makes a commit of edits on another, in the mirror only. The same edits make
// the same commit, at the other's time.
func CommitEdits(ctx context.Context, m *git.Mirror, base string, edits []fieldedit.Edit, message string) (string, error) {
	info, err := m.Commit(ctx, base)
	if err != nil {
		return "", err
	}
	spec := EditsSpec(base, edits, message)
	spec.When = info.CommitTime
	return m.Write(ctx, spec)
}

// EditsSpec is a commit that makes edits on a base; its time and people are still to be said.
func EditsSpec(base string, edits []fieldedit.Edit, message string) git.CommitSpec {
	spec := git.CommitSpec{Parents: []string{base}, Base: base, Message: message}
	for _, e := range edits {
		spec.Files = append(spec.Files, git.FileWrite{Path: e.File, Mode: git.Mode(e.Mode), Content: e.After, Delete: e.Deleted})
	}
	return spec
}
