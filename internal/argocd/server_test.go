package argocd

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
)

// apiServer is a Kubernetes API server made small: two resources in any
// namespaces, lists in pages, watches from a resourceVersion, merge patches.
type apiServer struct {
	t   *testing.T
	url string

	mu       sync.Mutex
	version  int
	objects  map[string]json.RawMessage // resource/namespace/name
	events   []serverEvent
	oldest   int            // watches from before are too old
	failures map[string]int // resource → status to answer lists and watches with
	wake     chan struct{}  // closed at each change
	cut      chan struct{}  // closed to end all watches
	requests []string
	watching int
	schema   []byte // what describes the kinds; none: there is no such path
}

type serverEvent struct {
	version             int
	kind, resource, raw string
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{t: t, version: 10, objects: map[string]json.RawMessage{}, failures: map[string]int{}, wake: make(chan struct{}), cut: make(chan struct{})}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(s.cutWatches) // before Close, which waits for them
	s.url = server.URL
	return s
}

func (a *apiServer) config() *rest.Config { return &rest.Config{Host: a.url} }

// set stores an object, completing its metadata, and tells the watches.
func (a *apiServer) set(resource, namespace, name, rest string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.setLocked(resource, namespace, name, rest)
}

func (a *apiServer) setLocked(resource, namespace, name, rest string) {
	a.version++
	key := resource + "/" + namespace + "/" + name
	kind := "ADDED"
	if _, ok := a.objects[key]; ok {
		kind = "MODIFIED"
	}
	raw := stampObject(a.t, rest, namespace, name, a.version)
	a.objects[key] = raw
	a.publish(serverEvent{a.version, kind, resource, string(raw)})
}

func stampObject(t *testing.T, rest, namespace, name string, version int) json.RawMessage {
	o := map[string]any{}
	if err := json.Unmarshal([]byte(rest), &o); err != nil {
		t.Errorf("bad object %s: %v", rest, err)
	}
	meta, ok := o["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		o["metadata"] = meta
	}
	meta["namespace"], meta["name"], meta["resourceVersion"] = namespace, name, strconv.Itoa(version)
	if meta["uid"] == nil {
		meta["uid"] = "uid-" + name
	}
	raw, _ := json.Marshal(o)
	return raw
}

func (a *apiServer) remove(resource, namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	key := resource + "/" + namespace + "/" + name
	raw := stampObject(a.t, string(a.objects[key]), namespace, name, a.version)
	delete(a.objects, key)
	a.publish(serverEvent{a.version, "DELETED", resource, string(raw)})
}

func (a *apiServer) publish(e serverEvent) {
	a.events = append(a.events, e)
	close(a.wake)
	a.wake = make(chan struct{})
}

// bookmark tells the watches of a resource how far the world is.
func (a *apiServer) bookmark(resource string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	a.publish(serverEvent{a.version, "BOOKMARK", resource, fmt.Sprintf(`{"kind":"Application","metadata":{"resourceVersion":"%d"}}`, a.version)})
}

// expireWatches makes every watch from before now too old.
func (a *apiServer) expireWatches() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	a.oldest, a.events = a.version, nil
}

func (a *apiServer) cutWatches() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.cut)
	a.cut = make(chan struct{})
}

func (a *apiServer) failWith(resource string, status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failures[resource] = status
}

func (a *apiServer) seen(substr string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, r := range a.requests {
		if strings.Contains(r, substr) {
			n++
		}
	}
	return n
}

// watches counts the watches of a resource that were asked for.
func (a *apiServer) watches(resource string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, r := range a.requests {
		if strings.Contains(r, "/"+resource+"?") && strings.Contains(r, "watch=true") {
			n++
		}
	}
	return n
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == schemaPath && a.schema != nil {
		_, _ = w.Write(a.schema)
		return
	}
	if r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
		a.serveReview(w, r)
		return
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/apis/argoproj.io/v1alpha1/")
	if !ok {
		path, ok = strings.CutPrefix(r.URL.Path, "/api/v1/")
	}
	if !ok {
		writeStatus(w, http.StatusNotFound, "NotFound", "no such path "+r.URL.Path)
		return
	}
	a.mu.Lock()
	a.requests = append(a.requests, r.Method+" "+r.URL.RequestURI())
	a.mu.Unlock()
	namespace := ""
	if rest, ok := strings.CutPrefix(path, "namespaces/"); ok {
		namespace, path, _ = strings.Cut(rest, "/")
	}
	resource, name, one := strings.Cut(path, "/")
	a.mu.Lock()
	status := a.failures[resource]
	if r.Method == http.MethodPatch && a.failures["patch"] != 0 {
		status = a.failures["patch"]
	}
	a.mu.Unlock()
	switch {
	case status == http.StatusForbidden:
		writeStatus(w, status, "Forbidden", fmt.Sprintf(`%s.argoproj.io is forbidden: User "liftlock" cannot %s resource`, resource, strings.ToLower(r.Method)))
	case status != 0:
		writeStatus(w, status, "", "failing as told")
	case one:
		a.serveOne(w, r, resource, namespace, name)
	case r.URL.Query().Get("watch") == "true":
		a.serveWatch(w, r, resource, namespace)
	default:
		a.serveList(w, r, resource, namespace)
	}
}

