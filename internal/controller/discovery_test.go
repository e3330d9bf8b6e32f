package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/facts/discovery"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/discover"
	"github.com/liftlock/liftlock/internal/discover/signature"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// testVersions is what registries have.
type testVersions struct {
	mu      sync.Mutex
	tags    map[string][]string
	digests map[string]string // by image:tag
	errs    map[string]error
	signed  map[string]bool // by digest
	pending bool            // what isn't signed was pushed a moment ago
	onRead  func()          // before a digest is read; nil: nothing
	lists   int
}

func (v *testVersions) VerifySignatures(_ context.Context, _, digest string, p *signature.Policy) (discover.Signature, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.signed[digest] {
		return discover.Signature{Digest: digest, By: p.String()}, nil
	}
	return discover.Signature{Digest: digest, Why: "there is no signature of " + digest, Pending: v.pending}, nil
}

// passingError is of a registry that is away.
type passingError struct{}

func (passingError) Error() string   { return "the registry can't answer now; it is asked again" }
func (passingError) IsPassing() bool { return true }

func (v *testVersions) set(image string, tags ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tags[image] = tags
}

func (v *testVersions) fail(image string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.errs[image] = err
}

func (v *testVersions) ListTags(_ context.Context, image string) ([]string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lists++
	return v.tags[image], v.errs[image]
}

func (v *testVersions) ReadDetails(_ context.Context, image string, tags []string) (map[string]discover.Details, bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := map[string]discover.Details{}
	for _, tag := range tags {
		out[tag] = discover.Details{Digest: v.digests[image+":"+tag]}
	}
	return out, true, v.errs[image]
}

