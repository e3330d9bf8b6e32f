package argoemulator

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/labels"
)

// maxPatch is the API server's own limit for a request's body.
const maxPatch = 3 << 20

// objectQuery is one request for objects.
type objectQuery struct {
	resource, namespace, name string // name and namespace may be empty
	selector                  labels.Selector
	field                     string // metadata.name=, or empty
}

// serveHTTP is the API server's front door.
func (a *ArgoCD) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if address, ok := strings.CutPrefix(r.URL.Path, apiRoot+"/api"); ok {
		a.serveAPI(w, r, address)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+a.token {
		writeFailure(w, http.StatusUnauthorized, "Unauthorized")
		return
	}
	if r.Method == http.MethodPost && r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
		a.reviewAccess(w, r)
		return
	}
	q, ok := parseQuery(r.URL.Path)
	if code := a.admitRequest(r, q); code != 0 {
		writeFailure(w, code, "injected: "+http.StatusText(code))
		return
	}
	if !ok {
		serveDiscovery(w, r)
		return
	}
	if verb := verbOf(r, q); a.isDenied(verb, q.resource) {
		writeFailure(w, http.StatusForbidden, fmt.Sprintf("%s is forbidden: User \"emulated\" cannot %s resource %q", q.resource, verb,
			q.resource))
		return
	}
	values := r.URL.Query()
	var err error
	if q.selector, err = labels.Parse(values.Get("labelSelector")); err != nil {
		writeFailure(w, http.StatusBadRequest, "unable to parse the labelSelector")
		return
	}
	field, value, _ := strings.Cut(values.Get("fieldSelector"), "=")
	if field != "" && field != "metadata.name" {
		writeFailure(w, http.StatusBadRequest, fmt.Sprintf("field label not supported: %s", field))
		return
	}
	q.field = value
	switch {
	case r.Method == http.MethodGet && q.name != "":
		a.getObject(w, q)
	case r.Method == http.MethodGet && (values.Get("watch") == "true" || values.Get("watch") == "1"):
		a.watchObjects(w, r, q)
	case r.Method == http.MethodGet:
		a.listObjects(w, r, q)
	case r.Method == http.MethodPatch && q.name != "":
		a.patchObject(w, r, q)
	default:
		writeFailure(w, http.StatusMethodNotAllowed, "the server does not allow this method on the requested resource")
	}
}

// parseQuery reads a path of the two API groups that are served.
func parseQuery(path string) (q objectQuery, ok bool) {
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
	isKnown := kindByResource[q.resource] != "" && (apiVersion(q.resource) == "v1") != isGroup
	return q, isKnown && len(parts) <= 2 && (q.name == "" || q.namespace != "")
}

// matches says whether a stored object is asked for.
func (o objectQuery) matches(r objectRecord) bool {
	isOutside := o.namespace != "" && r.namespace != o.namespace
	isOther := o.field != "" && r.name != o.field
	if r.resource != o.resource || isOutside || isOther {
		return false
	}
	if o.selector == nil || o.selector.Empty() {
		return true
	}
	var x struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	return json.Unmarshal(r.raw, &x) == nil && o.selector.Matches(labels.Set(x.Metadata.Labels))
}

func (a *ArgoCD) getObject(w http.ResponseWriter, q objectQuery) {
	a.mu.Lock()
	r, ok := a.store.records[objectKey(q.resource, q.namespace, q.name)]
	a.mu.Unlock()
	if !ok {
		writeFailure(w, http.StatusNotFound, fmt.Sprintf("%s.argoproj.io %q not found", q.resource, q.name))
		return
	}
	writeJSON(w, http.StatusOK, r.raw)
}

// pageToken is where a list in pages goes on.
type pageToken struct {
	Version int64  `json:"v"`
	After   string `json:"after"`
}

