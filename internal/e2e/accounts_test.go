//go:build e2e

package e2e

import (
	"crypto/rand"
	"fmt"

	"code.gitea.io/sdk/gitea"
)

// The accounts that take part. The bot is Liftlock's own.
const (
	bot      = "liftlock"
	dev      = "linus" // releases into dev; writes to every repository
	ada      = "ada"   // reviews
	grace    = "grace" // reviews
	stranger = "mallory"
)

// account is an account with its client and what Git needs to push as it.
type account struct {
	login, email, token string
	api                 *gitea.Client
}

// createAccounts makes sure of the accounts, gives each a new token, and makes this
// run's organisation.
func (w *testCluster) createAccounts() error {
	admin, err := gitea.NewClient(w.giteaURL, gitea.SetToken(w.adminToken))
	if err != nil {
		return err
	}
	w.accounts = map[string]*account{}
	for _, login := range []string{bot, dev, ada, grace, stranger} {
		if w.accounts[login], err = w.createAccount(admin, login); err != nil {
			return fmt.Errorf("account %s: %w", login, err)
		}
	}
	w.org = "fleet-" + runID
	if _, _, err = admin.CreateOrg(gitea.CreateOrgOption{Name: w.org, Visibility: gitea.VisibleTypePublic}); err != nil {
		return fmt.Errorf("organisation %s: %w", w.org, err)
	}
	w.accounts[admins] = &account{login: admins, token: w.adminToken, api: admin}
	return nil
}

// admins is the lab's administrator, who owns the organisation.
const admins = "lab"

func (w *testCluster) createAccount(admin *gitea.Client, login string) (*account, error) {
	p := &account{login: login, email: login + "@example.com"}
	password, no := rand.Text(), false
	if _, _, err := admin.GetUserInfo(login); err != nil {
		_, _, err = admin.AdminCreateUser(gitea.CreateUserOption{Username: login, Email: p.email, Password: password, MustChangePassword: &no})
		if err != nil {
			return nil, err
		}
	} else if _, err := admin.AdminEditUser(login, gitea.EditUserOption{LoginName: login, Password: password, MustChangePassword: &no}); err != nil {
		return nil, err
	}
	basic, err := gitea.NewClient(w.giteaURL, gitea.SetBasicAuth(login, password))
	if err != nil {
		return nil, err
	}
	token, _, err := basic.CreateAccessToken(gitea.CreateAccessTokenOption{Name: "e2e-" + runID, Scopes: []gitea.AccessTokenScope{gitea.AccessTokenScopeAll}})
	if err != nil {
		return nil, err
	}
	p.token = token.Token
	p.api, err = gitea.NewClient(w.giteaURL, gitea.SetToken(p.token))
	return p, err
}

// createRepository makes a story's empty repository with everybody's permissions in it.
func (w *testCluster) createRepository(name string) error {
	admin := w.accounts[admins].api
	if _, _, err := admin.CreateOrgRepo(w.org, gitea.CreateRepoOption{Name: name, DefaultBranch: "main"}); err != nil {
		return fmt.Errorf("create the repository %s/%s: %w", w.org, name, err)
	}
	for login, mode := range map[string]gitea.AccessMode{bot: gitea.AccessModeAdmin, dev: gitea.AccessModeWrite, ada: gitea.AccessModeWrite, grace: gitea.AccessModeWrite} {
		if _, err := admin.AddCollaborator(w.org, name, login, gitea.AddCollaboratorOption{Permission: &mode}); err != nil {
			return fmt.Errorf("let %s into %s/%s: %w", login, w.org, name, err)
		}
	}
	return nil
}
