package api

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Resource names a resource in a resource tree.
type Resource struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"` // empty: it is not in the cluster
}

// Node is a resource of an Application, or one that such a resource brought forth.
type Node struct {
	Resource
	Parents []Resource `json:"parentRefs"` // none: Git has it
	Health  struct {
		Status  string `json:"status"`
		Message string `json:"message"`
	} `json:"health"`
	// Info are remarks by name, such as a pod's "Status Reason".
	Info []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"info"`
	Images    []string  `json:"images"`    // a pod's, also those of its init containers
	CreatedAt time.Time `json:"createdAt"` // zero: it isn't said
}

// ResourceTree lists the resources of an Application with all that they brought forth, as
// of Argo CD's last comparison. It needs to be allowed applications, get.
func (c *Client) ResourceTree(ctx context.Context, namespace, name, project string) ([]Node, error) {
	var tree struct {
		Nodes []Node `json:"nodes"`
	}
	err := c.read(ctx, applicationPath(name, "resource-tree"), applicationQuery(namespace, project), &tree)
	return tree.Nodes, err
}

// Pod is what a live pod says of the images that its containers run.
type Pod struct {
	Spec struct {
		Containers     []Container `json:"containers"`
		InitContainers []Container `json:"initContainers"`
	} `json:"spec"`
	Status struct {
		ContainerStatuses     []ContainerStatus `json:"containerStatuses"`
		InitContainerStatuses []ContainerStatus `json:"initContainerStatuses"`
	} `json:"status"`
}

// Container is a container as the pod asks for it.
type Container struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// ContainerStatus is a container as its node runs it.
type ContainerStatus struct {
	Name string `json:"name"`
	// ImageID is what the node has pulled, as its runtime writes it: registry/name@sha256:…, by some behind a scheme.
	ImageID string `json:"imageID"`
}

// LivePod reads a pod below an Application as it is in its cluster. It needs to be allowed applications, get.
func (c *Client) LivePod(ctx context.Context, namespace, name, project string, pod Resource) (Pod, error) {
	query := applicationQuery(namespace, project)
	for key, value := range map[string]string{"namespace": pod.Namespace, "resourceName": pod.Name, "version": "v1", "group": pod.Group,
		"kind": pod.Kind} {
		query.Set(key, value)
	}
	var answer struct {
		Manifest string `json:"manifest"`
	}
	var out Pod
	if err := c.read(ctx, applicationPath(name, "resource"), query, &answer); err != nil {
		return out, err
	}
	if err := json.Unmarshal([]byte(answer.Manifest), &out); err != nil {
		return out, fmt.Errorf("read the manifest of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return out, nil
}
