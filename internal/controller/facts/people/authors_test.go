package people

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
)

// authorForge knows who made what, and counts what it is asked.
type authorForge struct {
	forge.Forge
	merged  map[string][]forge.PullRequest // by commit
	listed  []forge.CommitAuthors          // of any pull request
	listing error                          // why they can't be told
	commits map[string]forge.CommitAuthors
	pushes  []forge.Push // newest first
	err     error
	calls   int
	single  bool // a push has one commit
	between []forge.Commit
}

func (a *authorForge) Commits(context.Context, forge.Repo, string, string) ([]forge.Commit, error) {
	a.calls++
	return slices.Clone(a.between), a.err
}

func (a *authorForge) MergedPullRequests(_ context.Context, _ forge.Repo, commit string) ([]forge.PullRequest, error) {
	a.calls++
	return a.merged[commit], a.err
}

func (a *authorForge) PullRequestAuthors(context.Context, forge.Repo, *forge.PullRequest) ([]forge.CommitAuthors, error) {
	a.calls++
	if a.listing != nil {
		return nil, a.listing
	}
	return a.listed, a.err
}

func (a *authorForge) CommitAuthors(_ context.Context, _ forge.Repo, base, head string) ([]forge.CommitAuthors, error) {
	a.calls++
	var out []forge.CommitAuthors
	for sha, c := range a.commits {
		if sha == head || base != "" && !a.single {
			out = append(out, c)
		}
	}
	return out, a.err
}

func (a *authorForge) Pushes(_ context.Context, _ forge.Repo, _ string, enough func(forge.Push) bool) error {
	a.calls++
	for _, p := range a.pushes {
		if enough(p) {
			return nil
		}
	}
	return a.err
}

func forgeUser(login string) forge.User { return forge.User{ID: int64(len(login)), Login: login} }

// madeBy is a commit by accounts; one with an @ in it is an address without account.
func madeBy(sha string, who ...string) forge.CommitAuthors {
	c := forge.CommitAuthors{Commit: sha}
	for _, w := range who {
		p := forge.Contributor{Name: w, Email: w + "@example.com", User: forgeUser(w)}
		if strings.Contains(w, "@") {
			p = forge.Contributor{Name: "Somebody", Email: w}
		}
		c.Contributors = append(c.Contributors, p)
	}
	return c
}

func mergedPull(commit, base, opener, merger string) forge.PullRequest {
	return forge.PullRequest{Number: 7, MergeCommit: commit, Base: base, Author: opener, AuthorID: forgeUser(opener).ID, MergedBy: merger, MergedByID: forgeUser(merger).ID}
}

// lines is a repository in which a branch was merged into main: what the tests of who
// made what need of Git.
type lines struct {
	*testRepo
	base, one, two, side, merged string
}

func newLines(t *testing.T) lines {
	c := lines{testRepo: newTestRepo(t, "fleet", map[string]string{"a": "1\n"})}
	c.base = c.at
	c.one = c.commit("main", map[string]string{"a": "2\n"})
	c.two = c.commit("main", map[string]string{"a": "3\n"})
	c.at = c.base
	c.side = c.write("topic", git.CommitSpec{Message: "x\n\nCo-authored-by: Dora <dora@example.com>", Parents: []string{c.base}, Base: c.base, Files: []git.FileWrite{{Path: "b", Content: []byte("1\n")}}})
	c.at = c.two
	c.merged = c.merge("main", "Merge\n\nCo-authored-by: Coral <coral@example.com>", c.side)
	c.BotLogin, c.BotID = "liftlock", 1
	return c
}

