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
	// renderBatchSize is how many Applications are rendered before they are
	// described and let go: they are many times as large as what is kept.
	renderBatchSize = 256
)

// generatedApp is one Application with the parameters that led to it.
type generatedApp struct {
	app    *argov1alpha1.Application // its own only as far as its specification's top level
	params map[string]any
	files  []string          // of this commit, that the parameters came of, sorted
	newer  map[string]string // fields below the spec that 2.14's types don't have
}

// generatedApps is what one set generates, before the controller's validation.
type generatedApps struct {
	apps  []generatedApp
	scope *setScope // what it read elsewhere
}

// errPanicked marks a panic of the library, which has some on valid input
// (argo-cd#16417).
var errPanicked = errors.New("the generator library failed on it")

// generatorRun is one run of one ApplicationSet's generators and templates. It
// is used by one goroutine.
type generatorRun struct {
	ctx     context.Context // the library drops the caller's
	set     *argov1alpha1.ApplicationSet
	version Version // of the Argo CD that runs it
	client  client.Client
	gens    map[string]generators.Generator

	render  *renderer
	repos   *commitRepos
	cache   *resultCache
	origins *origins
	scope   *scopeRun
}

func newGeneratorRun(ctx context.Context, s *appSet, c *commit, snap *snapshot, access *generatorAccess, cache *resultCache) *generatorRun {
	g := &generatorRun{
		ctx: ctx, set: s.spec.DeepCopy(), version: s.version, cache: cache, origins: newOrigins(),
		repos: &commitRepos{ctx: ctx, commit: c, globbing: snap.argocd.Globbing},
	}
	if access != nil && access.scope != nil {
		g.scope = access.scope
	} else if g.scope = newScopeRun(s, c, snap); access != nil {
		access.scope = g.scope
	}
	g.set.Spec.ApplyNestedSelectors = g.set.Spec.ApplyNestedSelectors || g.version.appliesNestedSelectors()
	g.render = newRenderer(ctx, g.set)
	g.client, g.gens = snap.newGenerators(g, access)
	return g
}

// generateApplications runs a set and returns all of its Applications. It doesn't return
// before the library does; the caller bounds it in time.
func generateApplications(ctx context.Context, log *zap.Logger, s *appSet, c *commit, snap *snapshot,
	access *generatorAccess) (*generatedApps, error) {
	g := newGeneratorRun(ctx, s, c, snap, access, newResultCache(&setResults{}, ""))
	out := &generatedApps{}
	err := g.runGenerators(log, s, out)
	out.scope = g.scope.result()
	return out, err
}

// applicationSink takes what a generation gives.
type applicationSink interface {
	// beginGenerator is called before the parameters that a generator gave, with its
	// own template and their number.
	beginGenerator(over *argov1alpha1.ApplicationSetTemplate, n int)
	// isKnown says that the taker knows the Application of these parameters,
	// which came of some files, already. It is called for all of them, in order.
	isKnown(params map[string]any, files []string) bool
	// addApplication takes the Application of parameters that were not known, in the
	// order in which it was asked for them. The Application may be written to, and is
	// the next one after the call.
	addApplication(g *generatedApp)
	// readsMetadata says that the Applications' labels and annotations are read.
	readsMetadata() bool
}

func (ga *generatedApps) beginGenerator(*argov1alpha1.ApplicationSetTemplate, int) {}

func (ga *generatedApps) isKnown(map[string]any, []string) bool { return false }

func (ga *generatedApps) addApplication(g *generatedApp) {
	own, app := *g, *g.app
	own.app = &app
	ga.apps = append(ga.apps, own)
}

func (ga *generatedApps) readsMetadata() bool { return true }

