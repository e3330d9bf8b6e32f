package argocd

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
)

// comparedToSpec is the controller's own question (specEqualsCompareTo): was the
// last comparison about the spec as it is? Both sides are compared without what
// is empty, because one is as people write it and the other as the controller does.
func (w *wireApplication) comparedToSpec() bool {
	ct := w.Status.Sync.ComparedTo
	if ct == nil {
		return false
	}
	want := w.Spec.Destination
	if ct.Destination.Server == "" {
		want.Server = "" // inferred from the name
	}
	if ct.Destination.Name == "" {
		want.Name = ""
	}
	if want != ct.Destination || !equalIgnoringEmpty(w.Spec.IgnoreDifferences, ct.IgnoreDifferences) {
		return false
	}
	switch h := w.Spec.SourceHydrator; {
	case h != nil:
		sync, err := json.Marshal(wireSource{RepoURL: cmp.Or(h.SyncSource.RepoURL, h.DrySource.RepoURL), Path: h.SyncSource.Path,
			TargetRevision: h.SyncSource.TargetBranch})
		return err == nil && equalIgnoringEmpty(sync, ct.Source)
	case len(w.Spec.Sources) > 0:
		return slices.EqualFunc(w.Spec.Sources, ct.Sources, equalIgnoringEmpty)
	default:
		return equalIgnoringEmpty(w.Spec.Source, ct.Source)
	}
}

func equalIgnoringEmpty(a, b json.RawMessage) bool {
	return reflect.DeepEqual(decodeNonEmpty(a), decodeNonEmpty(b))
}

// decodeNonEmpty is a JSON value without what is empty; nil when nothing is left.
func decodeNonEmpty(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	return pruneEmpty(v)
}

func pruneEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e = pruneEmpty(e); e == nil {
				delete(v, k)
			} else {
				v[k] = e
			}
		}
		if len(v) == 0 {
			return nil
		}
		return v
	case []any:
		if len(v) == 0 {
			return nil
		}
		for i := range v {
			v[i] = pruneEmpty(v[i])
		}
		return v
	case string:
		if v == "" {
			return nil
		}
	case bool:
		if !v {
			return nil
		}
	case float64:
		if v == 0 {
			return nil
		}
	}
	return v
}
