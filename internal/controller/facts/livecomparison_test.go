package facts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
)

// listedArgoCD is an Argo CD that lists Applications.
type listedArgoCD struct {
	fakeArgoCD
	list []string
	err  error
}

func (l *listedArgoCD) Each(_ context.Context, visit func(json.RawMessage) error) error {
	for _, raw := range l.list {
		if err := visit(json.RawMessage(raw)); err != nil {
			return err
		}
	}
	return l.err
}

// TestCompareWithLive tells what runs apart from what the tracked branch resolves to, and
// says why it can't.
func TestCompareWithLive(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	app := func(name, path string) string {
		return fmt.Sprintf(`{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{"name":%q,"namespace":"argocd","finalizers":["resources-finalizer.argocd.argoproj.io"],"ownerReferences":[{"apiVersion":"argoproj.io/v1alpha1","kind":"ApplicationSet","name":"shop","controller":true,"uid":"1"}]},`+
			`"spec":{"project":"default","source":{"repoURL":%q,"targetRevision":"main","path":%q},"destination":{"server":"https://kubernetes.default.svc","namespace":"shop"}}}`, name, repoURL, path)
	}
	live := &listedArgoCD{fakeArgoCD: fakeArgoCD{clustersErr: argocd.ErrClustersOff}, list: []string{app("web-dev", "apps/web/dev"), app("web-old", "apps/web/old")}}
	w.o.ArgoCDs.ByName["hub"] = branch.ArgoCD{Apps: live, Live: live, Namespace: "argocd"}
	got, err := w.o.Targets.Compare(w.ctx(), w.repo, "shop")
	w.must(err)
	if got.Commit != w.head("main") || got.Equal != 1 || len(got.Missing) != 1 || got.Missing[0].Name != "web-qa" || len(got.Extra) != 1 || got.Extra[0].Name != "web-old" || len(got.Different) > 0 || len(got.Problems) > 0 {
		t.Errorf("compared is %+v", got.Differences)
	}
	live.list = []string{app("web-dev", "apps/web/dev"), app("web-qa", "apps/web/dev")}
	got, err = w.o.Targets.Compare(w.ctx(), w.repo, "shop")
	w.must(err)
	if got.Equal != 1 || len(got.Missing)+len(got.Extra) > 0 || len(got.Different) != 1 || len(got.Different[0].Fields) != 1 || got.Different[0].Name != "web-qa" {
		t.Errorf("compared is %+v", got.Differences)
	}
	live.err = errors.New("the API server is away")
	if _, err := w.o.Targets.Compare(w.ctx(), w.repo, "shop"); !errors.Is(err, live.err) {
		t.Errorf("an API server that is away: %v", err)
	}
	if _, err := w.o.Targets.Compare(w.ctx(), w.repo, "nothing"); !errors.Is(err, branch.ErrNoPipeline) {
		t.Errorf("no such pipeline: %v", err)
	}
	w.o.ArgoCDs.ByName["hub"] = branch.ArgoCD{Apps: live, Namespace: "argocd"}
	if _, err := w.o.Targets.Compare(w.ctx(), w.repo, "shop"); err == nil || cmp.Diff("there is no connection to the Argo CD hub", err.Error()) != "" {
		t.Errorf("no connection: %v", err)
	}
}