// runGenerators runs the generators and templates. With an error, what was taken counts
// for nothing, as in the controller.
func (g *generatorRun) runGenerators(log *zap.Logger, s *appSet, to applicationSink) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Warn("Argo CD's generator library panicked",
				zap.String("applicationSet", s.spec.Name), zap.String("file", s.file), zap.ByteString("stack", debug.Stack()))
			err = fmt.Errorf("%w: %v", errPanicked, p)
		}
	}()
	total := 0
	for i := range g.set.Spec.Generators {
		results, err := runGenerator(&g.set.Spec.Generators[i], g.gens, g.set, g.version, g.client)
		if err != nil {
			return err
		}
		for _, r := range results {
			if total += len(r.params); total > maxApplications {
				return fmt.Errorf("it generates more than %d Applications", maxApplications)
			}
			if err := g.renderResult(r, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// renderResult renders what isn't known of one generator's parameters.
func (g *generatorRun) renderResult(r generatorResult, to applicationSink) error {
	to.beginGenerator(r.template, len(r.params))
	// A template may write into its parameters, which others share.
	own := g.render.mutatesParams(&g.set.Spec.Template, r.template, g.set.Spec.TemplatePatch)
	if g.set.Spec.TemplatePatch != nil {
		return g.renderPatched(r, own, to)
	}
	tmpl, err := g.mergeTemplates(r.template)
	if err != nil {
		return err
	}
	if !to.readsMetadata() {
		tmpl = g.render.withoutMetadata(tmpl)
	}
	app := &argov1alpha1.Application{}
	for _, params := range r.params {
		files := g.origins.filesOf(params)
		if to.isKnown(params, files) {
			continue
		}
		given := params
		if own {
			given = copyParams([]map[string]any{params})[0]
		}
		if len(given) == 0 { // nothing is rendered, as in the controller
			tmpl.DeepCopyInto(app)
		} else if err := g.render.renderInto(app, tmpl, g.set.Spec.SyncPolicy, given); err != nil {
			return err
		}
		// As the controller does: a set makes no Applications elsewhere.
		app.Namespace = g.set.Namespace
		newer := takeNewerFields(app)
		to.addApplication(&generatedApp{app, params, files, newer})
	}
	return nil
}

// mergeTemplates has the library put the set's template under a generator's own.
func (g *generatorRun) mergeTemplates(over *argov1alpha1.ApplicationSetTemplate) (*argov1alpha1.Application, error) {
	entry := argov1alpha1.ApplicationSetGenerator{List: &argov1alpha1.ListGenerator{Template: *over}}
	out, err := generators.Transform(entry, map[string]generators.Generator{"List": &fixedGenerator{}}, g.set.Spec.Template, g.set,
		nil, g.client)
	if err != nil {
		return nil, err
	}
	return template.GetTempApplication(out[0].Template), nil
}

// renderPatched is renderResult for a set with a templatePatch, which the library applies.
func (g *generatorRun) renderPatched(r generatorResult, own bool, to applicationSink) error {
	var todo []map[string]any
	for i, params := range r.params {
		if !to.isKnown(params, g.origins.filesOf(params)) {
			todo = append(todo, params)
		}
		if len(todo) < renderBatchSize && (i+1 < len(r.params) || len(todo) == 0) {
			continue
		}
		given := todo
		if own {
			given = copyParams(todo)
		}
		apps, err := g.renderApplications(r.template, given)
		if err != nil {
			return err
		}
		if len(apps) != len(todo) {
			return fmt.Errorf("%d Applications came of %d sets of parameters", len(apps), len(todo))
		}
		for i := range apps {
			newer := takeNewerFields(&apps[i])
			to.addApplication(&generatedApp{&apps[i], todo[i], g.origins.filesOf(todo[i]), newer})
		}
		todo = todo[:0]
	}
	return nil
}

// renderApplications has the library make Applications of parameters, with the
// set's template and a generator's own over it.
func (g *generatorRun) renderApplications(over *argov1alpha1.ApplicationSetTemplate,
	params []map[string]any) ([]argov1alpha1.Application, error) {
	set := *g.set
	set.Spec.Generators = []argov1alpha1.ApplicationSetGenerator{{List: &argov1alpha1.ListGenerator{Template: *over}}}
	apps, _, err := template.GenerateApplications(logrus.WithField("applicationset", set.Name), set,
		map[string]generators.Generator{"List": &fixedGenerator{params: params}}, g.render, g.client)
	return apps, err
}
