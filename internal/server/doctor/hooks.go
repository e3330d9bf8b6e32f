package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
)

// checkHooks checks the webhook that delivers to the server, where it has an address.
func (r *repositoryCheck) checkHooks(ctx context.Context) {
	before := len(r.found)
	where := "webhook of " + strings.TrimPrefix(r.where, "repository ")
	if r.Config.Webhooks.ExternalURL == "" {
		r.found.add(CodeHooks, where, fmt.Sprintf("there is no externalURL, so everything is found by polling, within %s",
			r.Config.SweepInterval), "")
		return
	}
	app := r.forgeOf.Auth.App
	wanted := forge.Hook{URL: r.Config.Webhooks.ExternalURL + "/webhooks/" + r.forgeOf.Name, Secret: r.forgeOf.WebhookSecrets[0].Reveal()}
	hooks, err := r.forge.InspectHooks(ctx, r.repo, wanted)
	switch {
	case errors.Is(err, forge.ErrForbidden), errors.Is(err, forge.ErrNotFound):
		if r.config.ManageWebhooks {
			r.found.add("hook-forbidden", where, "manageWebhooks is on, and the account may not see webhooks: "+err.Error(),
				"make the account an administrator (on GitLab a Maintainer) of the repository, or leave manageWebhooks out and make the "+
					"webhook by hand")
		} else {
			r.found.add("hook-unread", where, "the account may not see webhooks",
				"look at it by hand, or let doctor run once with the token of somebody who administers the repository")
		}
		return
	case err != nil:
		r.found.add("hook-unread", where, err.Error(), "try again when the forge answers")
		return
	case len(hooks) == 0 && app != nil:
		r.found.add("hook-missing", where, "the App has no webhook", "set it to "+wanted.URL+
			" on the App's page, or switch auth.app.manageWebhook on")
		return
	case len(hooks) == 0:
		cure := "make one to " + wanted.URL + ", with one of webhookSecrets and JSON, or switch manageWebhooks on; until then polling " +
			"finds everything, later"
		if r.config.ManageWebhooks {
			cure = "start the server, which makes it"
		}
		r.found.add("hook-missing", where, "there is none to "+wanted.URL, cure)
		return
	case len(hooks) > 1:
		r.found.add("hook-several", where, fmt.Sprintf("%d deliver to %s: everything is received several times", len(hooks), wanted.URL),
			"remove all but one")
	}
	for i := range hooks {
		r.checkHook(where, wanted.URL, &hooks[i])
	}
	r.found.addOK(before, CodeHooks, where, "it delivers to "+wanted.URL+describeLast(&hooks[0]))
}

func describeLast(h *forge.HookSettings) string {
	if h.LastAnswer == "" {
		return ""
	}
	return ", last answered " + h.LastAnswer
}

// checkHook checks one webhook.
func (r *repositoryCheck) checkHook(where, wanted string, h *forge.HookSettings) {
	repaired := "correct it in the webhook's settings"
	if r.config.ManageWebhooks {
		repaired = "start the server, which repairs it"
	}
	if h.URL != wanted {
		r.found.add("hook-address", where, "it delivers to "+redactURL(h.URL)+", not to "+wanted,
			"correct the webhook's address, or externalURL in the server's file")
	}
	if !h.Active {
		r.found.add("hook-off", where, "it is switched off", repaired)
	}
	if h.Paused != "" {
		r.found.add("hook-paused", where, "the forge sends it nothing after failures: "+h.Paused,
			"see that the server can be reached at its address; then "+repaired)
	}
	switch {
	case len(h.MissingEvents) > 0:
		r.found.add("hook-events", where, "it isn't sent "+strings.Join(slices.Concat(h.MissingEvents, h.LateEvents), ", "), repaired)
	case len(h.LateEvents) > 0:
		r.found.add("hook-events-late", where, "it isn't sent "+strings.Join(h.LateEvents, ", ")+
			", so a change of the forge's rules, or of the repository itself, may be noticed late", repaired)
	}
	if h.WrongFormat != "" {
		r.found.add("hook-format", where, h.WrongFormat, repaired)
	}
	if h.Insecure && strings.HasPrefix(h.URL, "https://") {
		r.found.add("hook-insecure", where, "the forge doesn't check the certificate that it delivers to", repaired)
	}
	switch {
	case h.OtherSecret, h.IsFailing() && h.LastStatus == http.StatusUnauthorized:
		r.found.add("hook-secret", where, "it signs with a secret that isn't the first of webhookSecrets"+describeLast(h),
			"give it the first of webhookSecrets; "+repaired)
	case h.IsFailing():
		r.found.add("hook-failing", where, "its last delivery was answered "+h.LastAnswer, "see that the forge reaches "+wanted+
			": its name, the port, the certificate, a proxy's path")
	}
}
