package argocd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// apiPace is how often an Argo CD is called by its API.
type apiPace struct {
	// relist is how often at most all Applications are listed while the stream of changes goes
	// on: what it may have missed is seen then, or a moment later. 10,000 of them are 170 MB.
	relist time.Duration
	// settle is how long after a stream was asked for a list may begin: Argo CD has
	// subscribed to the changes by then.
	settle time.Duration
	// retry is the first wait before a stream is opened again, which doubles up to maxRetry.
	retry, maxRetry time.Duration
	// spacing is between two lists at least, where streams keep breaking; and of the time,
	// listing takes one part in listShare at most.
	spacing time.Duration
	// sets and rest are how often ApplicationSets, and projects, are listed.
	sets, rest time.Duration
	// busy is how long nothing may be said of an Application of which news is due until it
	// is asked for by itself: the stream may have lost it.
	busy time.Duration
}

const listShare = 20

var defaultPace = apiPace{relist: 5 * time.Minute, settle: time.Second, retry: firstRetry, maxRetry: 10 * time.Second, spacing: 10 * time.Second, sets: 30 * time.Second, rest: 2 * time.Minute, busy: 30 * time.Second}

const (
	// apiListTimeout is how long a list may take, which Argo CD makes in one piece.
	apiListTimeout = 5 * time.Minute
	// goodStream is how long a stream lasts at least that counts as having worked.
	goodStream = 2 * time.Second
	// maxBusy bounds the Applications that are asked for by themselves at a time.
	maxBusy = 20
	// staleVersion is how long a version that the stream brought is believed against an
	// older one in a list: longer than Argo CD's servers lag behind each other.
	staleVersion = time.Minute
)

var errStreamEnded = errors.New("the stream ended")

// seenVersion is the version of an Application that was seen last.
type seenVersion struct {
	version uint64
	at      time.Time
	gone    bool
}

// apiStream keeps a sink up to date with the Applications by the API: with the stream of
// their changes, which is a hint, and with lists, which are the truth.
type apiStream struct {
	feedState
	client *api.Client
	filter api.ApplicationFilter
	sink   sink
	apps   *appStore // behind the sink
	pace   apiPace

	lastList, lastTook time.Time // when a list last began and ended
	lastVanished       string    // which Application that a list had no more was asked for last

	order    sync.Mutex // one Application at a time
	versions map[string]seenVersion
	followed map[string]time.Time // until when those are asked for too that aren't busy
}

// run follows until ctx ends, pausing longer and longer while nothing works.
func (f *apiStream) run(ctx context.Context) {
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(f.pace.retry), backoff.WithMaxInterval(f.pace.maxRetry), backoff.WithMaxElapsedTime(0))
	for {
		begun := f.now()
		broke, err := f.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		worked := f.now().Sub(begun) >= goodStream
		if worked {
			wait.Reset()
		}
		if !errors.Is(err, errStreamEnded) && (!broke || !worked) { // proxies end streams now and then
			f.recordTrouble(fmt.Errorf("%s: %w", f.title, err), api.IsForbidden(err))
		}
		f.markBroken()
		if broke && f.untilList() <= 0 {
			f.listBetweenStreams(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait.NextBackOff()):
		}
	}
}

// follow is one stream's life: it lists once the stream is there, and again from time to
// time, until the stream breaks or a list fails.
func (f *apiStream) follow(ctx context.Context) (broke bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	sent, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		err := f.client.StreamApplications(ctx, f.filter, sync.OnceFunc(func() { close(sent) }), f.takeEvent)
		if err == nil {
			err = errStreamEnded
		}
		ended <- err
		close(ended)
	}()
	defer func() {
		cancel()
		for range ended { // its last event is taken before the next stream's first one
		}
	}()
	select {
	case <-sent:
	case err := <-ended:
		return true, err
	}
	next := max(f.pace.settle, f.untilList())
	for {
		select {
		case err := <-ended:
			return true, err
		case <-time.After(next):
		}
		if err := f.listAll(ctx); err != nil {
			return false, err
		}
		f.markAlive()
		next = f.pace.relist + rand.N(f.pace.relist/20+1) // replicas don't stay in step
	}
}

// listBetweenStreams lists where no stream lasts long enough for it: things are then known
// as of a moment ago.
func (f *apiStream) listBetweenStreams(ctx context.Context) {
	if err := f.listAll(ctx); err != nil {
		f.recordTrouble(fmt.Errorf("%s: %w", f.title, err), api.IsForbidden(err))
		return
	}
	f.changeState(func(s *feedState) { s.downSince = f.lastList })
}