func (v *testVersions) ReadDigest(_ context.Context, image, tag string) (string, error) {
	if v.onRead != nil {
		v.onRead()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.digests[image+":"+tag], v.errs[image]
}

func (v *testVersions) ListVersions(context.Context, string) ([]string, error) {
	return nil, errors.New("there are no charts")
}

// discoveryFixture is a repository with a discover in dev, and what registries have.
type discoveryFixture struct {
	*fixture
	versions *testVersions
}

const anyWeb = `[{image: "registry.example/*", choose: {semver: "*"}}]`

func newDiscoveryFixture(t *testing.T, rules string, components ...string) *discoveryFixture {
	t.Helper()
	return discoverIn(newFixture(t, "", manualQA, components...), rules)
}

// discoverIn makes a fixture one with a discover.
func discoverIn(f *fixture, rules string) *discoveryFixture {
	f.t.Helper()
	w := &discoveryFixture{fixture: f, versions: &testVersions{tags: map[string][]string{}, digests: map[string]string{}, errs: map[string]error{}}}
	w.useVersions()
	w.setPipeline(func(text string) string {
		return strings.Replace(text, "{name: dev,", "{name: dev, discover: "+rules+",", 1)
	})
	return w
}

// useVersions gives them to the fixture's process.
func (d *discoveryFixture) useVersions() {
	d.opts.Versions = func(time.Duration) discovery.Source { return d.versions }
	d.repo.DiscoverInterval = 5 * time.Minute
}

// setPipeline changes the pipeline file, and has the server see it.
func (d *discoveryFixture) setPipeline(change func(text string) string) {
	d.t.Helper()
	d.commit("linus", ".liftlock.yaml", change(d.file(".liftlock.yaml")))
	d.runRepository()
}

func (d *discoveryFixture) file(name string) string {
	d.t.Helper()
	text, ok, err := d.forge.File(repoName, "main", name)
	if err != nil || !ok {
		d.t.Fatalf("%s: %t, %v", name, ok, err)
	}
	return text
}

func (d *discoveryFixture) commit(login, file, text string) {
	d.t.Helper()
	_, err := d.forge.CommitAs(repoName, login, "main", "A change of "+file, map[string]string{file: text})
	d.must(err)
}

// discover looks once, and gives the tag that each component has in dev then.
func (d *discoveryFixture) discover(components ...string) string {
	d.t.Helper()
	d.must(d.run(wake.ForDiscovery(d.repo.ID)))
	return d.tags(components...)
}

func (d *discoveryFixture) tags(components ...string) string {
	d.t.Helper()
	var out []string
	for _, c := range components {
		_, tag, _ := strings.Cut(d.file(kustomizationOf(c, "dev")), "newTag: ")
		out = append(out, strings.Trim(strings.TrimSpace(tag), `"`))
	}
	return strings.Join(out, " ")
}

// ownCommits are the commits of the server's on the branch, newest first.
func (d *discoveryFixture) ownCommits() []git.CommitInfo {
	d.t.Helper()
	_, err := d.repo.Mirror.Fetch(d.t.Context())
	d.must(err)
	head, _, err := d.repo.Mirror.Head(d.t.Context(), "main")
	d.must(err)
	log, err := d.repo.Mirror.Log(d.t.Context(), git.LogQuery{From: head, Grep: promotion.TrailerKind + ": "})
	d.must(err)
	return log
}

// said are the messages of events of a kind, oldest first.
func (d *discoveryFixture) said(kind event.Kind) []string {
	d.t.Helper()
	all, err := d.opts.Store.Events(d.t.Context(), store.EventFilter{Limit: 1000})
	d.must(err)
	var out []string
	for _, e := range all {
		if e.Kind == kind {
			out = append(out, e.Message)
		}
	}
	return out
}

// TestDiscovery brings new versions in, each by one commit that says why, and only once.
func TestDiscovery(t *testing.T) {
	w := newDiscoveryFixture(t, anyWeb, "web", "api")
	w.versions.set("registry.example/web", "1.0.0", "1.1.0", "latest")
	w.versions.set("registry.example/api", "1.0.0")
	before := w.file(kustomizationOf("web", "dev"))
	for range 2 {
		if got := w.discover("web", "api"); got != "1.1.0 1.0.0" {
			t.Fatalf("%s", got)
		}
	}
	if got := w.file(kustomizationOf("web", "dev")); got != strings.Replace(before, "1.0.0", "1.1.0", 1) {
		t.Errorf("the file is now\n%s", got)
	}
	log := w.ownCommits()
	if len(log) != 1 {
		t.Fatalf("%d commits", len(log))
	}
	const want = `Bring web 1.1.0 into dev

registry.example/web: 1.1.0, the highest version in *

- apps/web/dev/kustomization.yaml images[registry.example/web].newTag: 1.0.0 -> 1.1.0

Liftlock-Pipeline: shop
Liftlock-Environment: dev
Liftlock-Component: web
Liftlock-Release: RELEASE
Liftlock-Kind: discovery
`
	release := log[0].Trailers[promotion.TrailerRelease]
	if diff := cmp.Diff(strings.Replace(want, "RELEASE", release, 1), log[0].Message); diff != "" || len(release) != 64 {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if log[0].Author.Email != liftlockIdent.Email {
		t.Errorf("it is by %+v", log[0].Author)
	}
	text := "1.1.0 came into dev by itself as " + log[0].SHA[:12] + ": registry.example/web: 1.1.0, the highest version in *"
	if said := w.said(event.Discovered); !slices.Equal(said, []string{text}) {
		t.Errorf("%q", said)
	}
	audit, err := w.opts.Store.AuditTrail(t.Context(), store.AuditFilter{Verb: promotion.AuditDiscover}, 0)
	if err != nil || len(audit) != 1 || audit[0].Actor != bot || audit[0].Outcome != "committed as "+log[0].SHA+" to main" || audit[0].Environment != "dev" {
		t.Errorf("%+v, %v", audit, err)
	}
	w.versions.set("registry.example/web", "1.1.0", "1.2.0")
	w.versions.set("registry.example/api", "1.0.0", "2.0.0")
	if got := w.discover("web", "api"); got != "1.2.0 2.0.0" || len(w.ownCommits()) != 3 {
		t.Errorf("%s by %d commits", got, len(w.ownCommits()))
	}
	w.runRepository()
	w.settle("web", "the release moves on to qa", func() bool {
		return slices.ContainsFunc(w.pulls(), func(p emulator.PullRequest) bool { return strings.Contains(p.Title, "1.2.0") })
	})
}

// TestDiscoveryOfBatch brings the versions of components in that move as one, each by its own commit.
func TestDiscoveryOfBatch(t *testing.T) {
	w := newDiscoveryFixture(t, anyWeb, "web", "api")
	w.setPipeline(func(text string) string { return strings.Replace(text, "spec:\n", "spec:\n  batch: environment\n", 1) })
	w.versions.set("registry.example/web", "1.1.0")
	w.versions.set("registry.example/api", "1.2.0")
	for range 2 {
		if got := w.discover("web", "api"); got != "1.1.0 1.2.0" || len(w.ownCommits()) != 2 {
			t.Errorf("%s by %d commits", got, len(w.ownCommits()))
		}
	}
}

// TestDiscoveryRefusedByForge tells once of a branch that takes no commits of the server's.
func TestDiscoveryRefusedByForge(t *testing.T) {
	w := discoverIn(newEmulatedFixture(t, "", manualQA, "web"), anyWeb)
	w.versions.set("registry.example/web", "1.1.0")
	w.must(w.forge.Grant(repoName, bot, emulator.Read))
	for range 2 {
		if err := w.run(wake.ForDiscovery(w.repo.ID)); err == nil {
			t.Error("it goes on")
		}
	}
	if said := w.said(event.Undiscovered); len(said) != 1 || !strings.HasPrefix(said[0], "1.1.0 can't come into dev: the push to main was refused: ") || w.tags("web") != "1.0.0" {
		t.Errorf("%q, %s", said, w.tags("web"))
	}
	w.must(w.forge.Grant(repoName, bot, emulator.Admin))
	if got := w.discover("web"); got != "1.1.0" {
		t.Errorf("%s", got)
	}
}

// TestDiscoveryIsSpread holds when a repository is looked at next.
func TestDiscoveryIsSpread(t *testing.T) {
	w := newDiscoveryFixture(t, anyWeb, "web")
	times := map[time.Duration]bool{}
	for i := range 100 {
		r := *w.repo
		b := *w.repo.Repository
		r.Repository, b.ID = &b, fmt.Sprint("hub:acme/fleet-", i)
		next := spreadInterval(&r)
		if next < r.DiscoverInterval || next >= r.DiscoverInterval*11/10 || next != spreadInterval(&r) {
			t.Errorf("%s", next)
		}
		times[next] = true
	}
	if len(times) < 50 {
		t.Errorf("only %d times", len(times))
	}
	now := w.clock.Now()
	next, err := w.runKey(t.Context(), wake.ForDiscovery(w.repo.ID).String())
	if err != nil || next.Before(now.Add(w.repo.DiscoverInterval)) {
		t.Errorf("%s, %v", next.Sub(now), err)
	}
	w.setPipeline(func(text string) string { return strings.Replace(text, "discover: "+anyWeb+",", "", 1) })
	if next, err = w.runKey(t.Context(), wake.ForDiscovery(w.repo.ID).String()); err != nil || !next.IsZero() {
		t.Errorf("without a discover: %s, %v", next, err)
	}
}

// TestDiscoveryStaysOut holds what doesn't come in by itself, and what is said of it.
func TestDiscoveryStaysOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rules string
		do    func(w *discoveryFixture)
		then  func(w *discoveryFixture) // nil: nothing brings it in
		want  string                    // what is there then
		said  string                    // an event; empty: none
	}{
		"what is older":    {anyWeb, func(w *discoveryFixture) { w.versions.set("registry.example/web", "0.9.0", "1.0.0") }, nil, "1.0.0", ""},
		"what was deleted": {anyWeb, func(w *discoveryFixture) { w.versions.set("registry.example/web", "0.9.0") }, nil, "1.0.0", ""},
		"what a person took off": {anyWeb, func(w *discoveryFixture) {
			w.versions.set("registry.example/web", "1.1.0")
			w.discover("web")
			w.commit("linus", kustomizationOf("web", "dev"), kustomization("web", "1.0.0"))
			w.runRepository()
		}, func(w *discoveryFixture) { w.versions.set("registry.example/web", "1.1.0", "1.2.0") }, "1.2.0", ""},
		"what is on hold": {anyWeb, func(w *discoveryFixture) {
			w.versions.set("registry.example/web", "1.1.0")
			w.must(w.consoleHold(command.Hold))
		}, func(w *discoveryFixture) { w.must(w.consoleHold(command.Unhold)) }, "1.1.0", ""},
		"what is only observed": {anyWeb, func(w *discoveryFixture) {
			w.versions.set("registry.example/web", "1.1.0")
			w.setPipeline(func(text string) string { return strings.Replace(text, "spec:\n", "spec:\n  mode: observe\n", 1) })
		}, func(w *discoveryFixture) {
			w.setPipeline(func(text string) string { return strings.Replace(text, "  mode: observe\n", "", 1) })
		}, "1.1.0", ""},
		"by rules that are broken": {anyWeb, func(w *discoveryFixture) {
			w.versions.set("registry.example/web", "1.1.0")
			w.setPipeline(func(text string) string { return strings.Replace(text, "semver:", "server:", 1) })
		}, func(w *discoveryFixture) {
			w.setPipeline(func(text string) string { return strings.Replace(text, "server:", "semver:", 1) })
		}, "1.1.0", ""},
		"from a registry that is away": {anyWeb, func(w *discoveryFixture) {
			w.versions.set("registry.example/web", "1.1.0")
			w.versions.fail("registry.example/web", passingError{})
		}, func(w *discoveryFixture) { w.versions.fail("registry.example/web", nil) }, "1.1.0", ""},
		"from a registry that refuses": {anyWeb, func(w *discoveryFixture) {
			w.versions.fail("registry.example/web", errors.New("the registry refuses to show it"))
		}, nil, "1.0.0",
			"registry.example/web in dev: the registry refuses to show it"},
		"by two entries": {`[{image: "registry.example/*", choose: {semver: "*"}}, {image: "*.example/web", choose: {semver: "1"}}]`, func(w *discoveryFixture) { w.versions.set("registry.example/web", "1.1.0") }, nil, "1.0.0",
			"registry.example/web in dev: the entries discover[0] and discover[1] of dev are both about it: write globs that don't overlap"},
		"without a place for it": {`[{image: "registry.example/*", choose: {digest: {tag: main}}}]`, func(w *discoveryFixture) {}, nil, "1.0.0",
			"registry.example/web in dev: the rule writes a digest, and no carried field has one: add digest beside the tag, and carry it"},
		"to what others read": {anyWeb, func(w *discoveryFixture) {
			w.versions.set("registry.example/web", "1.1.0")
			w.commit("linus", "apps/web/qa/kustomization.yaml", "resources: [../dev]\nimages:\n  - name: registry.example/other\n    newTag: 1.0.0\n")
			w.commit("linus", "apps/web/dev/kustomization.yaml", "resources: [deployment.yaml]\n"+kustomization("web", "1.0.0"))
			w.commit("linus", "apps/web/dev/deployment.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: web, image: registry.example/web}]}\n")
			w.runRepository()
		}, nil, "1.0.0", "nothing comes into dev by itself: "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDiscoveryFixture(t, c.rules, "web")
			c.do(w)
			for range 2 {
				if got := w.discover("web"); got != "1.0.0" {
					t.Fatalf("%s is there", got)
				}
			}
			said := w.said(event.Undiscovered)
			if (c.said == "") != (len(said) == 0) || c.said != "" && (len(said) != 1 || !strings.HasPrefix(said[0], c.said)) {
				t.Errorf("%q", said)
			}
			if c.then != nil {
				c.then(w)
			}
			if got := w.discover("web"); got != c.want {
				t.Errorf("then %s is there", got)
			}
		})
	}
}

