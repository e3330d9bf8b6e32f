package api

import "context"

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
	Images []string `json:"images"` // a pod's, also those of its init containers
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
