package gitea_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/gitea"
	"github.com/liftlock/liftlock/internal/world/forgetest"
	"github.com/liftlock/liftlock/webhooks"
)

// The contract runs against a real Gitea, whose [webhook] ALLOWED_HOST_LIST must
// allow this machine. The token is an administrator's, with every scope: the
// accounts and repositories are made with it.
const (
	urlVariable   = "LIFTLOCK_TEST_GITEA_URL"
	tokenVariable = "LIFTLOCK_TEST_GITEA_TOKEN"
)

// checkTime is short, so that a conflict shows before patience is over.
const checkTime = 3 * time.Second

func TestContract(t *testing.T) {
	url, token := os.Getenv(urlVariable), os.Getenv(tokenVariable)
	if url == "" || token == "" {
		t.Skipf("needs a Gitea: set %s and %s", urlVariable, tokenVariable)
	}
	l := &testServer{url: url, admin: newTestClient(t, url, sdk.SetToken(token)), run: strconv.FormatInt(time.Now().UnixNano(), 36)}
	bot, reviewer := l.createAccount(t, "bot"), l.createAccount(t, "reviewer")
	stranger := l.createAccount(t, "stranger")
	team := l.createTeam(t, bot, reviewer)

	forgetest.Run(t, forgetest.Backend{
		Type:         webhooks.Gitea,
		Timeout:      30 * time.Second,
		Differences:  forgetest.Differences{NoDeliveries: true, HidesEditors: true},
		WithBadToken: func(t *testing.T) forge.Forge { return newDriver(t, url, strings.Repeat("0", 40)) },
		NewRepository: func(t *testing.T) *forgetest.Repository {
			owner := newTestClient(t, url, sdk.SetToken(bot.token))
			repo, _, err := owner.CreateRepo(sdk.CreateRepoOption{
				Name: fmt.Sprintf("fleet-%d", l.repos.Add(1)), Private: true, AutoInit: true, DefaultBranch: "main",
			})
			if err != nil {
				t.Fatal(err)
			}
			write := sdk.AccessModeWrite
			if _, err := owner.AddCollaborator(bot.login, repo.Name, reviewer.login, sdk.AddCollaboratorOption{Permission: &write}); err != nil {
				t.Fatal(err)
			}
			p := &testRepo{t: t, server: l, owner: bot.login, name: repo.Name, bot: owner, reviewer: reviewer}
			return &forgetest.Repository{
				Repo:     forge.Repo{Owner: bot.login, Name: repo.Name},
				Forge:    newDriver(t, url, bot.token),
				Reviewer: newDriver(t, url, reviewer.token),
				Stranger: stranger.login,
				Nobody:   "nobody-" + l.run,

				Team:          team,
				ReviewerEmail: reviewer.login + "@example.com",
				Review:        p.review,
				Protect:       p.protect,
				Requested:     p.requested,
				RemoveRequest: p.removeRequest,
				Fork:          p.fork,
				Hooks:         p.hooks,
				AddHook:       p.addHook,
			}
		},
	})
}

