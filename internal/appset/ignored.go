package appset

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/argoproj/gitops-engine/pkg/diff"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v2/util/argo/normalizers"
	"github.com/argoproj/argo-cd/v2/util/glob"
)

const (
	// maxIgnoreRules bounds the pointers and expressions of one Application with those of Argo CD's settings.
	maxIgnoreRules = 200
	// jqTimeout bounds one expression on one object, as Argo CD does.
	jqTimeout = time.Second
)

// Ignores is what an Application says of differences that don't count. The zero value: nothing.
type Ignores struct {
	Differences json.RawMessage // spec.ignoreDifferences
	// Respected is the sync option RespectIgnoreDifferences: what is ignored isn't synced either.
	Respected bool
}

// ignoresOf is what an Application's spec ignores.
func ignoresOf(spec *argov1alpha1.ApplicationSpec) Ignores {
	if len(spec.IgnoreDifferences) == 0 && spec.SyncPolicy == nil {
		return Ignores{}
	}
	out := Ignores{Respected: spec.SyncPolicy != nil && spec.SyncPolicy.SyncOptions.HasOption("RespectIgnoreDifferences=true")}
	if len(spec.IgnoreDifferences) > 0 {
		raw, err := json.Marshal(spec.IgnoreDifferences)
		if err != nil {
			return Ignores{} // only strings and lists of them
		}
		out.Differences = raw
	}
	return out
}

// IgnoreRules take what an Argo CD ignores out of objects.
type IgnoreRules struct {
	normalizer diff.Normalizer
	rules      argov1alpha1.IgnoreDifferences
}

// NewIgnoreRules reads what an Application ignores, and what Argo CD's settings do: the entries
// resource.customizations.ignoreDifferences.* of argocd-cm by what follows the last full stop. nil: nothing is ignored.
func NewIgnoreRules(own Ignores, settings map[string]string) (*IgnoreRules, error) {
	var rules argov1alpha1.IgnoreDifferences
	if len(own.Differences) > 0 {
		if err := json.Unmarshal(own.Differences, &rules); err != nil {
			return nil, fmt.Errorf("read the Application's ignoreDifferences: %w", err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		var d argov1alpha1.OverrideIgnoreDiff
		if err := yaml.Unmarshal([]byte(settings[key]), &d); err != nil {
			return nil, fmt.Errorf("read resource.customizations.ignoreDifferences.%s of Argo CD's settings: %w", key, err)
		}
		group, kind, both := strings.Cut(key, "_")
		switch {
		case key == "all":
			group, kind = "*", "*"
		case !both:
			group, kind = "", key
		}
		rules = append(rules, argov1alpha1.ResourceIgnoreDifferences{Group: group, Kind: kind, JSONPointers: d.JSONPointers,
			JQPathExpressions: d.JQPathExpressions, ManagedFieldsManagers: d.ManagedFieldsManagers})
	}
	count := 0
	for _, r := range rules {
		count += len(r.JSONPointers) + len(r.JQPathExpressions) + len(r.ManagedFieldsManagers)
	}
	switch {
	case count == 0:
		return nil, nil
	case count > maxIgnoreRules:
		return nil, fmt.Errorf("ignoreDifferences has %d pointers, expressions and managers, more than the %d that are looked at", count,
			maxIgnoreRules)
	}
	n, err := normalizers.NewIgnoreNormalizer(rules, nil, normalizers.IgnoreNormalizerOpts{JQExecutionTimeout: jqTimeout})
	if err != nil {
		return nil, fmt.Errorf("read ignoreDifferences: %w", err)
	}
	return &IgnoreRules{normalizer: n, rules: rules}, nil
}

// Strip is an object without what is ignored of it. namespace is where it goes, where it doesn't say so.
func (i *IgnoreRules) Strip(object json.RawMessage, namespace string) (json.RawMessage, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(object); err != nil {
		return nil, fmt.Errorf("strip an object of what is ignored: %w", err)
	}
	own := u.GetNamespace()
	if own == "" {
		u.SetNamespace(namespace)
	}
	if err := i.normalizer.Normalize(u); err != nil {
		return nil, fmt.Errorf("strip an object of what is ignored: %w", err)
	}
	if own == "" && u.Object != nil {
		unstructured.RemoveNestedField(u.Object, "metadata", "namespace")
	}
	if len(u.Object) == 0 {
		return nil, errors.New("strip an object of what is ignored: nothing is left of it")
	}
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("strip an object of what is ignored: %w", err)
	}
	return raw, nil
}

// Managers are the field managers whose fields of an object are ignored: which those are only the cluster knows.
func (i *IgnoreRules) Managers(apiVersion, kind, namespace, name string) []string {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	var out []string
	for _, d := range i.rules {
		fits := glob.Match(d.Group, group) && glob.Match(d.Kind, kind) && (d.Name == "" || d.Name == name)
		if fits && (d.Namespace == "" || d.Namespace == namespace) {
			out = append(out, d.ManagedFieldsManagers...)
		}
	}
	return SortedUnique(out)
}
