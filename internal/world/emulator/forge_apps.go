package emulator

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// App is a GitHub App as it is registered. Its bot's login is the slug with [bot].
type App struct {
	Slug        string
	Permissions map[string]string // read or write, by name
	Events      []string          // that its webhook is sent, beside those of its installations
	HookURL     string            // of its webhook; empty: it has none yet
	HookSecret  string
}

// AppCredentials are what somebody who registers an App is given.
type AppCredentials struct {
	ID         int64
	ClientID   string
	PrivateKey []byte // in PEM; GitHub keeps the public one
}

// appKeyBits is the size of the keys that GitHub makes.
const appKeyBits = 2048

// app is a registered App.
type app struct {
	App
	id            int64
	clientID      string
	keys          []*rsa.PublicKey
	bot           *account
	hook          *hook
	installations []*appInstallation
}

// appInstallation is an App in an organisation.
type appInstallation struct {
	id          int64
	app         *app
	owner       *account
	created     time.Time
	suspended   time.Time       // zero: it isn't
	repos       map[string]bool // that it was given, by lower-case name; nil: all
	permissions map[string]string
	quotaID     int64
}

// covers says whether an installation was given a repository.
func (a *appInstallation) covers(r *repository) bool {
	return r.owner == a.owner && (a.repos == nil || a.repos[strings.ToLower(r.name)])
}

// installationOf is the App's installation that was given a repository; nil: none.
func (a *app) installationOf(r *repository) *appInstallation {
	i := slices.IndexFunc(a.installations, func(i *appInstallation) bool { return i.covers(r) })
	if i < 0 {
		return nil
	}
	return a.installations[i]
}

// permissionOf is what the App's bot may do in a repository.
func (a *app) permissionOf(r *repository) Permission {
	i := a.installationOf(r)
	switch {
	case i == nil || !i.suspended.IsZero():
		return NoPermission
	case i.permissions["contents"] == "write":
		return Write
	}
	return Read
}

// installationToken is one that an App got for an installation.
type installationToken struct {
	installation *appInstallation
	expires      time.Time
	repos        map[string]bool // by lower-case name; nil: all that the installation was given
	permissions  map[string]string
}

// covers says whether the token is good for a repository.
func (i *installationToken) covers(r *repository) bool {
	return i.installation.covers(r) && (i.repos == nil || i.repos[strings.ToLower(r.name)])
}

// mayRead says that a token reads the files of a repository.
func (i *installationToken) mayRead(r *repository) bool {
	return i.covers(r) && i.permissions["contents"] != ""
}

