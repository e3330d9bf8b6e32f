package argocd

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// maxSetBytes bounds what is kept of all ApplicationSets together, in bytes.
// Thousands of ordinary ones are a few megabytes; one with ten thousand list
// elements is two.
const maxSetBytes = 128 << 20

// lastApplied is kubectl's annotation that repeats the whole object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// ApplicationSet is an ApplicationSet as the cluster has it.
type ApplicationSet struct {
	Namespace, Name string
	// Object is the whole object as JSON, without status, managed fields and
	// kubectl's copy of it. It is shared: read it, don't change it.
	Object json.RawMessage
	// Version is a digest of Object: a change of the status alone, which Argo CD
	// writes often, is none.
	Version string
}

// setSink is what the ApplicationSets' feeds write to.
type setSink struct{ *appStore }

// decodeObject reads an ApplicationSet's specification, and its RollingSync statuses,
// which are taken over to its Applications.
func (s setSink) decodeObject(raw []byte) (string, func()) {
	key := keyOf(raw)
	if key == "" {
		s.log.Warn("skipping an ApplicationSet without a readable name", zap.ByteString("begins", raw[:min(len(raw), 100)]))
		return "", nil
	}
	set, steps, err := decodeSet(raw)
	if err != nil {
		// Its steps are forgotten rather than believed, and so is what it generates.
		s.log.Warn("an ApplicationSet can't be read; it counts as absent until it can", zap.String("applicationSet", key), zap.Error(err))
	}
	return key, func() {
		s.setSteps(key, steps)
		s.keepSet(key, set)
	}
}

func (s setSink) dropObject(key string) {
	s.setSteps(key, nil)
	s.keepSet(key, ApplicationSet{})
}

func (s setSink) listKeys(namespace string) []string { return keysIn(&s.mu, s.steps, namespace) }

// decodeSet reduces an ApplicationSet to what a resolver needs of it, and the
// RollingSync turn of each of its Applications. The result holds no part of
// raw. steps is never nil.
func decodeSet(raw []byte) (set ApplicationSet, steps setSteps, err error) {
	steps = setSteps{}
	var top, meta map[string]json.RawMessage
	var w struct {
		Metadata struct {
			Namespace   string                     `json:"namespace"`
			Name        string                     `json:"name"`
			Annotations map[string]json.RawMessage `json:"annotations"`
		} `json:"metadata"`
		Spec   wireSetSpec   `json:"spec"`
		Status wireSetStatus `json:"status"`
	}
	for _, into := range []any{&top, &w} {
		if err := json.Unmarshal(raw, into); err != nil {
			return ApplicationSet{}, steps, fmt.Errorf("decode an ApplicationSet: %w", err)
		}
	}
	if err := json.Unmarshal(top["metadata"], &meta); err != nil {
		return ApplicationSet{}, steps, fmt.Errorf("decode an ApplicationSet's metadata: %w", err)
	}
	steps = decodeSteps(&w.Spec, &w.Status)
	delete(top, "status")
	for _, noise := range []string{"managedFields", "resourceVersion", "generation", "selfLink"} {
		delete(meta, noise)
	}
	if _, ok := w.Metadata.Annotations[lastApplied]; ok {
		delete(w.Metadata.Annotations, lastApplied)
		if meta["annotations"], err = json.Marshal(w.Metadata.Annotations); err != nil {
			return ApplicationSet{}, steps, fmt.Errorf("keep an ApplicationSet's annotations: %w", err)
		}
	}
	if top["metadata"], err = json.Marshal(meta); err != nil {
		return ApplicationSet{}, steps, fmt.Errorf("keep an ApplicationSet's metadata: %w", err)
	}
	object, err := json.Marshal(top)
	if err != nil {
		return ApplicationSet{}, steps, fmt.Errorf("keep an ApplicationSet: %w", err)
	}
	sum := sha256.Sum256(object)
	return ApplicationSet{Namespace: w.Metadata.Namespace, Name: w.Metadata.Name, Object: object, Version: hex.EncodeToString(sum[:])},
		steps, nil
}

// keepSet stores a set, or forgets it when it has no object, and tells if that
// changed anything.
func (as *appStore) keepSet(key string, set ApplicationSet) {
	as.mu.Lock()
	old, had := as.sets[key]
	as.setBytes += len(set.Object) - len(old.Object)
	if set.Object == nil {
		delete(as.sets, key)
	} else {
		as.sets[key] = set
	}
	as.mu.Unlock()
	if had != (set.Object != nil) || old.Version != set.Version {
		as.versions.countChange(ofSets)
	}
}

