package story

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/emulator"
	"github.com/liftlock/liftlock/internal/promotion"
)

// The releases of the story.
const (
	Good = "1.1.0"
	Bad  = "1.2.0-broken-in-qa"
)

// look is how often the story looks whether a step was reached.
const look = 20 * time.Millisecond

// Teller is told what happens.
type Teller func(who, what string)

// Story is one telling.
type Story struct {
	World *World
	Tell  Teller
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
func (e *StepError) Error() string {
	s := "the story stopped: not reached: " + e.Step
	if e.Seen != "" {
		s += "; last seen: " + e.Seen
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *StepError) Unwrap() error { return e.Err }

// Run tells the whole story. The error is a *StepError that names the first step
// that was not reached.
func (s *Story) Run(ctx context.Context) error {
	for _, part := range []func(context.Context) error{s.Quiet, s.GoodRelease, s.BadRelease} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Quiet waits until the server has looked and found nothing to do.
func (s *Story) Quiet(ctx context.Context) error {
	err := s.until(ctx, "liftlock looks at the repository and finds nothing to promote", func() (bool, string, error) {
		st, err := s.State(ctx, "prod")
		if err != nil || st == nil {
			return false, fmt.Sprint(err), nil
		}
		return st.State == promotion.Baseline, st.State + ": " + st.Reason, nil
	})
	if err != nil {
		return err
	}
	s.Tell("liftlock", "dev, qa and prod all run web 1.0.0; nothing to promote")
	return nil
}

// GoodRelease goes from dev to prod.
func (s *Story) GoodRelease(ctx context.Context) error {
	if err := s.release(Good, "1.0.0"); err != nil {
		return err
	}
	qa, err := s.opened(ctx, "qa", Good)
	if err != nil {
		return err
	}
	if err := s.merged(ctx, qa, "by itself: its gates pass"); err != nil {
		return err
	}
	if err := s.verified(ctx, "qa", Good); err != nil {
		return err
	}
	prod, err := s.opened(ctx, "prod", Good)
	if err != nil {
		return err
	}
	if err := s.waits(ctx, prod); err != nil {
		return err
	}
	for _, who := range []string{First, Second} {
		if err := s.World.Forge.Approve(Repo, prod.Number, who); err != nil {
			return &StepError{Step: who + " approves prod's pull request", Err: err}
		}
		s.Tell(who, fmt.Sprintf("approves #%d", prod.Number))
	}
	if err := s.merged(ctx, prod, "with two approvals"); err != nil {
		return err
	}
	return s.verified(ctx, "prod", Good)
}

// BadRelease only fails in qa, and comes back from there.
func (s *Story) BadRelease(ctx context.Context) error {
	before, _, err := s.World.Forge.File(Repo, Branch, Kustomization("qa"))
	if err != nil {
		return err
	}
	if err := s.release(Bad, Good); err != nil {
		return err
	}
	qa, err := s.opened(ctx, "qa", Bad)
	if err != nil {
		return err
	}
	if err := s.merged(ctx, qa, "by itself: dev was healthy with it"); err != nil {
		return err
	}
	undo, err := s.pull(ctx, "qa degrades and a revert opens", promotion.RevertPrefix, func(p *emulator.PullRequest) bool { return true })
	if err != nil {
		return err
	}
	if !strings.Contains(undo.Body, "web-qa") || !strings.Contains(undo.Body, "Degraded") {
		return &StepError{Step: "the revert carries evidence", Seen: undo.Body}
	}
	s.Tell("argo cd", "web-qa is Degraded: the new pods never get ready")
	s.Tell("liftlock", fmt.Sprintf("opens the revert #%d with the evidence, quarantines %s", undo.Number, Bad))
	if err := s.merged(ctx, undo, "by itself (onDegraded: revert-and-merge)"); err != nil {
		return err
	}
	if err := s.verified(ctx, "qa", Good); err != nil {
		return err
	}
	after, _, err := s.World.Forge.File(Repo, Branch, Kustomization("qa"))
	if err != nil {
		return err
	}
	if before != after {
		return &StepError{Step: "the revert restores qa's overlay byte for byte", Seen: after}
	}
	s.Tell("git", "qa's overlay is byte for byte what it was before the promotion")
	return s.neverInProd(ctx)
}

// neverInProd holds that prod had no pull request with the bad release.
func (s *Story) neverInProd(ctx context.Context) error {
	err := s.until(ctx, "prod says why the release doesn't come", func() (bool, string, error) {
		st, err := s.State(ctx, "prod")
		if err != nil || st == nil {
			return false, fmt.Sprint(err), nil
		}
		return st.State == promotion.Verified && (st.Incoming == nil || st.Incoming.Pull == nil), fmt.Sprintf("%s: %s", st.State, st.Reason), nil
	})
	if err != nil {
		return err
	}
	all, err := s.World.Forge.Pulls(Repo)
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.Branch == promotion.Branch(Pipeline, "prod", Component) && strings.Contains(p.Title+p.Body, Bad) {
			return &StepError{Step: "prod never has a pull request for " + Bad, Seen: fmt.Sprintf("#%d %s", p.Number, p.Title)}
		}
	}
	s.Tell("liftlock", fmt.Sprintf("prod never had a pull request for %s and still runs %s", Bad, Good))
	return nil
}

// release is a build job's commit into dev.
func (s *Story) release(tag, from string) error {
	file := Kustomization("dev")
	text, ok, err := s.World.Forge.File(Repo, Branch, file)
	if err != nil || !ok {
		return &StepError{Step: "a change lands in dev", Err: err}
	}
	commit, err := s.World.Forge.CommitAs(Repo, Author, Branch, "Release web "+tag+" to dev", map[string]string{file: strings.Replace(text, "newTag: "+from, "newTag: "+tag, 1)})
	if err != nil {
		return &StepError{Step: "a change lands in dev", Err: err}
	}
	s.Tell(Author, fmt.Sprintf("releases web %s to dev (%s)", tag, promotion.Short(commit)))
	return nil
}

// opened waits for the promotion of a release into an environment, and holds that
// it changes one line of one file.
func (s *Story) opened(ctx context.Context, env, tag string) (*emulator.PullRequest, error) {
	branch := promotion.Branch(Pipeline, env, Component)
	p, err := s.pull(ctx, fmt.Sprintf("%s's pull request opens with %s", env, tag), branch, func(p *emulator.PullRequest) bool { return strings.Contains(p.Title, tag) })
	if err != nil {
		return nil, err
	}
	s.Tell("liftlock", fmt.Sprintf("%s is healthy with %s; opens #%d: %s", map[string]string{"qa": "dev", "prod": "qa"}[env], tag, p.Number, p.Title))
	return p, nil
}

func (s *Story) pull(ctx context.Context, step, branch string, match func(*emulator.PullRequest) bool) (*emulator.PullRequest, error) {
	var found *emulator.PullRequest
	err := s.until(ctx, step, func() (bool, string, error) {
		all, err := s.World.Forge.Pulls(Repo)
		if err != nil {
			return false, "", err
		}
		var titles []string
		for i := range all {
			p := &all[i]
			titles = append(titles, fmt.Sprintf("#%d %s", p.Number, p.Title))
			if strings.HasPrefix(p.Branch, branch) && match(p) {
				found = p
			}
		}
		return found != nil, strings.Join(titles, ", "), nil
	})
	return found, err
}

// waits holds that prod's pull request is not merged without its approvals.
func (s *Story) waits(ctx context.Context, p *emulator.PullRequest) error {
	err := s.until(ctx, fmt.Sprintf("#%d says that it waits for two approvals", p.Number), func() (bool, string, error) {
		now, err := s.World.Forge.Pull(Repo, p.Number)
		if err != nil {
			return false, "", err
		}
		for _, st := range now.Statuses {
			if st.Context == "liftlock" && st.State == "pending" && strings.Contains(st.Description, "approval") {
				return true, "", nil
			}
		}
		return false, fmt.Sprintf("%+v", now.Statuses), nil
	})
	if err != nil {
		return err
	}
	s.Tell("liftlock", fmt.Sprintf("#%d waits for two approvals (commit status liftlock: pending)", p.Number))
	return nil
}

// merged waits for a merge, and holds that what landed is one line of one file.
func (s *Story) merged(ctx context.Context, p *emulator.PullRequest, how string) error {
	step := fmt.Sprintf("#%d (%s) merges", p.Number, p.Title)
	var now emulator.PullRequest
	err := s.until(ctx, step, func() (bool, string, error) {
		var err error
		now, err = s.World.Forge.Pull(Repo, p.Number)
		var last string
		for _, c := range now.Comments {
			last = c.Body
		}
		return now.Merged, last, err
	})
	if err != nil {
		return err
	}
	s.Tell("liftlock", fmt.Sprintf("merges #%d %s", p.Number, how))
	return s.oneLine(ctx, &now)
}

// verified waits until the server has verified a release in an environment.
func (s *Story) verified(ctx context.Context, env, tag string) error {
	err := s.until(ctx, fmt.Sprintf("%s is verified with %s", env, tag), func() (bool, string, error) {
		st, err := s.State(ctx, env)
		if err != nil || st == nil {
			return false, fmt.Sprint(err), nil
		}
		return st.State == promotion.Verified && strings.Contains(st.Name, tag), fmt.Sprintf("%s carries %s: %s, %s", env, st.Name, st.State, st.Reason), nil
	})
	if err != nil {
		return err
	}
	s.Tell("argo cd", fmt.Sprintf("%s-%s is synced to that commit and healthy with %s", Component, env, tag))
	return nil
}

// until looks until the step is reached, or it took too long.
func (s *Story) until(ctx context.Context, step string, reached func() (bool, string, error)) error {
	wait := s.Wait
	if wait == 0 {
		wait = s.World.pace.Wait
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	tick := time.NewTicker(look)
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
