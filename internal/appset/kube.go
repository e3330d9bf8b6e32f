package appset

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/argoproj/argo-cd/v2/applicationset/services/github_app_auth"
)

// kubeTimeout bounds one request to the cluster.
const kubeTimeout = 15 * time.Second

// Kube reads single objects from the cluster that an Argo CD runs in: the
// Secrets that generators' tokens are in, ConfigMaps, and the resources that
// clusterDecisionResource generators name. It never writes, and keeps nothing.
type Kube struct {
	core    typedcorev1.CoreV1Interface
	dynamic dynamic.Interface
}

// NewKube makes one from a cluster's access; nothing is dialled.
func NewKube(config *rest.Config) (*Kube, error) {
	c := rest.CopyConfig(config)
	c.Timeout = kubeTimeout
	c.UserAgent = "liftlock"
	c.WarningHandler = rest.NoWarnings{}
	core, err := typedcorev1.NewForConfig(c) // the whole client set would keep a client for every kind in the program
	if err != nil {
		return nil, fmt.Errorf("preparing to read from the cluster for generators: %w", err)
	}
	dyn, err := dynamic.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("preparing to read from the cluster for generators: %w", err)
	}
	return &Kube{core: core, dynamic: dyn}, nil
}

// appCredentials finds a GitHub App's in the Secret that a generator names
// (appSecretName), which has a repository credential template's fields.
type appCredentials struct{ client *snapshotClient }

var _ github_app_auth.Credentials = appCredentials{}

// GetAuthSecret reads the Secret from Argo CD's own namespace.
func (a appCredentials) GetAuthSecret(ctx context.Context, name string) (*github_app_auth.Authentication, error) {
	var secret corev1.Secret
	if err := a.client.Get(ctx, types.NamespacedName{Namespace: a.client.namespace, Name: name}, &secret); err != nil {
		return nil, fmt.Errorf("error getting creds for %s: %w", name, err)
	}
	out := &github_app_auth.Authentication{
		EnterpriseBaseURL: string(secret.Data["githubAppEnterpriseBaseUrl"]),
		PrivateKey:        string(secret.Data["githubAppPrivateKey"]),
	}
	if out.PrivateKey == "" {
		return nil, fmt.Errorf("no github app found for %s", name)
	}
	for key, into := range map[string]*int64{"githubAppID": &out.Id, "githubAppInstallationID": &out.InstallationId} {
		text := string(secret.Data[key])
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("secret %s: %s is not a number", name, key)
		}
		*into = n
	}
	return out, nil
}
