package emulator

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
)

// GitLab's face: its REST API in version 4 over the same world. What GitLab answers is held
// against its own description by a test; how it behaves is told by its documentation pages
// api/merge_requests.md, api/notes.md, api/commits.md, api/project_webhooks.md,
// api/merge_request_approvals.md and api/merge_trains.md. Where those are silent, the face
// does what hurts a client most.

// gitlabAPI is where the API is, below the forge's own address.
const gitlabAPI = "/api/v4"

// restObject is an answer or an event, or a part of one.
type restObject = map[string]any

// gitlabTime is how GitLab writes times.
const gitlabTime = "2006-01-02T15:04:05.000Z"

func formatGitLabTime(t time.Time) string { return t.UTC().Format(gitlabTime) }

// gitlabTimeOrNull is null for no time.
func gitlabTimeOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return formatGitLabTime(t)
}

// gitlabRefusal is a refusal in GitLab's shape: {"message": …}, where a message is a text, a
// list of them, or lists by field.
func gitlabRefusal(status int, message any) *apiError {
	return &apiError{Status: status, Message: fmt.Sprint(message), body: restObject{"message": message}}
}

// badParameter is GitLab's answer to a parameter that is missing or wrong.
func badParameter(format string, args ...any) *apiError {
	text := fmt.Sprintf(format, args...)
	return &apiError{Status: http.StatusBadRequest, Message: text, body: restObject{"error": text}}
}

func gitlabNotFound(what string) *apiError {
	return gitlabRefusal(http.StatusNotFound, strings.Join(strings.Fields("404 "+what+" Not Found"), " "))
}

func gitlabForbidden() *apiError { return gitlabRefusal(http.StatusForbidden, "403 Forbidden") }

// gitlabUnauthorized also answers some actions on merge requests that the account has no
// right to, with a good token (api/merge_requests.md).
func gitlabUnauthorized() *apiError {
	return gitlabRefusal(http.StatusUnauthorized, "401 Unauthorized")
}

// serveGitLab answers a REST call of GitLab's.
func (f *Forge) serveGitLab(w http.ResponseWriter, r *http.Request, rt *route) {
	if !f.awaitLatency(r.Context(), false) {
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		f.writeError(w, badParameter("the request can't be read"))
		return
	}
	f.serving.RLock()
	defer f.serving.RUnlock()
	if rt.movesRefs {
		if repo := f.projectOf(r); repo != nil {
			repo.refsMu.Lock()
			defer repo.refsMu.Unlock()
		}
	}
	c := &call{Forge: f, r: r, body: body, status: http.StatusOK, header: w.Header()}
	answer, err := c.handleGitLab(rt)
	var e *apiError
	switch {
	case err == nil:
	case errors.As(err, &e):
		c.status, answer = e.Status, e.gitlabBody()
		for k, v := range e.Header {
			c.header[k] = v
		}
	default:
		f.log.Error("the forge failed", zap.String("route", rt.pattern), zap.Error(err))
		c.status, answer = http.StatusInternalServerError, restObject{"message": "500 Internal Server Error"}
	}
	c.sendGitLab(w, rt, answer)
}

// gitlabBody is the refusal as GitLab writes it, also one that the world gives in GitHub's words.
func (a *apiError) gitlabBody() any {
	if a.body != nil {
		return a.body
	}
	var texts []string
	for _, d := range a.Errors {
		if fe, ok := d.(fieldError); ok {
			texts = append(texts, cmp.Or(fe.Message, strings.TrimSpace(fe.Field+" "+fe.Code)))
		} else {
			texts = append(texts, fmt.Sprint(d))
		}
	}
	if len(texts) == 0 {
		return restObject{"message": a.Message}
	}
	return restObject{"message": texts}
}

// plainText is an answer that is no JSON.
type plainText string

