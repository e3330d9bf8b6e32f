package live

import (
	"path/filepath"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
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

// newTestStore is a new store on disk.
func newTestStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "liftlock.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
