package doctor

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/server/config"
)

// fixedForge is a Gitea of which all that is inspected is known.
type fixedForge struct {
	Forge       // whatever else is called is a mistake
	credentials forge.Credentials
	settings    forge.RepositorySettings
	hooks       []forge.HookSettings
	pulls       []forge.PullRequest
}

func (f *fixedForge) Me(context.Context) (forge.User, error) { return forge.User{Login: "bot"}, nil }

func (f *fixedForge) InspectCredentials(context.Context) (*forge.Credentials, error) {
	return &f.credentials, nil
}

func (f *fixedForge) InspectRepository(context.Context, forge.Repo) (*forge.RepositorySettings, error) {
	return &f.settings, nil
}

func (f *fixedForge) InspectHooks(context.Context, forge.Repo, forge.Hook) ([]forge.HookSettings, error) {
	return f.hooks, nil
}

func (f *fixedForge) PullRequests(context.Context, forge.Repo, time.Time) ([]forge.PullRequest, error) {
	return f.pulls, nil
}

// TestSettings judges what the emulated forges don't have: a Gitea's settings, and webhooks that a
// person made.
func TestSettings(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	const external = "https://liftlock.example.com"
	readByToken := func(_ *fixedForge, c *config.Config) { c.ReadAccess = config.ReadToken }
	for _, c := range []struct {
		name   string
		change func(f *fixedForge, c *config.Config)
		want   []Code
	}{
		{"no token to read with", readByToken, []Code{"readers-missing"}},
		{"no token, and a login", func(f *fixedForge, c *config.Config) {
			readByToken(f, c)
			c.OIDC = &config.OIDC{Issuer: "https://dex.example.com"}
		}, nil},
		{"as it is wanted", func(*fixedForge, *config.Config) {}, nil},
		{"its own pull requests, and a person's", func(f *fixedForge, _ *config.Config) {
			f.pulls = []forge.PullRequest{{Number: 1, Author: "bot", Branch: "liftlock/shop/qa/web"}, {Number: 2, Author: "ada", Branch: "a-feature"}}
		}, nil},
		{"a person's with its account", func(f *fixedForge, _ *config.Config) {
			f.pulls = []forge.PullRequest{{Number: 3, Author: "Bot", Branch: "a-feature"}}
		}, []Code{"account-personal"}},
		{"a token that has ended", func(f *fixedForge, _ *config.Config) { f.credentials.Expires = now.Add(-time.Hour) }, []Code{"token-ended"}},
		{"no commit", func(f *fixedForge, _ *config.Config) { f.settings.DefaultBranch = "" }, []Code{"repository-empty"}},
		{"no pull requests", func(f *fixedForge, _ *config.Config) { f.settings.NoPulls = true }, []Code{"pulls-off"}},
		{"no administrator", func(f *fixedForge, _ *config.Config) { f.settings.Permission = forge.PermissionWrite }, []Code{"admin-missing"}},
		{"a form", func(f *fixedForge, _ *config.Config) { f.hooks[0].WrongFormat = "it sends forms" }, []Code{"hook-format"}},
		{"no certificate", func(f *fixedForge, _ *config.Config) { f.hooks[0].Insecure = true }, []Code{"hook-insecure"}},
		{"two webhooks", func(f *fixedForge, _ *config.Config) { f.hooks = append(f.hooks, f.hooks[0]) }, []Code{"hook-several"}},
		{"another secret", func(f *fixedForge, _ *config.Config) { f.hooks[0].OtherSecret = true }, []Code{"hook-secret"}},
		{"no address", func(f *fixedForge, c *config.Config) {
			f.hooks, c.ExternalURL, c.Webhooks.ExternalURL = nil, "", ""
		}, nil},
		{"an address of this machine's alone", func(f *fixedForge, c *config.Config) {
			c.ExternalURL, c.Webhooks.ExternalURL = "http://localhost:8080", "http://localhost:8080"
			f.hooks[0].URL = "http://localhost:8080/webhooks/hub"
		}, []Code{"address-local"}},
	} {
		f := &fixedForge{
			credentials: forge.Credentials{ServerTime: now},
			settings:    forge.RepositorySettings{Name: "acme/fleet", DefaultBranch: "main", Permission: forge.PermissionAdmin},
			hooks:       []forge.HookSettings{{URL: external + "/webhooks/hub", Active: true}},
		}
		cfg := &config.Config{
			ExternalURL: external, Webhooks: config.Webhooks{ExternalURL: external},
			Forges:       []config.Forge{{Name: "hub", Type: config.Gitea, URL: "https://git.example.com", WebhookSecrets: []config.Secret{"secret"}}},
			Repositories: []config.Repository{{Forge: "hub", Name: "acme/fleet", Branch: "main"}},
		}
		c.change(f, cfg)
		d := &doctor{Options: Options{Config: cfg, Now: func() time.Time { return now }, Timeout: time.Minute}}
		found := d.checkFile(context.Background())
		credentials, usable := d.checkCredentials(context.Background(), &cfg.Forges[0], f)
		k := &repositoryCheck{doctor: d, forge: f, forgeOf: &cfg.Forges[0], config: &cfg.Repositories[0], where: "repository acme/fleet"}
		k.checkByAPI(context.Background())
		got := (&Report{Findings: slices.Concat(found, credentials, k.found)}).Codes()
		if !slices.Equal(got, c.want) || !usable {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
}
