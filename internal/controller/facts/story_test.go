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
	"github.com/liftlock/liftlock/internal/controller/faulttest"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/memory"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
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
	forge      *memory.Forge
	repo       *Repository
	store      *store.Store
	sqlite     bool // the store is one of SQLite, of which each statement may fail
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
	seen           *Snapshot // of the look before

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
	w.forge = memory.New(memory.Options{Now: func() time.Time { return w.now }, Bot: storyBot, BeforeCall: w.beforeForge})
	w.forge.AddRepo(storyRepo, w.remote, "main")
	for i, login := range []string{"ada", "linus", "grace", "mallory"} {
		w.forge.AddUser(login, int64(10+i), false)
		w.must(w.forge.SetPermission(storyRepo, login, forge.PermissionWrite))
	}
	w.must(w.forge.SetPermission(storyRepo, storyBot, forge.PermissionWrite))
	marks, err := NewMarkSigner([]byte("a secret of the server's"))
	w.must(err)
	w.repo = &Repository{ID: "hub:acme/fleet", Name: storyRepo, Forge: storyForge{w.forge.As(storyBot), w}, ForgeRef: "hub", Branch: "main", Mirror: w.openMirror(), URLs: []string{repoURL}, BotLogin: storyBot, BotID: 1, Marks: marks}
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
func (w *story) openMirror() *git.Mirror {
	return git.OpenMemory(w.remote, git.MemoryOptions{Author: w.forge.Ident(storyBot), Now: func() time.Time { return w.now }, BeforeRemote: w.faults.BeforeRemote, AfterRemote: w.faults.AfterRemote})
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
func (w *story) restart() {
	w.t.Helper()
	now := func() time.Time { return w.now }
	o := store.Options{Now: now, Intercept: w.faults.Intercept, InterceptStatement: w.faults.InterceptStatement}
	if w.sqlite {
		var err error
		w.store, err = store.Open(w.ctx(), "sqlite://"+filepath.Join(w.t.TempDir(), "liftlock.db"), o)
		w.must(err)
	} else {
		w.store = store.OpenMemory(o)
	}
	w.t.Cleanup(func() { _ = w.store.Close() })
	w.startProcess()
}

// useSQLite begins the life of another process over a store of SQLite.
func (w *story) useSQLite() {
	w.t.Helper()
	w.sqlite = true
	w.restart()
}

// startProcess begins the life of another process over the same store.
func (w *story) startProcess() {
	w.options.Store, w.options.Resolver, w.options.MainArgoCD, w.options.Repos = w.store, appset.New(appset.Options{}), "hub", []*Repository{w.repo}
	w.options.ArgoCDs = map[string]ArgoCD{"hub": {Apps: storyArgoCD{w}, Trees: storyArgoCD{w}, Namespace: "argocd", NoRefresh: true}}
	w.options.Now, w.options.MaxAge = func() time.Time { return w.now }, time.Hour
	w.o, w.running = New(w.options), nil
}

func (w *story) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *story) ctx() context.Context { return w.t.Context() }

// wait lets time pass.
func (w *story) wait(d time.Duration) { w.now = w.now.Add(d) }

// name says what goldens call a commit or a release.
func (w *story) name(id, name string) { w.names[id] = name }

func (w *story) head(branch string) string {
	head, _ := w.remote.Head(branch)
	return head
}

// commit pushes files to main; an empty text removes one.
func (w *story) commit(login, message string, files map[string]string) string {
	w.t.Helper()
	return w.commitTo(login, "main", w.head("main"), message, files)
}

// commitTo pushes a commit on a base to a branch.
func (w *story) commitTo(login, branch, base, message string, files map[string]string) string {
	w.t.Helper()
	w.wait(time.Minute)
	who := w.forge.Ident(login)
	spec := git.CommitSpec{Message: message, When: w.now, Author: &who, Committer: &who}
	if base != "" {
		spec.Parents, spec.Base = []string{base}, base
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		spec.Files = append(spec.Files, git.FileWrite{Path: name, Content: []byte(files[name]), Delete: files[name] == ""})
	}
	sha, err := w.remote.Write(w.ctx(), spec)
	w.must(err)
	w.must(w.forge.Push(storyRepo, login, branch, sha, true))
	w.fetch()
	subject, _, _ := strings.Cut(message, "\n")
	w.name(sha, subject)
	return sha
}

