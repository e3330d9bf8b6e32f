package argoemulator

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// apiKeepalive is how often an open stream gives a sign of life: Argo CD does every 15
// seconds.
const apiKeepalive = 15 * time.Second

// refreshPatience is how long a refresh may take that a client waits for.
const refreshPatience = 30 * time.Second

// recordsOf are the stored objects of a resource, by name.
func (a *ArgoCD) recordsOf(resource string) []json.RawMessage {
	out := []json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(a.store.records)) {
		if rec := a.store.records[key]; rec.resource == resource {
			out = append(out, rec.raw)
		}
	}
	return out
}

// apiFilter chooses Applications as the API does.
type apiFilter struct {
	namespace string
	projects  []string
	selector  labels.Selector
	after     int64
}

func parseAPIFilter(r *http.Request) (apiFilter, error) {
	q := r.URL.Query()
	selector, err := labels.Parse(q.Get("selector"))
	after, parseErr := strconv.ParseInt(q.Get("resourceVersion"), 10, 64)
	if parseErr != nil {
		after = 0 // as Argo CD takes it
	}
	return apiFilter{namespace: q.Get("appNamespace"), projects: q["projects"], selector: selector, after: after}, err
}

// matches says whether a stored Application is among the chosen.
func (a *apiFilter) matches(rec objectRecord) bool {
	if rec.resource != "applications" || a.namespace != "" && a.namespace != rec.namespace {
		return false
	}
	var x struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec struct {
			Project string `json:"project"`
		} `json:"spec"`
	}
	return json.Unmarshal(rec.raw, &x) == nil && a.selector.Matches(labels.Set(x.Metadata.Labels)) &&
		(len(a.projects) == 0 || slices.Contains(a.projects, x.Spec.Project))
}

// listApplications serves the list, in one piece.
func (a *ArgoCD) listApplications(w http.ResponseWriter, r *http.Request) {
	f, err := parseAPIFilter(r)
	if err != nil {
		writeAPIFailure(w, http.StatusInternalServerError, 2, "error parsing the selector")
		return
	}
	a.mu.Lock()
	items, version := []json.RawMessage{}, a.store.version
	for _, key := range slices.Sorted(maps.Keys(a.store.records)) {
		if rec := a.store.records[key]; f.matches(rec) {
			items = append(items, rec.raw)
		}
	}
	a.mu.Unlock()
	writeJSON(w, http.StatusOK, jsonObject{"metadata": jsonObject{"resourceVersion": strconv.FormatInt(version, 10)}, "items": items})
}

// streamApplications tells changes from now on, as server-sent events, until the client
// leaves or watches are cut. Nothing that was before is told again, whatever the version.
func (a *ArgoCD) streamApplications(w http.ResponseWriter, r *http.Request) {
	f, err := parseAPIFilter(r)
	if err != nil {
		writeAPIFailure(w, http.StatusInternalServerError, 2, "error parsing labels with selectors")
		return
	}
	a.mu.Lock()
	cut, last := a.watchesCut, a.store.version
	a.mu.Unlock()
	alive := time.NewTicker(apiKeepalive)
	defer alive.Stop()
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		a.mu.Lock()
		more, stalled := a.store.changed, a.watchesStalled
		var events []watchEvent
		if !stalled {
			events, last = slices.Clone(a.store.changesSince(last)), a.store.version
		}
		a.mu.Unlock()
		for _, e := range events {
			if e.version < f.after || !f.matches(e.objectRecord) {
				continue
			}
			line, err := json.Marshal(jsonObject{"result": jsonObject{"type": e.Type, "application": e.raw}})
			if err != nil {
				return
			}
			if _, err := fmt.Fprintf(w, "data: %s \n\n", line); err != nil || out.Flush() != nil {
				return // the client is gone
			}
		}
		select {
		case <-more:
		case <-alive.C:
			if _, err := io.WriteString(w, ":\n"); err != nil || out.Flush() != nil {
				return
			}
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// getApplication serves one Application; with refresh, when it has been compared again.
func (a *ArgoCD) getApplication(w http.ResponseWriter, r *http.Request, name string) {
	a.mu.Lock()
	app := a.findByQuery(w, r, name)
	if app == nil {
		a.mu.Unlock()
		return
	}
	if r.URL.Query().Get("refresh") != "" {
		a.updateObject(app, func(x jsonObject) {
			mergePatch(metadataOf(x), jsonObject{"annotations": jsonObject{refreshAnnotation: "normal"}})
		})
		a.mu.Unlock()
		if !a.awaitRefresh(r, app) {
			writeAPIFailure(w, http.StatusInternalServerError, 2, "application refresh deadline exceeded")
			return
		}
		a.mu.Lock()
	}
	raw := a.store.records[objectKey("applications", app.Namespace, app.Name)].raw
	a.mu.Unlock()
	writeJSON(w, http.StatusOK, raw)
}

// awaitRefresh waits until an Application's refresh is done.
func (a *ArgoCD) awaitRefresh(r *http.Request, app *application) bool {
	end := time.NewTimer(refreshPatience)
	defer end.Stop()
	for {
		a.mu.Lock()
		more, pending := a.store.changed, a.readRequests(app).refresh
		a.mu.Unlock()
		if !pending {
			return true
		}
		select {
		case <-more:
		case <-end.C:
			return false
		case <-r.Context().Done():
			return false
		}
	}
}

// requestSync asks for a sync, where none is asked for.
func (a *ArgoCD) requestSync(w http.ResponseWriter, r *http.Request, name string) {
	var request struct {
		Namespace string `json:"appNamespace"`
		Project   string `json:"project"`
		Revision  string `json:"revision"`
		Prune     bool   `json:"prune"`
		Infos     []any  `json:"infos"`
	}
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, maxPatch)).Decode(&request) != nil {
		writeAPIFailure(w, http.StatusBadRequest, 3, "the request can't be read")
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	app := a.findByProject(w, request.Namespace, request.Project, name)
	if app == nil {
		return
	}
	if a.readRequests(app).operation != nil || app.isSyncing() {
		writeAPIFailure(w, http.StatusBadRequest, 9, "another operation is already in progress")
		return
	}
	sync := jsonObject{"prune": request.Prune}
	if request.Revision != "" {
		sync["revision"] = request.Revision
	}
	operation := jsonObject{"initiatedBy": jsonObject{"username": "liftlock"}, "sync": sync}
	if request.Infos != nil {
		operation["info"] = request.Infos
	}
	a.updateObject(app, func(x jsonObject) { x["operation"] = operation })
	writeJSON(w, http.StatusOK, a.store.records[objectKey("applications", app.Namespace, app.Name)].raw)
}
