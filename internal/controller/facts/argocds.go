package facts

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// Apps is what is needed of a watched Argo CD.
type Apps interface {
	// Get finds an Application; an empty namespace means any watched one.
	Get(namespace, name string) (*verification.App, bool)
	// Ready says why the states may be out of date; nil when they aren't.
	Ready() error
}

// Follower looks by itself after Applications that somebody relies on. *argocd.Watcher is
// one.
type Follower interface {
	Follow(namespace, name string, until time.Time)
}

// Live is what a resolver and a comparison need of a running Argo CD.
// *argocd.Watcher is one.
type Live interface {
	// Sets, Projects and Clusters give what was seen last; an error says why it
	// may be missing or out of date. Projects and Clusters are nil while unknown.
	Sets() ([]argocd.ApplicationSet, error)
	Projects() ([]string, error)
	Clusters(ctx context.Context) ([]argocd.Cluster, error)
	// Owned, Selected, Each and Whole read the API server anew.
	Owned(ctx context.Context, namespace, set string) ([]json.RawMessage, error)
	Selected(ctx context.Context, namespace, selector string) ([]json.RawMessage, error)
	Each(ctx context.Context, visit func(raw json.RawMessage) error) error
	// Whole reads one live Application anew.
	Whole(ctx context.Context, app *verification.App) (json.RawMessage, error)
	// Version changes when any of it does.
	Version() argocd.Version
}

// Windows knows the sync windows. *argocd.Watcher does.
type Windows interface {
	// ClosedWindow is the one that keeps an Application from being synced; nil where there
	// is none, or that isn't known.
	ClosedWindow(app *verification.App, at time.Time) *verification.Window
	// SyncWindow says whether they let an Application be synced, and when that changes; zero:
	// not within a year. The error says why nobody can tell.
	SyncWindow(app *verification.App, at time.Time) (isOpen bool, changes time.Time, err error)
}

// ArgoCD is one Argo CD of the server's file.
type ArgoCD struct {
	Apps      Apps
	Live      Live           // nil: only its Applications are known
	Windows   Windows        // nil: sync windows are not known
	Follower  Follower       // nil: every change of an Application is heard of
	Trees     Trees          // nil: what an Application itself says of its resources is all that is known
	Rights    Rights         // nil: it can only be looked at
	Manifests ManifestSource // renders what our pull requests show; nil: that is rendered here
	MayRender bool           // it isn't asked to render, but has an API by which it could be
	Namespace string         // its own, where its projects and clusters are
	Globbing  string
	Version   appset.Version // as the server's file says; else what Live finds
	Policy    appset.ControllerPolicy
	NoRefresh bool // refresh: off
	// ClustersFile holds cluster Secrets; with those of Live, where both are
	// given, they are all that there are. Empty: none.
	ClustersFile string
	Kube         *appset.Kube // for generators that ask the cluster; nil: none may
	// ClusterAliases is what clusters are called among all Argo CDs, by the names and
	// addresses that this one has for them: in-cluster, and addresses without a slash at the end.
	ClusterAliases map[string]string
}

// argoCDs are all Argo CDs of the server's file.
type argoCDs struct {
	byName map[string]ArgoCD
	main   string // for targets that name none
}

// findApp finds a target's Application; err says why its state can't be trusted.
func (a *argoCDs) findApp(t *appset.Target) (*verification.App, error) {
	name := a.ArgoCDOf(t)
	argo, ok := a.byName[name]
	if !ok {
		return nil, fmt.Errorf("the server's file has no Argo CD named %s, which %s belongs to", name, t.Name)
	}
	if err := argo.Apps.Ready(); err != nil {
		return nil, err
	}
	app, _ := argo.Apps.Get(t.Namespace, t.Name)
	return app, nil
}

// labelsOf are the labels of a target's Application as it was seen last, also while its Argo CD
// can't be reached: nothing is judged by them, and people look for what they know.
func (a *argoCDs) labelsOf(t *appset.Target) map[string]string {
	if argo, ok := a.byName[a.ArgoCDOf(t)]; ok {
		if app, _ := argo.Apps.Get(t.Namespace, t.Name); app != nil {
			return app.Labels
		}
	}
	return nil
}

// closedWindow is the sync window that an Application that is out of sync waits for; nil
// where there is none.
func (a *argoCDs) closedWindow(t *appset.Target, app *verification.App, now time.Time) *verification.Window {
	argo := a.byName[a.ArgoCDOf(t)]
	if argo.Windows == nil || app.SyncStatus == "Synced" {
		return nil
	}
	return argo.Windows.ClosedWindow(app, now)
}

// ArgoCDOf is the name of the Argo CD that runs a target.
func (a *argoCDs) ArgoCDOf(t *appset.Target) string { return cmp.Or(t.ArgoCD, a.main) }

// MainArgoCD is the Argo CD of targets that name none.
func (a *argoCDs) MainArgoCD() string { return a.main }

