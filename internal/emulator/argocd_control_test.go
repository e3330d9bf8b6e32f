package emulator

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// lab is a controller that only looks when it is told to, over a real repository.
type lab struct {
	*ArgoCD
	t     *testing.T
	forge *Forge
	at    time.Time
}

var labPace = Pace{
	Notice: 10 * time.Second, Compare: time.Second, Sync: 5 * time.Second, Rollout: 20 * time.Second, Degrade: 30 * time.Second,
	Late: 20 * time.Second, HealthLag: 3 * time.Second, Resync: 3 * time.Minute, Tick: time.Hour,
}

func newLab(t *testing.T, pace Pace) *lab {
	t.Helper()
	l := &lab{t: t, at: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
	now := func() time.Time { return l.at }
	w, err := New(Options{Dir: t.TempDir(), Pace: pace, Now: now})
	l.ok(err)
	t.Cleanup(func() { l.ok(w.Close()) })
	l.forge, l.ArgoCD = w.Forge, w.ArgoCD
	l.ok(w.Forge.AddUser("ada", "", UserOptions{}))
	l.ok(w.Forge.CreateRepo("acme/fleet", RepoOptions{Author: "ada", Access: map[string]Permission{"ada": Write}, Files: map[string]string{
		"web/base/service.yaml":           "port: 80\n",
		"web/qa/kustomization.yaml":       kustomizationOf("1.0.0"),
		"web/dev/kustomization.yaml":      kustomizationOf("1.0.0"),
		"docs/readme":                     "nothing is deployed from here\n",
		"configs/qa/config.yaml":          "level: 1\n",
		"web/base/kustomization.yaml":     "resources: [service.yaml]\n",
		"web/base/unrelated/nothing.yaml": "{}\n",
	}}))
	return l
}

func kustomizationOf(tag string) string {
	return "resources: [../base]\nimages:\n  - name: registry.example/web\n    newTag: " + tag + "\n"
}

func (l *lab) ok(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) add(s AppSpec) {
	l.t.Helper()
	s.Name, s.Repo = "web-qa", "acme/fleet"
	if s.Path == "" {
		s.Path = "web/qa"
	}
	s.DestinationNamespace = "shop-qa"
	l.ok(l.AddApplication(s))
}

func (l *lab) push(file, text string) string {
	l.t.Helper()
	sha, err := l.forge.CommitAs("acme/fleet", "ada", "main", "Change "+file, map[string]string{file: text})
	l.ok(err)
	return sha
}

// after lets time pass in seconds, with a look at each, and says how the
// Application looks whenever that changes: "seconds sync revision phase health".
func (l *lab) after(d time.Duration) (story []string) {
	l.t.Helper()
	last := ""
	for start := l.at; l.at.Before(start.Add(d)); {
		l.at = l.at.Add(time.Second)
		l.step()
		s, err := l.State("argocd", "web-qa")
		l.ok(err)
		now := fmt.Sprintf("%s %.4s %s %s", s.Sync, s.Revision, s.Phase, s.Health)
		if now != last {
			story = append(story, fmt.Sprintf("%ds %s", int(l.at.Sub(start).Seconds()), strings.Join(strings.Fields(now), " ")))
		}
		last = now
	}
	return story
}

func (l *lab) expect(got []string, want ...string) {
	l.t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		l.t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func (l *lab) object() object {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.store.get("applications", "argocd", "web-qa")
}

func (l *lab) annotate() {
	l.t.Helper()
	code, answer := l.merge(query{resource: "applications", namespace: "argocd", name: "web-qa"},
		object{"metadata": object{"annotations": object{refreshAnnotation: "normal"}}})
	if code != 200 {
		l.t.Fatalf("patching: %d %v", code, answer)
	}
}

func TestController_release(t *testing.T) {
	l := newLab(t, labPace)
	l.add(AppSpec{})
	old, err := l.forge.Head("acme/fleet", "main")
	l.ok(err)
	sha := l.push("web/qa/kustomization.yaml", kustomizationOf("1.1.0"))
	l.expect(l.after(time.Minute),
		fmt.Sprintf("1s Synced %.4s Healthy", old),
		fmt.Sprintf("12s OutOfSync %.4s Healthy", sha),
		fmt.Sprintf("13s OutOfSync %.4s Running Healthy", sha),
		fmt.Sprintf("18s Synced %.4s Succeeded Healthy", sha), // the trap: healthy from before
		fmt.Sprintf("21s Synced %.4s Succeeded Progressing", sha),
		fmt.Sprintf("38s Synced %.4s Succeeded Healthy", sha))
	if s, err := l.State("argocd", "web-qa"); err != nil || s.Images[0] != "registry.example/web:1.1.0" {
		t.Errorf("it runs %v, %v", s.Images, err)
	}
}

func TestController_failingReleases(t *testing.T) {
	for _, c := range []struct {
		name, tag string
		want      []string // health after the sync
	}{
		{"broken", "1.1.0-broken", []string{"21s Progressing", "48s Degraded"}},
		{"broken here", "1.1.0-broken-in-qa", []string{"21s Progressing", "48s Degraded"}},
		{"broken elsewhere", "1.1.0-broken-in-prod", []string{"21s Progressing", "38s Healthy"}},
		{"late here", "1.1.0-late-in-qa", []string{"21s Progressing", "38s Healthy", "58s Degraded"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, labPace)
			l.add(AppSpec{})
			l.push("web/qa/kustomization.yaml", kustomizationOf(c.tag))
			var got []string
			for _, line := range l.after(90 * time.Second) {
				f := strings.Fields(line)
				if f[0] == "21s" || len(got) > 0 {
					got = append(got, f[0]+" "+f[len(f)-1])
				}
			}
			l.expect(got, c.want...)
			if c.want[len(c.want)-1][4:] != "Degraded" {
				return
			}
			unwell := fmt.Sprint(l.object()["status"].(object)["resources"])
			if !strings.Contains(unwell, `Deployment "web" exceeded its progress deadline`) {
				t.Errorf("the resources don't say why: %v", unwell)
			}
		})
	}
}

func TestController_refreshTellsTheTruth(t *testing.T) {
	pace := labPace
	pace.Notice, pace.HealthLag = 10*time.Minute, time.Minute // a long revision cache, a slow watch
	l := newLab(t, pace)
	l.add(AppSpec{})
	sha := l.push("web/qa/kustomization.yaml", kustomizationOf("1.1.0-broken"))
	l.expect(l.after(2 * time.Minute)[1:])
	l.annotate()
	l.expect(l.after(10 * time.Second)[1:],
		fmt.Sprintf("2s OutOfSync %.4s Healthy", sha),
		fmt.Sprintf("3s OutOfSync %.4s Running Healthy", sha),
		fmt.Sprintf("8s Synced %.4s Succeeded Healthy", sha))
	before := l.object()["status"].(object)["reconciledAt"]
	l.annotate()
	l.expect(l.after(3 * time.Second)[1:], fmt.Sprintf("2s Synced %.4s Succeeded Progressing", sha))
	if after := l.object(); after["status"].(object)["reconciledAt"] == before || meta(after)["annotations"] != nil {
		t.Errorf("after the refresh: reconciledAt %v, annotations %v", after["status"].(object)["reconciledAt"], meta(after)["annotations"])
	}
}

func TestController_otherFilesMoveTheRevisionOnly(t *testing.T) {
	l := newLab(t, labPace)
	l.add(AppSpec{})
	l.after(5 * time.Second)
	sha := l.push("docs/readme", "more\n")
	l.expect(l.after(30 * time.Second)[1:], fmt.Sprintf("12s Synced %.4s Healthy", sha))
	sha = l.push("web/base/service.yaml", "port: 81\n")
	if got := l.after(time.Minute); len(got) != 6 || !strings.Contains(got[2], "Running") || !strings.Contains(got[1], sha[:4]) {
		t.Errorf("a change of the base wasn't synced: %v", got)
	}
}

func TestController_syncFails(t *testing.T) {
	l := newLab(t, labPace)
	l.add(AppSpec{})
	l.ok(l.SetFault("argocd", "web-qa", AppFault{SyncError: "one or more objects failed to apply"}))
	l.after(5 * time.Second)
	sha := l.push("web/qa/kustomization.yaml", kustomizationOf("1.1.0"))
	l.expect(l.after(time.Minute)[1:],
		fmt.Sprintf("12s OutOfSync %.4s Healthy", sha),
		fmt.Sprintf("13s OutOfSync %.4s Running Healthy", sha),
		fmt.Sprintf("18s OutOfSync %.4s Failed Healthy", sha))
	if text := fmt.Sprint(l.object()["status"].(object)["conditions"]); !strings.Contains(text, "SyncError") {
		t.Errorf("conditions: %s", text)
	}
	l.ok(l.SetFault("argocd", "web-qa", AppFault{}))
	got := l.after(time.Minute)
	if !strings.HasSuffix(got[len(got)-1], "Succeeded Healthy") {
		t.Errorf("when it is right again: %v", got)
	}
}

func TestController_faultsOfComparisonAndHealth(t *testing.T) {
	l := newLab(t, labPace)
	l.add(AppSpec{})
	l.ok(l.SetFault("argocd", "web-qa", AppFault{ComparisonError: "repo server is gone", Health: "Unknown"}))
	l.after(3 * time.Second)
	if s, err := l.State("argocd", "web-qa"); err != nil || s.Sync != "Unknown" || s.Health != "Unknown" {
		t.Errorf("state: %+v %v", s, err)
	}
	l.ok(l.SetFault("argocd", "web-qa", AppFault{}))
	l.after(3 * time.Second)
	if s, err := l.State("argocd", "web-qa"); err != nil || s.Sync != "Synced" || s.Health != "Healthy" {
		t.Errorf("state: %+v %v", s, err)
	}
	if _, ok := l.object()["status"].(object)["conditions"]; ok {
		t.Error("the condition stayed")
	}
}

func TestController_appearsLater(t *testing.T) {
	l := newLab(t, labPace)
	l.add(AppSpec{After: 30 * time.Second})
	l.after(29 * time.Second)
	if l.object() != nil {
		t.Fatal("it is there already")
	}
	got := l.after(time.Minute)
	if l.object() == nil || !strings.HasSuffix(got[len(got)-1], "Succeeded Healthy") {
		t.Errorf("story: %v", got)
	}
}

func TestController_manualSync(t *testing.T) {
	l := newLab(t, labPace)
	l.add(AppSpec{Manual: true})
	l.after(5 * time.Second)
	sha := l.push("web/qa/kustomization.yaml", kustomizationOf("1.1.0"))
	l.expect(l.after(time.Minute)[1:], fmt.Sprintf("12s OutOfSync %.4s Healthy", sha))
	l.merge(query{resource: "applications", namespace: "argocd", name: "web-qa"}, object{"operation": object{"sync": object{"revision": sha}}})
	got := l.after(time.Minute)
	if !strings.HasSuffix(got[len(got)-1], "Succeeded Healthy") || l.object()["operation"] != nil {
		t.Errorf("story: %v; operation %v", got, l.object()["operation"])
	}
}

func TestController_newerCommitWhileSyncing(t *testing.T) {
	l := newLab(t, labPace)
	l.add(AppSpec{})
	l.push("web/qa/kustomization.yaml", kustomizationOf("1.1.0"))
	l.after(14 * time.Second)
	sha := l.push("web/qa/kustomization.yaml", kustomizationOf("1.2.0"))
	l.annotate()
	l.after(2 * time.Minute)
	s, err := l.State("argocd", "web-qa")
	if err != nil || s.Revision != sha || s.Sync != "Synced" || s.Images[0] != "registry.example/web:1.2.0" {
		t.Errorf("state: %+v %v, want %s", s, err, sha)
	}
}

func TestFails(t *testing.T) {
	for _, c := range []struct {
		image, namespace string
		want             bool
	}{
		{"web:1.0.0", "qa", false},
		{"web:1.0.0-broken", "anything", true},
		{"broken/web:1", "anything", true},
		{"web:1.0.0-broken-in-qa", "qa", true},
		{"web:1.0.0-broken-in-qa", "shop-qa", true},
		{"web:1.0.0-broken-in-qa", "shopqa", false},
		{"web:1.0.0-broken-in-prod-us", "shop-prod-us", true},
	} {
		if got := fails(c.image, "broken", c.namespace); got != c.want {
			t.Errorf("%s in %s: %v", c.image, c.namespace, got)
		}
	}
}