func (c *call) sendGitLab(w http.ResponseWriter, rt *route, answer any) {
	if text, ok := answer.(plainText); ok {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(c.status)
		_, _ = io.WriteString(w, string(text)) // a client that is gone needs no answer
		return
	}
	var body []byte
	if answer != nil {
		var err error
		if body, err = json.Marshal(answer); err != nil {
			c.log.Error("an answer can't be written", zap.String("route", rt.pattern), zap.Error(err))
			c.status, body = http.StatusInternalServerError, []byte(`{"message":"500 Internal Server Error"}`)
		}
		w.Header().Set("Content-Type", "application/json")
	}
	if c.record != nil {
		method, path, _ := strings.Cut(rt.pattern, " ")
		c.mu.Lock()
		c.record(Exchange{Method: method, Route: path, Query: c.r.URL.Query(), Body: c.body, Status: c.status, Answer: body})
		c.mu.Unlock()
	}
	w.WriteHeader(c.status)
	_, _ = w.Write(body) // a client that is gone needs no answer
}

// projectOf is the project that a call's path names by number or full path; nil is none.
func (f *Forge) projectOf(r *http.Request) *repository {
	f.mu.Lock()
	defer f.mu.Unlock()
	repo, _ := f.findProject(r.PathValue("id"))
	return repo
}

// findProject finds a project by number or full path; former says that it was by a path that
// it had before.
func (f *Forge) findProject(id string) (r *repository, former bool) {
	if n, err := strconv.ParseInt(id, 10, 64); err == nil {
		for _, r := range f.repos {
			if r.id == n {
				return r, false
			}
		}
		return nil, false
	}
	if r = f.repos[strings.ToLower(id)]; r != nil {
		return r, false
	}
	r = f.formerNames[strings.ToLower(id)]
	return r, r != nil
}

// handleGitLab authenticates and authorises the call and answers it, under the lock.
func (c *call) handleGitLab(rt *route) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cause = newEventCause(c.r)
	defer func() { c.cause = nil }()
	c.header.Set("X-Request-Id", newUUID())
	if err := c.signInToGitLab(); err != nil {
		return nil, err
	}
	if err := c.chargeGitLab(rt); err != nil {
		return nil, err
	}
	if c.r.Method != http.MethodGet && !c.user.mayWrite() || !c.user.mayRead() {
		return nil, &apiError{Status: http.StatusForbidden, Message: "insufficient_scope", body: restObject{"error": "insufficient_scope",
			"error_description": "The request requires higher privileges than provided by the access token.", "scope": "api"}}
	}
	if strings.Contains(rt.pattern, " /projects/{id}") {
		if answer, err := c.admitToProject(rt); answer != nil || err != nil {
			return answer, err
		}
	}
	return rt.handle(c)
}

// admitToProject finds the call's project. An answer is where to look for it instead.
func (c *call) admitToProject(rt *route) (any, error) {
	repo, former := c.findProject(c.r.PathValue("id"))
	if repo == nil || repo.permissionOf(c.user) < Read {
		return nil, gitlabNotFound("Project") // what may not be read isn't said to exist
	}
	if former { // api/rest: 301 to reads, and no writes
		if c.r.Method != http.MethodGet {
			return nil, gitlabRefusal(http.StatusMethodNotAllowed, "Non GET methods are not allowed for moved projects")
		}
		_, rest, _ := strings.Cut(strings.TrimPrefix(c.r.URL.EscapedPath(), "/projects/"), "/")
		to := fmt.Sprintf("%s%s/projects/%d", c.url, gitlabAPI, repo.id)
		if rest != "" {
			to += "/" + rest
		}
		if c.r.URL.RawQuery != "" {
			to += "?" + c.r.URL.RawQuery
		}
		c.status = http.StatusMovedPermanently
		c.header.Set("Location", to)
		return plainText("This resource has been moved permanently to " + to), nil
	}
	if repo.permissionOf(c.user) < rt.permission || repo.archived && c.r.Method != http.MethodGet {
		return nil, gitlabForbidden()
	}
	c.repo = repo
	return nil, nil
}

