package fleet

import (
	"fmt"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// kubeTimeout bounds one request to the cluster.
const kubeTimeout = 15 * time.Second

// Kube reads single objects from the cluster that an Argo CD runs in: the
// Secrets that generators' tokens are in, ConfigMaps, and the resources that
// clusterDecisionResource generators name. It never writes, and keeps nothing.
type Kube struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
}

// NewKube makes one from a cluster's access; nothing is dialled.
func NewKube(config *rest.Config) (*Kube, error) {
	c := rest.CopyConfig(config)
	c.Timeout = kubeTimeout
	c.WarningHandler = rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("preparing to read from the cluster for generators: %w", err)
	}
	dyn, err := dynamic.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("preparing to read from the cluster for generators: %w", err)
	}
	return &Kube{client: client, dynamic: dyn}, nil
}
