package evaluate

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/manifest/deps"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
	"github.com/liftlock/liftlock/internal/wording"
)

// Task is the name of the worker's handler that evaluates.
const Task = "evaluate"

// slowSets is how many ApplicationSets, one after the other, may use up all the time of a set
// before the worker's time is up. So a slow set is a problem by name, and the worker answers the
// rest.
const slowSets = 3

// Handlers are what a worker serves, by their names.
func Handlers(log *zap.Logger) map[string]sandbox.Handler {
	return map[string]sandbox.Handler{
		Task: func(ctx context.Context, trees sandbox.Trees, raw json.RawMessage) (any, error) {
			var s workerRequest
			if err := json.Unmarshal(raw, &s); err != nil {
				return nil, fmt.Errorf("evaluating a tree: reading the input: %w", err)
			}
			o := appset.Options{Log: log}
			if deadline, ok := ctx.Deadline(); ok {
				o.Timeout = max(time.Until(deadline)/slowSets, time.Second).Truncate(100 * time.Millisecond)
			}
			in, err := s.toInput(ctx, trees)
			if err != nil {
				return nil, err
			}
			w, err := InProcess(ctx, appset.New(o), trees.Main, in)
			if err != nil {
				return nil, err
			}
			return newWorkerReply(w, in.Changed), nil
		},
		RenderTask:    handleRender,
		PipelinesTask: checkPipelines,
		chartTask:     handleChartIndex,
	}
}

// InWorker is [InProcess] in a worker process, for trees that a stranger wrote. The
// error is the runner's: a [*sandbox.Error] for a tree that can't be evaluated
// within the limits, a [*sandbox.HandlerError] for an error of InProcess's.
func InWorker(ctx context.Context, runner *sandbox.Runner, tree fs.FS, in Input) (*Resolution, error) {
	if err := in.checkValid(); err != nil {
		return nil, err
	}
	var t workerReply
	in.Live = in.limitedLive()
	l := &fileServer{in: &in, externals: map[string]*appset.ExternalRef{}}
	if err := runner.Run(ctx, Task, sandbox.Trees{Main: tree, Named: l.serveTree}, newWorkerRequest(&in), &t); err != nil {
		return nil, err
	}
	w, err := t.toResolution(&in)
	if err != nil {
		return nil, &sandbox.Error{Task: Task, Kind: sandbox.ErrAnswer, Text: err.Error()}
	}
	return w, nil
}

// workerRequest is an Input on its way to a worker, which gets what can't be
// written down from its parent.
type workerRequest struct {
	Input
	Files         []string // of the pipelines, in their order
	Changed       [][]byte // paths need not be UTF-8, which JSON's strings are
	Edited        string   // the commit
	Live          *requestLive
	OpensExternal bool
}

type requestLive struct {
	Sets                   []appset.LiveSet
	Unknown                map[string]string
	Applications, Selected bool
}

func newWorkerRequest(in *Input) *workerRequest {
	s := &workerRequest{Input: *in, Changed: make([][]byte, len(in.Changed)), Edited: in.Edited.Commit,
		OpensExternal: in.OpenExternal != nil}
	own := in.Scope.LimitArgoCD(in.Main, appset.ArgoCD{Clusters: in.Clusters, Projects: in.Projects})
	s.Clusters, s.Projects = own.Clusters, own.Projects
	s.ArgoCDs, s.Pipelines = in.offlineArgoCDs(), make([]*pipeline.Pipeline, len(in.Pipelines))
	for i, p := range in.Pipelines {
		own := *p // its environments come without their gates and times
		own.Spec.Environments = slices.Clone(p.Spec.Environments)
		for j, e := range own.Spec.Environments {
			own.Spec.Environments[j] = pipeline.Environment{Name: e.Name, After: e.After, Branch: e.Branch}
		}
		s.Pipelines[i], s.Files = &own, append(s.Files, p.File)
	}
	for i, path := range in.Changed {
		s.Changed[i] = []byte(path)
	}
	if in.Live != nil {
		s.Live = &requestLive{Sets: in.Live.Sets, Unknown: in.Live.Unknown, Applications: in.Live.Applications != nil,
			Selected: in.Live.Selected != nil}
	}
	return s
}

