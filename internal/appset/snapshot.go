package appset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// errSnapshot is what a generator gets that asks for more than the snapshot
// holds: there is no API server behind it.
var errSnapshot = errors.New("not in the snapshot that ApplicationSets are resolved with")

// snapshotClient answers the library's questions to the Kubernetes API from
// values. Methods that are not here would be a nil dereference, which
// generate turns into an error.
type snapshotClient struct {
	client.Client
	secrets   []corev1.Secret
	projects  map[string]bool // nil: not known, all exist
	kube      *Kube           // nil: no connection
	namespace string          // Argo CD's
}

func (s *snapshotClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if s.kube != nil {
		core, namespace := s.kube.core, cmp.Or(key.Namespace, s.namespace)
		switch into := obj.(type) {
		case *corev1.Secret:
			secret, err := core.Secrets(namespace).Get(ctx, key.Name, metav1.GetOptions{})
			if err == nil {
				*into = *secret
				// For an empty token the library takes one of the environment.
				maps.DeleteFunc(into.Data, func(_ string, value []byte) bool { return len(value) == 0 })
			}
			return err
		case *corev1.ConfigMap:
			configMap, err := core.ConfigMaps(namespace).Get(ctx, key.Name, metav1.GetOptions{})
			if err == nil {
				*into = *configMap
			}
			return err
		}
	}
	project, ok := obj.(*argov1alpha1.AppProject)
	if !ok {
		return fmt.Errorf("reading %T %s: %w", obj, key, errSnapshot)
	}
	if s.projects != nil && !s.projects[key.Name] {
		return apierrors.NewNotFound(schema.GroupResource{Group: "argoproj.io", Resource: "appprojects"}, key.Name)
	}
	project.Name, project.Namespace = key.Name, key.Namespace
	return nil
}

func (s *snapshotClient) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	secrets, ok := list.(*corev1.SecretList)
	if !ok {
		return fmt.Errorf("listing %T: %w", list, errSnapshot)
	}
	var options client.ListOptions
	options.ApplyOptions(opts)
	secrets.Items = selectSecrets(s.secrets, options.LabelSelector)
	return nil
}

// snapshotClientset is the same for the library's other kind of client.
type snapshotClientset struct {
	kubernetes.Interface
	secrets    []corev1.Secret
	kube       *Kube       // nil: no connection
	placements *Placements // where there is no connection
}

func (s *snapshotClientset) CoreV1() typedcorev1.CoreV1Interface {
	return &snapshotCore{secrets: s.secrets, kube: s.kube, placements: s.placements}
}

func (s *snapshotClientset) Discovery() discovery.DiscoveryInterface { return noDiscovery{} }

type snapshotCore struct {
	typedcorev1.CoreV1Interface
	secrets    []corev1.Secret
	kube       *Kube
	placements *Placements
}

// ConfigMaps are the cluster's own, or those of placements: only sets that were allowed to ask for them get here.
func (s *snapshotCore) ConfigMaps(namespace string) typedcorev1.ConfigMapInterface {
	if s.kube == nil {
		return &placementConfigMaps{placements: s.placements}
	}
	return s.kube.core.ConfigMaps(namespace)
}

func (s *snapshotCore) Secrets(string) typedcorev1.SecretInterface {
	return &snapshotSecrets{secrets: s.secrets}
}

type snapshotSecrets struct {
	typedcorev1.SecretInterface
	secrets []corev1.Secret
}

func (s *snapshotSecrets) List(_ context.Context, opts metav1.ListOptions) (*corev1.SecretList, error) {
	selector, err := labels.Parse(opts.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("selecting cluster secrets by %q: %w", opts.LabelSelector, err)
	}
	return &corev1.SecretList{Items: selectSecrets(s.secrets, selector)}, nil
}

// noDiscovery leaves the local cluster's version unknown; generators don't use it.
type noDiscovery struct{ discovery.DiscoveryInterface }

func (noDiscovery) ServerVersion() (*version.Info, error) { return nil, errSnapshot }

// selectSecrets copies what matches, because the library writes into what it gets.
func selectSecrets(all []corev1.Secret, selector labels.Selector) []corev1.Secret {
	var out []corev1.Secret
	for i := range all {
		if selector == nil || selector.Matches(labels.Set(all[i].Labels)) {
			out = append(out, *all[i].DeepCopy())
		}
	}
	return out
}
