package live

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
)

const (
	repositoryURL = "https://git.example/acme/fleet.git"
	landedHash    = "cccccccccccccccccccccccccccccccccccccccc"
)

// parentFixture is qa of web, whose Application web-qa deploys the commit and has others
// among its resources.
type parentFixture struct {
	apps map[string]*verification.App
	o    *Gatherer
	c    *branch.ComponentBasis
	got  Judged
	env  *promotion.Env
	at   *branch.ResolvedEnv
	now  time.Time
}

func newParentFixture() *parentFixture {
	f := &parentFixture{apps: map[string]*verification.App{}, now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
	f.add("web-qa", repositoryURL, "app-a", "app-b")
	f.add("app-a", "https://charts.example")
	f.add("app-b", repositoryURL, "app-c")
	f.add("app-c", "https://charts.example", "web-qa") // a circle
	f.o = &Gatherer{Argocds: &branch.ArgoCDs{Main: "hub", ByName: map[string]branch.ArgoCD{"hub": {Apps: &knownApps{apps: f.apps}, NoRefresh: true}}}, Health: NewHealthClock(func() time.Time { return f.c.Facts.Now }), Releases: &branch.ReleaseReader{}, Memories: branch.NewDecodedRows(nil, "memories", func(*verification.Memory) {})}
	p := &branch.ResolvedPipeline{Pipeline: &pipeline.Pipeline{}}
	p.Metadata.Name = "shop"
	f.at = &branch.ResolvedEnv{Targets: []appset.Target{{Name: "web-qa", Namespace: "argocd", ApplicationSet: "shop", Live: true, Component: "web", Environment: "qa", Sources: []appset.Source{{Here: true}}}}}
	f.c = &branch.ComponentBasis{Basis: &branch.Basis{Now: f.now, Pipeline: p, Snapshot: &branch.Snapshot{Repo: &branch.Repository{URLs: []string{repositoryURL}}}},
		Unit: &branch.ResolvedUnit{Envs: map[string]*branch.ResolvedEnv{"qa": f.at}}, Facts: promotion.ComponentFacts{Now: f.now, Unit: promotion.Unit{Repo: "hub:acme/fleet", Pipeline: "shop", Component: "web"}}}
	f.env = &promotion.Env{Name: "qa", Branch: "main", Release: promotion.Sure(promotion.Release{ID: "r"}), Landed: promotion.Sure(promotion.Landed{Commit: landedHash})}
	f.env.Spec.Verify.ArriveWithin, f.env.Spec.Verify.Timeout = pipeline.Duration(time.Hour), pipeline.Duration(time.Hour)
	return f
}

func (p *parentFixture) add(name, url string, children ...string) {
	a := &verification.App{ArgoCD: "hub", Namespace: "argocd", Name: name, UID: name, SyncStatus: "Synced", Health: "Healthy", ComparedToSpec: true, AutoSync: true, ReconciledAt: p.now,
		Revisions: []string{landedHash}, Sources: []verification.Source{{RepoURL: url, Path: name}}, Destination: verification.Destination{Server: "https://kubernetes.default.svc"}}
	for _, c := range children {
		a.Children = append(a.Children, verification.ChildRef{Namespace: "argocd", Name: c})
	}
	p.apps["argocd/"+name] = a
}

// judgeAll judges and gives each target's state; what it remembers goes into the next look.
func (p *parentFixture) judgeAll(memories *[]store.Observation) map[string]verification.State {
	p.got = p.o.JudgeTargets(context.Background(), p.c, p.env, p.at, *memories)
	for _, m := range p.got.Observations {
		kept := (*memories)[:0:0]
		for _, k := range *memories {
			if k.Target != m.Target {
				kept = append(kept, k)
			}
		}
		*memories = append(kept, m)
	}
	states := map[string]verification.State{}
	for _, t := range p.got.Targets {
		states[t.Name] = t.Verdict.State
	}
	return states
}

// TestChildren judges the Applications below a target, and below those, when the one above
// is done with the commit, and not before.
func TestChildren(t *testing.T) {
	f := newParentFixture()
	var memories []store.Observation
	f.apps["argocd/web-qa"].SyncStatus = "OutOfSync"
	want := map[string]verification.State{"web-qa": verification.Syncing, "app-a": verification.Arriving, "app-b": verification.Arriving, "app-c": verification.Arriving}
	if diff := cmp.Diff(want, f.judgeAll(&memories)); diff != "" {
		t.Errorf("the parent isn't synced (-want +got):\n%s", diff)
	}
	if len(memories) != 1 || memories[0].Unit != wake.UnitName(f.c.Facts.Unit) || memories[0].Target != "hub/argocd/web-qa" {
		t.Errorf("remembered: %+v", memories)
	}
	f.apps["argocd/web-qa"].SyncStatus = "Synced"
	f.apps["argocd/app-b"].ComparedToSpec = false
	want = map[string]verification.State{"web-qa": verification.Refreshing, "app-a": verification.Refreshing, "app-b": verification.Syncing, "app-c": verification.Arriving}
	if diff := cmp.Diff(want, f.judgeAll(&memories)); diff != "" {
		t.Errorf("the parent is synced (-want +got):\n%s", diff)
	}
	f.apps["argocd/app-b"].ComparedToSpec = true
	delete(f.apps, "argocd/app-a")
	want = map[string]verification.State{"web-qa": verification.Refreshing, "app-a": verification.Absent, "app-b": verification.Refreshing, "app-c": verification.Refreshing}
	if diff := cmp.Diff(want, f.judgeAll(&memories)); diff != "" {
		t.Errorf("one is gone (-want +got):\n%s", diff)
	}
	if k := FindTarget(f.o.Argocds, f.at, f.got.Children, "app-c"); k == nil || k.Component != "web" || k.Namespace != "argocd" {
		t.Errorf("found %+v", k)
	}
	if k := FindTarget(f.o.Argocds, f.at, f.got.Children, "web-qa"); k != &f.at.Targets[0] {
		t.Errorf("found %+v", k)
	}
	if k := FindTarget(f.o.Argocds, f.at, f.got.Children, "other"); k != nil {
		t.Errorf("another one is %+v", k)
	}
	if k := FindTarget(f.o.Argocds, nil, nil, "web-qa"); k != nil {
		t.Errorf("elsewhere it is %+v", k)
	}
}

// TestChildrenOnAnotherCluster leaves Applications alone that another Argo CD has, because they
// are deployed to another cluster.
func TestChildrenOnAnotherCluster(t *testing.T) {
	f := newParentFixture()
	f.apps["argocd/web-qa"].Destination = verification.Destination{Name: "eu"}
	if got := f.judgeAll(new([]store.Observation)); len(got) != 1 {
		t.Errorf("judged: %v", got)
	}
}

// TestManyChildren doesn't call verified what it can't look at as a whole.
func TestManyChildren(t *testing.T) {
	f := newParentFixture()
	for i := range maxChildren + 1 {
		f.apps["argocd/web-qa"].Children = append(f.apps["argocd/web-qa"].Children, verification.ChildRef{Name: fmt.Sprint("part-", i)})
	}
	got := f.judgeAll(new([]store.Observation))
	if len(got) != maxChildren+1 || got["web-qa"] != verification.Unclear || !strings.Contains(f.got.Targets[0].Verdict.Reason, "not all of them can be looked at") {
		t.Errorf("%d targets; the parent is %+v", len(got), f.got.Targets[0].Verdict)
	}
}

// TestChildOnItsOwnBranch takes only what the environment's branch says for the commit's;
// the rest comes through the parent.
func TestChildOnItsOwnBranch(t *testing.T) {
	f := newParentFixture()
	for revision, want := range map[string]bool{"": true, "HEAD": true, "main": true, "refs/heads/main": true, "v1.2": false, "release": false} {
		f.apps["argocd/app-b"].Sources[0].TargetRevision = revision
		k := f.o.newChildTarget(f.c, f.env, &f.at.Targets[0], f.apps["argocd/web-qa"], verification.ChildRef{Namespace: "argocd", Name: "app-b"})
		if k.Sources[0].Here != want {
			t.Errorf("at %q: here is %t", revision, k.Sources[0].Here)
		}
	}
}

// TestUnreadableReleaseIsDoneNowhere holds that below a target whose release isn't known nothing is
// judged.
func TestUnreadableReleaseIsDoneNowhere(t *testing.T) {
	for name, change := range map[string]func(env *promotion.Env){
		"the release": func(env *promotion.Env) { env.Release = promotion.Unsure[promotion.Release]("no YAML") },
		"what landed": func(env *promotion.Env) { env.Landed = promotion.Unsure[promotion.Landed]("no history") },
	} {
		f := newParentFixture()
		change(f.env)
		got := f.judgeAll(&[]store.Observation{})
		if got["web-qa"] != verification.Unclear || got["app-a"] != verification.Arriving {
			t.Errorf("%s can't be read: %v", name, got)
		}
	}
}