// serveReview allows what isn't refused.
func (a *apiServer) serveReview(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Spec struct {
			ResourceAttributes struct{ Namespace, Verb, Group, Resource string }
		}
	}
	err := json.NewDecoder(r.Body).Decode(&review)
	a.mu.Lock()
	defer a.mu.Unlock()
	about := review.Spec.ResourceAttributes
	if a.failures["review"] != 0 || err != nil || about.Group != "argoproj.io" || about.Resource != "applications" || about.Namespace != "argocd" {
		writeStatus(w, http.StatusForbidden, "Forbidden", "no review for the likes of you")
		return
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, `{"status": {"allowed": %t}}`, a.failures[about.Verb] == 0)
}

func writeStatus(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code})
}

func (a *apiServer) serveList(w http.ResponseWriter, r *http.Request, resource, namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := r.URL.Query()
	if q.Has("resourceVersion") {
		a.t.Errorf("a list with a resourceVersion is not paged: %s", r.URL)
	}
	prefix := resource + "/"
	if namespace != "" {
		prefix += namespace + "/"
	}
	selector, err := labels.Parse(q.Get("labelSelector"))
	if err != nil {
		writeStatus(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	var keys []string
	for key, raw := range a.objects {
		var o struct{ Metadata wireMeta }
		_ = json.Unmarshal(raw, &o) // without labels, if it can't be read
		if strings.HasPrefix(key, prefix) && selector.Matches(labels.Set(o.Metadata.Labels)) {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	after := q.Get("continue")
	limit, _ := strconv.Atoi(q.Get("limit"))
	items, next := []json.RawMessage{}, ""
	for _, key := range keys {
		if key <= after {
			continue
		}
		if len(items) == limit {
			next = keys[sort.SearchStrings(keys, key)-1]
			break
		}
		items = append(items, a.objects[key])
	}
	_ = json.NewEncoder(w).Encode(map[string]any{ // in the API server's order: items before metadata
		"apiVersion": "argoproj.io/v1alpha1", "items": items, "kind": "List",
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(a.version), "continue": next},
	})
}

func (a *apiServer) serveWatch(w http.ResponseWriter, r *http.Request, resource, namespace string) {
	from, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		a.t.Errorf("watch from %q", r.URL.Query().Get("resourceVersion"))
	}
	w.WriteHeader(http.StatusOK)
	flush := w.(http.Flusher).Flush
	flush()
	a.mu.Lock()
	cut := a.cut
	a.watching++
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.watching--
		a.mu.Unlock()
	}()
	for {
		a.mu.Lock()
		wake, tooOld := a.wake, from < a.oldest
		var out []serverEvent
		for _, e := range a.events {
			if e.version > from && e.resource == resource {
				out = append(out, e)
			}
		}
		a.mu.Unlock()
		if tooOld {
			fmt.Fprintf(w, `{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}}`+"\n")
			return
		}
		for _, e := range out {
			from = e.version
			if namespace == "" || e.kind == "BOOKMARK" || strings.Contains(e.raw, `"namespace":"`+namespace+`"`) {
				fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", e.kind, e.raw)
			}
		}
		flush()
		select {
		case <-wake:
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (a *apiServer) serveOne(w http.ResponseWriter, r *http.Request, resource, namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	raw, ok := a.objects[resource+"/"+namespace+"/"+name]
	if !ok {
		writeStatus(w, http.StatusNotFound, "NotFound", name+" not found")
		return
	}
	if r.Method == http.MethodPatch {
		if r.Header.Get("Content-Type") != "application/merge-patch+json" {
			a.t.Errorf("patch with %s", r.Header.Get("Content-Type"))
		}
		var patch, object map[string]any
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
			a.t.Errorf("patch: %v", err)
		}
		_ = json.Unmarshal(raw, &object)
		if meta, _ := patch["metadata"].(map[string]any); meta["resourceVersion"] != nil && meta["resourceVersion"] != object["metadata"].(map[string]any)["resourceVersion"] {
			writeStatus(w, http.StatusConflict, "Conflict", "the object has been modified")
			return
		}
		merged, _ := json.Marshal(mergePatch(object, patch))
		a.setLocked(resource, namespace, name, string(merged))
		raw = a.objects[resource+"/"+namespace+"/"+name]
	}
	_, _ = w.Write(raw)
}

// mergePatch is RFC 7386.
func mergePatch(target any, patch map[string]any) any {
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for k, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(object, k)
		case map[string]any:
			object[k] = mergePatch(object[k], v)
		default:
			object[k] = v
		}
	}
	return object
}
