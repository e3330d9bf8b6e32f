package facts

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/pipeline"
)

const (
	// maxRendered is about how many bytes of manifests are remembered.
	maxRendered = 128 << 20
	// maxJudged bounds the memory of what edits do; past it, it starts anew.
	maxJudged = 500
	// judgeTime bounds the rendering for one edit: a base that a thousand
	// targets share takes seconds.
	judgeTime = 30 * time.Second
	// firstAgain is how long after it ran out of time an edit is judged again, and
	// lastAgain how long at most: the machine may have been busy, or the edit is
	// more than it can do, and every try costs its time.
	firstAgain = time.Minute
	lastAgain  = time.Hour
)

// judgedKey is everything that what an edit does depends on.
type judgedKey [sha256.Size]byte

// judged is what is known of an edit of one environment of a component. Errors
// are not kept, but running out of time is, for a while.
type judged struct {
	outside *string // why it must not be made; nil: not asked yet
	effects []isolation.Effect
	told    bool // effects were asked for
	why     string

	outsideLate, effectsLate late
}

// late is an answer that ran out of time. The zero value is one in time.
type late struct {
	tries int
	again time.Time // when it is asked for again
}

// onceMore is what it is after another try that ran out of time.
func (l late) onceMore(now time.Time) late {
	wait := lastAgain
	if l.tries < 6 { // 1, 2, 4 … 32 minutes
		wait = firstAgain << l.tries
	}
	return late{tries: l.tries + 1, again: now.Add(wait)}
}

// due says that what is known isn't to be used any more.
func (l late) due(now time.Time) bool { return l.tries > 0 && !now.Before(l.again) }

// waits notes in the case when something that ran out of time is asked for again.
func (c *Case) waits(l late) {
	if l.tries > 0 && c.again != nil && (c.again.IsZero() || l.again.Before(*c.again)) {
		*c.again = l.again
	}
}

// Again is when a fact that ran out of time is asked for again, also one of the
// others that were looked at with it; zero: none did.
func (c *Case) Again() time.Time {
	if c.again == nil {
		return time.Time{}
	}
	return *c.again
}

// inTime is a context for judging an edit.
func (o *Observer) inTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.o.JudgeTime != nil {
		return context.WithTimeout(ctx, o.o.JudgeTime())
	}
	return context.WithTimeout(ctx, judgeTime)
}

// outOfTime says that judging failed because its time was over, not its caller's.
func outOfTime(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded)
}

// Outside says why edits on a commit, for an environment of the case's
// component or components, must not be made: which targets outside it they change. "" is the
// proof that there are none.
func (o *Observer) Outside(ctx context.Context, c *Case, env, base string, edits []fieldedit.Edit) (string, error) {
	for _, e := range edits {
		if pipeline.IsPipelinePath(e.File) {
			return fmt.Sprintf("%s is the pipeline's own file: a promotion never changes the rules", e.File), nil
		}
	}
	key, err := judgedBy(ctx, c, env, base, edits)
	if err != nil {
		return "", err
	}
	known := o.judgedOf(key)
	if known.outside != nil && !known.outsideLate.due(o.o.Now()) {
		c.waits(known.outsideLate)
		return *known.outside, nil
	}
	short, cancel := o.inTime(ctx)
	defer cancel()
	edit, why, err := o.edit(short, c, env, base, edits)
	if err == nil && why == "" {
		if why, err = o.renderer.Outside(short, edit); why != "" {
			why += "; a promotion may only edit what no target outside " + env + " depends on"
		}
	}
	var l late
	if outOfTime(ctx, err) {
		l = known.outsideLate.onceMore(o.o.Now())
		why, err = fmt.Sprintf("that no target outside %s depends on it could not be shown within %s; it is tried again, within the hour at the latest", env, judgeTime), nil
	}
	if err != nil {
		return "", err
	}
	o.judge(key, func(j *judged) { j.outside, j.outsideLate = &why, l })
	c.waits(l)
	return why, nil
}

