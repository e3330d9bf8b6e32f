package people

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/store/record"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

const (
	// maxLandings bounds the pushes and pull requests that one release is made of.
	maxLandings = 20
	// unknownAge is how long it is remembered that an author has no account, to whom the address
	// can be added, or why the forge doesn't tell. Looking for that again may take many calls. All
	// else about a commit never changes.
	unknownAge = time.Minute
	// maxUnlinkedNamed is how many of them are named.
	maxUnlinkedNamed = 3
)

// AuthorGatherer says who made releases.
type AuthorGatherer struct {
	releases       *branch.ReleaseReader
	git            *branch.GitGatherer
	states         record.Reader
	now            func() time.Time
	ignoreUnlinked bool
	Images         ImageSource // nil: images aren't looked into

	landings *cache.Cache[string, Makers]         // by repository, branch and commit
	made     *cache.Cache[string, ReleaseCommits] // by repository, environments and releases
	moved    *cache.Cache[string, []movedRef]     // by place, commits and release
	heads    *cache.Cache[string, string]         // the commits that brought releases, by overlay and the branch's commit
	// applications are the commits of applications' own repositories, by forge, repository
	// and revisions.
	applications *cache.Cache[string, rememberedCommits]
}

// NewAuthorGatherer makes one that looks into no images.
func NewAuthorGatherer(history *branch.GitGatherer, states record.Reader,
	now func() time.Time, ignoreUnlinked bool, group *cache.Group) *AuthorGatherer {
	return &AuthorGatherer{releases: history.Releases, git: history, states: states, now: now, ignoreUnlinked: ignoreUnlinked,
		landings: branch.NewCache[string, Makers](group, "commit_authors", 10_000), made: newCommitsCache(group, "release_commits",
			func(m ReleaseCommits) []ReleaseCommit { return m.Commits }),
		moved:        newMovedRefs(group),
		heads:        branch.NewCache[string, string](group, "release_heads", 10_000),
		applications: newCommitsCache(group, "application_commits", func(m rememberedCommits) []ReleaseCommit { return m.commits })}
}

// Makers are those who made what came to a branch with a commit.
type Makers struct {
	Accounts []policies.Account
	Unlinked []string // those who belong to no account, and what they did, for people
	err      error    // why it can't be told, where trying again at once can't help
	at       time.Time
}

// join adds others.
func (m *Makers) join(others *Makers) {
	for _, a := range others.Accounts {
		m.addUser(forge.User{ID: a.ID, Login: a.Login}, "")
	}
	for _, u := range others.Unlinked {
		m.addUser(forge.User{}, u)
	}
}

// mayChange says that asking again may tell more.
func (m *Makers) mayChange() bool { return m.err != nil || len(m.Unlinked) > 0 }

// addUser adds an account, or, where there is none, who it should have been.
func (m *Makers) addUser(u forge.User, missing string) {
	a := policies.Account{ID: u.ID, Login: u.Login}
	switch {
	case u == (forge.User{}):
		if !slices.Contains(m.Unlinked, missing) {
			m.Unlinked = append(m.Unlinked, missing)
		}
	case !slices.Contains(m.Accounts, a):
		m.Accounts = append(m.Accounts, a)
	}
}

// addCommits adds who made commits; us is the address of our own.
func (m *Makers) addCommits(r *branch.Repository, all []forge.CommitAuthors) {
	for _, c := range all {
		for _, p := range c.Contributors {
			m.addContributor(r, c.Commit, p)
		}
		if c.Pusher != (forge.User{}) {
			m.addUser(c.Pusher, "")
		}
	}
}

func (m *Makers) addContributor(r *branch.Repository, commit string, p forge.Contributor) {
	if p.User == (forge.User{}) && strings.EqualFold(p.Email, r.Mirror.Committer().Email) {
		p.User = forge.User{ID: r.BotID, Login: r.BotLogin} // Liftlock's own commits
	}
	m.addUser(p.User, fmt.Sprintf("%s <%s>, whom the commit %s names, belongs to no account", wording.ClipLine(p.Name, 60),
		wording.ClipLine(p.Email, 100), wording.Short(commit)))
}

