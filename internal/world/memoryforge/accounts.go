package memoryforge

import (
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
)

// webFlow commits what is done in the forge's pages, as GitHub's account of that
// name does: nobody.
var webFlow = git.Ident{Name: "GitHub", Email: "noreply@github.com"}

// account is a user or a bot.
type account struct {
	user  forge.User
	email string
}

func (a *account) ident() git.Ident { return git.Ident{Name: a.user.Login, Email: a.email} }

// AddUser adds an account, or says of one that is there what it is. Its address is
// that of Ident.
func (f *Forge) AddUser(login string, id int64, bot bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.findAccount(login)
	if a == nil {
		a = &account{email: strings.ToLower(login) + "@users.example"}
		f.accounts[strings.ToLower(login)] = a
		f.byEmail[a.email] = a
	}
	a.user = forge.User{ID: id, Login: login, Bot: bot}
}

// findAccount finds an account by its login, in any case; nil when there is none.
func (f *Forge) findAccount(login string) *account { return f.accounts[strings.ToLower(login)] }

// Ident is how an account's commits are written for the forge to connect them with
// it; the zero one where there is no account.
func (f *Forge) Ident(login string) git.Ident {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.findAccount(login); a != nil {
		return a.ident()
	}
	return git.Ident{}
}

// findContributor connects an address with an account, as GitHub does: one of the
// account's own, or one that the forge gave it.
func (f *Forge) findContributor(email string) forge.User {
	if a := f.byEmail[strings.ToLower(email)]; a != nil {
		return a.user
	}
	u, ok := forge.ParseNoReply(email, host)
	if !ok {
		return forge.User{}
	}
	for _, a := range f.accounts {
		if u.ID == a.user.ID || u.ID == 0 && strings.EqualFold(u.Login, a.user.Login) {
			return a.user
		}
	}
	return forge.User{}
}

// team is a team of an organisation.
type team struct {
	number  int64
	members map[string]bool // logins in lower case
}

// contains says whether an account is in it; nobody is in a team that isn't there.
func (t *team) contains(login string) bool { return t != nil && t.members[strings.ToLower(login)] }

// SetTeam says who is in a team, and so makes it.
func (f *Forge) SetTeam(t forge.Team, members ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	in := map[string]bool{}
	for _, login := range members {
		in[strings.ToLower(login)] = true
	}
	name := strings.ToLower(t.String())
	if f.teams[name] == nil {
		f.lastTeam++
		f.teams[name] = &team{number: f.lastTeam}
	}
	f.teams[name].members = in
}

// RenameTeam gives a team another name, by which alone it is found from then on.
func (f *Forge) RenameTeam(t, to forge.Team) {
	f.mu.Lock()
	defer f.mu.Unlock()
	former := strings.ToLower(t.String())
	f.teams[strings.ToLower(to.String())] = f.teams[former]
	delete(f.teams, former)
}

// SetPermission says what an account may do in a repository.
func (f *Forge) SetPermission(r forge.Repo, login string, p forge.Permission) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	repo, err := f.findRepository("give "+login+" a permission", r)
	if err != nil {
		return err
	}
	repo.access[strings.ToLower(login)] = p
	return nil
}

func (r *repository) permissionOf(a *account) forge.Permission {
	if strings.EqualFold(a.user.Login, r.name.Owner) {
		return forge.PermissionAdmin
	}
	return r.access[strings.ToLower(a.user.Login)]
}

// findRepository finds a repository for who makes the world, not for a caller.
func (f *Forge) findRepository(op string, r forge.Repo) (*repository, error) {
	if repo := f.repos[strings.ToLower(r.String())]; repo != nil {
		return repo, nil
	}
	return nil, &forge.Error{Op: fmt.Sprintf("%s in %s", op, r), Kind: forge.ErrNotFound, Message: "no such repository was added"}
}
