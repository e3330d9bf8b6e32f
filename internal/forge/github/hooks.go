package github

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// DefaultEvents are the events that Liftlock listens to. check_suite stands for
// its runs: one event instead of dozens.
var DefaultEvents = []string{"push", "pull_request", "pull_request_review", "issue_comment", "status", "check_suite"}

// repositoryEvent says that a repository was renamed, moved, archived or unarchived.
const repositoryEvent = "repository"

// lateEvents say what is noticed later without them: that the rules of a branch changed, or the
// repository itself. An App would need to read the repository's administration to be sent those of
// the rules. A GitHub Enterprise Server that is older than rulesets doesn't know both.
var lateEvents = []string{"branch_protection_rule", "repository_ruleset", repositoryEvent}

// EnsureHook finds the hook by its URL. GitHub never shows a hook's secret, so a process's first
// call for a hook sets it in any case (changed stays false when nothing else changed). Later calls
// do when they come with another one. Where GitHub refuses lateEvents, the hook does without them.
func (d *Driver) EnsureHook(ctx context.Context, r forge.Repo, h forge.Hook) (bool, error) {
	if len(h.Events) > 0 {
		return d.ensureHook(ctx, r, h, h.Events)
	}
	if !d.noLateEvents.Load() {
		changed, err := d.ensureHook(ctx, r, h, slices.Concat(DefaultEvents, lateEvents))
		// Which words it has for an event that it doesn't know isn't documented; another fault of the
		// request's is refused once more.
		if rest.StatusOf(err) != http.StatusUnprocessableEntity || rest.Says(err, "already exists") {
			return changed, err
		}
	}
	changed, err := d.ensureHook(ctx, r, h, DefaultEvents)
	if err == nil {
		d.noLateEvents.Store(true)
	}
	return changed, err
}

// ensureHook creates or repairs the hook, which is sent the events that are wanted.
func (d *Driver) ensureHook(ctx context.Context, r forge.Repo, h forge.Hook, want []string) (bool, error) {
	ctx, owner, name := inRepo(ctx, r)
	config := &gh.HookConfig{URL: &h.URL, Secret: &h.Secret, ContentType: gh.String("json"), InsecureSSL: gh.String("0")}

	hook, err := d.findHook(ctx, r, h.URL)
	if err != nil {
		return false, err
	}
	if hook == nil {
		hook, _, err := d.api.Repositories.CreateHook(ctx, owner, name, &gh.Hook{Config: config, Events: want, Active: gh.Bool(true)})
		if err != nil {
			return false, wrapError("create the webhook of "+r.String(), err)
		}
		d.recordSecret(hook.GetID(), h.Secret)
		return true, nil
	}

	missing := len(missingEvents(want, hook.Events)) > 0
	wrong := missing || !hook.GetActive() || hook.Config.GetContentType() != "json" || hook.Config.GetInsecureSSL() == "1"
	known, same := d.knownSecret(hook.GetID(), h.Secret)
	if !wrong && same {
		return false, nil
	}
	edit := &gh.Hook{Config: config, Active: gh.Bool(true)}
	if missing {
		edit.Events = want
	}
	if _, _, err := d.api.Repositories.EditHook(ctx, owner, name, hook.GetID(), edit); err != nil {
		return false, wrapError("repair the webhook of "+r.String(), err)
	}
	d.recordSecret(hook.GetID(), h.Secret)
	return wrong || known, nil
}

// missingEvents are those that a webhook isn't sent; nil: none.
func missingEvents(wanted, has []string) []string {
	if slices.Contains(has, "*") {
		return nil
	}
	var missing []string
	for _, e := range wanted {
		if !slices.Contains(has, e) {
			missing = append(missing, e)
		}
	}
	return missing
}

// hookPlace is where a hook is, and delivers to.
type hookPlace struct {
	repo forge.Repo
	url  string
}

// findHook finds the hook by its URL, and remembers its number.
func (d *Driver) findHook(ctx context.Context, r forge.Repo, url string) (*gh.Hook, error) {
	ctx, owner, name := inRepo(ctx, r)
	var found *gh.Hook
	err := forEach("list the webhooks of "+r.String(), bounds, func(page gh.ListOptions) ([]*gh.Hook, *gh.Response, error) {
		return d.api.Repositories.ListHooks(ctx, owner, name, &page)
	}, func(hook *gh.Hook) bool {
		if hook.Config != nil && hook.Config.GetURL() == url {
			found = hook
		}
		return found != nil
	})
	if found != nil {
		d.hooks.Put(hookPlace{r, url}, found.GetID())
	} else {
		d.hooks.Remove(hookPlace{r, url})
	}
	return found, err
}

// knownSecret says whether this process has set the hook's secret, and whether
// it was this one. Only digests are kept.
func (d *Driver) knownSecret(hook int64, secret string) (known, same bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	digest, known := d.secrets[hook]
	return known, known && digest == digestOf(secret)
}

func (d *Driver) recordSecret(hook int64, secret string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.secrets[hook] = digestOf(secret)
}

func digestOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
