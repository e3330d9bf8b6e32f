package promotion

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// deploying has r2 landed in qa by #5, five minutes ago.
func deploying(by string) *ComponentFacts {
	f := linearFacts()
	f.Pipeline.Spec.Deployments = true
	f.land("dev", "r2", ByPerson, 0)
	pull := 5
	if by == ByPerson {
		pull = 0
	}
	f.verified("dev").land("qa", "r2", by, pull)
	return f.verdict("qa", verification.Progressing, "syncing")
}

// shownDeployments are what a decision has the forge show.
func shownDeployments(d Decision) []string {
	out := []string{}
	for _, s := range d.Steps() {
		if x, is := s.Action.(SetDeployment); is {
			out = append(out, x.Commit+" "+string(x.State)+map[bool]string{true: " of a revert"}[x.Revert])
		}
	}
	return out
}

// TestDeployments holds what the forge shows of an environment, and when it is told.
func TestDeployments(t *testing.T) {
	record := func(commit string, state DeploymentState) DeploymentRecord {
		at := noon.Add(-5 * time.Minute)
		if commit != "qa-r2" {
			at = noon.Add(-3 * time.Hour)
		}
		return DeploymentRecord{Commit: commit, At: at, State: state}
	}
	verified := func() *ComponentFacts {
		return deploying(ByPromotion).verdict("qa", verification.Verified, "").verified("qa")
	}
	refused := record("qa-r2", "")
	refused.Refused, refused.RefusedAt = "no permission", noon.Add(-time.Minute)
	before, before3 := record("qa-r1", DeploymentSuccess), record("qa-r0", DeploymentFailure)
	for name, c := range map[string]struct {
		facts       *ComponentFacts
		records     []DeploymentRecord
		unsupported string
		want        []string
		why         string
		next        time.Time
	}{
		"it landed":                  {facts: deploying(ByPromotion), want: []string{"qa-r2 in_progress"}},
		"a revert landed":            {facts: deploying(ByRevert), want: []string{"qa-r2 in_progress of a revert"}},
		"a person's change landed":   {facts: deploying(ByPerson)},
		"nobody wants it":            {facts: deploying(ByPromotion).with(func(f *ComponentFacts) { f.Pipeline.Spec.Deployments = false })},
		"it only watches":            {facts: deploying(ByPromotion).with(func(f *ComponentFacts) { f.Pipeline.Spec.Mode = pipeline.ModeDryRun })},
		"it is shown":                {facts: deploying(ByPromotion), records: []DeploymentRecord{record("qa-r2", DeploymentInProgress)}},
		"verified":                   {facts: verified(), records: []DeploymentRecord{record("qa-r2", DeploymentInProgress)}, want: []string{"qa-r2 success"}},
		"verified, shown":            {facts: verified(), records: []DeploymentRecord{record("qa-r2", DeploymentSuccess)}},
		"degraded":                   {facts: deploying(ByPromotion).verdict("qa", verification.Degraded, "health"), records: []DeploymentRecord{record("qa-r2", DeploymentInProgress)}, want: []string{"qa-r2 failure"}},
		"failed":                     {facts: deploying(ByPromotion).verdict("qa", verification.Failed, "never arrived"), records: []DeploymentRecord{record("qa-r2", DeploymentInProgress)}, want: []string{"qa-r2 error"}},
		"verified again":             {facts: verified(), records: []DeploymentRecord{record("qa-r2", DeploymentFailure)}, want: []string{"qa-r2 success"}},
		"what was there stays, yet":  {facts: deploying(ByPromotion), records: []DeploymentRecord{before, record("qa-r2", DeploymentInProgress)}},
		"what was there is over":     {facts: verified(), records: []DeploymentRecord{before, before3, record("qa-r2", DeploymentInProgress)}, want: []string{"qa-r2 success", "qa-r1 inactive"}},
		"what was there isn't known": {facts: verified(), records: []DeploymentRecord{record("qa-r1", ""), record("qa-r2", DeploymentSuccess)}, want: []string{"qa-r1 inactive"}},
		"nobody waits for what was there": {facts: deploying(ByPromotion), records: []DeploymentRecord{record("qa-r1", DeploymentInProgress), record("qa-r2", DeploymentInProgress)},
			want: []string{"qa-r1 inactive"}},
		"it landed in the very second": {facts: deploying(ByPromotion), records: []DeploymentRecord{{Commit: "qa-r1", At: noon.Add(-5 * time.Minute), State: DeploymentSuccess}, record("qa-r2", DeploymentInProgress)}, want: []string{"qa-r1 inactive"}},
		"a person took its place":      {facts: deploying(ByPerson), records: []DeploymentRecord{before}, want: []string{"qa-r1 inactive"}},
		"nobody knows what is there": {facts: deploying(ByPerson).with(func(f *ComponentFacts) { f.env("qa").Landed = Unsure[Landed]("the log can't be read") }),
			records: []DeploymentRecord{before}},
		"it landed long ago":                     {facts: verified().with(func(f *ComponentFacts) { f.env("qa").Landed.Value.At = noon.Add(-24 * time.Hour) })},
		"it landed as long ago as it is watched": {facts: deploying(ByPromotion).with(func(f *ComponentFacts) { f.env("qa").Landed.Value.At = noon.Add(-watchWindow) }), want: []string{"qa-r2 in_progress"}},
		"nobody knows which release is there": {facts: deploying(ByPerson).with(func(f *ComponentFacts) { f.env("qa").Release = Unsure[Release]("line 3") }),
			records: []DeploymentRecord{before}},
		"it landed long ago and degrades": {facts: deploying(ByPromotion).verdict("qa", verification.Degraded, "health").with(func(f *ComponentFacts) { f.env("qa").Landed.Value.At = noon.Add(-24 * time.Hour) }),
			records: []DeploymentRecord{record("qa-r2", DeploymentSuccess)}, want: []string{"qa-r2 failure"}},
		"the forge has none":                   {facts: deploying(ByPromotion), unsupported: "hub has none", why: "hub has none"},
		"refused":                              {facts: deploying(ByPromotion), records: []DeploymentRecord{refused}, why: "the forge takes no deployment of it: no permission", next: noon.Add(59 * time.Minute)},
		"refused, and no longer":               {facts: deploying(ByPromotion).with(func(f *ComponentFacts) { f.Now = noon.Add(50 * time.Minute) }), records: []DeploymentRecord{{Commit: "qa-r2", At: noon, Refused: "no", RefusedAt: noon.Add(-10 * time.Minute)}}, why: "the forge takes no deployment of it: no", want: []string{"qa-r2 in_progress"}},
		"refused, and over by then":            {facts: verified().with(func(f *ComponentFacts) { f.Now = noon.Add(24 * time.Hour) }), records: []DeploymentRecord{refused}, why: "the forge takes no deployment of it: no permission"},
		"refused, and something else is there": {facts: deploying(ByPerson), records: []DeploymentRecord{{Commit: "qa-r1", At: noon.Add(-time.Hour), Refused: "no", RefusedAt: noon.Add(-time.Hour)}}},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(Facts{Components: []ComponentFacts{*c.facts}, Deployments: Deployments{Unsupported: c.unsupported, Records: map[string][]DeploymentRecord{"qa": c.records}}})
			if diff := cmp.Diff(append([]string{}, c.want...), shownDeployments(d)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var whys []string
			for _, w := range d.Components[0].Env("qa").Why {
				if w.Code == "deployments" {
					whys = append(whys, w.Text)
				}
			}
			if got := strings.Join(whys, ", "); got != c.why {
				t.Errorf("it says %q, want %q", got, c.why)
			}
			if !c.next.IsZero() && (d.Next.IsZero() || d.Next.After(c.next)) {
				t.Errorf("it looks again at %s, want %s", d.Next, c.next)
			}
		})
	}
}

