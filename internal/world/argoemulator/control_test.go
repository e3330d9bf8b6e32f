package argoemulator

import (
	"crypto/sha1"
	"fmt"
	"hash"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// controllerHarness is a controller that only looks when it is told to, over a real repository.
type controllerHarness struct {
	*ArgoCD
	t     *testing.T
	repo  *oneRepository
	clock time.Time
}

var testTimings = Timings{
	Notice: 10 * time.Second, Compare: time.Second, Sync: 5 * time.Second, Rollout: 20 * time.Second, Degrade: 30 * time.Second,
	LateFailure: 20 * time.Second, HealthLag: 3 * time.Second, Resync: 3 * time.Minute, Tick: time.Hour,
}

func newControllerHarness(t *testing.T, timings Timings) *controllerHarness {
	t.Helper()
	l := &controllerHarness{t: t, clock: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), repo: &oneRepository{}}
	l.repo.commitFiles(map[string]string{
		"web/base/service.yaml":           "port: 80\n",
		"web/qa/kustomization.yaml":       kustomizationOf("1.0.0"),
		"web/dev/kustomization.yaml":      kustomizationOf("1.0.0"),
		"docs/readme":                     "nothing is deployed from here\n",
		"configs/qa/config.yaml":          "level: 1\n",
		"web/base/kustomization.yaml":     "resources: [service.yaml]\n",
		"web/base/unrelated/nothing.yaml": "{}\n",
	})
	var err error
	l.ArgoCD, err = New(Options{Repos: l.repo, Timings: timings, Now: func() time.Time { return l.clock }})
	l.must(err)
	t.Cleanup(func() { l.must(l.Close()) })
	return l
}

// oneRepository is a repository with one branch. The controller and a test use it in turn.
type oneRepository struct {
	mu      sync.Mutex
	files   map[string]string
	commits map[string]map[string]string // by commit: object ids by path
	objects map[string]string
	head    string
}

// commitFiles commits files over those that are there.
func (r *oneRepository) commitFiles(files map[string]string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.files == nil {
		r.files, r.commits, r.objects = map[string]string{}, map[string]map[string]string{}, map[string]string{}
	}
	maps.Copy(r.files, files)
	tree, whole := map[string]string{}, sha1.New()
	folders := map[string]hash.Hash{".": whole}
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		id := fmt.Sprintf("%x", sha1.Sum([]byte(r.files[name])))
		tree[name], r.objects[id] = id, r.files[name]
		for dir := path.Dir(name); ; dir = path.Dir(dir) {
			if folders[dir] == nil {
				folders[dir] = sha1.New()
			}
			fmt.Fprintln(folders[dir], name, id)
			if dir == "." {
				break
			}
		}
	}
	for dir, h := range folders {
		tree[dir] = fmt.Sprintf("%x", h.Sum(nil))
	}
	r.head = fmt.Sprintf("%x", sha1.Sum([]byte(tree["."]+r.head)))
	r.commits[r.head] = tree
	return r.head
}

func (r *oneRepository) CloneURL(repo string) string { return "https://git.example/" + repo + ".git" }

func (r *oneRepository) Head(_, _ string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.head, nil
}

func (r *oneRepository) Tree(_, commit string) (map[string]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.commits[commit], nil
}

func (r *oneRepository) Blob(_, id string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objects[id], nil
}

func kustomizationOf(tag string) string {
	return "resources: [../base]\nimages:\n  - name: registry.example/web\n    newTag: " + tag + "\n"
}

func (c *controllerHarness) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *controllerHarness) addApplication(s AppSpec) {
	c.t.Helper()
	s.Name, s.Repo = "web-qa", "acme/fleet"
	if s.Path == "" {
		s.Path = "web/qa"
	}
	s.DestinationNamespace = "shop-qa"
	c.must(c.AddApplication(s))
}

func (c *controllerHarness) commitFile(file, text string) string {
	return c.repo.commitFiles(map[string]string{file: text})
}

// advance lets time pass in seconds, with a look at each, and says how the
// Application looks whenever that changes: "seconds sync revision phase health".
func (c *controllerHarness) advance(d time.Duration) (story []string) {
	c.t.Helper()
	last := ""
	for start := c.clock; c.clock.Before(start.Add(d)); {
		c.clock = c.clock.Add(time.Second)
		c.reconcileAll()
		s, err := c.State("argocd", "web-qa")
		c.must(err)
		now := fmt.Sprintf("%s %.4s %s %s", s.Sync, s.Revision, s.Phase, s.Health)
		if now != last {
			story = append(story, fmt.Sprintf("%ds %s", int(c.clock.Sub(start).Seconds()), strings.Join(strings.Fields(now), " ")))
		}
		last = now
	}
	return story
}

