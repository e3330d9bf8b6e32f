package appset

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj/gitops-engine/pkg/diff"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
	argoutil "github.com/argoproj/argo-cd/v2/util/argo"
	"github.com/argoproj/argo-cd/v2/util/argo/normalizers"
)

// Differences are where the Applications that targets stand for and the live
// ones part. All lists are sorted.
type Differences struct {
	Missing   []Difference `json:"missing,omitempty"`   // resolved, but not live
	Extra     []Difference `json:"extra,omitempty"`     // live and owned by one of the sets, but not resolved
	Different []Difference `json:"different,omitempty"` // both, but not equal
	Equal     int          `json:"equal"`               // both, and the controller would leave them alone
	// Unsure are the sets that couldn't be resolved, whose live Applications
	// are therefore not compared.
	Unsure []string `json:"unsure,omitempty"`
}

// Difference is one Application.
type Difference struct {
	ArgoCD         string `json:"argocd"`
	Namespace      string `json:"namespace"`
	Name           string `json:"name"`
	ApplicationSet string `json:"applicationSet"`
	File           string `json:"file,omitempty"` // the set's manifest; empty for a live set
	// Fields are what differs; More counts those beyond maxFields.
	Fields []FieldDifference `json:"fields,omitempty"`
	More   int               `json:"more,omitempty"`
	// Expected says why Argo CD leaves it so; empty where it should not be.
	Expected string `json:"expected,omitempty"`
}

// FieldDifference is one field. A value is empty where there is none, is cut
// where it is long, and hidden where its name says that it is a secret.
type FieldDifference struct {
	Path     string `json:"path"`
	Live     string `json:"live"`
	Resolved string `json:"resolved"`
}

// Unexpected counts the Applications that Argo CD should not have left so.
func (d *Differences) Unexpected() int {
	n := 0
	for _, list := range [][]Difference{d.Missing, d.Extra, d.Different} {
		for i := range list {
			if list[i].Expected == "" {
				n++
			}
		}
	}
	return n
}

// maxFields bounds the fields that are shown of one Application.
const maxFields = 50

// Comparison compares targets with live Applications, given one at a time: ten
// thousand whole ones don't fit into memory well. It is used by one goroutine.
type Comparison struct {
	in          *Input
	targets     map[string]*Target // those that weren't met yet, by key
	seen        map[string]bool
	sets        map[string]*knownSet
	dropped     map[string]bool // generated, but not valid: the controller leaves a live one alone
	normalizers map[string]diff.Normalizer
	out         Differences
}

// knownSet is a set that targets were resolved from.
type knownSet struct {
	argocd, namespace, name, file string
	policy                        Policy
	resolved                      bool
}

// NewComparison begins one. f is what in resolved to, with Manifests.
func NewComparison(in Input, f *TargetSet) (*Comparison, error) {
	c := &Comparison{
		in: &in, targets: map[string]*Target{}, seen: map[string]bool{}, sets: map[string]*knownSet{},
		dropped: map[string]bool{}, normalizers: map[string]diff.Normalizer{},
	}
	for i := range f.sets {
		s := &f.sets[i]
		c.sets[c.objectKey(s.argocd, s.namespace, s.name)] = s
		if !s.resolved {
			c.out.Unsure = append(c.out.Unsure, s.name)
		}
	}
	slices.Sort(c.out.Unsure)
	for _, p := range f.Problems {
		if p.ApplicationSet != "" && p.Application != "" {
			c.dropped[p.ApplicationSet+"/"+p.Application] = true
		}
	}
	for i := range f.Targets {
		t := &f.Targets[i]
		if t.Live { // it can't differ from itself
			c.seen[c.objectKey(t.ArgoCD, t.Namespace, t.Name)] = true
			continue
		}
		if t.Application == nil {
			return nil, errors.New("comparing with live Applications: the targets were resolved without their manifests")
		}
		c.targets[c.objectKey(t.ArgoCD, t.Namespace, t.Name)] = t
	}
	return c, nil
}

