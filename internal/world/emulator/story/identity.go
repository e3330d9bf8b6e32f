package story

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// Identity is the account that the server works as.
type Identity struct {
	Login  string
	Auth   string // the server's file: forges[].auth
	Manage bool   // the server makes a webhook in each repository; as an App it has one for all
	app    bool
}

// AppSlug is the App's.
const AppSlug = "liftlock"

const appKeyFile = "app.pem"

// appPermissions are those that an App of Liftlock's asks for.
var appPermissions = map[string]string{
	"contents": "write", "metadata": "read", "pull_requests": "write", "issues": "read", "statuses": "write", "checks": "read",
	"deployments": "write", "members": "read",
}

// appEvents are the events that such an App is subscribed to.
var appEvents = []string{"push", "pull_request", "pull_request_review", "issue_comment", "status", "check_suite", "repository"}

// NewIdentity makes the server's account on a forge: a person's with a token or, on
// emulator.GitHubApp, an App's that is installed at the repositories' owner. The server looks
// after its webhook.
func NewIdentity(f *emulator.Forge, face emulator.Face, dir, owner string) (Identity, error) {
	if face == emulator.GitHubApp {
		return NewAppIdentity(f, dir, owner, true)
	}
	return Identity{Login: Bot, Auth: "{token: " + botToken + "}", Manage: true}, f.AddUser(Bot, botToken, emulator.UserOptions{})
}

// NewAppIdentity registers the App AppSlug and installs it at an owner. Its key lies in the
// folder, which is the server's file's. manageHook: the server looks after the App's webhook.
func NewAppIdentity(f *emulator.Forge, dir, owner string, manageHook bool) (Identity, error) {
	made, err := f.RegisterApp(emulator.App{Slug: AppSlug, Permissions: appPermissions, Events: appEvents})
	if err != nil {
		return Identity{}, err
	}
	if err := f.InstallApp(AppSlug, owner); err != nil {
		return Identity{}, err
	}
	return Identity{Login: AppSlug + "[bot]", Auth: fmt.Sprintf("{app: {id: %d, privateKeyFile: %s, manageWebhook: %t}}", made.ID,
			appKeyFile, manageHook), app: true},
		os.WriteFile(filepath.Join(dir, appKeyFile), made.PrivateKey, 0o600)
}

// CountHooks is how many webhooks tell the server of what happens in a repository.
func (i Identity) CountHooks(f *emulator.Forge, repo string) (int, error) {
	hooks, err := f.Hooks(repo)
	if err != nil || !i.app {
		return len(hooks), err
	}
	url, err := f.AppHookURL(AppSlug)
	if url != "" {
		return len(hooks) + 1, err
	}
	return len(hooks), err
}
