package facts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/facts/live"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
)

// TestChangesThatConcernAll holds that what can't be compared with the snapshot before concerns every
// unit, and that nothing that changed concerns none.
func TestChangesThatConcernAll(t *testing.T) {
	t.Parallel()
	unit := promotion.Unit{Repo: "r", Pipeline: "shop", Component: "web"}
	named := func(name string) *branch.ResolvedPipeline {
		p := &branch.ResolvedPipeline{Pipeline: &pipeline.Pipeline{}, TargetSet: &appset.TargetSet{}, Units: map[string]*branch.ResolvedUnit{"web": {Unit: unit}}}
		p.Metadata.Name = name
		return p
	}
	snapshot := func(change func(s *branch.Snapshot)) *branch.Snapshot {
		s := &branch.Snapshot{Repo: &branch.Repository{ID: "r", Branch: "main"}, Commit: "c1", Pipelines: []*branch.ResolvedPipeline{named("shop")}, BranchTips: map[string]string{"env": "e1"}}
		change(s)
		return s
	}
	same := func(*branch.Snapshot) {}
	for name, c := range map[string]struct {
		before, now func(s *branch.Snapshot)
		all         bool
		units       int
	}{
		"nothing":                 {before: same, now: same},
		"an error":                {before: same, now: func(s *branch.Snapshot) { s.PipelineErr = "broken" }, all: true},
		"an error that is over":   {before: func(s *branch.Snapshot) { s.PipelineErr = "broken" }, now: same, all: true},
		"no pipeline file":        {before: same, now: func(s *branch.Snapshot) { s.NoPipelines = true }, all: true},
		"one pipeline more":       {before: same, now: func(s *branch.Snapshot) { s.Pipelines = append(s.Pipelines, named("shop")) }, all: true},
		"another pipeline":        {before: same, now: func(s *branch.Snapshot) { s.Pipelines[0].Metadata.Name = "other" }, all: true},
		"one branch less":         {before: same, now: func(s *branch.Snapshot) { s.BranchTips = nil }, all: true},
		"another branch":          {before: same, now: func(s *branch.Snapshot) { s.BranchTips = map[string]string{"other": "e1"} }, all: true},
		"a branch that is gone":   {before: same, now: func(s *branch.Snapshot) { s.BranchTips["env"] = "" }, all: true},
		"a branch that came":      {before: func(s *branch.Snapshot) { s.BranchTips["env"] = "" }, now: same, all: true},
		"a branch that never was": {before: func(s *branch.Snapshot) { s.BranchTips["env"] = "" }, now: func(s *branch.Snapshot) { s.BranchTips["env"] = "" }},
		"another baseline":        {before: same, now: func(s *branch.Snapshot) { s.Pipelines[0].Baseline = "b" }, units: 1},
		"other problems":          {before: same, now: func(s *branch.Snapshot) { s.Pipelines[0].Problems = []string{"p"} }, units: 1},
		"other rules":             {before: same, now: func(s *branch.Snapshot) { s.Pipelines[0].Spec.Mode = pipeline.ModeDryRun }, units: 1},
	} {
		units, all, err := (*branch.TargetGatherer)(nil).ChangedUnits(t.Context(), snapshot(c.before), snapshot(c.now))
		if err != nil || all != c.all || len(units) != c.units || c.units == 1 && !units[unit] {
			t.Errorf("%s: %v, all: %v, %v", name, units, all, err)
		}
	}
}

