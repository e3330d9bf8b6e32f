package branch

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// TestLabelsOutliveTheConnection holds that the labels that people search by stay known while their
// Argo CD is away.
func TestLabelsOutliveTheConnection(t *testing.T) {
	web := &verification.App{Name: "web", Labels: map[string]string{"team": "shop"}}
	a := &ArgoCDs{Main: "hub", ByName: map[string]ArgoCD{"hub": {Apps: &knownApps{apps: map[string]*verification.App{"argocd/web": web}, ready: errors.New("away")}}}}
	if got := a.LabelsOf(&appset.Target{Namespace: "argocd", Name: "web"}); got["team"] != "shop" {
		t.Errorf("the labels are %v", got)
	}
	for _, none := range []appset.Target{{Namespace: "argocd", Name: "other"}, {Namespace: "argocd", Name: "web", ArgoCD: "none"}} {
		if got := a.LabelsOf(&none); got != nil {
			t.Errorf("%+v has the labels %v", none, got)
		}
	}
}

// knownApps are Applications by namespace and name.
type knownApps struct {
	apps  map[string]*verification.App
	ready error
}

func (k *knownApps) Get(namespace, name string) (*verification.App, bool) {
	a, ok := k.apps[namespace+"/"+name]
	return a, ok
}

func (k *knownApps) Ready() error { return k.ready }

// TestFindApp says why a target's state can't be trusted, and takes the main Argo CD
// for targets that name none.
func TestFindApp(t *testing.T) {
	web := &verification.App{Name: "web"}
	argocds := &ArgoCDs{Main: "hub", ByName: map[string]ArgoCD{
		"hub":  {Apps: &knownApps{apps: map[string]*verification.App{"argocd/web": web}}},
		"away": {Apps: &knownApps{ready: errors.New("away is not connected")}}}}
	for name, c := range map[string]struct {
		target appset.Target
		want   *verification.App
		wrong  string
	}{
		"of the main one": {appset.Target{Namespace: "argocd", Name: "web"}, web, ""},
		"by name":         {appset.Target{Namespace: "argocd", Name: "web", ArgoCD: "hub"}, web, ""},
		"not there":       {appset.Target{Namespace: "other", Name: "web"}, nil, ""},
		"out of date":     {appset.Target{Namespace: "argocd", Name: "web", ArgoCD: "away"}, nil, "away is not connected"},
		"no such Argo CD": {appset.Target{Namespace: "argocd", Name: "web", ArgoCD: "none"}, nil, "no Argo CD named none, which web belongs to"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := argocds.FindApp(&c.target)
			if got != c.want || (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	if got := argocds.TargetName(&appset.Target{Namespace: "argocd", Name: "web"}); got != "hub/argocd/web" {
		t.Errorf("a target is called %s", got)
	}
}

func TestNamesOfArgoCDs(t *testing.T) {
	a := &ArgoCDs{Main: "hub"}
	var p pipeline.Pipeline
	p.Spec.Applications = []pipeline.ApplicationSource{{Live: &pipeline.LiveApplications{ArgoCD: "spoke"}}, {Live: &pipeline.LiveApplications{}}, {}}
	if got := a.NamesOf(&p); !slices.Equal(got, []string{"hub", "spoke"}) {
		t.Errorf("the pipeline's Argo CDs are %v", got)
	}
}

// TestApplicationsAreListedOnce asks again when the Argo CD's Applications have another
// version, remembers no failure, and keeps no status.
func TestApplicationsAreListedOnce(t *testing.T) {
	c := newApplicationCache(nil)
	calls := 0
	away := errors.New("away")
	listed := `[{"metadata":{"name":"web"}},[]]`
	for i, step := range []struct {
		version uint64
		err     error // of the Argo CD
		want    string
		calls   int
	}{
		{1, away, "null", 1},
		{1, nil, listed, 2},
		{1, away, listed, 2}, // it isn't asked
		{2, nil, listed, 3},
		{3, away, "null", 4},
		{2, away, listed, 4},
	} {
		objects, err := c.listOnce("owned argocd set", step.version, func() ([]json.RawMessage, error) {
			calls++
			return []json.RawMessage{json.RawMessage(`{"metadata":{"name":"web"},"status":{"sync":{}}}`), json.RawMessage(`[]`)}, step.err
		})
		text, _ := json.Marshal(objects)
		if string(text) != step.want || (err != nil) != (step.want == "null") || calls != step.calls {
			t.Errorf("step %d: %s, %v after %d calls", i, text, err, calls)
		}
	}
	if s := c.lists.Stats(); s.Bytes == 0 || s.Entries != 1 {
		t.Errorf("it holds %d bytes in %d entries", s.Bytes, s.Entries)
	}
}
