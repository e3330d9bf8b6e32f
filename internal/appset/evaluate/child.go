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
	"github.com/liftlock/liftlock/internal/sandbox"
)

// Task is the name of the child's handler.
const Task = "evaluate"

// slowSets is how many ApplicationSets may take all the time they have, one
// after the other, before the child's time is up: so a slow one is a problem
// by name, and the rest is told.
const slowSets = 3

// Handlers are what a child serves, by their names.
func Handlers(log *zap.Logger) map[string]sandbox.Handler {
	return map[string]sandbox.Handler{
		Task: func(ctx context.Context, trees sandbox.Trees, raw json.RawMessage) (any, error) {
			var s sent
			if err := json.Unmarshal(raw, &s); err != nil {
				return nil, fmt.Errorf("evaluating a tree: reading the input: %w", err)
			}
			o := appset.Options{Log: log}
			if deadline, ok := ctx.Deadline(); ok {
				o.Timeout = max(time.Until(deadline)/slowSets, time.Second).Truncate(100 * time.Millisecond)
			}
			in := s.input(trees)
			if s.On != "" {
				tree, err := borrower{trees: trees}.tree(ctx, lentEdited, s.On, s.Edited)
				if err != nil {
					return nil, err
				}
				in.On, in.Edited = s.On, appset.Elsewhere{Tree: tree, Commit: s.Edited}
			}
			w, err := Here(ctx, appset.New(o), trees.Main, in)
			if err != nil {
				return nil, err
			}
			return tell(w, in.Changed), nil
		},
	}
}

// InChild is [Here] in a child process, for trees that a stranger wrote. The
// error is the runner's: a [*sandbox.Error] for a tree that can't be evaluated
// within the limits, a [*sandbox.HandlerError] for an error of Here's.
func InChild(ctx context.Context, runner *sandbox.Runner, tree fs.FS, in Input) (*World, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	var t told
	l := &lender{in: &in, answers: map[string]*appset.Elsewhere{}}
	if err := runner.Run(ctx, Task, sandbox.Trees{Main: tree, Named: l.lend}, send(&in), &t); err != nil {
		return nil, err
	}
	w, err := t.world(&in)
	if err != nil {
		return nil, &sandbox.Error{Task: Task, Kind: sandbox.ErrAnswer, Text: err.Error()}
	}
	return w, nil
}

// sent is an Input on its way to a child.
type sent struct {
	Pipelines []sentPipeline
	Changed   [][]byte // paths need not be UTF-8, which JSON's strings are
	Revision  string
	Branch    string
	RepoURLs  []string
	On        string // and Edited, the commit: its tree is borrowed
	Edited    string

	Clusters  []appset.Cluster
	Projects  []string
	Globbing  string
	ArgoCDs   map[string]appset.ArgoCD
	Main      string
	Live      *sentLive // nil: no connection
	Other     bool
	Manifests bool
}

// sentPipeline is what a pipeline says about targets: its environments come
// without their gates and times.
type sentPipeline struct {
	File     string
	Pipeline pipeline.Pipeline
}

type sentLive struct {
	Sets                   []appset.LiveSet
	Unknown                map[string]string
	Applications, Selected bool
}

func send(in *Input) *sent {
	s := &sent{
		Pipelines: make([]sentPipeline, len(in.Pipelines)), Changed: make([][]byte, len(in.Changed)),
		Revision: in.Revision, Branch: in.Branch, RepoURLs: in.RepoURLs, On: in.On, Edited: in.Edited.Commit,
		Clusters: in.Clusters, Projects: in.Projects, Globbing: in.Globbing, ArgoCDs: in.offline(), Main: in.Main,
		Other: in.Other != nil, Manifests: in.Manifests,
	}
	for i, p := range in.Pipelines {
		own := *p
		own.Spec.Environments = slices.Clone(p.Spec.Environments)
		for j, e := range own.Spec.Environments {
			own.Spec.Environments[j] = pipeline.Environment{Name: e.Name, After: e.After, Branch: e.Branch}
		}
		s.Pipelines[i] = sentPipeline{File: p.File, Pipeline: own}
	}
	for i, path := range in.Changed {
		s.Changed[i] = []byte(path)
	}
	if in.Live != nil {
		s.Live = &sentLive{Sets: in.Live.Sets, Unknown: in.Live.Unknown, Applications: in.Live.Applications != nil, Selected: in.Live.Selected != nil}
	}
	return s
}

