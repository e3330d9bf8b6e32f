//go:build tools

// Package tools pins the Kubernetes programs of the lab. The module is its own
// because Kubernetes and Argo CD need different versions of what they share.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