// TargetName is a target's name across Argo CDs.
func (a *argoCDs) TargetName(t *appset.Target) string {
	return a.ArgoCDOf(t) + "/" + t.Namespace + "/" + t.Name
}

// NamesOf names the Argo CDs that a pipeline's entries are run by.
func (a *argoCDs) NamesOf(p *pipeline.Pipeline) []string {
	names := map[string]bool{}
	for i := range p.Spec.ApplicationSets {
		names[cmp.Or(p.Spec.ApplicationSets[i].ArgoCDName(), a.main)] = true
	}
	for i := range p.Spec.Applications {
		names[cmp.Or(p.Spec.Applications[i].ArgoCDName(), a.main)] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// How Argo CD names the cluster that it runs in, in a destination's name or its server.
const (
	inCluster        = "in-cluster"
	inClusterAddress = "https://kubernetes.default.svc"
)

// clusterOf is a destination's cluster, the same for all that name it alike or that the
// server's file says are one. The one that an Argo CD runs in has two names, and is another
// one for each Argo CD.
func (a *argoCDs) clusterOf(argocd string, d verification.Destination) string {
	server := strings.TrimSuffix(d.Server, "/")
	if server == inClusterAddress {
		server = inCluster
	}
	known := a.byName[argocd].ClusterAliases
	for _, name := range []string{d.Name, server} {
		if alias, ok := known[name]; ok && name != "" {
			return alias
		}
	}
	name := cmp.Or(d.Name, server)
	if name == inCluster && len(a.byName) > 1 {
		return argocd + "/" + inCluster
	}
	return name
}

// ClusterOf is the cluster that a target deploys to.
func (a *argoCDs) ClusterOf(t *appset.Target) string {
	return a.clusterOf(a.ArgoCDOf(t), verification.Destination{Name: t.Cluster, Server: t.Server})
}

// TargetLabel is what a target is called among those of its component and environment: its
// name, or, where another one has the same, its name across Argo CDs.
func (a *argoCDs) TargetLabel(at *ResolvedEnv, t *appset.Target) string {
	for i := range at.Targets {
		if o := &at.Targets[i]; o.Name == t.Name && a.TargetName(o) != a.TargetName(t) {
			return a.TargetName(t)
		}
	}
	return t.Name
}

// appKey names an Application among all Argo CDs.
type appKey struct{ argocd, namespace, name string }

// recoveredFor is how long it is remembered that an Application was unhealthy: longer
// than anybody asks.
const recoveredFor = 30 * time.Minute

// unhealthySpan is since when an Application is, or was, unhealthy, by our clock.
type unhealthySpan struct {
	since, until time.Time // until is zero while it is
	// unsettled says that it was never worse than Progressing or Unknown, by itself.
	unsettled bool
}

// healthClock remembers since when Applications are unhealthy, by our clock, and for a
// while that they were. It is no cache: a limit on reverts rests on it, so nothing of it
// may be dropped. It holds no more than there are Applications, and a watch that starts
// reports all of them again.
type healthClock struct {
	now func() time.Time

	mu    sync.Mutex
	spans map[appKey]unhealthySpan
	well  map[appKey]time.Time // when they were last seen well
}

func newHealthClock(now func() time.Time) *healthClock {
	return &healthClock{now: now, spans: map[appKey]unhealthySpan{}, well: map[appKey]time.Time{}}
}

// unhealthy are the Applications that are, or were a while ago, unhealthy.
func (h *healthClock) unhealthy() map[appKey]unhealthySpan {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	maps.DeleteFunc(h.spans, func(_ appKey, s unhealthySpan) bool {
		return !s.until.IsZero() && now.Sub(s.until) > recoveredFor
	})
	return maps.Clone(h.spans)
}

// RecordApp remembers since when an Application is unhealthy, by our clock: Degraded or
// Missing, or Progressing or Unknown without having changed itself. It is called with every change that the watch reports.
func (h *healthClock) RecordApp(a verification.App, deleted bool) {
	key := appKey{a.ArgoCD, a.Namespace, a.Name}
	unsettled := !deleted && a.TurnedByItself()
	bad := unsettled || !deleted && a.HasBadHealth()
	h.mu.Lock()
	defer h.mu.Unlock()
	span, known := h.spans[key]
	switch {
	case deleted:
		delete(h.spans, key)
		delete(h.well, key)
		return
	case !bad && known && span.until.IsZero():
		span.until = h.now()
		h.spans[key] = span
	case bad && (!known || !span.until.IsZero()):
		// HealthSince is by its Argo CD's clock, which may be any.
		since := h.now()
		if !a.HealthSince.IsZero() && a.HealthSince.Before(since) {
			since = a.HealthSince
			if well := h.well[key]; well.After(since) {
				since = well
			}
		}
		h.spans[key] = unhealthySpan{since: since, unsettled: unsettled}
	case bad && !unsettled:
		span.unsettled = false
		h.spans[key] = span
	}
	if !bad {
		h.well[key] = h.now()
	}
}