// release gives components in an environment another tag.
func (w *story) release(login, env, tag string, components ...string) string {
	w.t.Helper()
	files := map[string]string{}
	for _, c := range components {
		files[overlayFile(c, env)] = overlayText(c, tag)
	}
	return w.commit(login, "Release "+strings.Join(components, " and ")+" "+tag+" to "+env, files)
}

func (w *story) fetch() {
	w.t.Helper()
	_, err := w.repo.Mirror.Fetch(w.ctx())
	w.must(err)
}

// refreshPull reads a pull request as a webhook would have it read.
func (w *story) refreshPull(number int) *forge.PullRequest {
	w.t.Helper()
	pr, err := w.o.RefreshPullRequest(w.ctx(), w.repo, number)
	w.must(err)
	return pr
}

func (w *story) unit(component string) promotion.Unit {
	return promotion.Unit{Repo: w.repo.ID, Pipeline: "shop", Component: component}
}

// evaluate looks at the unit that a component is in, and decides.
func (w *story) evaluate(component string, fresh bool) (*Evaluation, *promotion.Decision) {
	w.t.Helper()
	s, err := w.o.Snapshot(w.ctx(), w.repo)
	w.must(err)
	ev, d, err := w.o.Evaluate(w.ctx(), s, w.unit(component), fresh)
	if err != nil {
		w.t.Fatalf("%v (%s)", err, s.PipelineErr)
	}
	return ev, d
}

// lookAtUnit looks at the first component's unit, compares what was gathered with the golden,
// and writes down what the controller does.
func (w *story) lookAtUnit(step string) (*Evaluation, *promotion.Decision) {
	w.t.Helper()
	return w.lookAt(w.components[0], step)
}

func (w *story) lookAt(component, step string) (*Evaluation, *promotion.Decision) {
	w.t.Helper()
	ev, d := w.evaluate(component, false)
	w.addStep(step, ev, d)
	w.failEach(component, step)
	w.failReads(step, ev, d)
	return ev, d
}

// soak lets time pass, with a look a minute that no golden shows, and writes down what
// is decided about what landed.
func (w *story) soak(component string) {
	w.t.Helper()
	for range 4 {
		ev, d := w.evaluate(component, false)
		for i, c := range ev.Components {
			records, events, err := w.o.Records(w.ctx(), c)
			w.must(err)
			w.storeComponent(c, &d.Components[i], records, events)
		}
		w.record(ev, d)
		w.wait(time.Minute)
	}
}