// TestReadMakers finds all accounts that the forge saw in the making, and says which it can't tell:
// none is left out for that.
func TestReadMakers(t *testing.T) {
	c := newLines(t)
	short := func(sha string) string { return sha[:12] }
	push := func(before, after, by string) forge.Push {
		return forge.Push{Before: before, After: after, By: forgeUser(by)}
	}
	both := map[string]forge.CommitAuthors{c.one: madeBy(c.one, "ann"), c.two: madeBy(c.two, "bob")}
	coral := map[string]forge.CommitAuthors{c.merged: madeBy(c.merged, "someone", "coral"), c.side: madeBy(c.side, "someone", "dora")}
	squashed := mergedPull(c.merged, "main", "opener", "carol")
	squashed.SquashCommit = c.side
	for name, test := range map[string]struct {
		forge    authorForge
		commit   string
		want     []string
		unlinked []string
		err      string
	}{
		"a push of two":            {forge: authorForge{commits: both, pushes: []forge.Push{push(c.two, c.merged, "late"), push(c.base, c.two, "mallory")}}, commit: c.one, want: []string{"ann", "bob", "mallory"}},
		"a push by a deleted one":  {forge: authorForge{commits: both, pushes: []forge.Push{{Before: c.base, After: c.two}}}, commit: c.one, want: []string{"ann", "bob"}, unlinked: []string{"whoever pushed " + short(c.two) + " to main has no account any more"}},
		"a new branch":             {forge: authorForge{commits: both, pushes: []forge.Push{push("", c.two, "mallory")}}, commit: c.one, want: []string{"ann", "mallory"}},
		"pushes that lead nowhere": {forge: authorForge{commits: both, pushes: []forge.Push{push(c.base, strings.Repeat("1", 40), "x"), push(strings.Repeat("1", 40), c.two, "y"), push(c.two, "", "z")}}, commit: c.one, err: "the forge doesn't tell who pushed it"},
		"no pushes":                {forge: authorForge{commits: both}, commit: c.one, err: "no merged pull request brought it to main, and the forge doesn't tell who pushed it"},
		"a merge of nothing known": {forge: authorForge{pushes: []forge.Push{{Before: c.base, After: c.one, By: forgeUser("carol"), Merge: true}}}, commit: c.one, err: "the forge doesn't tell by which pull request"},
		"a push that isn't listed": {forge: authorForge{commits: map[string]forge.CommitAuthors{c.two: madeBy(c.two, "bob")}, pushes: []forge.Push{push(c.base, c.two, "mallory")}}, commit: c.one, err: "doesn't list it among the commits of the push"},
		"an unlinked author":       {forge: authorForge{commits: map[string]forge.CommitAuthors{c.one: madeBy(c.one, "s@home.example")}, pushes: []forge.Push{push(c.base, c.one, "mallory")}}, commit: c.one, want: []string{"mallory"}, unlinked: []string{"Somebody <s@home.example>, whom the commit " + short(c.one) + " names, belongs to no account"}},
		"our own commits":          {forge: authorForge{commits: map[string]forge.CommitAuthors{c.one: madeBy(c.one, "A@example.com")}, pushes: []forge.Push{push(c.base, c.one, "mallory")}}, commit: c.one, want: []string{"liftlock", "mallory"}},
		"a squash": {forge: authorForge{merged: map[string][]forge.PullRequest{c.one: {mergedPull(c.one, "main", "opener", "carol")}},
			listed: []forge.CommitAuthors{{Commit: c.side, Contributors: madeBy("", "ann").Contributors, Pusher: forgeUser("mallory")}}}, commit: c.one, want: []string{"ann", "carol", "mallory", "opener"}},
		"a squash of a deleted account": {forge: authorForge{merged: map[string][]forge.PullRequest{c.one: {mergedPull(c.one, "main", "", "carol")}},
			listed: []forge.CommitAuthors{madeBy(c.side, "ann")}}, commit: c.one, want: []string{"ann", "carol"}, unlinked: []string{"who opened #7 has no account any more"}},
		"a merge": {forge: authorForge{merged: map[string][]forge.PullRequest{c.merged: {mergedPull(c.merged, "main", "opener", "carol")}},
			listed: []forge.CommitAuthors{madeBy(c.side, "ann")}, commits: coral}, commit: c.merged, want: []string{"ann", "carol", "coral", "opener"}},
		"a merge of a squash": {forge: authorForge{merged: map[string][]forge.PullRequest{c.merged: {squashed}},
			listed: []forge.CommitAuthors{madeBy(c.one, "ann")}, commits: coral}, commit: c.merged, want: []string{"ann", "carol", "coral", "dora", "opener"}},
		"a merge of more than is listed": {forge: authorForge{merged: map[string][]forge.PullRequest{c.merged: {mergedPull(c.merged, "main", "opener", "carol")}},
			listed: []forge.CommitAuthors{madeBy(c.one, "ann")}}, commit: c.merged, err: "#7 brought " + short(c.side) + ", which the forge doesn't list"},
		"a pull request of nothing": {forge: authorForge{merged: map[string][]forge.PullRequest{c.one: {mergedPull(c.one, "main", "opener", "carol")}}}, commit: c.one, err: "the forge lists no commits of #7"},
		"a pull request of hidden pushes": {forge: authorForge{merged: map[string][]forge.PullRequest{c.one: {mergedPull(c.one, "main", "opener", "carol")}},
			listing: &forge.Error{Op: "read who pushed to topic", Kind: forge.ErrTooMany, Message: "it isn't among the last 1000 pushes"}}, commit: c.one, err: "read who pushed to topic: more than can be read: it isn't among the last 1000 pushes"},
		"in the middle of a rebase": {forge: authorForge{merged: map[string][]forge.PullRequest{c.two: {mergedPull(c.two, "main", "opener", "carol")}}, pushes: []forge.Push{push(c.base, c.two, "carol")},
			listed: []forge.CommitAuthors{madeBy(c.side, "ann")}}, commit: c.one, want: []string{"ann", "carol", "opener"}},
		"merged elsewhere and pushed here": {forge: authorForge{merged: map[string][]forge.PullRequest{c.one: {mergedPull(c.one, "staging", "opener", "carol")}}, pushes: []forge.Push{push(c.base, c.one, "mallory")},
			commits: map[string]forge.CommitAuthors{c.one: madeBy(c.one, "ann")}, listed: []forge.CommitAuthors{madeBy(c.side, "bob")}}, commit: c.one, want: []string{"ann", "bob", "carol", "mallory", "opener"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.Forge = &test.forge
			m, err := ReadMakers(t.Context(), c.Repository, "main", test.commit)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("%+v, %v; want %q", m, err, test.err)
				}
				return
			}
			var logins []string
			for _, a := range m.Accounts {
				logins = append(logins, a.Login)
			}
			slices.Sort(logins)
			if err != nil || !slices.Equal(logins, test.want) || !slices.Equal(m.Unlinked, test.unlinked) {
				t.Errorf("%v\n got %q, %q\nwant %q, %q", err, logins, m.Unlinked, test.want, test.unlinked)
			}
		})
	}
}

