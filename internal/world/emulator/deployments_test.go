package emulator_test

import (
	"strings"
	"testing"

	"github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestRest_deployments holds what GitHub does by itself where it isn't told otherwise: it waits for
// statuses, and makes what was there before inactive.
func TestRest_deployments(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	sha := branchHead(t, w, "main")
	c := w.clientOf("liftlock")
	create := func(r github.DeploymentRequest) (*github.Deployment, error) {
		d, _, err := c.Repositories.CreateDeployment(w.ctx, "acme", "fleet", &r)
		return d, err
	}
	set := func(d *github.Deployment, r github.DeploymentStatusRequest) error {
		_, _, err := c.Repositories.CreateDeploymentStatus(w.ctx, "acme", "fleet", d.GetID(), &r)
		return err
	}
	plain, err := create(github.DeploymentRequest{Ref: github.String("main")})
	w.must(err)
	if plain.GetSHA() != sha || plain.GetTask() != "deploy" || plain.GetEnvironment() != "production" || string(plain.Payload) != "{}" {
		t.Errorf("by default: %+v", plain)
	}
	_, _, err = c.Repositories.CreateStatus(w.ctx, "acme", "fleet", sha, &github.RepoStatus{Context: github.String("ci"), State: github.String("pending")})
	w.must(err)
	qa := func(task string, change func(*github.DeploymentRequest)) *github.Deployment {
		t.Helper()
		r := github.DeploymentRequest{Ref: &sha, Environment: github.String("qa"), Task: &task, RequiredContexts: &[]string{}}
		if change != nil {
			change(&r)
		}
		d, err := create(r)
		w.must(err)
		return d
	}
	_, err = create(github.DeploymentRequest{Ref: &sha})
	wantRefused(t, err, 409, "Commit status checks failed")
	_, err = create(github.DeploymentRequest{Ref: github.String("nowhere"), RequiredContexts: &[]string{}})
	wantRefused(t, err, 422, "No ref found for: nowhere")
	_, err = create(github.DeploymentRequest{})
	wantRefused(t, err, 422, "ref")
	_, err = create(github.DeploymentRequest{Ref: &sha, Description: github.String(strings.Repeat("x", 141)), RequiredContexts: &[]string{}})
	wantRefused(t, err, 422, "description is too long")

	success, keep := github.DeploymentStatusRequest{State: github.String("success")}, github.DeploymentStatusRequest{State: github.String("success"), AutoInactive: github.Bool(false)}
	first, failed, transient := qa("a", nil), qa("b", nil), qa("c", func(r *github.DeploymentRequest) { r.TransientEnvironment = github.Bool(true) })
	w.must(set(first, success))
	w.must(set(failed, github.DeploymentStatusRequest{State: github.String("failure")}))
	w.must(set(transient, keep))
	w.must(set(plain, success))
	states := func() string {
		all, err := w.Deployments("acme/fleet")
		w.must(err)
		var out []string
		for _, d := range all {
			out = append(out, d.Task+" "+strings.Join(d.States, "-"))
		}
		return strings.Join(out, ", ")
	}
	last := qa("d", nil)
	w.must(set(last, keep))
	if got := states(); got != "deploy success, a success, b failure, c success, d success" {
		t.Errorf("with auto_inactive off: %s", got)
	}
	w.must(set(last, success))
	if got := states(); got != "deploy success, a success-inactive, b failure, c success, d success-success" {
		t.Errorf("by default: %s", got)
	}
	wantRefused(t, set(last, github.DeploymentStatusRequest{State: github.String("great")}), 422, "state")
	wantRefused(t, set(last, github.DeploymentStatusRequest{State: github.String("success"), Description: github.String(strings.Repeat("x", 141))}), 422, "description is too long")
	list, _, err := c.Repositories.ListDeployments(w.ctx, "acme", "fleet", &github.DeploymentsListOptions{SHA: sha, Environment: "QA"})
	w.must(err)
	if len(list) != 4 || list[0].GetID() != last.GetID() {
		t.Errorf("listed are %v", list)
	}
	statuses, _, err := c.Repositories.ListDeploymentStatuses(w.ctx, "acme", "fleet", first.GetID(), nil)
	w.must(err)
	if len(statuses) != 2 || statuses[0].GetState() != "inactive" || statuses[1].GetState() != "success" {
		t.Errorf("its statuses are %v", statuses)
	}
}
