package github_test

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/github"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/forgetest"
	"github.com/liftlock/liftlock/webhooks"
)

const (
	botLogin, botToken           = "liftlock-bot", "bot-token"
	reviewerLogin, reviewerToken = "grace", "grace-token"
	strangerLogin, strangerToken = "mallory", "mallory-token"
)

// TestContract runs the contract against the emulator, with times in whole seconds as GitHub's are.
// The driver sees only the fields of each answer that every described release has and that GitHub
// has not announced to remove: it needs no more.
func TestContract(t *testing.T) {
	runContract(t, forgetest.Differences{}, func(t *testing.T, em *emulator.Forge, _ forge.Repo) forge.Forge {
		return newPrunedDriver(t, em, botToken)
	}, func(t *testing.T, em *emulator.Forge) forge.Forge { return newDriver(t, em, "no-such-token") })
}

// TestContractAsApp runs it as a GitHub App that is installed in the organisation.
func TestContractAsApp(t *testing.T) {
	var app registeredApp
	runContract(t, forgetest.Differences{App: true}, func(t *testing.T, em *emulator.Forge, r forge.Repo) forge.Forge {
		if app.ID == 0 {
			app = registerApp(t, em)
			install(t, em, r.Owner)
		}
		return newApp(t, em, app, github.AppOptions{Repositories: []forge.Repo{r}, ManageWebhook: true})
	}, func(t *testing.T, em *emulator.Forge) forge.Forge {
		stranger := app
		stranger.PrivateKey = registerApp(t, em, "stranger").PrivateKey
		return newApp(t, em, stranger, github.AppOptions{Repositories: []forge.Repo{testRepoName}})
	})
}