func (c *controllerHarness) expectStates(got []string, want ...string) {
	c.t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		c.t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func (c *controllerHarness) readObject() jsonObject {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.store.get("applications", "argocd", "web-qa")
}

func (c *controllerHarness) requestRefresh() {
	c.t.Helper()
	code, answer := c.mergeObject(objectQuery{resource: "applications", namespace: "argocd", name: "web-qa"},
		jsonObject{"metadata": jsonObject{"annotations": jsonObject{refreshAnnotation: "normal"}}})
	if code != 200 {
		c.t.Fatalf("patching: %d %v", code, answer)
	}
}

func TestController_release(t *testing.T) {
	l := newControllerHarness(t, testTimings)
	l.addApplication(AppSpec{})
	old, err := l.repo.Head("acme/fleet", "main")
	l.must(err)
	sha := l.commitFile("web/qa/kustomization.yaml", kustomizationOf("1.1.0"))
	l.expectStates(l.advance(time.Minute),
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
			l := newControllerHarness(t, testTimings)
			l.addApplication(AppSpec{})
			l.commitFile("web/qa/kustomization.yaml", kustomizationOf(c.tag))
			var got []string
			for _, line := range l.advance(90 * time.Second) {
				f := strings.Fields(line)
				if f[0] == "21s" || len(got) > 0 {
					got = append(got, f[0]+" "+f[len(f)-1])
				}
			}
			l.expectStates(got, c.want...)
			if c.want[len(c.want)-1][4:] != "Degraded" {
				return
			}
			unhealthy := fmt.Sprint(l.readObject()["status"].(jsonObject)["resources"])
			if !strings.Contains(unhealthy, `Deployment "web" exceeded its progress deadline`) {
				t.Errorf("the resources don't say why: %v", unhealthy)
			}
		})
	}
}

func TestController_refreshReportsNewHealth(t *testing.T) {
	pace := testTimings
	pace.Notice, pace.HealthLag = 10*time.Minute, time.Minute // a long revision cache, a slow watch
	l := newControllerHarness(t, pace)
	l.addApplication(AppSpec{})
	sha := l.commitFile("web/qa/kustomization.yaml", kustomizationOf("1.1.0-broken"))
	l.expectStates(l.advance(2 * time.Minute)[1:])
	l.requestRefresh()
	l.expectStates(l.advance(10 * time.Second)[1:],
		fmt.Sprintf("2s OutOfSync %.4s Healthy", sha),
		fmt.Sprintf("3s OutOfSync %.4s Running Healthy", sha),
		fmt.Sprintf("8s Synced %.4s Succeeded Healthy", sha))
	before := l.readObject()["status"].(jsonObject)["reconciledAt"]
	l.requestRefresh()
	l.expectStates(l.advance(3 * time.Second)[1:], fmt.Sprintf("2s Synced %.4s Succeeded Progressing", sha))
	if after := l.readObject(); after["status"].(jsonObject)["reconciledAt"] == before || metadataOf(after)["annotations"] != nil {
		t.Errorf("after the refresh: reconciledAt %v, annotations %v", after["status"].(jsonObject)["reconciledAt"], metadataOf(after)["annotations"])
	}
}

func TestController_otherFilesMoveTheRevisionOnly(t *testing.T) {
	l := newControllerHarness(t, testTimings)
	l.addApplication(AppSpec{})
	l.advance(5 * time.Second)
	sha := l.commitFile("docs/readme", "more\n")
	l.expectStates(l.advance(30 * time.Second)[1:], fmt.Sprintf("12s Synced %.4s Healthy", sha))
	sha = l.commitFile("web/base/service.yaml", "port: 81\n")
	if got := l.advance(time.Minute); len(got) != 6 || !strings.Contains(got[2], "Running") || !strings.Contains(got[1], sha[:4]) {
		t.Errorf("a change of the base wasn't synced: %v", got)
	}
}

