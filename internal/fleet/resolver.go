package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// Input is what a pipeline's targets at one commit depend on.
type Input struct {
	Pipeline *pipeline.Pipeline
	Tree     fs.FS    // the commit's files
	Revision string   // the commit, in full; empty: not a commit, nothing is kept
	Branch   string   // the branch it is the head of: what generators' `revision` may say besides HEAD
	RepoURLs []string // how manifests may name this repository

	// Clusters are all that the Argo CD knows; the in-cluster one is added
	// if it isn't among them. nil: not known. Then destinations are not
	// checked, and sets that ask for clusters are a problem.
	Clusters []Cluster
	// Projects are the names of all AppProjects; nil: not known, not checked.
	Projects []string
	// Globbing is how the controller matches git file generators' paths;
	// empty means GlobbingGit, its default.
	Globbing string
	// ArgoCDs are the Argo CDs of which other things are known than the three
	// fields above say, by the name that the pipeline's entries use. Those that
	// are not here are as the fields above say.
	ArgoCDs map[string]ArgoCD
	// Main is the name of the Argo CD that an entry without one means.
	Main string
	// Live is what is known of the running Argo CDs' objects; nil: no connection.
	Live *Live
	// Generators are those that ask the network and may.
	Generators Generators
	// Other gives other repositories and revisions to git generators. It names
	// what it refuses in its error; nil refuses all.
	Other func(ctx context.Context, repoURL, revision string) (*Elsewhere, error)
	// Manifests asks for Target.Application.
	Manifests bool
}

// Options of a Resolver. The zero value is usable.
type Options struct {
	Log     *zap.Logger      // default: none
	Timeout time.Duration    // for one ApplicationSet; default one minute
	Keep    int              // how many fleets are kept by what they were resolved from; default 32
	Now     func() time.Time // the clock of what the network said; default time.Now
}

const (
	defaultTimeout = time.Minute
	defaultKeep    = 32
)

// Resolver resolves ApplicationSets. It is safe for concurrent use.
type Resolver struct {
	log     *zap.Logger
	timeout time.Duration
	// slots bound the generators that run at once. The library can't be
	// interrupted, so one that runs past its time keeps its slot until it
	// ends: a bomb costs a slot, not the process.
	slots   chan struct{}
	kept    *keep
	replies *replies
}

