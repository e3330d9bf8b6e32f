package argocd

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
)

// Each hands every live Application, as a whole object, to visit: what a
// comparison or an ApplicationSet that can't be understood needs, and a verdict
// doesn't. It asks the API server anew, a page at a time, and keeps nothing; raw
// is only valid during the call. visit should be quick: the server's patience
// with a page is minutes. The order is the server's. An error of visit ends it
// and is returned as it is; a list that failed half-way is an error too, and
// what was visited is then not all there is.
func (w *Watcher) Each(ctx context.Context, visit func(raw json.RawMessage) error) error {
	for _, f := range w.apps {
		next := ""
		for {
			meta, err := f.visit(ctx, next, visit)
			if err != nil {
				return err
			}
			if next = meta.Continue; next == "" {
				break
			}
		}
	}
	return nil
}

// visit reads one page for Each.
func (f *feed) visit(ctx context.Context, next string, visit func(json.RawMessage) error) (listMeta, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	r := f.request().Param("limit", strconv.Itoa(pageSize))
	if next != "" {
		r = r.Param("continue", next)
	}
	failed := func(err error) error {
		return fmt.Errorf("list %s: %w", f.what(), explain(err, "get, list, watch", "argoproj.io", f.resource))
	}
	body, err := r.Stream(ctx)
	if err != nil {
		return listMeta{}, failed(err)
	}
	defer closeBody(body)
	var refused error
	meta, err := readPage(body, func(raw []byte) {
		if refused == nil {
			refused = visit(raw)
		}
	})
	switch {
	case refused != nil:
		return meta, refused
	case err != nil:
		return meta, failed(err)
	}
	return meta, nil
}

// Owned lists the live Applications that an ApplicationSet owns, as whole
// objects, the caller's to keep.
func (w *Watcher) Owned(ctx context.Context, namespace, set string) ([]json.RawMessage, error) {
	out := []json.RawMessage{}
	err := w.Each(ctx, func(raw json.RawMessage) error {
		var o struct {
			Metadata wireMeta `json:"metadata"`
		}
		if json.Unmarshal(raw, &o) != nil || o.Metadata.Namespace != namespace || o.Metadata.owner() != set {
			return nil
		}
		out = append(out, append(json.RawMessage(nil), raw...))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("argocd %s: the Applications of ApplicationSet %s/%s: %w", w.name, namespace, set, err)
	}
	return out, nil
}
