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
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// getJSON asks the server and decodes its JSON.
func (ha *harness) getJSON(path string, v any) (int, error) {
	res, err := http.Get(ha.url + path)
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
func (ha *harness) getText(path string) (int, string) {
	req, err := http.NewRequest(http.MethodGet, ha.url+path, nil)
	ha.must("make a request", err)
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
func (ha *harness) postCommand(token, path string, body any) (int, string) {
	ha.t.Helper()
	raw, err := json.Marshal(body)
	ha.must("write a body", err)
	req, err := http.NewRequest(http.MethodPost, ha.url+path, bytes.NewReader(raw))
	ha.must("make a request", err)
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	ha.must("POST "+path, err)
	defer res.Body.Close() // it was read
	answer, err := io.ReadAll(res.Body)
	ha.must("read the answer", err)
	return res.StatusCode, string(answer)
}

// readEnvironment is what the API says of an environment; nil with what it answered instead.
func (ha *harness) readEnvironment(component, env string) (*api.EnvironmentWhy, string) {
	q := url.Values{"pipeline": {"shop"}, "component": {component}, "environment": {env}}
	var why api.Why
	if _, err := ha.getJSON("/api/v1/why?"+q.Encode(), &why); err != nil {
		return nil, err.Error()
	}
	if len(why.Environments) != 1 {
		return nil, fmt.Sprintf("%d environments", len(why.Environments))
	}
	e := &why.Environments[0]
	return e, fmt.Sprintf("%s (by %s, %+v)", e.Text, e.LandedBy, e.Incoming)
}

// awaitEnvironment waits until the API says something of an environment.
func (ha *harness) awaitEnvironment(component, env, what string, ok func(*api.EnvironmentWhy) bool) *api.EnvironmentWhy {
	ha.t.Helper()
	var found *api.EnvironmentWhy
	ha.waitFor(fmt.Sprintf("%s in %s: %s", component, env, what), func() (bool, string) {
		e, seen := ha.readEnvironment(component, env)
		if e == nil || !ok(e) {
			return false, seen
		}
		found = e
		return true, seen
	})
	return found
}

// awaitVerified waits until an environment has verified a release.
func (ha *harness) awaitVerified(component, env, tag string) {
	ha.t.Helper()
	ha.awaitEnvironment(component, env, "verified with "+tag, func(e *api.EnvironmentWhy) bool {
		return e.State == promotion.Verified && strings.Contains(e.Name, tag)
	})
}

// awaitReason waits until the API's words about an environment have a text in them.
func (ha *harness) awaitReason(component, env, text string) *api.EnvironmentWhy {
	ha.t.Helper()
	return ha.awaitEnvironment(component, env, "says "+text, func(e *api.EnvironmentWhy) bool { return strings.Contains(e.Text, text) })
}

// listPulls are all pull requests of ours into an environment, oldest first.
func (ha *harness) listPulls(component, env string) []emulator.PullRequest {
	ha.t.Helper()
	all, err := ha.ownPulls()
	ha.must("list the pull requests", err)
	return slices.DeleteFunc(all, func(p emulator.PullRequest) bool {
		return p.Branch != promotion.Branch("shop", env, component) || p.Author != ha.bot
	})
}

// listReverts are all reverts of ours in an environment.
func (ha *harness) listReverts(component, env string) []emulator.PullRequest {
	ha.t.Helper()
	all, err := ha.ownPulls()
	ha.must("list the pull requests", err)
	return slices.DeleteFunc(all, func(p emulator.PullRequest) bool {
		return !strings.HasPrefix(p.Branch, promotion.RevertPrefix+"shop/"+env+"/"+component+"/")
	})
}

// readPull reads a pull request.
func (ha *harness) readPull(number int) emulator.PullRequest {
	ha.t.Helper()
	p, err := ha.Forge.Pull(repoName, number)
	ha.must("read a pull request", err)
	return p
}

// awaitPromotion waits for the open promotion of a release into an environment.
func (ha *harness) awaitPromotion(component, env, tag string) emulator.PullRequest {
	ha.t.Helper()
	return ha.awaitPromotionEvery(pollInterval, component, env, tag)
}

// awaitPromotionEvery looks less often, or more.
func (ha *harness) awaitPromotionEvery(interval time.Duration, component, env, tag string) emulator.PullRequest {
	ha.t.Helper()
	var found emulator.PullRequest
	ha.waitEvery(interval, fmt.Sprintf("%s %s opens in %s", component, tag, env), func() (bool, string) {
		var seen []string
		for _, p := range ha.listPulls(component, env) {
			seen = append(seen, fmt.Sprintf("#%d %s open=%t", p.Number, p.Title, p.Open))
			if p.Open && strings.Contains(p.Title, tag) {
				found = p
				return true, ""
			}
		}
		_, why := ha.readEnvironment(component, env)
		return false, strings.Join(seen, ", ") + "; " + why
	})
	return found
}

// awaitMerged waits until a pull request is merged.
func (ha *harness) awaitMerged(number int) emulator.PullRequest {
	ha.t.Helper()
	return ha.awaitPull(number, "is merged", func(p *emulator.PullRequest) bool { return p.Merged })
}

// awaitPull waits until a pull request is as wanted.
func (ha *harness) awaitPull(number int, what string, ok func(*emulator.PullRequest) bool) emulator.PullRequest {
	ha.t.Helper()
	var p emulator.PullRequest
	ha.waitFor(fmt.Sprintf("#%d %s", number, what), func() (bool, string) {
		p = ha.readPull(number)
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
func (ha *harness) awaitStatus(commit, state, text string) {
	ha.t.Helper()
	ha.waitFor(fmt.Sprintf("the status of %.12s is %s: %s", commit, state, text), func() (bool, string) {
		all, err := ha.Forge.Statuses(repoName, commit)
		ha.must("read the statuses", err)
		st := liftlockStatus(all)
		return st.State == state && strings.Contains(st.Description, text), fmt.Sprintf("%+v", all)
	})
}

var newTag = regexp.MustCompile(`newTag: \S+`)

// commitRelease is a build job's commit into dev.
func (ha *harness) commitRelease(component, tag string) string {
	ha.t.Helper()
	return ha.editTag("linus", component, "dev", tag)
}

// editTag is a person's change of what an environment carries, where it lives.
func (ha *harness) editTag(login, component, env, tag string) string {
	ha.t.Helper()
	return ha.editTagOn(login, ha.branchOf(env), component, env, tag)
}

func (ha *harness) editTagOn(login, branch, component, env, tag string) string {
	ha.t.Helper()
	file := ha.overlayDir(component, env) + "/kustomization.yaml"
	text, ok, err := ha.Forge.File(repoName, ha.branchOf(env), file)
	if err != nil || !ok {
		ha.t.Fatalf("read %s: %t %v", file, ok, err)
	}
	return ha.commitFiles(login, branch, "Set "+component+" to "+tag+" in "+env, map[string]string{file: newTag.ReplaceAllString(text, "newTag: "+tag)})
}

func (ha *harness) commitFiles(login, branch, message string, files map[string]string) string {
	ha.t.Helper()
	commit := ha.Forge.CommitAs
	if branch == "main" || slices.Contains(slices.Collect(maps.Values(ha.opts.branches)), branch) {
		commit = ha.Forge.LandAs
	}
	sha, err := commit(repoName, login, branch, message, files)
	ha.must("commit", err)
	return sha
}

// addComment writes a comment and returns its id.
func (ha *harness) addComment(number int, login, body string) int64 {
	ha.t.Helper()
	id, err := ha.Forge.Comment(repoName, number, login, body)
	ha.must("comment", err)
	return id
}

// awaitReaction waits for our reaction to a comment and gives the answer to it, empty
// without one.
func (ha *harness) awaitReaction(number int, id int64, content string) string {
	ha.t.Helper()
	answer := ""
	ha.waitFor(fmt.Sprintf("comment %d on #%d gets the reaction %s", id, number, content), func() (bool, string) {
		p := ha.readPull(number)
		answer = ha.findReply(&p, id)
		for _, c := range p.Comments {
			if c.ID == id {
				return slices.Contains(c.Reactions, ha.bot+" "+content), fmt.Sprintf("%v, answer %q", c.Reactions, answer)
			}
		}
		return false, "no such comment"
	})
	return answer
}

func (ha *harness) findReply(p *emulator.PullRequest, id int64) string {
	for _, c := range p.Comments {
		if c.User == ha.bot && strings.HasPrefix(c.Body, fmt.Sprintf("<!-- liftlock:answer id=%d -->", id)) {
			return c.Body
		}
	}
	return ""
}

func (ha *harness) approve(number int, login string) {
	ha.t.Helper()
	if ha.Forge.Face() == emulator.GitLab {
		// An approval names no commit: it counts for what was there a moment before.
		seen := ha.now()
		ha.waitFor("a moment has passed", func() (bool, string) { return ha.now().Sub(seen) > time.Millisecond, "" })
	}
	ha.must("approve", ha.Forge.Approve(repoName, number, login))
}

// now is the forge's time.
func (ha *harness) now() time.Time {
	if ha.opts.clock != nil {
		return ha.opts.clock.Now()
	}
	return time.Now()
}

// countCalls counts the calls of a kind that reached the forge.
func (ha *harness) countCalls(method, word string) int {
	n := 0
	for route, k := range ha.Forge.Calls() {
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

func (ha *harness) paths() apiPaths { return pathsByFace[ha.Forge.Face()] }

// countOpenings counts the calls that were to open a pull request.
func (ha *harness) countOpenings() int { return ha.Forge.Calls()[ha.paths().open] }

// countMerges counts the calls that were to merge one.
func (ha *harness) countMerges() int { return ha.Forge.Calls()[ha.paths().merge] }

// awaitIdle waits until no key is due or running and no webhook is under way.
func (ha *harness) awaitIdle() {
	ha.t.Helper()
	ha.awaitIdleEvery(pollInterval)
}

// awaitIdleEvery looks less often: where there is much, to look takes long itself.
func (ha *harness) awaitIdleEvery(interval time.Duration) {
	ha.t.Helper()
	rest := 0
	ha.waitEvery(interval, "the server comes to rest", func() (bool, string) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		ha.must("wait for the webhooks", ha.Forge.WaitIdle(ctx))
		_, page := ha.getText("/metrics")
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