// untilList is how long to wait for the next list where the last one is recent.
func (f *apiStream) untilList() time.Duration {
	if f.lastList.IsZero() {
		return 0
	}
	return f.lastList.Add(max(f.pace.spacing, listShare*f.lastTook.Sub(f.lastList))).Sub(f.now())
}

// followBusy asks for Applications by themselves of which news is due and none has come,
// until ctx ends.
func (f *apiStream) followBusy(ctx context.Context) {
	tick := time.NewTicker(f.pace.busy)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, app := range f.overdue() {
			raw, err := f.client.Application(ctx, app.Namespace, app.Name, app.Project, false)
			if api.IsNotFound(err) || api.IsForbidden(err) {
				f.stopFollowing(app.Namespace, app.Name) // it is gone, as the list will say
				continue
			}
			if err != nil {
				break // the list comes, and says why if it doesn't
			}
			f.takeEvent(api.Event{Type: "MODIFIED", Application: raw})
		}
	}
}

// followUntil has an Application asked for by itself until then, also while no news of it is
// due.
func (f *apiStream) followUntil(namespace, name string, until time.Time) {
	f.order.Lock()
	defer f.order.Unlock()
	if f.followed == nil {
		f.followed = map[string]time.Time{}
	}
	f.followed[namespace+"/"+name] = until
}

func (f *apiStream) stopFollowing(namespace, name string) {
	f.order.Lock()
	defer f.order.Unlock()
	delete(f.followed, namespace+"/"+name)
}

// overdue are Applications of which news is due, or that somebody relies on, and of which
// nothing has come for a while, those that have waited longest.
func (f *apiStream) overdue() []verification.App {
	f.order.Lock()
	defer f.order.Unlock()
	maps.DeleteFunc(f.followed, func(_ string, until time.Time) bool { return until.Before(f.now()) })
	seen := func(a verification.App) time.Time { return f.versions[a.Namespace+"/"+a.Name].at }
	out := slices.DeleteFunc(f.apps.listApplications(), func(a verification.App) bool {
		_, followed := f.followed[a.Namespace+"/"+a.Name]
		return !a.IsBusy() && !followed || f.now().Sub(seen(a)) < f.pace.busy
	})
	slices.SortStableFunc(out, func(a, b verification.App) int { return seen(a).Compare(seen(b)) })
	return out[:min(len(out), maxBusy)]
}

// takeEvent takes a change from the stream.
func (f *apiStream) takeEvent(e api.Event) {
	key, version, put := f.decode(e.Application)
	if key == "" {
		return
	}
	f.order.Lock()
	defer f.order.Unlock()
	if version < f.versions[key].version {
		return // it came late
	}
	gone := e.Type == "DELETED"
	f.versions[key] = seenVersion{version, f.now(), gone}
	if gone {
		f.sink.dropObject(key)
		return
	}
	put()
}

// listAll reads the list of all Applications, and drops those that it doesn't have.
func (f *apiStream) listAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, apiListTimeout)
	defer cancel()
	began := f.now()
	f.lastList, f.lastTook = began, began
	body, err := f.client.ListApplications(ctx, f.filter)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	defer body.Close()
	listed := map[string]bool{}
	var broken error
	list := newValueReader(body)
	list.unchecked = true // each is decoded, or known by its version
	_, err = list.readList(func(raw []byte) { broken = cmp.Or(broken, f.takeListed(raw, began, listed)) })
	if err = cmp.Or(err, broken); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	f.lastTook = f.now()
	if len(listed) == 0 {
		if err := checkMaySee(ctx, f.client, api.Applications, f.filter.Projects...); err != nil {
			return err
		}
	}
	f.dropUnlisted(began, listed, f.findHidden(ctx, began, listed))
	f.changeState(func(f *feedState) { f.listed, f.lastErr = true, nil })
	return nil
}

// checkMaySee tells an empty list from one of which nothing may be seen.
func checkMaySee(ctx context.Context, client *api.Client, which string, projects ...string) error {
	project := ""
	if len(projects) > 0 {
		project = projects[0]
	}
	may, err := client.MaySee(ctx, which, project)
	switch {
	case err != nil:
		return fmt.Errorf("list %s: there are none; ask whether they may be seen: %w", which, err)
	case !may:
		return fmt.Errorf("list %s: the token of %s sees none; allow them to its account in argocd-rbac-cm: p, <role>, %s, get, %s, allow", which, client.Source(), which, api.AllOf(which, project))
	}
	return nil
}