// available is what is on record of what doesn't come into dev.
func (d *discoveryFixture) available(component string) []stored.AvailableVersion {
	d.t.Helper()
	about := record.InUnit{Unit: record.Unit{Repo: d.repo.ID, Pipeline: "shop", Component: component}, Name: "dev"}
	a, _, err := stored.AvailableVersions.Get(d.t.Context(), d.opts.Store, about)
	d.must(err)
	return a.Versions
}

// TestDiscoveryOnRecord holds that what registries have besides is on record with since when and why, that it goes with its
// reason, and that a look which finds the same writes nothing.
func TestDiscoveryOnRecord(t *testing.T) {
	w := newDiscoveryFixture(t, `[{image: "registry.example/*", choose: {semver: "<2"}}]`, "web")
	w.versions.set("registry.example/web", "1.0.0", "2.0.0")
	w.discover("web")
	first := w.clock.Now()
	seen := stored.AvailableVersion{Name: "registry.example/web", Version: "2.0.0", Since: first, Reason: "held by rule: it is not in <2"}
	check := func(want ...stored.AvailableVersion) {
		t.Helper()
		if diff := cmp.Diff(want, w.available("web")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	check(seen)
	writes := 0
	w.injected.Deep = true
	w.injected.Hook = func(call string) {
		if strings.Contains(call, "putRecord") || strings.Contains(call, "deleteRecord") {
			writes++
		}
	}
	w.clock.Step(time.Hour)
	w.discover("web")
	if w.injected.Hook = nil; writes != 0 {
		t.Errorf("%d writes", writes)
	}
	check(seen)

	w.must(w.consoleHold(command.Hold))
	w.versions.set("registry.example/web", "1.0.0", "1.1.0", "2.0.0")
	w.discover("web")
	all := w.available("web")
	if len(all) != 2 || all[0].Version != "1.1.0" || !all[0].Since.Equal(w.clock.Now()) || !strings.HasPrefix(all[0].Reason, "component web is on hold by ") {
		t.Errorf("on hold: %+v", all)
	}
	w.versions.fail("registry.example/web", passingError{})
	w.clock.Step(time.Hour)
	away := w.clock.Now()
	w.discover("web")
	unknown := w.available("web")[2]
	if unknown.Since.Before(away) || unknown.Since.After(w.clock.Now()) {
		t.Errorf("it is unknown since %s", unknown.Since)
	}
	check(all[0], seen, stored.AvailableVersion{Name: "registry.example/web", Since: unknown.Since, Reason: passingError{}.Error()})
	w.versions.fail("registry.example/web", nil)
	w.must(w.consoleHold(command.Unhold))
	counter := &skipCounter{}
	w.opts.Metrics = counter
	if got := w.discover("web"); got != "1.1.0" {
		t.Errorf("%s", got)
	}
	check(seen)
	if len(counter.discovered) != 1 || counter.discovered[0] < time.Hour {
		t.Errorf("it took %v", counter.discovered)
	}
	w.setPipeline(func(text string) string {
		return strings.Replace(text, "discover: [{image: \"registry.example/*\", choose: {semver: \"<2\"}}],", "", 1)
	})
	w.discover("web")
	check()
}

// consoleHold holds the component in dev, or lifts that.
func (d *discoveryFixture) consoleHold(verb command.Verb) error {
	d.t.Helper()
	return d.consoleCommand("oncall", command.RoleOperator, 0, string(verb), command.Command{Verb: verb, Scope: "component"})
}

// TestDiscoveryLosesRaces composes anew where somebody else pushes at the same moment, and goes on with what that pushed.
func TestDiscoveryLosesRaces(t *testing.T) {
	w := newDiscoveryFixture(t, anyWeb, "web")
	w.versions.set("registry.example/web", "1.1.0")
	pushes := 0
	w.injected.Deep = true
	w.injected.Hook = func(call string) {
		if strings.HasPrefix(call, "git: push") && pushes < 3 {
			pushes++
			w.commit("linus", fmt.Sprintf("docs/%d.md", pushes), "Text\n")
		}
	}
	if got := w.discover("web"); got != "1.1.0" || len(w.ownCommits()) != 1 || pushes != 3 || w.file("docs/3.md") == "" {
		t.Errorf("%s by %d commits, after %d pushes", got, len(w.ownCommits()), pushes)
	}
	w.versions.set("registry.example/web", "1.1.0", "1.2.0")
	pushes = 2
	w.injected.Hook = func(call string) {
		if strings.HasPrefix(call, "git: push") && pushes < 3 {
			pushes++
			w.commit("linus", kustomizationOf("web", "dev"), kustomization("web", "1.3.0"))
		}
	}
	if got := w.discover("web"); got != "1.3.0" || len(w.ownCommits()) != 1 {
		t.Errorf("%s by %d commits", got, len(w.ownCommits()))
	}
}

// TestDiscoveryOfReplicas has two processes look at the same moment, each with a mirror of its own.
func TestDiscoveryOfReplicas(t *testing.T) {
	w := newDiscoveryFixture(t, anyWeb, "web")
	w.versions.set("registry.example/web", "1.1.0")
	first := &discoveryFixture{fixture: &fixture{t: t, forge: w.forge, clock: w.clock, health: w.health, callsOf: map[string]int{}, faults: map[string]error{}, newProcess: w.newProcess, Controller: w.Controller, repo: w.repo}, versions: w.versions}
	w.addProcess(w.opts.Store, "another")
	w.useVersions()
	var wg sync.WaitGroup
	for _, each := range []*discoveryFixture{first, w} {
		wg.Go(func() {
			if _, err := each.runKey(t.Context(), wake.ForDiscovery(each.repo.ID).String()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := w.tags("web"); got != "1.1.0" || len(w.ownCommits()) != 1 || len(w.said(event.Discovered)) != 1 {
		t.Errorf("%s by %d commits, said %q", got, len(w.ownCommits()), w.said(event.Discovered))
	}
}

// TestDiscoveryAfterEachFailure has each call of the store and of Git fail once, before its effect and after it, as if the
// process died there. In the end there is one commit for each version, and each is on record once.
func TestDiscoveryAfterEachFailure(t *testing.T) {
	w := newDiscoveryFixture(t, anyWeb, "web", "api")
	w.versions.set("registry.example/web", "1.1.0")
	w.versions.set("registry.example/api", "1.1.0")
	w.injected.Once = map[string]bool{}
	for version := 1; version < 30; version++ {
		w.versions.set("registry.example/web", fmt.Sprintf("1.%d.0", version))
		w.versions.set("registry.example/api", fmt.Sprintf("1.%d.0", version))
		hits := len(w.injected.Once)
		if got, want := w.discover("web", "api"), fmt.Sprintf("1.%d.0 1.%d.0", version, version); got != want {
			t.Fatalf("%s, not %s", got, want)
		}
		if w.must(w.run(wake.ForDiscovery(w.repo.ID))); len(w.injected.Once) == hits {
			break
		}
	}
	n := len(w.ownCommits())
	if n%2 != 0 || n == 0 || len(w.said(event.Discovered)) != n || len(w.injected.Once) < 20 {
		t.Errorf("%d commits, %d on record, after %d failures", n, len(w.said(event.Discovered)), len(w.injected.Once))
	}
	seen := map[string]bool{}
	for _, c := range w.ownCommits() {
		subject, _, _ := strings.Cut(c.Message, "\n")
		if seen[subject] {
			t.Errorf("%s came in twice", subject)
		}
		seen[subject] = true
	}
}

// webKey is a public key, as a file of a repository.
const webKey = `-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAO2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik=
-----END PUBLIC KEY-----
`

const signedWeb = `[{image: "registry.example/*", choose: {semver: "*"}, verify: {cosign: {key: keys/web.pub}}}]`

// newSignedFixture is a repository in which images have to be signed to come into dev.
func newSignedFixture(t *testing.T) *discoveryFixture {
	t.Helper()
	w := newDiscoveryFixture(t, signedWeb, "web")
	w.commit("linus", "keys/web.pub", webKey)
	w.runRepository()
	w.versions.digests = map[string]string{"registry.example/web:1.1.0": "sha256:b", "registry.example/web:1.2.0": "sha256:c"}
	w.versions.signed = map[string]bool{}
	return w
}

// TestDiscoveryOfSigned brings in what is signed, tells once of what isn't, and not at once of what was pushed a moment ago.
func TestDiscoveryOfSigned(t *testing.T) {
	w := newSignedFixture(t)
	w.versions.set("registry.example/web", "1.0.0", "1.1.0", "1.2.0")
	w.versions.pending = true
	if got := w.discover("web"); got != "1.0.0" || len(w.said(event.Unsigned)) != 0 {
		t.Errorf("%s, said %q", got, w.said(event.Unsigned))
	}
	w.versions.pending = false
	w.versions.signed["sha256:b"] = true
	for range 2 {
		if got := w.discover("web"); got != "1.1.0" {
			t.Errorf("%s", got)
		}
	}
	want := []string{"registry.example/web:1.2.0 doesn't come into dev: it isn't signed as it has to be: there is no signature of sha256:c"}
	if diff := cmp.Diff(want, w.said(event.Unsigned)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	log := w.ownCommits()
	if len(log) != 1 || !strings.Contains(log[0].Message, "\nregistry.example/web: sha256:b, signed with the key keys/web.pub, is 1.1.0, the highest version in *\n") {
		t.Fatalf("%+v", log)
	}
	w.versions.signed["sha256:c"] = true
	if got := w.discover("web"); got != "1.2.0" {
		t.Errorf("%s", got)
	}
}

// TestDiscoveryOfMovedTag brings nothing in where a tag is pushed over between the look at its signature and the commit.
func TestDiscoveryOfMovedTag(t *testing.T) {
	w := newSignedFixture(t)
	w.versions.set("registry.example/web", "1.0.0", "1.1.0")
	w.versions.signed["sha256:b"] = true
	reads := 0
	w.versions.onRead = func() {
		if reads++; reads == 2 {
			w.versions.mu.Lock()
			defer w.versions.mu.Unlock()
			w.versions.digests["registry.example/web:1.1.0"] = "sha256:evil"
		}
	}
	for range 2 {
		if got := w.discover("web"); got != "1.0.0" || len(w.ownCommits()) != 0 {
			t.Errorf("%s", got)
		}
	}
	want := []string{"registry.example/web:1.1.0 doesn't come into dev: it isn't signed as it has to be: there is no signature of sha256:evil"}
	if diff := cmp.Diff(want, w.said(event.Unsigned)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDiscoveryWithoutKey brings nothing in where the key can't be read, and tells of it.
func TestDiscoveryWithoutKey(t *testing.T) {
	w := newDiscoveryFixture(t, signedWeb, "web")
	w.versions.set("registry.example/web", "1.1.0")
	if got := w.discover("web"); got != "1.0.0" {
		t.Errorf("%s", got)
	}
	said := w.said(event.Undiscovered)
	if len(said) != 1 || !strings.HasPrefix(said[0], "registry.example/web in dev: the key keys/web.pub of verify can't be read beside the pipeline file, so nothing counts as signed: ") {
		t.Errorf("%q", said)
	}
	w.commit("linus", "keys/web.pub", webKey)
	w.runRepository()
	w.versions.digests["registry.example/web:1.1.0"], w.versions.signed = "sha256:b", map[string]bool{"sha256:b": true}
	if got := w.discover("web"); got != "1.1.0" {
		t.Errorf("%s", got)
	}
}

// TestImagePushed holds that a registry's word has lists made anew, for the repositories whose rules are about the image.
func TestImagePushed(t *testing.T) {
	w := newDiscoveryFixture(t, anyWeb, "web")
	var ages []time.Duration
	w.opts.Versions = func(age time.Duration) discovery.Source { ages = append(ages, age); return w.versions }
	w.versions.set("registry.example/web", "1.1.0")
	pushed := func(image string) bool {
		t.Helper()
		w.must(w.ImagePushed(t.Context(), []string{image}))
		at, is, err := imagePushes.Get(t.Context(), w.opts.Store, record.Repository(w.repo.ID))
		w.must(err)
		return is && at.Equal(w.clock.Now())
	}
	if pushed("other.example/web") {
		t.Error("another registry's image counts")
	}
	if got := w.discover("web"); got != "1.1.0" || ages[len(ages)-1] != w.repo.DiscoverInterval/2 {
		t.Errorf("%s, lists of %s", got, ages)
	}
	if !pushed("registry.example/web") {
		t.Error("its own image doesn't count")
	}
	w.discover("web")
	if got := ages[len(ages)-1]; got >= w.repo.DiscoverInterval/10 {
		t.Errorf("lists of %s count", got)
	}
}
