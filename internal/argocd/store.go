package argocd

import (
	"reflect"
	"sort"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// appStore holds the last state of every Application and tells what changed.
type appStore struct {
	argoCD   string
	log      *zap.Logger
	onChange func(verification.App, bool)
	versions *versionCounter

	changeMu sync.Mutex // one change and its onChange at a time
	mu       sync.RWMutex
	apps     map[string]*verification.App // by namespace/name; replaced, never changed in place
	specs    map[string]uint64            // of each Application: what its specification, labels and owner were when last seen
	steps    map[string]setSteps          // namespace/set → application → its turn in a RollingSync
	sets     map[string]ApplicationSet    // namespace/set → what a resolver needs of it
	setBytes int                          // bytes of all sets' objects
}

// appSink is what the Applications' feeds write to.
type appSink struct{ *appStore }

func newAppStore(argoCD string, log *zap.Logger, onChange func(verification.App, bool), versions *versionCounter) *appStore {
	if onChange == nil {
		onChange = func(verification.App, bool) {}
	}
	return &appStore{
		argoCD: argoCD, log: log, onChange: onChange, versions: versions,
		apps: map[string]*verification.App{}, specs: map[string]uint64{}, steps: map[string]setSteps{}, sets: map[string]ApplicationSet{},
	}
}

func (as *appStore) getApplication(namespace, name string) (*verification.App, bool) {
	as.mu.RLock()
	defer as.mu.RUnlock()
	app, ok := as.apps[namespace+"/"+name]
	if !ok {
		return nil, false
	}
	out := *app
	if step := &out.SetStep; step.Status == "Waiting" || step.Status == "Pending" {
		step.WaitsFor = as.findBlocker(app)
	}
	return &out, true
}

func (as *appStore) listApplications() []verification.App {
	as.mu.RLock()
	out := make([]verification.App, 0, len(as.apps))
	for _, app := range as.apps {
		out = append(out, *app)
	}
	as.mu.RUnlock()
	sort.Slice(out, func(i, j int) bool {
		if out[i].Namespace != out[j].Namespace {
			return out[i].Namespace < out[j].Namespace
		}
		return out[i].Name < out[j].Name
	})
	return out
}

// decodeObject reads an Application as the server sent it. One that can't be read takes
// the place of the last state all the same, marked as such: an old state would
// be believed.
func (a appSink) decodeObject(raw []byte) (string, func()) {
	app, spec, err := decodeApplication(a.argoCD, raw)
	if app.Name == "" {
		a.log.Warn("skipping an Application without a readable name", zap.Error(err), zap.ByteString("begins", raw[:min(len(raw), 100)]))
		return "", nil
	}
	key := app.Namespace + "/" + app.Name
	return key, func() { a.putApplication(key, app, spec, err) }
}

// putApplication stores an Application's state, of whose reading err tells.
func (a appSink) putApplication(key string, app verification.App, spec uint64, err error) {
	a.changeMu.Lock()
	defer a.changeMu.Unlock()
	a.mu.Lock()
	prev := a.apps[key]
	app.SetStep = a.steps[app.Namespace+"/"+app.OwnedBySet][app.Name]
	same := a.specs[key] == spec
	a.specs[key] = spec
	a.mu.Unlock()
	if !same {
		a.versions.countChange(ofApplications)
	}
	if err != nil && (prev == nil || len(prev.Conditions) == 0 || prev.Conditions[0].Type != unreadableCondition) {
		a.log.Warn("an Application can't be read; it counts as unclear until it can", zap.String("application", key), zap.Error(err))
	}
	a.replaceIfChanged(key, prev, verification.TrackRefresh(prev, app))
}

// replaceIfChanged stores a state and tells if it differs. The caller holds changeMu.
func (as *appStore) replaceIfChanged(key string, prev *verification.App, next verification.App) {
	if prev != nil && reflect.DeepEqual(*prev, next) {
		return
	}
	as.mu.Lock()
	as.apps[key] = &next
	as.mu.Unlock()
	as.onChange(next, false)
}

func (a appSink) dropObject(key string) {
	a.changeMu.Lock()
	defer a.changeMu.Unlock()
	a.mu.Lock()
	app := a.apps[key]
	delete(a.apps, key)
	delete(a.specs, key)
	a.mu.Unlock()
	if app != nil {
		a.versions.countChange(ofApplications)
		a.onChange(*app, true)
	}
}

func (a appSink) listKeys(namespace string) []string { return keysIn(&a.mu, a.apps, namespace) }

func keysIn[T any](mu *sync.RWMutex, m map[string]T, namespace string) []string {
	mu.RLock()
	defer mu.RUnlock()
	var keys []string
	for key := range m {
		if namespace == "" || strings.HasPrefix(key, namespace+"/") {
			keys = append(keys, key)
		}
	}
	return keys
}
