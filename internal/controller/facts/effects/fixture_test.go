package effects

import (
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// knownApps are Applications by namespace and name.
type knownApps struct {
	apps  map[string]*verification.App
	ready error
}

func (k *knownApps) Get(namespace, name string) (*verification.App, bool) {
	a, ok := k.apps[namespace+"/"+name]
	return a, ok
}

func (k *knownApps) Ready() error { return k.ready }
