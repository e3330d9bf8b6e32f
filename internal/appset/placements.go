package appset

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/argoproj/argo-cd/v2/applicationset/generators"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// Placements are resources that clusterDecisionResource generators read: which clusters were decided
// on, as Open Cluster Management's PlacementDecisions have it.
type Placements struct {
	Items []Placement
	// ConfigMaps are those that say how the generators read them, by their names; one that isn't
	// here is taken to say what Open Cluster Management's does.
	ConfigMaps map[string]map[string]string
}

// Placement is one such resource.
type Placement struct {
	Kind, Group string
	Name        string
	Labels      map[string]string
	Status      map[string][]map[string]string // the lists of its status
}

const (
	// maxPlacementsFile and maxPlacements bound a file of placements.
	maxPlacementsFile = 16 << 20
	maxPlacements     = 10_000
)

// placementConfig is what Open Cluster Management's ConfigMap for Argo CD says ("ApplicationSet
// Integration with Argo CD" in its documentation).
var placementConfig = map[string]string{
	"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "placementdecisions", "statusListKey": "decisions",
	"matchKey": "clusterName",
}

// placementObject is the part of an object that the resolver reads.
type placementObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Data   map[string]string          `json:"data"`
	Status map[string]json.RawMessage `json:"status"`
	Items  []placementObject          `json:"items"`
}

