package promotion

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// TestRevertLeadsWithTheCause has the first line of a revert's evidence.
func TestRevertLeadsWithTheCause(t *testing.T) {
	web := verification.Resource{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Degraded", Message: "0 of 2 pods ready: ImagePullBackOff"}
	api := verification.Resource{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "api", Health: "Degraded", Message: "CrashLoopBackOff"}
	silent := verification.Resource{Kind: "Service", Namespace: "shop", Name: "web", Health: "Missing"}
	own := Sure([]Object{{"apps", "Deployment", "shop", "web"}})
	for _, c := range []struct {
		name      string
		unhealthy []verification.Resource
		changed   Known[[]Object]
		more      int // targets that are degraded too
		want      string
	}{
		{"a resource, in Argo CD's words", []verification.Resource{web}, Known[[]Object]{}, 0, "Deployment web: 0 of 2 pods ready: ImagePullBackOff (web-qa)"},
		{"one that the promotion changed", []verification.Resource{api, web}, own, 0, "Deployment web: 0 of 2 pods ready: ImagePullBackOff (web-qa; #5 changed it)"},
		{"none that it changed", []verification.Resource{api}, own, 0, "Deployment api: CrashLoopBackOff (web-qa)"},
		{"one about which something is said", []verification.Resource{silent, api}, Known[[]Object]{}, 0, "Deployment api: CrashLoopBackOff (web-qa)"},
		{"the first about which something is said", []verification.Resource{api, web}, Known[[]Object]{}, 0, "Deployment api: CrashLoopBackOff (web-qa)"},
		{"nothing is said", []verification.Resource{silent}, Known[[]Object]{}, 0, "Service web: it is Missing (web-qa)"},
		{"no resource is named", nil, Known[[]Object]{}, 0, "the sync of this commit ended Failed: the PreSync hook Job db-migrate: denied (web-qa)"},
		{"several targets", []verification.Resource{web}, Known[[]Object]{}, 2, "Deployment web: 0 of 2 pods ready: ImagePullBackOff (web-qa and 2 more of 4 targets)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := linearFacts()
			e := f.land("qa", "r2", ByPromotion, 5)
			f.verdict("qa", verification.Degraded, "the sync of this commit ended Failed: the PreSync hook Job db-migrate: denied")
			e.Targets[0].Unhealthy, e.Targets[0].ChangedObjects = Sure(c.unhealthy), c.changed
			for range c.more {
				e.Targets = append(e.Targets, e.Targets[0])
			}
			if c.more > 0 {
				e.Targets = append(e.Targets, Target{Name: "well"})
			}
			j := &evaluator{facts: f, spec: &f.Pipeline.Spec}
			x := j.collectEvidence(e, Guilty)
			if got := x.Describe()[0]; got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	f := linearFacts()
	e := f.land("qa", "r2", ByPromotion, 5)
	f.verdict("qa", verification.Degraded, "health is Degraded")
	e.Targets[0].Unhealthy = Unsure[[]verification.Resource]("403 Forbidden")
	x := (&evaluator{facts: f, spec: &f.Pipeline.Spec}).collectEvidence(e, Guilty)
	got := x.Describe()
	if got[0] != "health is Degraded (web-qa)" || !slices.Contains(got, "web-qa: which of its resources are unhealthy is not known: 403 Forbidden") {
		t.Errorf("where it isn't known: %q", got)
	}
	if got := new(Evidence).Describe(); got != nil {
		t.Errorf("nothing is degraded: %q", got)
	}
}

// degradedFacts is qa with r2, which a promotion brought and which degraded, its Deployment being what changed.
func degradedFacts() (*ComponentFacts, *Target) {
	f := linearFacts()
	f.land("dev", "r2", ByPerson, 0)
	e := f.land("qa", "r2", ByPromotion, 5)
	f.verified("dev").verdict("qa", verification.Degraded, "health is Degraded")
	e.Restore = Sure(Composition{Tip: tip})
	t := &e.Targets[0]
	t.ArgoCD, t.Timeline = "hub", []verification.StateChange{{At: noon, State: verification.Degraded, Note: "health is Degraded"}}
	t.LastSync = &SyncInfo{StartedAt: noon.Add(-4 * time.Minute), FinishedAt: noon.Add(-3 * time.Minute), Phase: "Succeeded"}
	t.Unhealthy = Sure([]verification.Resource{
		{Kind: "Service", Name: "web", Health: "Progressing"},
		{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Degraded", Message: "too slow", Descendants: []verification.Descendant{{Kind: "Pod", Name: "web-1", Health: "Degraded", Reason: "ImagePullBackOff"}}},
	})
	t.ChangedObjects = Sure([]Object{{"apps", "Deployment", "shop", "web"}})
	return f, t
}

// TestEvidence is what a revert and a hold are judged by.
func TestEvidence(t *testing.T) {
	yes, no := true, false
	other := ClusterIncident{ID: "hub/argocd/api-qa", Cluster: "one", Target: "api-qa", Health: "Degraded", Since: noon.Add(-time.Minute), RevisionChanged: &no}
	target := TargetEvidence{
		Target: "web-qa", ArgoCD: "hub", Cluster: "one", Reason: "health is Degraded",
		Operation: &SyncInfo{StartedAt: noon.Add(-4 * time.Minute), FinishedAt: noon.Add(-3 * time.Minute), Phase: "Succeeded"},
		Resources: []ResourceEvidence{
			{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Degraded", Message: "too slow", ChangedByPromotion: &yes, Children: []verification.Descendant{{Kind: "Pod", Name: "web-1", Health: "Degraded", Reason: "ImagePullBackOff"}}},
			{Kind: "Service", Name: "web", Health: "Progressing", ChangedByPromotion: &no},
		},
		OtherCommits: []string{}, Timeline: []verification.StateChange{{At: noon, State: verification.Degraded, Note: "health is Degraded"}},
	}
	otherTargets := []OtherTarget{{Application: "hub/argocd/api-qa", Cluster: "one", Health: "Degraded", Since: noon.Add(-time.Minute), RevisionChanged: &no}}
	before := RuledOut{CheckUnhealthyBefore, "every degraded target was well just before #5 was merged, and until its sync began"}
	commits := RuledOut{CheckOtherCommit, "no other commit has changed what the degraded targets read since"}
	for _, c := range []struct {
		name     string
		change   func(f *ComponentFacts, t *Target, want *TargetEvidence)
		ruledOut []RuledOut
		held     string // what the hold's reason contains; empty: it is taken back
		sure     Confidence
	}{
		{"nothing else explains it", nil, []RuledOut{before, commits, {CheckIncident, "no target that #5 didn't touch became unwell in the same window"}}, "", Guilty},
		{"its own in the middle of an incident", func(f *ComponentFacts, _ *Target, want *TargetEvidence) {
			f.ClusterIncidents, want.OtherTargets = []ClusterIncident{other}, otherTargets
		}, []RuledOut{before, commits, {CheckIncident, "api-qa, which #5 didn't touch, became unwell too, but what is degraded in web-qa (Deployment web) is what #5 changed"}}, "", Guilty},
		{"an incident", func(f *ComponentFacts, t *Target, want *TargetEvidence) {
			f.ClusterIncidents, want.OtherTargets = []ClusterIncident{other}, otherTargets
			t.ChangedObjects = Sure([]Object(nil))
			want.Resources = []ResourceEvidence{want.Resources[0], want.Resources[1]}
			want.Resources[0].ChangedByPromotion = &no
		}, []RuledOut{before, commits}, "an incident is likely", LikelyIncident},
		{"another commit", func(_ *ComponentFacts, t *Target, want *TargetEvidence) {
			t.ChangedSince = Sure([]string{"abcdef"})
			want.OtherCommits = []string{"abcdef"}
		}, []RuledOut{before}, "abcdef also changed what web-qa reads", Unclear},
		{"unwell before", func(_ *ComponentFacts, t *Target, _ *TargetEvidence) { t.HealthyBefore = Sure(false) }, nil, "already unwell", Unclear},
		{"nobody knows which", func(_ *ComponentFacts, t *Target, want *TargetEvidence) {
			t.Unhealthy = Unsure[[]verification.Resource]("403")
			want.Resources, want.ResourcesUnknown = nil, "403"
		}, []RuledOut{before, commits, {CheckIncident, "no target that #5 didn't touch became unwell in the same window"}}, "", Guilty},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, tg := degradedFacts()
			want := Evidence{Component: "web", Environment: "qa", Pull: 5, Commit: "qa-r2", Release: id("r2"), Name: "r2", AllTargets: 1, RuledOut: c.ruledOut, Confidence: c.sure, Targets: []TargetEvidence{target}}
			if c.change != nil {
				c.change(f, tg, &want.Targets[0])
			}
			d := Decide(Facts{Components: []ComponentFacts{*f}})
			got := d.Components[0].Env("qa").Evidence
			if i := slices.IndexFunc(d.Actions, func(a Action) bool { _, opens := a.(OpenRevert); return opens }); c.held == "" {
				if i < 0 || got != nil {
					t.Fatalf("it isn't taken back: %+v", d)
				}
				got = &d.Actions[i].(OpenRevert).Evidence[0]
			}
			if got == nil || c.held != "" && (got.Held == nil || !strings.Contains(got.Held.Text, c.held)) {
				t.Fatalf("it is judged by %+v", got)
			}
			want.Held = got.Held
			if diff := cmp.Diff(want, *got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEvidenceIsBounded keeps a record small, whatever Argo CD says.
func TestEvidenceIsBounded(t *testing.T) {
	f, tg := degradedFacts()
	for i := range 100 {
		tg.Unhealthy.Value = append(tg.Unhealthy.Value, verification.Resource{Kind: "Pod", Name: fmt.Sprint(i), Health: "Degraded"})
		tg.Timeline = append(tg.Timeline, verification.StateChange{At: noon, Note: fmt.Sprint(i)})
		f.ClusterIncidents = append(f.ClusterIncidents, ClusterIncident{ID: fmt.Sprint(i), Cluster: "one", Since: noon})
	}
	tg.ChangedSince = Sure(make([]string, 100))
	e := f.env("qa")
	for range 30 {
		e.Targets = append(e.Targets, *tg)
	}
	x := (&evaluator{facts: f, spec: &f.Pipeline.Spec}).collectEvidence(e, Guilty)
	k := x.Targets[0]
	if len(x.Targets) != 10 || x.MoreTargets != 21 || x.AllTargets != 31 || len(k.Resources) != 20 || len(k.OtherTargets) != 20 || len(k.OtherCommits) != 20 || len(k.Timeline) != 20 || k.Timeline[19].Note != "99" {
		t.Errorf("it has %d targets and %d more; the first has %d resources, %d other targets, %d commits, %d changes", len(x.Targets), x.MoreTargets, len(k.Resources), len(k.OtherTargets), len(k.OtherCommits), len(k.Timeline))
	}
	if lines := x.Describe(); lines[len(lines)-1] != "21 more targets are degraded" {
		t.Errorf("it ends with %q", lines[len(lines)-1])
	}
}

// TestEvidenceOfAlikeResources has each resource once, also where others differ from it in
// one word only.
func TestEvidenceOfAlikeResources(t *testing.T) {
	f, tg := degradedFacts()
	tg.Unhealthy = Sure([]verification.Resource{
		{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Degraded"},
		{Group: "jobs.example", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Degraded"},
		{Group: "apps", Kind: "StatefulSet", Namespace: "shop", Name: "web", Health: "Degraded"},
		{Group: "apps", Kind: "Deployment", Namespace: "far", Name: "web", Health: "Degraded"},
		{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "api", Health: "Degraded"},
	})
	x := (&evaluator{facts: f, spec: &f.Pipeline.Spec}).collectEvidence(f.env("qa"), Guilty)
	if got := x.Targets[0].Resources; len(got) != len(tg.Unhealthy.Value) {
		t.Errorf("of %d resources it has %+v", len(tg.Unhealthy.Value), got)
	}
}
