//go:build tools

// Package tools pins the Argo CD of the lab. The module is its own because
// Argo CD replaces what Kubernetes' own programs and Liftlock must not.
package tools

import _ "github.com/argoproj/argo-cd/v3/cmd"
