package facts

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/faulttest"
	"github.com/liftlock/liftlock/internal/world/memoryforge"
)

var update = flag.Bool("update", false, "write the goldens of the stories anew")

const (
	storyBot  = "liftlock-bot"
	storyBase = "resources: [deployment.yaml]\n"
)

var storyRepo = forge.Repo{Owner: "acme", Name: "fleet"}

// story is what happens around one gatherer: a repository with its forge, an Argo CD and
// a store, all in memory. Nothing happens by itself. Each look gathers everything, and is
// held against a golden: what is other than at the look before.
type story struct {
	t          *testing.T
	now        time.Time
	remote     *git.MemoryRemote
	forge      *memoryforge.Forge
	repo       *branch.Repository
	store      *store.Store
	options    Options
	o          *Gatherer
	components []string
	apps       map[string]func(*verification.App) // how Applications differ from being well, by name
	argocdErr  error
	unhealthy  map[string][]verification.Resource // what resource trees say, by Application

	faults faulttest.Faults
	failed map[string]bool // by whom a call was made that failed once
	// failedNext is the same of running, a process that looks all through the story.
	failedNext map[string]bool
	running    *Gatherer
	// failedDirectly is the same of what failUntilDone does.
	failedDirectly map[string]bool
	seen           *branch.Snapshot // of the look before

	rules *forge.BranchRules // what the forge demands of its branches; nil: as it says
	bases map[int]string     // to what people changed the base of pull requests
	fails map[string]error   // what calls of the forge are answered with
	// computing is that the forge doesn't know yet what can be merged.
	computing bool

	names  map[string]string // what goldens call commits and releases
	last   map[string]string
	golden strings.Builder
}

// newStory has components in environments of a pipeline, all at 1.0.0.
func newStory(t *testing.T, spec string, envs []string, components ...string) *story {
	t.Helper()
	w := &story{t: t, now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), remote: git.NewMemoryRemote(), components: components,
		apps: map[string]func(*verification.App){}, unhealthy: map[string][]verification.Resource{}, bases: map[int]string{}, fails: map[string]error{}, failed: map[string]bool{}, failedNext: map[string]bool{}, failedDirectly: map[string]bool{}, names: map[string]string{}}
	w.forge = memoryforge.New(memoryforge.Options{Now: func() time.Time { return w.now }, Bot: storyBot, BeforeCall: w.beforeForge})
	w.forge.AddRepo(storyRepo, w.remote, "main")
	for i, login := range []string{"ada", "linus", "grace", "mallory"} {
		w.forge.AddUser(login, int64(10+i), false)
		w.must(w.forge.SetPermission(storyRepo, login, forge.PermissionWrite))
	}
	w.must(w.forge.SetPermission(storyRepo, storyBot, forge.PermissionWrite))
	marks, err := branch.NewMarkSigner([]byte("a secret of the server's"))
	w.must(err)
	w.repo = &branch.Repository{ID: "hub:acme/fleet", Name: storyRepo, Forge: storyForge{w.forge.As(storyBot), w}, ForgeRef: "hub", Branch: "main", Mirror: w.openMirror(), URLs: []string{repoURL}, BotLogin: storyBot, BotID: 1, Marks: marks}
	files := map[string]string{
		".liftlock.yaml": storyPipeline(spec),
		"argocd/shop.yaml": strings.ReplaceAll(`apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shop, namespace: argocd}
spec:
  goTemplate: true
  generators: [{git: {repoURL: CLONE, revision: main, directories: [{path: apps/*/*}]}}]
  template:
    metadata: {name: '{{ index .path.segments 1 }}-{{ .path.basename }}'}
    spec:
      project: default
      source: {repoURL: CLONE, targetRevision: main, path: '{{ .path.path }}'}
      destination: {server: 'https://kubernetes.default.svc', namespace: shop}
`, "CLONE", repoURL),
	}
	for _, c := range components {
		files["base/"+c+"/kustomization.yaml"] = storyBase
		files["base/"+c+"/deployment.yaml"] = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + c + "}\nspec: {template: {spec: {containers: [{name: main, image: registry.example/" + c + "}]}}}\n"
		for _, env := range envs {
			files[overlayFile(c, env)] = overlayText(c, "1.0.0")
		}
	}
	w.commit("ada", "Begin", files)
	w.restart()
	return w
}

