package story

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// The releases of the story.
const (
	GoodTag = "1.1.0"
	BadTag  = "1.2.0-broken-in-qa"
	// LeftTag is left to whoever looks on, and breaks once it is approved.
	LeftTag = "1.3.0-broken-in-prod"
)

// pollInterval is how often the story looks whether a step was reached.
const pollInterval = 20 * time.Millisecond

// Narrator is told what happens.
type Narrator func(who, what string)

// Story is one telling.
type Story struct {
	Fixture *Fixture
	Narrate Narrator
	// State says what the server makes of an environment now.
	State func(ctx context.Context, env string) (*api.Environment, error)
	// Wait is how long a step may take; the pace's own when 0.
	Wait time.Duration
}

// StepError names the step that was not reached, with the last that was seen.
type StepError struct {
	Step, Seen string
	Err        error
}

// Error says which step it was.
func (se *StepError) Error() string {
	s := "the story stopped: not reached: " + se.Step
	if se.Seen != "" {
		s += "; last seen: " + se.Seen
	}
	if se.Err != nil {
		s += ": " + se.Err.Error()
	}
	return s
}

// Unwrap gives the cause.
func (se *StepError) Unwrap() error { return se.Err }

// Run tells the whole story. The error is a *StepError that names the first step
// that was not reached.
func (s *Story) Run(ctx context.Context) error {
	for _, part := range []func(context.Context) error{s.AwaitNothingToDo, s.GoodRelease, s.BadRelease} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pullName is how people name a pull request on the story's forge.
func (s *Story) pullName(number int) string { return s.Fixture.Forge.PullName(number) }

// AwaitNothingToDo waits until the server has looked and found nothing to do.
func (s *Story) AwaitNothingToDo(ctx context.Context) error {
	err := s.awaitStep(ctx, "liftlock looks at the repository and finds nothing to promote", func() (bool, string, error) {
		st, err := s.State(ctx, "prod")
		if err != nil || st == nil {
			return false, fmt.Sprint(err), nil
		}
		return st.State == promotion.Baseline, st.State + ": " + st.Reason, nil
	})
	if err != nil {
		return err
	}
	s.Narrate("liftlock", "dev, qa and prod all run web 1.0.0; nothing to promote")
	return nil
}

// GoodRelease goes from a push to the registry, with which it comes into dev by itself, to prod.
func (s *Story) GoodRelease(ctx context.Context) error {
	if err := s.pushRelease(ctx, GoodTag); err != nil {
		return err
	}
	qa, err := s.awaitPromotion(ctx, "qa", GoodTag)
	if err != nil {
		return err
	}
	if err := s.awaitMerge(ctx, qa, "by itself: its gates pass"); err != nil {
		return err
	}
	if err := s.awaitVerified(ctx, "qa", GoodTag); err != nil {
		return err
	}
	prod, err := s.awaitPromotion(ctx, "prod", GoodTag)
	if err != nil {
		return err
	}
	if err := s.checkApprovalsAwaited(ctx, prod); err != nil {
		return err
	}
	if err := s.awaitNotification(ctx, "waiting"); err != nil {
		return err
	}
	if err := s.checkGates(ctx); err != nil {
		return err
	}
	for _, who := range []string{FirstApprover, SecondApprover} {
		if err := s.Fixture.Forge.Approve(Repo, prod.Number, who); err != nil {
			return &StepError{Step: who + " approves prod's pull request", Err: err}
		}
		s.Narrate(who, fmt.Sprintf("approves %s", s.pullName(prod.Number)))
	}
	if err := s.awaitMerge(ctx, prod, "with two approvals, in its window, after the soak"); err != nil {
		return err
	}
	return s.awaitVerified(ctx, "prod", GoodTag)
}

// LeaveWork releases once more, and leaves it where it waits for people: the open promotion into prod. Once they
// approve it, it breaks there.
func (s *Story) LeaveWork(ctx context.Context) (*emulator.PullRequest, error) {
	if err := s.commitRelease(LeftTag, BadTag); err != nil {
		return nil, err
	}
	qa, err := s.awaitPromotion(ctx, "qa", LeftTag)
	if err != nil {
		return nil, err
	}
	if err := s.awaitMerge(ctx, qa, "by itself: its gates pass"); err != nil {
		return nil, err
	}
	if err := s.awaitVerified(ctx, "qa", LeftTag); err != nil {
		return nil, err
	}
	prod, err := s.awaitPromotion(ctx, "prod", LeftTag)
	if err != nil {
		return nil, err
	}
	return prod, s.checkApprovalsAwaited(ctx, prod)
}

// ApproveWork has prod's approvers approve what LeaveWork left, and waits until it has broken prod and its revert is open,
// which is a person's to merge.
func (s *Story) ApproveWork(ctx context.Context, left *emulator.PullRequest) (*emulator.PullRequest, error) {
	for _, who := range []string{FirstApprover, SecondApprover} {
		if err := s.Fixture.Forge.Approve(Repo, left.Number, who); err != nil {
			return nil, &StepError{Step: who + " approves prod's pull request", Err: err}
		}
		s.Narrate(who, fmt.Sprintf("approves %s", s.pullName(left.Number)))
	}
	if err := s.awaitMerge(ctx, left, "with two approvals"); err != nil {
		return nil, err
	}
	revert, err := s.awaitPull(ctx, "prod degrades and a revert opens", promotion.RevertPrefix,
		func(p *emulator.PullRequest) bool { return strings.Contains(p.Title, LeftTag) })
	if err == nil {
		s.Narrate("liftlock", fmt.Sprintf("opens the revert %s: %s", s.pullName(revert.Number), findCall(revert.Body)))
	}
	return revert, err
}

// MergeWork has an approver merge the revert of what was left, and waits until prod is well.
func (s *Story) MergeWork(ctx context.Context, revert *emulator.PullRequest) error {
	if _, err := s.Fixture.Forge.MergePull(Repo, revert.Number, FirstApprover, "merge"); err != nil {
		return &StepError{Step: FirstApprover + " merges the revert", Err: err}
	}
	s.Narrate(FirstApprover, fmt.Sprintf("merges %s", s.pullName(revert.Number)))
	return s.awaitVerified(ctx, "prod", GoodTag)
}

// findCall is what a revert's body begins with: its first paragraph, without what is
// hidden and without marks; empty where that isn't in bold, as a call is.
func findCall(body string) string {
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "<!--") {
			continue
		}
		inner, bold := strings.CutPrefix(line, "**")
		if inner, closed := strings.CutSuffix(inner, "**"); bold && closed {
			return strings.ReplaceAll(inner, "\\", "")
		}
		break
	}
	return ""
}