// objectKey identifies an object; a manifest without a namespace goes to Argo CD's.
func (c *Comparison) objectKey(argocd, namespace, name string) string {
	return cmp.Or(argocd, c.in.Main) + "/" + cmp.Or(namespace, c.in.argoCD(argocd).Namespace) + "/" + name
}

// CompareLive compares one live Application, whole, of an Argo CD.
func (c *Comparison) CompareLive(argocd string, raw json.RawMessage) error {
	live := &argov1alpha1.Application{}
	if err := json.Unmarshal(raw, live); err != nil {
		return fmt.Errorf("comparing with live Applications: one of Argo CD %s can't be read: %w", argocd, err)
	}
	key := c.objectKey(argocd, live.Namespace, live.Name)
	t, resolved := c.targets[key]
	if !resolved {
		c.recordExtra(argocd, live)
		return nil
	}
	delete(c.targets, key)
	d := c.newDifference(t)
	if err := c.compareFields(t, live, &d); err != nil {
		return fmt.Errorf("comparing the live Application %s: %w", live.Name, err)
	}
	if len(d.Fields) == 0 {
		c.out.Equal++
		return nil
	}
	if t.Policy.NoUpdate {
		d.Expected = "applicationsSync keeps Applications as they were created"
	}
	c.out.Different = append(c.out.Different, d)
	return nil
}

func (c *Comparison) newDifference(t *Target) Difference {
	return Difference{
		ArgoCD: cmp.Or(t.ArgoCD, c.in.Main), Namespace: cmp.Or(t.Namespace, c.in.argoCD(t.ArgoCD).Namespace), Name: t.Name,
		ApplicationSet: t.ApplicationSet, File: t.ApplicationSetFile,
	}
}

// recordExtra notes a live Application that isn't resolved, if it is one of the sets'.
func (c *Comparison) recordExtra(argocd string, live *argov1alpha1.Application) {
	owner := metav1.GetControllerOf(live)
	if owner == nil || owner.Kind != kindSet || c.seen[c.objectKey(argocd, live.Namespace, live.Name)] {
		return
	}
	s := c.sets[c.objectKey(argocd, live.Namespace, owner.Name)]
	if s == nil || !s.resolved {
		return
	}
	d := Difference{ArgoCD: cmp.Or(argocd, c.in.Main), Namespace: live.Namespace, Name: live.Name, ApplicationSet: s.name, File: s.file}
	switch {
	case live.DeletionTimestamp != nil:
		d.Expected = "it is being deleted"
	case c.dropped[s.name+"/"+live.Name]:
		d.Expected = "it is generated, but not valid: Argo CD leaves it as it is"
	case s.policy.NoDelete:
		d.Expected = "applicationsSync keeps Applications that are not generated any more"
	}
	c.out.Extra = append(c.out.Extra, d)
}

