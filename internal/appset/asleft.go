package appset

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v2/util/argo/normalizers"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// AsLeft is the target as its live Application, a whole object, will have it once the target's
// definition changes from before to t. The live Application keeps the fields that its
// ApplicationSet ignores. A plain Application keeps the fields that Git doesn't know. It returns
// nil where no live field stays, or where the ApplicationSet doesn't update the Application at all.
// The error says why this can't be told.
func (t *Target) AsLeft(before *Target, live json.RawMessage) (*Target, error) {
	if t.ApplicationSet != "" && (t.Policy.NoUpdate || len(t.Policy.IgnoreDifferences) == 0) {
		return nil, nil
	}
	var objects [3]map[string]any // the specifications before, after and live
	for i, raw := range []json.RawMessage{before.Application, t.Application, live} {
		var object struct {
			Spec map[string]any `json:"spec"`
		}
		if err := json.Unmarshal(raw, &object); err != nil {
			return nil, fmt.Errorf("read the Application %s: %w", t.Name, err)
		}
		objects[i] = object.Spec
	}
	left := keepUnknown(objects[0], objects[1], objects[2])
	if t.ApplicationSet != "" {
		var err error
		if left, err = t.keepIgnored(objects[1], objects[2]); err != nil {
			return nil, err
		}
	}
	if reflect.DeepEqual(left, objects[1]) {
		return nil, nil
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": t.Name, "namespace": t.Namespace}, "spec": left})
	if err != nil {
		return nil, fmt.Errorf("write the Application %s: %w", t.Name, err)
	}
	return t.AsRun(raw)
}

// keepIgnored is a generated specification with the fields that ignoreApplicationDifferences leaves
// of the live one. As in the controller (applicationset/utils, applyIgnoreDifferences), a merge
// patch writes it, which takes lists as a whole.
func (t *Target) keepIgnored(generated, live map[string]any) (map[string]any, error) {
	var rules argov1alpha1.ApplicationSetIgnoreDifferences
	for _, d := range t.Policy.IgnoreDifferences {
		rules = append(rules, argov1alpha1.ApplicationSetResourceIgnoreDifferences{Name: d.Name, JSONPointers: d.JSONPointers,
			JQPathExpressions: d.JQPaths})
	}
	n, err := normalizers.NewIgnoreNormalizer(rules.ToApplicationIgnoreDifferences(), nil, normalizers.IgnoreNormalizerOpts{})
	if err != nil {
		return nil, fmt.Errorf("read ignoreApplicationDifferences of %s: %w", t.ApplicationSet, err)
	}
	var stripped [2]map[string]any
	for i, spec := range []map[string]any{generated, live} {
		object := unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kindApplication,
			"metadata": map[string]any{"name": t.Name, "namespace": t.Namespace}, "spec": spec}}
		own := object.DeepCopy()
		if err := n.Normalize(own); err != nil {
			return nil, fmt.Errorf("apply ignoreApplicationDifferences of %s: %w", t.ApplicationSet, err)
		}
		stripped[i], _ = own.Object["spec"].(map[string]any)
	}
	return restoreStripped(stripped[0], stripped[1], live), nil
}

// restoreStripped gives an object what a stripped one lacks of the whole, or has otherwise: objects by their keys,
// everything else as a whole.
func restoreStripped(into, stripped, whole map[string]any) map[string]any {
	out := maps.Clone(into)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range whole {
		was, there := stripped[key]
		if there && reflect.DeepEqual(was, value) {
			continue
		}
		inner, isObject := value.(map[string]any)
		if !isObject {
			out[key] = value
			continue
		}
		has, _ := into[key].(map[string]any)
		had, _ := was.(map[string]any)
		out[key] = restoreStripped(has, had, inner)
	}
	return out
}

// keepUnknown is a specification that is applied over a live one: what neither it nor the one before has stays.
func keepUnknown(before, after, live map[string]any) map[string]any {
	out := maps.Clone(after)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range live {
		own, isInner := value.(map[string]any)
		is, has := after[key]
		was, had := before[key]
		switch {
		case !has && !had:
			out[key] = value
		case has && isInner:
			if next, ok := is.(map[string]any); ok {
				last, _ := was.(map[string]any)
				out[key] = keepUnknown(last, next, own)
			}
		}
	}
	return out
}
