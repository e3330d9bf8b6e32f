package emulator

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// gitlabHookFlags are what a hook can want.
var gitlabHookFlags = []string{
	"push_events", "tag_push_events", "merge_requests_events", "issues_events", "confidential_issues_events", "note_events",
	"confidential_note_events",
	"job_events", "pipeline_events", "wiki_page_events", "deployment_events", "feature_flag_events", "releases_events", "milestone_events",
	"emoji_events",
	"resource_access_token_events", "vulnerability_events",
}

// signingPrefix begins a signing token; the rest is the key in base64 (Standard Webhooks).
const signingPrefix = "whsec_"

func (c *call) gitlabHook(h *hook) restObject {
	status, until := c.sender.healthOf(h.id)
	w := restObject{
		"id": h.id, "url": h.url, "name": orNull(h.name), "description": orNull(h.description), "project_id": h.repo.id,
		"created_at":                formatGitLabTime(h.created),
		"push_events_branch_filter": orNull(h.branchFilter), "branch_filter_strategy": "wildcard", "repository_update_events": false,
		"enable_ssl_verification": h.insecure != "1", "alert_status": status, "disabled_until": gitlabTimeOrNull(until),
		"url_variables":  []any{},
		"custom_headers": []any{}, "custom_webhook_template": nil, "token_present": h.secret != "",
	}
	if !c.oldGitLab {
		w["signing_token_present"] = h.signing != nil
	}
	for _, flag := range gitlabHookFlags {
		w[flag] = slices.Contains(h.events, flag) || slices.Contains(h.events, "*")
	}
	return w
}

func listGitLabHooks(c *call) (any, error) { return pageOf(c, c.repo.hooks, c.gitlabHook), nil }

// withGitLabHook finds the hook of the path.
func withGitLabHook(answer func(*call, *hook) (any, error)) handler {
	return func(c *call) (any, error) {
		id := c.r.PathValue("hook_id")
		i := slices.IndexFunc(c.repo.hooks, func(h *hook) bool { return strconv.FormatInt(h.id, 10) == id })
		if i < 0 {
			return nil, gitlabNotFound("")
		}
		return answer(c, c.repo.hooks[i])
	}
}

func getGitLabHook(c *call, h *hook) (any, error) { return c.gitlabHook(h), nil }

func createGitLabHook(c *call) (any, error) {
	q, err := c.params()
	if err != nil {
		return nil, err
	}
	if err := q.require("url"); err != nil {
		return nil, err
	}
	h := &hook{repo: c.repo, contentType: "json", insecure: "0", active: true, events: []string{"push_events"}, created: c.now(),
		updated: c.now(), uuid: newUUID()}
	if err := c.configureHook(h, q); err != nil {
		return nil, err
	}
	h.id = c.nextID()
	c.repo.hooks = append(c.repo.hooks, h)
	c.status = http.StatusCreated
	return c.gitlabHook(h), nil
}

func updateGitLabHook(c *call, h *hook) (any, error) {
	q, err := c.params()
	if err != nil {
		return nil, err
	}
	changed := *h
	changed.events = slices.Clone(h.events)
	if err := c.configureHook(&changed, q); err != nil {
		return nil, err
	}
	changed.updated = c.now()
	*h = changed
	return c.gitlabHook(h), nil
}

// configureHook sets what a call names. Another address without a token takes the token
// away.
func (c *call) configureHook(h *hook, q params) error {
	if q.has("url") {
		u, err := url.Parse(q.text("url"))
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return gitlabRefusal(http.StatusUnprocessableEntity, restObject{"error": "Invalid url given"})
		}
		if q.text("url") != h.url {
			h.secret = ""
		}
		h.url = q.text("url")
	}
	if q.has("token") {
		h.secret = q.text("token")
	}
	if token := q.text("signing_token"); token != "" && !c.oldGitLab {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(token, signingPrefix))
		if err != nil || len(key) != 32 || !strings.HasPrefix(token, signingPrefix) {
			return gitlabRefusal(http.StatusUnprocessableEntity,
				restObject{"signing_token": []string{"must be whsec_ and 32 bytes in base64"}})
		}
		h.signing = key
	}
	h.name, h.description = cmp.Or(q.text("name"), h.name), cmp.Or(q.text("description"), h.description)
	if q.has("push_events_branch_filter") {
		h.branchFilter = q.text("push_events_branch_filter")
	}
	if q.has("enable_ssl_verification") {
		h.insecure = map[bool]string{true: "0", false: "1"}[q.isTrue("enable_ssl_verification")]
	}
	if slices.Contains(h.events, "*") {
		h.events = slices.Clone(gitlabHookFlags)
	}
	for _, flag := range gitlabHookFlags {
		if !q.has(flag) {
			continue
		}
		h.events = slices.DeleteFunc(h.events, func(e string) bool { return e == flag })
		if q.isTrue(flag) {
			h.events = append(h.events, flag)
		}
	}
	return nil
}

func deleteGitLabHook(c *call, h *hook) (any, error) {
	c.repo.hooks = slices.DeleteFunc(c.repo.hooks, func(o *hook) bool { return o == h })
	c.status = http.StatusNoContent
	return nil, nil
}

const (
	// maxHookEvents is how many of a hook's events a page has at most.
	maxHookEvents = 20
	// hookEventsKept is how far back they reach.
	hookEventsKept = 7 * 24 * time.Hour
)

