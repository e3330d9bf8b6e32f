package gitlab_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/forgetest"
	"github.com/liftlock/liftlock/webhooks"
)

// The contract runs against a GitLab that somebody has, where these are set;
// deploy/lab/gitlab.sh says what they are.
const (
	urlVariable      = "LIFTLOCK_TEST_GITLAB_URL"
	tokenVariable    = "LIFTLOCK_TEST_GITLAB_TOKEN"
	reviewerVariable = "LIFTLOCK_TEST_GITLAB_REVIEWER_TOKEN"
	strangerVariable = "LIFTLOCK_TEST_GITLAB_STRANGER"
	teamVariable     = "LIFTLOCK_TEST_GITLAB_TEAM"
	hooksVariable    = "LIFTLOCK_TEST_GITLAB_HOOKS"
)

func TestLiveContract(t *testing.T) {
	if os.Getenv(urlVariable) == "" {
		t.Skipf("needs a GitLab: set %s, or run deploy/lab/gitlab.sh", urlVariable)
	}
	l := &liveServer{client: http.DefaultClient, hooks: os.Getenv(hooksVariable) != ""}
	for name, to := range map[string]*string{urlVariable: &l.url, tokenVariable: &l.bot, reviewerVariable: &l.reviewer, strangerVariable: &l.stranger} {
		if *to = os.Getenv(name); *to == "" {
			t.Fatalf("%s is not set", name)
		}
	}
	if path := os.Getenv(teamVariable); path != "" {
		at := strings.LastIndex(path, "/")
		if at < 1 {
			t.Fatalf("%s: %q is no group within a group, such as acme/sre", teamVariable, path)
		}
		l.team = forge.Team{Organisation: path[:at], Name: path[at+1:]}
	}
	l.run(t)
}