// New makes a resolver. The first one of a process takes the generator
// library's log over: it goes to that resolver's log, at debug level.
func New(o Options) *Resolver {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Keep <= 0 {
		o.Keep = defaultKeep
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	quietLibrary(o.Log)
	return &Resolver{
		log: o.Log, timeout: o.Timeout,
		slots:   make(chan struct{}, max(2, runtime.GOMAXPROCS(0))),
		kept:    newKeep(o.Keep),
		replies: newReplies(o.Now),
	}
}

// Resolve turns the pipeline's ApplicationSets at a commit into targets. What
// is wrong with the files is in the fleet's problems; the error is for what
// is wrong with the call, and for a context that ended. The fleet is shared
// with later callers: read it, don't change it.
func (r *Resolver) Resolve(ctx context.Context, in Input) (*Fleet, error) {
	if in.Pipeline == nil || in.Tree == nil {
		return nil, errors.New("resolving ApplicationSets: a pipeline and a tree are needed")
	}
	switch in.Globbing {
	case "":
		in.Globbing = GlobbingGit
	case GlobbingGit, GlobbingDoublestar:
	default:
		return nil, fmt.Errorf("resolving ApplicationSets: globbing is %q, wanted %s or %s", in.Globbing, GlobbingGit, GlobbingDoublestar)
	}
	key, err := in.key()
	if err != nil {
		return nil, err
	}
	if f := r.kept.get(key); f != nil && f.still(ctx, in.Other) {
		return f, nil
	}
	f, passing, err := r.resolve(ctx, &in)
	if err != nil {
		return nil, err
	}
	if !passing {
		r.kept.put(key, f)
	}
	return f, nil
}

// outcome is what became of one set.
type outcome struct {
	targets  []Target
	problems []Problem
	notes    []Problem
	failed   bool          // there are no targets because of the problems
	passing  bool          // another try may answer differently
	refresh  time.Duration // when it may, if that is known
}

func (r *Resolver) resolve(ctx context.Context, in *Input) (f *Fleet, passing bool, err error) {
	sets, problems, passing := findSets(in)
	entries, plain, wrong := newEntries(in.Pipeline)
	problems = append(problems, wrong...)
	snaps := newSnapshots(in)
	c := &commit{tree: in.Tree, urls: in.RepoURLs, revision: in.Revision, branch: in.Branch, other: in.Other}

	outcomes := make([]outcome, len(sets)+len(plain))
	var wg sync.WaitGroup
	for i := range sets {
		wg.Add(1)
		go func() {
			defer wg.Done()
			e := &entries[sets[i].entry]
			outcomes[i] = r.one(ctx, in, &sets[i], e, c, snaps[e.argocd])
		}()
	}
	for i := range plain {
		wg.Add(1)
		go func() {
			defer wg.Done()
			outcomes[len(sets)+i] = r.plain(ctx, in, i, &plain[i], c)
		}()
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, false, fmt.Errorf("resolving the ApplicationSets of pipeline %s: %w", in.Pipeline.Name(), ctx.Err())
	}
	f = &Fleet{Targets: []Target{}, Problems: problems, answers: c.answers()}
	for i := range sets {
		s := &sets[i]
		f.sets = append(f.sets, knownSet{
			argocd: entries[s.entry].argocd, namespace: s.spec.Namespace, name: s.spec.Name, file: s.file,
			policy: s.policy, resolved: !outcomes[i].failed,
		})
	}
	for _, o := range outcomes {
		f.Targets = append(f.Targets, o.targets...)
		f.Problems = append(f.Problems, o.problems...)
		f.Notes = append(f.Notes, o.notes...)
		f.RefreshAfter = sooner(f.RefreshAfter, o.refresh)
		passing = passing || o.passing
	}
	f.finish()
	return f, passing, nil
}

// errSlow marks a set that ran out of time, which may be the machine's fault.
var errSlow = errors.New("not resolved in time")

// one resolves one set within its time.
func (r *Resolver) one(ctx context.Context, in *Input, s *set, e *entry, c *commit, snap *snapshot) outcome {
	fail := func(err error) outcome {
		return outcome{
			failed:   true,
			problems: []Problem{{File: s.file, ApplicationSet: s.spec.Name, Message: err.Error()}},
			passing:  errors.Is(err, errTree) || errors.Is(err, errSlow),
		}
	}
	slow := fmt.Errorf("%w: it took longer than %s; look for a template or a generator that grows without bound", errSlow, r.timeout)
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	if s.unknown != nil {
		return r.running(ctx, in, s, e, c, snap)
	}
	if err := snap.allows(&s.spec); err != nil {
		return fail(err)
	}
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return fail(fmt.Errorf("%w: no room to resolve it within %s, because other ApplicationSets take too long", errSlow, r.timeout))
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() { <-r.slots }()
		ask := r.asker(ctx)
		out, err := generate(ctx, r.log, s, c, snap, ask)
		if err != nil && ctx.Err() != nil {
			err = slow
		}
		var o outcome
		if err != nil {
			o = fail(err)
		} else {
			o = e.targets(in, s, out, c, snap)
		}
		o.refresh = ask.left()
		o.passing = o.passing || o.refresh != 0
		done <- o
	}()
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
		return fail(slow)
	}
}

// asker lets one set ask. Waiting for an answer is no work, so it gives up
// the set's slot meanwhile.
func (r *Resolver) asker(ctx context.Context) *asker {
	return &asker{ctx: ctx, replies: r.replies, idle: func(wait func()) {
		<-r.slots
		defer func() { r.slots <- struct{}{} }()
		wait()
	}}
}

// entry is one of the pipeline's applicationSets with its two templates.
type entry struct {
	argocd                 string
	component, environment *assigner // nil: it doesn't parse, which is a problem already
	environments           map[string]bool
}

// newEntries gives those of applicationSets, and those of applications.
func newEntries(p *pipeline.Pipeline) (sets, plain []entry, problems []Problem) {
	environments := map[string]bool{}
	for _, e := range p.Spec.Environments {
		environments[e.Name] = true
	}
	parsed := map[[2]string]*assigner{}
	parse := func(what string, texts ...string) *assigner {
		text := cmp.Or(texts...)
		key := [2]string{what, text}
		if a, ok := parsed[key]; ok {
			return a
		}
		a, err := newAssigner(what, text)
		if err != nil {
			problems = append(problems, Problem{File: p.File, Message: err.Error()})
		}
		parsed[key] = a
		return a
	}
	make := func(argocd, component, environment string) entry {
		return entry{
			argocd:       argocd,
			component:    parse("component", component, p.Spec.Component),
			environment:  parse("environment", environment, p.Spec.Environment),
			environments: environments,
		}
	}
	for i := range p.Spec.ApplicationSets {
		s := &p.Spec.ApplicationSets[i]
		sets = append(sets, make(s.RunBy(), s.Component, s.Environment))
	}
	for _, a := range p.Spec.Applications {
		plain = append(plain, make(a.Live.ArgoCD, a.Component, a.Environment))
	}
	return sets, plain, problems
}

