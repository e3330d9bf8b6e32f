package facts

import (
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// namesakesPipeline has Applications of two Argo CDs: qa and one prod have one name, and
// prod has two of one name.
const namesakesPipeline = `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  applicationSets:
    - {path: "argocd/*.yaml"}
    - {path: "edge/*.yaml", argocd: edge}
  component: '{{ .component }}'
  environment: '{{ .env }}'
  carry: [{kustomizeImages: ["*"]}]
  environments:
    - {name: dev}
    - {name: qa, after: [dev]}
    - {name: prod, after: [qa]}
`

// TestNamesakes holds that Applications of one name are told apart by the files that they read. A
// person's commit to prod's is no other's, and a promotion's change in one of them is that one's.
func TestNamesakes(t *testing.T) {
	overlay := func(env, file, config string) map[string]string {
		return map[string]string{
			"apps/" + env + "/kustomization.yaml": "resources: [" + file + ".yaml]\nimages: [{name: x, newTag: '1'}]\n",
			"apps/" + env + "/" + file + ".yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + file + "}\ndata: {v: " + config + "}\n",
		}
	}
	set := func(elements string) string {
		return `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: s, namespace: argocd}
spec:
  goTemplate: true
  generators: [{list: {elements: [` + elements + `]}}]
  template:
    metadata: {name: '{{ .name }}'}
    spec:
      project: default
      source: {repoURL: '` + repoURL + `', path: 'apps/{{ .dir }}', targetRevision: main}
      destination: {server: https://kubernetes.default.svc, namespace: x}
`
	}
	files := map[string]string{
		".liftlock.yaml": namesakesPipeline,
		"argocd/s.yaml":  set("{name: web, component: web, env: qa, dir: qa}, {name: web-prod, component: web, env: prod, dir: prod-hub}, {name: web-dev, component: web, env: dev, dir: dev}"),
		"edge/s.yaml":    set("{name: web, component: web, env: prod, dir: prod-edge}, {name: web-prod, component: web, env: prod, dir: prod-edge-2}"),
	}
	for _, dir := range []string{"dev", "qa", "prod-hub", "prod-edge", "prod-edge-2"} {
		for path, content := range overlay(dir, "config-"+dir, "a") {
			files[path] = content
		}
	}
	r := newTestRepo(t, "fleet", files)
	parent := r.at
	landed := r.commit("main", overlay("prod-edge-2", "config-prod-edge-2", "web:2"))
	other := r.commit("main", overlay("prod-edge", "config-prod-edge", "c"))
	o := newTestGatherer(r)
	s := takeSnapshot(t, o, r)
	p := s.Pipelines[0]
	at := p.Units["web"].Envs["prod"]
	if at == nil || len(at.Targets) != 3 {
		t.Fatalf("prod: %+v, %v", at, p.Problems)
	}
	info, err := r.Mirror.Commit(t.Context(), landed)
	if err != nil {
		t.Fatal(err)
	}
	env := &promotion.Env{Name: "prod", Branch: "main", Tip: other, Landed: promotion.Sure(promotion.Landed{Commit: landed, Parent: parent, At: info.CommitTime})}
	for i := range at.Targets {
		env.Targets = append(env.Targets, o.Live.NewTarget(&at.Targets[i], o.Live.Argocds.TargetLabel(at, &at.Targets[i])))
	}
	for i := range env.Targets { // each of them can't pull a new image and an old one
		env.Targets[i].Unhealthy = promotion.Sure([]verification.Resource{{Kind: "Pod", Name: "a", Message: `Back-off pulling image "web:2"`}, {Kind: "Pod", Name: "b", Message: `Back-off pulling image "proxy:1"`}})
	}
	c := componentOf(&Evaluation{Basis: branch.Basis{Snapshot: s, Pipeline: p}}, branch.ComponentBasis{Unit: p.Units["web"]})
	c.Facts.Unit = promotion.Unit{Repo: s.Repo.ID, Pipeline: "shop", Component: "web"}
	if err := o.answerBlame(t.Context(), c, env); err != nil {
		t.Fatal(err)
	}
	if err := o.answerChangedObjects(t.Context(), c, env); err != nil {
		t.Fatal(err)
	}
	for i := range env.Targets {
		target, dir := &env.Targets[i], at.Targets[i].Sources[0].Path
		if want := dir == "apps/prod-edge"; !target.ChangedSince.OK || slices.Contains(target.ChangedSince.Value, other) != want {
			t.Errorf("%s (%s) was changed by %v; want by the other commit: %t", target.Name, dir, target.ChangedSince, want)
		}
		if want := dir == "apps/prod-edge-2"; !target.ChangedObjects.OK || len(target.ChangedObjects.Value) > 0 != want {
			t.Errorf("in %s (%s) the promotion changed %+v; want something: %t", target.Name, dir, target.ChangedObjects, want)
		}
		if want := dir == "apps/prod-edge-2"; strings.Join(target.BroughtImages, " ") == "web:2" != want || !want && target.BroughtImages != nil {
			t.Errorf("in %s (%s) the promotion brought %q; want web:2: %t", target.Name, dir, target.BroughtImages, want)
		}
	}
}