// TestLiveContractOnTheEmulator runs what TestLiveContract does, so that it works when somebody
// has a GitLab for it: against the emulator, with nothing but GitLab's API. The calls that make,
// fork and delete projects are those of projectCalls, as the emulator doesn't have them.
func TestLiveContractOnTheEmulator(t *testing.T) {
	t.Parallel()
	em, err := emulator.NewForge(emulator.ForgeOptions{Dir: t.TempDir(), Face: emulator.GitLab})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := em.Close(); err != nil {
			t.Error(err)
		}
	})
	logins := map[string]string{botToken: botLogin, reviewerToken: reviewerLogin, strangerToken: strangerLogin}
	for token, login := range logins {
		if err := em.AddUser(login, token, emulator.UserOptions{Scopes: []string{"api"}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{em.SetTeam("people/sre", "", reviewerLogin), em.SetTeam("people/web", "", botLogin, strangerLogin)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	calls := newProjectCalls(t, em, logins)
	l := &liveServer{
		url: em.URL(), client: &http.Client{Transport: calls}, bot: botToken, reviewer: reviewerToken, stranger: strangerLogin,
		team: forge.Team{Organisation: "people", Name: "sre"}, hooks: true,
	}
	l.run(t)
	if calls.made < 30 || len(calls.left) > 0 {
		t.Errorf("%d projects were made, and these are left: %v", calls.made, calls.left)
	}
}

// liveServer is a GitLab of which only the API is used.
type liveServer struct {
	url           string
	client        *http.Client // of what is done beside the driver
	bot, reviewer string       // tokens of two accounts
	stranger      string       // the login of a third one
	team          forge.Team   // the zero value: there is none
	hooks         bool         // its webhooks reach this machine
	projects      atomic.Int64
}

type liveUser struct {
	ID          int64
	Username    string
	PublicEmail string `json:"public_email"`
}

func (l *liveServer) call(t *testing.T, token, method, path string, body, out any) {
	t.Helper()
	callGitLab(t, l.client, l.url, token, method, path, body, out)
}

func (l *liveServer) run(t *testing.T) {
	var bot, reviewer liveUser
	l.call(t, l.bot, http.MethodGet, "user", nil, &bot)
	l.call(t, l.reviewer, http.MethodGet, "user", nil, &reviewer)
	if bot.ID == reviewer.ID {
		t.Fatalf("both tokens are of %s: the reviewer must be another account", bot.Username)
	}
	if reviewer.PublicEmail == "" {
		t.Fatalf("%s has no public email, by which GitLab finds an author: set one in its profile", reviewer.Username)
	}
	run := strconv.FormatInt(time.Now().UnixNano(), 36)
	newRepository := func(t *testing.T, method string) *forgetest.Repository {
		r := forge.Repo{Owner: bot.Username, Name: fmt.Sprintf("liftlock-contract-%s-%d", run, l.projects.Add(1))}
		l.call(t, l.bot, http.MethodPost, "projects", jsonObject{
			"name": r.Name, "path": r.Name, "visibility": "private", "initialize_with_readme": true, "default_branch": "main",
			"merge_method": method, "squash_option": "default_off",
		}, nil)
		l.deleteLater(t, l.bot, r.String())
		p := &liveProject{server: l, testProject: testProject{url: l.url, client: l.client, repo: r, bot: l.bot, reviewer: l.reviewer}}
		p.call(t, l.bot, http.MethodPost, r.String(), "/members", jsonObject{"user_id": reviewer.ID, "access_level": 30}, nil)
		made := &forgetest.Repository{
			Repo:          r,
			Forge:         newDriver(t, l.url, l.bot),
			Reviewer:      newDriver(t, l.url, l.reviewer),
			Stranger:      l.stranger,
			Nobody:        "nobody-" + run,
			Team:          l.team,
			ReviewerEmail: reviewer.PublicEmail,
			Review:        p.review,
			Requested:     p.requested,
			RemoveRequest: p.removeRequest,
			Fork:          func(t *testing.T, branch string) int { return p.fork(t, reviewer.Username, branch) },
		}
		if l.hooks {
			made.Hooks, made.AddHook = p.hooks, p.addHook
		}
		return made
	}
	forgetest.Run(t, forgetest.Backend{
		Type:          webhooks.GitLab,
		Timeout:       time.Minute,
		WithBadToken:  func(t *testing.T) forge.Forge { return newDriver(t, l.url, "no-such-token") },
		NewRepository: func(t *testing.T) *forgetest.Repository { return newRepository(t, "merge") },
		NewRepositoryFor: func(t *testing.T, method string) *forgetest.Repository {
			if method == "rebase" {
				return newRepository(t, "ff")
			}
			return newRepository(t, "merge")
		},
		Differences: differences,
	})
}

// deleteLater deletes a project when the case is over.
func (l *liveServer) deleteLater(t *testing.T, token, project string) {
	t.Cleanup(func() { l.call(t, token, http.MethodDelete, "projects/"+url.PathEscape(project), nil, nil) })
}

type liveProject struct {
	testProject
	server *liveServer
}

// review approves. A case that needs another verdict is skipped: GitLab's API has no call for it.
func (l *liveProject) review(t *testing.T, number int, v forgetest.Verdict, commit string) {
	t.Helper()
	if v != forgetest.Approve {
		t.Skipf("the verdict %q can only be given on the emulator: GitLab's API has no call for it", v)
	}
	at := fmt.Sprintf("/merge_requests/%d", number)
	var shown struct {
		Has bool `json:"user_has_approved"`
	}
	l.call(t, l.reviewer, http.MethodGet, l.repo.String(), at+"/approvals", nil, &shown)
	if shown.Has { // nobody approves twice
		l.call(t, l.reviewer, http.MethodPost, l.repo.String(), at+"/unapprove", nil, nil)
	}
	l.call(t, l.reviewer, http.MethodPost, l.repo.String(), at+"/approve", jsonObject{"sha": commit}, nil)
}

// fork is the reviewer's: the stranger can't see the project.
func (l *liveProject) fork(t *testing.T, owner, branch string) int {
	t.Helper()
	name := owner + "/" + l.repo.Name
	l.call(t, l.reviewer, http.MethodPost, l.repo.String(), "/fork", nil, nil)
	l.server.deleteLater(t, l.reviewer, name)
	l.awaitFork(t, name)
	l.call(t, l.reviewer, http.MethodPost, name, "/repository/commits", jsonObject{
		"branch": branch, "start_branch": "main", "commit_message": "from a fork",
		"actions": []jsonObject{{"action": "create", "file_path": "fork.txt", "content": "fork\n"}},
	}, nil)
	var target, made struct{ ID, IID int64 }
	l.call(t, l.reviewer, http.MethodGet, l.repo.String(), "", nil, &target)
	l.call(t, l.reviewer, http.MethodPost, name, "/merge_requests", jsonObject{
		"title": "from a fork", "source_branch": branch, "target_branch": "main", "target_project_id": target.ID,
	}, &made)
	return int(made.IID)
}

// awaitFork waits until GitLab has copied the project, which it does in its own time.
func (l *liveProject) awaitFork(t *testing.T, name string) {
	t.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	end := time.NewTimer(time.Minute)
	defer end.Stop()
	for {
		var shown struct {
			Import string `json:"import_status"`
		}
		l.call(t, l.reviewer, http.MethodGet, name, "", nil, &shown)
		if shown.Import == "none" || shown.Import == "finished" {
			return
		}
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("the fork %s: GitLab's copying is still %s after a minute", name, shown.Import)
		}
	}
}

// projectCalls stands before the emulator with the calls of GitLab's that it doesn't have: those
// that make, share, fork and delete projects and commit to them. All others go to the emulator.
type projectCalls struct {
	t      *testing.T
	em     *emulator.Forge
	logins map[string]string // by token
	routes *http.ServeMux

	mu   sync.Mutex
	made int
	left map[string]bool // made and not deleted, by full name
}

func newProjectCalls(t *testing.T, em *emulator.Forge, logins map[string]string) *projectCalls {
	c := &projectCalls{t: t, em: em, logins: logins, routes: http.NewServeMux(), left: map[string]bool{}}
	const projects = "/api/v4/projects"
	for pattern, do := range map[string]func(project, login string, in jsonObject) error{
		"POST " + projects:                              c.create,
		"DELETE " + projects + "/{id}":                  c.remove,
		"POST " + projects + "/{id}/members":            c.share,
		"POST " + projects + "/{id}/fork":               c.fork,
		"POST " + projects + "/{id}/repository/commits": c.commit,
	} {
		c.routes.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			in := jsonObject{}
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil && !errors.Is(err, io.EOF) {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if err := do(r.PathValue("id"), c.logins[r.Header.Get("PRIVATE-TOKEN")], in); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			w.WriteHeader(http.StatusCreated)
		})
	}
	return c
}

func (p *projectCalls) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, pattern := p.routes.Handler(r); pattern == "" {
		return http.DefaultTransport.RoundTrip(r)
	}
	w := httptest.NewRecorder()
	p.routes.ServeHTTP(w, r)
	return w.Result(), nil
}

