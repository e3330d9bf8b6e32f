package emulator

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/labels"
)

// maxPatch is the API server's own limit for a request's body.
const maxPatch = 3 << 20

// query is one request for objects.
type query struct {
	resource, namespace, name string // name and namespace may be empty
	selector                  labels.Selector
	field                     string // metadata.name=, or empty
}

// serve is the API server's front door.
func (a *ArgoCD) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+a.token {
		statusAnswer(w, http.StatusUnauthorized, "Unauthorized")
		return
	}
	q, ok := parseQuery(r.URL.Path)
	if code := a.admit(r, q); code != 0 {
		statusAnswer(w, code, "injected: "+http.StatusText(code))
		return
	}
	if !ok {
		discovery(w, r)
		return
	}
	values := r.URL.Query()
	var err error
	if q.selector, err = labels.Parse(values.Get("labelSelector")); err != nil {
		statusAnswer(w, http.StatusBadRequest, "unable to parse the labelSelector")
		return
	}
	field, value, _ := strings.Cut(values.Get("fieldSelector"), "=")
	if field != "" && field != "metadata.name" {
		statusAnswer(w, http.StatusBadRequest, fmt.Sprintf("field label not supported: %s", field))
		return
	}
	q.field = value
	switch {
	case r.Method == http.MethodGet && q.name != "":
		a.getObject(w, q)
	case r.Method == http.MethodGet && (values.Get("watch") == "true" || values.Get("watch") == "1"):
		a.watch(w, r, q)
	case r.Method == http.MethodGet:
		a.list(w, r, q)
	case r.Method == http.MethodPatch && q.name != "":
		a.patch(w, r, q)
	default:
		statusAnswer(w, http.StatusMethodNotAllowed, "the server does not allow this method on the requested resource")
	}
}

// parseQuery reads a path of the two API groups that are served.
func parseQuery(path string) (q query, ok bool) {
	rest, isGroup := strings.CutPrefix(path, "/apis/argoproj.io/v1alpha1/")
	if !isGroup {
		if rest, ok = strings.CutPrefix(path, "/api/v1/"); !ok {
			return q, false
		}
	}
	parts := strings.Split(rest, "/")
	if parts[0] == "namespaces" && len(parts) >= 3 {
		q.namespace, parts = parts[1], parts[2:]
	}
	q.resource = parts[0]
	if len(parts) == 2 {
		q.name = parts[1]
	}
	return q, len(parts) <= 2 && kinds[q.resource] != "" && (apiVersion(q.resource) == "v1") != isGroup && (q.name == "" || q.namespace != "")
}

// matches says whether a stored object is asked for.
func (q query) matches(r record) bool {
	if r.resource != q.resource || q.namespace != "" && r.namespace != q.namespace || q.field != "" && r.name != q.field {
		return false
	}
	if q.selector == nil || q.selector.Empty() {
		return true
	}
	var x struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	return json.Unmarshal(r.raw, &x) == nil && q.selector.Matches(labels.Set(x.Metadata.Labels))
}

func (a *ArgoCD) getObject(w http.ResponseWriter, q query) {
	a.mu.Lock()
	r, ok := a.store.all[objectKey(q.resource, q.namespace, q.name)]
	a.mu.Unlock()
	if !ok {
		statusAnswer(w, http.StatusNotFound, fmt.Sprintf("%s.argoproj.io %q not found", q.resource, q.name))
		return
	}
	jsonAnswer(w, http.StatusOK, r.raw)
}

// pageToken is where a list in pages goes on.
type pageToken struct {
	Version int64  `json:"v"`
	After   string `json:"after"`
}

// list serves a list, in pages where a limit asks for them. As on a real API
// server, resourceVersion=0 is answered from the watch cache, which ignores the
// limit. All pages carry the first one's version: a watch from there tells what
// changed while the list was read.
func (a *ArgoCD) list(w http.ResponseWriter, r *http.Request, q query) {
	v := r.URL.Query()
	limit := atLeast(v.Get("limit"), 1, 0)
	if v.Get("resourceVersion") == "0" {
		limit = 0
	}
	var at pageToken
	if s := v.Get("continue"); s != "" {
		raw, err := base64.RawURLEncoding.DecodeString(s)
		if err != nil || json.Unmarshal(raw, &at) != nil {
			statusAnswer(w, http.StatusBadRequest, "continue key is not valid")
			return
		}
	}
	records, at, left, ok := a.page(q, at, limit)
	if !ok {
		statusAnswer(w, http.StatusGone, "The provided continue parameter is too old to display a consistent list result.")
		return
	}
	head := object{"resourceVersion": strconv.FormatInt(at.Version, 10)}
	if left > 0 {
		next, err := json.Marshal(at)
		if err != nil {
			statusAnswer(w, http.StatusInternalServerError, err.Error())
			return
		}
		head["continue"], head["remainingItemCount"] = base64.RawURLEncoding.EncodeToString(next), left
	}
	items := make([]json.RawMessage, 0, len(records))
	for _, rec := range records {
		items = append(items, rec.raw)
	}
	jsonAnswer(w, http.StatusOK, object{
		"apiVersion": apiVersion(q.resource), "kind": kinds[q.resource] + "List", "metadata": head, "items": items,
	})
}

