package facts

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
)

const landedHash = "cccccccccccccccccccccccccccccccccccccccc"

// knownWindows are closed for the Applications in it until a time.
type knownWindows struct {
	closed map[string]time.Time
	err    error
}

func (*knownWindows) ClosedWindow(*verification.App, time.Time) *verification.Window { return nil }

func (k *knownWindows) SyncWindow(app *verification.App, _ time.Time) (bool, time.Time, error) {
	until, isClosed := k.closed[app.Name]
	return !isClosed, until, k.err
}

// newTestSigner signs with these secrets.
func newTestSigner(t interface{ Fatal(...any) }, secrets ...string) branch.MarkSigner {
	all := make([][]byte, len(secrets))
	for i, s := range secrets {
		all[i] = []byte(s)
	}
	signer, err := branch.NewMarkSigner(all...)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// storedRecords are the store's, by key.
type storedRecords map[store.RecordKey]string

func (s storedRecords) Record(_ context.Context, key store.RecordKey) ([]byte, bool, error) {
	v, ok := s[key]
	return []byte(v), ok, nil
}

const headCommit = "1e4d5c6b7a8990a1b2c3d4e5f60718293a4b5c6d"

// fakeManifests renders Applications as render says, for each set of revisions.
type fakeManifests struct {
	render func(app *verification.App, revisions []string) ([]string, error)

	mu    sync.Mutex
	calls []string
}

func (f *fakeManifests) Manifests(_ context.Context, app *verification.App, sets ...[]string) (out [][]string, err error) {
	for _, revisions := range sets {
		f.mu.Lock()
		f.calls = append(f.calls, fmt.Sprint(app.Name, revisions))
		f.mu.Unlock()
		manifests, err := f.render(app, revisions)
		if err != nil {
			return out, err
		}
		out = append(out, manifests)
	}
	return out, nil
}

// ConfigMap is a manifest with one value.
func configMap(value string) []string {
	return []string{fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"},"data":{"a":%q}}`, value)}
}
