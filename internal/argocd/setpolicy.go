package argocd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// settingsName is the ConfigMap in Argo CD's namespace that its programs take their flags
// from. A flag that a Deployment gives by itself isn't in it.
const settingsName = "argocd-cmd-params-cm"

// setPolicies are what the ApplicationSet controller takes as its --policy. It doesn't start
// with another one.
var setPolicies = []string{"sync", "create-only", "create-update", "create-delete"}

// SetPolicy is the policy that the ApplicationSet controller takes from its settings, for all
// sets. The zero value: it takes none, or that isn't known.
type SetPolicy struct {
	Sync     string // create-only, create-update, create-delete or sync
	Override bool   // a set's own counts before it
}

// detectSetPolicy reads the controller's settings. Settings that there aren't, or that may not
// be read, have no policy.
func (w *Watcher) detectSetPolicy(ctx context.Context) (SetPolicy, error) {
	if w.core == nil || w.ownNamespace == "" {
		return SetPolicy{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	raw, err := w.core.Get().Namespace(w.ownNamespace).Resource("configmaps").Name(settingsName).DoRaw(ctx)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return SetPolicy{}, nil
	case err != nil:
		return SetPolicy{}, fmt.Errorf("read the ConfigMap %s in namespace %s: %w", settingsName, w.ownNamespace, err)
	}
	return parseSetPolicy(raw)
}

func parseSetPolicy(raw []byte) (SetPolicy, error) {
	var settings struct {
		Data struct {
			Policy   string `json:"applicationsetcontroller.policy"`
			Override string `json:"applicationsetcontroller.enable.policy.override"`
		} `json:"data"`
	}
	if err := json.Unmarshal(raw, &settings); err != nil {
		return SetPolicy{}, fmt.Errorf("read the ConfigMap %s: %w", settingsName, err)
	}
	if !slices.Contains(setPolicies, settings.Data.Policy) {
		return SetPolicy{}, nil
	}
	override, err := strconv.ParseBool(settings.Data.Override) // as the controller reads it
	return SetPolicy{Sync: settings.Data.Policy, Override: override && err == nil}, nil
}