func TestController_syncFails(t *testing.T) {
	l := newControllerHarness(t, testTimings)
	l.addApplication(AppSpec{})
	l.must(l.SetFault("argocd", "web-qa", AppFault{SyncError: "one or more objects failed to apply"}))
	l.advance(5 * time.Second)
	sha := l.commitFile("web/qa/kustomization.yaml", kustomizationOf("1.1.0"))
	l.expectStates(l.advance(time.Minute)[1:],
		fmt.Sprintf("12s OutOfSync %.4s Healthy", sha),
		fmt.Sprintf("13s OutOfSync %.4s Running Healthy", sha),
		fmt.Sprintf("18s OutOfSync %.4s Failed Healthy", sha))
	if text := fmt.Sprint(l.readObject()["status"].(jsonObject)["conditions"]); !strings.Contains(text, "SyncError") {
		t.Errorf("conditions: %s", text)
	}
	l.must(l.SetFault("argocd", "web-qa", AppFault{}))
	got := l.advance(time.Minute)
	if !strings.HasSuffix(got[len(got)-1], "Succeeded Healthy") {
		t.Errorf("when it is right again: %v", got)
	}
}

func TestController_faultsOfComparisonAndHealth(t *testing.T) {
	l := newControllerHarness(t, testTimings)
	l.addApplication(AppSpec{})
	l.must(l.SetFault("argocd", "web-qa", AppFault{ComparisonError: "repo server is gone", Health: "Unknown"}))
	l.advance(3 * time.Second)
	if s, err := l.State("argocd", "web-qa"); err != nil || s.Sync != "Unknown" || s.Health != "Unknown" {
		t.Errorf("state: %+v %v", s, err)
	}
	l.must(l.SetFault("argocd", "web-qa", AppFault{}))
	l.advance(3 * time.Second)
	if s, err := l.State("argocd", "web-qa"); err != nil || s.Sync != "Synced" || s.Health != "Healthy" {
		t.Errorf("state: %+v %v", s, err)
	}
	if _, ok := l.readObject()["status"].(jsonObject)["conditions"]; ok {
		t.Error("the condition stayed")
	}
}

func TestController_appearsLater(t *testing.T) {
	l := newControllerHarness(t, testTimings)
	l.addApplication(AppSpec{AppearsAfter: 30 * time.Second})
	l.advance(29 * time.Second)
	if l.readObject() != nil {
		t.Fatal("it is there already")
	}
	got := l.advance(time.Minute)
	if l.readObject() == nil || !strings.HasSuffix(got[len(got)-1], "Succeeded Healthy") {
		t.Errorf("story: %v", got)
	}
}

func TestController_manualSync(t *testing.T) {
	l := newControllerHarness(t, testTimings)
	l.addApplication(AppSpec{Manual: true})
	l.advance(5 * time.Second)
	sha := l.commitFile("web/qa/kustomization.yaml", kustomizationOf("1.1.0"))
	l.expectStates(l.advance(time.Minute)[1:], fmt.Sprintf("12s OutOfSync %.4s Healthy", sha))
	l.mergeObject(objectQuery{resource: "applications", namespace: "argocd", name: "web-qa"}, jsonObject{"operation": jsonObject{"sync": jsonObject{"revision": sha}}})
	got := l.advance(time.Minute)
	if !strings.HasSuffix(got[len(got)-1], "Succeeded Healthy") || l.readObject()["operation"] != nil {
		t.Errorf("story: %v; operation %v", got, l.readObject()["operation"])
	}
}

func TestController_newerCommitWhileSyncing(t *testing.T) {
	l := newControllerHarness(t, testTimings)
	l.addApplication(AppSpec{})
	l.commitFile("web/qa/kustomization.yaml", kustomizationOf("1.1.0"))
	l.advance(14 * time.Second)
	sha := l.commitFile("web/qa/kustomization.yaml", kustomizationOf("1.2.0"))
	l.requestRefresh()
	l.advance(2 * time.Minute)
	s, err := l.State("argocd", "web-qa")
	if err != nil || s.Revision != sha || s.Sync != "Synced" || s.Images[0] != "registry.example/web:1.2.0" {
		t.Errorf("state: %+v %v, want %s", s, err, sha)
	}
}

func TestImageFails(t *testing.T) {
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
		if got := imageFails(c.image, "broken", c.namespace); got != c.want {
			t.Errorf("%s in %s: %v", c.image, c.namespace, got)
		}
	}
}