// Effects says what edits on a commit do to the targets of an environment of
// the case's component. An error says for people why that can't be told; then
// and only then there are no effects.
func (o *Observer) Effects(ctx context.Context, c *Case, env, base string, edits []fieldedit.Edit) ([]isolation.Effect, error) {
	if len(edits) == 0 || base == "" {
		return nil, errors.New("its head is not what Liftlock composed")
	}
	key, err := judgedBy(ctx, c, env, base, edits)
	if err != nil {
		return nil, err
	}
	known := o.judgedOf(key)
	if !known.told || known.effectsLate.due(o.o.Now()) {
		short, cancel := o.inTime(ctx)
		defer cancel()
		known.effects = nil
		var edit *isolation.Edit
		edit, known.why, err = o.edit(short, c, env, base, edits)
		if err == nil && known.why == "" {
			known.effects, err = o.renderer.Effects(short, edit)
		}
		var l late
		if outOfTime(ctx, err) {
			l = known.effectsLate.onceMore(o.o.Now())
			known.effects, known.why, err = nil, fmt.Sprintf("rendering took longer than %s; it is tried again, within the hour at the latest", judgeTime), nil
		}
		if err != nil {
			return nil, err
		}
		known.effectsLate = l
		o.judge(key, func(j *judged) { j.told, j.effects, j.why, j.effectsLate = true, known.effects, known.why, l })
	}
	c.waits(known.effectsLate)
	if known.why != "" {
		return nil, errors.New(known.why)
	}
	return known.effects, nil
}

func (o *Observer) judgedOf(key judgedKey) judged {
	o.mu.Lock()
	defer o.mu.Unlock()
	if j := o.judged[key]; j != nil {
		return *j
	}
	return judged{}
}

func (o *Observer) judge(key judgedKey, note func(*judged)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	j := o.judged[key]
	if j == nil {
		if len(o.judged) >= maxJudged {
			clear(o.judged)
		}
		j = &judged{}
		o.judged[key] = j
	}
	note(j)
}

// judgedBy writes down what an edit's effect depends on: the files, not the
// commit that has them; the rules; and what of the world isn't in Git.
func judgedBy(ctx context.Context, c *Case, env, base string, edits []fieldedit.Edit) (judgedKey, error) {
	tree, err := c.Snapshot.Repo.Mirror.TreeHash(ctx, base, "")
	if err != nil {
		return judgedKey{}, err
	}
	var rules []*pipeline.Pipeline
	for _, p := range c.Snapshot.Pipelines {
		rules = append(rules, p.Pipeline)
	}
	raw, err := json.Marshal([]any{c.Facts.Unit, c.insiders, env, tree, c.Snapshot.Turn, rules, c.Snapshot.besides(c.Snapshot.Line(c.Pipeline.Pipeline, env))})
	if err != nil {
		return judgedKey{}, fmt.Errorf("write down what an edit is judged by: %w", err)
	}
	h := sha256.New()
	h.Write(raw)
	for _, e := range edits {
		fmt.Fprintf(h, "%q %o %t %d:", e.File, e.Mode, e.Deleted, len(e.After))
		h.Write(e.After)
	}
	return judgedKey(h.Sum(nil)), nil
}

