package argocd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// callTimeout is how long a single read or write may take.
const callTimeout = 30 * time.Second

// hydrateAnnotation asks for another run of the source hydrator, which a refresh alone
// doesn't cause. All lines of Argo CD that have a hydrator know it, and remove it.
const hydrateAnnotation = "argocd.argoproj.io/hydrate"

// ErrRefreshOff is returned by Refresh when the server's file says refresh: off.
var ErrRefreshOff = errors.New("refreshing is switched off (refresh: off)")

// ErrNotFound is returned by Refresh and Sync when there is no such Application.
var ErrNotFound = errors.New("no such Application")

// Refresh asks Argo CD to compare an Application with Git again, as its refresh button does. A
// hydrated one is also to be hydrated again where that isn't under way. It returns when the request
// is made, not when it is done: the annotation that makes it is App.RefreshPending until then.
// Asking again meanwhile changes nothing. By the API the calls are made one after the other, and
// what goes wrong with one is in the log only. Errors: ErrRefreshOff, ErrNotFound, or the API
// server's; where it forbids the patch, the error names the rule that is needed.
func (w *Watcher) Refresh(ctx context.Context, namespace, name string) error {
	switch w.refresh {
	case RefreshOff:
		return ErrRefreshOff
	case RefreshAPI:
		if err := w.refreshByAPI(namespace, name); err != nil {
			return fmt.Errorf("argocd %s: refresh Application %s/%s: %w", w.name, namespace, name, err)
		}
		return nil
	}
	annotations := map[string]any{refreshAnnotation: "normal"}
	if app, ok := w.store.getApplication(namespace, name); ok && app.HydratedPath != "" &&
		(app.Hydration == nil || app.Hydration.Phase != "Hydrating") {
		annotations[hydrateAnnotation] = "normal"
	}
	patch := map[string]any{"metadata": map[string]any{"annotations": annotations}}
	if err := w.patchApplication(ctx, namespace, name, patch); err != nil {
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("%w; or set refresh: off for this Argo CD in the server's file and wait for its own comparisons", err)
		}
		return fmt.Errorf("argocd %s: refresh Application %s/%s: %w", w.name, namespace, name, err)
	}
	return nil
}

// Sync asks Argo CD to sync an Application, for a pipeline with sync: trigger. The sync options and
// the retry policy are the Application's own. When a sync is asked for or running already, or
// another request gets there first, nothing is done: the caller looks again. Errors are as for
// Refresh.
func (w *Watcher) Sync(ctx context.Context, namespace, name string, request verification.SyncRequest) error {
	start := w.startSync
	if w.api != nil {
		start = w.syncByAPI
	}
	if err := start(ctx, namespace, name, request); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("argocd %s: sync Application %s/%s: %w", w.name, namespace, name, err)
	}
	return nil
}

// wireSyncable is what a sync needs to know of its Application.
type wireSyncable struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Operation json.RawMessage `json:"operation"`
	Spec      struct {
		SyncPolicy struct {
			Automated *struct {
				Enabled *bool `json:"enabled"`
				Prune   *bool `json:"prune"`
			} `json:"automated"`
			SyncOptions []string        `json:"syncOptions"`
			Retry       json.RawMessage `json:"retry"`
		} `json:"syncPolicy"`
		Sources []struct{} `json:"sources"` // none: it has a single one, in another field
	} `json:"spec"`
}

func (w *Watcher) startSync(ctx context.Context, namespace, name string, request verification.SyncRequest) error {
	var now wireSyncable
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	raw, err := w.client.Get().Namespace(namespace).Resource("applications").Name(name).DoRaw(ctx)
	if err != nil {
		return explainCallError(err, "get")
	}
	if err := json.Unmarshal(raw, &now); err != nil {
		return fmt.Errorf("read it: %w", err)
	}
	if isPresent(now.Operation) {
		return nil
	}
	// With its resourceVersion the patch is refused when another operation got there first, instead
	// of merging into it.
	return w.patchApplication(ctx, namespace, name, map[string]any{
		"metadata":  map[string]any{"resourceVersion": now.Metadata.ResourceVersion},
		"operation": now.newOperation(request),
	})
}

// prunes says whether a sync removes what Git no longer has.
func (w *wireSyncable) prunes(request verification.SyncRequest) bool {
	a := w.Spec.SyncPolicy.Automated
	automated := a != nil && a.Prune != nil && *a.Prune
	return request.Prune == verification.PruneAlways || request.Prune == verification.PruneAuto && automated
}

// revisions are what a request says of the Application's sources: revision for a single one,
// all for a list of them. Both are empty where it leaves them to their targetRevisions, or is
// about other sources than the Application has by now.
func (w *wireSyncable) revisions(request verification.SyncRequest) (revision string, all []string) {
	switch {
	case len(w.Spec.Sources) == 0 && len(request.Revisions) == 1:
		return request.Revisions[0], nil
	case len(w.Spec.Sources) == len(request.Revisions):
		return "", request.Revisions
	}
	return "", nil
}

// newOperation is the operation that a request comes to.
func (w *wireSyncable) newOperation(request verification.SyncRequest) map[string]any {
	policy := &w.Spec.SyncPolicy
	sync := map[string]any{}
	if revision, all := w.revisions(request); revision != "" {
		sync["revision"] = revision
	} else if len(all) > 0 {
		sync["revisions"] = all // of an empty one Argo CD takes the targetRevision (GetRepoObjs)
	}
	if w.prunes(request) {
		sync["prune"] = true
	}
	if len(policy.SyncOptions) > 0 {
		sync["syncOptions"] = policy.SyncOptions
	}
	operation := map[string]any{"initiatedBy": map[string]any{"username": "liftlock"}, "sync": sync}
	if request.Reason != "" {
		operation["info"] = []map[string]any{{"name": "Reason", "value": clipMessage(request.Reason)}}
	}
	if isPresent(policy.Retry) {
		operation["retry"] = policy.Retry
	}
	return operation
}

func (w *Watcher) patchApplication(ctx context.Context, namespace, name string, patch map[string]any) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = w.client.Patch(types.MergePatchType).Namespace(namespace).Resource("applications").Name(name).Body(body).Do(ctx).Error()
	return explainCallError(err, "patch")
}

// explainCallError makes an error of a call about one Application one that people and
// callers can use.
func explainCallError(err error, verb string) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return explainError(err, verb, "argoproj.io", "applications")
}