// openMirror opens an empty mirror of the repository.
func (sto *story) openMirror() *git.Mirror {
	return git.OpenMemory(sto.remote, git.MemoryOptions{Author: sto.forge.Ident(storyBot), Now: func() time.Time { return sto.now }, BeforeRemote: sto.faults.BeforeRemote, AfterRemote: sto.faults.AfterRemote})
}

func storyPipeline(spec string) string {
	return `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  applicationSets: [{path: argocd/*.yaml}]
  component: '{{ index .path.segments 1 }}'
  environment: '{{ .path.basename }}'
  carry: [{kustomizeImages: ["registry.example/*"]}]
` + spec
}

func overlayFile(component, env string) string {
	return "apps/" + component + "/" + env + "/kustomization.yaml"
}

func overlayText(component, tag string) string {
	return fmt.Sprintf("resources: [../../../base/%[1]s]\nimages:\n  - name: registry.example/%[1]s\n    newTag: %[2]q\n", component, tag)
}

// restart begins the life of another process over a store that is lost.
func (sto *story) restart() {
	sto.t.Helper()
	now := func() time.Time { return sto.now }
	o := store.Options{Now: now, Intercept: sto.faults.Intercept, InterceptStatement: sto.faults.InterceptStatement}
	lost := store.OpenMemory(o)
	sto.store = lost
	sto.t.Cleanup(func() { _ = lost.Close() })
	sto.startProcess()
}

// startProcess begins the life of another process over the same store.
func (sto *story) startProcess() {
	sto.options.Store, sto.options.Resolver, sto.options.MainArgoCD, sto.options.Repos = sto.store, appset.New(appset.Options{}), "hub", []*branch.Repository{sto.repo}
	sto.options.ArgoCDs = map[string]branch.ArgoCD{"hub": {Apps: storyArgoCD{sto}, Trees: storyArgoCD{sto}, Namespace: "argocd", NoRefresh: true}}
	sto.options.Now, sto.options.MaxAge = func() time.Time { return sto.now }, time.Hour
	sto.o, sto.running = New(sto.options), nil
}

func (sto *story) must(err error) {
	sto.t.Helper()
	if err != nil {
		sto.t.Fatal(err)
	}
}

func (sto *story) ctx() context.Context { return sto.t.Context() }

// wait lets time pass.
func (sto *story) wait(d time.Duration) { sto.now = sto.now.Add(d) }

// name says what goldens call a commit or a release.
func (sto *story) name(id, name string) { sto.names[id] = name }

func (sto *story) head(branch string) string {
	head, _ := sto.remote.Head(branch)
	return head
}

// commit pushes files to main; an empty text removes one.
func (sto *story) commit(login, message string, files map[string]string) string {
	sto.t.Helper()
	return sto.commitTo(login, "main", sto.head("main"), message, files)
}

// commitTo pushes a commit on a base to a branch.
func (sto *story) commitTo(login, branch, base, message string, files map[string]string) string {
	sto.t.Helper()
	sto.wait(time.Minute)
	who := sto.forge.Ident(login)
	spec := git.CommitSpec{Message: message, When: sto.now, Author: &who, Committer: &who}
	if base != "" {
		spec.Parents, spec.Base = []string{base}, base
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		spec.Files = append(spec.Files, git.FileWrite{Path: name, Content: []byte(files[name]), Delete: files[name] == ""})
	}
	sha, err := sto.remote.Write(sto.ctx(), spec)
	sto.must(err)
	sto.must(sto.forge.Push(storyRepo, login, branch, sha, true))
	sto.fetch()
	subject, _, _ := strings.Cut(message, "\n")
	sto.name(sha, subject)
	return sha
}

// release gives components in an environment another tag.
func (sto *story) release(login, env, tag string, components ...string) string {
	sto.t.Helper()
	files := map[string]string{}
	for _, c := range components {
		files[overlayFile(c, env)] = overlayText(c, tag)
	}
	return sto.commit(login, "Release "+strings.Join(components, " and ")+" "+tag+" to "+env, files)
}