// TestRequestTeamReview requests a team's review in an organisation's repository; those of
// the contract are an account's.
func TestRequestTeamReview(t *testing.T) {
	url, token := os.Getenv(urlVariable), os.Getenv(tokenVariable)
	if url == "" || token == "" {
		t.Skipf("needs a Gitea: set %s and %s", urlVariable, tokenVariable)
	}
	l := &testServer{url: url, admin: newTestClient(t, url, sdk.SetToken(token)), run: strconv.FormatInt(time.Now().UnixNano(), 36)}
	bot, reviewer := l.createAccount(t, "bot"), l.createAccount(t, "reviewer")
	team := l.createTeam(t, bot, reviewer)
	owner := newTestClient(t, url, sdk.SetToken(bot.token))
	repo, _, err := owner.CreateOrgRepo(team.Organisation, sdk.CreateRepoOption{Name: "fleet", Private: true, AutoInit: true, DefaultBranch: "main"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := owner.CreateFile(team.Organisation, repo.Name, "a.txt", sdk.CreateFileOptions{
		FileOptions: sdk.FileOptions{Message: "a", BranchName: "main", NewBranchName: "liftlock/shop/qa/web"}, Content: "Zm9yawo=",
	}); err != nil {
		t.Fatal(err)
	}
	d, at, ctx := newDriver(t, url, bot.token), forge.Repo{Owner: team.Organisation, Name: repo.Name}, context.Background()
	pr, _, err := d.CreatePullRequest(ctx, at, forge.NewPullRequest{Title: "T", Branch: "liftlock/shop/qa/web", Base: "main"})
	if err != nil {
		t.Fatal(err)
	}
	p := &testRepo{t: t, server: l, owner: at.Owner, name: at.Name, bot: owner, reviewer: reviewer}
	missing := forge.Team{Organisation: at.Owner, Name: "no-such-team"}
	request := func(want ...string) {
		t.Helper()
		refused, err := d.RequestReviewers(ctx, at, pr.Number, forge.Reviewers{Teams: []forge.Team{team, missing}})
		var names []string
		for _, r := range refused {
			names = append(names, r.Name)
		}
		if err != nil || strings.Join(names, " ") != strings.Join(want, " ") {
			t.Errorf("refused are %v, want %v; %v", refused, want, err)
		}
	}
	request(team.String(), missing.String()) // the team has no access to the repository
	if _, err := owner.AddRepoTeam(at.Owner, at.Name, team.Name); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		request(missing.String())
		if got := p.requested(t, pr.Number); strings.Join(got, " ") != team.String() {
			t.Errorf("requested are %v", got)
		}
	}
}

func (tr *testRepo) protect(t *testing.T, approvals int, contexts ...string) {
	t.Helper()
	_, _, err := tr.bot.CreateBranchProtection(tr.owner, tr.name, sdk.CreateBranchProtectionOption{
		BranchName: "main", RuleName: "main", RequiredApprovals: int64(approvals), EnableStatusCheck: true, StatusCheckContexts: contexts,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// testServer is a Gitea with the accounts of one run.
type testServer struct {
	url   string
	admin *sdk.Client
	run   string // in every name, so that runs don't meet
	repos atomic.Int64
}

type account struct{ login, token string }

// createAccount makes an account with a token.
func (ts *testServer) createAccount(t *testing.T, role string) account {
	t.Helper()
	login, password, no := role+"-"+ts.run, "a password of "+role, false
	_, _, err := ts.admin.AdminCreateUser(sdk.CreateUserOption{
		Username: login, Email: login + "@example.com", Password: password, MustChangePassword: &no,
	})
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := newTestClient(t, ts.url, sdk.SetBasicAuth(login, password)).CreateAccessToken(sdk.CreateAccessTokenOption{
		Name: "contract", Scopes: []sdk.AccessTokenScope{sdk.AccessTokenScopeAll},
	})
	if err != nil {
		t.Fatal(err)
	}
	return account{login, token.Token}
}

// createTeam makes an organisation of an account's, with a team in it.
func (ts *testServer) createTeam(t *testing.T, owner, member account) forge.Team {
	t.Helper()
	c, of := newTestClient(t, ts.url, sdk.SetToken(owner.token)), forge.Team{Organisation: "acme-" + ts.run, Name: "sre"}
	if _, _, err := c.CreateOrg(sdk.CreateOrgOption{Name: of.Organisation}); err != nil {
		t.Fatal(err)
	}
	made, _, err := c.CreateTeam(of.Organisation, sdk.CreateTeamOption{Name: of.Name, Permission: sdk.AccessModeWrite, Units: []sdk.RepoUnitType{sdk.RepoUnitCode, sdk.RepoUnitPulls}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.AddTeamMember(made.ID, member.login); err != nil {
		t.Fatal(err)
	}
	return of
}

func newTestClient(t *testing.T, url string, auth sdk.ClientOption) *sdk.Client {
	t.Helper()
	c, err := sdk.NewClient(url, auth, sdk.SetGiteaVersion(""), sdk.SetContext(context.Background()), sdk.SetHTTPClient(http.DefaultClient))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newDriver(t *testing.T, url, token string) forge.Forge {
	t.Helper()
	d, err := gitea.New(gitea.Options{URL: url, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	d.SetCheckTime(checkTime)
	return d
}

// testRepo is one repository, handled beside the driver.
type testRepo struct {
	t           *testing.T
	server      *testServer
	owner, name string
	bot         *sdk.Client
	reviewer    account
}

func (tr *testRepo) review(t *testing.T, number int, v forgetest.Verdict, commit string) {
	t.Helper()
	state := map[forgetest.Verdict]sdk.ReviewStateType{
		forgetest.Approve: sdk.ReviewStateApproved, forgetest.Reject: sdk.ReviewStateRequestChanges, forgetest.CommentOnly: sdk.ReviewStateComment,
	}[v]
	_, _, err := newTestClient(t, tr.server.url, sdk.SetToken(tr.reviewer.token)).CreatePullReview(tr.owner, tr.name, int64(number), sdk.CreatePullReviewOptions{
		State: state, Body: string(v), CommitID: commit,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (tr *testRepo) requested(t *testing.T, number int) []string {
	t.Helper()
	list, _, err := tr.bot.ListPullReviews(tr.owner, tr.name, int64(number), sdk.ListPullReviewsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range list {
		switch {
		case v.State != sdk.ReviewStateRequestReview:
		case v.ReviewerTeam != nil:
			names = append(names, tr.owner+"/"+v.ReviewerTeam.Name)
		case v.Reviewer != nil:
			names = append(names, v.Reviewer.UserName)
		}
	}
	return names
}

func (tr *testRepo) removeRequest(t *testing.T, number int, login string) {
	t.Helper()
	if _, err := tr.bot.DeleteReviewRequests(tr.owner, tr.name, int64(number), sdk.PullReviewRequestOptions{Reviewers: []string{login}}); err != nil {
		t.Fatal(err)
	}
}

func (tr *testRepo) fork(t *testing.T, branch string) int {
	t.Helper()
	c := newTestClient(t, tr.server.url, sdk.SetToken(tr.reviewer.token))
	name := tr.name + "-fork"
	if _, _, err := c.CreateFork(tr.owner, tr.name, sdk.CreateForkOption{Name: &name}); err != nil {
		t.Fatal(err)
	}
	_, _, err := c.CreateFile(tr.reviewer.login, name, "fork.txt", sdk.CreateFileOptions{
		FileOptions: sdk.FileOptions{Message: "from a fork", BranchName: branch}, Content: "Zm9yawo=",
	})
	if err != nil {
		t.Fatal(err)
	}
	pr, _, err := c.CreatePullRequest(tr.owner, tr.name, sdk.CreatePullRequestOption{Title: "from a fork", Head: tr.reviewer.login + ":" + branch, Base: "main"})
	if err != nil {
		t.Fatal(err)
	}
	return int(pr.Index)
}

func (tr *testRepo) hooks(t *testing.T) []forgetest.Hook {
	t.Helper()
	list, _, err := tr.bot.ListRepoHooks(tr.owner, tr.name, sdk.ListHooksOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var hooks []forgetest.Hook
	for _, h := range list {
		hooks = append(hooks, forgetest.Hook{URL: h.Config["url"], Events: h.Events, Active: h.Active})
	}
	return hooks
}

func (tr *testRepo) addHook(t *testing.T, h forgetest.Hook) {
	t.Helper()
	_, _, err := tr.bot.CreateRepoHook(tr.owner, tr.name, sdk.CreateHookOption{
		Type: sdk.HookTypeGitea, Config: map[string]string{"url": h.URL, "content_type": "json"}, Events: h.Events, Active: h.Active,
	})
	if err != nil {
		t.Fatal(err)
	}
}