// TestTooManyCoAuthors holds that no author hides behind the most co-authors that are read of a
// landed commit.
func TestTooManyCoAuthors(t *testing.T) {
	for more, want := range map[string]string{"": "", "Co-authored-by: Grace <grace@example.com>\n": " names too many co-authors"} {
		r := newTestRepo(t, "fleet", map[string]string{"a": "1\n"})
		message := "Squashed\n\n" + strings.Repeat("Co-authored-by: Ann <ann@example.com>\n", 50) + more
		landed := r.write("main", git.CommitSpec{Message: message, Parents: []string{r.at}, Base: r.at, Files: []git.FileWrite{{Path: "a", Content: []byte("2\n")}}})
		r.Forge = &authorForge{merged: map[string][]forge.PullRequest{landed: {mergedPull(landed, "main", "opener", "carol")}}, listed: []forge.CommitAuthors{madeBy(landed, "ann")}}
		m, err := ReadMakers(t.Context(), r.Repository, "main", landed)
		if (err != nil) != (want != "") || err != nil && err.Error() != "the commit "+landed[:12]+want {
			t.Errorf("with %q more: %q, %v", more, loginsOf(m.Accounts), err)
		}
	}
}

// TestMakersAreRemembered asks the forge once about facts that never change. It asks again after a
// while where an address may have got an account or nothing was told, and again at once where the
// forge was away.
func TestMakersAreRemembered(t *testing.T) {
	c := newLines(t)
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	f := &authorForge{pushes: []forge.Push{{Before: c.base, After: c.one, By: forgeUser("ann")}}, commits: map[string]forge.CommitAuthors{c.one: madeBy(c.one, "s@home.example")}}
	c.Forge = f
	g := NewAuthorGatherer(branch.NewGitGatherer(nil, nil, nil), nil, func() time.Time { return now }, false, nil)
	const perRelease = 3 // the pull requests, the pushes, the commits
	for i, step := range []struct {
		after  time.Duration
		err    error
		linked bool
		calls  int
	}{
		{0, forge.ErrRetryable, false, 1},
		{0, nil, false, perRelease},
		{unknownAge - time.Second, nil, true, 0},
		{time.Second, nil, true, perRelease},
		{1000 * time.Hour, nil, false, 0},
	} {
		now = now.Add(step.after)
		f.err, f.calls = step.err, 0
		if step.linked {
			f.commits[c.one] = madeBy(c.one, "bob")
		}
		_, err := g.landingMakers(t.Context(), c.Repository, "main", c.one)
		if (err != nil) != (step.err != nil) || f.calls != step.calls {
			t.Errorf("step %d: %v after %d calls, want %d", i, err, f.calls, step.calls)
		}
	}
	f.err, f.pushes = nil, nil
	for i, calls := range []int{2, 0, 2} { // the pull requests, the pushes
		f.calls = 0
		if _, err := g.landingMakers(t.Context(), c.Repository, "main", c.two); err == nil || f.calls != calls {
			t.Errorf("what isn't told, time %d: %v after %d calls, want %d", i, err, f.calls, calls)
		}
		if now = now.Add(time.Second); i == 1 {
			now = now.Add(unknownAge)
		}
	}
}

