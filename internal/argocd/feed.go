package argocd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	// pageSize bounds what the server puts together at once.
	pageSize = 250
	// pageTimeout is how long one page may take.
	pageTimeout = 2 * time.Minute
	// watchTimeout is after how long the server is asked to end a watch, up to
	// twice that, so that watches don't end all at once. A connection that died
	// unnoticed is found then at the latest.
	watchTimeout = 4 * time.Minute
	// watchGrace is how much later the client gives up.
	watchGrace = 30 * time.Second
	// minWatchTime is how long a watch lasts at least that counts as having worked.
	minWatchTime = time.Second
	// brokenGrace is how long a watch may be broken before Ready says so: an API
	// server that restarts must not put every verdict in doubt.
	brokenGrace = 20 * time.Second
	// optionalRetry is how often a feed that may be missing is tried again.
	optionalRetry = 10 * time.Minute
)

var errWatchExpired = errors.New("the watch is too old, listing again")

// feed keeps a sink up to date with the objects of one resource in one namespace
// (all when empty): a paged list, then watches from where it ended, again after
// errors, with a new list when the server no longer knows the place.
type feed struct {
	client        rest.Interface
	resource      string
	namespace     string
	optional      bool   // may be forbidden or absent: said once, then tried rarely
	missingHint   string // what stays unknown where an optional feed can't be had
	sink          sink
	log           *zap.Logger
	now           func() time.Time
	retry         time.Duration   // the first wait after an error; it doubles up to 100 times that
	onReadyChange func(well bool) // called when checkReady turns nil (true), and the first time that it fails (false)

	watchFrom string // resourceVersion to watch from; empty: list first. Only run uses it.

	mu        sync.Mutex
	listed    bool
	downSince time.Time // since when there is no watch; zero: there is one
	lastErr   error     // why, when known
	logged    bool      // err is in the log
}

// sink takes what a feed sees, from one goroutine.
type sink interface {
	putObject(raw []byte) (key string, ok bool) // ok: key names the object, whether or not it could be read
	dropObject(key string)
	listKeys(namespace string) []string // what putObject has named and dropObject hasn't, in one namespace or, if empty, all
}