// input is the Input as the child has it; what it could ask a function for it
// borrows from the parent.
func (s *sent) input(trees sandbox.Trees) Input {
	in := Input{
		Revision: s.Revision, Branch: s.Branch, RepoURLs: s.RepoURLs,
		Clusters: s.Clusters, Projects: s.Projects, Globbing: s.Globbing, ArgoCDs: s.ArgoCDs, Main: s.Main, Manifests: s.Manifests,
	}
	for i := range s.Pipelines {
		p := &s.Pipelines[i].Pipeline
		p.File = s.Pipelines[i].File
		in.Pipelines = append(in.Pipelines, p)
	}
	for _, path := range s.Changed {
		in.Changed = append(in.Changed, string(path))
	}
	b := borrower{trees: trees}
	if s.Other {
		in.Other = b.other
	}
	if s.Live != nil {
		in.Live = &appset.Live{Sets: s.Live.Sets, Unknown: s.Live.Unknown}
		if s.Live.Applications {
			in.Live.Applications = b.applications
		}
		if s.Live.Selected {
			in.Live.Selected = b.selected
		}
	}
	return in
}

// told is a World on its way back. Paths that changed are told by their
// numbers: the parent knows them, and no other can be made up.
type told struct {
	Pipelines map[string]*toldPipeline
}

type toldPipeline struct {
	Fleet   *appset.Fleet
	Touched map[string][]int
	Doubts  []deps.Problem
}

func tell(w *World, changed []string) *told {
	numbers := make(map[string]int, len(changed))
	for i, path := range changed {
		numbers[path] = i
	}
	t := &told{Pipelines: make(map[string]*toldPipeline, len(w.Pipelines))}
	for name, p := range w.Pipelines {
		touched := make(map[string][]int, len(p.Touched))
		for id, paths := range p.Touched {
			for _, path := range paths {
				touched[id] = append(touched[id], numbers[path])
			}
		}
		t.Pipelines[name] = &toldPipeline{Fleet: p.Fleet, Touched: touched, Doubts: p.Doubts}
	}
	return t
}

// world is what was told, where it can be meant: the pipelines that were asked
// for, targets that are there, paths that changed.
func (t *told) world(in *Input) (*World, error) {
	w := &World{Pipelines: make(map[string]*Pipeline, len(in.Pipelines))}
	for _, asked := range in.Pipelines {
		p := t.Pipelines[asked.Name()]
		if p == nil || p.Fleet == nil {
			return nil, fmt.Errorf("its answer lacks the pipeline %s", asked.Name())
		}
		out := &Pipeline{Fleet: p.Fleet, Touched: make(map[string][]string, len(p.Touched)), Doubts: p.Doubts}
		if out.Fleet.Targets == nil {
			out.Fleet.Targets = []appset.Target{}
		}
		if out.Doubts == nil {
			out.Doubts = []deps.Problem{}
		}
		ids := make(map[string]bool, len(p.Fleet.Targets))
		for i := range p.Fleet.Targets {
			target := &p.Fleet.Targets[i]
			if target.Managed() && asked.Spec.EnvironmentByName(target.Environment) == nil {
				return nil, fmt.Errorf("its answer has a target in environment %q, which pipeline %s lacks", cut(target.Environment), asked.Name())
			}
			ids[target.ID()] = true
		}
		for id, numbers := range p.Touched {
			if !ids[id] {
				return nil, fmt.Errorf("its answer touches %q, which is no target", cut(id))
			}
			for _, n := range numbers {
				if n < 0 || n >= len(in.Changed) {
					return nil, fmt.Errorf("its answer names path %d of %d", n, len(in.Changed))
				}
				out.Touched[id] = append(out.Touched[id], in.Changed[n])
			}
		}
		w.Pipelines[asked.Name()] = out
	}
	return w, nil
}

// cut keeps the beginning of what a child made up.
func cut(s string) string { return s[:min(len(s), 80)] }
