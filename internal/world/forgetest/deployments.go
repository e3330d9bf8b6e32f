package forgetest

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
)

func testDeployments(t *testing.T, s *fixture) {
	const task = "liftlock:shop/web"
	if !s.Forge.HasDeployments() {
		s.checkNoDeployments(t, task)
		return
	}
	list := func(environment, task string) []forge.Deployment {
		t.Helper()
		found, err := s.Forge.Deployments(s.ctx, s.Repo, environment, task)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := list("qa", task); len(found) != 0 {
		t.Fatalf("at first: %+v", found)
	}
	commit := s.branchTip(t, "main")
	// A status that isn't success keeps nobody from creating one.
	if err := s.Forge.SetStatus(s.ctx, s.Repo, commit, forge.Status{Context: "liftlock", State: forge.StatusPending}); err != nil {
		t.Fatal(err)
	}
	create := func(environment, task, commit string) int64 {
		t.Helper()
		id, err := s.Forge.CreateDeployment(s.ctx, s.Repo, forge.Deployment{Environment: environment, Task: task, Commit: commit,
			Description: strings.Repeat("long ", 200), Payload: map[string]string{"component": "web"}})
		if err != nil || id == 0 {
			t.Fatalf("created %d, %v", id, err)
		}
		return id
	}
	set := func(id int64, state forge.DeploymentState) {
		t.Helper()
		if err := s.Forge.SetDeploymentStatus(s.ctx, s.Repo, id, forge.DeploymentStatus{State: state,
			Description: strings.Repeat("long ", 200), LogURL: "https://liftlock.example.com/pipelines/shop/web"}); err != nil {
			t.Fatal(err)
		}
	}
	wantState := func(id int64, want forge.DeploymentState) {
		t.Helper()
		if got, err := s.Forge.DeploymentState(s.ctx, s.Repo, id); err != nil || got != want {
			t.Errorf("the state is %q, want %q, %v", got, want, err)
		}
	}
	first := create("qa", task, commit)
	wantState(first, "")
	for _, state := range []forge.DeploymentState{forge.DeploymentInProgress, forge.DeploymentError, forge.DeploymentFailure,
		forge.DeploymentInactive, forge.DeploymentSuccess} {
		set(first, state)
		wantState(first, state)
	}
	other, inProd := create("qa", "liftlock:shop/api", commit), create("prod", task, commit)
	next := s.pushCommit(t, "main", "", "next.txt", "next\n")
	second := create("qa", task, next)
	set(second, forge.DeploymentSuccess)
	set(other, forge.DeploymentSuccess)
	wantState(first, forge.DeploymentSuccess) // that is the default
	wantState(inProd, "")
	found := list("qa", task)
	if len(found) != 2 || found[0].ID != second || found[1].ID != first {
		t.Fatalf("found %+v", found)
	}
	if found[0].Commit != next || found[1].Commit != commit {
		t.Fatalf("found %+v", found)
	}
	d := found[1]
	isClipped := strings.HasPrefix(d.Description, "long long") && strings.HasSuffix(d.Description, "…")
	if d.Environment != "qa" || d.Task != task || d.CreatedAt.IsZero() || !isClipped {
		t.Errorf("found %+v", d)
	}
	again := create("qa", task, next) // another one, as it is asked for
	if again == second {
		t.Error("the same was created twice")
	}
	for range forge.MaxDeployments {
		create("qa", task, next)
	}
	if found := list("qa", task); len(found) != forge.MaxDeployments {
		t.Errorf("%d are listed", len(found))
	}
	_, err := s.Forge.CreateDeployment(s.ctx, s.Repo, forge.Deployment{Environment: "qa", Task: task, Commit: strings.Repeat("1", 40)})
	wantKind(t, "a deployment of a commit that isn't there", err, forge.ErrInvalid)
	wantKind(t, "the state of what isn't there", s.Forge.SetDeploymentStatus(s.ctx, s.Repo, 999_999_999,
		forge.DeploymentStatus{State: forge.DeploymentSuccess}), forge.ErrNotFound)
	_, err = s.Forge.DeploymentState(s.ctx, s.Repo, 999_999_999)
	wantKind(t, "reading the state of what isn't there", err, forge.ErrNotFound)
}

// checkNoDeployments holds what a forge answers that keeps none.
func (f *fixture) checkNoDeployments(t *testing.T, task string) {
	_, err := f.Forge.Deployments(f.ctx, f.Repo, "qa", task)
	wantKind(t, "listing", err, forge.ErrInvalid)
	_, err = f.Forge.CreateDeployment(f.ctx, f.Repo, forge.Deployment{Environment: "qa", Task: task, Commit: f.branchTip(t, "main")})
	wantKind(t, "creating", err, forge.ErrInvalid)
	_, err = f.Forge.DeploymentState(f.ctx, f.Repo, 1)
	wantKind(t, "reading a state", err, forge.ErrInvalid)
	wantKind(t, "setting a state", f.Forge.SetDeploymentStatus(f.ctx, f.Repo, 1, forge.DeploymentStatus{State: forge.DeploymentSuccess}),
		forge.ErrInvalid)
}
