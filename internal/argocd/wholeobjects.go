package argocd

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// Each hands every live Application, as a whole object, to visit: what a comparison or an
// ApplicationSet that can't be understood needs, and a verdict doesn't. It asks the API server
// anew, a page at a time, and keeps nothing; raw is only valid during the call. visit should be
// quick: the server's patience with a page is minutes. The order is the server's. An error of visit
// ends it and is returned, wrapped. A list that failed half-way is an error too, and then not all
// objects were visited.
func (w *Watcher) Each(ctx context.Context, visit func(raw json.RawMessage) error) error {
	for _, f := range w.appFeeds {
		if err := f.visitAll(ctx, "", "", visit); err != nil {
			return fmt.Errorf("argocd %s (%s): %w", w.name, w.host, err)
		}
	}
	return nil
}

// visitAll visits the objects of the feed's namespace that a label selector chooses;
// an empty one chooses all.
func (f *feed) visitAll(ctx context.Context, _, selector string, visit func(json.RawMessage) error) error {
	return visitPages(func(o metav1.ListOptions, item func([]byte)) (listMeta, error) { return f.listPage(ctx, o, item) }, selector, visit)
}

// Owned lists the live Applications that an ApplicationSet owns, as whole
// objects, the caller's to keep.
func (w *Watcher) Owned(ctx context.Context, namespace, set string) ([]json.RawMessage, error) {
	out, err := w.listInNamespace(ctx, namespace, "", func(m *wireMeta) bool { return m.ownerSet() == set })
	if err != nil {
		return nil, fmt.Errorf("the Applications of ApplicationSet %s/%s: %w", namespace, set, err)
	}
	return out, nil
}

// Selected lists the live Applications of a namespace that a label selector, as
// kubectl takes it, chooses, as whole objects, the caller's to keep.
func (w *Watcher) Selected(ctx context.Context, namespace, selector string) ([]json.RawMessage, error) {
	out, err := w.listInNamespace(ctx, namespace, selector, func(*wireMeta) bool { return true })
	if err != nil {
		return nil, fmt.Errorf("the Applications in %s that %s selects: %w", namespace, selector, err)
	}
	return out, nil
}

// Whole reads one live Application anew, as a whole object, the caller's to keep.
func (w *Watcher) Whole(ctx context.Context, app *verification.App) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var raw json.RawMessage
	var err error
	if w.client == nil {
		raw, err = w.api.Application(ctx, app.Namespace, app.Name, app.Project, false)
	} else {
		raw, err = w.client.Get().Namespace(app.Namespace).Resource("applications").Name(app.Name).DoRaw(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("argocd %s (%s): read Application %s/%s: %w", w.name, w.host, app.Namespace, app.Name, err)
	}
	return raw, nil
}

// listInNamespace lists whole Applications of one watched namespace.
func (w *Watcher) listInNamespace(ctx context.Context, namespace, selector string, wanted func(*wireMeta) bool) ([]json.RawMessage, error) {
	f := w.feedOf(namespace)
	if f == nil {
		return nil, fmt.Errorf("argocd %s: namespace %s is not watched; add it to argocd[].kubernetes.namespaces in the server's file",
			w.name, namespace)
	}
	out := []json.RawMessage{}
	err := f.visitAll(ctx, namespace, selector, func(raw json.RawMessage) error {
		var o struct {
			Metadata wireMeta `json:"metadata"`
		}
		if json.Unmarshal(raw, &o) == nil && o.Metadata.Namespace == namespace && wanted(&o.Metadata) {
			out = append(out, append(json.RawMessage(nil), raw...))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("argocd %s (%s): %w", w.name, w.host, err)
	}
	return out, nil
}

// feedOf is the Applications' feed that a namespace is in; nil when none is.
func (w *Watcher) feedOf(namespace string) follower {
	for _, f := range w.appFeeds {
		if f.covers(namespace) {
			return f
		}
	}
	return nil
}
