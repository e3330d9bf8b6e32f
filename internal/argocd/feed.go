package argocd

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	// pageSize bounds what the server puts together at once.
	pageSize = 250
	// pageTimeout is how long one page may take.
	pageTimeout = 2 * time.Minute
	// watchGrace is how much later than the server the client gives up a watch, which the server is
	// asked to end after some minutes. A connection that died unnoticed is found then at the
	// latest.
	watchGrace = 30 * time.Second
	// minGoodRun is how long listing and watching goes well at least that counts as
	// having worked.
	minGoodRun = 10 * time.Second
	// brokenGrace is how long a watch may be broken before Ready says so: an API
	// server that restarts must not put every verdict in doubt.
	brokenGrace = 20 * time.Second
	// optionalRetry is how often a feed that may be missing is tried again.
	optionalRetry = 10 * time.Minute
)

// feed keeps a sink up to date with the objects of one resource in one namespace (all when empty).
// client-go's Reflector lists and watches, again after errors, with a new list when the server no
// longer knows the place. The feed keeps what it decodes, in pieces of one object, and the watch's
// state.
type feed struct {
	feedState
	client    rest.Interface
	resource  string
	namespace string
	sink      sink
	retry     time.Duration // the first wait after an error; it doubles up to 100 times that
}

// sink takes what a feed sees.
type sink interface {
	// decodeObject reduces an object to what is kept of it, which holds no part of
	// raw. The key is namespace/name, empty where they can't be read; put stores it.
	decodeObject(raw []byte) (key string, put func())
	dropObject(key string)
	listKeys(namespace string) []string // what was put and not dropped, in one namespace or, if empty, all
}

