package server

import (
	"cmp"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/gitea"
	"github.com/liftlock/liftlock/internal/forge/github"
	"github.com/liftlock/liftlock/internal/forge/gitlab"
	"github.com/liftlock/liftlock/internal/forge/rest"
	"github.com/liftlock/liftlock/internal/server/config"
)

// publicGitLab is where a GitLab is that no address is given of.
const publicGitLab = "https://gitlab.com"

// driverOptions are what a forge's driver is built with besides its part of the server's file.
type driverOptions struct {
	version   string
	caches    *cache.Group
	onCall    func(endpoint string, status int, d time.Duration) // nil: nobody counts
	onLimited func(until time.Time, endpoint string)             // likewise
	exchange  forge.Exchange                                     // nil: this process is alone
	now       func() time.Time
}

// newDriver builds the driver of one forge; of an App, for its repositories in the file. Nothing
// is called.
func newDriver(c *config.Config, f config.Forge, o driverOptions) (forge.Forge, error) {
	authorities, err := readAuthorities(f.CAFile)
	if err != nil {
		return nil, fmt.Errorf("caFile: %w", err)
	}
	options := rest.Options{
		URL: f.URL, Token: f.Auth.Token.Reveal(), UserAgent: "liftlock/" + o.version, RootCAs: authorities, Caches: o.caches,
		OnCall: o.onCall, OnLimited: o.onLimited, Exchange: o.exchange, PublicLimits: f.PublicLimits, Now: o.now,
	}
	switch f.Type {
	case config.GitHub:
		if f.Auth.App != nil {
			return newApp(c, f, options)
		}
		return github.New(options)
	case config.Gitea:
		return gitea.New(options)
	case config.GitLab:
		options.URL = cmp.Or(f.URL, publicGitLab)
		return gitlab.New(options, gitlab.CallLimits(f.Limits))
	}
	return nil, fmt.Errorf("type %q is not supported", f.Type)
}

// newForge builds the driver of one forge for the server, watched and counted.
func (s *Server) newForge(f config.Forge) (forge.Forge, error) {
	d, err := newDriver(s.o.Config, f, driverOptions{version: s.o.Version, caches: &s.caches, onCall: s.metrics.forgeCall(f.Name),
		exchange: s.exchangeLimits(f.Name), now: s.o.Clock.Now,
		onLimited: func(until time.Time, endpoint string) {
			s.metrics.limited.WithLabelValues(f.Name).Inc()
			if endpoint != "" {
				s.log.Warn("the forge limits the rate of calls of one kind; those wait for a while", zap.String("forge", f.Name),
					zap.String("call", endpoint), zap.Time("until", until))
				return
			}
			s.log.Warn("the forge limits the rate of calls; none is made for a while", zap.String("forge", f.Name),
				zap.Time("until", until))
		}})
	if err != nil {
		return nil, err
	}
	if app, ok := d.(*github.App); ok {
		s.apps[f.Name] = app
	}
	if e, ok := d.(tokenExpirer); ok {
		s.tokens.tokens[f.Name] = e
	}
	if s.o.Seams.Forge != nil {
		d = s.o.Seams.Forge(d)
	}
	return d, nil
}
