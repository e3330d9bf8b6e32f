package argocd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

const (
	// refreshWorkers is how many refreshes are under way at a time: each is a call that
	// Argo CD answers when the comparison is done.
	refreshWorkers = 4
	// maxRefreshes bounds those that wait.
	maxRefreshes = 1000
)

// errRefreshesQueued is returned where more refreshes wait than are kept.
var errRefreshesQueued = errors.New("too many refreshes wait already")

// refreshKey is what a refresh is of.
type refreshKey struct{ namespace, name, project string }

// refresher asks for refreshes by the API.
type refresher struct {
	client *api.Client
	log    *zap.Logger
	take   func(raw json.RawMessage) // what the refreshed Application is; nil: it is watched anyhow
	queue  chan refreshKey

	mu      sync.Mutex
	waiting map[refreshKey]bool
}

func newRefresher(client *api.Client, log *zap.Logger) *refresher {
	return &refresher{client: client, log: log, queue: make(chan refreshKey, maxRefreshes), waiting: map[refreshKey]bool{}}
}

// enqueue lets an Application be refreshed, once however often it is wanted meanwhile.
func (r *refresher) enqueue(key refreshKey) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[key] {
		return nil
	}
	select {
	case r.queue <- key:
		r.waiting[key] = true
		return nil
	default:
		return errRefreshesQueued
	}
}

// run refreshes what is wanted until ctx ends.
func (r *refresher) run(ctx context.Context) {
	var wg sync.WaitGroup
	for range refreshWorkers {
		wg.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case key := <-r.queue:
					r.refresh(ctx, key)
				}
			}
		})
	}
	wg.Wait()
}

func (r *refresher) refresh(ctx context.Context, key refreshKey) {
	raw, err := r.client.Application(ctx, key.namespace, key.name, key.project, true)
	r.mu.Lock()
	delete(r.waiting, key)
	r.mu.Unlock()
	switch {
	case ctx.Err() != nil:
	case err != nil: // it is wanted again while nobody knows better
		r.log.Warn("an Application can't be refreshed by the API", zap.String("application", key.namespace+"/"+key.name), zap.Error(err))
	case r.take != nil:
		r.take(raw)
	}
}

// refreshByAPI asks for a refresh, as Refresh does. Argo CD asks the hydrator too.
func (w *Watcher) refreshByAPI(namespace, name string) error {
	app, ok := w.store.getApplication(namespace, name)
	if !ok {
		return ErrNotFound
	}
	return w.refreshes.enqueue(refreshKey{namespace, name, app.Project})
}

// takeRefreshed stores an Application that was refreshed on request: what was compared is
// as of after the request.
func (w *Watcher) takeRefreshed(f *apiStream, raw json.RawMessage) {
	if key := keyOf(raw); key != "" {
		w.store.markRefreshing(key)
	}
	f.takeEvent(api.Event{Type: "MODIFIED", Application: raw})
}

// markRefreshing notes that an Application is being refreshed, without telling anybody.
func (as *appStore) markRefreshing(key string) {
	as.changeMu.Lock()
	defer as.changeMu.Unlock()
	as.mu.Lock()
	defer as.mu.Unlock()
	if app := as.apps[key]; app != nil {
		refreshing := *app
		refreshing.RefreshPending = true
		as.apps[key] = &refreshing
	}
}

// syncByAPI asks for a sync, as startSync does.
func (w *Watcher) syncByAPI(ctx context.Context, namespace, name string, wanted verification.SyncRequest) error {
	project := ""
	if app, ok := w.store.getApplication(namespace, name); ok {
		project = app.Project
	}
	raw, err := w.api.Application(ctx, namespace, name, project, false)
	if api.IsNotFound(err) {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	if err != nil {
		return err
	}
	var now wireSyncable
	if err := json.Unmarshal(raw, &now); err != nil {
		return fmt.Errorf("it can't be read: %w", err)
	}
	if isPresent(now.Operation) {
		return nil
	}
	err = w.api.Sync(ctx, now.newAPISync(namespace, name, project, wanted))
	if err != nil && strings.Contains(err.Error(), "another operation is already in progress") {
		return nil // somebody was first
	}
	return err
}

// newAPISync is the call that a request becomes. Argo CD takes no revision but its own for an
// Application that syncs by itself.
func (w *wireSyncable) newAPISync(namespace, name, project string, wanted verification.SyncRequest) api.SyncRequest {
	policy := &w.Spec.SyncPolicy
	out := api.SyncRequest{Name: name, Namespace: namespace, Project: project, Prune: w.prunes(wanted)}
	if a := policy.Automated; a == nil || a.Enabled != nil && !*a.Enabled {
		var all []string
		out.Revision, all = w.revisions(wanted)
		for i, revision := range all {
			if revision != "" {
				out.Revisions, out.SourcePositions = append(out.Revisions, revision), append(out.SourcePositions, i+1)
			}
		}
	}
	if len(policy.SyncOptions) > 0 {
		out.SyncOptions = &api.SyncOptions{Items: policy.SyncOptions}
	}
	if isPresent(policy.Retry) {
		out.RetryStrategy = policy.Retry
	}
	if wanted.Reason != "" {
		out.Infos = []api.SyncInfo{{Name: "Reason", Value: clipMessage(wanted.Reason)}}
	}
	return out
}

// detectLineByAPI asks Argo CD itself which line it is of.
func (w *Watcher) detectLineByAPI(ctx context.Context) (string, error) {
	version, err := w.api.Version(ctx)
	if err != nil {
		return "", fmt.Errorf("ask for the version: %w", err)
	}
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return "", fmt.Errorf("ask for the version: it is %q", clipMessage(version))
	}
	return parts[0] + "." + parts[1], nil
}