// RegisterApp registers an App, with its first key.
func (f *Forge) RegisterApp(o App) (AppCredentials, error) {
	key, public, err := newAppKey()
	if err != nil {
		return AppCredentials{}, err
	}
	login := o.Slug + "[bot]"
	if err := f.AddUser(login, "", UserOptions{Bot: true, Email: login + "@bots.example"}); err != nil {
		return AppCredentials{}, fmt.Errorf("registering the App %s: %w", o.Slug, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	bot := f.users[strings.ToLower(login)]
	a := &app{App: o, id: f.nextID(), keys: []*rsa.PublicKey{public}, bot: bot}
	a.clientID = fmt.Sprintf("Iv23li%014d", a.id)
	a.hook = &hook{id: f.nextID(), app: a, url: o.HookURL, secret: o.HookSecret, contentType: "json", insecure: "0", events: o.Events,
		active: true, created: f.now(), updated: f.now()}
	bot.app = a
	f.apps[o.Slug] = a
	return AppCredentials{ID: a.id, ClientID: a.clientID, PrivateKey: key}, nil
}

// newAppKey makes a key: the private one in PEM, PKCS#1 as GitHub does.
func newAppKey() ([]byte, *rsa.PublicKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, appKeyBits)
	if err != nil {
		return nil, nil, fmt.Errorf("making an App's key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), &key.PublicKey, nil
}

// AddAppKey makes another key for an App, beside those that it has.
func (f *Forge) AddAppKey(slug string) ([]byte, error) {
	key, public, err := newAppKey()
	if err != nil {
		return nil, err
	}
	return key, f.withApp(slug, func(a *app) error {
		a.keys = append(a.keys, public)
		return nil
	})
}

// DropOldestAppKey deletes the key that an App has had for longest.
func (f *Forge) DropOldestAppKey(slug string) error {
	return f.withApp(slug, func(a *app) error {
		if len(a.keys) < 2 {
			return errors.New("an App keeps its last key")
		}
		a.keys = a.keys[1:]
		return nil
	})
}

func (f *Forge) withApp(slug string, fn func(*app) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.apps[slug]
	if a == nil {
		return fmt.Errorf("the forge has no App %q: RegisterApp it first", slug)
	}
	return fn(a)
}

// InstallApp installs an App for an owner and some of its repositories, by their own names, or for
// all of them. An owner without an account becomes an organisation.
func (f *Forge) InstallApp(slug, owner string, repos ...string) error {
	return f.withApp(slug, func(a *app) error {
		o := f.ensureOwner(owner)
		if f.findInstallation(a, owner) != nil {
			return fmt.Errorf("the App %s is installed in %s already", slug, owner)
		}
		i := &appInstallation{id: f.nextID(), app: a, owner: o, created: f.now(), permissions: maps.Clone(a.Permissions),
			quotaID: f.nextID()}
		if len(repos) > 0 {
			i.repos = map[string]bool{}
			for _, r := range repos {
				i.repos[strings.ToLower(r)] = true
			}
		}
		a.installations = append(a.installations, i)
		f.emitInstallation(i, "installation", "created", nil)
		return nil
	})
}

func (f *Forge) findInstallation(a *app, owner string) *appInstallation {
	i := slices.IndexFunc(a.installations, func(i *appInstallation) bool { return strings.EqualFold(i.owner.login, owner) })
	if i < 0 {
		return nil
	}
	return a.installations[i]
}

// withInstallation runs fn on an App's installation.
func (f *Forge) withInstallation(slug, owner string, fn func(*appInstallation)) error {
	return f.withApp(slug, func(a *app) error {
		i := f.findInstallation(a, owner)
		if i == nil {
			return fmt.Errorf("the App %s isn't installed in %s", slug, owner)
		}
		fn(i)
		return nil
	})
}

// AppInstallationID is the number of an App's installation.
func (f *Forge) AppInstallationID(slug, owner string) (id int64, err error) {
	err = f.withInstallation(slug, owner, func(i *appInstallation) { id = i.id })
	return id, err
}

// SuspendApp suspends an App's installation, or ends that.
func (f *Forge) SuspendApp(slug, owner string, suspended bool) error {
	return f.withInstallation(slug, owner, func(i *appInstallation) {
		action := "unsuspend"
		i.suspended = time.Time{}
		if suspended {
			action, i.suspended = "suspend", f.now()
		}
		f.emitInstallation(i, "installation", action, nil)
	})
}

// UninstallApp takes an App away from an owner: its tokens are good for nothing.
func (f *Forge) UninstallApp(slug, owner string) error {
	return f.withInstallation(slug, owner, func(i *appInstallation) {
		i.app.installations = slices.DeleteFunc(i.app.installations, func(o *appInstallation) bool { return o == i })
		maps.DeleteFunc(f.installationTokens, func(_ string, t *installationToken) bool { return t.installation == i })
		f.emitInstallation(i, "installation", "deleted", nil)
	})
}

// GiveApp gives an installation that has only some repositories another one, or takes it away.
func (f *Forge) GiveApp(slug, owner, repo string, given bool) error {
	return f.withInstallation(slug, owner, func(i *appInstallation) {
		if i.repos == nil {
			i.repos = map[string]bool{}
			for _, r := range f.repos {
				i.repos[strings.ToLower(r.name)] = r.owner == i.owner
			}
		}
		i.repos[strings.ToLower(repo)] = given
		action := "removed"
		if given {
			action = "added"
		}
		f.emitInstallation(i, "installation_repositories", action,
			map[string]any{"repositories_" + action: []map[string]any{{"name": repo, "full_name": i.owner.login + "/" + repo}}})
	})
}

// SetAppPermissions is what an owner accepts of the permissions that an App asks for.
func (f *Forge) SetAppPermissions(slug, owner string, permissions map[string]string) error {
	return f.withInstallation(slug, owner, func(i *appInstallation) {
		i.permissions = maps.Clone(permissions)
		f.emitInstallation(i, "installation", "new_permissions_accepted", nil)
	})
}

// RevokeAppTokens ends all tokens of an App's installations.
func (f *Forge) RevokeAppTokens(slug string) error {
	return f.withApp(slug, func(a *app) error {
		maps.DeleteFunc(f.installationTokens, func(_ string, t *installationToken) bool { return t.installation.app == a })
		return nil
	})
}

// AppHookURL is where an App's webhook delivers to.
func (f *Forge) AppHookURL(slug string) (url string, err error) {
	err = f.withApp(slug, func(a *app) error {
		url = a.hook.url
		return nil
	})
	return url, err
}

// SetAppHook points an App's webhook at an address, as its owner would on its page.
func (f *Forge) SetAppHook(slug, url, secret string) error {
	return f.withApp(slug, func(a *app) error {
		a.hook.url, a.hook.secret, a.hook.updated = url, secret, f.now()
		return nil
	})
}

// emitInstallation sends an App the changes of one of its installations; an App gets these without
// subscribing.
func (f *Forge) emitInstallation(i *appInstallation, event, action string, more map[string]any) {
	if i.app.hook.url == "" {
		return
	}
	payload := map[string]any{"action": action, "installation": f.wireInstallation(i), "sender": f.wireUser(i.owner)}
	maps.Copy(payload, more)
	h := *i.app.hook
	h.installation = i.id
	f.sender.sendEvent(&h, event, payload)
}

// hooksOf are the webhooks that are sent what happens in a repository: its own, and those of the
// Apps that were given it.
func (f *Forge) hooksOf(r *repository) []*hook {
	all := slices.Clone(r.hooks)
	for _, slug := range sortedKeys(f.apps) {
		a := f.apps[slug]
		if i := a.installationOf(r); i != nil && i.suspended.IsZero() && a.hook.url != "" {
			h := *a.hook
			h.repo, h.installation = r, i.id
			all = append(all, &h)
		}
	}
	return all
}
