package argocd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// How Argo CD is asked for a refresh.
const (
	RefreshAnnotation = "annotation"
	RefreshAPI        = "api" // needs Options.API
	RefreshOff        = "off"
)

// firstRetry is the wait after a first failure to reach the API server.
const firstRetry = 300 * time.Millisecond

// Options configure a Watcher.
type Options struct {
	Name string // of this Argo CD in the server's file

	// Where its Applications are: Config or, when nil, what RESTConfig makes of
	// Kubeconfig and Context.
	Config     *rest.Config
	Kubeconfig string
	Context    string
	// Namespaces are those with Applications and ApplicationSets; the first is
	// Argo CD's own, where its projects and cluster Secrets are. None: all, which
	// needs a ClusterRole, and projects and clusters are looked for everywhere.
	Namespaces []string
	Clusters   bool // the cluster Secrets may be listed

	// API reads resource trees and asks for syncs; nil: nobody reads them, and syncs are
	// asked for by a patch. APIAlone has all that is watched above watched by it, and needs
	// no access to Kubernetes; Projects are those whose Applications are, none: all.
	API      *api.Client
	APIAlone bool
	Projects []string
	Caches   *cache.Group // that its caches are shown by; nil: none

	Refresh string // RefreshAnnotation (also when empty), RefreshAPI or RefreshOff
	Log     *zap.Logger

	// OnChange is told each new state of an Application, also the first, and
	// the last one when it was deleted, one at a time and in order. It should
	// only make a note: the watch waits for it. It may call Get and List. nil:
	// nobody is told.
	OnChange func(app verification.App, deleted bool)
	// OnVersionChange is told that Version is another one, under the same rules. nil:
	// nobody is told.
	OnVersionChange func()
	// OnWindowsChange is told that the sync windows of an AppProject are others, with the
	// Applications that are in it, under the same rules. nil: nobody is told.
	OnWindowsChange func(apps []verification.App)
	// OnReady is told that Ready has become nil, also the first time, under the
	// same rules. nil: nobody is told.
	OnReady func()
}

// Watcher knows the Applications of one Argo CD. All its methods but Run may be
// called at any time and concurrently.
type Watcher struct {
	name    string
	host    string
	refresh string
	client  rest.Interface // nil: everything goes by the API
	core    rest.Interface // client for Kubernetes' own kinds
	api     *api.Client    // nil: there is none
	store   *appStore
	log     *zap.Logger

	ownNamespace string // Argo CD's; empty: not known
	appFeeds     []follower
	setFeeds     []follower
	projectFeeds []follower
	projects     *projectSink
	clusters     *clusterCache // nil: the cluster Secrets may not be listed
	trees        *treeReader   // nil: there is no API to read them by
	renderings   *renderingQueue
	refreshes    *refresher // nil: refreshes don't go by the API
}

// New makes a Watcher. It doesn't dial: an Argo CD out of reach is no error but
// what Ready tells.
func New(o Options) (*Watcher, error) {
	switch {
	case !slices.Contains([]string{"", RefreshAnnotation, RefreshAPI, RefreshOff}, o.Refresh):
		return nil, fmt.Errorf("argocd %s: refresh: %q is unknown; use annotation, api or off", o.Name, o.Refresh)
	case o.API == nil && (o.APIAlone || o.Refresh == RefreshAPI):
		return nil, fmt.Errorf("argocd %s: there is no API to go by", o.Name)
	}
	log := o.Log
	if log == nil {
		log = zap.NewNop()
	}
	log = log.With(zap.String("argocd", o.Name))
	for _, f := range []*func(){&o.OnVersionChange, &o.OnReady} {
		if *f == nil {
			*f = func() {}
		}
	}
	n := &versionCounter{onChange: o.OnVersionChange}
	w := &Watcher{name: o.Name, refresh: o.Refresh, api: o.API, store: newAppStore(o.Name, log, o.OnChange, n), log: log}
	w.projects = newProjectSink(w.store)
	if o.OnWindowsChange != nil {
		w.projects.onWindowsChange = o.OnWindowsChange
	}
	if o.API != nil {
		w.trees = newTreeReader(o.API, o.Caches, o.Name)
		w.renderings = newRenderingQueue()
	}
	if o.Refresh == RefreshAPI {
		w.refreshes = newRefresher(o.API, log)
	}
	if o.APIAlone {
		w.watchByAPI(&o)
		return w, nil
	}
	if err := w.watchByKubernetes(&o); err != nil {
		return nil, fmt.Errorf("argocd %s: %w", o.Name, err)
	}
	return w, nil
}

