package server

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/forge/github"
	"github.com/liftlock/liftlock/internal/forge/rest"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/webhooks"
)

// TestAppInstallationEvents: an event of one installation wakes its owner's repositories, also
// those that aren't reached yet, and no others; that of a stranger's wakes none.
func TestAppInstallationEvents(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600); err != nil {
		t.Fatal(err)
	}
	forge := config.Forge{Name: "hub", Auth: config.Auth{App: &config.App{ID: 1, PrivateKeyFile: file}}}
	s := &Server{log: zap.NewNop(), apps: map[string]*github.App{}, connecting: map[*retryTimer]bool{},
		o: Options{Config: &config.Config{Repositories: []config.Repository{{Forge: "hub", Name: "acme/fleet"}, {Forge: "hub", Name: "globex/fleet"}, {Forge: "other", Name: "acme/fleet"}}}}}
	app, err := newApp(s.o.Config, forge, rest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.apps["hub"] = app
	acme, globex := s.newRetryTimer("hub:acme/fleet"), s.newRetryTimer("hub:globex/fleet")
	for _, c := range []struct {
		owner        string
		want         []string
		acme, globex int // tries
	}{
		{"mallory", nil, 0, 0},
		{"Globex", []string{"repo:hub:globex/fleet", "sweep:hub:globex/fleet"}, 0, 1},
		{"acme", []string{"repo:hub:acme/fleet", "sweep:hub:acme/fleet"}, 1, 1},
	} {
		d := &store.Delivery{Forge: "hub"}
		s.acceptInstallation(d, &webhooks.Event{Kind: webhooks.Installation, InstallationID: 7, Owner: c.owner})
		if !slices.Equal(d.Keys, c.want) || len(acme.fired) != c.acme || len(globex.fired) != c.globex {
			t.Errorf("%s: it wakes %q, and has tried acme's %d times, globex's %d times", c.owner, d.Keys, len(acme.fired), len(globex.fired))
		}
	}
}

// TestRepositoryEvents holds that an event of a repository that was renamed or moved wakes the
// server file's repository. It is found under its former name, also where it isn't reached yet, or
// by its number.
func TestRepositoryEvents(t *testing.T) {
	s := &Server{log: zap.NewNop(), connecting: map[*retryTimer]bool{}, numbers: map[string]int64{"hub:acme/fleet": 7, "hub:acme/apps": 8, "other:acme/fleet": 9},
		o: Options{Config: &config.Config{Repositories: []config.Repository{{Forge: "hub", Name: "acme/apps"}, {Forge: "hub", Name: "acme/fleet"}, {Forge: "hub", Name: "acme/docs"}, {Forge: "other", Name: "acme/fleet"}}}}}
	timer := s.newRetryTimer("hub:acme/fleet")
	woken := []string{"repo:hub:acme/fleet", "sweep:hub:acme/fleet"}
	for _, c := range []struct {
		name string
		ev   webhooks.Event
		want []string
	}{
		{"archived", webhooks.Event{Repo: "acme/fleet"}, woken},
		{"renamed", webhooks.Event{Repo: "acme/ships", Former: "Acme/Fleet"}, woken},
		{"somebody else's", webhooks.Event{Repo: "mallory/ships", Former: "mallory/fleet"}, nil},
		{"renamed, with its number", webhooks.Event{Repo: "acme/ships", RepoID: 7}, woken},
		{"named, with another's number", webhooks.Event{Repo: "acme/fleet", RepoID: 8}, []string{"repo:hub:acme/apps", "sweep:hub:acme/apps"}},
		{"made under a name that was given up", webhooks.Event{Repo: "acme/fleet", RepoID: 10}, []string{"sweep:hub:acme/fleet"}},
		{"not reached yet", webhooks.Event{Repo: "acme/docs", RepoID: 11}, []string{"repo:hub:acme/docs", "sweep:hub:acme/docs"}},
		{"another number", webhooks.Event{Repo: "acme/ships", RepoID: 6}, nil},
		{"a number on another forge", webhooks.Event{Repo: "acme/ships", RepoID: 9}, nil},
		{"without a name", webhooks.Event{}, nil},
	} {
		c.ev.Kind = webhooks.Repository
		d := &store.Delivery{Forge: "hub"}
		if err := s.addKeys(t.Context(), d, &c.ev); err != nil || !slices.Equal(d.Keys, c.want) {
			t.Errorf("%s: it wakes %q (%v)", c.name, d.Keys, err)
		}
	}
	if len(timer.fired) != 1 {
		t.Error("the repository wasn't tried again")
	}
}
