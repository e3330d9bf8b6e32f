package promotion

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// TestIncident degrades what a promotion brought while a target that it didn't
// touch is unwell on the same cluster: only what the promotion changed is its doing.
func TestIncident(t *testing.T) {
	resource := func(group, kind, name, health string) verification.Resource {
		return verification.Resource{Group: group, Kind: kind, Namespace: "shop", Name: name, Health: health}
	}
	web := resource("apps", "Deployment", "web", "Degraded")
	own := Object{"apps", "Deployment", "shop", "web"}
	const (
		revert = "open a revert of #5 in qa"
		look   = "look: changed in qa"
		likely = "db on the same cluster (one), which this promotion didn't touch, became unwell too, and "
	)
	for _, c := range []struct {
		name      string
		unhealthy []verification.Resource
		unknown   string // why the unhealthy resources aren't known
		changed   Known[[]Object]
		requested bool
		calm      bool   // nobody else is unwell
		want      string // is done
		why       string // nothing is
	}{
		{name: "nobody else is unwell", unhealthy: []verification.Resource{web}, calm: true, want: revert},
		{name: "Argo CD doesn't say what is degraded", why: likely + "Argo CD doesn't say which resources of web-qa are degraded: an incident is likely"},
		{name: "what is degraded can't be read", unknown: "403 Forbidden", why: likely + "which resources of web-qa are degraded is not known: 403 Forbidden: an incident is likely"},
		{name: "what is degraded can't be read, and nobody else is unwell", unknown: "403 Forbidden", calm: true, want: revert},
		{name: "only what is suspended", unhealthy: []verification.Resource{resource("apps", "Deployment", "web", "Suspended")}, why: "doesn't say which"},
		{name: "what was changed is asked for", unhealthy: []verification.Resource{web}, want: look},
		{name: "it can't be told", unhealthy: []verification.Resource{web}, changed: Unsure[[]Object]("rendering took longer than 30s"),
			why: likely + "whether the promotion changed what is degraded in web-qa can't be told: rendering took longer than 30s: an incident is likely"},
		{name: "nothing was changed", unhealthy: []verification.Resource{web}, changed: Sure([]Object(nil)), why: likely + "what is degraded in web-qa (Deployment web) is nothing that the promotion changed: an incident is likely"},
		{name: "others were changed", unhealthy: []verification.Resource{web}, changed: Sure([]Object{{"apps", "Deployment", "shop", "api"}, {"apps", "StatefulSet", "shop", "web"}, {"", "Deployment", "shop", "web"}, {"apps", "Deployment", "far", "web"}}), why: "(Deployment web) is nothing"},
		{name: "what was changed is only slow, another is degraded", unhealthy: []verification.Resource{resource("apps", "Deployment", "api", "Degraded"), resource("apps", "Deployment", "web", "Progressing")}, changed: Sure([]Object{own}), why: "(Deployment api) is nothing"},
		{name: "many", unhealthy: []verification.Resource{web, resource("", "Pod", "a", "Degraded"), resource("", "Pod", "b", "Missing"), resource("", "Pod", "c", "Degraded"), resource("", "Pod", "d", "Degraded")}, changed: Sure([]Object(nil)),
			why: "(Deployment web, Pod a, Pod b, 2 more) is nothing"},
		{name: "it was changed", unhealthy: []verification.Resource{web}, changed: Sure([]Object{own}), want: revert},
		{name: "one of them was changed", unhealthy: []verification.Resource{resource("batch", "Job", "a", "Missing"), web}, changed: Sure([]Object{own}), want: revert},
		{name: "it was changed and never became well", unhealthy: []verification.Resource{resource("apps", "Deployment", "web", "Progressing")}, changed: Sure([]Object{own}), want: revert},
		{name: "it has no namespace", unhealthy: []verification.Resource{{Kind: "Widget", Name: "a", Health: "Degraded"}}, changed: Sure([]Object{{"", "Widget", "shop", "a"}}), want: revert},
		{name: "a person asks all the same", unhealthy: []verification.Resource{web}, requested: true, want: revert},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := linearFacts()
			f.land("dev", "r2", ByPerson, 0)
			e := f.verified("dev").land("qa", "r2", ByPromotion, 5)
			f.verdict("qa", verification.Degraded, "health is Degraded")
			e.Restore = Sure(Composition{Tip: tip, Files: []string{"f"}})
			e.Targets[0].Unhealthy, e.Targets[0].ChangedObjects = Sure(c.unhealthy), c.changed
			if c.unknown != "" {
				e.Targets[0].Unhealthy = Unsure[[]verification.Resource](c.unknown)
			}
			if !c.calm {
				f.ClusterIncidents = []ClusterIncident{{Cluster: "two", Target: "other", Since: noon}, {Cluster: "one", Target: "db", Since: noon}}
			}
			if c.requested {
				f.PendingCommands = []PendingCommand{{ID: 4, Verb: "revert", Environment: "qa", By: "ada"}}
			}
			d := decideAlone(t, *f)
			var done []string
			for _, a := range d.Actions[1:] { // the first one writes down that it is degraded
				done = append(done, a.Describe())
			}
			if want := slices.DeleteFunc([]string{c.want}, func(s string) bool { return s == "" }); !slices.Equal(done, want) {
				t.Errorf("it does %q, want %q", done, want)
			}
			said := slices.ContainsFunc(d.Env("qa").Why, func(r Reason) bool { return r.Code == "hold" && strings.Contains(r.Text, c.why) })
			if said != (c.why != "") {
				t.Errorf("it says %+v, want %q", d.Env("qa").Why, c.why)
			}
		})
	}
}

