//go:build !unix

package argocd

import (
	"testing"
	"time"
)

// processorTime isn't told here.
func processorTime(*testing.B) time.Duration { return 0 }