// TestDeploymentOfABatch holds that what landed together is one deployment, for which the
// worst of it speaks, and which is over when nothing of it is there any more.
func TestDeploymentOfABatch(t *testing.T) {
	who := makeMembers("api r2", "web r2")
	y := newBatchFixture("api", "db", "web").landed("qa", 5, who).verifyAll("qa", "api", "web")
	for _, f := range y {
		f.Pipeline.Spec.Deployments = true
	}
	decide := func(records ...DeploymentRecord) Decision {
		var f Facts
		for _, name := range y.names() {
			f.Components = append(f.Components, *y[name])
		}
		f.Deployments.Records = map[string][]DeploymentRecord{"qa": records}
		return Decide(f)
	}
	check := func(what string, d Decision, want ...string) {
		t.Helper()
		if diff := cmp.Diff(append([]string{}, want...), shownDeployments(d)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	d := decide()
	check("all are well", d, "merge-5 success")
	i := slices.IndexFunc(d.Actions, func(a Action) bool { _, is := a.(SetDeployment); return is })
	if x := d.Actions[i].(SetDeployment); !cmp.Equal(x.Members, who) || x.Pull != 5 || !strings.HasPrefix(x.Reason, "api: ") {
		t.Errorf("%+v", x)
	}
	landed := DeploymentRecord{Commit: "merge-5", At: noon.Add(-5 * time.Minute), State: DeploymentSuccess}
	y["web"].verdict("qa", verification.Degraded, "health")
	d = decide(landed)
	check("web is degraded", d, "merge-5 failure")
	y["web"].land("qa", "r3", ByPromotion, 6).Landed.Value.At = noon
	y["web"].verdict("qa", verification.Verified, "").verified("qa")
	check("web has moved on", decide(landed), "qa-r3 success")
	y["db"].Envs = y["db"].Envs[:1] // it has no qa
	check("one has no such environment", decide(landed), "qa-r3 success")
	y["api"].land("qa", "r9", ByPerson, 0)
	check("so has api", decide(landed), "qa-r3 success", "merge-5 inactive")
}

// TestDeploymentsAreLast holds that nothing waits for what the forge shows.
func TestDeploymentsAreLast(t *testing.T) {
	shown := SetDeployment{Environment: "qa", Commit: "c", State: DeploymentSuccess}
	open := Open{Environment: "qa", Name: "r2"}
	d := Decision{Components: []ComponentDecision{{Actions: []Action{RestartVerification{Environment: "qa"}, RequestReviewers{Environment: "qa", Pull: 7}}, Answers: []FinishCommand{{ID: 1}}}}, Actions: []Action{shown, open}}
	want := []Step{{0, RestartVerification{Environment: "qa"}}, {-1, open}, {0, FinishCommand{ID: 1}}, {0, RequestReviewers{Environment: "qa", Pull: 7}}, {-1, shown}}
	if diff := cmp.Diff(want, d.Steps()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