// run follows until ctx ends, pausing longer and longer while nothing works.
func (f *feed) run(ctx context.Context) {
	reflector := cache.NewReflectorWithOptions(f.newListerWatcher(ctx), &slimObject{}, reflectedStore{feed: f},
		cache.ReflectorOptions{Name: f.displayName()})
	reflector.WatchListPageSize, reflector.UseWatchList = pageSize, new(bool)
	wait := f.retry
	for {
		begun := f.now()
		err := reflector.ListAndWatch(ctx.Done())
		if ctx.Err() != nil {
			return
		}
		if f.now().Sub(begun) >= minGoodRun {
			wait = f.retry
		}
		pause := wait/2 + rand.N(wait/2+1)
		if f.optional && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
			pause = optionalRetry
		}
		wait = min(2*wait, 100*f.retry)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// newListerWatcher makes the requests of the Reflector. Lists ask for the newest state
// whatever the Reflector would: at resourceVersion 0 the server ignores the limit
// and sends everything at once.
func (f *feed) newListerWatcher(ctx context.Context) *cache.ListWatch {
	return &cache.ListWatch{
		ListFunc: func(o metav1.ListOptions) (runtime.Object, error) {
			list := &internalversion.List{}
			meta, err := f.listPage(ctx, o, func(raw []byte) { list.Items = append(list.Items, f.decodeSlim(raw)) })
			if err != nil {
				f.recordFailure(err)
				return nil, err
			}
			list.ResourceVersion, list.Continue = meta.ResourceVersion, meta.Continue
			return list, nil
		},
		WatchFunc: func(o metav1.ListOptions) (watch.Interface, error) {
			w, err := f.openWatch(ctx, o)
			if err != nil {
				err = fmt.Errorf("watch %s: %w", f.displayName(), err)
				f.recordFailure(err)
			}
			return w, err
		},
	}
}

// listPage reads one page of a list and hands each object to item.
func (f *feed) listPage(ctx context.Context, o metav1.ListOptions, item func(raw []byte)) (listMeta, error) {
	meta, err := readListPage(ctx, f.newRequest(), o, pageTimeout, item)
	if err != nil {
		err = fmt.Errorf("list %s: %w", f.displayName(), explainError(err, "get, list, watch", "argoproj.io", f.resource))
	}
	return meta, err
}

func (f *feed) openWatch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	limit := time.Duration(*o.TimeoutSeconds) * time.Second
	ctx, cancel := context.WithTimeout(ctx, limit+watchGrace)
	body, err := f.newRequest().Param("watch", "true").Param("allowWatchBookmarks", "true").
		Param("resourceVersion", o.ResourceVersion).Param("timeoutSeconds", strconv.FormatInt(*o.TimeoutSeconds, 10)).Stream(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	f.markAlive()
	return watch.NewStreamWatcher(newEventDecoder(f, o.ResourceVersion, body, cancel),
		apierrors.NewClientErrorReporter(http.StatusInternalServerError, "watch", "Undecodable")), nil
}

// slimObject is what the Reflector holds of an object between decoding and storing it.
type slimObject struct {
	metav1.TypeMeta
	metav1.ObjectMeta // its resourceVersion only

	key string // namespace/name; empty where they can't be read
	put func()
}

// DeepCopyObject is asked for by runtime.Object; nothing changes a slimObject.
func (s *slimObject) DeepCopyObject() runtime.Object { return s }

func (f *feed) decodeSlim(raw []byte) *slimObject {
	o := &slimObject{}
	o.ResourceVersion = readIdentity(raw).ResourceVersion // of an event without one see eventDecoder
	o.key, o.put = f.sink.decodeObject(raw)
	return o
}

// reflectedStore is what the Reflector writes to. It calls only the methods of the Store that are
// here.
type reflectedStore struct {
	cache.Store
	feed *feed
}

// Add stores an object that is new or has changed.
func (r reflectedStore) Add(x any) error {
	if o := x.(*slimObject); o.key != "" {
		o.put()
	}
	return nil
}

// Update is Add.
func (r reflectedStore) Update(x any) error { return r.Add(x) }

// Delete drops an object.
func (r reflectedStore) Delete(x any) error {
	if o := x.(*slimObject); o.key != "" {
		r.feed.sink.dropObject(o.key)
	}
	return nil
}

// Replace stores a whole list and drops what isn't in it.
func (r reflectedStore) Replace(list []any, _ string) error {
	seen := map[string]bool{}
	for _, x := range list {
		seen[x.(*slimObject).key] = true
		_ = r.Add(x) // never fails
	}
	for _, key := range r.feed.sink.listKeys(r.feed.namespace) {
		if !seen[key] {
			r.feed.sink.dropObject(key)
		}
	}
	r.feed.changeState(func(f *feedState) { f.listed, f.lastErr = true, nil })
	return nil
}

// Resync has nothing to do: the Reflector is made without a period for it.
func (r reflectedStore) Resync() error { return nil }

func (f *feed) newRequest() *rest.Request {
	return f.client.Get().NamespaceIfScoped(f.namespace, f.namespace != "").Resource(f.resource)
}

// displayName names the feed for people.
func (f *feed) displayName() string {
	if f.namespace == "" {
		return f.resource + " in all namespaces"
	}
	return f.resource + " in namespace " + f.namespace
}

// recordFailure notes why there is no watch; a watch whose place is too old is no failure.
func (f *feed) recordFailure(err error) {
	if apierrors.IsGone(err) || apierrors.IsResourceExpired(err) {
		return
	}
	f.recordTrouble(explainError(err, "get, list, watch", "argoproj.io", f.resource),
		apierrors.IsForbidden(err) || apierrors.IsNotFound(err))
}

// covers says that a namespace's objects are among the feed's.
func (f *feed) covers(namespace string) bool { return f.namespace == "" || f.namespace == namespace }

// explainError adds to an error what a person can do about it.
func explainError(err error, verbs, group, resource string) error {
	switch {
	case apierrors.IsForbidden(err):
		if group == "" {
			group = `""` // the core group, as a Role has it
		}
		return fmt.Errorf("%w; allow Liftlock's account in a Role: apiGroups [%s], resources [%s], verbs [%s]", err, group, resource, verbs)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w; the credentials of argocd[].kubernetes in the server's file are not accepted", err)
	}
	return err
}

// keyOf is namespace/name of an object, empty when it can't be read.
func keyOf(raw []byte) string {
	var o struct {
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if json.Unmarshal(raw, &o) != nil || o.Metadata.Name == "" {
		return ""
	}
	return o.Metadata.Namespace + "/" + o.Metadata.Name
}