// signInToGitLab finds the account that the call's token belongs to.
func (c *call) signInToGitLab() error {
	token := c.r.Header.Get("PRIVATE-TOKEN")
	if kind, value, _ := strings.Cut(c.r.Header.Get("Authorization"), " "); token == "" && strings.EqualFold(kind, "bearer") {
		token = strings.TrimSpace(value)
	}
	c.user = c.accountByToken(token)
	if c.user == nil {
		return gitlabUnauthorized()
	}
	if c.user.tokenEnded(c.now()) {
		return &apiError{Status: http.StatusUnauthorized, Message: "invalid_token", body: restObject{"error": "invalid_token",
			"error_description": "Token is expired. You can either do re-authorization or token refresh."}}
	}
	c.user.tokenUsed = c.now()
	return nil
}

// params are a call's parameters, of its query and its body.
type params map[string]any

// params reads the call's parameters: JSON or a form in the body, and the query.
func (c *call) params() (params, error) {
	p := params{}
	add := func(values url.Values) {
		for name, v := range values {
			if short, ok := strings.CutSuffix(name, "[]"); ok {
				var list []any
				for _, s := range v {
					list = append(list, s)
				}
				p[short] = list
			} else {
				p[name] = v[len(v)-1]
			}
		}
	}
	add(c.r.URL.Query())
	if len(c.body) == 0 {
		return p, nil
	}
	if kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type")); err == nil && kind == "application/x-www-form-urlencoded" {
		values, err := url.ParseQuery(string(c.body))
		if err != nil {
			return nil, badParameter("the form can't be read")
		}
		add(values)
		return p, nil
	}
	if err := json.Unmarshal(c.body, &p); err != nil {
		return nil, badParameter("The body can't be read as JSON")
	}
	return p, nil
}

func (p params) has(name string) bool { return p[name] != nil }

// text is a parameter as text; empty when it isn't there.
func (p params) text(name string) string {
	switch v := p[name].(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// isTrue reads a boolean; what isn't there, and null, is false.
func (p params) isTrue(name string) bool {
	return slices.Contains([]string{"true", "1", "t", "yes"}, strings.ToLower(p.text(name)))
}

// number is a whole number; 0 when it isn't there.
func (p params) number(name string) int64 {
	n, err := strconv.ParseInt(p.text(name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// list is a list of texts: of JSON, or separated by commas.
func (p params) list(name string) []string {
	var out []string
	switch v := p[name].(type) {
	case []any:
		for i := range v {
			out = append(out, params{"": v[i]}.text(""))
		}
	default:
		for s := range strings.SplitSeq(p.text(name), ",") {
			if s = strings.TrimSpace(s); s != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

// when is a time; zero when it isn't there.
func (p params) when(name string) (time.Time, error) {
	s := p.text(name)
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		if t, err = time.Parse(time.DateOnly, s); err != nil {
			return time.Time{}, badParameter("%s is invalid", name)
		}
	}
	return t, nil
}

// oneOf refuses a parameter that is there and none of the values.
func (p params) oneOf(name string, values ...string) error {
	if s := p.text(name); s != "" && !slices.Contains(values, s) {
		return badParameter("%s does not have a valid value", name)
	}
	return nil
}

// require refuses a call without one of the parameters.
func (p params) require(names ...string) error {
	for _, name := range names {
		if !p.has(name) {
			return badParameter("%s is missing", name)
		}
		if p.text(name) == "" && p.list(name) == nil {
			return badParameter("%s is empty", name)
		}
	}
	return nil
}

// gitlabPagePath is a merge request's page.
var gitlabPagePath = regexp.MustCompile(`^/(.+)/-/merge_requests/([0-9]{1,9})$`)

// gitlabGitPath is gitPath with groups in groups.
var gitlabGitPath = regexp.MustCompile(`^/([^/]+(?:/[^/]+?)+?)(?:\.git)?/(info/refs|git-upload-pack|git-receive-pack)$`)