// TestMergeabilityOfAClosedPull looks again where a pull request is no longer open whose merge the forge
// was to be asked about.
func TestMergeabilityOfAClosedPull(t *testing.T) {
	t.Parallel()
	env := &promotion.Env{Name: "qa", Open: &promotion.Pull{Number: 7, MergeUnread: true}}
	record := &pullRecord{Pull: stored.Pull{PR: forge.PullRequest{Number: 7}}}
	index := func(env string) pullIndex { return pullIndex{"web": {env: {record}}} }
	for name, ev := range map[string]*Evaluation{
		"neither":                    {},
		"only its record":            {pulls: index("qa")},
		"only what it is":            {OpenPulls: map[int]*OpenPull{7: {}}},
		"in another environment":     {OpenPulls: map[int]*OpenPull{7: {}}, pulls: index("prod")},
		"only what another one is":   {OpenPulls: map[int]*OpenPull{8: {}}, pulls: index("qa")},
		"neither, in an environment": {pulls: pullIndex{}},
	} {
		if err := (&Gatherer{}).answerMergeability(t.Context(), componentOf(ev, branch.ComponentBasis{}), env); !errors.Is(err, forge.ErrConflict) || !strings.Contains(err.Error(), "#7 isn't open any more") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, e := range map[string]*promotion.Env{"none is open": {Name: "qa"}, "it is known": {Name: "qa", Open: &promotion.Pull{Number: 7}, Revert: &promotion.Pull{Number: 8}}} {
		if err := (&Gatherer{}).answerMergeability(t.Context(), componentOf(&Evaluation{}, branch.ComponentBasis{}), e); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNewerDetailsStay remembers of two answers about a pull request the one of the newer version.
func TestNewerDetailsStay(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for version, want := range map[int64]string{4: "known", 5: "read", 6: "read"} {
		o, _, r := newCachedPulls(t, now)
		o.putDetail(r, &pullDetail{pr: forge.PullRequest{Number: 7, Title: "known"}, version: 5})
		o.putDetail(r, &pullDetail{pr: forge.PullRequest{Number: 7, Title: "read"}, version: version})
		d, ok := o.details.Get(detailKey(r, 7))
		if !ok || d.pr.Title != want || !d.at.Equal(now) {
			t.Errorf("version %d: it remembers %+v", version, d)
		}
	}
}

// TestRecordsOfMerges tells the records of what was merged, whatever became of it since.
func TestRecordsOfMerges(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]bool{promotion.Opened: false, promotion.Closed: false, recordSuperseded: false, recordMerged: true, promotion.Reverted: true, promotion.Reverting: true, "verified": true} {
		if got := IsRecordOfMerge(&store.Promotion{State: state}); got != want {
			t.Errorf("%s: %v", state, got)
		}
	}
}

// TestReachIsInspectedWhereItCounts judges no edits of a head that isn't ours, that is stale, or that
// has none.
func TestReachIsInspectedWhereItCounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		modified, stale bool
		edits           int
	}{"somebody's": {modified: true, edits: 1}, "stale": {stale: true, edits: 1}, "none": {}} {
		p := &OpenPull{}
		if c.modified {
			p.HeadState = promotion.HeadModified
		}
		p.Stale, p.Edits = c.stale, make([]fieldedit.Edit, c.edits)
		before := *p
		// Whatever looked would look at an evaluation that isn't there.
		if err := (&Gatherer{}).inspectReach(t.Context(), nil, nil, p); err != nil || p.HeadState != before.HeadState {
			t.Errorf("%s: %v, %+v", name, err, p.Pull)
		}
	}
}