// Differences ends the comparison: what wasn't met is missing.
func (c *Comparison) Differences() *Differences {
	for _, key := range slices.Sorted(maps.Keys(c.targets)) {
		c.out.Missing = append(c.out.Missing, c.newDifference(c.targets[key]))
	}
	for _, list := range [][]Difference{c.out.Missing, c.out.Extra, c.out.Different} {
		slices.SortFunc(list, func(a, b Difference) int {
			return cmp.Or(cmp.Compare(a.ArgoCD, b.ArgoCD), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
	}
	return &c.out
}

// keptAnnotations the controller leaves on a live Application always.
var keptAnnotations = []string{"notified.notifications.argoproj.io", argov1alpha1.AnnotationKeyRefresh}

// compareFields finds what the controller would change of a live Application.
func (c *Comparison) compareFields(t *Target, live *argov1alpha1.Application, d *Difference) error {
	resolved := &argov1alpha1.Application{}
	if err := json.Unmarshal(t.Application, resolved); err != nil {
		return fmt.Errorf("reading the resolved one: %w", err)
	}
	p := &t.Policy
	// As the controller merges what it generated into what is there.
	preserveKeys(&resolved.Annotations, live.Annotations, p.PreservedAnnotations, keptAnnotations)
	preserveKeys(&resolved.Labels, live.Labels, p.PreservedLabels)
	for _, f := range live.Finalizers {
		if strings.HasPrefix(f, argov1alpha1.PostDeleteFinalizerName) {
			resolved.Finalizers = append(resolved.Finalizers, f)
		}
	}
	if p.Rolling {
		// It syncs by itself then, and turns this off; which it does is no difference.
		withoutAutomation(&resolved.Spec)
		withoutAutomation(&live.Spec)
	}
	sides := make([]map[string]any, 0, 2)
	for _, app := range []*argov1alpha1.Application{live, resolved} {
		object, err := c.normalizeApplication(app, t)
		if err != nil {
			return err
		}
		sides = append(sides, object)
	}
	f := fieldDiff{}
	f.compareValues("", sides[0], sides[1])
	d.Fields, d.More = f.list, f.more
	return nil
}

func preserveKeys(into *map[string]string, live map[string]string, keys ...[]string) {
	for _, list := range keys {
		for _, key := range list {
			if value, there := live[key]; there {
				if *into == nil {
					*into = map[string]string{}
				}
				(*into)[key] = value
			}
		}
	}
}

func withoutAutomation(spec *argov1alpha1.ApplicationSpec) {
	if spec.SyncPolicy != nil {
		spec.SyncPolicy.Automated = nil
	}
}

// normalizeApplication is what the controller compares of an Application.
func (c *Comparison) normalizeApplication(app *argov1alpha1.Application, t *Target) (map[string]any, error) {
	app = &argov1alpha1.Application{
		TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kindApplication},
		ObjectMeta: metav1.ObjectMeta{
			Name: app.Name, Namespace: app.Namespace, Labels: app.Labels, Annotations: app.Annotations, Finalizers: app.Finalizers,
		},
		Spec: *argoutil.NormalizeApplicationSpec(&app.Spec),
	}
	object, err := asMap(app)
	if err != nil {
		return nil, err
	}
	if len(t.Policy.IgnoreDifferences) > 0 {
		ignore, err := c.ignoreNormalizer(t)
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{Object: object}
		if err := ignore.Normalize(u); err != nil {
			return nil, fmt.Errorf("applying ignoreApplicationDifferences: %w", err)
		}
		// A removed member may leave its parent empty, which is then no field.
		typed := &argov1alpha1.Application{}
		raw, err := json.Marshal(u.Object)
		if err == nil {
			err = json.Unmarshal(raw, typed)
		}
		if err != nil {
			return nil, fmt.Errorf("applying ignoreApplicationDifferences: %w", err)
		}
		typed.Spec = *argoutil.NormalizeApplicationSpec(&typed.Spec)
		if object, err = asMap(typed); err != nil {
			return nil, err
		}
	}
	meta, _ := object["metadata"].(map[string]any)
	return map[string]any{
		"spec":     object["spec"],
		"metadata": map[string]any{"labels": meta["labels"], "annotations": meta["annotations"], "finalizers": meta["finalizers"]},
	}, nil
}

// ignoreNormalizer builds a set's rules once.
func (c *Comparison) ignoreNormalizer(t *Target) (diff.Normalizer, error) {
	key := c.objectKey(t.ArgoCD, t.Namespace, t.ApplicationSet)
	if n := c.normalizers[key]; n != nil {
		return n, nil
	}
	var rules argov1alpha1.ApplicationSetIgnoreDifferences
	for _, d := range t.Policy.IgnoreDifferences {
		rules = append(rules, argov1alpha1.ApplicationSetResourceIgnoreDifferences{Name: d.Name, JSONPointers: d.JSONPointers,
			JQPathExpressions: d.JQPaths})
	}
	n, err := normalizers.NewIgnoreNormalizer(rules.ToApplicationIgnoreDifferences(), nil, normalizers.IgnoreNormalizerOpts{})
	if err != nil {
		return nil, fmt.Errorf("reading ignoreApplicationDifferences: %w", err)
	}
	c.normalizers[key] = n
	return n, nil
}
