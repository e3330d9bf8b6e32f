package promotion

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestBranches reads what was written, and nothing else.
func TestBranches(t *testing.T) {
	if got := Branch("shop", "qa", "web"); got != "liftlock/shop/qa/web" {
		t.Errorf("a promotion's is %s", got)
	}
	if got := RevertBranch("shop", "qa", "web", id("r2")); got != "liftlock-revert/shop/qa/web/723200000000" {
		t.Errorf("a revert's is %s", got)
	}
	for name, want := range map[string]BranchRef{
		Branch("shop", "qa", "web"):                 {Pipeline: "shop", Environment: "qa", Component: "web"},
		RevertBranch("shop", "qa", "web", id("r2")): {Pipeline: "shop", Environment: "qa", Component: "web", Short: "723200000000", Revert: true},
	} {
		if got, ours := ParseBranch(name); !ours || got != want {
			t.Errorf("%s is %+v, ours: %t", name, got, ours)
		}
	}
	for _, name := range []string{"", "main", "liftlock/shop/qa", "liftlock/shop/qa/web/more", "liftlock//qa/web", "liftlock-revert/shop/qa/web", "liftlock-revert/shop/qa/web/", "liftlock-revert/shop/qa/web/7232/more", "other/shop/qa/web"} {
		if got, ours := ParseBranch(name); ours {
			t.Errorf("%q is taken for %+v", name, got)
		}
	}
}

// TestReleaseFromTrailers holds that a commit tells only of the unit and the environment
// that it is about.
func TestReleaseFromTrailers(t *testing.T) {
	web := Unit{Pipeline: "shop", Component: "web"}
	of := func(change func(map[string]string)) map[string]string {
		all := map[string]string{TrailerPipeline: "shop", TrailerEnvironment: "qa", TrailerComponent: "web", TrailerRelease: id("r2")}
		if change != nil {
			change(all)
		}
		return all
	}
	for name, c := range map[string]struct {
		trailers map[string]string
		want     string
	}{
		"its own":                {of(nil), id("r2")},
		"of another pipeline":    {of(func(all map[string]string) { all[TrailerPipeline] = "books" }), ""},
		"of another environment": {of(func(all map[string]string) { all[TrailerEnvironment] = "prod" }), ""},
		"of another component":   {of(func(all map[string]string) { all[TrailerComponent] = "api" }), ""},
		"of one, with who moves": {of(func(all map[string]string) { all[TrailerMembers] = "web 723300000000" }), id("r2")},
		"of several": {of(func(all map[string]string) {
			all[TrailerComponent], all[TrailerMembers] = BatchName, "api 723100000000, web 723300000000"
		}), "723300000000"},
		"of several without this": {of(func(all map[string]string) {
			all[TrailerComponent], all[TrailerMembers] = BatchName, "api 723100000000"
		}), ""},
		"of nobody": {nil, ""},
	} {
		if got := ReleaseFromTrailers(c.trailers, web, "qa"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestNamesOfReleases falls back on the identity where nobody gave a name.
func TestNamesOfReleases(t *testing.T) {
	if got := (Release{ID: id("r2")}).String(); got != "723200000000" {
		t.Errorf("without a name it is %q", got)
	}
	j := &evaluator{facts: arrivedFacts()}
	if got := j.releaseName(id("r2")); got != "r2" {
		t.Errorf("what dev had is %q", got)
	}
	if got := j.releaseName(id("r9")); got != id("r9")[:12] {
		t.Errorf("what nobody saw is %q", got)
	}
}

// TestActionsAreWritten says in a few words what is done, and keeps all of it as JSON.
func TestActionsAreWritten(t *testing.T) {
	shown := SetDeployment{Environment: "qa", Commit: "0123456789abcdef", State: DeploymentSuccess}
	if got, want := shown.Describe(), "show the deployment of 0123456789ab in qa as success"; got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
	if got := DeploymentTask(Unit{Pipeline: "shop", Component: "web"}); got != "liftlock:shop/web" {
		t.Errorf("its task is %q", got)
	}
	raw, err := json.Marshal(ComponentDecision{Actions: []Action{RestartVerification{Environment: "qa"}}})
	if err != nil || !strings.Contains(string(raw), "RestartVerification") {
		t.Errorf("%s, %v", raw, err)
	}
	if _, err := json.Marshal(Decision{Actions: []Action{Merge{}}, Next: time.Date(10001, 1, 1, 0, 0, 0, 0, time.UTC)}); err == nil {
		t.Error("a time that JSON can't say is written")
	}
	if _, err := json.Marshal(ComponentDecision{Next: time.Date(10001, 1, 1, 0, 0, 0, 0, time.UTC)}); err == nil {
		t.Error("a component's time that JSON can't say is written")
	}
}

// TestIsLate tells whether something may have been held since a command was given.
func TestIsLate(t *testing.T) {
	for name, c := range map[string]struct {
		given time.Time
		want  bool
	}{
		"now":                         {time.Time{}, false},
		"as long ago as clocks lie":   {noon.Add(-liftSlack), false},
		"longer ago":                  {noon.Add(-liftSlack - time.Second), true},
		"by a clock that is in front": {noon.Add(time.Hour), false},
	} {
		if got := (Lift{Given: c.given}).IsLate(noon); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