func (sto *story) fetch() {
	sto.t.Helper()
	_, err := sto.repo.Mirror.Fetch(sto.ctx())
	sto.must(err)
}

// refreshPull reads a pull request as a webhook would have it read.
func (sto *story) refreshPull(number int) *forge.PullRequest {
	sto.t.Helper()
	pr, err := sto.o.PullCache.RefreshPullRequest(sto.ctx(), sto.repo, number)
	sto.must(err)
	return pr
}

func (sto *story) unit(component string) promotion.Unit {
	return promotion.Unit{Repo: sto.repo.ID, Pipeline: "shop", Component: component}
}

// evaluate looks at the unit that a component is in, and decides.
func (sto *story) evaluate(component string, fresh bool) (*Evaluation, *promotion.Decision) {
	sto.t.Helper()
	s, err := sto.o.Targets.Snapshot(sto.ctx(), sto.repo)
	sto.must(err)
	ev, d, err := sto.o.Evaluate(sto.ctx(), s, sto.unit(component), fresh)
	if err != nil {
		sto.t.Fatalf("%v (%s)", err, s.PipelineErr)
	}
	return ev, d
}

// lookAtUnit looks at the first component's unit, compares what was gathered with the golden,
// and writes down what the controller does.
func (sto *story) lookAtUnit(step string) (*Evaluation, *promotion.Decision) {
	sto.t.Helper()
	return sto.lookAt(sto.components[0], step)
}

func (sto *story) lookAt(component, step string) (*Evaluation, *promotion.Decision) {
	sto.t.Helper()
	ev, d := sto.evaluate(component, false)
	sto.addStep(step, ev, d)
	sto.failEach(component, step)
	sto.failReads(step, ev, d)
	return ev, d
}

// soak lets time pass, with a look a minute that no golden shows, and writes down what
// is decided about what landed.
func (sto *story) soak(component string) {
	sto.t.Helper()
	for range 4 {
		ev, d := sto.evaluate(component, false)
		for i, c := range ev.Components {
			records, events, err := sto.o.Records.ListChanged(sto.ctx(), c)
			sto.must(err)
			sto.storeComponent(c, &d.Components[i], records, events)
		}
		sto.record(ev, d)
		sto.wait(time.Minute)
	}
}

