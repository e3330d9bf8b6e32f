package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

const (
	// recentPulls are how many of a repository's newest pull requests are read for which checks
	// run, recentDays how old they may be.
	recentPulls = 5
	recentDays  = 60
	// longClosed is for how long a gate may be closed by the clock until that is hardly meant: a
	// month's freeze is usual.
	longClosed = 45 * 24 * time.Hour
)

// recentChecks are the names of the checks that ran on recent pull requests; known false: there
// was none, or it couldn't be read.
type recentChecks struct {
	names []string
	known bool
}

// readRecentChecks reads which checks ran of late, where a gate goes by them.
func (r *repositoryCheck) readRecentChecks(ctx context.Context, pipes []*pipeline.Pipeline) (ran recentChecks) {
	if !slices.ContainsFunc(pipes, requiresChecks) {
		return ran
	}
	pulls, err := r.readRecentPulls(ctx)
	if err != nil {
		r.found.add("checks-unread", r.where, "which checks ran of late can't be read: "+err.Error(), "try again when the forge answers")
		return ran
	}
	for i := range pulls[:min(len(pulls), recentPulls)] {
		checks, err := r.forge.Checks(ctx, r.repo, pulls[i].Head)
		if err != nil {
			r.found.add("checks-unread", r.where, "which checks ran of late can't be read: "+err.Error(),
				"let the token read commit statuses and check runs")
			return recentChecks{}
		}
		ran.known = true
		for _, c := range checks {
			ran.names = append(ran.names, c.Name)
		}
	}
	return ran
}

func requiresChecks(p *pipeline.Pipeline) bool {
	return slices.ContainsFunc(p.Spec.Environments, func(e pipeline.Environment) bool {
		return slices.ContainsFunc(e.Gates, func(g policies.Gate) bool { return g.Checks != nil })
	})
}

// gatesCheck is the check of one pipeline's gates.
type gatesCheck struct {
	*repositoryCheck
	ctx   context.Context
	where string
	tree  fs.FS
	ran   recentChecks
	teams map[string]*teamMembers // what is known of them
	users map[string]bool         // those that were read
}

// teamMembers are who is in a team.
type teamMembers struct {
	logins   []string
	complete bool // there are no more
}

// checkGates checks that each gate of a pipeline can be passed by somebody, some time.
func (r *repositoryCheck) checkGates(ctx context.Context, where string, p *pipeline.Pipeline, tree fs.FS, ran recentChecks) {
	c := &gatesCheck{repositoryCheck: r, ctx: ctx, where: where, tree: tree, ran: ran, teams: map[string]*teamMembers{},
		users: map[string]bool{}}
	for i := range p.Spec.Environments {
		e := &p.Spec.Environments[i]
		if e.IsSource() {
			continue
		}
		gates := slices.Clone(e.Gates)
		for _, f := range r.Config.FloorApprovals(e.Name) {
			gates = append(gates, policies.Gate{Approvals: f})
		}
		for _, f := range r.Config.FreezesOf(e.Name) {
			gates = append(gates, policies.Gate{Freeze: f})
		}
		for j := range gates {
			c.checkGate(e.Name, &gates[j])
		}
	}
	if b := p.Spec.BreakGlass; b != nil {
		c.checkAccounts("breakGlass", b.Teams, b.Users)
	}
}

func (gc *gatesCheck) checkGate(environment string, g *policies.Gate) {
	what := environment + "'s gate " + string(g.Name())
	switch {
	case g.Approvals != nil:
		gc.checkApprovals(what, g.Approvals)
	case g.Freeze != nil, (g.Window != nil || len(g.Windows) > 0) && !g.FollowsSyncWindows():
		gc.checkTimes(what, g)
	case g.Checks != nil && gc.ran.known:
		if missing := g.Checks.Unmatched(gc.ran.names); len(missing) > 0 {
			gc.found.add("check-never-ran", gc.where, fmt.Sprintf("%s waits for %s, which ran on none of the last pull requests", what,
				strings.Join(missing, ", ")), "have it run on the branches below liftlock/ too, or correct its name; of late there were: "+
				wording.JoinFew(compactSorted(gc.ran.names), 10))
		}
	}
}

// checkTimes checks that a gate that goes by the clock opens before long.
func (gc *gatesCheck) checkTimes(what string, g *policies.Gate) {
	r := g.Evaluate(policies.Facts{Now: gc.Now()})
	switch {
	case r.Outcome == policies.Pass:
	case r.Until.IsZero():
		gc.found.add("closed-long", gc.where, fmt.Sprintf("%s stays closed, nobody can say until when: %s", what, r.Reason),
			"correct its times in the pipeline file")
	case r.Until.Sub(gc.Now()) > longClosed:
		gc.found.add("closed-long", gc.where, fmt.Sprintf("%s stays closed until %s: %s", what, r.Until.UTC().Format(time.DateOnly),
			g.Describe()), "see whether that is meant: nothing is merged there before")
	}
}

func compactSorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// checkApprovals checks that there are people enough whose approvals count.
func (gc *gatesCheck) checkApprovals(what string, a *policies.Approvals) {
	from := &a.From
	if from.Codeowners {
		gc.checkCodeowners(what)
	}
	who, complete := gc.checkAccounts(what, from.Teams, from.Users)
	if !complete || from.IsEmpty() || from.Codeowners {
		return
	}
	switch n := len(who); {
	case n < a.Count:
		gc.found.add("approvers-few", gc.where, fmt.Sprintf("%s takes %s, and %s could give one", what, wording.Plural(a.Count, "approval",
			"approvals"), wording.Plural(n, "person", "people")), "name more people or teams, or let fewer approve")
	case n == a.Count:
		gc.found.add("approvers-scarce", gc.where, fmt.Sprintf("%s takes %s, and no more people than that could give one: a release by "+
			"one of them is never approved", what, wording.Plural(n, "approval", "approvals")), "name one more")
	}
}

// checkCodeowners checks that there is a file that names the owners, which is read.
func (gc *gatesCheck) checkCodeowners(what string) {
	if gc.forgeOf.Type == config.GitLab {
		gc.found.add("codeowners-unusable", gc.where, what+" goes by CODEOWNERS, which isn't read on GitLab yet, so it waits for ever",
			"name the owners in users or teams")
		return
	}
	files := forge.CodeownersFiles(gc.forgeOf.Type)
	for _, f := range files {
		if info, err := fs.Stat(gc.tree, f); err == nil && info.Mode().IsRegular() {
			return
		}
	}
	gc.found.add("codeowners-unusable", gc.where, what+" goes by CODEOWNERS, and the branch has none",
		"commit one as "+strings.Join(files, ", or as "))
}

// checkAccounts checks that teams and users exist and may do what they are named for. It gives the
// logins of those whose word would count; complete false: there may be more.
func (gc *gatesCheck) checkAccounts(what string, teams, users []string) (who []string, complete bool) {
	complete = true
	me, err := gc.forge.Me(gc.ctx)
	if err != nil {
		return nil, false // which was found when the rules were read
	}
	add := func(login string) {
		if !strings.EqualFold(login, me.Login) && !slices.Contains(who, strings.ToLower(login)) {
			who = append(who, strings.ToLower(login))
		}
	}
	for _, u := range users {
		if strings.EqualFold(u, me.Login) {
			gc.found.add("approver-own", gc.where, fmt.Sprintf("%s names %s, which is Liftlock's own account and never counts", what, u),
				"name somebody else, or give Liftlock an account of its own")
		} else if gc.checkUser(what, u) {
			add(u)
		}
	}
	for _, t := range teams {
		m := gc.readTeam(what, t)
		if m == nil {
			complete = false
			continue
		}
		complete = complete && m.complete
		for _, login := range m.logins {
			add(login)
		}
	}
	return who, complete
}

// checkUser says whether a person's approval or command would count.
func (gc *gatesCheck) checkUser(what, login string) bool {
	seen, known := gc.users[login]
	if known {
		return seen
	}
	may, err := gc.forge.Permission(gc.ctx, gc.repo, login)
	switch {
	case err != nil:
		gc.found.add("people-unread", gc.where, fmt.Sprintf("what %s may do can't be read: %v", login, err),
			"let Liftlock's account read who may do what in the repository")
	case may == forge.PermissionNone:
		gc.found.add("approver-unknown", gc.where, fmt.Sprintf("%s names %s, who isn't there or has no access to the repository", what,
			login), "correct the login, or give the person the role that may write")
	case may < forge.PermissionWrite:
		gc.found.add("approver-reader", gc.where, fmt.Sprintf("%s names %s, who may only read: such a word doesn't count", what, login),
			"give the person the role that may write")
	}
	gc.users[login] = err != nil || may >= forge.PermissionWrite
	return gc.users[login]
}

// readTeam reads who is in a team; nil: it can't be.
func (gc *gatesCheck) readTeam(what, name string) *teamMembers {
	if m, known := gc.teams[name]; known {
		return m
	}
	gc.teams[name] = nil
	organisation, slug, err := policies.ParseTeam(name)
	if err != nil {
		return nil // the pipeline file is refused for it
	}
	logins, complete, err := gc.forge.InspectTeam(gc.ctx, forge.Team{Organisation: organisation, Name: slug})
	switch {
	case errors.Is(err, forge.ErrNotFound):
		gc.found.add("team-unseen", gc.where, fmt.Sprintf("%s names the team %s, which isn't there, or Liftlock may not see it", what,
			name), "correct the name, or let Liftlock read the organisation's members (token: read:org; App: members: read; GitLab and "+
			"Gitea: make it a member)")
		return nil
	case err != nil:
		gc.found.add("people-unread", gc.where, fmt.Sprintf("who is in %s can't be read: %v", name, err),
			"let Liftlock's account read who is in the team")
		return nil
	case len(logins) == 0:
		gc.found.add("team-empty", gc.where, fmt.Sprintf("%s names the team %s, in which nobody is", what, name),
			"add people to the team, or name another")
	}
	gc.teams[name] = &teamMembers{logins, complete}
	return gc.teams[name]
}
