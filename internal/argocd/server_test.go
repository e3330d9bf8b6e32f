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

func (s *apiServer) config() *rest.Config { return &rest.Config{Host: s.url} }

// set stores an object, completing its metadata, and tells the watches.
func (s *apiServer) set(resource, namespace, name, rest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setLocked(resource, namespace, name, rest)
}

func (s *apiServer) setLocked(resource, namespace, name, rest string) {
	s.version++
	key := resource + "/" + namespace + "/" + name
	kind := "ADDED"
	if _, ok := s.objects[key]; ok {
		kind = "MODIFIED"
	}
	raw := stampObject(s.t, rest, namespace, name, s.version)
	s.objects[key] = raw
	s.publish(serverEvent{s.version, kind, resource, string(raw)})
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

func (s *apiServer) remove(resource, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	key := resource + "/" + namespace + "/" + name
	raw := stampObject(s.t, string(s.objects[key]), namespace, name, s.version)
	delete(s.objects, key)
	s.publish(serverEvent{s.version, "DELETED", resource, string(raw)})
}

func (s *apiServer) publish(e serverEvent) {
	s.events = append(s.events, e)
	close(s.wake)
	s.wake = make(chan struct{})
}

// bookmark tells the watches of a resource how far the world is.
func (s *apiServer) bookmark(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.publish(serverEvent{s.version, "BOOKMARK", resource, fmt.Sprintf(`{"kind":"Application","metadata":{"resourceVersion":"%d"}}`, s.version)})
}

// expireWatches makes every watch from before now too old.
func (s *apiServer) expireWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.oldest, s.events = s.version, nil
}

func (s *apiServer) cutWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.cut)
	s.cut = make(chan struct{})
}

func (s *apiServer) failWith(resource string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures[resource] = status
}

func (s *apiServer) seen(substr string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.requests {
		if strings.Contains(r, substr) {
			n++
		}
	}
	return n
}

// watches counts the watches of a resource that were asked for.
func (s *apiServer) watches(resource string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.requests {
		if strings.Contains(r, "/"+resource+"?") && strings.Contains(r, "watch=true") {
			n++
		}
	}
	return n
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == schemaPath && s.schema != nil {
		_, _ = w.Write(s.schema)
		return
	}
	if r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
		s.serveReview(w, r)
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
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	s.mu.Unlock()
	namespace := ""
	if rest, ok := strings.CutPrefix(path, "namespaces/"); ok {
		namespace, path, _ = strings.Cut(rest, "/")
	}
	resource, name, one := strings.Cut(path, "/")
	s.mu.Lock()
	status := s.failures[resource]
	if r.Method == http.MethodPatch && s.failures["patch"] != 0 {
		status = s.failures["patch"]
	}
	s.mu.Unlock()
	switch {
	case status == http.StatusForbidden:
		writeStatus(w, status, "Forbidden", fmt.Sprintf(`%s.argoproj.io is forbidden: User "liftlock" cannot %s resource`, resource, strings.ToLower(r.Method)))
	case status != 0:
		writeStatus(w, status, "", "failing as told")
	case one:
		s.serveOne(w, r, resource, namespace, name)
	case r.URL.Query().Get("watch") == "true":
		s.serveWatch(w, r, resource, namespace)
	default:
		s.serveList(w, r, resource, namespace)
	}
}

// serveReview allows what isn't refused.
func (s *apiServer) serveReview(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Spec struct {
			ResourceAttributes struct{ Namespace, Verb, Group, Resource string }
		}
	}
	err := json.NewDecoder(r.Body).Decode(&review)
	s.mu.Lock()
	defer s.mu.Unlock()
	about := review.Spec.ResourceAttributes
	if s.failures["review"] != 0 || err != nil || about.Group != "argoproj.io" || about.Resource != "applications" || about.Namespace != "argocd" {
		writeStatus(w, http.StatusForbidden, "Forbidden", "no review for the likes of you")
		return
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, `{"status": {"allowed": %t}}`, s.failures[about.Verb] == 0)
}

func writeStatus(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code})
}

func (s *apiServer) serveList(w http.ResponseWriter, r *http.Request, resource, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	if q.Has("resourceVersion") {
		s.t.Errorf("a list with a resourceVersion is not paged: %s", r.URL)
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
	for key, raw := range s.objects {
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
		items = append(items, s.objects[key])
	}
	_ = json.NewEncoder(w).Encode(map[string]any{ // in the API server's order: items before metadata
		"apiVersion": "argoproj.io/v1alpha1", "items": items, "kind": "List",
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version), "continue": next},
	})
}

func (s *apiServer) serveWatch(w http.ResponseWriter, r *http.Request, resource, namespace string) {
	from, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		s.t.Errorf("watch from %q", r.URL.Query().Get("resourceVersion"))
	}
	w.WriteHeader(http.StatusOK)
	flush := w.(http.Flusher).Flush
	flush()
	s.mu.Lock()
	cut := s.cut
	s.watching++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.watching--
		s.mu.Unlock()
	}()
	for {
		s.mu.Lock()
		wake, tooOld := s.wake, from < s.oldest
		var out []serverEvent
		for _, e := range s.events {
			if e.version > from && e.resource == resource {
				out = append(out, e)
			}
		}
		s.mu.Unlock()
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

func (s *apiServer) serveOne(w http.ResponseWriter, r *http.Request, resource, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, ok := s.objects[resource+"/"+namespace+"/"+name]
	if !ok {
		writeStatus(w, http.StatusNotFound, "NotFound", name+" not found")
		return
	}
	if r.Method == http.MethodPatch {
		if r.Header.Get("Content-Type") != "application/merge-patch+json" {
			s.t.Errorf("patch with %s", r.Header.Get("Content-Type"))
		}
		var patch, object map[string]any
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
			s.t.Errorf("patch: %v", err)
		}
		_ = json.Unmarshal(raw, &object)
		if meta, _ := patch["metadata"].(map[string]any); meta["resourceVersion"] != nil && meta["resourceVersion"] != object["metadata"].(map[string]any)["resourceVersion"] {
			writeStatus(w, http.StatusConflict, "Conflict", "the object has been modified")
			return
		}
		merged, _ := json.Marshal(mergePatch(object, patch))
		s.setLocked(resource, namespace, name, string(merged))
		raw = s.objects[resource+"/"+namespace+"/"+name]
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