// addStep adds to the golden what is other than before, and stores the evaluation.
func (sto *story) addStep(step string, ev *Evaluation, d *promotion.Decision) {
	sto.t.Helper()
	now := map[string]string{}
	add := func(prefix string, v any) {
		raw, err := json.Marshal(v)
		sto.must(err)
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var plain any
		sto.must(dec.Decode(&plain))
		flatten(prefix, plain, now)
	}
	leftovers, err := sto.o.Leftovers(sto.ctx(), ev)
	sto.must(err)
	slices.SortFunc(leftovers, func(a, b Leftover) int { return strings.Compare(a.Branch, b.Branch) })
	add("leftovers", leftovers)
	add("retryAt", ev.RetryAt)
	f := ev.Facts()
	add("compositions", f.Compositions)
	add("deployments", f.Deployments)
	for n, p := range ev.OpenPulls {
		at := fmt.Sprintf("#%d", n)
		add(at, p.Pull)
		reverts := 0
		if p.Reverts != nil {
			reverts = p.Reverts.Number
		}
		add(at, map[string]any{"environment": p.Environment, "revert": p.Revert, "base": p.Base, "reverts": reverts, "headSince": p.HeadSince, "proven": p.Proven, "edits": effects.EditedFiles(p.Edits)})
	}
	for i, c := range ev.Components {
		name := c.Facts.Unit.Component
		facts := c.Facts
		facts.Pipeline, facts.Now, facts.Envs = nil, time.Time{}, slices.Clone(facts.Envs)
		for k := range facts.Envs {
			facts.Envs[k].Spec, facts.Envs[k].Gates = pipeline.Environment{}, nil // as the file says
		}
		add(name, facts)
		records, events, err := sto.o.Records.ListChanged(sto.ctx(), c)
		sto.must(err)
		add(name+"/records", records)
		add(name+"/events", events)
		add(name+"/merges", c.Merges)
		add(name+"/ungated", c.Ungated)
		add(name+"/fetch", c.FetchRequests)
		add(name+"/unreachable", c.UnreachableArgoCDs)
		for _, m := range c.Observations {
			add(name+"/remembered/"+m.Environment+"/"+m.Target, true)
		}
		for _, s := range c.Soaks {
			add(name+"/soaks/"+s.Environment, s.Commit)
		}
		for _, m := range c.Metrics {
			add(name+"/metrics/"+metricSamples.Key(m.about).String(), m.sample)
		}
		for _, e := range c.Endpoints {
			add(name+"/endpoints/"+endpointRequests.Key(record.InPull{Pull: e.pull, Name: e.state.ID}).String(), map[string]any{"answer": e.answer, "nextAt": e.nextAt, "failed": e.failed})
		}
		sto.storeComponent(c, &d.Components[i], records, events)
	}
	sto.nameReleases(ev)
	replacer := sto.replacer()
	clean := make(map[string]string, len(now))
	for key, value := range now {
		clean[replacer.Replace(key)] = replacer.Replace(value)
	}
	fmt.Fprintf(&sto.golden, "== %s, at %s\n", step, sto.now.Format("15:04:05"))
	for _, key := range slices.Sorted(maps.Keys(clean)) {
		switch was, had := sto.last[key]; {
		case !had:
			fmt.Fprintf(&sto.golden, "+ %s: %s\n", key, clean[key])
		case was != clean[key]:
			fmt.Fprintf(&sto.golden, "~ %s: %s\n", key, clean[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(sto.last)) {
		if _, is := clean[key]; !is {
			fmt.Fprintf(&sto.golden, "- %s\n", key)
		}
	}
	sto.golden.WriteString("\n")
	sto.last = clean
}

// flatten writes values by where they are, but those that are nothing.
func flatten(at string, v any, out map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			flatten(at+"/"+key, value, out)
		}
	case []any:
		for i, value := range v {
			key := fmt.Sprint(i)
			if m, ok := value.(map[string]any); ok {
				for _, k := range []string{"name", "number"} {
					if name := fmt.Sprint(m[k]); m[k] != nil && name != "" && strings.HasSuffix(at, map[string]string{"name": "envs", "number": "past"}[k]) {
						key = name
					}
				}
			}
			flatten(at+"/"+key, value, out)
		}
	case nil:
	default:
		if text := fmt.Sprint(v); text != "" && text != "false" && text != "0" && text != "0s" && text != "0001-01-01T00:00:00Z" {
			out[at] = text
		}
	}
}

// nameReleases gives names to the releases that an evaluation knows.
func (sto *story) nameReleases(ev *Evaluation) {
	for _, id := range slices.Sorted(maps.Keys(ev.Contents)) {
		if sto.names[id] == "" && len(ev.Contents[id].Fields) > 0 {
			image := ev.Contents[id].Images()
			name := ev.Contents[id].String()
			if len(image) > 0 {
				name = strings.TrimPrefix(image[0].Name, "registry.example/") + " " + name
			}
			sto.name(id, name)
		}
	}
	for _, p := range ev.OpenPulls {
		if p.Batch && sto.names[p.Release] == "" {
			sto.name(p.Release, "all of "+p.Name)
		}
	}
}

// replacer gives commits and releases their names, in full and in short.
func (sto *story) replacer() *strings.Replacer {
	var pairs []string
	for _, id := range slices.Sorted(maps.Keys(sto.names)) {
		pairs = append(pairs, id, "<"+sto.names[id]+">")
	}
	for _, id := range slices.Sorted(maps.Keys(sto.names)) {
		pairs = append(pairs, id[:12], "<"+sto.names[id]+", short>")
	}
	return strings.NewReplacer(pairs...)
}

// storeComponent writes down what the controller does after a look.
func (sto *story) storeComponent(c *ComponentEvaluation, d *promotion.ComponentDecision, records []store.Promotion, events []store.Event) {
	sto.t.Helper()
	row, err := PackView(c, d)
	sto.must(err)
	sto.must(sto.store.Tx(sto.ctx(), "judged", func(tx *store.Tx) error {
		err := tx.PutObservations(sto.ctx(), c.Observations...)
		for _, m := range c.Metrics {
			err = cmpError(err, m.Store(sto.ctx(), tx))
		}
		for _, r := range c.Endpoints {
			err = cmpError(err, r.Store(sto.ctx(), tx))
		}
		for _, a := range c.Soaks {
			err = cmpError(err, tx.UpdateArrivalData(sto.ctx(), a))
		}
		err = cmpError(err, tx.PutUnit(sto.ctx(), row))
		err = cmpError(err, sto.o.Records.RecordQueued(sto.ctx(), tx, c, d))
		err = cmpError(err, sto.o.SettlePulls(sto.ctx(), tx, c))
		for _, p := range records {
			_, failed := tx.PutPromotion(sto.ctx(), p)
			err = cmpError(err, failed)
		}
		_, failed := tx.AddEvents(sto.ctx(), events...)
		return cmpError(err, failed)
	}))
}

func cmpError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// end compares the steps with the golden.
func (sto *story) end() {
	sto.t.Helper()
	file := filepath.Join("testdata", "stories", strings.TrimPrefix(sto.t.Name(), "Test")+".txt")
	if *update {
		sto.must(os.WriteFile(file, []byte(sto.golden.String()), 0o600))
	}
	want, err := os.ReadFile(file)
	sto.must(err)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(sto.golden.String(), "\n")); diff != "" {
		sto.t.Errorf("-want +got:\n%s", diff)
	}
}

