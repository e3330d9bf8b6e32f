package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// The events of a project's hook that Liftlock listens to, by GitLab's names.
const (
	pushEvents         = "push_events"
	mergeRequestEvents = "merge_requests_events"
	noteEvents         = "note_events"
	pipelineEvents     = "pipeline_events"
)

// DefaultEvents are the events that Liftlock listens to. Approvals come with those of merge
// requests, statuses with those of pipelines, and a deleted branch is a push.
var DefaultEvents = []string{pushEvents, mergeRequestEvents, noteEvents, pipelineEvents}

// knownEvents are the fields of a hook that say what it is told. Each is written, so that one
// that isn't wanted is off.
var knownEvents = []string{
	pushEvents, "tag_push_events", mergeRequestEvents, "issues_events", "confidential_issues_events", noteEvents,
	"confidential_note_events",
	"job_events", pipelineEvents, "wiki_page_events", "deployment_events", "releases_events",
}

// signingToken is the field of a hook's key by which GitLab signs.
const signingToken = "signing_token"

// executable is the alert_status of a hook that GitLab hasn't disabled.
const executable = "executable"

// hook is a hook as GitLab shows it: by field, because its events are fields.
type hook map[string]any

func (h hook) text(name string) string {
	s, _ := h[name].(string)
	return s
}

func (h hook) is(name string) bool {
	b, _ := h[name].(bool)
	return b
}

func (h hook) id() string {
	n, _ := h["id"].(float64)
	return strconv.FormatInt(int64(n), 10)
}

func (h hook) missing() string {
	if n, ok := h["id"].(float64); !ok || n < 1 {
		return "a webhook's number"
	}
	return ""
}

// isRight says whether a hook is as it is wanted, and made with the secret that is wanted.
func (h hook) isRight(events []string, mark string) bool {
	return h.delivers(events) && h.text("description") == mark
}

// delivers says whether a hook is as it is wanted, whatever its secret is: where it says whether
// it has one, that too.
func (h hook) delivers(events []string) bool {
	present, shown := h["token_present"].(bool)
	if signs, _ := h["signing_token_present"].(bool); shown && !present && !signs {
		return false
	}
	missing := slices.ContainsFunc(events, func(e string) bool { return !h.is(e) })
	return !missing && h.is("enable_ssl_verification") && h.text("push_events_branch_filter") == ""
}

// isDisabled says that GitLab sends it nothing after failures, for a while or for good.
func (h hook) isDisabled() bool {
	s := h.text("alert_status")
	return s != "" && s != executable
}

// EnsureHook finds the hook by its URL and repairs it where it isn't right. GitLab doesn't show a
// hook's token: to know it again, a fingerprint of it stands in the hook's description, which
// maintainers of the project can read. A GitLab that keeps no description has the hook written at
// every look, and that alone is no change: it would have everything evaluated each time. One that
// GitLab has disabled is enabled by a test, which the receiver must answer.
func (d *Driver) EnsureHook(ctx context.Context, r forge.Repo, h forge.Hook) (bool, error) {
	events := h.Events
	if len(events) == 0 {
		events = DefaultEvents
	}
	mark := rest.Fingerprint(h.Secret)
	ours, err := d.listHooks(ctx, r, h.URL)
	if err != nil {
		return false, err
	}
	if len(ours) == 0 {
		d.hooks.Remove(hookPlace{r, h.URL})
		_, err := d.writeHook(ctx, "create the webhook of ", r, http.MethodPost, newHook(h, events, mark), "hooks")
		return err == nil, err
	}
	changed := false
	keep := max(0, slices.IndexFunc(ours, func(o hook) bool { return o.isRight(events, mark) }))
	d.hooks.Put(hookPlace{r, h.URL}, ours[keep].id())
	if !ours[keep].isRight(events, mark) {
		written, err := d.writeHook(ctx, "repair the webhook of ", r, http.MethodPut, newHook(h, events, mark), "hooks", ours[keep].id())
		if err != nil {
			return false, err
		}
		changed = !ours[keep].delivers(events) || written.text("description") == mark
	}
	for i, o := range ours {
		if i == keep {
			continue
		}
		_, err := d.callProject(ctx, "remove a second webhook of "+r.String(), r, http.MethodDelete, nil, nil, "hooks", o.id())
		if err != nil && rest.StatusOf(err) != http.StatusNotFound {
			return changed, err
		}
		changed = true
	}
	if ours[keep].isDisabled() {
		_, err := d.callProject(ctx, "enable the webhook of "+r.String()+", which GitLab has disabled", r, http.MethodPost, nil, nil,
			"hooks", ours[keep].id(), "test", pushEvents)
		return err == nil || changed, err
	}
	return changed, nil
}

// hookPlace is where a hook is, and delivers to.
type hookPlace struct {
	repo forge.Repo
	url  string
}

// listHooks gives the hooks with the URL.
func (d *Driver) listHooks(ctx context.Context, r forge.Repo, url string) (found []hook, err error) {
	err = forEach(ctx, d, "list the webhooks of "+r.String(), r, maxPages, query{}, func(o hook) bool {
		if o.text("url") == url {
			found = append(found, o)
		}
		return false
	}, "hooks")
	return found, rest.AddHint(err, hookHint)
}

// hookID is a hook's number, which is asked for where the hook wasn't read yet.
func (d *Driver) hookID(ctx context.Context, r forge.Repo, url string) (string, error) {
	place := hookPlace{r, url}
	if id, ok := d.hooks.Get(place); ok {
		return id, nil
	}
	found, err := d.listHooks(ctx, r, url)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", &forge.Error{Op: "find the webhook of " + r.String(), Kind: forge.ErrNotFound, Message: "there is none to " + url}
	}
	d.hooks.Put(place, found[0].id())
	return found[0].id(), nil
}

// writeHook writes a hook, gives GitLab's version of it, and makes sure that GitLab took the secret
// that signs its deliveries. A GitLab before 19.0 ignores a field that it doesn't know, and every
// delivery would be refused.
func (d *Driver) writeHook(ctx context.Context, what string, r forge.Repo, method string, h hook, path ...string) (written hook,
	err error) {
	if _, err := d.callProject(ctx, what+r.String(), r, method, h, &written, path...); err != nil {
		return nil, rest.AddHint(err, hookHint)
	}
	if h.text(signingToken) != "" && !written.is("signing_token_present") {
		return nil, fmt.Errorf("%w: %s%s: this GitLab signs no webhooks, which came with 19.0; give it one among webhookSecrets that "+
			"doesn't begin with whsec_ first", forge.ErrInvalid, what, r)
	}
	return written, nil
}

const hookHint = "make Liftlock's account a Maintainer of the project: only those may see its webhooks"

// newHook is what is written of a hook.
func newHook(h forge.Hook, events []string, mark string) hook {
	token := "token"
	if strings.HasPrefix(h.Secret, "whsec_") { // it signs, and is never sent (GitLab 19.0)
		token = signingToken
	}
	o := hook{"url": h.URL, token: h.Secret, "description": mark, "enable_ssl_verification": true, "push_events_branch_filter": ""}
	for _, e := range append(slices.Clone(knownEvents), events...) {
		o[e] = slices.Contains(events, e)
	}
	return o
}
