package appset

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/sirupsen/logrus"
	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argoproj/argo-cd/v2/applicationset/controllers/template"
	"github.com/argoproj/argo-cd/v2/applicationset/generators"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

const (
	// maxApplications bounds what one ApplicationSet may generate. Argo CD's own
	// community tests end at 50,000 in a whole installation.
	maxApplications = 50_000
	// renderAtOnce is how many Applications are rendered before they are
	// described and let go: they are many times as large as what is kept.
	renderAtOnce = 256
)

// generated is one Application with the parameters that led to it.
type generated struct {
	app    argov1alpha1.Application
	params map[string]any
	files  []string // of this commit, that the parameters came of, sorted
}

// run is what one set generates, before the controller's validation.
type run struct{ apps []generated }

// errPanicked marks a panic of the library, which has some on valid input
// (argo-cd#16417).
var errPanicked = errors.New("the generator library failed on it")

// generation is one run of one ApplicationSet's generators and templates. It
// is used by one goroutine.
type generation struct {
	ctx    context.Context //nolint:containedctx // the library drops the caller's
	set    *argov1alpha1.ApplicationSet
	client client.Client
	gens   map[string]generators.Generator

	render  *renderer
	repos   *commitRepos
	recall  *recall // nil: nothing is remembered
	origins *origins
}

func newGeneration(ctx context.Context, s *set, c *commit, snap *snapshot, ask *asker, recall *recall) *generation {
	g := &generation{
		ctx: ctx, set: s.spec.DeepCopy(), recall: recall, origins: newOrigins(),
		repos: &commitRepos{ctx: ctx, commit: c, globbing: snap.argocd.Globbing},
	}
	g.render = newRenderer(ctx, g.set)
	g.client, g.gens = snap.generators(g, ask)
	return g
}

// generate runs a set and returns all of its Applications. It doesn't return
// before the library does; the caller bounds it in time.
func generate(ctx context.Context, log *zap.Logger, s *set, c *commit, snap *snapshot, ask *asker) (*run, error) {
	g := newGeneration(ctx, s, c, snap, ask, nil)
	out := &run{}
	return out, g.each(log, s, out)
}

// taker takes what a generation gives.
type taker interface {
	// begin is called before the parameters that a generator gave, with its
	// own template.
	begin(over *argov1alpha1.ApplicationSetTemplate)
	// known says that the taker knows the Application of these parameters,
	// which came of some files, already. It is called for all of them, in order.
	known(params map[string]any, files []string) bool
	// take takes the Application of parameters that were not known, in the
	// order in which it was asked for them.
	take(g *generated)
}

func (r *run) begin(*argov1alpha1.ApplicationSetTemplate) {}

func (r *run) known(map[string]any, []string) bool { return false }

func (r *run) take(g *generated) { r.apps = append(r.apps, *g) }

// each runs the generators and templates. With an error, what was taken counts
// for nothing, as in the controller.
func (g *generation) each(log *zap.Logger, s *set, to taker) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Warn("Argo CD's generator library panicked",
				zap.String("applicationSet", s.spec.Name), zap.String("file", s.file), zap.ByteString("stack", debug.Stack()))
			err = fmt.Errorf("%w: %v", errPanicked, p)
		}
	}()
	total := 0
	for i := range g.set.Spec.Generators {
		results, err := transform(&g.set.Spec.Generators[i], g.gens, g.set, g.client)
		if err != nil {
			return err
		}
		for _, r := range results {
			if total += len(r.params); total > maxApplications {
				return fmt.Errorf("it generates more than %d Applications", maxApplications)
			}
			if err := g.make(r, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// make renders what isn't known of one generator's parameters.
func (g *generation) make(r result, to taker) error {
	to.begin(r.template)
	// A template may write into its parameters, which others share.
	own := g.render.writes(&g.set.Spec.Template, r.template, g.set.Spec.TemplatePatch)
	var todo []map[string]any
	for i, params := range r.params {
		if !to.known(params, g.origins.of(params)) {
			todo = append(todo, params)
		}
		if len(todo) < renderAtOnce && (i+1 < len(r.params) || len(todo) == 0) {
			continue
		}
		given := todo
		if own {
			given = copyParams(todo)
		}
		apps, err := g.applications(r.template, given)
		if err != nil {
			return err
		}
		if len(apps) != len(todo) {
			return fmt.Errorf("%d Applications came of %d sets of parameters", len(apps), len(todo))
		}
		for i := range apps {
			to.take(&generated{apps[i], todo[i], g.origins.of(todo[i])})
		}
		todo = todo[:0]
	}
	return nil
}

// applications has the library make Applications of parameters, with the
// set's template and a generator's own over it.
func (g *generation) applications(over *argov1alpha1.ApplicationSetTemplate, params []map[string]any) ([]argov1alpha1.Application, error) {
	set := *g.set
	set.Spec.Generators = []argov1alpha1.ApplicationSetGenerator{{List: &argov1alpha1.ListGenerator{Template: *over}}}
	apps, _, err := template.GenerateApplications(logrus.WithField("applicationset", set.Name), set,
		map[string]generators.Generator{"List": &given{params: params}}, g.render, g.client)
	return apps, err
}