// record writes down what a decision found out about what landed, and ends commands.
func (sto *story) record(ev *Evaluation, d *promotion.Decision) {
	sto.t.Helper()
	for _, s := range d.Steps() {
		if k, ok := s.Action.(promotion.FinishCommand); ok {
			sto.must(sto.store.Tx(sto.ctx(), "command", func(tx *store.Tx) error { return tx.FinishPendingCommand(sto.ctx(), k.ID, k.Outcome) }))
		}
		x, ok := s.Action.(promotion.Record)
		if !ok {
			continue
		}
		c := ev.Components[s.Component]
		for _, h := range c.Env(x.Environment).History {
			if h.Release != x.Release || h.Commit != x.Commit {
				continue
			}
			if x.Verified {
				h.MarkVerified(sto.now)
			}
			if x.Degraded {
				h.MarkDegraded(sto.now)
			}
			row, err := c.ArrivalRow(x.Environment, &h)
			sto.must(err)
			sto.must(sto.store.Tx(sto.ctx(), "record", func(tx *store.Tx) error {
				_, err := tx.PutArrival(sto.ctx(), row)
				return err
			}))
		}
	}
}

// storyAction is the first action of a kind that a decision wants.
func storyAction[A promotion.Action](w *story, d *promotion.Decision) A {
	w.t.Helper()
	for _, s := range d.Steps() {
		if a, ok := s.Action.(A); ok {
			return a
		}
	}
	var none A
	w.t.Fatalf("there is no %T among %v; %+v", none, d.Steps(), d.Components[0].Envs)
	return none
}

// openPromotion opens the promotion that a decision wants, as a run of ours would.
func (sto *story) openPromotion(ev *Evaluation, d *promotion.Decision) int {
	sto.t.Helper()
	x := storyAction[promotion.Open](sto, d)
	k := branch.Marker{Kind: promotion.KindPromotion, Release: x.Release}
	releases := map[string]string{}
	for _, m := range x.Members {
		releases[m.Component] = m.Release
	}
	if x.Batch {
		k.Members = x.Members
	} else {
		releases[ev.Unit.Component] = x.Release
	}
	branchName := promotion.Branch(ev.Unit.Pipeline, x.Environment, ev.Unit.Component)
	head := sto.pushEdits(branchName, x.Tip, fmt.Sprintf("Promote %s to %s\n\n%s", x.Name, x.Environment, sto.trailers(ev, x.Environment, k)), ev.ComposedEdits(x.Environment, x.Release))
	sto.must(branch.PushedHeads.Put(sto.ctx(), sto.store, record.OfBranch(sto.repo.ID, branchName), branch.Pushed{{Head: head, Releases: releases}}))
	return sto.openPull(branchName, "Promote "+x.Name+" to "+x.Environment, head, k)
}

