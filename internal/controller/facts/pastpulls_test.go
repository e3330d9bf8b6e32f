package facts

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/wording"
)

// TestMaySettle says of which closed pull requests nothing more is to be found out.
func TestMaySettle(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	closed := func(change func(p *pullRecord)) *pullRecord {
		p := &pullRecord{movedKnown: true, row: store.Pull{ClosedAt: now.Add(-time.Minute)}}
		p.PR = forge.PullRequest{State: forge.Closed, Author: "bot"}
		change(p)
		return p
	}
	for name, c := range map[string]struct {
		pull    *pullRecord
		batches bool
		want    bool
	}{
		"closed":                             {pull: closed(func(*pullRecord) {}), want: true},
		"merged":                             {pull: closed(func(p *pullRecord) { p.PR.State = forge.Merged }), want: true},
		"open":                               {pull: closed(func(p *pullRecord) { p.PR.State = forge.Open })},
		"what it moved isn't known":          {pull: closed(func(p *pullRecord) { p.movedKnown = false })},
		"its commits may come":               {pull: closed(func(p *pullRecord) { p.unsure = true })},
		"somebody's":                         {pull: closed(func(p *pullRecord) { p.PR.Author, p.movedKnown = "ada", false }), want: true},
		"of all, where they move alone":      {pull: closed(func(p *pullRecord) { p.batch = true })},
		"of all, in a batch":                 {pull: closed(func(p *pullRecord) { p.batch = true }), batches: true, want: true},
		"of all, where they move alone, old": {pull: closed(func(p *pullRecord) { p.batch, p.row.ClosedAt = true, now.Add(-membersSeeWithin) }), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &branch.ResolvedPipeline{Pipeline: &pipeline.Pipeline{}}
			ev := &Evaluation{Basis: branch.Basis{Now: now, Unit: promotion.Unit{Component: "web"}, Pipeline: p, Snapshot: &branch.Snapshot{Repo: &branch.Repository{BotLogin: "bot"}, Pipelines: []*branch.ResolvedPipeline{p}}}}
			if c.batches {
				ev.Unit.Component = promotion.BatchName
				p.Spec.Batch = "environment"
			}
			if got := ev.maySettle(c.pull); got != c.want {
				t.Errorf("%t", got)
			}
		})
	}
}

// TestReleasesAtHand lists the releases that a decision may be about, each once and in short.
func TestReleasesAtHand(t *testing.T) {
	id := func(digit string) string { return strings.Repeat(digit, 64) }
	c := &ComponentEvaluation{ComponentBasis: branch.ComponentBasis{Facts: promotion.ComponentFacts{PendingCommands: []promotion.PendingCommand{{Release: id("1")}, {}}, Envs: []promotion.Env{{
		Release: promotion.Sure(promotion.Release{ID: id("2")}), History: []promotion.Arrival{{Release: id("3")}, {Release: id("2")}},
		Open: &promotion.Pull{Release: id("4")}, Revert: &promotion.Pull{Release: id("5")}, WrongKind: &promotion.Pull{Release: id("6")}}, {Name: "prod"}}}}}
	var want []string
	for _, digit := range []string{"1", "2", "3", "4", "5", "6", "7"} {
		want = append(want, wording.Short(id(digit)))
	}
	if got := c.releasesAtHand([]store.PastPull{{Short: wording.Short(id("7"))}, {}}); !slices.Equal(got, want) {
		t.Errorf("they are %q, want %q", got, want)
	}
}

// TestPastPullsAreAddedOnce adds what closed pull requests did for one component in one environment.
func TestPastPullsAreAddedOnce(t *testing.T) {
	env := &promotion.Env{Name: "qa"}
	row := func(number int, component, env string, kind store.PastKind) store.PastPull {
		return store.PastPull{Number: number, Component: component, Environment: env, Kind: kind}
	}
	addPastPulls(env, "web", []store.PastPull{row(1, "web", "qa", store.PastMerged), row(1, "web", "qa", store.PastRevert), row(2, "api", "qa", store.PastMerged), row(3, "web", "dev", store.PastMerged),
		row(4, "web", "qa", store.PastRevert), row(5, "web", "qa", store.PastRefusedRevert), row(6, "web", "qa", store.PastSuperseded)})
	want := []promotion.PastPull{{Number: 1, Merged: true}, {Number: 4, Merged: true, Revert: true}, {Number: 5, Revert: true}, {Number: 6, Superseded: true}}
	if !slices.Equal(env.PastPulls, want) {
		t.Errorf("they are %+v", env.PastPulls)
	}
}
