package evaluate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
)

const (
	// PoolArgument is the argument after Command that makes our program a worker that lives
	// on: it calls [sandbox.ServeBatches] with [ItemHandlers].
	PoolArgument = "batches"
	// targetTask renders one target.
	targetTask = "render target"
	// renderBatch is how many targets are rendered in one batch: others wait so long at most.
	renderBatch = 32
	// minRenderBatch is how many are not worth a second worker.
	minRenderBatch = 8
)

// The limits of one target's rendering.
const (
	// renderMemory is a worker's. Two of them and two that evaluate heads leave a server with
	// 2 GiB some room.
	renderMemory = 384 << 20
	// renderCPU is CPU time: what a target of 20,000 objects takes, several times.
	renderCPU = 10 * time.Second
	// renderTime is until a worker is taken for stuck. It is longer than renderCPU, which a
	// busy machine may not give it, and within the time that an edit has.
	renderTime = 20 * time.Second
	// renderAnswer bounds what is said of one target: its manifests, and what it read.
	renderAnswer = 72 << 20
)

// NewPool makes a pool whose workers are this very program. memory is what each may take;
// 0: 384 MiB.
func NewPool(memory uint64, log *zap.Logger) (*sandbox.Pool, error) {
	program, err := OwnProgram()
	if err != nil {
		return nil, err
	}
	return sandbox.NewPool(sandbox.PoolOptions{Program: program, Args: []string{Command, PoolArgument}, Log: log,
		Limits: sandbox.Limits{Memory: cmp.Or(memory, renderMemory), CPU: renderCPU, Time: renderTime, Answer: renderAnswer}}), nil
}

// ItemHandlers are what a worker that lives on serves, by their names.
func ItemHandlers() map[string]sandbox.ItemHandler {
	return map[string]sandbox.ItemHandler{targetTask: handleTarget}
}

// PoolRenderer renders in a pool's workers: what a chart does to its process is the trouble of
// its own target. It is safe for concurrent use.
type PoolRenderer struct{ Pool *sandbox.Pool }

var _ render.Renderer = PoolRenderer{}

// targetItem is a rendering on its way to a worker.
type targetItem struct {
	Input    render.Input
	Tree     string            // its identity
	Branches map[string]string // likewise
	// Revisions are what externals among Branches are at.
	Revisions map[string]string `json:",omitempty"`
}

// RenderAll renders the jobs in batches, as many at once as there are workers.
func (p PoolRenderer) RenderAll(ctx context.Context, jobs []render.Job) ([]render.Outcome, error) {
	out := make([]render.Outcome, len(jobs))
	size := min(renderBatch, max(minRenderBatch, (len(jobs)+p.Pool.Workers()-1)/p.Pool.Workers()))
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(p.Pool.Workers())
	for at := 0; at < len(jobs); at += size {
		end := min(at+size, len(jobs))
		group.Go(func() error { return p.renderBatch(limited, jobs[at:end], out[at:end]) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

func (p PoolRenderer) renderBatch(ctx context.Context, jobs []render.Job, out []render.Outcome) error {
	b := sandbox.Batch{Task: targetTask, Trees: map[string]sandbox.ContentTree{}}
	for i := range jobs {
		item, err := addTarget(&jobs[i], b.Trees)
		if err != nil {
			return fmt.Errorf("rendering %s: %w", jobs[i].Input.Application, err)
		}
		b.Items = append(b.Items, item)
	}
	var again error
	b.Answer = func(i int, said []byte, err error) {
		if err == nil {
			if out[i], err = readOutcome(said); err != nil {
				err = &sandbox.Error{Task: targetTask, Kind: sandbox.ErrAnswer, Text: err.Error()}
			}
		}
		if err == nil {
			return
		}
		out[i] = render.Outcome{Err: explainDeath(&jobs[i].Input, err)}
		if again == nil && mayBeTheMachine(err) {
			again = fmt.Errorf("%w: %w", out[i].Err, context.DeadlineExceeded)
		}
	}
	if err := p.Pool.Run(ctx, b); err != nil {
		return err
	}
	return again
}

// mayBeTheMachine says that a worker's end need not have to do with its work. It was ended from
// outside, again and again, or the machine has no time for it.
func mayBeTheMachine(err error) bool {
	return errors.Is(err, sandbox.ErrEndedOutside) || errors.Is(err, sandbox.ErrTime)
}

// explainDeath says for people what a rendering's process died of.
func explainDeath(in *render.Input, err error) error {
	path := in.Application
	if len(in.Sources) == 1 && in.Sources[0].Path != "" {
		path = in.Sources[0].Path
	}
	var died *sandbox.Error
	if errors.As(err, &died) {
		return &render.Died{Source: path, Cause: died.Text}
	}
	return fmt.Errorf("rendering %s: %w", path, err)
}

// addTarget writes a job down, and its trees into the batch's.
func addTarget(j *render.Job, trees map[string]sandbox.ContentTree) ([]byte, error) {
	item := targetItem{Input: j.Input, Branches: map[string]string{}, Revisions: map[string]string{}}
	add := func(t render.Tree) (string, error) {
		root, err := t.ID(".")
		if err != nil {
			return "", fmt.Errorf("identifying the tree: %w", err)
		}
		trees[root] = sandbox.ContentTree{FS: t.FS, Identity: t.ID}
		return root, nil
	}
	var err error
	if item.Tree, err = add(j.Tree); err != nil {
		return nil, err
	}
	for branch, t := range j.Input.Branches {
		if item.Branches[branch], err = add(t); err != nil {
			return nil, err
		}
		if t.Revision != "" {
			item.Revisions[branch] = t.Revision
		}
	}
	return json.Marshal(item)
}

// handleTarget is the worker's side of PoolRenderer.
func handleTarget(ctx context.Context, tree func(root string) fs.FS, raw []byte) ([]byte, error) {
	var item targetItem
	if err := json.Unmarshal(raw, &item); err != nil {
		return nil, fmt.Errorf("rendering a target: reading the input: %w", err)
	}
	in := item.Input
	in.Branches = make(map[string]render.Tree, len(item.Branches))
	for branch, root := range item.Branches {
		in.Branches[branch] = render.Tree{FS: tree(root), Revision: item.Revisions[branch]}
	}
	m, err := render.Render(ctx, tree(item.Tree), in)
	return appendOutcome(nil, m, err), nil
}