// openRevert opens the revert that a decision wants.
func (sto *story) openRevert(ev *Evaluation, d *promotion.Decision) int {
	sto.t.Helper()
	x := storyAction[promotion.OpenRevert](sto, d)
	k := branch.Marker{Kind: promotion.KindRevert, Release: x.Release, Of: x.Pull}
	members := x.Members
	if x.Batch {
		k.Members = x.Members
	}
	if len(members) == 0 {
		members = []promotion.Member{{Component: ev.Unit.Component}}
	}
	branch := promotion.RevertBranch(ev.Unit.Pipeline, x.Environment, ev.Unit.Component, x.Release)
	head := sto.pushEdits(branch, x.Tip, fmt.Sprintf("Revert #%d\n\n%s", x.Pull, sto.trailers(ev, x.Environment, k)), ev.RestoredEdits(x.Environment, x.Pull, members))
	return sto.openPull(branch, fmt.Sprintf("Revert #%d", x.Pull), head, k)
}

func (sto *story) trailers(ev *Evaluation, env string, k branch.Marker) string {
	out := fmt.Sprintf("Liftlock-Pipeline: shop\nLiftlock-Environment: %s\nLiftlock-Component: %s\nLiftlock-Release: %s\nLiftlock-Kind: %s\n", env, ev.Unit.Component, k.Release, k.Kind)
	if len(k.Members) > 0 {
		out += promotion.TrailerMembers + ": " + promotion.MembersTrailer(k.Members) + "\n"
	}
	return out
}

func (sto *story) pushEdits(branch, tip, message string, edits []fieldedit.Edit) string {
	sto.t.Helper()
	if len(edits) == 0 {
		sto.t.Fatalf("there is nothing to push to %s", branch)
	}
	head, err := effects.CommitEdits(sto.ctx(), sto.repo.Mirror, tip, edits, message)
	sto.must(err)
	old, _, err := sto.repo.Mirror.Head(sto.ctx(), branch)
	sto.must(err)
	sto.must(sto.repo.Mirror.Push(sto.ctx(), git.PushSpec{Branch: branch, New: head, Old: old}))
	sto.fetch()
	subject, _, _ := strings.Cut(message, "\n")
	sto.name(head, subject)
	return head
}

func (sto *story) openPull(branch, title, head string, k branch.Marker) int {
	sto.t.Helper()
	sto.wait(time.Second)
	pr, _, err := sto.repo.Forge.CreatePullRequest(sto.ctx(), storyRepo, forge.NewPullRequest{Title: title, Branch: branch, Base: "main", Labels: []string{promotion.LabelOurs},
		Body: "What a person reads.\n" + sto.repo.Marks.Sign(sto.repo.ID, branch, head, k)})
	sto.must(err)
	sto.refreshPull(pr.Number)
	return pr.Number
}

// merge merges a pull request by hand.
func (sto *story) merge(number int, login string) string {
	sto.t.Helper()
	sto.wait(time.Minute)
	landed, err := sto.forge.MergeByHand(storyRepo, number, login, "merge")
	sto.must(err)
	sto.fetch()
	sto.refreshPull(number)
	sto.name(landed, fmt.Sprintf("merge of #%d", number))
	return landed
}

// command gives a command that waits for the next decision.
func (sto *story) command(component string, p store.PendingCommand) {
	sto.t.Helper()
	p.Unit, p.At = wake.UnitName(sto.unit(component)), sto.now
	sto.must(sto.store.Tx(sto.ctx(), "command", func(tx *store.Tx) error {
		_, err := tx.PutPendingCommand(sto.ctx(), p)
		return err
	}))
}

// putRecord writes down a value of the store's.
func (sto *story) putRecord(key store.RecordKey, value any) {
	sto.t.Helper()
	raw, err := json.Marshal(value)
	sto.must(err)
	sto.must(sto.store.PutRecord(sto.ctx(), key, raw))
}

// storyArgoCD has what main has, healthy, but for what the story says of Applications.
type storyArgoCD struct{ w *story }