// positiveOr is a positive number that a query gives, or another one where it gives none.
func positiveOr(s string, otherwise int) int {
	if n, err := strconv.Atoi(s); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// listObjects serves a list, in pages where a limit asks for them. As on a real API
// server, resourceVersion=0 is answered from the watch cache, which ignores the
// limit. All pages carry the first one's version: a watch from there tells what
// changed while the list was read.
func (a *ArgoCD) listObjects(w http.ResponseWriter, r *http.Request, q objectQuery) {
	v := r.URL.Query()
	limit := positiveOr(v.Get("limit"), 0)
	if v.Get("resourceVersion") == "0" {
		limit = 0
	}
	var at pageToken
	if s := v.Get("continue"); s != "" {
		raw, err := base64.RawURLEncoding.DecodeString(s)
		if err != nil || json.Unmarshal(raw, &at) != nil {
			writeFailure(w, http.StatusBadRequest, "continue key is not valid")
			return
		}
	}
	records, at, left, ok := a.listPage(q, at, limit)
	if !ok {
		writeFailure(w, http.StatusGone, "The provided continue parameter is too old to display a consistent list result.")
		return
	}
	head := jsonObject{"resourceVersion": strconv.FormatInt(at.Version, 10)}
	if left > 0 {
		next, err := json.Marshal(at)
		if err != nil {
			writeFailure(w, http.StatusInternalServerError, err.Error())
			return
		}
		head["continue"], head["remainingItemCount"] = base64.RawURLEncoding.EncodeToString(next), left
	}
	items := make([]json.RawMessage, 0, len(records))
	for _, rec := range records {
		items = append(items, rec.raw)
	}
	writeJSON(w, http.StatusOK, jsonObject{
		"apiVersion": apiVersion(q.resource), "kind": kindByResource[q.resource] + "List", "metadata": head, "items": items,
	})
}

// listPage gives at most limit objects after a place, the place after them and how
// many are left; ok is false when the place is too old.
func (a *ArgoCD) listPage(q objectQuery, at pageToken, limit int) (records []objectRecord, next pageToken, left int, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at.Version == 0 {
		at.Version = a.store.version
	}
	if at.Version < a.store.compactedTo {
		return nil, at, 0, false
	}
	for _, key := range slices.Sorted(maps.Keys(a.store.records)) {
		rec := a.store.records[key]
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

// patchObject applies a JSON merge patch, the one kind that is served.
func (a *ArgoCD) patchObject(w http.ResponseWriter, r *http.Request, q objectQuery) {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/merge-patch+json" {
		writeFailure(w, http.StatusUnsupportedMediaType, "the body of the request was in an unknown format - accepted media types "+
			"include: application/merge-patch+json")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPatch))
	if err != nil {
		writeFailure(w, http.StatusRequestEntityTooLarge, "limit is 3145728")
		return
	}
	var change jsonObject
	if err := json.Unmarshal(body, &change); err != nil {
		writeFailure(w, http.StatusBadRequest, "error decoding patch")
		return
	}
	code, answer := a.mergeObject(q, change)
	writeJSON(w, code, answer)
}

// mergeObject applies a patch and gives the answer: the object, or why not.
func (a *ArgoCD) mergeObject(q objectQuery, change jsonObject) (code int, answer any) {
	refused := func(code int, format string, args ...any) (int, any) {
		return code, failureStatus(code, fmt.Sprintf(format, args...))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.store.get(q.resource, q.namespace, q.name)
	if now == nil {
		return refused(http.StatusNotFound, "%s.argoproj.io %q not found", q.resource, q.name)
	}
	if m, ok := change["metadata"].(jsonObject); ok {
		if v, ok := m["resourceVersion"].(string); ok && v != "" && v != metadataOf(now)["resourceVersion"] {
			return refused(http.StatusConflict, "Operation cannot be fulfilled on %s.argoproj.io %q: the object has been modified; "+
				"please apply your changes to the latest version and try again", q.resource, q.name)
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
	return http.StatusOK, a.store.records[objectKey(q.resource, q.namespace, q.name)].raw
}

// mergePatch is RFC 7396.
func mergePatch(target any, change any) any {
	c, ok := change.(jsonObject)
	if !ok {
		return change
	}
	t, ok := target.(jsonObject)
	if !ok {
		t = jsonObject{}
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

// admitRequest counts a request and gives the code of the fault that it meets, 0 for none.
func (a *ArgoCD) admitRequest(r *http.Request, q objectQuery) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	verb := r.Method
	if r.URL.Query().Get("watch") != "" {
		verb = "WATCH"
	}
	a.requests[verb+" "+q.resource]++
	for _, f := range a.requestFaults {
		isOfMethod := f.method == "" || f.method == verb
		isOfResource := f.resource == "" || f.resource == q.resource
		if f.left == 0 || !isOfMethod || !isOfResource {
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