// TestUnpulledImages degrades, while nobody else is unwell, what can't pull an image: only one
// that the promotion has to do with is its doing.
func TestUnpulledImages(t *testing.T) {
	web := func(pods ...verification.Descendant) []verification.Resource {
		return []verification.Resource{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Degraded", Descendants: pods}}
	}
	crashing := verification.Descendant{Kind: "Pod", Name: "web-8d", Health: "Degraded", Reason: "CrashLoopBackOff"}
	const revert, look = "open a revert of #5 in qa", "look: changed in qa"
	own := Sure([]Object{{"apps", "Deployment", "shop", "web"}})
	for _, c := range []struct {
		name      string
		unhealthy []verification.Resource
		another   []verification.Resource // of a second target that is degraded too
		failed    bool                    // in the release's own sync
		changed   Known[[]Object]
		brought   []string
		want, why string
		ruledOut  string
	}{
		{name: "what was changed is asked for", unhealthy: web(unpulledPod), want: look},
		{name: "it wasn't changed", unhealthy: web(unpulledPod), changed: own, why: "all that is wrong with web-qa is that proxy:1 can't be pulled, which #5 didn't change; a person has to decide (/liftlock revert)"},
		{name: "it was brought", unhealthy: web(unpulledPod), changed: own, brought: []string{"proxy:1"}, want: revert, ruledOut: "web-qa can't pull proxy:1, which #5 brought or may have kept from being pulled"},
		{name: "it can't be told", unhealthy: web(unpulledPod), changed: Unsure[[]Object]("a plugin renders it"), want: revert},
		{name: "something else is wrong too", unhealthy: web(unpulledPod, crashing), changed: own, want: revert},
		{name: "another target crashes", unhealthy: web(unpulledPod), another: web(crashing), changed: own, want: revert},
		{name: "another target can't pull it either", unhealthy: web(unpulledPod), another: web(unpulledPod), changed: own, why: "; all that is wrong with web-qa-2 is that proxy:1"},
		{name: "its own sync failed", unhealthy: web(unpulledPod), failed: true, changed: own, want: revert},
		{name: "nothing is known of its pods", unhealthy: web(), want: revert},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := linearFacts()
			f.land("dev", "r2", ByPerson, 0)
			e := f.verified("dev").land("qa", "r2", ByPromotion, 5)
			f.verdict("qa", verification.Degraded, "health is Degraded")
			e.Restore = Sure(Composition{Tip: tip, Files: []string{"f"}})
			e.Targets[0].Unhealthy, e.Targets[0].ChangedObjects, e.Targets[0].BroughtImages = Sure(c.unhealthy), c.changed, c.brought
			if c.failed {
				e.Targets[0].Verdict.Culprits = c.unhealthy
			}
			if c.another != nil {
				e.Targets = append(e.Targets, e.Targets[0])
				e.Targets[1].Name, e.Targets[1].ID, e.Targets[1].Unhealthy = "web-qa-2", "web-qa-2", Sure(c.another)
			}
			d := decideAlone(t, *f)
			var done []string
			for _, a := range d.Actions[1:] { // the first one writes down that it is degraded
				done = append(done, a.Describe())
				if r, ok := a.(OpenRevert); ok && c.ruledOut != "" && !slices.Contains(r.Evidence[0].RuledOut, RuledOut{CheckImagePull, c.ruledOut}) {
					t.Errorf("the evidence is %+v", r.Evidence[0].RuledOut)
				}
			}
			if want := slices.DeleteFunc([]string{c.want}, func(s string) bool { return s == "" }); !slices.Equal(done, want) {
				t.Errorf("it does %q, want %q", done, want)
			}
			said := slices.ContainsFunc(d.Env("qa").Why, func(r Reason) bool { return r.Code == "hold" && strings.Contains(r.Text, c.why) })
			if said != (c.why != "") {
				t.Errorf("it says %+v, want %q", d.Env("qa").Why, c.why)
			}
		})
	}
}