func (s storyArgoCD) Get(_, name string) (*verification.App, bool) {
	w := s.w
	i := strings.LastIndex(name, "-")
	if i < 0 || !slices.Contains(w.components, name[:i]) {
		return nil, false
	}
	app := &verification.App{ArgoCD: "hub", Name: name, Namespace: "argocd", UID: name, Project: "default", SyncStatus: "Synced", ComparedToSpec: true, Health: "Healthy", Revisions: []string{w.head("main")},
		ReconciledAt: w.now, Sources: []verification.Source{{RepoURL: repoURL, Path: "apps/" + name[:i] + "/" + name[i+1:], TargetRevision: "main"}},
		Destination: verification.Destination{Server: "https://kubernetes.default.svc", Namespace: "shop"}}
	if change := w.apps[name]; change != nil {
		change(app)
	}
	return app, true
}

func (s storyArgoCD) Ready() error { return s.w.argocdErr }

func (s storyArgoCD) UnhealthyResources(_ context.Context, app *verification.App) ([]verification.Resource, error) {
	return s.w.unhealthy[app.Name], s.w.faults.Fail("argocd: unhealthy resources")
}

func (s storyArgoCD) UncheckedResources(_ context.Context, app *verification.App) (verification.Unchecked, error) {
	return app.Unchecked, s.w.faults.Fail("argocd: unchecked resources")
}

func (s storyArgoCD) RememberedUnchecked(*verification.App) (verification.Unchecked, bool) {
	return verification.Unchecked{}, false
}

// RunningImages decide nothing, and without them nothing is said: TestRunningImagesOfVerified has them fail.
func (s storyArgoCD) RunningImages(context.Context, *verification.App) ([]verification.RunningImage, error) {
	return nil, nil
}

// becomes has an Application change, as the watch reports it.
func (sto *story) becomes(app string, change func(*verification.App)) {
	sto.t.Helper()
	sto.apps[app] = change
	a, ok := storyArgoCD{sto}.Get("argocd", app)
	if !ok {
		sto.t.Fatalf("there is no %s", app)
	}
	sto.o.Health.RecordApp(*a, false)
}

// storyForge is the forge as we see it, with what happens to single pull requests and calls.
type storyForge struct {
	forge.Forge
	w *story
}

func (s storyForge) PullRequest(ctx context.Context, r forge.Repo, number int) (*forge.PullRequest, error) {
	pr, err := s.Forge.PullRequest(ctx, r, number)
	if err == nil && s.w.bases[number] != "" {
		pr.Base = s.w.bases[number]
	}
	if err == nil && s.w.computing {
		pr.Mergeable = forge.MergeableUnknown
	}
	return pr, err
}

func (s storyForge) Rules(ctx context.Context, r forge.Repo, branch string) (*forge.BranchRules, error) {
	rules, err := s.Forge.Rules(ctx, r, branch)
	if err == nil {
		err = s.w.fails["rules"]
	}
	if err == nil && s.w.rules != nil {
		return s.w.rules, nil
	}
	return rules, err
}

func (s storyForge) Reviews(ctx context.Context, r forge.Repo, number int) ([]forge.Review, error) {
	if err := s.w.fails["reviews"]; err != nil {
		return nil, err
	}
	return s.Forge.Reviews(ctx, r, number)
}

func (s storyForge) Checks(ctx context.Context, r forge.Repo, commit string) ([]forge.Check, error) {
	if err := s.w.fails["checks"]; err != nil {
		return nil, err
	}
	return s.Forge.Checks(ctx, r, commit)
}

func (s storyForge) IsTeamMember(ctx context.Context, t forge.Team, login string) (bool, error) {
	if err := s.w.fails["team"]; err != nil {
		return false, err
	}
	return s.Forge.IsTeamMember(ctx, t, login)
}

func (s storyForge) Permission(ctx context.Context, r forge.Repo, login string) (forge.Permission, error) {
	if err := s.w.fails["permission"]; err != nil {
		return forge.PermissionNone, err
	}
	return s.Forge.Permission(ctx, r, login)
}

// mergeCommit merges main into a branch, as the forge's own button does.
func (sto *story) mergeCommit(tree string, parents ...string) string {
	sto.t.Helper()
	sto.wait(time.Minute)
	sha, err := sto.remote.Write(sto.ctx(), git.CommitSpec{Message: "Merge main", When: sto.now, Parents: parents, Base: tree})
	sto.must(err)
	sto.name(sha, "Merge main")
	return sha
}
