package argocd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// ownSettings is the ConfigMap in Argo CD's namespace that has its settings.
	ownSettings = "argocd-cm"
	// ignoredPrefix begins the keys of what it ignores of differences in objects of a group and kind.
	ignoredPrefix = "resource.customizations.ignoreDifferences."
	// maxIgnored bounds what is kept of ignored differences: of the settings, and of one Application.
	maxIgnored = 16 << 10
)

// detectIgnored reads what Argo CD's settings ignore of differences. Settings that there aren't, or that may not be
// read, ignore nothing as far as is known.
func (w *Watcher) detectIgnored(ctx context.Context) (string, error) {
	if w.core == nil || w.ownNamespace == "" {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	raw, err := w.core.Get().Namespace(w.ownNamespace).Resource("configmaps").Name(ownSettings).DoRaw(ctx)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read the ConfigMap %s in namespace %s: %w", ownSettings, w.ownNamespace, err)
	}
	return parseIgnored(raw)
}

func parseIgnored(raw []byte) (string, error) {
	var settings struct {
		Data map[string]string `json:"data"`
	}
	if err := json.Unmarshal(raw, &settings); err != nil {
		return "", fmt.Errorf("read the ConfigMap %s: %w", ownSettings, err)
	}
	ignored := map[string]string{}
	for key, value := range settings.Data {
		if of, is := strings.CutPrefix(key, ignoredPrefix); is {
			ignored[of] = value
		}
	}
	if len(ignored) == 0 {
		return "", nil
	}
	out, err := json.Marshal(ignored)
	if err != nil {
		return "", fmt.Errorf("read the ConfigMap %s: %w", ownSettings, err)
	}
	if len(out) > maxIgnored {
		return "", fmt.Errorf("read the ConfigMap %s: what it ignores of differences is %d bytes, more than the %d that are kept",
			ownSettings, len(out), maxIgnored)
	}
	return string(out), nil
}