// ParsePlacements reads PlacementDecisions, or what else clusterDecisionResource generators read, as
// `kubectl get placementdecisions -o yaml` prints them, and ConfigMaps that say how: a List, one
// object, or several documents. Errors say in which document something is wrong.
func ParsePlacements(data []byte) (*Placements, error) {
	if len(data) > maxPlacementsFile {
		return nil, fmt.Errorf("reading placements: %d bytes are more than the %d that are read", len(data), maxPlacementsFile)
	}
	out := &Placements{ConfigMaps: map[string]map[string]string{}}
	err := eachDocument(data, func(n int, doc []byte) error {
		if isOnlyComments(doc) {
			return nil
		}
		at := func() string { return describeDocument(data, doc, n) }
		var object placementObject
		if err := yaml.Unmarshal(doc, &object); err != nil {
			return fmt.Errorf("reading placements, %s: it is not the YAML or JSON of a PlacementDecision: %w", at(), err)
		}
		objects := []placementObject{object}
		if strings.HasSuffix(object.Kind, "List") {
			objects = object.Items
		}
		for i := range objects {
			if err := out.add(&objects[i]); err != nil {
				return fmt.Errorf("reading placements, %s: %w", at(), err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (p *Placements) add(o *placementObject) error {
	group, _, hasGroup := strings.Cut(o.APIVersion, "/")
	switch {
	case o.Kind == "" || o.Metadata.Name == "":
		return errors.New("an object has no kind, or no name")
	case o.Kind == "ConfigMap":
		p.ConfigMaps[o.Metadata.Name] = o.Data
		return nil
	case !hasGroup:
		return fmt.Errorf("%s %q: its apiVersion is %q; wanted a PlacementDecision or another resource that decides on clusters", o.Kind,
			o.Metadata.Name, o.APIVersion)
	case len(p.Items) >= maxPlacements:
		return fmt.Errorf("more than %d placements are too many", maxPlacements)
	}
	item := Placement{Kind: o.Kind, Group: group, Name: o.Metadata.Name, Labels: o.Metadata.Labels,
		Status: map[string][]map[string]string{}}
	for key, raw := range o.Status {
		if len(raw) == 0 || raw[0] != '[' {
			continue
		}
		var list []map[string]string
		if err := json.Unmarshal(raw, &list); err != nil {
			return fmt.Errorf("%s %q: status.%s is not a list of texts by their keys, such as clusterName: prod", o.Kind,
				o.Metadata.Name, key)
		}
		item.Status[key] = list
	}
	p.Items = append(p.Items, item)
	return nil
}

// ClusterNames are the names of the clusters that PlacementDecisions decided on, sorted.
func (p *Placements) ClusterNames() []string {
	var out []string
	if p != nil {
		for i := range p.Items {
			for _, d := range p.Items[i].Status[placementConfig["statusListKey"]] {
				if name := d[placementConfig["matchKey"]]; name != "" {
					out = append(out, name)
				}
			}
		}
	}
	return SortedUnique(out)
}

// config is what a ConfigMap says.
func (p *Placements) config(name string) map[string]string {
	if data, known := p.ConfigMaps[name]; known {
		return data
	}
	return placementConfig
}

// placementGenerator is the library's generator over placements of a file.
type placementGenerator struct {
	generators.Generator
	ctx        context.Context // the library drops the caller's
	clientset  *snapshotClientset
	placements *Placements
	namespace  string
}

// GenerateParams gives the parameters of the clusters that were decided on.
func (p *placementGenerator) GenerateParams(spec *argov1alpha1.ApplicationSetGenerator, set *argov1alpha1.ApplicationSet,
	c client.Client) ([]map[string]any, error) {
	if spec == nil || spec.ClusterDecisionResource == nil {
		return nil, generators.EmptyAppSetGeneratorError
	}
	key := cmp.Or(p.placements.config(spec.ClusterDecisionResource.ConfigMapRef)["statusListKey"], "clusters")
	own := generators.NewDuckTypeGenerator(p.ctx, &placementClient{placements: p.placements, listKey: key}, p.clientset, p.namespace)
	return own.GenerateParams(spec, set, c)
}

// placementClient answers the library's questions for resources that decide on clusters. Methods that
// are not here would be a nil dereference, which generate turns into an error.
type placementClient struct {
	dynamic.Interface
	placements *Placements
	listKey    string
}

func (p *placementClient) Resource(kind schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return &placementResource{placements: p.placements, kind: kind, listKey: p.listKey}
}

type placementResource struct {
	dynamic.NamespaceableResourceInterface
	placements *Placements
	kind       schema.GroupVersionResource
	listKey    string // the list of the status that is read
}

// Namespace is any: the file has those that are meant.
func (pr *placementResource) Namespace(string) dynamic.ResourceInterface { return pr }

func (pr *placementResource) List(_ context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	byLabel, err := labels.Parse(opts.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("selecting placements by %q: %w", opts.LabelSelector, err)
	}
	byField, err := fields.ParseSelector(opts.FieldSelector)
	if err != nil {
		return nil, fmt.Errorf("selecting placements by %q: %w", opts.FieldSelector, err)
	}
	out := &unstructured.UnstructuredList{}
	for i := range pr.placements.Items {
		p := &pr.placements.Items[i]
		isKind := p.Group == pr.kind.Group && slices.Contains([]string{strings.ToLower(p.Kind), strings.ToLower(p.Kind) + "s"},
			strings.ToLower(pr.kind.Resource))
		if !isKind || !byLabel.Matches(labels.Set(p.Labels)) || !byField.Matches(fields.Set{"metadata.name": p.Name}) {
			continue
		}
		status := map[string]any{}
		for key, list := range p.Status {
			items := make([]any, len(list))
			for n, item := range list {
				decided := make(map[string]any, len(item))
				for k, v := range item {
					decided[k] = v
				}
				items[n] = decided
			}
			status[key] = items
		}
		if _, has := status[pr.listKey]; !has { // the library would fail on it
			status[pr.listKey] = []any{}
		}
		object := map[string]any{"metadata": map[string]any{"name": p.Name}, "status": status}
		out.Items = append(out.Items, unstructured.Unstructured{Object: object})
	}
	return out, nil
}

// placementConfigMaps are the ConfigMaps that say how placements are read.
type placementConfigMaps struct {
	typedcorev1.ConfigMapInterface
	placements *Placements
}

func (p *placementConfigMaps) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: p.placements.config(name)}, nil
}