// AuthorFacts fills in the authors of a pull request's changes and the person who gave the command
// to promote it. It does so where a gate of the environment asks, or a skip, which takes a second
// person.
func (ag *AuthorGatherer) AuthorFacts(ctx context.Context, c *branch.ComponentBasis, env *promotion.Env, p *promotion.Pull) error {
	release, f := p.Release, &p.Review
	if !slices.ContainsFunc(env.Gates, func(g policies.Gate) bool { return g.RequiresAuthors() }) &&
		!slices.ContainsFunc(p.Skips, func(s promotion.Skip) bool { _, known := s.Giver(); return known }) {
		return nil
	}
	authors, err := ag.ReleaseAuthors(ctx, c, env.Name, release)
	if failed := branch.RetryableError(ctx, err); failed != nil {
		return failed
	}
	if err != nil {
		f.AuthorsErr = err.Error()
	}
	requesters, err := ReadRequesters(ctx, ag.states, c.Snapshot.Repo.ID, p.Number)
	if err != nil {
		return err
	}
	recorded, err := RecordedRequesters(ctx, c, env, p.Head)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		f.AuthorsErr = cmp.Or(f.AuthorsErr, "who asked for it can't be told: "+err.Error())
	default:
		requesters = append(requesters, recorded...)
	}
	// The store has them too, as long as it isn't lost.
	requesters = append(requesters, c.Facts.Requesters(env.Name, release)...)
	for _, a := range requesters {
		if !slices.Contains(authors, a) {
			authors = append(authors, a)
		}
	}
	f.Authors = authors
	return nil
}

// ReleaseAuthors are the accounts that made a release, as it comes to an environment: those that
// opened, merged, pushed, wrote and committed the changes that brought its values to the source
// environments upstream. The error says why not all of them are known; those who are, are given
// with it.
func (ag *AuthorGatherer) ReleaseAuthors(ctx context.Context, c *branch.ComponentBasis, env, release string) ([]policies.Account, error) {
	var all Makers
	known := false
	sources := findUpstreamSources(c.Pipeline, env)
	for _, source := range sources {
		commits, err := ag.findBringingCommits(ctx, c, source, env, release)
		if err != nil {
			return nil, fmt.Errorf("who brought the release to %s can't be told: %w", source, err)
		}
		branch := c.Snapshot.BranchFor(c.Pipeline.Pipeline, source).Branch
		for _, commit := range commits {
			known = true
			m, err := ag.landingMakers(ctx, c.Snapshot.Repo, branch, commit)
			if err != nil {
				return nil, fmt.Errorf("who made %s can't be told: %w", wording.Short(commit), err)
			}
			all.join(&m)
			isOwn := slices.ContainsFunc(m.Accounts, func(a policies.Account) bool { return c.Snapshot.Repo.IsOurs(a.Login, a.ID) })
			if m, err = ag.discoveredMakers(ctx, c, source, commit, isOwn); err != nil {
				return nil, err
			}
			all.join(&m)
		}
	}
	if !known {
		return nil, fmt.Errorf("no history tells which commit brought the release to %s", strings.Join(sources, " or "))
	}
	slices.SortFunc(all.Accounts, policies.Account.Compare)
	return all.Accounts, ag.explainUnlinked(all.Unlinked)
}

// explainUnlinked says which of a release's authors have no account, and what to do. It is nil
// where all have one, or where the server's file says to ignore them.
func (ag *AuthorGatherer) explainUnlinked(unlinked []string) error {
	if len(unlinked) == 0 || ag.ignoreUnlinked {
		return nil
	}
	named := strings.Join(unlinked[:min(len(unlinked), maxUnlinkedNamed)], "; ")
	if more := len(unlinked) - maxUnlinkedNamed; more > 0 {
		named += fmt.Sprintf("; and %d more", more)
	}
	return errors.New(named + ". Adding the address to an account helps, or authors: {ignoreUnlinked: true} in the server's file")
}

