package people

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/store/record"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/policies"
)

// TeamGatherer says who is in which team on the forge.
type TeamGatherer struct {
	store   record.ReadWriter
	now     func() time.Time
	members *cache.Cache[string, membership] // by forge, team and login
	checked *cache.Cache[string, time.Time]  // when a team was last seen to be the known one, by forge and team
}

// NewTeamGatherer keeps the teams' numbers in the store.
func NewTeamGatherer(store record.ReadWriter, now func() time.Time, group *cache.Group) *TeamGatherer {
	return &TeamGatherer{store: store, now: now, members: branch.NewCache[string, membership](group, "team_members", 10_000),
		checked: branch.NewCache[string, time.Time](group, "team_numbers", 10_000)}
}

type membership struct {
	is bool
	at time.Time
}

// MembershipAge is how long it may be remembered whether somebody is in a team. Before a
// merge, and of commands, it is always asked anew.
const MembershipAge = 5 * time.Minute

// teamNumbers are by forge, organisation and team.
var teamNumbers = record.Declare[record.Named, int64](record.Declaration{
	Name: "team-number", Owner: "controller/facts", Lifetime: record.Lasting,
	Doc: "The number that the team had on the forge when its name was first read. Without it, the team that has the name now is believed.",
})

// errTeamReplaced: another team has the name of one that a pipeline goes by.
var errTeamReplaced = errors.New("another team has this name by now")

// IsInTeam says whether an account is in a team, named organisation/team; fresh asks the forge even
// where the answer is remembered. It is an error where the name is no longer that of the team that
// had it when it was first read: anybody may have made the one that has it.
func (tg *TeamGatherer) IsInTeam(ctx context.Context, r *branch.Repository, team, login string, fresh bool) (bool, error) {
	organisation, name, err := policies.ParseTeam(team)
	if err != nil {
		return false, err
	}
	t := forge.Team{Organisation: organisation, Name: name}
	place := strings.ToLower(r.ForgeRef + "|" + team)
	key := place + "|" + strings.ToLower(login)
	at, known := tg.checked.Get(place)
	known = known && !fresh && tg.now().Sub(at) < MembershipAge
	if m, ok := tg.members.Get(key); ok && known && tg.now().Sub(m.at) < MembershipAge {
		return m.is, nil
	}
	is, err := r.Forge.IsTeamMember(ctx, t, login)
	if err == nil && !known || errors.Is(err, forge.ErrNotFound) {
		// After it, so that what was just read was read of the team that is known.
		err = tg.checkNumber(ctx, r, t, place)
	}
	if err != nil {
		return false, err // it says what couldn't be read
	}
	tg.members.Put(key, membership{is, tg.now()})
	return is, nil
}

// checkNumber holds a team's number on the forge against the one that it had when its name was
// first read, which the store has. Where it was lost, the one that has the name now is believed.
// Where it isn't the same, or can't be read, nothing is remembered of the team any more: the next who
// looks doesn't find it as it was.
func (tg *TeamGatherer) checkNumber(ctx context.Context, r *branch.Repository, t forge.Team, place string) error {
	tg.checked.Remove(place)
	was, known, err := teamNumbers.Get(ctx, tg.store, record.Named(place))
	if err != nil {
		return err
	}
	number, err := r.Forge.TeamNumber(ctx, t)
	switch {
	case known && errors.Is(err, forge.ErrNotFound):
		return fmt.Errorf("%w; it was there, with the number %d: if it was renamed, write the name that it has now", err, was)
	case err != nil:
		return err
	case number <= 0:
		return fmt.Errorf("read the number of the team %s: the forge's answer has none", t)
	case !known:
		if err := teamNumbers.Put(ctx, tg.store, record.Named(place), number); err != nil {
			return err
		}
	case was != number:
		return fmt.Errorf("%w: the number of %s was %d, and is %d; write the name that the former one has now, or, if the new one is "+
			"meant, give it another name and write that", errTeamReplaced, t, was, number)
	}
	tg.checked.Put(place, tg.now())
	return nil
}
