package emulator

import (
	"fmt"
	"strings"
)

// team is a team of an organisation.
type team struct {
	id                 int64
	organisation, slug string
	parent             *team
	members            map[string]bool // logins in lower case
	invited            map[string]bool // likewise, who haven't accepted yet
}

// contains says whether an account is in the team or in one below it, as GitHub answers.
func (t *team) contains(login string, all map[string]*team) bool {
	if t.members[strings.ToLower(login)] {
		return true
	}
	for _, below := range all {
		if below.parent == t && below.contains(login, all) {
			return true
		}
	}
	return false
}

// SetTeam makes a team, named organisation/slug, of accounts that are there, or says anew
// who is in it. Below another one where parent names it; empty: below none.
func (f *Forge) SetTeam(name, parent string, members ...string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	organisation, slug, ok := strings.Cut(name, "/")
	if !ok || organisation == "" || slug == "" {
		return fmt.Errorf("making the team %s: write organisation/slug", name)
	}
	t := f.teams[strings.ToLower(name)]
	if t == nil {
		t = &team{id: f.nextID(), organisation: organisation, slug: slug}
		f.teams[strings.ToLower(name)] = t
	}
	t.parent, t.members, t.invited = nil, map[string]bool{}, nil
	if parent != "" {
		above := f.teams[strings.ToLower(parent)]
		for at := above; at != nil; at = at.parent {
			if at == t {
				return fmt.Errorf("making the team %s: it is above %s already", name, parent)
			}
		}
		if above == nil {
			return fmt.Errorf("making the team %s: there is no team %s to be above it", name, parent)
		}
		t.parent = above
	}
	for _, login := range members {
		a, err := f.findAccount(login)
		if err != nil {
			return fmt.Errorf("making the team %s: %w", name, err)
		}
		t.members[strings.ToLower(a.login)] = true
	}
	return nil
}

// InviteToTeam invites an account to a team, which it isn't in until SetTeam says so.
func (f *Forge) InviteToTeam(name, login string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, err := f.findTeamNamed(name)
	if err != nil {
		return fmt.Errorf("inviting %s: %w", login, err)
	}
	a, err := f.findAccount(login)
	if err != nil {
		return fmt.Errorf("inviting to the team %s: %w", name, err)
	}
	t.invited = map[string]bool{strings.ToLower(a.login): true}
	return nil
}

// RenameTeam gives a team another name in its organisation: by the former one it isn't found any
// more.
func (f *Forge) RenameTeam(name, slug string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, err := f.findTeamNamed(name)
	if err != nil {
		return fmt.Errorf("renaming a team: %w", err)
	}
	delete(f.teams, strings.ToLower(name))
	t.slug = slug
	f.teams[strings.ToLower(t.organisation+"/"+slug)] = t
	return nil
}

// findTeamNamed finds a team by organisation/slug. Callers hold mu.
func (f *Forge) findTeamNamed(name string) (*team, error) {
	t := f.teams[strings.ToLower(name)]
	if t == nil {
		return nil, fmt.Errorf("there is no team %s", name)
	}
	return t, nil
}

// findTeam finds the team of the path.
func (c *call) findTeam() *team {
	if c.token != nil && !strings.EqualFold(c.token.installation.owner.login, c.r.PathValue("org")) {
		return nil // the App is nobody there
	}
	return c.teams[strings.ToLower(c.r.PathValue("org")+"/"+c.r.PathValue("slug"))]
}

func getTeam(c *call) (any, error) {
	t := c.findTeam()
	if t == nil {
		return nil, notFound()
	}
	return wireTeamOf(t), nil
}

func getTeamMembership(c *call) (any, error) {
	t := c.findTeam()
	a, err := c.findAccount(c.r.PathValue("login"))
	switch {
	case t == nil || err != nil:
		return nil, notFound()
	case t.contains(a.login, c.teams):
		return map[string]any{"state": "active", "role": "member"}, nil
	case t.invited[strings.ToLower(a.login)]:
		return map[string]any{"state": "pending", "role": "member"}, nil
	}
	return nil, notFound()
}

// listTeamMembers lists who is in a team or in one below it.
func listTeamMembers(c *call) (any, error) {
	t := c.findTeam()
	if t == nil {
		return nil, notFound()
	}
	var members []*account
	for _, login := range sortedKeys(c.users) {
		if t.contains(login, c.teams) {
			members = append(members, c.users[login])
		}
	}
	return paginateAs(c, members, c.wireUser), nil
}
