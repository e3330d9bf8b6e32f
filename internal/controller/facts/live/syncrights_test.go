package live

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// knownRights are why Applications can't be synced.
type knownRights struct {
	barred map[string]string
	err    error
	calls  int
}

func (k *knownRights) SyncBarred(_ context.Context, app *verification.App) (string, error) {
	k.calls++
	return k.barred[app.Name], k.err
}

// TestSyncRights asks about the targets that lack a sync, once each, and says of the others nothing.
func TestSyncRights(t *testing.T) {
	away := &knownRights{err: errors.New("it is away")}
	for name, c := range map[string]struct {
		rights branch.Rights
		want   promotion.Known[string]
	}{
		"it may":               {&knownRights{}, promotion.Sure("")},
		"it may not":           {&knownRights{barred: map[string]string{"web": "allow it"}}, promotion.Sure("allow it")},
		"nobody knows":         {away, promotion.Unsure[string]("it is away")},
		"there is nobody else": {nil, promotion.Sure("its Argo CD can't be asked for it")},
	} {
		argo := branch.ArgoCD{Apps: &knownApps{apps: map[string]*verification.App{"argocd/web": {Name: "web"}, "argocd/well": {Name: "well"}}}, Rights: c.rights}
		o := &Gatherer{Argocds: &branch.ArgoCDs{Main: "hub", ByName: map[string]branch.ArgoCD{"hub": argo}}}
		at := &branch.ResolvedEnv{Targets: []appset.Target{{Namespace: "argocd", Name: "web"}, {Namespace: "argocd", Name: "well"}, {Namespace: "argocd", Name: "gone"}}}
		env := &promotion.Env{Targets: []promotion.Target{{Verdict: verification.Verdict{Unsynced: &verification.Unsynced{}}}, {}, {Verdict: verification.Verdict{Unsynced: &verification.Unsynced{}}}}}
		if err := o.AnswerSyncRights(t.Context(), env, at, nil); err != nil {
			t.Fatal(err)
		}
		got := []promotion.Known[string]{env.Targets[0].SyncBarred, env.Targets[1].SyncBarred, env.Targets[2].SyncBarred}
		want := []promotion.Known[string]{c.want, {}, promotion.Sure("its Argo CD can't be asked for it")}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if away.calls != 1 {
		t.Errorf("it was asked %d times", away.calls)
	}
}
