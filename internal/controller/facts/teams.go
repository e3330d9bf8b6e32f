package facts

import (
	"context"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/policies"
)

// teamGatherer says who is in which team on the forge.
type teamGatherer struct {
	now     func() time.Time
	members *cache.Cache[string, membership] // by forge, team and login
}

func newTeamGatherer(now func() time.Time, group *cache.Group) *teamGatherer {
	return &teamGatherer{now: now, members: newCache[string, membership](group, "team_members", 10_000)}
}

type membership struct {
	is bool
	at time.Time
}

// membershipAge is how long it may be remembered whether somebody is in a team. Before a
// merge, and of commands, it is always asked anew.
const membershipAge = 5 * time.Minute

// IsInTeam says whether an account is in a team, named organisation/team; fresh asks the
// forge whatever is remembered.
func (o *teamGatherer) IsInTeam(ctx context.Context, r *Repository, team, login string, fresh bool) (bool, error) {
	organisation, name, err := policies.ParseTeam(team)
	if err != nil {
		return false, err
	}
	key := strings.ToLower(r.ForgeRef + "|" + team + "|" + login)
	if m, ok := o.members.Get(key); ok && !fresh && o.now().Sub(m.at) < membershipAge {
		return m.is, nil
	}
	is, err := r.Forge.IsTeamMember(ctx, forge.Team{Organisation: organisation, Name: name}, login)
	if err != nil {
		return false, err // it says what couldn't be read
	}
	o.members.Put(key, membership{is, o.now()})
	return is, nil
}
