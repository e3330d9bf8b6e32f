package github_test

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/github"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

var testRepoName = forge.Repo{Owner: "acme", Name: "fleet"}

// registeredApp is an App as its owner knows it.
type registeredApp struct {
	emulator.AppCredentials
	now func() time.Time // our clock; nil: the forge's
}

// registerApp registers an App with what Liftlock's manifest asks for; its name: liftlock.
func registerApp(t *testing.T, em *emulator.Forge, slug ...string) registeredApp {
	t.Helper()
	m := github.NewManifest("Liftlock", "https://liftlock.example", "hub", "", true)
	name := "liftlock"
	if len(slug) > 0 {
		name = slug[0]
	}
	c, err := em.RegisterApp(emulator.App{Slug: name, Permissions: m.Permissions, Events: m.Events})
	if err != nil {
		t.Fatal(err)
	}
	return registeredApp{AppCredentials: c}
}

// install installs the App liftlock.
func install(t *testing.T, em *emulator.Forge, owner string, repos ...string) {
	t.Helper()
	if err := em.InstallApp("liftlock", owner, repos...); err != nil {
		t.Fatal(err)
	}
}

// newApp makes a driver of an App, with a key of its own.
func newApp(t *testing.T, em *emulator.Forge, app registeredApp, o github.AppOptions) *github.App {
	t.Helper()
	o.ID = cmp.Or(o.ID, strconv.FormatInt(app.ID, 10))
	if o.PrivateKeyFile == "" {
		o.PrivateKeyFile = writeKey(t, app.PrivateKey)
	}
	d, err := github.NewApp(github.Options{URL: em.URL() + "/api/v3", Now: app.now}, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// writeKey writes a key into a file.
func writeKey(t *testing.T, key []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, key, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
