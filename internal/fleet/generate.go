package fleet

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/sirupsen/logrus"
	"go.uber.org/zap"

	"github.com/argoproj/argo-cd/v2/applicationset/controllers/template"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// maxApplications bounds what one ApplicationSet may generate. Argo CD's own
// community tests end at 50,000 in a whole installation.
const maxApplications = 50_000

// generated is one Application with the parameters that led to it.
type generated struct {
	app    argov1alpha1.Application
	params map[string]any
}

// run is what one set generates, before the controller's validation.
type run struct {
	apps  []generated
	files []string // what its git file generators read of this commit, sorted
}

// errPanicked marks a panic of the library, which has some on valid input
// (argo-cd#16417).
var errPanicked = errors.New("the generator library failed on it")

// generate runs one ApplicationSet's generators and templates. It doesn't
// return before the library does; the caller bounds it in time.
func generate(ctx context.Context, log *zap.Logger, s *set, c *commit, snap *snapshot, ask *asker) (out *run, err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Warn("Argo CD's generator library panicked",
				zap.String("applicationSet", s.spec.Name), zap.String("file", s.file), zap.ByteString("stack", debug.Stack()))
			out, err = nil, fmt.Errorf("%w: %v", errPanicked, p)
		}
	}()
	repos := &commitRepos{ctx: ctx, commit: c, globbing: snap.argocd.Globbing, files: map[string]bool{}}
	set := s.spec.DeepCopy()
	client, gens := snap.generators(ctx, repos, ask)
	spy := &spy{renderer: newRenderer(ctx)}
	apps, _, err := template.GenerateApplications(logrus.WithField("applicationset", set.Name), *set, gens, spy, client)
	if err != nil {
		// What was generated beside an error is discarded, as the controller does.
		return nil, err
	}
	if len(apps) != len(spy.params) {
		return nil, fmt.Errorf("%d Applications came of %d sets of parameters", len(apps), len(spy.params))
	}
	out = &run{apps: make([]generated, len(apps)), files: repos.read()}
	for i := range apps {
		out.apps[i] = generated{app: apps[i], params: spy.params[i]}
	}
	return out, nil
}

// spy notes which parameters each Application was rendered from: the library
// renders in order, once an Application, and doesn't say.
type spy struct {
	*renderer
	params []map[string]any
}

func (s *spy) RenderTemplateParams(tmpl *argov1alpha1.Application, policy *argov1alpha1.ApplicationSetSyncPolicy, params map[string]any, goTemplate bool, options []string) (*argov1alpha1.Application, error) {
	if len(s.params) >= maxApplications {
		return nil, fmt.Errorf("it generates more than %d Applications", maxApplications)
	}
	app, err := s.renderer.RenderTemplateParams(tmpl, policy, params, goTemplate, options)
	if err != nil {
		return nil, err
	}
	s.params = append(s.params, params)
	return app, nil
}
