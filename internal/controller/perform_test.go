package controller

import (
	"errors"
	"slices"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
)

// TestFailureStopsLaterSteps holds which steps aren't done after which failed.
func TestFailureStopsLaterSteps(t *testing.T) {
	t.Parallel()
	no := errors.New("no")
	for _, c := range []struct {
		name       string
		failed, of int // whose step failed, and whose is next; -1: a pull request's
		env        string
		blocks     bool
	}{
		{"its own", 0, 0, "qa", true}, {"its own elsewhere", 0, 0, "prod", false}, {"another's", 0, 1, "qa", false},
		{"a pull request after a component", 1, -1, "qa", true}, {"a pull request elsewhere", 1, -1, "prod", false},
		{"a component after a pull request", -1, 1, "qa", true}, {"a component elsewhere", -1, 1, "prod", false},
		{"a pull request after another", -1, -1, "qa", true},
	} {
		f := newStepFailures(2)
		f.of(c.failed).record("qa", nil)
		if f.blocks(c.of, c.env) || f.joined() != nil {
			t.Errorf("%s: blocked by nothing: %v", c.name, f.joined())
		}
		f.of(c.failed).record("qa", no)
		if f.blocks(c.of, c.env) != c.blocks || !errors.Is(f.joined(), no) {
			t.Errorf("%s: blocked: %v; %v", c.name, !c.blocks, f.joined())
		}
	}
}

func TestFailuresAreJoined(t *testing.T) {
	t.Parallel()
	a, b := errors.New("a"), errors.New("b")
	f := failures{}
	f.record("qa", a)
	f.record("qa", b)
	if !errors.Is(f["qa"], a) || !errors.Is(f["qa"], b) {
		t.Errorf("one hides the other: %v", f["qa"])
	}
	moved := newStepFailures(1)
	moved.of(0).record("qa", act.ErrStale)
	moved.of(-1).record("prod", &forge.Error{Op: "merge", Kind: forge.ErrConflict})
	if err := moved.joined(); !errors.Is(err, act.ErrStale) || !errors.Is(err, forge.ErrConflict) {
		t.Errorf("joined to %v", err)
	}
	moved.of(-1).record("dev", a)
	moved.of(-1).record("stage", b)
	if err := moved.joined(); isStale(err) || !errors.Is(err, a) || !errors.Is(err, b) {
		t.Errorf("joined to %v", err)
	}
}

func TestDefaultEnvironment(t *testing.T) {
	t.Parallel()
	envs := func(e ...pipeline.Environment) *branch.ResolvedPipeline {
		return &branch.ResolvedPipeline{Pipeline: &pipeline.Pipeline{Spec: pipeline.Spec{Environments: e}}}
	}
	dev, qa, load, prod := pipeline.Environment{Name: "dev"}, pipeline.Environment{Name: "qa", After: []string{"dev"}}, pipeline.Environment{Name: "load", After: []string{"dev"}}, pipeline.Environment{Name: "prod", After: []string{"qa", "load"}}
	for _, c := range []struct {
		name     string
		verb     command.Verb
		p        *branch.ResolvedPipeline
		state    forge.State
		of, want string
	}{
		{"of an open promotion", command.Promote, envs(dev, qa, prod), forge.Open, "qa", "qa"},
		{"of a merged one", command.Promote, envs(dev, qa, prod), forge.Merged, "qa", "prod"},
		{"of a closed one", command.Promote, envs(dev, qa, prod), forge.Closed, "qa", "qa"},
		{"of the last", command.Promote, envs(dev, qa, prod), forge.Merged, "prod", "prod"},
		{"before two", command.Promote, envs(dev, qa, load, prod), forge.Merged, "dev", "dev"},
		{"of another command", command.Revert, envs(dev, qa, prod), forge.Merged, "qa", "qa"},
		{"of a pipeline that is gone", command.Promote, nil, forge.Merged, "qa", "qa"},
	} {
		got := defaultEnvironment(c.p, command.Command{Verb: c.verb}, &forge.PullRequest{State: c.state}, promotion.BranchRef{Environment: c.of})
		if got != c.want {
			t.Errorf("%s: %s, not %s", c.name, got, c.want)
		}
	}
	if got := describeCommands([]command.Command{{Verb: command.Help}, {Verb: command.Status}}); got != "help; status" {
		t.Errorf("two commands are called %q", got)
	}
}

// TestStepsAreDone holds the outcome of each of a decision's steps. Merges are left to the merge
// key, a refusal by Argo CD stops nothing, and a failing step stops only the later ones in its
// environment.
func TestStepsAreDone(t *testing.T) {
	w := newFixture(t, "", autoQA, "web")
	s, err := w.opts.Gatherer.Targets.Snapshot(t.Context(), w.repo.Repository)
	w.must(err)
	ev, _, err := w.opts.Gatherer.Evaluate(t.Context(), s, w.unit("web"), false)
	w.must(err)
	fetched := false
	perform := func(own, shared []promotion.Action) (bool, error) {
		t.Helper()
		acted, failed := w.performSteps(t.Context(), ev, &promotion.Decision{Components: []promotion.ComponentDecision{{Actions: own}}, Actions: shared}, fetched)
		return acted, failed.joined()
	}
	queued := func() []string {
		t.Helper()
		out, err := w.opts.Store.MergeQueue(t.Context(), w.repo.ID)
		w.must(err)
		return out
	}
	bind, member := promotion.BindCommand{Environment: "qa", ID: 1, Release: "r1"}, []promotion.Member{{Component: "web"}}
	if acted, err := perform([]promotion.Action{promotion.FactRequest{Environment: "qa"}, promotion.Refresh{Environment: "qa", Target: "gone"}, promotion.Sync{Environment: "qa", Target: "gone"}}, nil); acted || err != nil {
		t.Errorf("what asks only: %v, %v", acted, err)
	}
	if acted, err := perform([]promotion.Action{bind}, nil); !acted || err != nil {
		t.Errorf("what acts: %v, %v", acted, err)
	}
	closed := promotion.Close{Environment: "qa", Pull: 7, Members: member}
	if acted, err := perform(nil, []promotion.Action{closed, promotion.Merge{Environment: "qa", Pull: 7, Members: member}}); acted || !isStale(err) || len(queued()) != 0 {
		t.Errorf("a merge after what failed: %v, %v, %q", acted, err, queued())
	}
	closed.Environment = "dev"
	if acted, err := perform(nil, []promotion.Action{closed, promotion.Merge{Environment: "qa", Pull: 7, Members: member}}); acted || !isStale(err) || !slices.Equal(queued(), []string{"hub:acme/fleet|shop|web"}) {
		t.Errorf("a merge elsewhere: %v, %v, %q", acted, err, queued())
	}
	opened, replaced := promotion.Open{Environment: "qa", Members: member}, promotion.Replace{Environment: "qa", Pull: 7, Members: member}
	fetched = true
	if acted, err := perform(nil, []promotion.Action{opened, replaced}); acted || err != nil {
		t.Errorf("what brings releases, after a fetch: %v, %v", acted, err)
	}
	if acted, err := perform([]promotion.Action{bind}, []promotion.Action{promotion.OpenRevert{Environment: "qa", Members: member}}); !acted || err == nil {
		t.Errorf("what takes back, after a fetch: %v, %v", acted, err)
	}
	fetched = false
	if acted, err := perform(nil, []promotion.Action{opened}); acted || err == nil {
		t.Errorf("what brings releases: %v, %v", acted, err)
	}
}