// TestSettledPullsAreOfTheirVersion gives what was settled only while nothing was heard of it since, nor
// by other rules, from memory as from the store.
func TestSettledPullsAreOfTheirVersion(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	o, _, r := newCachedPulls(t, now)
	row := o.pullRow(r, forge.PullRequest{Number: 7, Title: "it", Branch: "liftlock/shop/qa/web", State: forge.Closed, UpdatedAt: now}, nil, true)
	tx := func(do func(tx *store.Tx) error) {
		t.Helper()
		if err := o.store.Tx(t.Context(), "test", do); err != nil {
			t.Fatal(err)
		}
	}
	tx(func(tx *store.Tx) error { return tx.PutPulls(t.Context(), row) })
	kept, _, err := o.store.Pull(t.Context(), r.ID, 7)
	if err != nil {
		t.Fatal(err)
	}
	tx(func(tx *store.Tx) error { return tx.SettlePull(t.Context(), kept, "rules") })
	if kept, _, err = o.store.Pull(t.Context(), r.ID, 7); err != nil || kept.Rules != "rules" {
		t.Fatalf("the store has %+v, %v", kept, err)
	}
	read := func(version int64, rules string, number int) *pullRecord {
		t.Helper()
		p, err := o.readSettled(t.Context(), store.PastPull{Repo: r.ID, Number: number, Version: version, Rules: rules})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for range 2 { // the second time from memory
		for name, p := range map[string]*pullRecord{"another version": read(kept.Version+1, "rules", 7), "other rules": read(kept.Version, "others", 7), "another one": read(kept.Version, "rules", 8)} {
			if p != nil {
				t.Errorf("%s: %+v", name, p.Pull.PR)
			}
		}
		if p := read(kept.Version, "rules", 7); p == nil || p.Pull.PR.Title != "it" || p.row.Data != nil {
			t.Errorf("it is %+v", p)
		}
	}
}

// TestIndexIsOfItsTargets remembers a branch's index for one commit and the very same targets.
func TestIndexIsOfItsTargets(t *testing.T) {
	t.Parallel()
	one, other := []appset.Target{{Name: "a"}, {Name: "b"}}, []appset.Target{{Name: "a"}, {Name: "b"}}
	for name, c := range map[string]struct {
		index   *branch.LazyIndex
		commit  string
		targets []appset.Target
		want    bool
	}{
		"none":              {nil, "c1", nil, false},
		"the same":          {&branch.LazyIndex{Commit: "c1", Targets: one}, "c1", one, true},
		"another commit":    {&branch.LazyIndex{Commit: "c1", Targets: one}, "c2", one, false},
		"others, alike":     {&branch.LazyIndex{Commit: "c1", Targets: one}, "c1", other, false},
		"some of them":      {&branch.LazyIndex{Commit: "c1", Targets: one}, "c1", one[:1], false},
		"no targets":        {&branch.LazyIndex{Commit: "c1"}, "c1", []appset.Target{}, true},
		"none where some":   {&branch.LazyIndex{Commit: "c1", Targets: one}, "c1", nil, false},
		"some where no one": {&branch.LazyIndex{Commit: "c1"}, "c1", one, false},
	} {
		if got := c.index.IsFor(c.commit, c.targets); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestRecordsThatCannotBeRead says which row of who waits for a place, or since when, can't be read.
func TestRecordsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	web, api := promotion.Unit{Repo: "r", Pipeline: "shop", Component: "web"}, promotion.Unit{Repo: "r", Pipeline: "shop", Component: "api"}
	for name, c := range map[string]struct {
		key  store.RecordKey
		raw  string // of the other's
		unit string // data of ours
		want string
	}{
		"the other's": {queued.Key(record.Unit(api)), "[", "{}", "read the record queued of r (shop|api)"},
		"our own":     {queued.Key(record.Unit(api)), "{}", "[", "read the unit " + wake.UnitName(web)},
		"nobody's":    {store.RecordKey{}, "", "[", ""},
		"all":         {queued.Key(record.Unit(api)), "{}", "{}", ""},
	} {
		s := newTestStore(t)
		if err := s.Tx(t.Context(), "test", func(tx *store.Tx) error {
			if c.key.Kind != "" {
				if err := tx.PutRecord(t.Context(), c.key, []byte(c.raw)); err != nil {
					return err
				}
			}
			return tx.PutUnit(t.Context(), store.Unit{Key: wake.UnitName(web), Repo: "r", Pipeline: "shop", Component: "web", Data: []byte(c.unit)})
		}); err != nil {
			t.Fatal(err)
		}
		err := (&recordGatherer{store: s}).countAhead(t.Context(), web, s, &promotion.Limits{QueuedAhead: map[string]int{}})
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUngatedEventNamesTheNextStep tells whether what was merged past its gates is left alone.
func TestUngatedEventNamesTheNextStep(t *testing.T) {
	t.Parallel()
	c := &ComponentEvaluation{ComponentBasis: branch.ComponentBasis{Facts: promotion.ComponentFacts{Unit: promotion.Unit{Repo: "r", Pipeline: "shop", Component: "web"},
		Envs: []promotion.Env{{Name: "qa", Landed: promotion.Sure(promotion.Landed{ModifiedPull: 7})}}}}}
	for at, alone := range map[[2]any]bool{{"qa", 7}: true, {"qa", 8}: false, {"gone", 7}: false} {
		e := ungatedEvent(c, at[0].(string), &UngatedMerge{Pull: at[1].(int), By: "ada", Gates: []string{"soak"}})
		if got := strings.Contains(e.Message, "left alone until /liftlock promote"); got != alone || strings.Contains(e.Message, "its verification goes on") == alone {
			t.Errorf("%v: %s", at, e.Message)
		}
	}
}

// TestRollingSets holds which targets are taken for ones that their ApplicationSet's controller syncs
// step by step: not where Argo CD syncs their Applications by itself.
func TestRollingSets(t *testing.T) {
	t.Parallel()
	at, target := &branch.ResolvedEnv{}, appset.Target{Name: "web", ApplicationSet: "shop"}
	for name, c := range map[string]struct {
		rolling bool
		app     *verification.App
		want    bool
	}{
		"no strategy":       {false, nil, false},
		"not there yet":     {true, nil, true},
		"without a policy":  {true, &verification.App{}, true},
		"with a policy":     {true, &verification.App{AutoSync: true}, false},
		"none, with policy": {false, &verification.App{AutoSync: true}, false},
	} {
		of := target
		of.Policy.Rolling = c.rolling
		if g := live.GeneratedSpec(at, &of, fieldedit.Release{}, c.app); g == nil || g.Rolling != c.want {
			t.Errorf("%s: %+v", name, g)
		}
	}
	running, plain := target, target
	running.Live, plain.ApplicationSet = true, ""
	for _, of := range []*appset.Target{&running, &plain} {
		if g := live.GeneratedSpec(at, of, fieldedit.Release{}, nil); g != nil {
			t.Errorf("%+v is generated: %+v", of, g)
		}
	}
}

// TestFindLanding finds by which commit a release came last to an environment, other than by a revert.
func TestFindLanding(t *testing.T) {
	t.Parallel()
	env := &promotion.Env{History: []promotion.Arrival{{Release: "b", Commit: "c5"}, {Release: "a", By: promotion.ByRevert, Commit: "c4"}, {Release: "a"}, {Release: "a", Commit: "c2", Seq: 2}, {Release: "a", Commit: "c1"}}}
	if a := findLanding(env, "a"); a == nil || a.Commit != "c2" {
		t.Errorf("it landed by %+v", a)
	}
	for _, a := range []*promotion.Arrival{findLanding(env, "c"), findLanding(nil, "a"), findLanding(&promotion.Env{}, "a")} {
		if a != nil {
			t.Errorf("nothing landed by %+v", a)
		}
	}
}

// TestChecksWithoutALanding says of a gate that goes by the checks on where a release landed that no
// history tells where that was.
func TestChecksWithoutALanding(t *testing.T) {
	t.Parallel()
	o := &Gatherer{opts: Options{Now: time.Now}}
	c := componentOf(&Evaluation{pulls: pullIndex{}}, branch.ComponentBasis{Facts: promotion.ComponentFacts{Unit: promotion.Unit{Component: "web"}, Envs: []promotion.Env{{Name: "dev"}}}})
	env := &promotion.Env{Name: "qa", Spec: pipeline.Environment{After: []string{"dev", "gone"}}}
	p := &promotion.Pull{Number: 7, Release: strings.Repeat("a", 64)}
	for on, want := range map[string]int{policies.OnRelease: 2, "": 0} {
		p.Review.ReleaseChecks = nil
		env.Gates = []policies.Gate{{}, {Checks: &policies.Checks{On: on}}}
		if err := o.releaseCheckFacts(t.Context(), c, env, p); err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, k := range p.Review.ReleaseChecks {
			said = append(said, k.Environment+": "+k.Err)
		}
		if len(said) != want || want > 0 && !slices.Equal(said, []string{"dev: no history tells by which commit aaaaaaaaaaaa landed in dev", "gone: no history tells by which commit aaaaaaaaaaaa landed in gone"}) {
			t.Errorf("on %q: %q", on, said)
		}
	}
}

// TestReviewsThatARuleCounts holds which reviews keep a rule of the forge's from being met. An
// account without write access counts for nothing, nor does our own account's approval.
func TestReviewsThatARuleCounts(t *testing.T) {
	t.Parallel()
	bot := policies.Account{ID: 1, Login: "bot"}
	yes, no := true, false
	for name, c := range map[string]struct {
		reviews []forge.Review
		set     forge.RuleSet
		want    []string
	}{
		"none":                    {nil, forge.RuleSet{Approvals: 1}, []string{"needs 1 approval"}},
		"none of owners":          {nil, forge.RuleSet{Approvals: 2, CodeOwners: true}, []string{"needs 2 approvals, code owners among them"}},
		"one of two":              {[]forge.Review{{User: "ada", Approved: true}}, forge.RuleSet{Approvals: 2}, []string{"needs 2 approvals and has 1"}},
		"enough":                  {[]forge.Review{{User: "ada", Approved: true, MayWrite: &yes}}, forge.RuleSet{Approvals: 1}, nil},
		"by who may not write":    {[]forge.Review{{User: "ada", Approved: true, MayWrite: &no}}, forge.RuleSet{Approvals: 1}, []string{"needs 1 approval"}},
		"refused":                 {[]forge.Review{{User: "ada", Approved: true}, {User: "eve", Rejected: true}}, forge.RuleSet{Approvals: 1}, []string{"eve asked for changes"}},
		"refused by an outsider":  {[]forge.Review{{User: "ada", Approved: true}, {User: "eve", Rejected: true, MayWrite: &no}}, forge.RuleSet{Approvals: 1}, nil},
		"by our own account":      {[]forge.Review{{User: "bot", UserID: 1, Approved: true}}, forge.RuleSet{Approvals: 1}, []string{"needs 1 approval"}},
		"a comment":               {[]forge.Review{{User: "ada"}}, forge.RuleSet{Approvals: 1}, []string{"needs 1 approval"}},
		"no approvals are needed": {[]forge.Review{{User: "eve", Rejected: true}}, forge.RuleSet{}, nil},
	} {
		unmet, ended := listUnmet(&c.set, &pullDetail{reviews: people.Reviews{Read: true, All: c.reviews}}, bot)
		if !slices.Equal(unmet, c.want) || ended != (len(c.want) > 0) {
			t.Errorf("%s: %q, ended: %v", name, unmet, ended)
		}
		for what, d := range map[string]*pullDetail{"unread": {reviews: people.Reviews{All: c.reviews}}, "with an error": {reviews: people.Reviews{Read: true, Err: "x", All: c.reviews}}} {
			if unmet, ended := listUnmet(&c.set, d, bot); len(unmet) > 0 || ended {
				t.Errorf("%s, %s: %q", name, what, unmet)
			}
		}
	}
}

// TestChecksThatARuleWants holds what a rule's checks lack, and that only those which run still come
// about by themselves.
func TestChecksThatARuleWants(t *testing.T) {
	t.Parallel()
	check := func(name string, state forge.CheckState) forge.Check {
		return forge.Check{Name: name, State: state, Word: "so"}
	}
	for name, c := range map[string]struct {
		set    forge.RuleSet
		checks []forge.Check
		want   []string
		ended  bool
	}{
		"missing":             {forge.RuleSet{Checks: []string{"ci"}}, nil, []string{`check "ci" is missing`}, false},
		"runs":                {forge.RuleSet{Checks: []string{"ci"}}, []forge.Check{check("ci", forge.CheckPending)}, []string{`check "ci" is so`}, false},
		"failed":              {forge.RuleSet{Checks: []string{"ci"}}, []forge.Check{check("ci", forge.CheckFailed)}, []string{`check "ci" ended with so`}, true},
		"passed":              {forge.RuleSet{Checks: []string{"ci"}}, []forge.Check{check("ci", forge.CheckPassed)}, nil, false},
		"skipped":             {forge.RuleSet{Checks: []string{"ci"}}, []forge.Check{check("ci", forge.CheckSkipped)}, nil, false},
		"the worst of a name": {forge.RuleSet{Checks: []string{"ci"}}, []forge.Check{check("ci", forge.CheckPassed), check("ci", forge.CheckFailed)}, []string{`check "ci" ended with so`}, true},
		"another's":           {forge.RuleSet{Checks: []string{"ci"}}, []forge.Check{check("ci", forge.CheckPassed), check("lint", forge.CheckFailed)}, nil, false},
		"any, none":           {forge.RuleSet{AnyChecks: true}, nil, []string{"no pipeline succeeded"}, false},
		"any, passed":         {forge.RuleSet{AnyChecks: true}, []forge.Check{check("ci", forge.CheckPassed)}, nil, false},
		"any, one fails":      {forge.RuleSet{AnyChecks: true}, []forge.Check{check("ci", forge.CheckPassed), check("lint", forge.CheckFailed)}, []string{`check "lint" ended with so`}, true},
		"nothing is demanded": {forge.RuleSet{}, []forge.Check{check("ci", forge.CheckFailed)}, nil, false},
	} {
		unmet, ended := listUnmet(&c.set, &pullDetail{checks: people.Checks{Read: true, All: c.checks}}, policies.Account{})
		if !slices.Equal(unmet, c.want) || ended != c.ended {
			t.Errorf("%s: %q, ended: %v", name, unmet, ended)
		}
		for what, d := range map[string]*pullDetail{"unread": {checks: people.Checks{All: c.checks}}, "with an error": {checks: people.Checks{Read: true, Err: "x", All: c.checks}}} {
			if unmet, ended := listUnmet(&c.set, d, policies.Account{}); len(unmet) > 0 || ended {
				t.Errorf("%s, %s: %q", name, what, unmet)
			}
		}
	}
	for mergeable, want := range map[forge.Mergeable]int{forge.MergeableBehind: 1, forge.MergeableYes: 0} {
		for upToDate, n := range map[bool]int{true: want, false: 0} {
			unmet, ended := listUnmet(&forge.RuleSet{UpToDate: upToDate}, &pullDetail{pr: forge.PullRequest{Base: "main", Mergeable: mergeable}}, policies.Account{})
			if len(unmet) != n || ended {
				t.Errorf("%s, up to date: %v: %q", mergeable, upToDate, unmet)
			}
		}
	}
}

// TestDeploymentsAreFound finds what is known of a commit's deployment, wherever in the list it is.
func TestDeploymentsAreFound(t *testing.T) {
	t.Parallel()
	d := StoredDeployments{"qa": {{ID: 1, DeploymentRecord: promotion.DeploymentRecord{Commit: "a"}}, {ID: 2, DeploymentRecord: promotion.DeploymentRecord{Commit: "b"}}}}
	for commit, want := range map[string]int64{"a": 1, "b": 2, "c": 0} {
		if got, ok := d.Find("qa", commit); got.ID != want || ok != (want != 0) {
			t.Errorf("%s: %+v, %v", commit, got, ok)
		}
		if _, ok := d.Find("prod", commit); ok {
			t.Errorf("%s is in prod", commit)
		}
	}
}

// TestAnswersOfEndpoints holds which of two answers of an endpoint counts: the newer, a fail for good,
// and what came by a callback also against an answer that decides nothing.
func TestAnswersOfEndpoints(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		outcome  policies.Outcome
		callback bool
		answer   policies.Outcome
		later    time.Duration
		counts   bool
	}{
		"newer":                                {policies.Wait, false, policies.Pass, time.Second, true},
		"of the same time":                     {policies.Wait, false, policies.Pass, 0, true},
		"older":                                {policies.Wait, false, policies.Pass, -time.Second, false},
		"newer, undecided":                     {policies.Wait, false, "", time.Second, true},
		"after a fail":                         {policies.Fail, false, policies.Pass, time.Second, false},
		"after a callback":                     {policies.Wait, true, policies.Pass, time.Second, true},
		"of a callback's time":                 {policies.Wait, true, policies.Pass, 0, false},
		"before a callback":                    {policies.Wait, true, policies.Pass, -time.Second, false},
		"undecided, after a callback":          {policies.Wait, true, "", time.Second, false},
		"undecided, long after a callback":     {policies.Pass, true, "", time.Hour, false},
		"undecided, and it was undecided then": {"", false, "", time.Second, true},
	} {
		s := endpointState{ID: "e", Outcome: c.outcome, At: at, Callback: c.callback, CalledAt: at}
		when := at.Add(c.later)
		s.applyAnswer(policies.EndpointAnswer{Outcome: c.answer, At: when, Reason: "new"}, when.Add(time.Minute), false)
		if got := s.Reason == "new"; got != c.counts || c.counts && (s.Outcome != c.answer || s.Callback || !s.At.Equal(when)) || s.Attempts != 1 {
			t.Errorf("%s: %+v", name, s)
		}
		if newer := c.later > 0; newer != s.CalledAt.Equal(when) && c.later != 0 || newer != s.NextAt.Equal(when.Add(time.Minute)) {
			t.Errorf("%s: it was called at %s, and is next at %s", name, s.CalledAt, s.NextAt)
		}
		before := s
		s.applyAnswer(policies.EndpointAnswer{Outcome: policies.Pass, At: at.Add(time.Hour)}, at, true)
		if before.Attempts++; s != before {
			t.Errorf("%s: without an answer it is %+v", name, s)
		}
	}
}

// TestCallbacksOfEndpoints holds which callbacks count: those signed at a later second than what is
// known, and the same one again changes nothing.
func TestCallbacksOfEndpoints(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	until := at.Add(time.Hour)
	known := endpointState{ID: "e", Outcome: policies.Wait, Reason: "r", Until: until, At: at, SignedAt: at, Callback: true}
	same := policies.EndpointAnswer{Outcome: policies.Wait, Reason: "r", Until: until, At: at}
	with := func(change func(a *policies.EndpointAnswer)) policies.EndpointAnswer {
		a := same
		change(&a)
		return a
	}
	for name, c := range map[string]struct {
		known   func(s *endpointState)
		answer  policies.EndpointAnswer
		changed bool
		err     error
	}{
		"the same":                     {nil, same, false, nil},
		"the same, later":              {nil, with(func(a *policies.EndpointAnswer) { a.At = at.Add(time.Second) }), true, nil},
		"another outcome":              {nil, with(func(a *policies.EndpointAnswer) { a.Outcome = policies.Pass }), false, ErrStaleCallback},
		"another reason":               {nil, with(func(a *policies.EndpointAnswer) { a.Reason = "s" }), false, ErrStaleCallback},
		"another end":                  {nil, with(func(a *policies.EndpointAnswer) { a.Until = at }), false, ErrStaleCallback},
		"after an answer of its own":   {func(s *endpointState) { s.Callback = false }, same, false, ErrStaleCallback},
		"earlier":                      {nil, with(func(a *policies.EndpointAnswer) { a.At = at.Add(-time.Second) }), false, ErrStaleCallback},
		"after a fail":                 {func(s *endpointState) { s.Outcome = policies.Fail }, with(func(a *policies.EndpointAnswer) { a.At = at.Add(time.Hour) }), false, ErrFinal},
		"the fail itself again":        {func(s *endpointState) { s.Outcome = policies.Fail }, with(func(a *policies.EndpointAnswer) { a.Outcome = policies.Fail }), false, nil},
		"in the second of an answer":   {func(s *endpointState) { s.SignedAt, s.At = time.Time{}, at.Add(time.Millisecond) }, same, true, nil},
		"in the second before":         {func(s *endpointState) { s.SignedAt, s.At = time.Time{}, at.Add(time.Second) }, same, false, ErrStaleCallback},
		"the first, and none is known": {func(s *endpointState) { *s = endpointState{ID: "e"} }, same, true, nil},
	} {
		s := known
		if c.known != nil {
			c.known(&s)
		}
		before := s
		changed, err := s.applyCallback(c.answer)
		if changed != c.changed || !errors.Is(err, c.err) || !changed && s != before {
			t.Errorf("%s: %v, %v, %+v", name, changed, err, s)
		}
		if want := c.answer; changed && (s.Outcome != want.Outcome || !s.At.Equal(want.At) || !s.SignedAt.Equal(want.At) || !s.Callback || !s.Until.Equal(want.Until)) {
			t.Errorf("%s: it is kept as %+v", name, s)
		}
	}
}

// TestSeenInTheQueue records of a pull request in the forge's merge queue that Liftlock had it join
// where the record of its judgement is known, and of no other.
func TestSeenInTheQueue(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	u := promotion.Unit{Repo: "hub:acme/fleet", Pipeline: "shop", Component: "web"}
	queued := func(change func(p *promotion.Pull)) *promotion.Pull {
		p := &promotion.Pull{Number: 7, Head: "h", Queued: true}
		change(p)
		return p
	}
	same := func(*promotion.Pull) {}
	for name, c := range map[string]struct {
		env    promotion.Env
		record *promotion.MergeRecord
		want   bool
	}{
		"open":                         {promotion.Env{Open: queued(same)}, &promotion.MergeRecord{Head: "h", JudgedAt: at}, true},
		"a revert":                     {promotion.Env{Revert: queued(same)}, &promotion.MergeRecord{Head: "h", JudgedAt: at, Kind: promotion.KindRevert}, true},
		"of the wrong kind":            {promotion.Env{WrongKind: queued(same)}, &promotion.MergeRecord{Head: "h", JudgedAt: at}, true},
		"of all":                       {promotion.Env{BatchPull: queued(same)}, &promotion.MergeRecord{Head: "h", JudgedAt: at}, true},
		"another head":                 {promotion.Env{Open: queued(same)}, &promotion.MergeRecord{Head: "other", JudgedAt: at}, false},
		"never judged":                 {promotion.Env{Open: queued(same)}, nil, false},
		"never judged, without a head": {promotion.Env{Open: queued(func(p *promotion.Pull) { p.Head = "" })}, nil, false},
		"not in the queue":             {promotion.Env{Open: queued(func(p *promotion.Pull) { p.Queued = false })}, &promotion.MergeRecord{Head: "h", JudgedAt: at}, false},
		"noted already":                {promotion.Env{Open: queued(func(p *promotion.Pull) { p.JoinedQueueAt = at })}, &promotion.MergeRecord{Head: "h", JudgedAt: at}, false},
		"none":                         {promotion.Env{}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
			if c.record != nil {
				w.putRecord(Merging.Key(OfMerge(u, 7)), c.record)
			}
			c.env.Name = "qa"
			e := &ComponentEvaluation{ComponentBasis: branch.ComponentBasis{Facts: promotion.ComponentFacts{Unit: u, Envs: []promotion.Env{{Name: "dev"}, c.env}}}}
			w.failUntilDone("seen", nil, w.inTx(func(ctx context.Context, tx *store.Tx) error { return w.o.Records.RecordSeenQueued(ctx, tx, e) }))
			raw, got, err := w.store.Record(t.Context(), joinedQueues.Key(record.OfPull(u.Repo, 7)))
			w.must(err)
			if got != c.want {
				t.Fatalf("it is noted: %v", got)
			}
			if !got {
				return
			}
			var note joinedQueue
			w.must(json.Unmarshal(raw, &note))
			want := joinedQueue{Head: "h", Pipeline: "shop", At: at}
			if c.record.Kind == promotion.KindRevert { // which counts in no limit
				want.Pipeline = ""
			}
			if diff := cmp.Diff(want, note); diff != "" {
				t.Errorf("it is noted (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRulesSinceTheJudgement tells whether the forge demands something else by now than what was judged.
func TestRulesSinceTheJudgement(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	rules := &forge.BranchRules{Sets: []forge.RuleSet{{Name: "main", Approvals: 1}}}
	w.rules = rules
	for name, c := range map[string]struct {
		judgedBy *readRules
		want     bool
	}{
		"never judged":  {nil, true},
		"the same":      {&readRules{Rules: &forge.BranchRules{Sets: []forge.RuleSet{{Name: "main", Approvals: 1}}}}, false},
		"others":        {&readRules{Rules: &forge.BranchRules{Sets: []forge.RuleSet{{Name: "main", Approvals: 2}}}}, true},
		"unread before": {&readRules{Rules: rules, Err: "who knows"}, true},
	} {
		if got, err := w.o.Rules.RulesChanged(w.ctx(), w.repo, &OpenPull{PR: &forge.PullRequest{Base: "main"}, judgedBy: c.judgedBy}); got != c.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for kind, changed := range map[error]bool{forge.ErrRetryable: false, forge.ErrForbidden: true} {
		w.fails["rules"] = &forge.Error{Op: "read the rules", Kind: kind}
		got, err := w.o.Rules.RulesChanged(w.ctx(), w.repo, &OpenPull{PR: &forge.PullRequest{Base: "main"}, judgedBy: &readRules{Rules: rules}})
		if got != changed || (err == nil) != changed || err != nil && !errors.Is(err, kind) {
			t.Errorf("%v: %v, %v", kind, got, err)
		}
	}
}

// TestMarksWithoutASecret holds that a server without a secret signs nothing and believes nothing, and that
// only a signature for the very head counts.
func TestMarksWithoutASecret(t *testing.T) {
	t.Parallel()
	k := branch.Marker{Kind: promotion.KindPromotion, Release: strings.Repeat("a", 64)}
	signer, err := branch.NewMarkSigner([]byte("new"), []byte("old"))
	if err != nil {
		t.Fatal(err)
	}
	old, err := branch.NewMarkSigner([]byte("old"))
	if err != nil {
		t.Fatal(err)
	}
	var nobody branch.MarkSigner
	if got := nobody.Sign("r", "b", "h", k); got != k.String() || strings.Contains(got, "sig=") {
		t.Errorf("nobody signs %s", got)
	}
	body := signer.Sign("r", "b", "h", k)
	for name, c := range map[string]struct {
		signer branch.MarkSigner
		heads  []string
		body   string
		want   bool
	}{
		"its own":          {signer, []string{"g", "h"}, body, true},
		"of before":        {signer, []string{"h"}, old.Sign("r", "b", "h", k), true},
		"of nobody":        {nobody, []string{"h"}, body, false},
		"of another's":     {old, []string{"h"}, body, false},
		"for another head": {signer, []string{"g"}, body, false},
		"for no head":      {signer, []string{""}, signer.Sign("r", "b", "", k), false},
		"unsigned":         {signer, []string{"h"}, k.String(), false},
		"none":             {signer, []string{"h"}, "words", false},
	} {
		if got, ok := c.signer.Signed("r", "b", c.heads, c.body); ok != c.want || ok && got.Release != k.Release || !ok && got.Release != "" {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	many := branch.Marker{Kind: promotion.KindRevert, Release: k.Release}
	if got, ok := branch.ReadMarker(strings.Replace(many.String(), " -->", " of=99999999999999999999 -->", 1)); !ok || got.Of != 0 || got.Kind != promotion.KindRevert {
		t.Errorf("a number that is none is read as %+v, %v", got, ok)
	}
}

// TestLandedHasNothingBefore says of what can't be compared why: the first commit of all, and one that
// isn't on the branch.
func TestLandedHasNothingBefore(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	root := w.head("main")
	topic := w.commitTo("ada", "topic", root, "Topic", map[string]string{"x": "x"})
	s, err := w.o.Targets.Snapshot(w.ctx(), w.repo)
	w.must(err)
	p, _ := s.Unit(w.unit("web"))
	ev := &Evaluation{Basis: branch.Basis{Unit: w.unit("web"), Snapshot: s, Pipeline: p}}
	for commit, want := range map[string]string{root: "has no commit before it to compare with", topic: "which is not on main", "": "which is not on main", strings.Repeat("0", 40): "which is not on main"} {
		var none *effects.NoDifferenceError
		if _, err := w.o.Effects.LandedDifference(w.ctx(), &ev.Basis, []string{"web"}, "qa", &forge.PullRequest{Number: 7, MergeCommit: commit}); !errors.As(err, &none) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", commit, err)
		}
	}
}

// TestRequestersOfItsHead reads who asked for a promotion from its head alone, unless that is a merge,
// which has no word of it.
func TestRequestersOfItsHead(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	main := w.head("main")
	requested := func(who string) string { return "Promote\n\n" + promotion.TrailerRequesters + ": " + who + "\n" }
	first := w.commitTo("ada", "topic", main, requested("ada"), map[string]string{"x": "x"})
	second := w.commitTo("ada", "topic", first, requested("linus"), map[string]string{"x": "y"})
	merge := w.mergeCommit(second, second, main)
	w.must(w.forge.Push(storyRepo, "ada", "topic", merge, true))
	w.fetch()
	ev, _ := w.evaluate("web", false)
	c := ev.Components[0]
	for head, want := range map[string][]string{first: {"ada"}, second: {"linus"}, merge: {"linus", "ada"}} {
		accounts, err := people.RecordedRequesters(w.ctx(), &c.ComponentBasis, &promotion.Env{Tip: main}, head)
		var got []string
		for _, a := range accounts {
			got = append(got, a.Login)
		}
		if slices.Sort(got); err != nil || !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("of %s: %q, %v", w.names[head], got, err)
		}
	}
	if _, err := people.RecordedRequesters(w.ctx(), &c.ComponentBasis, &promotion.Env{Tip: main}, strings.Repeat("0", 40)); !errors.Is(err, git.ErrUnknownCommit) {
		t.Errorf("of what isn't known: %v", err)
	}
}

// TestHeadBroughtUpTooOften isn't taken for ours where it is of too many commits to look at.
func TestHeadBroughtUpTooOften(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	main := w.head("main")
	at := main
	ev, _ := w.evaluate("web", false)
	env := &promotion.Env{Name: "qa", Branch: "main", Tip: main}
	for n := 1; n <= branch.MaxBroughtCommits+1; n++ {
		var err error
		at, err = w.remote.Write(w.ctx(), git.CommitSpec{Message: "More", When: w.now, Parents: []string{at}, Base: at})
		w.must(err)
		if n < branch.MaxBroughtCommits {
			continue
		}
		w.must(w.forge.Push(storyRepo, "ada", "topic", at, true))
		w.fetch()
		why, err := inspectMerges(w.ctx(), ev, env, main, at)
		w.must(err)
		if many := n > branch.MaxBroughtCommits; strings.Contains(why, fmt.Sprintf("is more than %d commits on top of main", branch.MaxBroughtCommits)) != many {
			t.Errorf("of %d commits: %q", n, why)
		}
	}
}

// TestFieldsOfTwoOwners says whose a field is only where one member alone has its file.
func TestFieldsOfTwoOwners(t *testing.T) {
	w := newStory(t, "  batch: environment\n"+twoEnvs, []string{"dev", "qa"}, "api", "web")
	ev, _ := w.evaluate(promotion.BatchName, false)
	both := []promotion.Member{{Component: "api"}, {Component: "web"}}
	for name, c := range map[string]struct {
		members []promotion.Member
		file    string
		want    string
	}{
		"one's":      {both, overlayFile("web", "qa"), "web"},
		"no one's":   {both, "docs", ""},
		"who's gone": {[]promotion.Member{{Component: "gone"}}, overlayFile("web", "qa"), ""},
		"two's":      {[]promotion.Member{{Component: "web"}, {Component: "web"}}, overlayFile("web", "qa"), ""},
	} {
		if got := ev.FieldOwner("qa", c.members, c.file, "no.such.path"); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
