package argocd

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// SyncBarred says why Sync would be refused for an Application, with the rule that is missing;
// empty: it wouldn't. The error is for an Argo CD that doesn't answer.
func (w *Watcher) SyncBarred(ctx context.Context, app *verification.App) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if w.api == nil {
		return w.patchBarred(ctx, app.Namespace)
	}
	may, err := w.api.MaySync(ctx, app.Namespace, app.Name, app.Project)
	switch {
	case err != nil:
		return "", fmt.Errorf("ask Argo CD whether it may be synced: %w", err)
	case !may:
		return "the token of " + w.api.Source() + " may not; allow it in argocd-rbac-cm: p, <role>, applications, sync, " + app.Project + "/*, allow", nil
	}
	return "", nil
}

// patchBarred says why the Applications of a namespace may not be patched.
func (w *Watcher) patchBarred(ctx context.Context, namespace string) (string, error) {
	review := map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": map[string]any{
		"resourceAttributes": map[string]any{"namespace": namespace, "verb": "patch", "group": "argoproj.io", "resource": "applications"},
	}}
	body, err := json.Marshal(review)
	if err != nil {
		return "", err
	}
	var answer struct {
		Status struct {
			Allowed bool `json:"allowed"`
		} `json:"status"`
	}
	raw, err := w.client.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").Body(body).DoRaw(ctx)
	if err == nil {
		err = json.Unmarshal(raw, &answer)
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("ask Kubernetes whether it may be synced: %w", err)
	case !answer.Status.Allowed:
		return "Kubernetes doesn't let Liftlock; allow its account in a Role: apiGroups [argoproj.io], resources [applications], verbs [patch]", nil
	}
	return "", nil
}
