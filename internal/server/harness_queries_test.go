package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/emulator"
	"github.com/liftlock/liftlock/internal/promotion"
)

// getJSON asks the server and decodes its JSON.
func (s *harness) getJSON(path string, v any) (int, error) {
	res, err := http.Get(s.url + path)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close() // it was read
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return res.StatusCode, errors.Join(err, fmt.Errorf("GET %s: HTTP %d: %.300s", path, res.StatusCode, body))
	}
	return res.StatusCode, json.Unmarshal(body, v)
}

// getText asks the server for a plain page.
func (s *harness) getText(path string) (int, string) {
	req, err := http.NewRequest(http.MethodGet, s.url+path, nil)
	s.must("make a request", err)
	req.Header.Set("Accept-Encoding", "identity") // /metrics is asked for often, and packing it takes longer than making it
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close() // it was read
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(body)
}

// postCommand sends a command to the API.
func (s *harness) postCommand(token, path string, body any) (int, string) {
	s.t.Helper()
	raw, err := json.Marshal(body)
	s.must("write a body", err)
	req, err := http.NewRequest(http.MethodPost, s.url+path, bytes.NewReader(raw))
	s.must("make a request", err)
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	s.must("POST "+path, err)
	defer res.Body.Close() // it was read
	answer, err := io.ReadAll(res.Body)
	s.must("read the answer", err)
	return res.StatusCode, string(answer)
}

// readEnvironment is what the API says of an environment; nil with what it answered instead.
func (s *harness) readEnvironment(component, env string) (*api.EnvironmentWhy, string) {
	q := url.Values{"pipeline": {"shop"}, "component": {component}, "environment": {env}}
	var why api.Why
	if _, err := s.getJSON("/api/v1/why?"+q.Encode(), &why); err != nil {
		return nil, err.Error()
	}
	if len(why.Environments) != 1 {
		return nil, fmt.Sprintf("%d environments", len(why.Environments))
	}
	e := &why.Environments[0]
	return e, fmt.Sprintf("%s (by %s, %+v)", e.Text, e.LandedBy, e.Incoming)
}

// awaitEnvironment waits until the API says something of an environment.
func (s *harness) awaitEnvironment(component, env, what string, ok func(*api.EnvironmentWhy) bool) *api.EnvironmentWhy {
	s.t.Helper()
	var found *api.EnvironmentWhy
	s.waitFor(fmt.Sprintf("%s in %s: %s", component, env, what), func() (bool, string) {
		e, seen := s.readEnvironment(component, env)
		if e == nil || !ok(e) {
			return false, seen
		}
		found = e
		return true, seen
	})
	return found
}

// awaitVerified waits until an environment has verified a release.
func (s *harness) awaitVerified(component, env, tag string) {
	s.t.Helper()
	s.awaitEnvironment(component, env, "verified with "+tag, func(e *api.EnvironmentWhy) bool {
		return e.State == promotion.Verified && strings.Contains(e.Name, tag)
	})
}

// awaitReason waits until the API's words about an environment have a text in them.
func (s *harness) awaitReason(component, env, text string) *api.EnvironmentWhy {
	s.t.Helper()
	return s.awaitEnvironment(component, env, "says "+text, func(e *api.EnvironmentWhy) bool { return strings.Contains(e.Text, text) })
}

// listPulls are all pull requests of ours into an environment, oldest first.
func (s *harness) listPulls(component, env string) []emulator.PullRequest {
	s.t.Helper()
	all, err := s.ownPulls()
	s.must("list the pull requests", err)
	return slices.DeleteFunc(all, func(p emulator.PullRequest) bool {
		return p.Branch != promotion.Branch("shop", env, component) || p.Author != s.bot
	})
}

// listReverts are all reverts of ours in an environment.
func (s *harness) listReverts(component, env string) []emulator.PullRequest {
	s.t.Helper()
	all, err := s.ownPulls()
	s.must("list the pull requests", err)
	return slices.DeleteFunc(all, func(p emulator.PullRequest) bool {
		return !strings.HasPrefix(p.Branch, promotion.RevertPrefix+"shop/"+env+"/"+component+"/")
	})
}