func (p *projectCalls) create(_, login string, in jsonObject) error {
	if in["path"] == "" || in["initialize_with_readme"] != true || in["visibility"] != "private" {
		return fmt.Errorf("not a project of the contract's: %v", in)
	}
	name := fmt.Sprintf("%s/%s", login, in["path"])
	p.made, p.left[name] = p.made+1, true
	return p.em.CreateRepo(name, emulator.RepoOptions{
		Branch: fmt.Sprint(in["default_branch"]), Author: login, Files: map[string]string{"README.md": "# fleet\n"},
		GitLab: emulator.GitLabProject{MergeMethod: fmt.Sprint(in["merge_method"]), Squash: fmt.Sprint(in["squash_option"])},
	})
}

func (p *projectCalls) remove(project, login string, _ jsonObject) error {
	if !p.left[project] || !strings.HasPrefix(project, login+"/") {
		return fmt.Errorf("%s can't delete %s", login, project)
	}
	delete(p.left, project)
	return nil
}

func (p *projectCalls) share(project, _ string, in jsonObject) error {
	if in["access_level"] != 30.0 {
		return fmt.Errorf("access_level is %v, want a Developer's", in["access_level"])
	}
	var with liveUser
	callGitLab(p.t, http.DefaultClient, p.em.URL(), botToken, http.MethodGet, fmt.Sprintf("users/%v", in["user_id"]), nil, &with)
	return p.em.Grant(project, with.Username, emulator.Write)
}

func (p *projectCalls) fork(project, login string, _ jsonObject) error {
	name, err := p.em.Fork(project, login)
	if err == nil {
		p.made, p.left[name] = p.made+1, true
	}
	return err
}

func (p *projectCalls) commit(project, login string, in jsonObject) error {
	files := map[string]string{}
	actions, _ := in["actions"].([]any)
	for _, a := range actions {
		a, _ := a.(jsonObject)
		files[fmt.Sprint(a["file_path"])] = fmt.Sprint(a["content"])
	}
	_, err := p.em.CommitAs(project, login, fmt.Sprint(in["branch"]), fmt.Sprint(in["commit_message"]), files)
	return err
}
