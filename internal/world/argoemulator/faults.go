package argoemulator

import "maps"

// AppFault is what is wrong with one Application. The zero AppFault is nothing.
type AppFault struct {
	Health, Message string   // reported instead of the real health: Unknown, Suspended, Missing…
	Resource        string   // a Deployment that is reported so too; empty: no resource says why
	ComparisonError string   // comparisons end with it, and say Unknown
	SyncError       string   // syncs end Failed with it
	RenderError     string   // its manifests can't be rendered on request, because of it
	Images          []string // what its pods run, whatever is deployed
}

// SetFault makes something wrong with an Application, or right again. A
// comparison follows at once.
func (a *ArgoCD) SetFault(namespace, name string, f AppFault) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	app, err := a.findApplication(namespace, name)
	if err != nil {
		return err
	}
	app.fault = f
	app.failedCommit, app.compareNext = "", true
	return nil
}

// FailRequests makes requests to the API server fail with an HTTP code. method
// is GET, PATCH or WATCH, resource for example applications; empty is any.
// times is how often; negative: until it is called with code 0, which ends all.
func (a *ArgoCD) FailRequests(method, resource string, times, code int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if code == 0 {
		a.requestFaults = nil
		return
	}
	a.requestFaults = append(a.requestFaults, &requestFault{method: method, resource: resource, left: times, code: code})
}

// CutWatches ends all open watches. Clients may open new ones.
func (a *ArgoCD) CutWatches() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.watchesCut)
	a.watchesCut = make(chan struct{})
}

// StallWatches keeps watches open but silent, without bookmarks, or lets them
// tell what they have kept back.
func (a *ArgoCD) StallWatches(stall bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchesStalled = stall
	if !stall {
		close(a.store.changed)
		a.store.changed = make(chan struct{})
	}
}

// Compact forgets past changes: a watch from before now is 410 Gone.
func (a *ArgoCD) Compact() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.store.compact()
}

// Requests counts the API server's requests so far, such as "PATCH applications"
// and "WATCH applications".
func (a *ArgoCD) Requests() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.requests)
}
