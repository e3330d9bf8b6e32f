package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/emulator"
	"github.com/liftlock/liftlock/internal/promotion"
)

// get asks the server and decodes its JSON.
func (s *scene) get(path string, v any) (int, error) {
	res, err := http.Get(s.url + path)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return res.StatusCode, errors.Join(err, fmt.Errorf("GET %s: HTTP %d: %.300s", path, res.StatusCode, body))
	}
	return res.StatusCode, json.Unmarshal(body, v)
}

// text asks the server for a plain page.
func (s *scene) text(path string) (int, string) {
	res, err := http.Get(s.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(body)
}

// post sends a command to the API.
func (s *scene) post(token, path string, body any) (int, string) {
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
	defer res.Body.Close() //nolint:errcheck // it was read
	answer, err := io.ReadAll(res.Body)
	s.must("read the answer", err)
	return res.StatusCode, string(answer)
}

// env is what the API says of an environment; nil with what it answered instead.
func (s *scene) env(component, env string) (*api.WhyHere, string) {
	q := url.Values{"pipeline": {"shop"}, "component": {component}, "environment": {env}}
	var why api.Why
	if _, err := s.get("/api/v1/why?"+q.Encode(), &why); err != nil {
		return nil, err.Error()
	}
	if len(why.Environments) != 1 {
		return nil, fmt.Sprintf("%d environments", len(why.Environments))
	}
	e := &why.Environments[0]
	return e, fmt.Sprintf("%s (by %s, %+v)", e.Text, e.LandedBy, e.Incoming)
}

// is waits until the API says something of an environment.
func (s *scene) is(component, env, what string, ok func(*api.WhyHere) bool) *api.WhyHere {
	s.t.Helper()
	var found *api.WhyHere
	s.until(fmt.Sprintf("%s in %s: %s", component, env, what), func() (bool, string) {
		e, seen := s.env(component, env)
		if e == nil || !ok(e) {
			return false, seen
		}
		found = e
		return true, seen
	})
	return found
}

// verified waits until an environment has verified a release.
func (s *scene) verified(component, env, tag string) {
	s.t.Helper()
	s.is(component, env, "verified with "+tag, func(e *api.WhyHere) bool {
		return e.State == promotion.Verified && strings.Contains(e.Name, tag)
	})
}

// says waits until the API's words about an environment have a text in them.
func (s *scene) says(component, env, text string) *api.WhyHere {
	s.t.Helper()
	return s.is(component, env, "says "+text, func(e *api.WhyHere) bool { return strings.Contains(e.Text, text) })
}

// pulls are all pull requests of ours into an environment, oldest first.
func (s *scene) pulls(component, env string) []emulator.PullRequest {
	s.t.Helper()
	all, err := s.Forge.Pulls(repoName)
	s.must("list the pull requests", err)
	return slices.DeleteFunc(all, func(p emulator.PullRequest) bool {
		return p.Branch != promotion.Branch("shop", env, component) || p.Author != bot
	})
}

// reverts are all reverts of ours in an environment.
func (s *scene) reverts(component, env string) []emulator.PullRequest {
	s.t.Helper()
	all, err := s.Forge.Pulls(repoName)
	s.must("list the pull requests", err)
	return slices.DeleteFunc(all, func(p emulator.PullRequest) bool {
		return !strings.HasPrefix(p.Branch, promotion.RevertPrefix+"shop/"+env+"/"+component+"/")
	})
}

// pull reads a pull request.
func (s *scene) pull(number int) emulator.PullRequest {
	s.t.Helper()
	p, err := s.Forge.Pull(repoName, number)
	s.must("read a pull request", err)
	return p
}

// opened waits for the open promotion of a release into an environment.
func (s *scene) opened(component, env, tag string) emulator.PullRequest {
	s.t.Helper()
	var found emulator.PullRequest
	s.until(fmt.Sprintf("%s %s opens in %s", component, tag, env), func() (bool, string) {
		var seen []string
		for _, p := range s.pulls(component, env) {
			seen = append(seen, fmt.Sprintf("#%d %s open=%t", p.Number, p.Title, p.Open))
			if p.Open && strings.Contains(p.Title, tag) {
				found = p
				return true, ""
			}
		}
		_, why := s.env(component, env)
		return false, strings.Join(seen, ", ") + "; " + why
	})
	return found
}

// merged waits until a pull request is merged.
func (s *scene) merged(number int) emulator.PullRequest {
	s.t.Helper()
	return s.pullIs(number, "is merged", func(p *emulator.PullRequest) bool { return p.Merged })
}

// pullIs waits until a pull request is as wanted.
func (s *scene) pullIs(number int, what string, ok func(*emulator.PullRequest) bool) emulator.PullRequest {
	s.t.Helper()
	var p emulator.PullRequest
	s.until(fmt.Sprintf("#%d %s", number, what), func() (bool, string) {
		p = s.pull(number)
		return ok(&p), fmt.Sprintf("open=%t merged=%t title=%q labels=%v head=%.12s statuses=%+v", p.Open, p.Merged, p.Title, p.Labels, p.Head, p.Statuses)
	})
	return p
}

// statusOf is the commit status liftlock on a commit; empty without one.
func statusOf(all []emulator.Status) emulator.Status {
	for _, st := range all {
		if st.Context == "liftlock" {
			return st
		}
	}
	return emulator.Status{}
}

// statusAt waits for the commit status liftlock on a commit.
func (s *scene) statusAt(commit, state, text string) {
	s.t.Helper()
	s.until(fmt.Sprintf("the status of %.12s is %s: %s", commit, state, text), func() (bool, string) {
		all, err := s.Forge.Statuses(repoName, commit)
		s.must("read the statuses", err)
		st := statusOf(all)
		return st.State == state && strings.Contains(st.Description, text), fmt.Sprintf("%+v", all)
	})
}

var newTag = regexp.MustCompile(`newTag: \S+`)

// release is a build job's commit into dev.
func (s *scene) release(component, tag string) string {
	s.t.Helper()
	return s.edit("linus", component, "dev", tag)
}

// edit is a person's change of what an environment carries, where it lives.
func (s *scene) edit(login, component, env, tag string) string {
	s.t.Helper()
	return s.editOn(login, s.branch(env), component, env, tag)
}

func (s *scene) editOn(login, branch, component, env, tag string) string {
	s.t.Helper()
	file := s.overlay(component, env) + "/kustomization.yaml"
	text, ok, err := s.Forge.File(repoName, s.branch(env), file)
	if err != nil || !ok {
		s.t.Fatalf("read %s: %t %v", file, ok, err)
	}
	return s.commit(login, branch, "Set "+component+" to "+tag+" in "+env, map[string]string{file: newTag.ReplaceAllString(text, "newTag: "+tag)})
}

func (s *scene) commit(login, branch, message string, files map[string]string) string {
	s.t.Helper()
	sha, err := s.Forge.CommitAs(repoName, login, branch, message, files)
	s.must("commit", err)
	return sha
}

// comment writes a comment and returns its id.
func (s *scene) comment(number int, login, body string) int64 {
	s.t.Helper()
	id, err := s.Forge.Comment(repoName, number, login, body)
	s.must("comment", err)
	return id
}

// reacted waits for our reaction to a comment and gives the answer to it, empty
// without one.
func (s *scene) reacted(number int, id int64, content string) string {
	s.t.Helper()
	answer := ""
	s.until(fmt.Sprintf("comment %d on #%d gets the reaction %s", id, number, content), func() (bool, string) {
		p := s.pull(number)
		answer = answerTo(&p, id)
		for _, c := range p.Comments {
			if c.ID == id {
				return slices.Contains(c.Reactions, bot+" "+content), fmt.Sprintf("%v, answer %q", c.Reactions, answer)
			}
		}
		return false, "no such comment"
	})
	return answer
}

func answerTo(p *emulator.PullRequest, id int64) string {
	for _, c := range p.Comments {
		if c.User == bot && strings.HasPrefix(c.Body, fmt.Sprintf("<!-- liftlock:answer id=%d -->", id)) {
			return c.Body
		}
	}
	return ""
}

func (s *scene) approve(number int, login string) {
	s.t.Helper()
	s.must("approve", s.Forge.Approve(repoName, number, login))
}

// calls counts the calls of a kind that reached the forge.
func (s *scene) calls(method, word string) int {
	n := 0
	for route, k := range s.Forge.Calls() {
		if strings.HasPrefix(route, method) && strings.Contains(route, word) {
			n += k
		}
	}
	return n
}

// idle waits until no key is due or running and no webhook is under way.
func (s *scene) idle() {
	s.t.Helper()
	rest := 0
	s.until("the server comes to rest", func() (bool, string) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		s.must("wait for the webhooks", s.Forge.WaitIdle(ctx))
		_, page := s.text("/metrics")
		due, running := metric(page, `liftlock_queue_keys{state="due"}`), metric(page, `liftlock_queue_keys{state="running"}`)
		if due != "0" || running != "0" {
			rest = 0
			return false, fmt.Sprintf("due %s, running %s", due, running)
		}
		rest++
		return rest > 2, "at rest"
	})
}

// metric finds a metric's value on the page of /metrics; empty when it isn't there.
func metric(page, name string) string {
	for line := range strings.Lines(page) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