// page gives at most limit objects after a place, the place after them and how
// many are left; ok is false when the place is too old.
func (a *ArgoCD) page(q query, at pageToken, limit int) (records []record, next pageToken, left int, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at.Version == 0 {
		at.Version = a.store.version
	}
	if at.Version < a.store.forgotten {
		return nil, at, 0, false
	}
	for _, key := range sortedKeys(a.store.all) {
		rec := a.store.all[key]
		if key <= at.After || !q.matches(rec) {
			continue
		}
		if limit > 0 && len(records) == limit {
			left++
			continue
		}
		records = append(records, rec)
	}
	if len(records) > 0 {
		last := records[len(records)-1]
		at.After = objectKey(last.resource, last.namespace, last.name)
	}
	return records, at, left, true
}

// patch applies a JSON merge patch, the one kind that is served.
func (a *ArgoCD) patch(w http.ResponseWriter, r *http.Request, q query) {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/merge-patch+json" {
		statusAnswer(w, http.StatusUnsupportedMediaType, "the body of the request was in an unknown format - accepted media types include: application/merge-patch+json")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPatch))
	if err != nil {
		statusAnswer(w, http.StatusRequestEntityTooLarge, "limit is 3145728")
		return
	}
	var change object
	if err := json.Unmarshal(body, &change); err != nil {
		statusAnswer(w, http.StatusBadRequest, "error decoding patch")
		return
	}
	code, answer := a.merge(q, change)
	jsonAnswer(w, code, answer)
}

// merge applies a patch and gives the answer: the object, or why not.
func (a *ArgoCD) merge(q query, change object) (code int, answer any) {
	refused := func(code int, format string, args ...any) (int, any) {
		return code, failure(code, fmt.Sprintf(format, args...))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.store.get(q.resource, q.namespace, q.name)
	if now == nil {
		return refused(http.StatusNotFound, "%s.argoproj.io %q not found", q.resource, q.name)
	}
	if m, ok := change["metadata"].(object); ok {
		if v, ok := m["resourceVersion"].(string); ok && v != "" && v != meta(now)["resourceVersion"] {
			return refused(http.StatusConflict, "Operation cannot be fulfilled on %s.argoproj.io %q: the object has been modified; please apply your changes to the latest version and try again", q.resource, q.name)
		}
		for _, fixed := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp"} {
			delete(m, fixed)
		}
	} else {
		delete(change, "metadata") // nobody takes an object's name away
	}
	mergePatch(now, change)
	if err := a.store.put(q.resource, q.namespace, q.name, now); err != nil {
		return refused(http.StatusInternalServerError, "%v", err)
	}
	return http.StatusOK, a.store.all[objectKey(q.resource, q.namespace, q.name)].raw
}

// mergePatch is RFC 7396.
func mergePatch(target any, change any) any {
	c, ok := change.(object)
	if !ok {
		return change
	}
	t, ok := target.(object)
	if !ok {
		t = object{}
	}
	for k, v := range c {
		if v == nil {
			delete(t, k)
		} else {
			t[k] = mergePatch(t[k], v)
		}
	}
	return t
}

// requestFault makes requests fail.
type requestFault struct {
	method, resource string
	left, code       int
}

// admit counts a request and gives the code of the fault that it meets, 0 for none.
func (a *ArgoCD) admit(r *http.Request, q query) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	verb := r.Method
	if r.URL.Query().Get("watch") != "" {
		verb = "WATCH"
	}
	a.requests[verb+" "+q.resource]++
	for _, f := range a.fails {
		if f.left == 0 || f.method != "" && f.method != verb || f.resource != "" && f.resource != q.resource {
			continue
		}
		if f.left > 0 {
			f.left--
		}
		a.log.Debug("an injected failure", zap.String("request", verb+" "+q.resource), zap.Int("code", f.code))
		return f.code
	}
	return 0
}