// addStep adds to the golden what is other than before, and stores the evaluation.
func (w *story) addStep(step string, ev *Evaluation, d *promotion.Decision) {
	w.t.Helper()
	now := map[string]string{}
	add := func(prefix string, v any) {
		raw, err := json.Marshal(v)
		w.must(err)
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var plain any
		w.must(dec.Decode(&plain))
		flatten(prefix, plain, now)
	}
	leftovers, err := w.o.Leftovers(w.ctx(), ev)
	w.must(err)
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
		add(at, map[string]any{"environment": p.Environment, "revert": p.Revert, "base": p.Base, "reverts": reverts, "headSince": p.HeadSince, "proven": p.Proven, "edits": editedFiles(p.Edits)})
	}
	for i, c := range ev.Components {
		name := c.Facts.Unit.Component
		facts := c.Facts
		facts.Pipeline, facts.Now, facts.Envs = nil, time.Time{}, slices.Clone(facts.Envs)
		for k := range facts.Envs {
			facts.Envs[k].Spec, facts.Envs[k].Gates = pipeline.Environment{}, nil // as the file says
		}
		add(name, facts)
		records, events, err := w.o.Records(w.ctx(), c)
		w.must(err)
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
		w.storeComponent(c, &d.Components[i], records, events)
	}
	w.nameReleases(ev)
	replacer := w.replacer()
	clean := make(map[string]string, len(now))
	for key, value := range now {
		clean[replacer.Replace(key)] = replacer.Replace(value)
	}
	fmt.Fprintf(&w.golden, "== %s, at %s\n", step, w.now.Format("15:04:05"))
	for _, key := range slices.Sorted(maps.Keys(clean)) {
		switch was, had := w.last[key]; {
		case !had:
			fmt.Fprintf(&w.golden, "+ %s: %s\n", key, clean[key])
		case was != clean[key]:
			fmt.Fprintf(&w.golden, "~ %s: %s\n", key, clean[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.last)) {
		if _, is := clean[key]; !is {
			fmt.Fprintf(&w.golden, "- %s\n", key)
		}
	}
	w.golden.WriteString("\n")
	w.last = clean
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
func (w *story) nameReleases(ev *Evaluation) {
	for _, id := range slices.Sorted(maps.Keys(ev.contents)) {
		if w.names[id] == "" && len(ev.contents[id].Fields) > 0 {
			image := ev.contents[id].Images()
			name := ev.contents[id].String()
			if len(image) > 0 {
				name = strings.TrimPrefix(image[0].Name, "registry.example/") + " " + name
			}
			w.name(id, name)
		}
	}
	for _, p := range ev.OpenPulls {
		if p.Batch && w.names[p.Release] == "" {
			w.name(p.Release, "all of "+p.Name)
		}
	}
}

// replacer gives commits and releases their names, in full and in short.
func (w *story) replacer() *strings.Replacer {
	var pairs []string
	for _, id := range slices.Sorted(maps.Keys(w.names)) {
		pairs = append(pairs, id, "<"+w.names[id]+">")
	}
	for _, id := range slices.Sorted(maps.Keys(w.names)) {
		pairs = append(pairs, id[:12], "<"+w.names[id]+", short>")
	}
	return strings.NewReplacer(pairs...)
}

// storeComponent writes down what the controller does after a look.
func (w *story) storeComponent(c *ComponentEvaluation, d *promotion.ComponentDecision, records []store.Promotion, events []store.Event) {
	w.t.Helper()
	row, err := PackView(c, d)
	w.must(err)
	w.must(w.store.Tx(w.ctx(), "judged", func(tx *store.Tx) error {
		err := tx.PutObservations(w.ctx(), c.Observations...)
		for _, m := range c.Metrics {
			err = cmpError(err, m.Store(w.ctx(), tx))
		}
		for _, r := range c.Endpoints {
			err = cmpError(err, r.Store(w.ctx(), tx))
		}
		for _, a := range c.Soaks {
			err = cmpError(err, tx.UpdateArrivalData(w.ctx(), a))
		}
		err = cmpError(err, tx.PutUnit(w.ctx(), row))
		err = cmpError(err, w.o.RecordQueued(w.ctx(), tx, c, d))
		err = cmpError(err, w.o.SettlePulls(w.ctx(), tx, c))
		for _, p := range records {
			_, failed := tx.PutPromotion(w.ctx(), p)
			err = cmpError(err, failed)
		}
		_, failed := tx.AddEvents(w.ctx(), events...)
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
func (w *story) end() {
	w.t.Helper()
	file := filepath.Join("testdata", "stories", strings.TrimPrefix(w.t.Name(), "Test")+".txt")
	if *update {
		w.must(os.WriteFile(file, []byte(w.golden.String()), 0o600))
	}
	want, err := os.ReadFile(file)
	w.must(err)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(w.golden.String(), "\n")); diff != "" {
		w.t.Errorf("-want +got:\n%s", diff)
	}
}

// record writes down what a decision found out about what landed, and ends commands.
func (w *story) record(ev *Evaluation, d *promotion.Decision) {
	w.t.Helper()
	for _, s := range d.Steps() {
		if k, ok := s.Action.(promotion.FinishCommand); ok {
			w.must(w.store.Tx(w.ctx(), "command", func(tx *store.Tx) error { return tx.FinishPendingCommand(w.ctx(), k.ID, k.Outcome) }))
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
				h.MarkVerified(w.now)
			}
			if x.Degraded {
				h.MarkDegraded(w.now)
			}
			row, err := c.ArrivalRow(x.Environment, &h)
			w.must(err)
			w.must(w.store.Tx(w.ctx(), "record", func(tx *store.Tx) error {
				_, err := tx.PutArrival(w.ctx(), row)
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
func (w *story) openPromotion(ev *Evaluation, d *promotion.Decision) int {
	w.t.Helper()
	x := storyAction[promotion.Open](w, d)
	k := Marker{Kind: promotion.KindPromotion, Release: x.Release}
	releases := map[string]string{}
	for _, m := range x.Members {
		releases[m.Component] = m.Release
	}
	if x.Batch {
		k.Members = x.Members
	} else {
		releases[ev.Unit.Component] = x.Release
	}
	branch := promotion.Branch(ev.Unit.Pipeline, x.Environment, ev.Unit.Component)
	head := w.pushEdits(branch, x.Tip, fmt.Sprintf("Promote %s to %s\n\n%s", x.Name, x.Environment, w.trailers(ev, x.Environment, k)), ev.ComposedEdits(x.Environment, x.Release))
	w.must(PushedHeads.Put(w.ctx(), w.store, record.OfBranch(w.repo.ID, branch), Pushed{{Head: head, Releases: releases}}))
	return w.openPull(branch, "Promote "+x.Name+" to "+x.Environment, head, k)
}

// openRevert opens the revert that a decision wants.
func (w *story) openRevert(ev *Evaluation, d *promotion.Decision) int {
	w.t.Helper()
	x := storyAction[promotion.OpenRevert](w, d)
	k := Marker{Kind: promotion.KindRevert, Release: x.Release, Of: x.Pull}
	members := x.Members
	if x.Batch {
		k.Members = x.Members
	}
	if len(members) == 0 {
		members = []promotion.Member{{Component: ev.Unit.Component}}
	}
	branch := promotion.RevertBranch(ev.Unit.Pipeline, x.Environment, ev.Unit.Component, x.Release)
	head := w.pushEdits(branch, x.Tip, fmt.Sprintf("Revert #%d\n\n%s", x.Pull, w.trailers(ev, x.Environment, k)), ev.RestoredEdits(x.Environment, x.Pull, members))
	return w.openPull(branch, fmt.Sprintf("Revert #%d", x.Pull), head, k)
}

func (w *story) trailers(ev *Evaluation, env string, k Marker) string {
	out := fmt.Sprintf("Liftlock-Pipeline: shop\nLiftlock-Environment: %s\nLiftlock-Component: %s\nLiftlock-Release: %s\nLiftlock-Kind: %s\n", env, ev.Unit.Component, k.Release, k.Kind)
	if len(k.Members) > 0 {
		out += promotion.TrailerMembers + ": " + promotion.MembersTrailer(k.Members) + "\n"
	}
	return out
}

func (w *story) pushEdits(branch, tip, message string, edits []fieldedit.Edit) string {
	w.t.Helper()
	if len(edits) == 0 {
		w.t.Fatalf("there is nothing to push to %s", branch)
	}
	head, err := CommitEdits(w.ctx(), w.repo.Mirror, tip, edits, message)
	w.must(err)
	old, _, err := w.repo.Mirror.Head(w.ctx(), branch)
	w.must(err)
	w.must(w.repo.Mirror.Push(w.ctx(), git.PushSpec{Branch: branch, New: head, Old: old}))
	w.fetch()
	subject, _, _ := strings.Cut(message, "\n")
	w.name(head, subject)
	return head
}

func (w *story) openPull(branch, title, head string, k Marker) int {
	w.t.Helper()
	w.wait(time.Second)
	pr, _, err := w.repo.Forge.CreatePullRequest(w.ctx(), storyRepo, forge.NewPullRequest{Title: title, Branch: branch, Base: "main", Labels: []string{promotion.LabelOurs},
		Body: "What a person reads.\n" + w.repo.Marks.Sign(w.repo.ID, branch, head, k)})
	w.must(err)
	w.refreshPull(pr.Number)
	return pr.Number
}

// merge merges a pull request by hand.
func (w *story) merge(number int, login string) string {
	w.t.Helper()
	w.wait(time.Minute)
	landed, err := w.forge.MergeByHand(storyRepo, number, login, "merge")
	w.must(err)
	w.fetch()
	w.refreshPull(number)
	w.name(landed, fmt.Sprintf("merge of #%d", number))
	return landed
}

// command gives a command that waits for the next decision.
func (w *story) command(component string, p store.PendingCommand) {
	w.t.Helper()
	p.Unit, p.At = wake.UnitName(w.unit(component)), w.now
	w.must(w.store.Tx(w.ctx(), "command", func(tx *store.Tx) error {
		_, err := tx.PutPendingCommand(w.ctx(), p)
		return err
	}))
}

// putRecord writes down a value of the store's.
func (w *story) putRecord(key store.RecordKey, value any) {
	w.t.Helper()
	raw, err := json.Marshal(value)
	w.must(err)
	w.must(w.store.PutRecord(w.ctx(), key, raw))
}

// storyArgoCD has what main has, healthy, but for what the story says of Applications.
type storyArgoCD struct{ w *story }

func (a storyArgoCD) Get(_, name string) (*verification.App, bool) {
	w := a.w
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

func (a storyArgoCD) Ready() error { return a.w.argocdErr }

func (a storyArgoCD) UnhealthyResources(_ context.Context, app *verification.App) ([]verification.Resource, error) {
	return a.w.unhealthy[app.Name], a.w.faults.Fail("argocd: unhealthy resources")
}

func (a storyArgoCD) UncheckedResources(_ context.Context, app *verification.App) (verification.Unchecked, error) {
	return app.Unchecked, a.w.faults.Fail("argocd: unchecked resources")
}

func (a storyArgoCD) RememberedUnchecked(*verification.App) (verification.Unchecked, bool) {
	return verification.Unchecked{}, false
}

// RunningImages decide nothing, and without them nothing is said: TestRunningImagesOfVerified has them fail.
func (a storyArgoCD) RunningImages(context.Context, *verification.App) ([]verification.RunningImage, error) {
	return nil, nil
}

// becomes has an Application change, as the watch reports it.
func (w *story) becomes(app string, change func(*verification.App)) {
	w.t.Helper()
	w.apps[app] = change
	a, ok := storyArgoCD{w}.Get("argocd", app)
	if !ok {
		w.t.Fatalf("there is no %s", app)
	}
	w.o.RecordApp(*a, false)
}

// storyForge is the forge as we see it, with what happens to single pull requests and calls.
type storyForge struct {
	forge.Forge
	w *story
}

func (f storyForge) PullRequest(ctx context.Context, r forge.Repo, number int) (*forge.PullRequest, error) {
	pr, err := f.Forge.PullRequest(ctx, r, number)
	if err == nil && f.w.bases[number] != "" {
		pr.Base = f.w.bases[number]
	}
	if err == nil && f.w.computing {
		pr.Mergeable = forge.MergeableUnknown
	}
	return pr, err
}

func (f storyForge) Rules(ctx context.Context, r forge.Repo, branch string) (*forge.BranchRules, error) {
	rules, err := f.Forge.Rules(ctx, r, branch)
	if err == nil {
		err = f.w.fails["rules"]
	}
	if err == nil && f.w.rules != nil {
		return f.w.rules, nil
	}
	return rules, err
}

func (f storyForge) Reviews(ctx context.Context, r forge.Repo, number int) ([]forge.Review, error) {
	if err := f.w.fails["reviews"]; err != nil {
		return nil, err
	}
	return f.Forge.Reviews(ctx, r, number)
}

func (f storyForge) Checks(ctx context.Context, r forge.Repo, commit string) ([]forge.Check, error) {
	if err := f.w.fails["checks"]; err != nil {
		return nil, err
	}
	return f.Forge.Checks(ctx, r, commit)
}

func (f storyForge) IsTeamMember(ctx context.Context, t forge.Team, login string) (bool, error) {
	if err := f.w.fails["team"]; err != nil {
		return false, err
	}
	return f.Forge.IsTeamMember(ctx, t, login)
}

func (f storyForge) Permission(ctx context.Context, r forge.Repo, login string) (forge.Permission, error) {
	if err := f.w.fails["permission"]; err != nil {
		return forge.PermissionNone, err
	}
	return f.Forge.Permission(ctx, r, login)
}

// mergeCommit merges main into a branch, as the forge's own button does.
func (w *story) mergeCommit(tree string, parents ...string) string {
	w.t.Helper()
	w.wait(time.Minute)
	sha, err := w.remote.Write(w.ctx(), git.CommitSpec{Message: "Merge main", When: w.now, Parents: parents, Base: tree})
	w.must(err)
	w.name(sha, "Merge main")
	return sha
}