// TestSelfRunning degrades resources that also fail by themselves, while all else is healthy. Only
// those that the promotion changed, and failures in the release's own sync, are its doing.
func TestSelfRunning(t *testing.T) {
	resource := func(group, kind, name string) verification.Resource {
		return verification.Resource{Group: group, Kind: kind, Namespace: "shop", Name: name, Health: "Degraded"}
	}
	nightly, web := resource("batch", "CronJob", "nightly"), resource("apps", "Deployment", "web")
	const revert, look = "open a revert of #5 in qa", "look: changed in qa"
	for _, c := range []struct {
		name      string
		unhealthy []verification.Resource
		another   []verification.Resource // of a second target that is degraded too
		failed    bool                    // in the release's own sync
		changed   Known[[]Object]
		unchanged bool // the second target by the promotion, whatever it changed of the first
		want, why string
	}{
		{name: "what was changed is asked for", unhealthy: []verification.Resource{nightly}, want: look},
		{name: "it wasn't changed", unhealthy: []verification.Resource{nightly}, changed: Sure([]Object{{"apps", "Deployment", "shop", "web"}}),
			why: "all that is degraded in web-qa (CronJob nightly) also fails by itself, and the promotion didn't change it; a person has to decide (/liftlock revert)"},
		{name: "it can't be told", unhealthy: []verification.Resource{nightly}, changed: Unsure[[]Object]("rendering took longer than 30s"), why: "whether the promotion changed it can't be told: rendering took longer than 30s"},
		{name: "it was changed", unhealthy: []verification.Resource{nightly}, changed: Sure([]Object{{"batch", "CronJob", "shop", "nightly"}}), want: revert},
		{name: "other kinds that do", unhealthy: []verification.Resource{resource("autoscaling", "HorizontalPodAutoscaler", "web"), resource("cert-manager.io", "Certificate", "web"), resource("", "PersistentVolumeClaim", "data"), resource("batch", "Job", "import")},
			changed: Sure([]Object(nil)), why: "(HorizontalPodAutoscaler web, Certificate web, PersistentVolumeClaim data, 1 more) also fails by itself"},
		{name: "the same kinds of other groups", unhealthy: []verification.Resource{resource("jobs.example", "CronJob", "nightly")}, want: revert},
		{name: "something else is degraded too", unhealthy: []verification.Resource{nightly, web}, want: revert},
		{name: "something else only isn't ready", unhealthy: []verification.Resource{nightly, {Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Progressing"}}, changed: Sure([]Object(nil)), why: "(CronJob nightly) also fails by itself"},
		{name: "another target is degraded by something else", unhealthy: []verification.Resource{nightly}, another: []verification.Resource{web}, changed: Sure([]Object(nil)), want: revert},
		{name: "another target is degraded by the same", unhealthy: []verification.Resource{nightly}, another: []verification.Resource{nightly}, changed: Sure([]Object(nil)), why: "; all that is degraded in web-qa-2 (CronJob nightly)"},
		{name: "of two targets it changed one", unhealthy: []verification.Resource{nightly}, another: []verification.Resource{nightly}, changed: Sure([]Object{{"batch", "CronJob", "shop", "nightly"}}), unchanged: true, want: revert},
		{name: "a hook of the release's own sync", unhealthy: []verification.Resource{resource("batch", "Job", "db-migrate")}, failed: true, want: revert},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := linearFacts()
			f.land("dev", "r2", ByPerson, 0)
			e := f.verified("dev").land("qa", "r2", ByPromotion, 5)
			f.verdict("qa", verification.Degraded, "health is Degraded")
			e.Restore = Sure(Composition{Tip: tip, Files: []string{"f"}})
			e.Targets[0].Unhealthy, e.Targets[0].ChangedObjects = Sure(c.unhealthy), c.changed
			if c.failed {
				e.Targets[0].Verdict.Culprits = c.unhealthy
			}
			if c.another != nil {
				e.Targets = append(e.Targets, e.Targets[0])
				e.Targets[1].Name, e.Targets[1].ID, e.Targets[1].Unhealthy = "web-qa-2", "web-qa-2", Sure(c.another)
				if c.unchanged {
					e.Targets[1].ChangedObjects = Sure([]Object(nil))
				}
			}
			d := decideAlone(t, *f)
			var done []string
			for _, a := range d.Actions[1:] { // the first one writes down that it is degraded
				done = append(done, a.Describe())
			}
			if want := slices.DeleteFunc([]string{c.want}, func(s string) bool { return s == "" }); !slices.Equal(done, want) {
				t.Errorf("it does %q, want %q", done, want)
			}
			said := slices.ContainsFunc(d.Env("qa").Why, func(r Reason) bool { return r.Code == "hold" && strings.Contains(r.Text, c.why) })
			if said != (c.why != "") {
				t.Errorf("it says %+v, want %q", d.Env("qa").Why, c.why)
			}
		})
	}
}

// TestIncidentThatIsOver holds for a while after another target has recovered: they don't all
// recover at once. A target that still has the release before the promotion, in any environment,
// speaks for an incident as well.
func TestIncidentThatIsOver(t *testing.T) {
	own := Sure([]Object{{"apps", "Deployment", "shop", "web"}})
	for _, c := range []struct {
		name     string
		incident ClusterIncident
		changed  Known[[]Object]
		prod     string // what prod has
		want     bool   // a revert
	}{
		{"another recovered just now", ClusterIncident{Cluster: "one", Target: "db", Since: noon, Until: noon.Add(-89 * time.Second)}, Sure([]Object(nil)), "r1", false},
		{"another recovered a while ago", ClusterIncident{Cluster: "one", Target: "db", Since: noon, Until: noon.Add(-90 * time.Second)}, Sure([]Object(nil)), "r1", true},
		{"the same with what was there before", ClusterIncident{Cluster: "two", Target: "web-prod", Component: "web", Environment: "prod", Since: noon}, own, "r1", false},
		{"the same with something else", ClusterIncident{Cluster: "one", Target: "web-prod", Component: "web", Environment: "prod", Since: noon}, own, "r0", true},
		{"the same with something else, and nothing of it was changed", ClusterIncident{Cluster: "one", Target: "web-prod", Component: "web", Environment: "prod", Since: noon}, Sure([]Object(nil)), "r0", false},
		{"the same with something else, elsewhere", ClusterIncident{Cluster: "two", Target: "web-prod", Component: "web", Environment: "prod", Since: noon}, Sure([]Object(nil)), "r0", true},
		{"the same with the very release, and nothing of it was changed", ClusterIncident{Cluster: "one", Target: "web-dev", Component: "web", Environment: "dev", Since: noon}, Sure([]Object(nil)), "r1", true},
		{"the same with the very release", ClusterIncident{Cluster: "one", Target: "web-dev", Component: "web", Environment: "dev", Since: noon}, own, "r1", true},
		{"the same, since before it landed", ClusterIncident{Cluster: "two", Target: "web-prod", Component: "web", Environment: "prod", Since: noon.Add(-time.Hour)}, own, "r1", true},
		{"the same in an environment that is no more", ClusterIncident{Cluster: "two", Target: "web-old", Component: "web", Environment: "old", Since: noon}, own, "r1", true},
		{"the same in an environment that is no more, on its cluster", ClusterIncident{Cluster: "one", Target: "web-old", Component: "web", Environment: "old", Since: noon}, own, "r1", true},
		{"another component where that still is", ClusterIncident{Cluster: "one", Target: "db-prod", Component: "db", Environment: "prod", Since: noon}, own, "r1", true},
		{"the target itself", ClusterIncident{Cluster: "one", Target: "web-qa", Component: "web", Environment: "qa", Since: noon}, own, "r1", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := linearFacts()
			f.land("dev", "r2", ByPerson, 0)
			e := f.verified("dev").land("qa", "r2", ByPromotion, 5)
			f.env("prod").Release = Sure(rel(c.prod))
			f.verdict("qa", verification.Degraded, "health is Degraded")
			e.Restore = Sure(Composition{Tip: tip, Files: []string{"f"}})
			e.Targets[0].Unhealthy, e.Targets[0].ChangedObjects = Sure([]verification.Resource{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Degraded"}}), c.changed
			f.ClusterIncidents = []ClusterIncident{c.incident}
			d := decideAlone(t, *f)
			got := slices.ContainsFunc(d.Actions, func(a Action) bool { _, ok := a.(OpenRevert); return ok })
			if got != c.want {
				t.Errorf("it does %v and says %+v", d.Actions, d.Env("qa").Why)
			}
			if !c.incident.Until.IsZero() && !c.want && !d.Next.Equal(noon.Add(time.Second)) {
				t.Errorf("it looks again at %v", d.Next)
			}
		})
	}
}

// TestFormerReleaseInTheSameEnvironment holds where a target that the promotion hasn't come to
// yet became unwell as well: RollingSync brings it to one after the other.
func TestFormerReleaseInTheSameEnvironment(t *testing.T) {
	for _, c := range []struct {
		name     string
		second   verification.Verdict
		incident ClusterIncident
		want     bool // a revert
	}{
		{"it waits its turn", verification.Verdict{State: verification.Queued, RunsFormer: true}, ClusterIncident{ID: "web-qa-2", Since: noon}, false},
		{"it hasn't noticed the commit", verification.Verdict{State: verification.Arriving, RunsFormer: true}, ClusterIncident{ID: "web-qa-2", Since: noon}, false},
		{"which commit it has isn't known", verification.Verdict{State: verification.Arriving}, ClusterIncident{ID: "web-qa-2", Since: noon}, true},
		{"it is being synced", verification.Verdict{State: verification.Syncing}, ClusterIncident{ID: "web-qa-2", Since: noon}, true},
		{"it runs the release", verification.Verdict{State: verification.Degraded}, ClusterIncident{ID: "web-qa-2", Since: noon}, true},
		{"another one is unwell", verification.Verdict{State: verification.Queued, RunsFormer: true}, ClusterIncident{ID: "web-qa-3", Since: noon}, true},
		{"it was unwell before the merge", verification.Verdict{State: verification.Queued, RunsFormer: true}, ClusterIncident{ID: "web-qa-2", Since: noon.Add(-time.Hour)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := linearFacts()
			f.land("dev", "r2", ByPerson, 0)
			e := f.verified("dev").land("qa", "r2", ByPromotion, 5)
			f.verdict("qa", verification.Degraded, "health is Degraded")
			e.Restore = Sure(Composition{Tip: tip, Files: []string{"f"}})
			e.Targets[0].Unhealthy, e.Targets[0].ChangedObjects = Sure([]verification.Resource{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Degraded"}}), Sure([]Object{{"apps", "Deployment", "shop", "web"}})
			e.Targets = append(e.Targets, e.Targets[0])
			e.Targets[1].Name, e.Targets[1].ID, e.Targets[1].Cluster, e.Targets[1].Verdict = "web-qa-2", "web-qa-2", "two", c.second
			c.incident.Target, c.incident.Cluster, c.incident.Component, c.incident.Environment = c.incident.ID, "two", "web", "qa"
			f.ClusterIncidents = []ClusterIncident{c.incident}
			d := decideAlone(t, *f)
			if got := slices.ContainsFunc(d.Actions, func(a Action) bool { _, ok := a.(OpenRevert); return ok }); got != c.want {
				t.Errorf("it does %v and says %+v", d.Actions, d.Env("qa").Why)
			}
			if said := slices.ContainsFunc(d.Env("qa").Why, func(r Reason) bool {
				return strings.Contains(r.Text, "web-qa-2, which still has what qa had before this promotion, became unwell too")
			}); said == c.want {
				t.Errorf("it says %+v", d.Env("qa").Why)
			}
		})
	}
}

// TestEvidenceOfIncident has, to the moment, since when another target's trouble may have to
// do with a degradation. An environment that carries nothing doesn't count as one with the former
// release.
func TestEvidenceOfIncident(t *testing.T) {
	merged := noon.Add(-5 * time.Minute)
	sameComponent := func(f *ComponentFacts) ClusterIncident {
		f.env("prod").Release = Sure(Release{})
		return ClusterIncident{Cluster: "two", Target: "web-prod", Component: f.Unit.Component, Environment: "prod", Since: noon}
	}
	for name, c := range map[string]struct {
		other   func(f *ComponentFacts) ClusterIncident
		unknown bool // what was there before
		want    bool // a revert
	}{
		"a clock's error before the merge": {other: func(*ComponentFacts) ClusterIncident {
			return ClusterIncident{Cluster: "one", Target: "db", Since: merged.Add(-incidentClockSkew)}
		}},
		"longer than that before the merge": {other: func(*ComponentFacts) ClusterIncident {
			return ClusterIncident{Cluster: "one", Target: "db", Since: merged.Add(-incidentClockSkew - time.Microsecond)}
		}, want: true},
		"nothing is carried there": {other: sameComponent, want: true},
		"what is carried there isn't known any more": {other: func(f *ComponentFacts) ClusterIncident {
			incident := sameComponent(f)
			f.env("prod").Release = Known[Release]{Value: rel("r1"), Err: "line 3"}
			return incident
		}, want: true},
		"nothing is carried there, and what was here before is unknown": {other: sameComponent, unknown: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := linearFacts()
			f.land("dev", "r2", ByPerson, 0)
			e := f.verified("dev").land("qa", "r2", ByPromotion, 5)
			if c.unknown {
				e.History = e.History[:1]
			}
			f.verdict("qa", verification.Degraded, "health is Degraded")
			e.Restore = Sure(Composition{Tip: tip, Files: []string{"f"}})
			e.Targets[0].ChangedObjects = Sure([]Object(nil))
			f.ClusterIncidents = []ClusterIncident{c.other(f)}
			d := decideAlone(t, *f)
			if got := slices.ContainsFunc(d.Actions, func(a Action) bool { _, ok := a.(OpenRevert); return ok }); got != c.want {
				t.Errorf("a revert: %v, want %v: it does %v and says %+v", got, c.want, d.Actions, d.Env("qa").Why)
			}
		})
	}
}

// TestUnsettledOtherTarget counts a neighbour that turned Progressing or Unknown by itself
// once that has lasted, waits to know while the target degraded after it, and no longer.
func TestUnsettledOtherTarget(t *testing.T) {
	ago := func(seconds int) time.Time { return noon.Add(-time.Duration(seconds) * time.Second) }
	for _, c := range []struct {
		name, on     string // which cluster
		since, until time.Time
		want         bool // a revert
		why          string
		next         time.Time
	}{
		{"it lasts", "one", ago(30), time.Time{}, false, "became unwell too", time.Time{}},
		{"it lasted, and is over", "one", ago(60), ago(30), false, "became unwell too", ago(-60)},
		{"it was a blip", "one", ago(60), ago(31), true, "", time.Time{}},
		{"it began before the target degraded, and may last", "one", ago(20), time.Time{}, false, "whether that lasts is known at 2026-03-02T12:00:10Z", ago(-10)},
		{"it was a blip just before", "one", ago(20), ago(10), true, "", time.Time{}},
		{"it began when the target degraded, and may last", "one", ago(5), time.Time{}, false, "whether that lasts is known at 2026-03-02T12:00:25Z", ago(-25)},
		{"it began after the target degraded", "one", ago(4), time.Time{}, true, "", time.Time{}},
		{"it may last, on another cluster", "two", ago(20), time.Time{}, true, "", time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := linearFacts()
			f.land("dev", "r2", ByPerson, 0)
			e := f.verified("dev").land("qa", "r2", ByPromotion, 5)
			f.verdict("qa", verification.Degraded, "health is Degraded")
			e.Restore = Sure(Composition{Tip: tip, Files: []string{"f"}})
			e.Targets[0].ChangedObjects = Sure([]Object(nil))
			e.Targets[0].Verdict.Since = ago(5)
			f.ClusterIncidents = []ClusterIncident{{Cluster: c.on, Target: "db", Since: c.since, Until: c.until, Unsettled: true}}
			d := decideAlone(t, *f)
			got := slices.ContainsFunc(d.Actions, func(a Action) bool { _, ok := a.(OpenRevert); return ok })
			said := c.why == "" || slices.ContainsFunc(d.Env("qa").Why, func(r Reason) bool { return strings.Contains(r.Text, c.why) })
			if got != c.want || !said || !c.next.IsZero() && !d.Next.Equal(c.next) {
				t.Errorf("it does %v, says %+v and looks again at %v", d.Actions, d.Env("qa").Why, d.Next)
			}
		})
	}
}

// TestUnhealthyBeforeItsSync leaves to a person what was unwell before the release could do
// anything.
func TestUnhealthyBeforeItsSync(t *testing.T) {
	f := linearFacts()
	f.land("dev", "r2", ByPerson, 0)
	e := f.verified("dev").land("qa", "r2", ByPromotion, 5)
	f.verdict("qa", verification.Degraded, "health is Degraded")
	e.Restore = Sure(Composition{Tip: tip, Files: []string{"f"}})
	e.Targets[0].Verdict.UnhealthyBefore = true
	d := decideAlone(t, *f)
	if len(d.Actions) != 1 || !strings.Contains(d.Env("qa").Why[0].Text, "became unwell before the sync of this release began") {
		t.Errorf("it does %v and says %+v", d.Actions, d.Env("qa").Why)
	}
}
