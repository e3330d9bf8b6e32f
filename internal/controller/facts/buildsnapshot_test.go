package facts

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
)

// TestWhichPipelinesAreKept reads pipelines again where their files changed, or the ones before weren't
// what the files said.
func TestWhichPipelinesAreKept(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	s := w.snapshot()
	for name, c := range map[string]struct {
		change func(last *branch.Snapshot) *branch.Snapshot
		kept   bool
	}{
		"as they were":       {func(last *branch.Snapshot) *branch.Snapshot { return last }, true},
		"nothing was before": {func(*branch.Snapshot) *branch.Snapshot { return nil }, false},
		"they were broken":   {func(last *branch.Snapshot) *branch.Snapshot { last.PipelineErr = "no YAML"; return last }, false},
		"there were none": {func(last *branch.Snapshot) *branch.Snapshot {
			last.NoPipelines, last.Pipelines = true, nil
			return last
		}, false},
		"of a commit that's gone": {func(last *branch.Snapshot) *branch.Snapshot { last.Commit = landedHash; return last }, false},
	} {
		last := *s
		last.Pipelines = []*branch.ResolvedPipeline{{Pipeline: &pipeline.Pipeline{}}}
		got, err := branch.LoadPipelines(w.ctx(), w.repo.Mirror, w.head("main"), c.change(&last))
		if err != nil || len(got) != 1 || (got[0].Name() == "") != c.kept {
			t.Errorf("%s: %d pipelines, %v", name, len(got), err)
		}
	}
}

// TestSameTargetSlice takes targets for the same by their address alone: none are like no others.
func TestSameTargetSlice(t *testing.T) {
	some := &appset.TargetSet{Targets: []appset.Target{{Name: "a"}, {Name: "b"}}}
	for name, c := range map[string]struct {
		a, b *appset.TargetSet
		same bool
	}{
		"themselves":  {some, &appset.TargetSet{Targets: some.Targets}, true},
		"a copy":      {some, &appset.TargetSet{Targets: slices.Clone(some.Targets)}, false},
		"a part":      {some, &appset.TargetSet{Targets: some.Targets[:1]}, false},
		"none at all": {&appset.TargetSet{}, &appset.TargetSet{}, false},
		"none before": {nil, some, false},
	} {
		if got := branch.SameTargetSlice(c.a, c.b); got != c.same {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestUnitsOfTargets finds the units of targets, of which some are no unit's.
func TestUnitsOfTargets(t *testing.T) {
	web := &branch.ResolvedUnit{Unit: promotion.Unit{Component: "web"}}
	targets := []appset.Target{{Name: "web-qa", Component: "web"}, {Name: "web-dev", Component: "web"}, {Name: "all-qa", Component: promotion.BatchName}}
	p := &branch.ResolvedPipeline{TargetSet: &appset.TargetSet{Targets: targets}, Units: map[string]*branch.ResolvedUnit{"web": web}}
	for name, c := range map[string]struct {
		ids  []int
		want int
	}{"none": {nil, 0}, "one of two": {[]int{1}, 1}, "nobody's": {[]int{2}, 0}, "all": {[]int{0, 1, 2}, 1}} {
		ids, units := map[string]bool{}, map[promotion.Unit]bool{}
		for _, i := range c.ids {
			ids[targets[i].ID()] = true
		}
		if p.AddUnitsOf(ids, units); len(units) != c.want || c.want > 0 && !units[web.Unit] {
			t.Errorf("%s: %v", name, units)
		}
	}
}

// TestTargetsThatCantBeResolved says of a set that is broken what is wrong with it, and of a run that is
// over nothing of the set.
func TestTargetsThatCantBeResolved(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	s := w.snapshot()
	resolve := func(ctx context.Context, commit string) (*appset.TargetSet, error) {
		return w.o.Targets.ResolveTargets(ctx, w.o.Targets.NewInputCollector(w.repo), s.Pipelines[0].Pipeline, commit)
	}
	if fl, err := resolve(w.ctx(), s.Commit); err != nil || len(fl.Problems) > 0 || len(fl.Targets) != 2 {
		t.Errorf("as it is: %+v, %v", fl, err)
	}
	if fl, err := resolve(w.ctx(), landedHash); err != nil || len(fl.Problems) == 0 || len(fl.Targets) > 0 {
		t.Errorf("of a commit that isn't there: %+v, %v", fl, err)
	}
	over, cancel := context.WithCancel(w.ctx())
	cancel()
	if fl, err := resolve(over, w.commit("ada", "More", map[string]string{overlayFile("more", "dev"): overlayText("web", "1.0.0")})); !errors.Is(err, context.Canceled) || fl != nil {
		t.Errorf("of a run that is over: %+v, %v", fl, err)
	}
}

// TestIndexOfARunThatIsOver leaves no index where the run that works it out is over, whether it is built
// or brought up to date.
func TestIndexOfARunThatIsOver(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	over, cancel := context.WithCancel(w.ctx())
	cancel()
	for _, what := range []string{"built", "brought up to date"} {
		ix := w.snapshot().Pipelines[0].ReaderIndexes["main"]
		if index, err := ix.Get(over); !errors.Is(err, context.Canceled) || index != nil {
			t.Errorf("%s: %+v, %v", what, index, err)
		}
		if index, err := ix.Get(w.ctx()); err != nil || len(index.AffectedReaders([]string{overlayFile("web", "qa")})) != 1 {
			t.Errorf("%s, once more: %v", what, err)
		}
		w.commit("ada", "More", map[string]string{"base/web/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"})
	}
}
