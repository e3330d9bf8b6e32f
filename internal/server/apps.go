package server

import (
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/github"
	"github.com/liftlock/liftlock/internal/forge/rest"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/webhooks"
)

// newApp builds the driver of a forge where we work as a GitHub App.
func newApp(c *config.Config, f config.Forge, o rest.Options) (*github.App, error) {
	a := f.Auth.App
	app := github.AppOptions{ID: a.Issuer(), PrivateKeyFile: a.PrivateKeyFile, Owners: a.Installations, InstallationID: a.InstallationID,
		ManageWebhook: a.ManageWebhook}
	for _, r := range c.Repositories {
		if r.Forge == f.Name {
			owner, name := r.Split()
			app.Repositories = append(app.Repositories, forge.Repo{Owner: owner, Name: name})
		}
	}
	return github.NewApp(o, app)
}

// acceptInstallation has an App's installation read again, and the repositories of its owner
// evaluated. The event doesn't say which of them the App may work for now, or only by names that
// may be old. Installations without a repository of ours are ignored.
func (s *Server) acceptInstallation(d *store.Delivery, ev *webhooks.Event) {
	app := s.apps[d.Forge]
	if app == nil {
		return // with a token, nothing changes
	}
	repos := app.InstallationChanged(ev.InstallationID, ev.Owner)
	if len(repos) == 0 {
		return
	}
	s.log.Info("the App's installation has changed", zap.String("forge", d.Forge), zap.String("owner", ev.Owner),
		zap.String("event", ev.Name), zap.String("action", ev.Action), zap.String("by", ev.Sender))
	var keys []wake.Key
	for _, r := range repos {
		id := d.Forge + ":" + r.String()
		s.tryAgain(id)
		keys = append(keys, wake.ForRepository(id), wake.ForSweep(id))
	}
	d.Keys = wake.Strings(keys...)
}

// appStatuses are the installations of Apps that rest, or lack a permission.
func (s *Server) appStatuses() []partStatus {
	var out []partStatus
	for name, app := range s.apps {
		for _, p := range app.Problems() {
			out = append(out, partStatus{"installation in " + p.Where + " on " + name, p.Err})
		}
	}
	slices.SortFunc(out, func(a, b partStatus) int { return strings.Compare(a.name, b.name) })
	return out
}