// edit gathers what an edit is judged by: the tree and the targets without it
// and with it. why says for people that it can't be.
func (o *Observer) edit(ctx context.Context, c *Case, env, base string, edits []fieldedit.Edit) (out *isolation.Edit, why string, err error) {
	m, line := c.Snapshot.Repo.Mirror, c.Snapshot.Line(c.Pipeline.Pipeline, env)
	after, err := WriteEdits(ctx, m, base, edits, "What an edit would change. No branch ever has this commit.")
	if err != nil {
		return nil, "", err
	}
	out = &isolation.Edit{Revision: base, Touched: map[string][]string{}}
	created, whole := false, false
	for _, e := range edits {
		out.Files = append(out.Files, e.File)
		created = created || e.Created || e.Deleted
	}
	for _, p := range c.Snapshot.Pipelines {
		whole = whole || isolation.Generates(c.Snapshot.on(line.Branch, p.Fleet.Targets), out.Files, created)
		ix, err := p.indexes[line.Branch].get(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil, "", err
			}
			return nil, fmt.Sprintf("which targets read %s can't be told: %v", strings.Join(out.Files, ", "), err), nil
		}
		for id, files := range ix.AffectedReaders(out.Files) {
			out.Touched[id] = files
		}
	}
	mine := map[string]bool{} // by ID: whether an edit may change the target
	if out.Before, err = o.world(ctx, c, env, Line{line.Branch, base}, whole, mine); err != nil {
		return nil, "", err
	}
	for i := range out.Before.Targets { // what was another's doesn't become ours by the edit
		if id := out.Before.Targets[i].ID(); !mine[id] {
			mine[id] = false
		}
	}
	came := map[string]bool{}
	if out.After, err = o.world(ctx, c, env, Line{line.Branch, after}, whole, came); err != nil {
		return nil, "", err
	}
	out.Inside = func(t *appset.Target) bool {
		if own, known := mine[t.ID()]; known {
			return own
		}
		return came[t.ID()]
	}
	return out, "", nil
}

// world is a branch at a commit with the targets as the branch sees them, whole
// manifests only when they are asked for: then the resolver keeps none of them.
// Where it isn't the tracked branch, the ApplicationSets are the tracked one's.
// The IDs of those that belong to the environment of the case's component go into mine.
func (o *Observer) world(ctx context.Context, c *Case, env string, at Line, whole bool, mine map[string]bool) (isolation.World, error) {
	tree := c.Snapshot.Repo.Mirror.Tree(at.Commit)
	w := isolation.World{Tree: tree, ID: tree.Identity, Others: map[string]render.Tree{}}
	for _, l := range c.Snapshot.besides(at) {
		if l.Commit != "" {
			other := c.Snapshot.Repo.Mirror.Tree(l.Commit)
			w.Others[l.Branch] = render.Tree{FS: other, ID: other.Identity}
		}
	}
	sur := o.surroundings(c.Snapshot.Repo)
	for _, p := range c.Snapshot.Pipelines {
		in, err := sur.inputOn(ctx, p.Pipeline, c.Snapshot, at)
		if err != nil {
			return w, err
		}
		if in.Manifests = whole; whole {
			in.Revision = ""
		}
		fl, err := o.o.Resolver.Resolve(ctx, in)
		if err != nil {
			return w, err
		}
		for _, problem := range fl.Problems {
			w.Problems = append(w.Problems, history.ProblemText(problem))
		}
		if len(fl.Problems) > 0 {
			fl = history.InForce(fl, p.Fleet, p.File)
		}
		w.Targets = append(w.Targets, c.Snapshot.on(at.Branch, fl.Targets)...)
		if p.Name() != c.Pipeline.Name() {
			continue
		}
		for i := range fl.Targets {
			if t := &fl.Targets[i]; c.Moves(t.Component) && t.Environment == env {
				mine[t.ID()] = true
			}
		}
	}
	return w, nil
}

// WriteEdits makes a commit of edits on another, in the mirror only. The same edits make
// the same commit, at the other's time.
func WriteEdits(ctx context.Context, m *git.Mirror, base string, edits []fieldedit.Edit, message string) (string, error) {
	info, err := m.Commit(ctx, base)
	if err != nil {
		return "", err
	}
	spec := git.CommitSpec{Parents: []string{base}, Base: base, Message: message, When: info.CommitTime}
	for _, e := range edits {
		spec.Files = append(spec.Files, git.FileWrite{Path: e.File, Mode: git.Mode(e.Mode), Content: e.After, Delete: e.Deleted})
	}
	return m.Write(ctx, spec)
}