// liveSets lists the sets, sorted; the error says that they are more than is kept.
func (as *appStore) liveSets() ([]ApplicationSet, error) {
	as.mu.RLock()
	held, out := as.setBytes, slices.Collect(maps.Values(as.sets))
	as.mu.RUnlock()
	if held > maxSetBytes {
		return nil, fmt.Errorf("the ApplicationSets are %d MiB together, more than the %d that are read", held>>20, maxSetBytes>>20)
	}
	slices.SortFunc(out, func(a, b ApplicationSet) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// setSteps takes over the RollingSync statuses of one set's Applications; nil
// forgets the set's.
func (as *appStore) setSteps(key string, steps setSteps) {
	as.changeMu.Lock()
	defer as.changeMu.Unlock()
	as.mu.Lock()
	old := as.steps[key]
	if steps == nil {
		delete(as.steps, key)
	} else {
		as.steps[key] = steps
	}
	as.mu.Unlock()
	namespace, set, _ := strings.Cut(key, "/")
	for _, from := range []setSteps{old, steps} {
		for name := range from {
			if old[name] == steps[name] {
				continue
			}
			appKey := namespace + "/" + name
			as.mu.RLock()
			prev := as.apps[appKey]
			as.mu.RUnlock()
			if prev != nil && prev.OwnedBySet == set {
				next := *prev
				next.SetStep = steps[name]
				as.replaceIfChanged(appKey, prev, next)
			}
		}
	}
}

// projectSink are the names of the AppProjects in Argo CD's own namespace, and their sync
// windows.
type projectSink struct {
	*appStore
	names   map[string]bool         // by namespace/name, guarded by the store's mu
	windows map[string][]syncWindow // likewise, of those that have some
	// unreadable says of a project why its windows can't be read; likewise.
	unreadable map[string]error
	// partial is why there may be others than those that are listed; nil: there are none. Likewise.
	partial         error
	onWindowsChange func(apps []verification.App)
}

func newProjectSink(s *appStore) *projectSink {
	return &projectSink{appStore: s, names: map[string]bool{}, windows: map[string][]syncWindow{}, unreadable: map[string]error{},
		onWindowsChange: func([]verification.App) {}}
}

func (p *projectSink) decodeObject(raw []byte) (string, func()) {
	key := keyOf(raw)
	if key == "" {
		p.log.Warn("skipping an AppProject without a readable name", zap.ByteString("begins", raw[:min(len(raw), 100)]))
	}
	windows, err := decodeWindows(raw)
	if err != nil {
		p.log.Warn("an AppProject's sync windows can't be read; they count as unknown until they can", zap.String("project", key),
			zap.Error(err))
	}
	return key, func() {
		p.setName(key, true)
		p.setWindows(key, windows, err)
	}
}

func (p *projectSink) dropObject(key string) {
	p.setName(key, false)
	p.setWindows(key, nil, nil)
}

// setWindows replaces a project's sync windows, or why they can't be read.
func (p *projectSink) setWindows(key string, windows []syncWindow, unreadable error) {
	p.mu.Lock()
	changed := (p.unreadable[key] == nil) != (unreadable == nil) || !slices.EqualFunc(p.windows[key], windows, func(a, b syncWindow) bool {
		return reflect.DeepEqual(a.wireWindow, b.wireWindow)
	})
	delete(p.windows, key)
	delete(p.unreadable, key)
	if len(windows) > 0 {
		p.windows[key] = windows
	}
	if unreadable != nil {
		p.unreadable[key] = unreadable
	}
	p.mu.Unlock()
	if !changed {
		return
	}
	_, project, _ := strings.Cut(key, "/")
	apps := slices.DeleteFunc(p.listApplications(), func(a verification.App) bool { return a.Project != project })
	if len(apps) > 0 {
		p.onWindowsChange(apps)
	}
}

// whyPartial says why there may be projects that aren't listed; nil: there are none.
func (p *projectSink) whyPartial() error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.partial
}

// setPartial notes whether there may be projects that aren't listed.
func (p *projectSink) setPartial(why error) {
	p.mu.Lock()
	changed := (p.partial == nil) != (why == nil)
	p.partial = why
	p.mu.Unlock()
	if changed {
		p.versions.countChange(ofProjects)
	}
}

// setName notes that there is a project, or that there is none.
func (p *projectSink) setName(key string, exists bool) {
	p.mu.Lock()
	had := p.names[key]
	p.names[key] = exists
	if !exists {
		delete(p.names, key)
	}
	p.mu.Unlock()
	if had != exists {
		p.versions.countChange(ofProjects)
	}
}

func (p *projectSink) listKeys(namespace string) []string { return keysIn(&p.mu, p.names, namespace) }

// listNames gives the names, sorted; never nil.
func (p *projectSink) listNames() []string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	out := []string{}
	for key := range p.names {
		_, name, _ := strings.Cut(key, "/")
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
