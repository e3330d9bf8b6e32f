package argocd

import (
	"encoding/json"
	"reflect"
	"sort"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/verification"
)

// store holds the last state of every Application and tells what changed.
type store struct {
	argoCD   string
	log      *zap.Logger
	onChange func(verification.App, bool)
	onOwned  func() // called for each Application that an ApplicationSet owns

	order sync.Mutex // one change and its onChange at a time
	mu    sync.RWMutex
	apps  map[string]*verification.App // by namespace/name; replaced, never changed in place
	steps map[string]map[string]string // namespace/set → application → its RollingSync status
}

// Those that feeds write to: Applications, and the ApplicationSets' steps.
type (
	appSink struct{ *store }
	setSink struct{ *store }
)

func newStore(argoCD string, log *zap.Logger, onChange func(verification.App, bool)) *store {
	if onChange == nil {
		onChange = func(verification.App, bool) {}
	}
	return &store{
		argoCD: argoCD, log: log, onChange: onChange, onOwned: func() {},
		apps: map[string]*verification.App{}, steps: map[string]map[string]string{},
	}
}

func (s *store) get(namespace, name string) (*verification.App, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	app, ok := s.apps[namespace+"/"+name]
	if !ok {
		return nil, false
	}
	out := *app
	return &out, true
}

func (s *store) list() []verification.App {
	s.mu.RLock()
	out := make([]verification.App, 0, len(s.apps))
	for _, app := range s.apps {
		out = append(out, *app)
	}
	s.mu.RUnlock()
	sort.Slice(out, func(i, j int) bool {
		if out[i].Namespace != out[j].Namespace {
			return out[i].Namespace < out[j].Namespace
		}
		return out[i].Name < out[j].Name
	})
	return out
}

// put takes an Application as the server sent it. One that can't be read takes
// the place of the last state all the same, marked as such: an old state would
// be believed.
func (s appSink) put(raw []byte) (string, bool) {
	app, err := decodeApplication(s.argoCD, raw)
	if app.Name == "" {
		s.log.Warn("skipping an Application without a readable name", zap.Error(err), zap.ByteString("begins", raw[:min(len(raw), 100)]))
		return "", false
	}
	key := app.Namespace + "/" + app.Name
	s.order.Lock()
	defer s.order.Unlock()
	s.mu.RLock()
	prev := s.apps[key]
	app.SetStep = s.steps[app.Namespace+"/"+app.OwnedBySet][app.Name]
	s.mu.RUnlock()
	if err != nil && (prev == nil || len(prev.Conditions) == 0 || prev.Conditions[0].Type != unreadable) {
		s.log.Warn("an Application can't be read; it counts as unclear until it can", zap.String("application", key), zap.Error(err))
	}
	if app.OwnedBySet != "" {
		s.onOwned()
	}
	s.replace(key, prev, verification.Follow(prev, app))
	return key, true
}

// replace stores a state and tells if it differs. The caller holds order.
func (s *store) replace(key string, prev *verification.App, next verification.App) {
	if prev != nil && reflect.DeepEqual(*prev, next) {
		return
	}
	s.mu.Lock()
	s.apps[key] = &next
	s.mu.Unlock()
	s.onChange(next, false)
}

func (s appSink) drop(key string) {
	s.order.Lock()
	defer s.order.Unlock()
	s.mu.Lock()
	app := s.apps[key]
	delete(s.apps, key)
	s.mu.Unlock()
	if app != nil {
		s.onChange(*app, true)
	}
}

func (s appSink) keys(namespace string) []string { return keysIn(&s.mu, s.apps, namespace) }

// wireSet holds what is read of an ApplicationSet.
type wireSet struct {
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Status struct {
		ApplicationStatus []struct {
			Application string `json:"application"`
			Status      string `json:"status"`
		} `json:"applicationStatus"`
	} `json:"status"`
}

// put takes an ApplicationSet's RollingSync statuses over to its Applications.
func (s setSink) put(raw []byte) (string, bool) {
	key := keyOf(raw)
	var w wireSet
	if err := json.Unmarshal(raw, &w); err != nil {
		s.log.Warn("an ApplicationSet can't be read; its RollingSync steps stay unknown", zap.String("applicationSet", key), zap.Error(err))
		if key == "" {
			return "", false
		}
		w = wireSet{} // its steps are forgotten rather than believed
	}
	steps := map[string]string{}
	for _, a := range w.Status.ApplicationStatus {
		steps[a.Application] = a.Status
	}
	s.setSteps(key, steps)
	return key, key != ""
}

func (s setSink) drop(key string) { s.setSteps(key, nil) }

func (s setSink) keys(namespace string) []string { return keysIn(&s.mu, s.steps, namespace) }

func (s *store) setSteps(key string, steps map[string]string) {
	s.order.Lock()
	defer s.order.Unlock()
	s.mu.Lock()
	old := s.steps[key]
	if steps == nil {
		delete(s.steps, key)
	} else {
		s.steps[key] = steps
	}
	s.mu.Unlock()
	namespace, set, _ := strings.Cut(key, "/")
	for _, from := range []map[string]string{old, steps} {
		for name := range from {
			if old[name] == steps[name] {
				continue
			}
			appKey := namespace + "/" + name
			s.mu.RLock()
			prev := s.apps[appKey]
			s.mu.RUnlock()
			if prev != nil && prev.OwnedBySet == set {
				next := *prev
				next.SetStep = steps[name]
				s.replace(appKey, prev, next)
			}
		}
	}
}

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