// targets validates what a set generated and describes it.
func (e *entry) targets(in *Input, s *set, out *run, c *commit, snap *snapshot) outcome {
	kept, problems := snap.validate(s, out.apps)
	o := outcome{targets: make([]Target, 0, len(kept)), problems: problems}
	wholeSet := mergesFiles(&s.spec)
	for i := range kept {
		t := e.target(in, s, &kept[i], c, &o)
		t.GeneratorFiles = out.generatorFiles(kept[i].params, s.spec.Spec.GoTemplate)
		if len(t.GeneratorFiles) > 0 {
			t.GeneratorFile = t.GeneratorFiles[0]
		}
		if wholeSet {
			t.GeneratorFiles = out.files
		} else {
			slices.Sort(t.GeneratorFiles)
		}
		o.targets = append(o.targets, t)
	}
	return o
}

// target describes one Application; what is wrong with it goes into o.
func (e *entry) target(in *Input, s *set, g *generated, c *commit, o *outcome) Target {
	t := Target{
		Name: g.app.Name, Namespace: g.app.Namespace, Project: g.app.Spec.GetProject(), ArgoCD: e.argocd,
		ApplicationSet: s.spec.Name, ApplicationSetFile: s.file, Params: g.params, Policy: s.policy,
		Server: g.app.Spec.Destination.Server, Cluster: g.app.Spec.Destination.Name, DestNS: g.app.Spec.Destination.Namespace,
		Sources:   sourcesOf(&g.app, c.here),
		AutoSync:  g.app.Spec.SyncPolicy != nil && g.app.Spec.SyncPolicy.Automated != nil,
		Hydration: hydrationOf(&g.app),
	}
	wrong := func(err error) {
		o.problems = append(o.problems, Problem{File: s.file, ApplicationSet: s.spec.Name, Application: t.Name, Message: err.Error()})
	}
	if err := e.assign(&t, g, s); err != nil {
		wrong(err)
	}
	if in.Manifests {
		raw, err := manifest(&g.app)
		if err != nil {
			wrong(err)
		}
		t.Application = raw
	}
	return t
}

// assign gives the target its component and environment, both or none.
func (e *entry) assign(t *Target, g *generated, s *set) error {
	if e.component == nil || e.environment == nil {
		return nil
	}
	data, err := templateData(g, s, e.component.usesApplication || e.environment.usesApplication, e.component.usesSet || e.environment.usesSet)
	if err != nil {
		return err
	}
	environment, err := e.environment.eval(data)
	if err != nil || environment == "" {
		return err
	}
	component, err := e.component.eval(data)
	if err != nil || component == "" {
		return err
	}
	if !e.environments[environment] {
		return fmt.Errorf("environment %q, of component %q, is not in the pipeline: add it there, or let the environment template give nothing for it", environment, component)
	}
	t.Component, t.Environment = component, environment
	return nil
}

// manifest is the Application as a file would hold it.
func manifest(app *argov1alpha1.Application) (json.RawMessage, error) {
	object, err := asMap(app)
	if err != nil {
		return nil, err
	}
	delete(object, "status")
	object["apiVersion"], object["kind"] = apiVersion, "Application"
	if meta, ok := object["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("writing the Application: %w", err)
	}
	return raw, nil
}

// finish drops Applications that two sets claim, and sorts.
func (f *Fleet) finish() {
	slices.SortStableFunc(f.Targets, func(a, b Target) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ArgoCD, b.ArgoCD),
			cmp.Compare(a.ApplicationSetFile, b.ApplicationSetFile), cmp.Compare(a.ApplicationSet, b.ApplicationSet))
	})
	f.Targets = slices.CompactFunc(f.Targets, func(b, a Target) bool { // called with the later one first
		if a.ID() != b.ID() {
			return false
		}
		f.Problems = append(f.Problems, Problem{File: b.ApplicationSetFile, ApplicationSet: b.ApplicationSet, Application: b.Name,
			Message: fmt.Sprintf("ApplicationSet %s in %s generates an Application of this name too", a.ApplicationSet, a.ApplicationSetFile)})
		return true
	})
	slices.SortStableFunc(f.Problems, compareProblems)
	slices.SortStableFunc(f.Notes, compareProblems)
}

func compareProblems(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.ApplicationSet, b.ApplicationSet), cmp.Compare(a.Application, b.Application), cmp.Compare(a.Message, b.Message))
}
