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

// TestDescribeEvidence has every line that a person reads.
func TestDescribeEvidence(t *testing.T) {
	since := noon.Add(-time.Minute)
	yes := true
	x := Evidence{Pull: 5, AllTargets: 1, Targets: []TargetEvidence{{Target: "web-qa", Reason: "health is Degraded", Since: since,
		Resources: []ResourceEvidence{{Kind: "Deployment", Name: "web", Health: "Degraded", ChangedByPromotion: &yes}},
		Timeline:  []verification.StateChange{{At: noon, State: verification.Degraded, Note: "bad"}}}}}
	want := []string{
		"Deployment web: it is Degraded (web-qa; #5 changed it)",
		"web-qa on its cluster: health is Degraded since 2026-03-02T11:59:00Z",
		"web-qa: Deployment web is Degraded: no message",
		"web-qa: 2026-03-02T12:00:00Z degraded bad",
	}
	if diff := cmp.Diff(want, x.Describe()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(append(slices.Clone(want), want...), DescribeAll([]Evidence{x, {}, x})); diff != "" {
		t.Errorf("several (-want +got):\n%s", diff)
	}
	x.Pull, x.Targets[0].Since = 0, time.Time{}
	if got := x.Describe(); got[0] != "Deployment web: it is Degraded (web-qa)" || got[1] != "web-qa on its cluster: health is Degraded" {
		t.Errorf("without a pull request and a time: %q", got)
	}
}

// TestFindCulprit prefers what the promotion changed to what says something, and both to
// what comes first.
func TestFindCulprit(t *testing.T) {
	yes := true
	of := func(name, message string, changed *bool) ResourceEvidence {
		return ResourceEvidence{Kind: "Pod", Name: name, Health: "Degraded", Message: message, ChangedByPromotion: changed}
	}
	for name, c := range map[string]struct {
		list []ResourceEvidence
		want string
	}{
		"the first":                           {[]ResourceEvidence{of("a", "", nil), of("b", "", nil)}, "a"},
		"one that says something":             {[]ResourceEvidence{of("a", "", nil), of("b", "x", nil)}, "b"},
		"the first that does":                 {[]ResourceEvidence{of("a", "x", nil), of("b", "x", nil)}, "a"},
		"what was changed, though it is mute": {[]ResourceEvidence{of("a", "x", nil), of("b", "", &yes)}, "b"},
		"and stays so":                        {[]ResourceEvidence{of("a", "", &yes), of("b", "x", nil)}, "a"},
		"the first that was changed":          {[]ResourceEvidence{of("a", "x", &yes), of("b", "x", &yes)}, "a"},
		"of those the one that says it":       {[]ResourceEvidence{of("a", "", &yes), of("b", "x", &yes)}, "b"},
	} {
		if got := (&TargetEvidence{Resources: c.list}).findCulprit(); got == nil || got.Name != c.want {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}

// TestEvidenceOfOthers names only those that may have to do with it.
func TestEvidenceOfOthers(t *testing.T) {
	f, _ := degradedFacts()
	f.ClusterIncidents = []ClusterIncident{{ID: "far", Cluster: "two", Since: noon}, {ID: "long-ago", Cluster: "one", Since: noon.Add(-time.Hour)}, {ID: "near", Cluster: "one", Since: noon}}
	x := (&evaluator{facts: f, spec: &f.Pipeline.Spec}).collectEvidence(f.env("qa"), Guilty)
	if others := x.Targets[0].OtherTargets; len(others) != 1 || others[0].Application != "near" {
		t.Errorf("it names %+v", others)
	}
}
