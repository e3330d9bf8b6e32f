package gitlab_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/gitlab"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/emulator/apishape"
	"github.com/liftlock/liftlock/internal/world/emulator/gitlabshape"
	"github.com/liftlock/liftlock/internal/world/forgetest"
	"github.com/liftlock/liftlock/webhooks"
)

const (
	botLogin, botToken           = "liftlock-bot", "bot-token"
	reviewerLogin, reviewerToken = "grace", "grace-token"
	strangerLogin, strangerToken = "mallory", "mallory-token"
)

// TestContract runs the contract against the emulator, in projects of a group in a group, as the
// oldest and the newest GitLab that is known. Every call that was made must be as GitLab's own
// description has it, and so must every answer: the driver reads nothing else.
func TestContract(t *testing.T) {
	for _, release := range []string{gitlabshape.Oldest, gitlabshape.Newest} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			testContract(t, release)
		})
	}
}

func testContract(t *testing.T, release string) {
	described, err := gitlabshape.Describe(release)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]bool{}
	em, err := emulator.NewForge(emulator.ForgeOptions{Dir: t.TempDir(), Face: emulator.GitLab, OldGitLab: release == gitlabshape.Oldest, Record: func(x emulator.Exchange) {
		calls[x.Method+" "+x.Route] = true
		for _, wrong := range gitlabshape.Check(described, apishape.Call(x)) {
			t.Errorf("GitLab %s: %s", release, wrong)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if len(calls) < 25 {
			t.Errorf("only %d calls of GitLab's were judged", len(calls))
		}
	})
	t.Cleanup(func() {
		if err := em.Close(); err != nil {
			t.Error(err)
		}
	})
	for login, token := range map[string]string{botLogin: botToken, reviewerLogin: reviewerToken, strangerLogin: strangerToken} {
		if err := em.AddUser(login, token, emulator.UserOptions{Scopes: []string{"api"}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{em.SetTeam("people/sre", "", reviewerLogin), em.SetTeam("people/web", "", botLogin, strangerLogin)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var places atomic.Int64
	newRepository := func(t *testing.T, project emulator.GitLabProject) *forgetest.Repository {
		r := forge.Repo{Owner: "acme/platform", Name: fmt.Sprintf("fleet-%d", places.Add(1))}
		err := em.CreateRepo(r.String(), emulator.RepoOptions{
			Author: botLogin, Files: map[string]string{"README.md": "the fleet\n"}, GitLab: project,
			Access: map[string]emulator.Permission{botLogin: emulator.Admin, reviewerLogin: emulator.Write},
		})
		if err != nil {
			t.Fatal(err)
		}
		p := &emulatedProject{em: em, testProject: testProject{url: em.URL(), client: http.DefaultClient, repo: r, bot: botToken, reviewer: reviewerToken}}
		return &forgetest.Repository{
			Repo:     r,
			Forge:    newDriver(t, em.URL(), botToken),
			Reviewer: newDriver(t, em.URL(), reviewerToken),
			Stranger: strangerLogin,
			Nobody:   "nobody",

			Team: forge.Team{Organisation: "people", Name: "sre"},
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
			GuardBranches: func(t *testing.T, pattern string, logins ...string) {
				t.Helper()
				if err := em.GuardBranches(r.String(), pattern, logins...); err != nil {
					t.Fatal(err)
				}
			},
			MoveBranch: func(t *testing.T, branch, commit string) {
				t.Helper()
				if err := em.SetBranch(r.String(), reviewerLogin, branch, commit); err != nil {
					t.Fatal(err)
				}
			},
			Fork:    p.fork,
			Hooks:   p.hooks,
			AddHook: p.addHook,
			RunQueue: func(t *testing.T) {
				if err := em.RunMergeQueue(r.String(), botLogin); err != nil {
					t.Fatal(err)
				}
			},
		}
	}
	forgetest.Run(t, forgetest.Backend{
		Type:          webhooks.GitLab,
		Timeout:       20 * time.Second,
		WithBadToken:  func(t *testing.T) forge.Forge { return newDriver(t, em.URL(), "no-such-token") },
		NewRepository: func(t *testing.T) *forgetest.Repository { return newRepository(t, emulator.GitLabProject{}) },
		NewRepositoryFor: func(t *testing.T, method string) *forgetest.Repository {
			return newRepository(t, emulator.GitLabProject{MergeMethod: map[string]string{"rebase": "ff"}[method]})
		},
		NewQueueRepository: func(t *testing.T) *forgetest.Repository {
			return newRepository(t, emulator.GitLabProject{QueueMerges: true})
		},
		Differences: differencesOf(release),
	})
}

func differencesOf(release string) forgetest.Differences {
	d := differences
	d.NoDeliveries = release == gitlabshape.Oldest
	return d
}

// TestSigningTokenOfAnOldGitLab holds that a key by which it can't sign isn't thought to be in force.
func TestSigningTokenOfAnOldGitLab(t *testing.T) {
	t.Parallel()
	for old, kind := range map[bool]error{true: forge.ErrInvalid, false: nil} {
		em, err := emulator.NewForge(emulator.ForgeOptions{Dir: t.TempDir(), Face: emulator.GitLab, OldGitLab: old})
		if err != nil {
			t.Fatal(err)
		}
		defer em.Close()
		r := forge.Repo{Owner: "acme", Name: "fleet"}
		for _, err := range []error{em.AddUser(botLogin, botToken, emulator.UserOptions{Scopes: []string{"api"}}),
			em.CreateRepo(r.String(), emulator.RepoOptions{Author: botLogin, Files: map[string]string{"a": "b"}, Access: map[string]emulator.Permission{botLogin: emulator.Admin}})} {
			if err != nil {
				t.Fatal(err)
			}
		}
		hook := forge.Hook{URL: "https://liftlock.example.com/webhooks/hub", Secret: "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}
		for range 2 {
			if _, err := newDriver(t, em.URL(), botToken).EnsureHook(t.Context(), r, hook); !errors.Is(err, kind) {
				t.Errorf("old %v: %v", old, err)
			}
		}
	}
}

func newDriver(t *testing.T, url, token string) forge.Forge {
	t.Helper()
	d, err := gitlab.New(gitlab.Options{URL: url, Token: token}, gitlab.CallLimits{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// differences is where GitLab can't do as others do.
var differences = forgetest.Differences{SquashMerges: true, ForwardOnly: true, FailedWord: "failed", ReviewedOnce: true, OwnEdits: true}

// testProject is one project, handled beside the driver.
type testProject struct {
	url           string // GitLab's
	client        *http.Client
	repo          forge.Repo
	bot, reviewer string // their tokens
}

// emulatedProject is one of the emulator's, which can do what GitLab's API can't.
type emulatedProject struct {
	testProject
	em *emulator.Forge
}

func (e *emulatedProject) protect(t *testing.T, approvals int, contexts ...string) {
	t.Helper()
	if err := e.em.Protect(e.repo.String(), "main", emulator.Protection{Approvals: approvals, Contexts: contexts, MergeRole: emulator.Write}); err != nil {
		t.Fatal(err)
	}
}

// call makes a call of GitLab's API below a project.
func (tp *testProject) call(t *testing.T, token, method, project, path string, body, out any) {
	t.Helper()
	callGitLab(t, tp.client, tp.url, token, method, "projects/"+url.PathEscape(project)+path, body, out)
}

// callGitLab makes a call of GitLab's API.
func callGitLab(t *testing.T, client *http.Client, base, token, method, path string, body, out any) {
	t.Helper()
	var in bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&in).Encode(body); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequest(method, strings.TrimSuffix(base, "/")+"/api/v4/"+path, &in)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("PRIVATE-TOKEN", token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, raw)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
}

type jsonObject = map[string]any

type shownReviewer struct {
	User struct {
		ID       int64
		Username string
	}
	State string
}

func (tp *testProject) reviewers(t *testing.T, number int) (list []shownReviewer) {
	t.Helper()
	tp.call(t, tp.bot, http.MethodGet, tp.repo.String(), fmt.Sprintf("/merge_requests/%d/reviewers", number), nil, &list)
	return list
}

// review gives a review. A reviewer stays one from then on.
func (e *emulatedProject) review(t *testing.T, number int, v forgetest.Verdict, commit string) {
	t.Helper()
	if v == forgetest.CommentOnly && len(e.reviewers(t, number)) == 0 {
		var me struct{ ID int64 }
		callGitLab(t, e.client, e.url, e.reviewer, http.MethodGet, "user", nil, &me)
		e.call(t, e.reviewer, http.MethodPut, e.repo.String(), fmt.Sprintf("/merge_requests/%d", number), jsonObject{"reviewer_ids": []int64{me.ID}}, nil)
	}
	event := map[forgetest.Verdict]string{
		forgetest.Approve: "APPROVE", forgetest.Reject: "REQUEST_CHANGES", forgetest.CommentOnly: "COMMENT",
	}[v]
	if err := e.em.Review(e.repo.String(), number, reviewerLogin, event, string(v), commit); err != nil {
		t.Fatal(err)
	}
}

func (tp *testProject) requested(t *testing.T, number int) []string {
	t.Helper()
	var names []string
	for _, v := range tp.reviewers(t, number) {
		if v.State == "unreviewed" {
			names = append(names, v.User.Username)
		}
	}
	return names
}

func (tp *testProject) removeRequest(t *testing.T, number int, login string) {
	t.Helper()
	ids := []int64{}
	for _, v := range tp.reviewers(t, number) {
		if v.User.Username != login {
			ids = append(ids, v.User.ID)
		}
	}
	tp.call(t, tp.bot, http.MethodPut, tp.repo.String(), fmt.Sprintf("/merge_requests/%d", number), jsonObject{"reviewer_ids": ids}, nil)
}

func (e *emulatedProject) fork(t *testing.T, branch string) int {
	t.Helper()
	name, err := e.em.Fork(e.repo.String(), strangerLogin)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.em.Grant(e.repo.String(), strangerLogin, emulator.Read); err != nil {
		t.Fatal(err)
	}
	if _, err := e.em.CommitAs(name, strangerLogin, branch, "from a fork", map[string]string{"fork.txt": "fork\n"}); err != nil {
		t.Fatal(err)
	}
	var target, made struct{ ID, IID int64 }
	e.call(t, strangerToken, http.MethodGet, e.repo.String(), "", nil, &target)
	e.call(t, strangerToken, http.MethodPost, name, "/merge_requests", jsonObject{
		"title": "from a fork", "source_branch": branch, "target_branch": "main", "target_project_id": target.ID,
	}, &made)
	return int(made.IID)
}

// switchedOff is how the contract's hooks that aren't active are made: GitLab has no others.
const switchedOff = "no-such-branch"

func (tp *testProject) hooks(t *testing.T) []forgetest.Hook {
	t.Helper()
	var list []jsonObject
	tp.call(t, tp.bot, http.MethodGet, tp.repo.String(), "/hooks", nil, &list)
	var hooks []forgetest.Hook
	for _, h := range list {
		shown := forgetest.Hook{URL: h["url"].(string), Active: h["push_events_branch_filter"] != switchedOff}
		for name, on := range h {
			if on == true && strings.HasSuffix(name, "_events") {
				shown.Events = append(shown.Events, name)
			}
		}
		slices.Sort(shown.Events)
		hooks = append(hooks, shown)
	}
	return hooks
}

func (tp *testProject) addHook(t *testing.T, h forgetest.Hook) {
	t.Helper()
	wanted := jsonObject{"url": h.URL, "push_events": false}
	for _, e := range h.Events {
		wanted[e+"_events"] = true
	}
	if !h.Active {
		wanted["push_events_branch_filter"] = switchedOff
	}
	tp.call(t, tp.bot, http.MethodPost, tp.repo.String(), "/hooks", wanted, nil)
}