// TestUnlinkedAreExplained names some of them, and what helps.
func TestUnlinkedAreExplained(t *testing.T) {
	g := NewAuthorGatherer(branch.NewGitGatherer(nil, nil, nil), nil, time.Now, false, nil)
	if err := g.explainUnlinked([]string{"a", "b", "c", "d", "e"}); err == nil || !strings.HasPrefix(err.Error(), "a; b; c; and 2 more. ") {
		t.Errorf("the explanation is %v", err)
	}
	g.ignoreUnlinked = true
	if err := g.explainUnlinked([]string{"a"}); err != nil {
		t.Errorf("ignored: %v", err)
	}
}

// devReleases is a branch layout whose environment dev gets releases of two images, each
// pushed by somebody else.
type devReleases struct {
	*testRepo
	forge *authorForge
	last  string // release of dev
}

func newDevReleases(t *testing.T) *devReleases {
	d := &devReleases{testRepo: newBranchRepo(t, nil), forge: &authorForge{commits: map[string]forge.CommitAuthors{}, single: true}}
	d.Forge = d.forge
	d.checkoutBranch("env/dev")
	d.last = d.at
	return d
}

func (d *devReleases) release(who, message, one, other string) {
	d.t.Helper()
	d.commit("env/dev", map[string]string{"apps/web/kustomization.yaml": fmt.Sprintf("resources: [../../base]\nimages:\n- {name: x, newTag: '%s'}\n- {name: y, newTag: '%s'}\n", one, other)})
	sha := d.amend("env/dev", message)
	d.forge.commits[sha] = madeBy(sha, who)
	d.forge.pushes = slices.Insert(d.forge.pushes, 0, forge.Push{Before: d.last, After: sha, By: forgeUser(who)})
	d.last = sha
}

// evaluate gives what is known of web, and the identity of what dev has.
func (d *devReleases) evaluate(o *testGatherer) (c *branch.ComponentBasis, release string) {
	d.t.Helper()
	s := takeSnapshot(d.t, o, d.testRepo)
	p := s.Pipelines[0]
	b := &branch.Basis{Snapshot: s, Pipeline: p}
	var envs []promotion.Env
	for _, env := range []string{"dev", "qa", "prod"} {
		envs = append(envs, promotion.Env{Name: env, Tip: s.BranchFor(p.Pipeline, env).Commit})
	}
	c = componentOf(b, branch.ComponentBasis{Unit: p.Units["web"], Facts: promotion.ComponentFacts{Envs: envs}})
	return c, o.Releases.ReleaseIDAt(d.Repository, d.last, p, c.Unit.Envs["dev"])
}

func loginsOf(accounts []policies.Account) (logins []string) {
	for _, a := range accounts {
		logins = append(logins, a.Login)
	}
	return logins
}