// readPull reads a pull request.
func (s *harness) readPull(number int) emulator.PullRequest {
	s.t.Helper()
	p, err := s.Forge.Pull(repoName, number)
	s.must("read a pull request", err)
	return p
}

// awaitPromotion waits for the open promotion of a release into an environment.
func (s *harness) awaitPromotion(component, env, tag string) emulator.PullRequest {
	s.t.Helper()
	return s.awaitPromotionEvery(pollInterval, component, env, tag)
}

// awaitPromotionEvery looks less often, or more.
func (s *harness) awaitPromotionEvery(interval time.Duration, component, env, tag string) emulator.PullRequest {
	s.t.Helper()
	var found emulator.PullRequest
	s.waitEvery(interval, fmt.Sprintf("%s %s opens in %s", component, tag, env), func() (bool, string) {
		var seen []string
		for _, p := range s.listPulls(component, env) {
			seen = append(seen, fmt.Sprintf("#%d %s open=%t", p.Number, p.Title, p.Open))
			if p.Open && strings.Contains(p.Title, tag) {
				found = p
				return true, ""
			}
		}
		_, why := s.readEnvironment(component, env)
		return false, strings.Join(seen, ", ") + "; " + why
	})
	return found
}

// awaitMerged waits until a pull request is merged.
func (s *harness) awaitMerged(number int) emulator.PullRequest {
	s.t.Helper()
	return s.awaitPull(number, "is merged", func(p *emulator.PullRequest) bool { return p.Merged })
}

// awaitPull waits until a pull request is as wanted.
func (s *harness) awaitPull(number int, what string, ok func(*emulator.PullRequest) bool) emulator.PullRequest {
	s.t.Helper()
	var p emulator.PullRequest
	s.waitFor(fmt.Sprintf("#%d %s", number, what), func() (bool, string) {
		p = s.readPull(number)
		return ok(&p), fmt.Sprintf("open=%t merged=%t title=%q labels=%v head=%.12s statuses=%+v", p.Open, p.Merged, p.Title, p.Labels, p.Head, p.Statuses)
	})
	return p
}

// liftlockStatus is the commit status liftlock on a commit; empty without one.
func liftlockStatus(all []emulator.Status) emulator.Status {
	for _, st := range all {
		if st.Context == "liftlock" {
			return st
		}
	}
	return emulator.Status{}
}

// awaitStatus waits for the commit status liftlock on a commit.
func (s *harness) awaitStatus(commit, state, text string) {
	s.t.Helper()
	s.waitFor(fmt.Sprintf("the status of %.12s is %s: %s", commit, state, text), func() (bool, string) {
		all, err := s.Forge.Statuses(repoName, commit)
		s.must("read the statuses", err)
		st := liftlockStatus(all)
		return st.State == state && strings.Contains(st.Description, text), fmt.Sprintf("%+v", all)
	})
}

var newTag = regexp.MustCompile(`newTag: \S+`)

// commitRelease is a build job's commit into dev.
func (s *harness) commitRelease(component, tag string) string {
	s.t.Helper()
	return s.editTag("linus", component, "dev", tag)
}

// editTag is a person's change of what an environment carries, where it lives.
func (s *harness) editTag(login, component, env, tag string) string {
	s.t.Helper()
	return s.editTagOn(login, s.branchOf(env), component, env, tag)
}

func (s *harness) editTagOn(login, branch, component, env, tag string) string {
	s.t.Helper()
	file := s.overlayDir(component, env) + "/kustomization.yaml"
	text, ok, err := s.Forge.File(repoName, s.branchOf(env), file)
	if err != nil || !ok {
		s.t.Fatalf("read %s: %t %v", file, ok, err)
	}
	return s.commitFiles(login, branch, "Set "+component+" to "+tag+" in "+env, map[string]string{file: newTag.ReplaceAllString(text, "newTag: "+tag)})
}

func (s *harness) commitFiles(login, branch, message string, files map[string]string) string {
	s.t.Helper()
	commit := s.Forge.CommitAs
	if branch == "main" || slices.Contains(slices.Collect(maps.Values(s.opts.branches)), branch) {
		commit = s.Forge.LandAs
	}
	sha, err := commit(repoName, login, branch, message, files)
	s.must("commit", err)
	return sha
}