// watchByKubernetes makes the feeds that ask the API server of Argo CD's cluster.
func (w *Watcher) watchByKubernetes(o *Options) error {
	config := o.Config
	if config == nil {
		var err error
		if config, err = RESTConfig(o.Kubeconfig, o.Context); err != nil {
			return err
		}
	}
	var err error
	if w.client, err = newClient(config, "/apis", schema.GroupVersion{Group: "argoproj.io", Version: "v1alpha1"}); err != nil {
		return fmt.Errorf("make a Kubernetes client: %w", err)
	}
	w.host = config.Host
	own := ""
	if len(o.Namespaces) > 0 {
		own = o.Namespaces[0]
	}
	namespaces := slices.Compact(slices.Sorted(slices.Values(o.Namespaces)))
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, ns := range namespaces {
		f := w.newFeed("applications", ns, appSink{w.store})
		f.onReadyChange = w.whenReady(o.OnReady)
		w.appFeeds = append(w.appFeeds, f)
		w.setFeeds = append(w.setFeeds, w.newOptionalFeed("applicationsets", ns, setSink{w.store}, ofSets, missingSets))
	}
	w.projectFeeds = []follower{w.newOptionalFeed("appprojects", own, w.projects, ofProjects, missingProjects)}
	if w.core, err = newClient(config, "/api", schema.GroupVersion{Version: "v1"}); err != nil {
		return fmt.Errorf("make a Kubernetes client: %w", err)
	}
	w.ownNamespace = own
	if o.Clusters {
		w.clusters = w.newClusterCache()
		w.clusters.client, w.clusters.namespace = w.core, own
	}
	return nil
}

// These say what stays unknown without a right.
const (
	missingSets = "live ApplicationSets and the turns of their RollingSync steps stay unknown: targets may be reported as not synced " +
		"while they wait"
	missingProjects = "AppProjects stay unknown: whether a target's project exists is not checked"
)

// whenReady passes it on when a feed of Applications is well again and with it all of them.
func (w *Watcher) whenReady(onReady func()) func(well bool) {
	return func(well bool) {
		if well && w.Ready() == nil {
			onReady()
		}
	}
}

func (w *Watcher) newClusterCache() *clusterCache {
	return &clusterCache{log: w.log, now: time.Now, versions: w.store.versions, requested: make(chan struct{})}
}

// watchByAPI makes the feeds that ask Argo CD's own API.
func (w *Watcher) watchByAPI(o *Options) {
	w.host = o.API.Host()
	state := func(title string, optional bool, missed string, onReadyChange func(bool)) feedState {
		return feedState{title: title, optional: optional, missingHint: missed, log: w.log, now: time.Now, downSince: time.Now(),
			onReadyChange: onReadyChange}
	}
	counts := func(k changeKind) func(bool) { return func(bool) { w.store.versions.countChange(k) } }
	apps := &apiStream{feedState: state("Applications by the API", false, "", w.whenReady(o.OnReady)), client: o.API,
		filter: api.ApplicationFilter{Projects: o.Projects}, sink: appSink{w.store}, apps: w.store, pace: defaultPace,
		versions: map[string]seenVersion{}}
	w.appFeeds = []follower{apps}
	w.setFeeds = []follower{&apiList{feedState: state("ApplicationSets by the API", true, missingSets, counts(ofSets)), client: o.API,
		which: api.ApplicationSets, sink: setSink{w.store}, interval: defaultPace.sets}}
	w.projectFeeds = []follower{&apiList{feedState: state("projects by the API", true, missingProjects, counts(ofProjects)), client: o.API,
		which: api.Projects, sink: w.projects, interval: defaultPace.rest, onListed: w.noteHiddenProjects}}
	if w.refreshes != nil {
		w.refreshes.take = func(raw json.RawMessage) { w.takeRefreshed(apps, raw) }
	}
	if o.Clusters {
		w.clusters = w.newClusterCache()
		w.clusters.byAPI = func(ctx context.Context) ([]Cluster, error) { return listClustersByAPI(ctx, o.API) }
	}
}

func (w *Watcher) newFeed(resource, namespace string, s sink) *feed {
	f := &feed{client: w.client, resource: resource, namespace: namespace, sink: s, retry: firstRetry}
	f.title, f.log, f.now, f.downSince, f.onReadyChange = f.displayName(), w.log, time.Now, time.Now(), func(bool) {}
	return f
}

// newOptionalFeed makes a feed that may be forbidden; missingHint says what is unknown then.
func (w *Watcher) newOptionalFeed(resource, namespace string, s sink, k changeKind, missed string) *feed {
	f := w.newFeed(resource, namespace, s)
	f.optional, f.missingHint = true, missed
	f.onReadyChange = func(bool) { w.store.versions.countChange(k) }
	return f
}