// listHookEvents are a hook's deliveries, newest first (since 17.3).
func listHookEvents(c *call, h *hook) (any, error) {
	if c.oldGitLab {
		return nil, &apiError{Status: http.StatusNotFound, Message: "404 Not Found", body: restObject{"error": "404 Not Found"}}
	}
	q, err := c.params()
	if err != nil {
		return nil, err
	}
	if q.number("per_page") > maxHookEvents {
		return nil, badParameter("per_page does not have a valid value")
	}
	wanted := q.list("status")
	var found []Delivery
	for _, d := range slices.Backward(c.Deliveries()) {
		if d.hook.id != h.id || d.At.Before(c.now().Add(-hookEventsKept)) || len(wanted) > 0 && !slices.ContainsFunc(wanted, d.hasStatus) {
			continue
		}
		found = append(found, d)
	}
	return pageOf(c, found, hookEvent), nil
}

// hasStatus says whether a delivery ended in a way, or with a status. Without an answer it is
// in none of the ways, which are of numbers.
func (d *Delivery) hasStatus(word string) bool {
	switch word {
	case "successful":
		return d.Status >= 200 && d.Status < 300
	case "client_failure":
		return d.Status >= 400 && d.Status < 500
	case "server_failure":
		return d.Status >= 500
	}
	return strconv.Itoa(d.Status) == word
}

func hookEvent(d Delivery) restObject {
	status := strconv.Itoa(d.Status)
	if d.Status == 0 {
		status = "internal error"
	}
	sent := restObject{}
	for name := range d.sent {
		sent[name] = d.sent.Get(name)
	}
	if d.hook.secret != "" {
		sent["X-Gitlab-Token"] = "[REDACTED]"
	}
	return restObject{"id": d.log, "url": d.URL, "trigger": d.flag, "request_headers": sent, "request_data": json.RawMessage(d.body),
		"response_headers": restObject{}, "response_body": d.answer, "execution_duration": d.took.Seconds(), "response_status": status}
}

func resendHookEvent(c *call, h *hook) (any, error) {
	id := c.r.PathValue("hook_log_id")
	all := c.Deliveries()
	i := slices.IndexFunc(all, func(d Delivery) bool { return d.hook.id == h.id && strconv.FormatInt(d.log, 10) == id })
	if i < 0 {
		return nil, gitlabNotFound("")
	}
	again := all[i]
	again.hook, again.URL = *h, h.url
	c.sendAtOnce(&again)
	c.status = http.StatusCreated
	return restObject{"response_status": again.Status}, nil
}

// sendAtOnce delivers and waits for the receiver. The receiver may call the forge meanwhile:
// the lock is free.
func (c *call) sendAtOnce(d *Delivery) {
	c.cause = nil
	c.mu.Unlock()
	defer c.mu.Lock()
	c.sender.sendAtOnce(d)
}

// testGitLabHook sends an event of what there is last, also to a hook that is disabled: an
// answer of 2xx enables it again.
func testGitLabHook(c *call, h *hook) (any, error) {
	event, payload, err := c.samplePayload(c.r.PathValue("trigger"))
	if err != nil {
		return nil, err
	}
	d, err := newGitLabDelivery(h, event, newUUID(), payload)
	if err != nil {
		return nil, err
	}
	c.sendAtOnce(&d)
	if d.Status < 200 || d.Status > 299 {
		return nil, gitlabRefusal(http.StatusUnprocessableEntity, fmt.Sprintf("Hook executed successfully but returned HTTP %d %s",
			d.Status, d.Err))
	}
	c.status = http.StatusCreated
	return restObject{"message": "201 Created"}, nil
}

// samplePayload is the event that a test sends.
func (c *call) samplePayload(trigger string) (event string, payload restObject, err error) {
	missing := func(what string) error {
		return gitlabRefusal(http.StatusUnprocessableEntity, "Ensure the project has "+what+".")
	}
	r := c.repo
	var last *pull
	if n := sortedKeys(r.pulls); len(n) > 0 {
		last = r.pulls[n[len(n)-1]]
	}
	switch trigger {
	case "push_events":
		tip := r.branchHead(r.branch)
		if tip == "" {
			return "", nil, missing("at least one commit")
		}
		commits, _, err := c.listPushedCommits(r, "refs/heads/"+r.branch, "", tip)
		return pushHook, c.pushPayload(r, c.user, "push", "refs/heads/"+r.branch, tip, tip, commits), err
	case "merge_requests_events":
		if last == nil {
			return "", nil, missing("merge requests")
		}
		return mergeRequestHook, c.mergeRequestPayload(last, c.user, "update", nil, nil), nil
	case "note_events":
		if last == nil || len(last.comments) == 0 {
			return "", nil, missing("notes")
		}
		return noteHook, c.notePayload(last.comments[len(last.comments)-1], c.user, "note", "create"), nil
	case "pipeline_events":
		if len(r.pipelines) == 0 {
			return "", nil, missing("CI/CD pipelines")
		}
		return pipelineHook, c.pipelinePayload(r, c.user, r.pipelines[len(r.pipelines)-1]), nil
	}
	if !slices.Contains(gitlabHookFlags, trigger) {
		return "", nil, badParameter("trigger does not have a valid value")
	}
	return "", nil, gitlabRefusal(http.StatusUnprocessableEntity, "Testing not available for this event type.")
}