// BadRelease only fails in qa, and comes back from there.
func (s *Story) BadRelease(ctx context.Context) error {
	before, _, err := s.Fixture.Forge.File(Repo, Branch, Kustomization("qa"))
	if err != nil {
		return err
	}
	if err := s.commitRelease(BadTag, GoodTag); err != nil {
		return err
	}
	qa, err := s.awaitPromotion(ctx, "qa", BadTag)
	if err != nil {
		return err
	}
	if err := s.awaitMerge(ctx, qa, "by itself: dev was healthy with it"); err != nil {
		return err
	}
	revert, err := s.awaitPull(ctx, "qa degrades and a revert opens", promotion.RevertPrefix,
		func(p *emulator.PullRequest) bool { return true })
	if err != nil {
		return err
	}
	if !strings.Contains(revert.Body, "web-qa") || !strings.Contains(revert.Body, "Degraded") {
		return &StepError{Step: "the revert carries evidence", Seen: revert.Body}
	}
	call := findCall(revert.Body)
	if !strings.HasPrefix(call, "qa is down since ") || !strings.HasSuffix(call, "to bring "+GoodTag+" back.") {
		return &StepError{Step: "the revert's body begins with what is down, and what the merge brings back", Seen: revert.Body}
	}
	if !strings.Contains(revert.Body, "- **Cause:** Deployment web: 0 of 2 pods ready: ImagePullBackOff") {
		return &StepError{Step: "the revert's evidence begins with the cause", Seen: revert.Body}
	}
	s.Narrate("argo cd", "web-qa is Degraded: the new pods never get ready")
	s.Narrate("liftlock", fmt.Sprintf("opens the revert %s with the evidence, quarantines %s", s.pullName(revert.Number), BadTag))
	s.Narrate("liftlock", fmt.Sprintf("%s begins: %s", s.pullName(revert.Number), call))
	if err := s.awaitNotification(ctx, "degraded"); err != nil {
		return err
	}
	if err := s.awaitMerge(ctx, revert, "by itself (onDegraded: revert-and-merge)"); err != nil {
		return err
	}
	if err := s.awaitVerified(ctx, "qa", GoodTag); err != nil {
		return err
	}
	after, _, err := s.Fixture.Forge.File(Repo, Branch, Kustomization("qa"))
	if err != nil {
		return err
	}
	if before != after {
		return &StepError{Step: "the revert restores qa's overlay byte for byte", Seen: after}
	}
	s.Narrate("git", "qa's overlay is byte for byte what it was before the promotion")
	return s.checkNeverInProd(ctx)
}