// landingMakers are those who made what came to a branch with a commit.
func (ag *AuthorGatherer) landingMakers(ctx context.Context, r *branch.Repository, branchName, commit string) (Makers, error) {
	key := strings.Join([]string{r.ID, branchName, commit}, "|")
	if m, ok := ag.landings.Get(key); ok && (!m.mayChange() || ag.now().Sub(m.at) < unknownAge) {
		return m, m.err
	}
	m, err := ReadMakers(ctx, r, branchName, commit)
	if failed := branch.RetryableError(ctx, err); failed != nil {
		return Makers{}, failed
	}
	m.err, m.at = err, ag.now()
	ag.landings.Put(key, m)
	return m, err
}

// ReadMakers asks the forge who made what came to a branch with a commit: by a pull
// request, which who merged it pushed, or else by a push.
func ReadMakers(ctx context.Context, r *branch.Repository, branch, commit string) (Makers, error) {
	var m Makers
	pulls, err := r.Forge.MergedPullRequests(ctx, r.Name, commit)
	if err != nil {
		return m, err
	}
	landed := commit
	if findLandedPull(pulls, branch, landed) == nil {
		push, err := findPush(ctx, r, branch, commit)
		if err != nil {
			return m, err
		}
		m.addUser(push.By, fmt.Sprintf("whoever pushed %s to %s has no account any more", wording.Short(push.After), branch))
		if landed = push.After; landed != commit && findLandedPull(pulls, branch, landed) == nil {
			// In the middle of what a pull request brought commit by commit.
			if pulls, err = r.Forge.MergedPullRequests(ctx, r.Name, landed); err != nil {
				return m, err
			}
		}
		if findLandedPull(pulls, branch, landed) == nil {
			err = m.addPushed(ctx, r, push, commit, pulls)
			return m, err
		}
	}
	err = m.addPull(ctx, r, findLandedPull(pulls, branch, landed))
	return m, err
}

// findLandedPull finds the pull request that landed on a branch as a commit.
func findLandedPull(pulls []forge.PullRequest, branch, commit string) *forge.PullRequest {
	i := slices.IndexFunc(pulls, func(p forge.PullRequest) bool { return p.Base == branch && p.MergeCommit == commit })
	if i < 0 {
		return nil
	}
	return &pulls[i]
}