// Run watches until ctx ends, then returns nil. It survives whatever the API
// server does; Ready tells how it is. It can be called once.
func (w *Watcher) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, f := range slices.Concat(w.appFeeds, w.setFeeds, w.projectFeeds) {
		wg.Go(func() { f.run(ctx) })
	}
	if w.clusters != nil {
		wg.Go(func() { w.clusters.run(ctx) })
	}
	if w.refreshes != nil {
		wg.Go(func() { w.refreshes.run(ctx) })
	}
	for _, f := range w.appFeeds {
		if apps, ok := f.(*apiStream); ok {
			wg.Go(func() { apps.followBusy(ctx) })
		}
	}
	wg.Go(func() { w.followLine(ctx) })
	wg.Go(func() { w.followSetPolicy(ctx) })
	wg.Go(func() { w.followIgnored(ctx) })
	wg.Wait()
	return nil
}

// Get returns the last state of an Application, and false when there is none.
// Whether that is still so, Ready tells. The caller may keep the App but must
// not change what its slices and pointers lead to.
func (w *Watcher) Get(namespace, name string) (*verification.App, bool) {
	return w.store.getApplication(namespace, name)
}

// Follow says that a caller relies on an Application's state until then. Where changes come only by
// Argo CD's own API, which loses some, the Application is asked for by itself. By Kubernetes
// nothing is lost, so Follow does nothing.
func (w *Watcher) Follow(namespace, name string, until time.Time) {
	for _, f := range w.appFeeds {
		if apps, ok := f.(*apiStream); ok {
			apps.followUntil(namespace, name, until)
		}
	}
}

// List returns the last state of every Application, by namespace and name, under
// the same conditions as Get.
func (w *Watcher) List() []verification.App { return w.store.listApplications() }

// Ready is nil when every Application has been listed and the watches are alive.
// Otherwise it says why not and since when; what Get returns may be missing or
// old then, and no verdict may be built on it. A watch that has been broken for
// some seconds only counts as alive.
func (w *Watcher) Ready() error {
	return w.readyOf(w.appFeeds)
}

func (w *Watcher) readyOf(feeds []follower) error {
	var errs []error
	for _, f := range feeds {
		if err := f.checkReady(); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("argocd %s (%s): %w", w.name, w.host, errors.Join(errs...))
}

// Sets lists the ApplicationSets as last seen, by namespace and name. The error
// says why they may be missing or out of date; what was seen before is there all
// the same.
func (w *Watcher) Sets() ([]ApplicationSet, error) {
	sets, err := w.store.liveSets()
	if err != nil {
		return nil, fmt.Errorf("argocd %s: %w", w.name, err)
	}
	return sets, w.readyOf(w.setFeeds)
}

// Projects lists the names of the AppProjects as last seen, sorted, under the same conditions as
// Sets. It is nil while they were never listed, and where not all of them may be seen. Then nothing
// is known, which is different from having none.
func (w *Watcher) Projects() ([]string, error) {
	for _, f := range w.projectFeeds {
		if !f.isListed() {
			return nil, w.readyOf(w.projectFeeds)
		}
	}
	if err := w.projects.whyPartial(); err != nil {
		return nil, fmt.Errorf("argocd %s (%s): %w", w.name, w.host, err)
	}
	return w.projects.listNames(), w.readyOf(w.projectFeeds)
}

// ErrClustersOff is returned by Clusters when the server's file doesn't allow it.
var ErrClustersOff = errors.New("reading the cluster Secrets is switched off")

// Clusters lists the clusters that Argo CD knows, without their credentials. The
// first call reads them, for up to some seconds; later ones are answered from
// memory, which is brought up to date every minute. With an error the clusters
// are those of before, nil where there were none: ErrClustersOff, or why they
// can't be read. The result is shared: read it, don't change it.
func (w *Watcher) Clusters(ctx context.Context) ([]Cluster, error) {
	if w.clusters == nil {
		return nil, ErrClustersOff
	}
	clusters, err := w.clusters.getClusters(ctx)
	if err != nil {
		err = fmt.Errorf("argocd %s (%s): %w", w.name, w.host, err)
	}
	return clusters, err
}

// ClustersTrouble says why the cluster Secrets could not be listed last time; nil
// when they could, when nobody has asked for them, and when that isn't allowed.
func (w *Watcher) ClustersTrouble() error {
	if w.clusters == nil {
		return nil
	}
	return w.clusters.lastError()
}

// Version says which state of everything but the Applications' health is known now.
func (w *Watcher) Version() Version { return w.store.versions.currentVersion() }