// checkNeverInProd holds that prod had no pull request with the bad release.
func (s *Story) checkNeverInProd(ctx context.Context) error {
	err := s.awaitStep(ctx, "prod says why the release doesn't come", func() (bool, string, error) {
		st, err := s.State(ctx, "prod")
		if err != nil || st == nil {
			return false, fmt.Sprint(err), nil
		}
		return st.State == promotion.Verified && (st.Incoming == nil || st.Incoming.Pull == nil),
			fmt.Sprintf("%s: %s", st.State, st.Reason), nil
	})
	if err != nil {
		return err
	}
	all, err := s.Fixture.Forge.Pulls(Repo)
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.Branch == promotion.Branch(Pipeline, "prod", Component) && strings.Contains(p.Title+p.Body, BadTag) {
			return &StepError{Step: "prod never has a pull request for " + BadTag,
				Seen: fmt.Sprintf("%s %s", s.pullName(p.Number), p.Title)}
		}
	}
	s.Narrate("liftlock", fmt.Sprintf("prod never had a pull request for %s and still runs %s", BadTag, GoodTag))
	return nil
}

// pushRelease is a build of the application that pushes its image, and touches no other repository. It holds that Liftlock
// commits exactly that to dev.
func (s *Story) pushRelease(ctx context.Context, tag string) error {
	built, err := s.Fixture.Forge.LandAs(application, Author, Branch, "Release "+tag,
		map[string]string{"main.go": "package main // " + tag + "\n"})
	if err == nil {
		err = s.Fixture.pushImage(ctx, tag)
	}
	if err != nil {
		return &StepError{Step: "an image is pushed to the registry", Err: err}
	}
	s.Narrate(Author, fmt.Sprintf("builds %s of %s and pushes %s/%s:%s; nobody touches %s", wording.Short(built), application,
		s.Fixture.Registry.Host, Component, tag, Repo))
	commit := ""
	err = s.awaitStep(ctx, "liftlock brings "+tag+" into dev", func() (bool, string, error) {
		st, err := s.State(ctx, "dev")
		if err != nil || st == nil {
			return false, fmt.Sprint(err), nil
		}
		commit = st.Commit
		return st.Name == tag && commit != "", fmt.Sprintf("dev carries %s: %s, %s", st.Name, st.State, st.Reason), nil
	})
	if err != nil {
		return err
	}
	s.Narrate("liftlock", fmt.Sprintf("finds it there by dev's rule (semver: \">=1.0.0\"), and commits it to dev (%s)",
		wording.Short(commit)))
	return s.checkDiscovered(ctx, tag, commit)
}

// commitRelease is a build job's commit into dev.
func (s *Story) commitRelease(tag, from string) error {
	file := Kustomization("dev")
	text, ok, err := s.Fixture.Forge.File(Repo, Branch, file)
	if err != nil || !ok {
		return &StepError{Step: "a change lands in dev", Err: err}
	}
	commit, err := s.Fixture.Forge.LandAs(Repo, Author, Branch, "Release web "+tag+" to dev",
		map[string]string{file: strings.Replace(text, "newTag: "+from, "newTag: "+tag, 1)})
	if err != nil {
		return &StepError{Step: "a change lands in dev", Err: err}
	}
	s.Narrate(Author, fmt.Sprintf("releases web %s to dev (%s)", tag, wording.Short(commit)))
	return nil
}

// awaitPromotion waits for the promotion of a release into an environment, and holds that
// it changes one line of one file.
func (s *Story) awaitPromotion(ctx context.Context, env, tag string) (*emulator.PullRequest, error) {
	branch := promotion.Branch(Pipeline, env, Component)
	p, err := s.awaitPull(ctx, fmt.Sprintf("%s's pull request opens with %s", env, tag), branch,
		func(p *emulator.PullRequest) bool { return strings.Contains(p.Title, tag) })
	if err != nil {
		return nil, err
	}
	s.Narrate("liftlock", fmt.Sprintf("%s is healthy with %s; opens %s: %s", map[string]string{"qa": "dev", "prod": "qa"}[env], tag,
		s.pullName(p.Number), p.Title))
	return p, nil
}

