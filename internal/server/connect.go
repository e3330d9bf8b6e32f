package server

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/policies"
)

// maxConnectWait is the longest wait between two tries to reach a forge at start.
const maxConnectWait = time.Minute

// connectRepositories finds out for every repository its own account on the forge, opens its mirror
// and gives it to reached; each by itself, at its time. It tries until it succeeds or the context
// ends. A forge that is down when Liftlock starts is no reason to be down as well, and a repository
// that can't be reached holds up no other.
func (s *Server) connectRepositories(ctx context.Context, reached chan<- *controller.Repository) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, r := range s.o.Config.Repositories {
		wg.Go(func() {
			if er := s.awaitRepository(ctx, r); er != nil {
				select {
				case reached <- er:
				case <-ctx.Done():
				}
			}
		})
	}
}

// awaitRepository tries to connect a repository until it succeeds or the context ends (nil).
func (s *Server) awaitRepository(ctx context.Context, r config.Repository) *controller.Repository {
	wait := backoff.NewExponentialBackOff(backoff.WithMaxInterval(maxConnectWait), backoff.WithMaxElapsedTime(0))
	timer := s.newRetryTimer(r.Forge + ":" + r.Name)
	defer s.dropRetryTimer(timer)
	er, err := backoff.RetryNotifyWithTimerAndData(func() (*controller.Repository, error) { return s.connectRepository(ctx, r) },
		backoff.WithContext(wait, ctx), func(err error, d time.Duration) {
			s.health.setTrouble("repository "+r.Name, err)
			s.log.Error("a repository can't be reached; trying again", zap.String("repository", r.Name), zap.Duration("in", d),
				zap.String("hint", connectHint(err)), zap.Error(err))
		}, timer)
	if err != nil {
		return nil
	}
	s.health.clearTrouble("repository " + r.Name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repos = append(s.repos, er)
	return er
}

// connectHint says what a person can do about an error at start.
func connectHint(err error) string {
	var refused *forge.Error
	switch {
	case errors.Is(err, forge.ErrNotInstalled) && errors.As(err, &refused):
		return refused.Hint
	case errors.Is(err, errReplaced):
		return "write the name that the former one has now in repositories[].name; if the new one is meant, stop the server, delete its " +
			"database, which is about the former, and start it again"
	case errors.Is(err, forge.ErrUnauthorized), errors.Is(err, git.ErrAuth):
		return "correct forges[].auth in the server's file"
	case errors.As(err, &x509.UnknownAuthorityError{}):
		return "name the authority of its certificate in forges[].caFile"
	case errors.Is(err, forge.ErrForbidden):
		return "give the token the permission that is named, or use another one"
	case errors.Is(err, forge.ErrNotFound), errors.Is(err, git.ErrNoRepository):
		return "correct repositories[].name, or give the token access to it"
	}
	return "check forges[].url and the network"
}

func (s *Server) connectRepository(ctx context.Context, r config.Repository) (*controller.Repository, error) {
	f := s.forges[r.Forge]
	fc := s.o.Config.ForgeByName(r.Forge)
	me, err := f.Me(ctx)
	if err != nil {
		return nil, err
	}
	owner, name := r.Split()
	repo := forge.Repo{Owner: owner, Name: name}
	url, err := f.CloneURL(ctx, repo)
	if err != nil {
		return nil, err
	}
	id := r.Forge + ":" + r.Name
	number, err := s.readNumber(ctx, id, f, repo)
	if err != nil {
		return nil, err
	}
	dir, former := s.mirrorDirs(id)
	signer, err := s.commitSigner(f, repo)
	if err != nil {
		return nil, err
	}
	var refused func(token string) bool
	if app := s.apps[r.Forge]; app != nil {
		refused = func(token string) bool { return app.GitRefused(repo, token) }
	}
	m, err := git.Open(ctx, git.Options{Dir: dir, FormerDir: former, URL: url,
		Credentials: func(ctx context.Context) (string, string, error) { return f.GitAuth(ctx, repo) }, Refused: refused, CAFile: fc.CAFile,
		Caches: &s.caches, Log: s.log.Named("git"), Author: commitAuthorOf(me), SigningKey: s.signingKey, RemoteSigner: signer,
		BeforePush: s.o.Seams.BeforePush, AfterPush: s.o.Seams.AfterPush, Now: s.o.Clock.Now})
	if err != nil {
		return nil, err
	}
	if _, err := m.Fetch(ctx); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	var secrets [][]byte
	for _, s := range fc.WebhookSecrets {
		secrets = append(secrets, []byte(s.Reveal()))
	}
	marks, err := branch.NewMarkSigner(secrets...)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	before, err := branch.RememberAccount(ctx, s.store, id, policies.Account{ID: me.ID, Login: me.Login}, s.o.Clock.Now())
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	unsigned, cure := s.o.Config.WhyUnsigned(fc)
	if unsigned != "" {
		unsigned += ": " + cure
	}
	er := &controller.Repository{
		Repository: &branch.Repository{Marks: marks, ID: id, Name: repo, Forge: f, ForgeRef: r.Forge, ForgeType: fc.Type, Branch: r.Branch,
			Mirror: m, URLs: []string{url}, BotLogin: me.Login, BotID: me.ID, Former: before, Number: number, Unsigned: unsigned,
			SignedByForge: signer != nil},
		PollInterval: r.PollInterval, SweepInterval: s.o.Config.SweepInterval, Onboard: r.Onboard,
		DiscoverInterval: r.DiscoverInterval,
	}
	// The App's owner manages its webhook, but deliveries that it missed are found in any case.
	if r.ManageWebhooks || fc.Auth.App != nil {
		er.Hook = &forge.Hook{URL: fmt.Sprintf("%s/webhooks/%s", s.o.Config.Webhooks.ExternalURL, r.Forge),
			Secret: fc.WebhookSecrets[0].Reveal()}
	}
	return er, nil
}