// takeListed takes an Application from a list, unless the stream has brought a newer state
// since, or shortly before. The error is for what is no JSON, of which nobody knows what it is.
func (f *apiStream) takeListed(raw []byte, began time.Time, listed map[string]bool) error {
	key, version := identify(raw)
	if key != "" && f.isUnchanged(key, version) {
		listed[key] = true
		return nil
	}
	key, put := f.sink.decodeObject(raw)
	if key == "" {
		if !json.Valid(raw) {
			return fmt.Errorf("what begins with %.40q is not JSON", raw)
		}
		return nil
	}
	listed[key] = true
	f.order.Lock()
	defer f.order.Unlock()
	if seen := f.versions[key]; version < seen.version && seen.at.After(began.Add(-staleVersion)) {
		return nil
	}
	f.versions[key] = seenVersion{version: version, at: f.now()}
	put()
	return nil
}

// dropUnlisted forgets what a list doesn't have and no event has brought since it began. Of
// what is hidden nobody knows that it is gone.
func (f *apiStream) dropUnlisted(began time.Time, listed map[string]bool, hidden map[string]string) {
	f.order.Lock()
	defer f.order.Unlock()
	for _, key := range f.sink.listKeys("") {
		switch why, isHidden := hidden[key]; {
		case listed[key] || !f.versions[key].at.Before(began):
		case isHidden:
			f.apps.markUnreadable(key, why)
		default:
			f.sink.dropObject(key)
		}
	}
	maps.DeleteFunc(f.versions, func(key string, v seenVersion) bool { return !listed[key] && v.at.Before(began) })
}

// decode reads an Application; put stores it. The key is empty where it can't be read.
func (f *apiStream) decode(raw []byte) (key string, version uint64, put func()) {
	_, version = identify(raw)
	key, put = f.sink.decodeObject(raw)
	return key, version, put
}

// identify reads an object's key and its version, and nothing behind its metadata, which
// comes first. The version is 0 where there is none, or it is no number.
func identify(raw []byte) (key string, version uint64) {
	meta := readIdentity(raw)
	if meta.Name == "" {
		return "", 0
	}
	version, err := strconv.ParseUint(meta.ResourceVersion, 10, 64)
	if err != nil {
		version = 0
	}
	return meta.Namespace + "/" + meta.Name, version
}

// identity is the part of an object's metadata by which one state of it is known.
type identity struct {
	Namespace       string `json:"namespace"`
	Name            string `json:"name"`
	ResourceVersion string `json:"resourceVersion"`
}

// readIdentity reads an object no further than its metadata, which comes first or nearly so.
// The zero value: it has none that can be read.
func readIdentity(raw []byte) identity {
	dec := json.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := dec.Token()
		if err != nil {
			return identity{}
		}
		if token == json.Delim('{') {
			continue
		}
		if token == "metadata" {
			break
		}
		var skipped json.RawMessage
		if dec.Decode(&skipped) != nil {
			return identity{}
		}
	}
	var meta identity
	if dec.Decode(&meta) != nil {
		return identity{}
	}
	return meta
}

// isUnchanged says that an Application is as it was when it was last seen. It needn't be
// decoded again, which most of a list needn't.
func (f *apiStream) isUnchanged(key string, version uint64) bool {
	f.order.Lock()
	defer f.order.Unlock()
	seen, ok := f.versions[key]
	if !ok || version == 0 || seen.gone || seen.version != version {
		return false
	}
	seen.at = f.now()
	f.versions[key] = seen
	return true
}

// covers says that a namespace's Applications may be among those that are seen.
func (f *apiStream) covers(string) bool { return true }

// visitAll lists the Applications anew.
func (f *apiStream) visitAll(ctx context.Context, namespace, selector string, visit func(json.RawMessage) error) error {
	filter := f.filter
	filter.Namespace, filter.Selector = namespace, selector
	ctx, cancel := context.WithTimeout(ctx, apiListTimeout)
	defer cancel()
	body, err := f.client.ListApplications(ctx, filter)
	return visitList(body, err, f.title, visit)
}

// visitList hands the objects of a list that was opened, or wasn't, to visit.
func visitList(body io.ReadCloser, err error, title string, visit func(json.RawMessage) error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", title, err)
	}
	defer body.Close()
	var refused error
	_, err = readList(body, func(raw []byte) {
		if refused == nil {
			refused = visit(raw)
		}
	})
	if refused != nil {
		return refused
	}
	if err != nil {
		return fmt.Errorf("%s: %w", title, err)
	}
	return nil
}