func (s *Story) awaitPull(ctx context.Context, step, branch string, match func(*emulator.PullRequest) bool) (*emulator.PullRequest, error) {
	var found *emulator.PullRequest
	err := s.awaitStep(ctx, step, func() (bool, string, error) {
		all, err := s.Fixture.Forge.Pulls(Repo)
		if err != nil {
			return false, "", err
		}
		var titles []string
		for i := range all {
			p := &all[i]
			titles = append(titles, fmt.Sprintf("%s %s", s.pullName(p.Number), p.Title))
			if strings.HasPrefix(p.Branch, branch) && match(p) {
				found = p
			}
		}
		return found != nil, strings.Join(titles, ", "), nil
	})
	return found, err
}

// checkApprovalsAwaited holds that prod's pull request is not merged without its approvals.
func (s *Story) checkApprovalsAwaited(ctx context.Context, p *emulator.PullRequest) error {
	err := s.awaitStep(ctx, fmt.Sprintf("%s says that it waits for two approvals", s.pullName(p.Number)), func() (bool, string, error) {
		now, err := s.Fixture.Forge.Pull(Repo, p.Number)
		if err != nil {
			return false, "", err
		}
		for _, st := range now.Statuses {
			if st.Context == "liftlock" && st.State == "pending" && strings.Contains(st.Description, "(0 of 2)") {
				return true, "", nil
			}
		}
		return false, fmt.Sprintf("%+v", now.Statuses), nil
	})
	if err != nil {
		return err
	}
	s.Narrate("liftlock", fmt.Sprintf("%s waits for two approvals (commit status liftlock: pending)", s.pullName(p.Number)))
	return nil
}

// checkGates tells of prod's other gates: each passes, or says what it waits for.
func (s *Story) checkGates(ctx context.Context) error {
	said := map[string]string{}
	err := s.awaitStep(ctx, "prod's window and soak say how they stand", func() (bool, string, error) {
		st, err := s.State(ctx, "prod")
		if err != nil || st == nil || st.Incoming == nil {
			return false, fmt.Sprint(err), nil
		}
		for _, g := range st.Incoming.Gates {
			said[g.Gate] = g.Reason
		}
		return said["window"] != "" && said["soak"] != "", fmt.Sprint(said), nil
	})
	if err != nil {
		return err
	}
	for _, gate := range []string{"window", "soak"} {
		s.Narrate("liftlock", gate+": "+said[gate])
	}
	return nil
}

// awaitNotification waits until the channel was told, where there is one.
func (s *Story) awaitNotification(ctx context.Context, word string) error {
	c := s.Fixture.channel
	if c == nil {
		return nil
	}
	err := s.awaitStep(ctx, "the channel is told: "+word, func() (bool, string, error) { return c.message(word) != "", "", nil })
	if err != nil {
		return err
	}
	s.Narrate("channel", word+": "+c.message(word))
	return nil
}

// awaitMerge waits for a merge, and holds that what landed is one line of one file.
func (s *Story) awaitMerge(ctx context.Context, p *emulator.PullRequest, how string) error {
	step := fmt.Sprintf("%s (%s) merges", s.pullName(p.Number), p.Title)
	var now emulator.PullRequest
	err := s.awaitStep(ctx, step, func() (bool, string, error) {
		var err error
		now, err = s.Fixture.Forge.Pull(Repo, p.Number)
		var last string
		for _, c := range now.Comments {
			last = c.Body
		}
		return now.Merged, last, err
	})
	if err != nil {
		return err
	}
	s.Narrate("liftlock", fmt.Sprintf("merges %s %s", s.pullName(p.Number), how))
	return s.checkOneLine(ctx, &now)
}

// awaitVerified waits until the server has verified a release in an environment.
func (s *Story) awaitVerified(ctx context.Context, env, tag string) error {
	err := s.awaitStep(ctx, fmt.Sprintf("%s is verified with %s", env, tag), func() (bool, string, error) {
		st, err := s.State(ctx, env)
		if err != nil || st == nil {
			return false, fmt.Sprint(err), nil
		}
		return st.State == promotion.Verified &&
			strings.Contains(st.Name, tag), fmt.Sprintf("%s carries %s: %s, %s", env, st.Name, st.State, st.Reason), nil
	})
	if err != nil {
		return err
	}
	s.Narrate("argo cd", fmt.Sprintf("%s-%s is synced to that commit and healthy with %s", Component, env, tag))
	return nil
}

// awaitStep looks until the step is reached, or it took too long.
func (s *Story) awaitStep(ctx context.Context, step string, reached func() (bool, string, error)) error {
	wait := s.Wait
	if wait == 0 {
		wait = s.Fixture.timings.Wait
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		ok, seen, err := reached()
		if err != nil {
			return &StepError{Step: step, Seen: seen, Err: err}
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return &StepError{Step: step, Seen: seen, Err: ctx.Err()}
		case <-tick.C:
		}
	}
}
