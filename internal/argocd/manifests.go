package argocd

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

const (
	// maxRenderings is how many renderings of one Argo CD are under way at a time: each
	// occupies its repo server, which has Applications to compare.
	maxRenderings = 4
	// restoreTimeout bounds the rendering that has Argo CD forget our revisions.
	restoreTimeout = 30 * time.Second
)

// renderingQueue keeps renderings apart that must not happen at the same time.
type renderingQueue struct {
	running chan struct{}

	mu   sync.Mutex
	apps map[string]*appRenderings // by namespace/name
}

// appRenderings are those of one Application, one at a time.
type appRenderings struct {
	turn    chan struct{}
	waiting int // with the one whose turn it is
}

func newRenderingQueue() *renderingQueue {
	return &renderingQueue{running: make(chan struct{}, maxRenderings), apps: map[string]*appRenderings{}}
}

// begin waits for the turn of an Application; end gives it to the next.
func (r *renderingQueue) begin(ctx context.Context, key string) (end func(), err error) {
	r.mu.Lock()
	a := r.apps[key]
	if a == nil {
		a = &appRenderings{turn: make(chan struct{}, 1)}
		r.apps[key] = a
	}
	a.waiting++
	r.mu.Unlock()
	leave := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if a.waiting--; a.waiting == 0 {
			delete(r.apps, key)
		}
	}
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
	select {
	case r.running <- struct{}{}:
		return func() { <-r.running; <-a.turn; leave() }, nil
	case <-ctx.Done():
		<-a.turn
		leave()
		return nil, ctx.Err()
	}
}

// Manifests has Argo CD render an Application as it runs, at several sets of revisions one after
// the other. Each set has one revision a source, "" for its own. It gives an object's JSON each,
// for each set; with an error, those of the sets before the one that it is about. Calls are
// limited; it waits for its turn until ctx ends.
func (w *Watcher) Manifests(ctx context.Context, app *verification.App, sets ...[]string) ([][]string, error) {
	if w.api == nil {
		return nil, fmt.Errorf("argocd %s: there is no API to render by", w.name)
	}
	end, err := w.renderings.begin(ctx, app.Namespace+"/"+app.Name)
	if err != nil {
		return nil, fmt.Errorf("argocd %s: wait for the turn of Application %s/%s: %w", w.name, app.Namespace, app.Name, err)
	}
	defer end()
	if app.SourceList {
		defer w.restoreRevisions(ctx, app)
	}
	var out [][]string
	for _, revisions := range sets {
		query, err := newManifestQuery(app, revisions)
		if err != nil {
			return out, err
		}
		manifests, err := w.api.Manifests(ctx, query)
		if err != nil {
			return out, err
		}
		out = append(out, manifests)
	}
	return out, nil
}

// restoreRevisions has argocd-server remember an Application's own revisions again, where it wrote
// ours over them: see [api.Client.Manifests]. The answer's manifests, which the repo server has
// from comparing, aren't used.
func (w *Watcher) restoreRevisions(ctx context.Context, app *verification.App) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	query := api.ManifestQuery{Namespace: app.Namespace, Name: app.Name, Project: app.Project}
	for i, s := range app.Sources {
		query.Revisions = append(query.Revisions, api.SourceRevision{Position: i + 1, Revision: s.TargetRevision})
	}
	// That it can't be rendered comes after they were written.
	if _, err := w.api.Manifests(ctx, query); err != nil && !api.IsRendering(err) {
		w.log.Warn("Argo CD may show the revisions that an Application was last rendered at, until it changes",
			zap.String("application", app.Namespace+"/"+app.Name), zap.Error(err))
	}
}

// newManifestQuery asks for an Application at some revisions.
func newManifestQuery(app *verification.App, revisions []string) (api.ManifestQuery, error) {
	q := api.ManifestQuery{Namespace: app.Namespace, Name: app.Name, Project: app.Project}
	if len(revisions) != len(app.Sources) || len(revisions) == 0 {
		return q, errors.New("the Application doesn't have the sources that were asked for")
	}
	if !app.SourceList {
		q.Revision = revisions[0]
		return q, nil
	}
	for i, r := range revisions {
		if r != "" {
			q.Revisions = append(q.Revisions, api.SourceRevision{Position: i + 1, Revision: r})
		}
	}
	return q, nil
}

// ErrTooLarge is of manifests that are too many to be read, which they stay.
var ErrTooLarge = api.ErrTooLarge

// ExplainRendering is what Argo CD says of why an Application can't be rendered, without
// what stands before it each time; of any other error it is that.
func ExplainRendering(err error) string {
	var s *api.StatusError
	if errors.As(err, &s) && api.IsRendering(err) && s.Message != "" {
		text := s.Message
		for _, p := range repeatedWords {
			text = p.ReplaceAllString(text, "")
		}
		return text
	}
	return err.Error()
}

// repeatedWords are texts that an error of a rendering gains on its way from the repo server to the
// API, or that differ each time. Without them an error that is only repeated reads the same.
var repeatedWords = []*regexp.Regexp{
	regexp.MustCompile(`^error generating manifests: `),
	regexp.MustCompile(`rpc error: code = \w+ desc = `),
	regexp.MustCompile(`Manifest generation error \(cached\): `),
	regexp.MustCompile(`/?(tmp/)?[\w./-]*[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/?`), // a checkout's folder
}
