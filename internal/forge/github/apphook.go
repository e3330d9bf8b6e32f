package github

import (
	"context"
	"slices"
	"strings"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
)

// EnsureHook manages the App's one webhook, whichever the repository. It points it at h where that
// is ours to do, and says which events the App isn't subscribed to. Only a person can change that,
// on its page.
func (ap *App) EnsureHook(ctx context.Context, r forge.Repo, h forge.Hook) (bool, error) {
	unlock, err := ap.locks.Lock(ctx, appKey)
	if err != nil {
		return false, err
	}
	defer unlock()
	changed := false
	if ap.app.ManageWebhook {
		if changed, err = ap.setHook(ctx, h); err != nil {
			return false, err
		}
	}
	if err := ap.readAbout(ctx); err != nil {
		return changed, err
	}
	ap.mu.Lock()
	missing := slices.DeleteFunc(slices.Clone(DefaultEvents), func(e string) bool { return slices.Contains(ap.about.events, e) })
	page := ap.about.page
	ap.mu.Unlock()
	if len(missing) > 0 {
		return changed, &forge.Error{Op: "look after the App's webhook for " + r.String(), Kind: forge.ErrInvalid,
			Message: "the App isn't subscribed to " + strings.Join(missing, ", "),
			Hint:    "subscribe it under Permissions & events of " + page}
	}
	return changed, nil
}

// setHook points the App's webhook at h. GitHub shows no secret, so the first call of a process
// sets it in any case. Callers hold the lock of appKey.
func (ap *App) setHook(ctx context.Context, h forge.Hook) (changed bool, err error) {
	config, _, err := ap.own.Apps.GetHookConfig(ctx)
	if err != nil {
		return false, ap.wrapAppError("read the App's webhook", err)
	}
	wrong := config.GetURL() != h.URL || config.GetContentType() != "json" || config.GetInsecureSSL() == "1"
	digest := digestOf(h.URL + "\n" + h.Secret)
	if !wrong && digest == ap.hookSet {
		return false, nil
	}
	if _, _, err := ap.own.Apps.UpdateHookConfig(ctx, &gh.HookConfig{URL: &h.URL, Secret: &h.Secret, ContentType: gh.String("json"),
		InsecureSSL: gh.String("0")}); err != nil {
		return false, ap.wrapAppError("point the App's webhook at "+h.URL, err)
	}
	known := ap.hookSet != ""
	ap.hookSet = digest
	return wrong || known, nil
}

// MissedDeliveries lists those of the App's webhook that were about the repository. It is one
// list for all repositories, which is read once for those that look at the same time.
func (ap *App) MissedDeliveries(ctx context.Context, r forge.Repo, q forge.DeliveryQuery) (forge.MissedDeliveries, error) {
	i, err := ap.findInstallation(ctx, r.Owner, r.Name)
	if err != nil {
		return forge.MissedDeliveries{}, err
	}
	tokens := ap.tokensOf(i, r.Name)
	if _, err := tokens.token(ctx); err != nil { // with it comes the repository's number
		return forge.MissedDeliveries{}, err
	}
	tokens.mu.Lock()
	id := tokens.repositoryID
	tokens.mu.Unlock()
	return readMissed(ctx, "list the deliveries of the App's webhook", q, deliverySource{
		list: ap.listDeliveries, read: ap.own.Apps.GetHookDelivery,
		concern: func(v *gh.HookDelivery) bool {
			if strings.HasPrefix(v.GetEvent(), "installation") && !isDelivered(v) {
				ap.expireInstallations() // it may have been installed, suspended or taken away
			}
			return v.GetRepositoryID() == id
		},
	})
}

// recentAge is how old a page of deliveries may be: who looks because of a failure does so
// later than that.
const recentAge = 3 * time.Second

// recentDeliveries are the pages that were read last, guarded by their lock.
type recentDeliveries struct {
	at    time.Time
	pages map[string]deliveryPage // by cursor
}

type deliveryPage struct {
	list []*gh.HookDelivery
	resp *gh.Response
}

// listDeliveries reads a page of the App's deliveries, or has just read it.
func (ap *App) listDeliveries(ctx context.Context, page *gh.ListCursorOptions) ([]*gh.HookDelivery, *gh.Response, error) {
	const key = "deliveries"
	unlock, err := ap.locks.Lock(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	if now := ap.options.Now(); ap.log.pages == nil || now.Sub(ap.log.at) > recentAge {
		ap.log.at, ap.log.pages = now, map[string]deliveryPage{}
	}
	if known, ok := ap.log.pages[page.Cursor]; ok {
		return known.list, known.resp, nil
	}
	list, resp, err := ap.own.Apps.ListHookDeliveries(ctx, page)
	if err == nil {
		ap.log.pages[page.Cursor] = deliveryPage{list, resp}
	}
	return list, resp, err
}