// TestReleaseAuthors finds each commit that brought a release, those that brought some of
// its values too, and knows no release that nothing brought.
func TestReleaseAuthors(t *testing.T) {
	d := newDevReleases(t)
	o := newTestGatherer(d.testRepo)
	d.release("ann", "One", "2", "1")
	d.release("bob", "Both", "2", "2")
	d.release("carol", "Another", "3", "3")
	d.release("dave", "Back", "2", "2")
	d.release("liftlock", "Take it back\n\nLiftlock-Kind: revert", "4", "4")
	d.release("frank", "Again", "2", "2")
	c, id := d.evaluate(o)
	if got, err := o.Authors.ReleaseAuthors(t.Context(), c, "prod", id); err != nil || !slices.Equal(loginsOf(got), []string{"bob", "dave", "frank"}) {
		t.Errorf("who brought it each time: %+v, %v", got, err)
	}
	if got, err := o.Authors.ReleaseAuthors(t.Context(), c, "prod", strings.Repeat("0", 64)); err == nil || !strings.Contains(err.Error(), "no history tells which commit brought the release to dev") {
		t.Errorf("a release that nothing brought: %+v, %v", got, err)
	}
	d.release("grace", "One of two", "5", "2")
	d.release("heidi", "The other", "5", "6")
	c, id = d.evaluate(o)
	if got, err := o.Authors.ReleaseAuthors(t.Context(), c, "prod", id); err != nil || !slices.Equal(loginsOf(got), []string{"grace", "heidi"}) {
		t.Errorf("who brought its parts: %+v, %v", got, err)
	}
	parts := func(what string, want ...string) {
		t.Helper()
		if got, err := o.Authors.ReleaseAuthors(t.Context(), c, "prod", id); err != nil || !slices.Equal(loginsOf(got), want) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	tip, prod := c.Env("prod").Tip, c.Unit.Envs["prod"]
	c.Env("prod").Tip = ""
	parts("prod has no branch", "grace", "heidi")
	c.Env("prod").Tip = tip
	delete(c.Unit.Envs, "prod")
	parts("prod has no target", "grace", "heidi")
	c.Unit.Envs["prod"] = prod
	dev := d.at
	d.checkoutBranch("main")
	c.Env("prod").Tip = d.commit("main", map[string]string{"apps/web/kustomization.yaml": "resources: [../../base]\nimages:\n- {name: x, newTag: '5'}\n"})
	c.Pipeline.Readings = nil
	parts("prod has one of the values", "heidi")
	d.at = dev
	c.Facts.Envs[0].History = []promotion.Arrival{{Release: id, Commit: d.at, By: promotion.ByPerson}, {Release: id, Commit: d.forge.pushes[3].After, By: promotion.ByPerson}}
	if got, err := o.Authors.findArrivals(t.Context(), c, "dev", c.Unit.Envs["dev"], id); err != nil || !slices.Equal(got, []string{d.at}) {
		t.Errorf("what was recorded, and is so: %q, %v", got, err)
	}
}

// TestARevertsTrailerHidesNoAuthor holds that who brings a release back is its author also
// where her commit says that it is Liftlock's revert, and names Liftlock as who made it.
func TestARevertsTrailerHidesNoAuthor(t *testing.T) {
	d := newDevReleases(t)
	o := newTestGatherer(d.testRepo)
	d.release("ann", "One", "2", "2")
	d.release("bob", "Another", "3", "3")
	d.release("mallory", "Take it back\n\nLiftlock-Kind: revert", "2", "2")
	c, id := d.evaluate(o)
	info, err := d.Mirror.Commit(t.Context(), d.last)
	if err != nil || !d.IsCommittedByUs(info) || info.Trailers[promotion.TrailerKind] != promotion.KindRevert {
		t.Fatalf("the commit doesn't look like Liftlock's revert: %+v, %v", info, err)
	}
	if got, err := o.Authors.ReleaseAuthors(t.Context(), c, "prod", id); err != nil || !slices.Equal(loginsOf(got), []string{"ann", "mallory"}) {
		t.Errorf("who brought it: %q, %v", loginsOf(got), err)
	}
	c.Facts.Envs[0].History = []promotion.Arrival{{Release: id, Commit: d.last, By: promotion.ByRevert}, {Release: id, Commit: d.forge.pushes[2].After, By: promotion.ByPerson}}
	if got, err := o.Authors.ReleaseAuthors(t.Context(), c, "prod", id); err != nil || !slices.Equal(loginsOf(got), []string{"ann"}) {
		t.Errorf("who brought it beside a revert that is on record: %q, %v", loginsOf(got), err)
	}
}

// TestAuthorFacts asks for authors only where a gate does, and counts who gave the command
// to promote.
func TestAuthorFacts(t *testing.T) {
	d := newDevReleases(t)
	o := newTestGatherer(d.testRepo)
	states := storedRecords{}
	o.Authors.states = states
	d.release("ann", "Both\n\nLiftlock-Requested-By: ken (id 11), lea", "2", "2")
	c, id := d.evaluate(o)
	prod := &c.Facts.Envs[2]
	p := &promotion.Pull{Number: 7, Release: id, Head: d.at}
	f := &p.Review
	if err := o.Authors.AuthorFacts(t.Context(), c, prod, p); err != nil || d.forge.calls != 0 || f.Authors != nil {
		t.Errorf("without a gate: %+v, %v after %d calls", f, err, d.forge.calls)
	}
	p.Skips = []promotion.Skip{{Gate: "soak", By: "ci", Via: "api"}}
	if err := o.Authors.AuthorFacts(t.Context(), c, prod, p); err != nil || d.forge.calls != 0 || f.Authors != nil {
		t.Errorf("with a token's skip: %+v, %v after %d calls", f, err, d.forge.calls)
	}
	p.Skips = []promotion.Skip{{Gate: "soak", By: "ada"}}
	if err := o.Authors.AuthorFacts(t.Context(), c, prod, p); err != nil || !slices.Equal(loginsOf(f.Authors), []string{"ann", "ken", "lea"}) {
		t.Errorf("with a person's skip: %+v, %v", f, err)
	}
	p.Skips = nil
	prod.Gates = []policies.Gate{{Approvals: &policies.Approvals{Count: 1}}}
	c.Facts.PendingCommands = []promotion.PendingCommand{
		{Verb: "promote", Environment: "prod", Release: id, By: "grace", ByID: 12}, {Verb: "promote", Environment: "prod", Release: "another", By: "heidi"},
		{Verb: "promote", Environment: "qa", Release: id, By: "ivan"}, {Verb: "retry", Environment: "prod", Release: id, By: "judy"},
	}
	states[RequesterRecords.Key(record.OfPull(c.Snapshot.Repo.ID, 7))] = `["lea", "mia (id 13)"]`
	if err := o.Authors.AuthorFacts(t.Context(), c, prod, p); err != nil || f.AuthorsErr != "" || !slices.Equal(loginsOf(f.Authors), []string{"ann", "lea", "mia", "ken", "grace"}) {
		t.Errorf("with a gate: %+v, %v", f, err)
	}
	if want := []policies.Account{{Login: "lea"}, {ID: 13, Login: "mia"}, {ID: 11, Login: "ken"}, {ID: 12, Login: "grace"}}; !slices.Equal(f.Authors[1:], want) {
		t.Errorf("those who gave the command are %+v, and not %+v", f.Authors[1:], want)
	}
	p.Head = strings.Repeat("0", 40)
	if err := o.Authors.AuthorFacts(t.Context(), c, prod, p); err != nil || !strings.Contains(f.AuthorsErr, "who asked for it can't be told: ") {
		t.Errorf("with a head that is gone: %+v, %v", f, err)
	}
	p.Head, f.AuthorsErr = d.at, ""
	d.forge.pushes = nil
	o.Authors.landings.Clear()
	if err := o.Authors.AuthorFacts(t.Context(), c, prod, p); err != nil || !strings.Contains(f.AuthorsErr, "who made "+d.at[:12]+" can't be told: ") {
		t.Errorf("with nothing known: %+v, %v", f, err)
	}
	d.forge.err = forge.ErrRetryable
	o.Authors.landings.Clear()
	if err := o.Authors.AuthorFacts(t.Context(), c, prod, p); !forge.IsRetryable(err) {
		t.Errorf("with the forge away: %v", err)
	}
}

// TestHasBrought says which of the moves of a branch brought a commit.
func TestHasBrought(t *testing.T) {
	c := newTestRepo(t, "fleet", map[string]string{"a": "1\n"})
	first := c.at
	second := c.commit("main", map[string]string{"a": "2\n"})
	third := c.commit("main", map[string]string{"a": "3\n"})
	unknown := strings.Repeat("1", 40)
	for name, tc := range map[string]struct {
		before, after, commit string
		want                  bool
	}{
		"the move that brought it":   {first, second, second, true},
		"a move that brought more":   {first, third, second, true},
		"the branch was made":        {"", second, second, true},
		"it was there before":        {second, third, second, false},
		"it came after":              {first, second, third, false},
		"the branch was made before": {"", first, second, false},
		"the branch was removed":     {second, "", second, false},
		"from what isn't known":      {unknown, second, second, false},
		"to what isn't known":        {first, unknown, second, false},
	} {
		got, err := hasBrought(t.Context(), c.Repository, forge.Push{Before: tc.before, After: tc.after}, tc.commit)
		if got != tc.want || err != nil {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
}