// addComment writes a comment and returns its id.
func (s *harness) addComment(number int, login, body string) int64 {
	s.t.Helper()
	id, err := s.Forge.Comment(repoName, number, login, body)
	s.must("comment", err)
	return id
}

// awaitReaction waits for our reaction to a comment and gives the answer to it, empty
// without one.
func (s *harness) awaitReaction(number int, id int64, content string) string {
	s.t.Helper()
	answer := ""
	s.waitFor(fmt.Sprintf("comment %d on #%d gets the reaction %s", id, number, content), func() (bool, string) {
		p := s.readPull(number)
		answer = s.findReply(&p, id)
		for _, c := range p.Comments {
			if c.ID == id {
				return slices.Contains(c.Reactions, s.bot+" "+content), fmt.Sprintf("%v, answer %q", c.Reactions, answer)
			}
		}
		return false, "no such comment"
	})
	return answer
}

func (s *harness) findReply(p *emulator.PullRequest, id int64) string {
	for _, c := range p.Comments {
		if c.User == s.bot && strings.HasPrefix(c.Body, fmt.Sprintf("<!-- liftlock:answer id=%d -->", id)) {
			return c.Body
		}
	}
	return ""
}

func (s *harness) approve(number int, login string) {
	s.t.Helper()
	if s.Forge.Face() == emulator.GitLab {
		// An approval names no commit: it counts for what was there a moment before.
		seen := s.now()
		s.waitFor("a moment has passed", func() (bool, string) { return s.now().Sub(seen) > time.Millisecond, "" })
	}
	s.must("approve", s.Forge.Approve(repoName, number, login))
}

// now is the forge's time.
func (s *harness) now() time.Time {
	if s.opts.clock != nil {
		return s.opts.clock.Now()
	}
	return time.Now()
}

// countCalls counts the calls of a kind that reached the forge.
func (s *harness) countCalls(method, word string) int {
	n := 0
	for route, k := range s.Forge.Calls() {
		if strings.HasPrefix(route, method) && strings.Contains(route, word) {
			n += k
		}
	}
	return n
}

// apiPaths are parts of the addresses of the forge's API, which differ by its face.
type apiPaths struct {
	repositories string // of everything in a repository
	pulls        string // of pull requests
	open, merge  string // the calls that open one and merge one
}

var pathsByFace = map[emulator.Face]apiPaths{
	emulator.GitHub: {repositories: "/repos", pulls: "/pulls", open: "POST /repos/{owner}/{repo}/pulls", merge: "PUT /repos/{owner}/{repo}/pulls/{number}/merge"},
	emulator.GitLab: {repositories: "/projects", pulls: "/merge_requests", open: "POST /projects/{id}/merge_requests", merge: "PUT /projects/{id}/merge_requests/{merge_request_iid}/merge"},
}

func (s *harness) paths() apiPaths { return pathsByFace[s.Forge.Face()] }

// countOpenings counts the calls that were to open a pull request.
func (s *harness) countOpenings() int { return s.Forge.Calls()[s.paths().open] }

// countMerges counts the calls that were to merge one.
func (s *harness) countMerges() int { return s.Forge.Calls()[s.paths().merge] }

// awaitIdle waits until no key is due or running and no webhook is under way.
func (s *harness) awaitIdle() {
	s.t.Helper()
	s.awaitIdleEvery(pollInterval)
}

// awaitIdleEvery looks less often: where there is much, to look takes long itself.
func (s *harness) awaitIdleEvery(interval time.Duration) {
	s.t.Helper()
	rest := 0
	s.waitEvery(interval, "the server comes to rest", func() (bool, string) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		s.must("wait for the webhooks", s.Forge.WaitIdle(ctx))
		_, page := s.getText("/metrics")
		due, running := findMetric(page, `liftlock_queue_keys{state="due"}`), findMetric(page, `liftlock_queue_keys{state="running"}`)
		if due != "0" || running != "0" {
			rest = 0
			return false, fmt.Sprintf("due %s, running %s", due, running)
		}
		rest++
		return rest > 2, "at rest"
	})
}

// findMetric finds a metric's value on the page of /metrics; empty when it isn't there.
func findMetric(page, name string) string {
	for line := range strings.Lines(page) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
