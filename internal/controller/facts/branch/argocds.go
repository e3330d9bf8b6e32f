package branch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	// SyncWindow says whether they let an Application be synced, and when that changes; zero: not
	// within a year. The error says why this can't be told.
	SyncWindow(app *verification.App, at time.Time) (isOpen bool, changes time.Time, err error)
}

// ArgoCD is one Argo CD of the server's file.
type ArgoCD struct {
	Apps      Apps
	Live      Live           // nil: only its Applications are known
	Windows   Windows        // nil: sync windows are not known
	Follower  Follower       // nil: every change of an Application is heard of
	Trees     Trees          // nil: what an Application itself says of its resources is all that is known
	Rights    Rights         // nil: it can only be read
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

// ArgoCDs are all Argo CDs of the server's file.
type ArgoCDs struct {
	ByName map[string]ArgoCD
	Main   string // for targets that name none
}

// FindApp finds a target's Application; err says why its state can't be trusted.
func (a *ArgoCDs) FindApp(t *appset.Target) (*verification.App, error) {
	name := a.ArgoCDOf(t)
	argo, ok := a.ByName[name]
	if !ok {
		return nil, fmt.Errorf("the server's file has no Argo CD named %s, which %s belongs to", name, t.Name)
	}
	if err := argo.Apps.Ready(); err != nil {
		return nil, err
	}
	app, _ := argo.Apps.Get(t.Namespace, t.Name)
	return app, nil
}

// LabelsOf are the labels of a target's Application as it was seen last, also while its Argo CD
// can't be reached. Nothing is judged by them, and people search by the names they know.
func (a *ArgoCDs) LabelsOf(t *appset.Target) map[string]string {
	if argo, ok := a.ByName[a.ArgoCDOf(t)]; ok {
		if app, _ := argo.Apps.Get(t.Namespace, t.Name); app != nil {
			return app.Labels
		}
	}
	return nil
}

// ClosedWindow is the sync window that an Application that is out of sync waits for; nil
// where there is none.
func (a *ArgoCDs) ClosedWindow(t *appset.Target, app *verification.App, now time.Time) *verification.Window {
	argo := a.ByName[a.ArgoCDOf(t)]
	if argo.Windows == nil || app.SyncStatus == "Synced" {
		return nil
	}
	return argo.Windows.ClosedWindow(app, now)
}

// ArgoCDOf is the name of the Argo CD that runs a target.
func (a *ArgoCDs) ArgoCDOf(t *appset.Target) string { return cmp.Or(t.ArgoCD, a.Main) }

// MainArgoCD is the Argo CD of targets that name none.
func (a *ArgoCDs) MainArgoCD() string { return a.Main }

// TargetName is a target's name across Argo CDs.
func (a *ArgoCDs) TargetName(t *appset.Target) string {
	return a.ArgoCDOf(t) + "/" + t.Namespace + "/" + t.Name
}

// NamesOf names the Argo CDs that a pipeline's entries are run by.
func (a *ArgoCDs) NamesOf(p *pipeline.Pipeline) []string {
	names := map[string]bool{}
	for i := range p.Spec.ApplicationSets {
		names[cmp.Or(p.Spec.ApplicationSets[i].ArgoCDName(), a.Main)] = true
	}
	for i := range p.Spec.Applications {
		names[cmp.Or(p.Spec.Applications[i].ArgoCDName(), a.Main)] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// How Argo CD names the cluster that it runs in, in a destination's name or its server.
const (
	InCluster        = "in-cluster"
	inClusterAddress = "https://kubernetes.default.svc"
)

// ClusterOfDestination is a destination's cluster, the same for all that name it alike or that the
// server's file says are one. The one that an Argo CD runs in has two names, and is another
// one for each Argo CD.
func (a *ArgoCDs) ClusterOfDestination(argocd string, d verification.Destination) string {
	server := strings.TrimSuffix(d.Server, "/")
	if server == inClusterAddress {
		server = InCluster
	}
	known := a.ByName[argocd].ClusterAliases
	for _, name := range []string{d.Name, server} {
		if alias, ok := known[name]; ok && name != "" {
			return alias
		}
	}
	name := cmp.Or(d.Name, server)
	if name == InCluster && len(a.ByName) > 1 {
		return argocd + "/" + InCluster
	}
	return name
}

// ClusterOf is the cluster that a target deploys to.
func (a *ArgoCDs) ClusterOf(t *appset.Target) string {
	return a.ClusterOfDestination(a.ArgoCDOf(t), verification.Destination{Name: t.Cluster, Server: t.Server})
}

// TargetLabel is what a target is called among those of its component and environment: its
// name, or, where another one has the same, its name across Argo CDs.
func (a *ArgoCDs) TargetLabel(at *ResolvedEnv, t *appset.Target) string {
	for i := range at.Targets {
		if o := &at.Targets[i]; o.Name == t.Name && a.TargetName(o) != a.TargetName(t) {
			return a.TargetName(t)
		}
	}
	return t.Name
}

// ManifestSource renders Applications as they run. *argocd.Watcher does.
type ManifestSource interface {
	// Manifests gives an object's JSON each, for each set of revisions, one a source; "" is
	// its own. With an error, it gives those of the sets before.
	Manifests(ctx context.Context, app *verification.App, sets ...[]string) ([][]string, error)
}

// Trees says which resources of an Application are unhealthy, also where the Application
// itself doesn't. *argocd.Watcher does.
type Trees interface {
	UnhealthyResources(ctx context.Context, app *verification.App) ([]verification.Resource, error)
	UncheckedResources(ctx context.Context, app *verification.App) (verification.Unchecked, error)
	// RememberedUnchecked is what was read of it last, for people; false: nothing was.
	RememberedUnchecked(app *verification.App) (verification.Unchecked, bool)
	// RunningImages are those of its pods; none where there is no API to ask.
	RunningImages(ctx context.Context, app *verification.App) ([]verification.RunningImage, error)
}

// Rights knows what an Argo CD lets Liftlock do. *argocd.Watcher does.
type Rights interface {
	// SyncBarred says why a sync of an Application can't be asked for, and what to allow;
	// empty: it can. The error says why that isn't known.
	SyncBarred(ctx context.Context, app *verification.App) (string, error)
}