// run follows until ctx ends, pausing longer and longer while nothing works.
func (f *feed) run(ctx context.Context) {
	wait := f.retry
	for {
		worked, err := f.listAndWatch(ctx)
		if ctx.Err() != nil {
			return
		}
		if worked {
			wait = f.retry
		}
		pause := wait/2 + rand.N(wait/2+1)
		if f.recordFailure(err) {
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

// listAndWatch lists, unless the place of an earlier list or watch is known, and then
// watches until something goes wrong. worked tells whether a watch lasted.
func (f *feed) listAndWatch(ctx context.Context) (worked bool, err error) {
	if f.watchFrom == "" {
		if f.watchFrom, err = f.listAll(ctx); err != nil {
			return false, err
		}
	}
	for {
		begun := f.now()
		err = f.watchEvents(ctx)
		lasted := f.now().Sub(begun) >= minWatchTime
		worked = worked || lasted
		if errors.Is(err, errWatchExpired) {
			f.watchFrom = ""
		}
		if err != nil || !lasted {
			return worked, err
		}
	}
}

// listAll reads every page and then drops what wasn't in any.
func (f *feed) listAll(ctx context.Context) (resourceVersion string, err error) {
	seen := map[string]bool{}
	next := ""
	for {
		meta, err := f.listPage(ctx, next, seen)
		if err != nil {
			return "", fmt.Errorf("list %s: %w", f.displayName(), err)
		}
		if next = meta.Continue; next == "" {
			resourceVersion = meta.ResourceVersion
			break
		}
	}
	for _, key := range f.sink.listKeys(f.namespace) {
		if !seen[key] {
			f.sink.dropObject(key)
		}
	}
	lost := f.checkReady() != nil
	f.mu.Lock()
	f.listed, f.lastErr = true, nil
	f.mu.Unlock()
	f.reportRecovery(lost)
	return resourceVersion, nil
}

// reportRecovery tells that what was lost is well again.
func (f *feed) reportRecovery(lost bool) {
	if lost && f.checkReady() == nil {
		f.onReadyChange(true)
	}
}

func (f *feed) listPage(ctx context.Context, next string, seen map[string]bool) (listMeta, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	r := f.newRequest().Param("limit", strconv.Itoa(pageSize))
	if next != "" {
		r = r.Param("continue", next)
	}
	body, err := r.Stream(ctx)
	if err != nil {
		return listMeta{}, err
	}
	defer closeBody(body)
	return readPage(body, func(raw []byte) {
		if key, ok := f.sink.putObject(raw); ok {
			seen[key] = true
		}
	})
}

// watchEvents takes events from f.watchFrom on, and moves it, until the stream ends (nil)
// or breaks.
func (f *feed) watchEvents(ctx context.Context) error {
	limit := watchTimeout + rand.N(watchTimeout)
	ctx, cancel := context.WithTimeout(ctx, limit+watchGrace)
	defer cancel()
	body, err := f.newRequest().Param("watch", "true").Param("allowWatchBookmarks", "true").
		Param("resourceVersion", f.watchFrom).Param("timeoutSeconds", strconv.Itoa(int(limit.Seconds()))).Stream(ctx)
	if err != nil {
		if apierrors.IsGone(err) || apierrors.IsResourceExpired(err) {
			return errWatchExpired
		}
		return fmt.Errorf("watch %s: %w", f.displayName(), err)
	}
	defer closeBody(body)
	f.markAlive()
	defer f.markEnded()
	if err := readEvents(body, f.applyEvent); err != nil {
		if errors.Is(err, errWatchExpired) {
			return err
		}
		return fmt.Errorf("watch %s: %w", f.displayName(), err)
	}
	return nil
}

func (f *feed) applyEvent(e watchEvent) error {
	if e.Type == "ERROR" {
		var status metav1.Status
		if err := json.Unmarshal(e.Object, &status); err != nil {
			return fmt.Errorf("an error that can't be read: %w", err)
		}
		if status.Code == http.StatusGone || status.Reason == metav1.StatusReasonExpired {
			return errWatchExpired
		}
		return errors.New(clipMessage(status.Message))
	}
	switch e.Type {
	case "ADDED", "MODIFIED":
		f.sink.putObject(e.Object)
	case "DELETED":
		if key := keyOf(e.Object); key != "" {
			f.sink.dropObject(key)
		}
	}
	var o struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if json.Unmarshal(e.Object, &o) == nil && o.Metadata.ResourceVersion != "" {
		f.watchFrom = o.Metadata.ResourceVersion // bookmarks move it too
	}
	return nil
}

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

func (f *feed) markAlive() {
	lost := f.checkReady() != nil
	f.mu.Lock()
	said := f.logged
	f.downSince, f.lastErr, f.logged = time.Time{}, nil, false
	f.mu.Unlock()
	f.reportRecovery(lost)
	if said {
		f.log.Info("watching again", zap.String("watch", f.displayName()))
	}
}

func (f *feed) markEnded() {
	f.mu.Lock()
	f.downSince = f.now()
	f.mu.Unlock()
}

// recordFailure notes why there is no watch, and says it once. It tells whether the
// feed is optional and can't be had.
func (f *feed) recordFailure(err error) (hopeless bool) {
	if err == nil || errors.Is(err, errWatchExpired) {
		return false // a watch that the server ended soon, or whose place is too old
	}
	err = explainError(err, "get, list, watch", "argoproj.io", f.resource)
	f.mu.Lock()
	said := f.logged
	f.lastErr, f.logged = err, true
	f.mu.Unlock()
	hopeless = f.optional && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err))
	if !said {
		f.onReadyChange(false)
	}
	switch {
	case said:
	case hopeless:
		f.log.Warn(f.missingHint, zap.Error(err))
	default:
		f.log.Warn("Argo CD can't be watched; trying again", zap.Error(err))
	}
	return hopeless
}

// checkReady is nil while the feed has listed and has a watch, or had one until a
// moment ago.
func (f *feed) checkReady() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listed && (f.downSince.IsZero() || f.now().Sub(f.downSince) < brokenGrace) {
		return nil
	}
	err := f.lastErr
	switch {
	case err != nil:
	case f.listed:
		err = fmt.Errorf("watch %s: no answer", f.displayName())
	default:
		err = fmt.Errorf("list %s: not complete yet", f.displayName())
	}
	return fmt.Errorf("%w (since %s)", err, f.downSince.UTC().Format(time.RFC3339))
}

// isListed says that everything has been listed once.
func (f *feed) isListed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listed
}

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

func closeBody(c io.Closer) { _ = c.Close() } // read only: there is nothing to lose

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
