package evaluate

import (
	"errors"
	"io/fs"
	"reflect"
	"testing"
	"testing/fstest"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// shop is a small repository: two components in two environments and a set
// that makes an Application for every folder.
func shop() fstest.MapFS {
	tree := fstest.MapFS{"argocd/shop.yaml": {Data: []byte(`apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shop, namespace: argocd}
spec:
  goTemplate: true
  goTemplateOptions: [missingkey=error]
  generators:
  - git:
      repoURL: https://git.example/acme/fleet.git
      revision: HEAD
      directories: [{path: apps/*/overlays/*}]
  template:
    metadata: {name: '{{ index .path.segments 1 }}-{{ .path.basename }}'}
    spec:
      project: default
      source: {repoURL: https://git.example/acme/fleet.git, targetRevision: HEAD, path: '{{ .path.path }}'}
      destination: {server: https://kubernetes.default.svc, namespace: '{{ index .path.segments 1 }}'}
`)}}
	for _, component := range []string{"web", "api"} {
		tree["apps/"+component+"/base/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [deployment.yaml]\n")}
		tree["apps/"+component+"/base/deployment.yaml"] = &fstest.MapFile{Data: []byte("kind: Deployment\n")}
		for _, environment := range []string{"dev", "prod"} {
			tree["apps/"+component+"/overlays/"+environment+"/kustomization.yaml"] = &fstest.MapFile{
				Data: []byte("resources: [../../base]\nimages: [{name: registry.example/" + component + ", newTag: v1}]\n"),
			}
		}
	}
	return tree
}

func shopPipeline(t testing.TB) *pipeline.Pipeline {
	t.Helper()
	all, err := pipeline.Parse(".liftlock.yaml", []byte(shopText))
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// shopText is the shop's pipeline file.
const shopText = `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  applicationSets: [{path: argocd/*.yaml}]
  component: '{{ index .path.segments 1 }}'
  environment: '{{ .path.basename }}'
  carry: [{kustomizeImages: ["*"]}]
  environments:
  - {name: dev}
  - {name: prod, after: [dev], gates: [{approvals: {count: 2}}]}
`

func shopInput(t testing.TB) Input {
	return Input{
		Pipelines: []*pipeline.Pipeline{shopPipeline(t)}, Branch: "main", RepoURLs: []string{"https://git.example/acme/fleet.git"},
		Changed: []string{"apps/web/base/deployment.yaml", "apps/api/overlays/prod/new.yaml", "README.md"},
	}
}

func TestInProcess(t *testing.T) {
	resolver := appset.New(appset.Options{})
	w, err := InProcess(t.Context(), resolver, shop(), shopInput(t))
	if err != nil {
		t.Fatal(err)
	}
	part := w.Pipelines["shop"]
	var got []string
	for _, target := range part.TargetSet.Targets {
		got = append(got, target.Name+" "+target.Component+" "+target.Environment)
		if target.Params != nil {
			t.Errorf("%s has its parameters", target.Name)
		}
	}
	if want := []string{"api-dev api dev", "api-prod api prod", "web-dev web dev", "web-prod web prod"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q; problems %v", got, want, part.TargetSet.Problems)
	}
	base := []string{"apps/web/base/deployment.yaml"}
	if want := map[string][]string{part.TargetSet.Targets[2].ID(): base, part.TargetSet.Targets[3].ID(): base}; !reflect.DeepEqual(part.ChangedFiles, want) {
		t.Errorf("touched are %v, want %v", part.ChangedFiles, want)
	}
}

// The resolver's fleets are shared between its callers.
func TestInProcessLeavesTheCacheAlone(t *testing.T) {
	resolver := appset.New(appset.Options{})
	in := shopInput(t)
	in.Revision = "0123456789012345678901234567890123456789"
	if _, err := InProcess(t.Context(), resolver, shop(), in); err != nil {
		t.Fatal(err)
	}
	f, err := resolver.Resolve(t.Context(), appset.Input{Pipeline: in.Pipelines[0], Tree: shop(), Revision: in.Revision, Branch: in.Branch, RepoURLs: in.RepoURLs})
	if err != nil || f.Targets[0].Params == nil {
		t.Errorf("the shared fleet lost its parameters (%v)", err)
	}
}

func TestInProcessRefuses(t *testing.T) {
	p := shopPipeline(t)
	for name, pipelines := range map[string][]*pipeline.Pipeline{"nil": {nil}, "twice": {p, p}} {
		t.Run(name, func(t *testing.T) {
			if w, err := InProcess(t.Context(), appset.New(appset.Options{}), shop(), Input{Pipelines: pipelines}); err == nil {
				t.Errorf("got %v", w)
			}
		})
	}
}

type broken struct{ fs.FS }

func (broken) Open(string) (fs.File, error) { return nil, errors.New("the disk is gone") }

func TestInProcessNamesUnreadableTree(t *testing.T) {
	w, err := InProcess(t.Context(), appset.New(appset.Options{}), broken{}, shopInput(t))
	if err == nil && len(w.Pipelines["shop"].TargetSet.Problems) == 0 {
		t.Error("nothing was said of it")
	}
}