// runContract runs the contract with drivers for its repositories, and one whose credentials
// aren't taken.
func runContract(t *testing.T, differences forgetest.Differences, driver func(*testing.T, *emulator.Forge, forge.Repo) forge.Forge, bad func(*testing.T, *emulator.Forge) forge.Forge) {
	em, err := emulator.NewForge(emulator.ForgeOptions{Dir: t.TempDir(), WholeSeconds: true, Record: checkCalls(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := em.Close(); err != nil {
			t.Error(err)
		}
	})
	for login, token := range map[string]string{botLogin: botToken, reviewerLogin: reviewerToken, strangerLogin: strangerToken} {
		if err := em.AddUser(login, token, emulator.UserOptions{Scopes: []string{"repo", "admin:repo_hook"}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{em.SetTeam("acme/sre", ""), em.SetTeam("acme/sre-on-call", "acme/sre", reviewerLogin), em.SetTeam("acme/web", "", botLogin, strangerLogin)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var places atomic.Int64
	newRepository := func(t *testing.T) *forgetest.Repository {
		r := forge.Repo{Owner: "acme", Name: fmt.Sprintf("fleet-%d", places.Add(1))}
		err := em.CreateRepo(r.String(), emulator.RepoOptions{
			Author: botLogin, Files: map[string]string{"README.md": "the fleet\n"},
			Access: map[string]emulator.Permission{botLogin: emulator.Admin, reviewerLogin: emulator.Write},
		})
		if err != nil {
			t.Fatal(err)
		}
		p := &testRepo{em: em, repo: r, bot: newTestClient(t, em, botToken), reviewer: newTestClient(t, em, reviewerToken)}
		return &forgetest.Repository{
			Repo:     r,
			Forge:    driver(t, em, r),
			Reviewer: newDriver(t, em, reviewerToken),
			Stranger: strangerLogin,
			Nobody:   "nobody",

			Team: forge.Team{Organisation: "acme", Name: "sre"},
			MakeTeam: func(t *testing.T, team forge.Team) {
				t.Helper()
				if err := em.SetTeam(team.String(), ""); err != nil {
					t.Fatal(err)
				}
			},
			RenameTeam: func(t *testing.T, team forge.Team, name string) {
				t.Helper()
				if err := em.RenameTeam(team.String(), name); err != nil {
					t.Fatal(err)
				}
			},
			ReviewerEmail: reviewerLogin + "@users.example",
			Review:        p.review,
			Protect:       p.protect,
			Requested:     p.requested,
			RemoveRequest: p.removeRequest,
			GuardBranches: func(t *testing.T, pattern string, logins ...string) { guardBranches(t, em, r, pattern, logins...) },
			MoveBranch: func(t *testing.T, branch, commit string) {
				t.Helper()
				if err := em.SetBranch(r.String(), reviewerLogin, branch, commit); err != nil {
					t.Fatal(err)
				}
			},
			Fork:    p.fork,
			Hooks:   p.hooks,
			AddHook: p.addHook,
			AutoMerge: func(t *testing.T, number int) {
				if err := em.EnableAutoMerge(r.String(), number, reviewerLogin); err != nil {
					t.Fatal(err)
				}
			},
			RunQueue: func(t *testing.T) {
				if err := em.RunMergeQueue(r.String(), botLogin); err != nil {
					t.Fatal(err)
				}
			},
		}
	}
	forgetest.Run(t, forgetest.Backend{
		Type:          webhooks.GitHub,
		Timeout:       20 * time.Second,
		Differences:   differences,
		WithBadToken:  func(t *testing.T) forge.Forge { return bad(t, em) },
		NewRepository: newRepository,
		NewQueueRepository: func(t *testing.T) *forgetest.Repository {
			r := newRepository(t)
			if err := em.Protect(r.Repo.String(), "main", emulator.Protection{Queue: &emulator.MergeQueue{}, Ruleset: "queue"}); err != nil {
				t.Fatal(err)
			}
			return r
		},
	})
}

func guardBranches(t *testing.T, em *emulator.Forge, r forge.Repo, pattern string, logins ...string) {
	t.Helper()
	if err := em.GuardBranches(r.String(), pattern, logins...); err != nil {
		t.Fatal(err)
	}
}

func newDriver(t *testing.T, em *emulator.Forge, token string) forge.Forge {
	t.Helper()
	d, err := github.New(github.Options{URL: em.URL() + "/api/v3", Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// newTestClient is GitHub's API beside the driver.
func newTestClient(t *testing.T, em *emulator.Forge, token string) *gh.Client {
	t.Helper()
	c := gh.NewClient(nil).WithAuthToken(token)
	base, err := url.Parse(em.URL() + "/api/v3/")
	if err != nil {
		t.Fatal(err)
	}
	c.BaseURL = base
	return c
}

// testRepo is one repository, handled beside the driver.
type testRepo struct {
	em            *emulator.Forge
	repo          forge.Repo
	bot, reviewer *gh.Client
}

func (tr *testRepo) review(t *testing.T, number int, v forgetest.Verdict, commit string) {
	t.Helper()
	event := map[forgetest.Verdict]string{
		forgetest.Approve: "APPROVE", forgetest.Reject: "REQUEST_CHANGES", forgetest.CommentOnly: "COMMENT",
	}[v]
	_, _, err := tr.reviewer.PullRequests.CreateReview(context.Background(), tr.repo.Owner, tr.repo.Name, number, &gh.PullRequestReviewRequest{
		Event: &event, Body: gh.String(string(v)), CommitID: &commit,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (tr *testRepo) protect(t *testing.T, approvals int, contexts ...string) {
	t.Helper()
	if err := tr.em.Protect(tr.repo.String(), "main", emulator.Protection{Approvals: approvals, Contexts: contexts, Ruleset: "main"}); err != nil {
		t.Fatal(err)
	}
}

func (tr *testRepo) requested(t *testing.T, number int) []string {
	t.Helper()
	list, _, err := tr.bot.PullRequests.ListReviewers(context.Background(), tr.repo.Owner, tr.repo.Name, number, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, u := range list.Users {
		names = append(names, u.GetLogin())
	}
	for _, team := range list.Teams {
		names = append(names, tr.repo.Owner+"/"+team.GetSlug())
	}
	return names
}

func (tr *testRepo) removeRequest(t *testing.T, number int, login string) {
	t.Helper()
	if _, err := tr.bot.PullRequests.RemoveReviewers(context.Background(), tr.repo.Owner, tr.repo.Name, number, gh.ReviewersRequest{Reviewers: []string{login}}); err != nil {
		t.Fatal(err)
	}
}

func (tr *testRepo) fork(t *testing.T, branch string) int {
	t.Helper()
	name, err := tr.em.Fork(tr.repo.String(), strangerLogin)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.em.Grant(tr.repo.String(), strangerLogin, emulator.Read); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.em.CommitAs(name, strangerLogin, branch, "from a fork", map[string]string{"fork.txt": "fork\n"}); err != nil {
		t.Fatal(err)
	}
	c := newTestClient(t, tr.em, strangerToken)
	pr, _, err := c.PullRequests.Create(context.Background(), tr.repo.Owner, tr.repo.Name, &gh.NewPullRequest{
		Title: gh.String("from a fork"), Head: gh.String(strangerLogin + ":" + branch), Base: gh.String("main"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return pr.GetNumber()
}

func (tr *testRepo) hooks(t *testing.T) []forgetest.Hook {
	t.Helper()
	list, _, err := tr.bot.Repositories.ListHooks(context.Background(), tr.repo.Owner, tr.repo.Name, nil)
	if err != nil {
		t.Fatal(err)
	}
	var hooks []forgetest.Hook
	for _, h := range list {
		hooks = append(hooks, forgetest.Hook{URL: h.Config.GetURL(), Events: h.Events, Active: h.GetActive()})
	}
	return hooks
}

func (tr *testRepo) addHook(t *testing.T, h forgetest.Hook) {
	t.Helper()
	_, _, err := tr.bot.Repositories.CreateHook(context.Background(), tr.repo.Owner, tr.repo.Name, &gh.Hook{
		Config: &gh.HookConfig{URL: &h.URL, ContentType: gh.String("json")}, Events: h.Events, Active: &h.Active,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRulesOfClassicProtection: an administrator sees all of it, others the required checks.
func TestRulesOfClassicProtection(t *testing.T) {
	em, err := emulator.NewForge(emulator.ForgeOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer em.Close()
	r := forge.Repo{Owner: "acme", Name: "fleet"}
	for _, err := range []error{
		em.AddUser(botLogin, botToken, emulator.UserOptions{}), em.AddUser(reviewerLogin, reviewerToken, emulator.UserOptions{}),
		em.CreateRepo(r.String(), emulator.RepoOptions{Author: botLogin, Files: map[string]string{"a": "b"}, Access: map[string]emulator.Permission{botLogin: emulator.Admin, reviewerLogin: emulator.Write}}),
		em.Protect(r.String(), "main", emulator.Protection{Approvals: 2, Contexts: []string{"ci/build"}, Strict: true, DismissStale: true, Signatures: true}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	settings := forge.RuleSet{Name: "the repository's settings", Methods: []string{"merge", "squash", "rebase"}}
	app := registerApp(t, em)
	install(t, em, r.Owner)
	for name, c := range map[string]struct {
		as   forge.Forge
		want forge.RuleSet
		all  bool
	}{
		"administrator": {newDriver(t, em, botToken), forge.RuleSet{Name: "branch protection", Approvals: 2, DropsApprovals: true, Checks: []string{"ci/build"}, UpToDate: true, Signatures: true}, true},
		"writer":        {newDriver(t, em, reviewerToken), forge.RuleSet{Name: "branch protection", Checks: []string{"ci/build"}}, false},
		"App":           {newApp(t, em, app, github.AppOptions{Repositories: []forge.Repo{r}}), forge.RuleSet{Name: "branch protection", Checks: []string{"ci/build"}}, false},
	} {
		got, err := c.as.Rules(t.Context(), r, "main")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]forge.RuleSet{c.want, settings}, got.Sets); diff != "" || c.all != (got.Hidden == "") {
			t.Errorf("%s: hidden is %q; want (-), got (+):\n%s", name, got.Hidden, diff)
		}
	}
}
