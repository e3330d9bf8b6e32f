package github

import (
	"cmp"
	"context"
	"slices"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/wording"
)

// maxDescription is the longest description that GitHub takes, in characters.
const maxDescription = 140

// SetStatus sets a commit status.
func (d *Driver) SetStatus(ctx context.Context, r forge.Repo, commit string, s forge.Status) error {
	ctx, owner, name := inRepo(ctx, r)
	status := &gh.RepoStatus{
		State:       gh.String(string(s.State)),
		Context:     &s.Context,
		Description: gh.String(wording.ClipRunes(s.Description, maxDescription)),
	}
	if s.TargetURL != "" {
		status.TargetURL = &s.TargetURL
	}
	_, _, err := d.api.Repositories.CreateStatus(ctx, owner, name, commit, status)
	return wrapError("set the status "+s.Context+" on a commit of "+r.String(), err)
}

// Statuses reads the whole list, newest first, and keeps the first of each
// context: the combined status would be one call less and doesn't say who set
// what. Check runs are not statuses.
func (d *Driver) Statuses(ctx context.Context, r forge.Repo, commit string) ([]forge.Status, error) {
	var found []forge.Status
	seen := map[string]bool{}
	err := d.forEachStatus(ctx, r, commit, func(s *gh.RepoStatus) {
		if seen[s.GetContext()] {
			return
		}
		seen[s.GetContext()] = true
		found = append(found, forge.Status{
			Context:     s.GetContext(),
			State:       forge.StatusState(s.GetState()),
			Description: s.GetDescription(),
			TargetURL:   s.GetTargetURL(),
			Creator:     s.GetCreator().GetLogin(),
		})
	})
	return found, err
}

// forEachStatus reads the statuses of a commit, newest first.
func (d *Driver) forEachStatus(ctx context.Context, r forge.Repo, commit string, each func(*gh.RepoStatus)) error {
	ctx, owner, name := inRepo(ctx, r)
	return forEach("list the statuses of a commit of "+r.String(), bounds,
		func(page gh.ListOptions) ([]*gh.RepoStatus, *gh.Response, error) {
			return d.api.Repositories.ListStatuses(ctx, owner, name, commit, &page)
		}, func(s *gh.RepoStatus) bool {
			each(s)
			return false
		})
}

// Checks reads the statuses and the check runs, and keeps the newest of each name and app.
// All check runs are read, not only the latest: those are the latest of a check suite.
func (d *Driver) Checks(ctx context.Context, r forge.Repo, commit string) ([]forge.Check, error) {
	found, err := d.listStatusChecks(ctx, r, commit)
	if err != nil {
		return nil, err
	}
	runs, err := d.listCheckRuns(ctx, r, commit)
	if err != nil {
		return nil, err
	}
	found = append(found, runs...)
	slices.SortStableFunc(found, func(a, b forge.Check) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.App, b.App)) })
	return found, nil
}

// checkKey is what a newer check replaces an older one by.
type checkKey struct{ name, app string }

func (d *Driver) listStatusChecks(ctx context.Context, r forge.Repo, commit string) ([]forge.Check, error) {
	var found []forge.Check
	seen := map[checkKey]bool{}
	err := d.forEachStatus(ctx, r, commit, func(s *gh.RepoStatus) {
		if key := (checkKey{s.GetContext(), s.GetCreator().GetLogin()}); !seen[key] {
			seen[key] = true
			found = append(found, forge.CheckOfStatus(key.name, key.app, s.GetState()))
		}
	})
	return found, err
}

func (d *Driver) listCheckRuns(ctx context.Context, r forge.Repo, commit string) ([]forge.Check, error) {
	ctx, owner, name := inRepo(ctx, r)
	newest := map[checkKey]*gh.CheckRun{}
	err := forEach("list the check runs of a commit of "+r.String(), bounds,
		func(page gh.ListOptions) ([]*gh.CheckRun, *gh.Response, error) {
			list, resp, err := d.api.Checks.ListCheckRunsForRef(ctx, owner, name, commit, &gh.ListCheckRunsOptions{Filter: gh.String("all"),
				ListOptions: page})
			if err != nil {
				return nil, resp, err
			}
			return list.CheckRuns, resp, nil
		}, func(run *gh.CheckRun) bool {
			key := checkKey{run.GetName(), run.GetApp().GetSlug() + "[bot]"}
			if known := newest[key]; known == nil || run.GetID() > known.GetID() {
				newest[key] = run
			}
			return false
		})
	if err != nil {
		return nil, err
	}
	var found []forge.Check
	for key, run := range newest {
		found = append(found, checkOfRun(key, run))
	}
	return found, nil
}

// checkOfRun is a check run as a check. GitHub takes neutral and skipped for success.
func checkOfRun(key checkKey, run *gh.CheckRun) forge.Check {
	c := forge.Check{Name: key.name, App: key.app, State: forge.CheckPending, Word: run.GetStatus()}
	if run.GetStatus() != "completed" {
		return c
	}
	c.Word = run.GetConclusion()
	switch c.Word {
	case "success", "neutral":
		c.State = forge.CheckPassed
	case "skipped":
		c.State = forge.CheckSkipped
	default:
		c.State = forge.CheckFailed
	}
	return c
}
