package argocd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/liftlock/liftlock/internal/verification"
)

// How Argo CD is asked for a refresh.
const (
	RefreshAnnotation = "annotation"
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
	Namespaces []string // none: all, which needs a ClusterRole

	Refresh string // RefreshAnnotation (also when empty) or RefreshOff
	Log     *zap.Logger

	// OnChange is told each new state of an Application, also the first, and
	// the last one when it was deleted, one at a time and in order. It should
	// only make a note: the watch waits for it. It may call Get and List. nil:
	// nobody is told.
	OnChange func(app verification.App, deleted bool)
}

// Watcher knows the Applications of one Argo CD. All its methods but Run may be
// called at any time and concurrently.
type Watcher struct {
	name   string
	host   string
	off    bool // refresh: off
	client rest.Interface
	store  *store
	log    *zap.Logger
	apps   []*feed
	sets   []*feed // started when an ApplicationSet turns out to own an Application
}

// New makes a Watcher. It doesn't dial: an Argo CD out of reach is no error but
// what Ready tells.
func New(o Options) (*Watcher, error) {
	switch o.Refresh {
	case "", RefreshAnnotation, RefreshOff:
	case "api":
		return nil, fmt.Errorf("argocd %s: refresh: api is not supported yet; use annotation or off", o.Name)
	default:
		return nil, fmt.Errorf("argocd %s: refresh: %q is unknown; use annotation or off", o.Name, o.Refresh)
	}
	config := o.Config
	if config == nil {
		var err error
		if config, err = RESTConfig(o.Kubeconfig, o.Context); err != nil {
			return nil, fmt.Errorf("argocd %s: %w", o.Name, err)
		}
	}
	client, err := newClient(config)
	if err != nil {
		return nil, fmt.Errorf("argocd %s: make a Kubernetes client: %w", o.Name, err)
	}
	log := o.Log
	if log == nil {
		log = zap.NewNop()
	}
	log = log.With(zap.String("argocd", o.Name))
	w := &Watcher{name: o.Name, host: config.Host, off: o.Refresh == RefreshOff, client: client, store: newStore(o.Name, log, o.OnChange), log: log}
	namespaces := slices.Compact(slices.Sorted(slices.Values(o.Namespaces)))
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, ns := range namespaces {
		w.apps = append(w.apps, w.feed("applications", ns, appSink{w.store}))
		set := w.feed("applicationsets", ns, setSink{w.store})
		set.optional = true
		w.sets = append(w.sets, set)
	}
	return w, nil
}

func (w *Watcher) feed(resource, namespace string, s sink) *feed {
	return &feed{
		client: w.client, resource: resource, namespace: namespace, sink: s,
		log: w.log, now: time.Now, retry: firstRetry, down: time.Now(),
	}
}

// Run watches until ctx ends, then returns nil. It survives whatever the API
// server does; Ready tells how it is. It can be called once.
func (w *Watcher) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	var once sync.Once
	w.store.onOwned = func() {
		once.Do(func() {
			for _, f := range w.sets {
				wg.Add(1)
				go func() { defer wg.Done(); f.run(ctx) }()
			}
		})
	}
	for _, f := range w.apps {
		wg.Add(1)
		go func() { defer wg.Done(); f.run(ctx) }()
	}
	<-ctx.Done()
	return nil
}

// Get returns the last state of an Application, and false when there is none.
// Whether that is still so, Ready tells. The caller may keep the App but must
// not change what its slices and pointers lead to.
func (w *Watcher) Get(namespace, name string) (*verification.App, bool) {
	return w.store.get(namespace, name)
}

// List returns the last state of every Application, by namespace and name, under
// the same conditions as Get.
func (w *Watcher) List() []verification.App { return w.store.list() }

// Ready is nil when every Application has been listed and the watches are alive.
// Otherwise it says why not and since when; what Get returns may be missing or
// old then, and no verdict may be built on it. A watch that has been broken for
// some seconds only counts as alive.
func (w *Watcher) Ready() error {
	var errs []error
	for _, f := range w.apps {
		if err := f.ready(); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("argocd %s (%s): %w", w.name, w.host, errors.Join(errs...))
}