// addPushed adds who made the commits of a push, and, where one of them is what a pull
// request into another branch landed as, who made that.
func (m *Makers) addPushed(ctx context.Context, r *branch.Repository, push *forge.Push, commit string, pulls []forge.PullRequest) error {
	if push.Merge {
		return fmt.Errorf("%s was merged, and the forge doesn't tell by which pull request", wording.Short(push.After))
	}
	head := push.After
	if push.Before == "" { // a new branch: what else it began with is others'
		head = commit
	}
	all, err := r.Forge.CommitAuthors(ctx, r.Name, push.Before, head)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(c forge.CommitAuthors) bool { return c.Commit == commit }) {
		return fmt.Errorf("the forge doesn't list it among the commits of the push that brought it, %s", wording.Short(push.After))
	}
	m.addCommits(r, all)
	for i := range pulls {
		if pulls[i].MergeCommit == commit {
			if err := m.addPull(ctx, r, &pulls[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// addPull adds who made a merged pull request: who opened and who merged it, and of all its commits
// whom they name and who pushed them. The landed commit is the merger's, whatever it says, but may
// name more co-authors.
func (m *Makers) addPull(ctx context.Context, r *branch.Repository, pr *forge.PullRequest) error {
	m.addUser(forge.User{ID: pr.AuthorID, Login: pr.Author}, fmt.Sprintf("who opened #%d has no account any more", pr.Number))
	m.addUser(forge.User{ID: pr.MergedByID, Login: pr.MergedBy}, fmt.Sprintf("who merged #%d has no account any more", pr.Number))
	all, err := r.Forge.PullRequestAuthors(ctx, r.Name, pr)
	if err != nil {
		return err
	}
	m.addCommits(r, all)
	if err := requireListed(ctx, r, pr, all); err != nil {
		return err
	}
	for _, landed := range []string{pr.MergeCommit, pr.SquashCommit} {
		if landed == "" {
			continue
		}
		if err := m.addCoAuthors(ctx, r, landed, all); err != nil {
			return err
		}
	}
	return nil
}

// requireListed holds a pull request's list of commits against the commits that a merge of two
// lines brought, as far as Git knows: those, or the one that the forge made of them.
func requireListed(ctx context.Context, r *branch.Repository, pr *forge.PullRequest, all []forge.CommitAuthors) error {
	listed := map[string]bool{}
	for _, c := range all {
		listed[c.Commit] = true
	}
	if len(all) == 0 {
		return fmt.Errorf("the forge lists no commits of #%d", pr.Number)
	}
	info, err := r.Mirror.Commit(ctx, pr.MergeCommit)
	if err != nil {
		return err
	}
	if len(info.Parents) < 2 || listed[pr.MergeCommit] {
		return nil
	}
	brought, err := r.Mirror.Log(ctx, git.LogQuery{From: info.Parents[1], Until: info.Parents[0]})
	if err != nil {
		return err
	}
	for _, c := range brought {
		if !listed[c.SHA] && c.SHA != pr.SquashCommit {
			return fmt.Errorf("#%d brought %s, which the forge doesn't list among its commits", pr.Number, wording.Short(c.SHA))
		}
	}
	return nil
}

// addCoAuthors adds those whom the message of what landed names as co-authors, beyond
// those of its commits.
func (m *Makers) addCoAuthors(ctx context.Context, r *branch.Repository, commit string, all []forge.CommitAuthors) error {
	info, err := r.Mirror.Commit(ctx, commit)
	if err != nil {
		return err
	}
	contributors, tooMany := forge.CoAuthors(info.Message)
	if tooMany {
		return fmt.Errorf("the commit %s names too many co-authors", wording.Short(commit))
	}
	named := map[string]bool{}
	for _, p := range contributors {
		named[strings.ToLower(p.Email)] = true
	}
	for _, c := range all {
		for _, p := range c.Contributors {
			delete(named, strings.ToLower(p.Email))
		}
	}
	if len(named) == 0 {
		return nil
	}
	landed, err := r.Forge.CommitAuthors(ctx, r.Name, "", commit)
	if err != nil {
		return err
	}
	for _, c := range landed {
		for _, p := range c.Contributors {
			if named[strings.ToLower(p.Email)] {
				m.addContributor(r, commit, p)
			}
		}
	}
	return nil
}

// findPush finds the move by which a commit came to a branch.
func findPush(ctx context.Context, r *branch.Repository, branch, commit string) (*forge.Push, error) {
	var found *forge.Push
	var failed error
	err := r.Forge.Pushes(ctx, r.Name, branch, func(p forge.Push) bool {
		var brought bool
		if brought, failed = hasBrought(ctx, r, p, commit); brought {
			found = &p
		}
		return brought || failed != nil
	})
	switch {
	case failed != nil:
		return nil, failed
	case err != nil && !forge.IsRetryable(err):
		return nil, fmt.Errorf("no merged pull request brought it to %s, and who pushed it can't be told: %w", branch, err)
	case err != nil:
		return nil, err
	case found == nil:
		return nil, fmt.Errorf("no merged pull request brought it to %s, and the forge doesn't tell who pushed it", branch)
	}
	return found, nil
}

// hasBrought says whether a move brought a commit. One whose commits aren't known any
// more didn't, as far as can be told.
func hasBrought(ctx context.Context, r *branch.Repository, p forge.Push, commit string) (bool, error) {
	for _, sha := range []string{p.After, p.Before} {
		if sha == "" {
			continue
		}
		if known, err := r.Mirror.Has(ctx, sha); err != nil || !known {
			return false, err
		}
	}
	if p.After == "" {
		return false, nil
	}
	if has, err := r.Mirror.IsAncestor(ctx, commit, p.After); err != nil || !has || p.Before == "" {
		return has, err
	}
	had, err := r.Mirror.IsAncestor(ctx, commit, p.Before)
	return !had && err == nil, err
}

func findUpstreamSources(p *branch.ResolvedPipeline, env string) []string {
	var out []string
	seen := map[string]bool{}
	var walk func(string)
	walk = func(name string) {
		e := p.Spec.EnvironmentByName(name)
		if e == nil || seen[name] {
			return
		}
		seen[name] = true
		if e.IsSource() {
			out = append(out, name)
		}
		for _, a := range e.After {
			walk(a)
		}
	}
	walk(env)
	return out
}
