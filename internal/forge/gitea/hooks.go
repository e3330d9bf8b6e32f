package gitea

import (
	"context"
	"net/http"
	"slices"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// DefaultEvents are the events that Liftlock listens to. pull_request stands for
// all events of pull requests, their comments and reviews too. A deleted branch
// is no push for Gitea.
var DefaultEvents = []string{"push", "delete", "pull_request", "status"}

// pullEvents are those that must be on where pull_request was asked for: Gitea
// shows them one by one.
var pullEvents = []string{
	"pull_request", "pull_request_label", "pull_request_sync", "pull_request_comment",
	"pull_request_review_approved", "pull_request_review_rejected",
}

// EnsureHook finds the hook by its URL and replaces it where it isn't right. Gitea's API can
// neither show nor change a hook's secret, and (1.23) changing a hook loses its status events. To
// know a secret again, a fingerprint of it goes along in the hook's authorization header, which
// only administrators of the repository can read. The new hook is made before the old one is
// removed, so nothing is missed in between; a delivery that comes twice is one too many.
func (d *Driver) EnsureHook(ctx context.Context, r forge.Repo, h forge.Hook) (bool, error) {
	want := h.Events
	if len(want) == 0 {
		want = DefaultEvents
	}
	hooks, err := d.hooksOf(ctx, r, h.URL)
	if err != nil {
		return false, err
	}
	mark := rest.Fingerprint(h.Secret)
	right := slices.IndexFunc(hooks, func(hook *sdk.Hook) bool {
		isWhole := hook.Active && hook.BranchFilter == "" && len(d.missingEvents(want, hook.Events)) == 0
		return isWhole && hook.Config["content_type"] == "json" && hook.AuthorizationHeader == mark
	})
	changed := right < 0
	if changed {
		created, _, err := d.newClient(ctx).CreateRepoHook(r.Owner, r.Name, sdk.CreateHookOption{
			Type:                sdk.HookTypeGitea,
			Config:              map[string]string{"url": h.URL, "content_type": "json", "secret": h.Secret},
			Events:              want,
			Active:              true,
			AuthorizationHeader: mark,
		})
		if err != nil {
			return false, rest.Wrap("create the webhook of "+r.String(), err)
		}
		d.recordUnsupported(d.missingEvents(want, created.Events))
	} else {
		hooks = slices.Delete(hooks, right, right+1)
	}
	// Any other hook under our address was replaced, now or by a process that died in between.
	for _, hook := range hooks {
		if _, err := d.newClient(ctx).DeleteRepoHook(r.Owner, r.Name, hook.ID); err != nil && rest.StatusOf(err) != http.StatusNotFound {
			return changed, rest.Wrap("remove a webhook of "+r.String()+" that was replaced", err)
		}
		changed = true
	}
	return changed, nil
}

// hooksOf gives the hooks with the URL.
func (d *Driver) hooksOf(ctx context.Context, r forge.Repo, url string) ([]*sdk.Hook, error) {
	var found []*sdk.Hook
	err := forEach("list the webhooks of "+r.String(), bounds, func(o sdk.ListOptions) ([]*sdk.Hook, *sdk.Response, error) {
		return d.newClient(ctx).ListRepoHooks(r.Owner, r.Name, sdk.ListHooksOptions{ListOptions: o})
	}, func(hook *sdk.Hook) bool {
		if hook.Config["url"] == url {
			found = append(found, hook)
		}
		return false
	})
	return found, err
}

// recordUnsupported remembers events that the server didn't take although they were asked
// for: an older one knows no status.
func (d *Driver) recordUnsupported(events []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range events {
		d.unsupported[e] = true
	}
}

// missingEvents are the events that aren't on, of those that the server has.
func (d *Driver) missingEvents(want, have []string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var missing []string
	for _, e := range want {
		parts := []string{e}
		if e == "pull_request" {
			parts = pullEvents
		}
		for _, part := range parts {
			if !slices.Contains(have, part) && !d.unsupported[part] {
				missing = append(missing, part)
			}
		}
	}
	return missing
}