// toInput is the Input as the worker has it.
func (w *workerRequest) toInput(ctx context.Context, trees sandbox.Trees) (Input, error) {
	in, client := w.Input, fileClient{trees}
	for i, p := range in.Pipelines {
		p.File = w.Files[i]
	}
	for _, path := range w.Changed {
		in.Changed = append(in.Changed, string(path))
	}
	in.Build = BuildInProcess() // this process is the one that may die of it
	if w.OpensExternal {
		in.OpenExternal = client.openExternal
	}
	if w.Live != nil {
		in.Live = &appset.Live{Sets: w.Live.Sets, Unknown: w.Live.Unknown,
			Applications: client.lister(servedApplications, w.Live.Applications), Selected: client.lister(servedSelected, w.Live.Selected)}
	}
	if w.On == "" {
		return in, nil
	}
	tree, err := client.fetchTree(ctx, servedEdited, w.On, w.Edited)
	in.Edited = appset.ExternalRef{Tree: tree, Commit: w.Edited}
	return in, err
}

// workerReply is a Resolution on its way back. Paths that changed are given by their
// numbers: the parent knows them, and no other can be made up.
type workerReply struct {
	Pipelines map[string]*replyPipeline
}

type replyPipeline struct {
	TargetSet    *appset.TargetSet
	ChangedFiles map[string][]int
	Doubts       []deps.Problem
}

func newWorkerReply(w *Resolution, changed []string) *workerReply {
	numbers := make(map[string]int, len(changed))
	for i, path := range changed {
		numbers[path] = i
	}
	t := &workerReply{Pipelines: make(map[string]*replyPipeline, len(w.Pipelines))}
	for name, p := range w.Pipelines {
		changedFiles := make(map[string][]int, len(p.ChangedFiles))
		for id, paths := range p.ChangedFiles {
			for _, path := range paths {
				changedFiles[id] = append(changedFiles[id], numbers[path])
			}
		}
		t.Pipelines[name] = &replyPipeline{TargetSet: p.TargetSet, ChangedFiles: changedFiles, Doubts: p.Doubts}
	}
	return t
}

// toResolution is the reply, where it can be meant: the pipelines that were requested,
// targets that are there, paths that changed.
func (wr *workerReply) toResolution(in *Input) (*Resolution, error) {
	w := &Resolution{Pipelines: make(map[string]*Pipeline, len(in.Pipelines))}
	for _, requested := range in.Pipelines {
		p := wr.Pipelines[requested.Name()]
		if p == nil || p.TargetSet == nil {
			return nil, fmt.Errorf("its answer lacks the pipeline %s", requested.Name())
		}
		out := &Pipeline{TargetSet: p.TargetSet, ChangedFiles: make(map[string][]string, len(p.ChangedFiles)), Doubts: p.Doubts}
		if out.TargetSet.Targets == nil {
			out.TargetSet.Targets = []appset.Target{}
		}
		if out.Doubts == nil {
			out.Doubts = []deps.Problem{}
		}
		ids := make(map[string]bool, len(p.TargetSet.Targets))
		for i := range p.TargetSet.Targets {
			target := &p.TargetSet.Targets[i]
			if target.Managed() && requested.Spec.EnvironmentByName(target.Environment) == nil {
				return nil, fmt.Errorf("its answer has a target in environment %q, which pipeline %s lacks",
					wording.Clip(target.Environment, 80), requested.Name())
			}
			ids[target.ID()] = true
		}
		for id, numbers := range p.ChangedFiles {
			if !ids[id] {
				return nil, fmt.Errorf("its answer touches %q, which is no target", wording.Clip(id, 80))
			}
			for _, n := range numbers {
				if n < 0 || n >= len(in.Changed) {
					return nil, fmt.Errorf("its answer names path %d of %d", n, len(in.Changed))
				}
				out.ChangedFiles[id] = append(out.ChangedFiles[id], in.Changed[n])
			}
		}
		w.Pipelines[requested.Name()] = out
	}
	return w, nil
}
