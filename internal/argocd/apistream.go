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
	// relist is how often at most all Applications are listed while the stream of changes goes on.
	// Missed changes are seen then, or a moment later. 10,000 of them are 170 MB.
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
	// busy is how long there may be no news of an Application that is due some, until it is asked
	// for by itself: the stream may have lost it.
	busy time.Duration
}

const listShare = 20

var defaultPace = apiPace{relist: 5 * time.Minute, settle: time.Second, retry: firstRetry, maxRetry: 10 * time.Second,
	spacing: 10 * time.Second, sets: 30 * time.Second, rest: 2 * time.Minute, busy: 30 * time.Second}

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

// apiStream keeps a sink up to date with the Applications by the API. The stream of their changes
// is a hint, and lists are the truth.
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
func (as *apiStream) run(ctx context.Context) {
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(as.pace.retry), backoff.WithMaxInterval(as.pace.maxRetry),
		backoff.WithMaxElapsedTime(0))
	for {
		begun := as.now()
		broke, err := as.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		worked := as.now().Sub(begun) >= goodStream
		if worked {
			wait.Reset()
		}
		if !errors.Is(err, errStreamEnded) && (!broke || !worked) { // proxies end streams now and then
			as.recordTrouble(fmt.Errorf("%s: %w", as.title, err), api.IsForbidden(err))
		}
		as.markBroken()
		if broke && as.untilList() <= 0 {
			as.listBetweenStreams(ctx)
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
func (as *apiStream) follow(ctx context.Context) (broke bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	sent, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		err := as.client.StreamApplications(ctx, as.filter, sync.OnceFunc(func() { close(sent) }), as.takeEvent)
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
	next := max(as.pace.settle, as.untilList())
	for {
		select {
		case err := <-ended:
			return true, err
		case <-time.After(next):
		}
		if err := as.listAll(ctx); err != nil {
			return false, err
		}
		as.markAlive()
		next = as.pace.relist + rand.N(as.pace.relist/20+1) // replicas don't stay in step
	}
}

// listBetweenStreams lists where no stream lasts long enough for it: things are then known
// as of a moment ago.
func (as *apiStream) listBetweenStreams(ctx context.Context) {
	if err := as.listAll(ctx); err != nil {
		as.recordTrouble(fmt.Errorf("%s: %w", as.title, err), api.IsForbidden(err))
		return
	}
	as.changeState(func(s *feedState) { s.downSince = as.lastList })
}

// untilList is how long to wait for the next list where the last one is recent.
func (as *apiStream) untilList() time.Duration {
	if as.lastList.IsZero() {
		return 0
	}
	return as.lastList.Add(max(as.pace.spacing, listShare*as.lastTook.Sub(as.lastList))).Sub(as.now())
}

// followBusy asks for Applications by themselves of which news is due and none has come,
// until ctx ends.
func (as *apiStream) followBusy(ctx context.Context) {
	tick := time.NewTicker(as.pace.busy)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, app := range as.overdue() {
			raw, err := as.client.Application(ctx, app.Namespace, app.Name, app.Project, false)
			if api.IsNotFound(err) || api.IsForbidden(err) {
				as.stopFollowing(app.Namespace, app.Name) // it is gone, as the list will say
				continue
			}
			if err != nil {
				break // the list comes, and says why if it doesn't
			}
			as.takeEvent(api.Event{Type: "MODIFIED", Application: raw})
		}
	}
}

// followUntil has an Application asked for by itself until then, also while no news of it is
// due.
func (as *apiStream) followUntil(namespace, name string, until time.Time) {
	as.order.Lock()
	defer as.order.Unlock()
	if as.followed == nil {
		as.followed = map[string]time.Time{}
	}
	as.followed[namespace+"/"+name] = until
}

func (as *apiStream) stopFollowing(namespace, name string) {
	as.order.Lock()
	defer as.order.Unlock()
	delete(as.followed, namespace+"/"+name)
}

// overdue are Applications of which news is due, or that somebody relies on, and of which
// nothing has come for a while, those that have waited longest.
func (as *apiStream) overdue() []verification.App {
	as.order.Lock()
	defer as.order.Unlock()
	maps.DeleteFunc(as.followed, func(_ string, until time.Time) bool { return until.Before(as.now()) })
	seen := func(a verification.App) time.Time { return as.versions[a.Namespace+"/"+a.Name].at }
	out := slices.DeleteFunc(as.apps.listApplications(), func(a verification.App) bool {
		_, followed := as.followed[a.Namespace+"/"+a.Name]
		return !a.IsBusy() && !followed || as.now().Sub(seen(a)) < as.pace.busy
	})
	slices.SortStableFunc(out, func(a, b verification.App) int { return seen(a).Compare(seen(b)) })
	return out[:min(len(out), maxBusy)]
}

// takeEvent takes a change from the stream.
func (as *apiStream) takeEvent(e api.Event) {
	key, version, put := as.decode(e.Application)
	if key == "" {
		return
	}
	as.order.Lock()
	defer as.order.Unlock()
	if version < as.versions[key].version {
		return // it came late
	}
	gone := e.Type == "DELETED"
	as.versions[key] = seenVersion{version, as.now(), gone}
	if gone {
		as.sink.dropObject(key)
		return
	}
	put()
}

// listAll reads the list of all Applications, and drops those that it doesn't have.
func (as *apiStream) listAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, apiListTimeout)
	defer cancel()
	began := as.now()
	as.lastList, as.lastTook = began, began
	body, err := as.client.ListApplications(ctx, as.filter)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	defer body.Close()
	listed := map[string]bool{}
	var broken error
	list := newValueReader(body)
	list.unchecked = true // each is decoded, or known by its version
	_, err = list.readList(func(raw []byte) { broken = cmp.Or(broken, as.takeListed(raw, began, listed)) })
	if err = cmp.Or(err, broken); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	as.lastTook = as.now()
	if len(listed) == 0 {
		if err := checkMaySee(ctx, as.client, api.Applications, as.filter.Projects...); err != nil {
			return err
		}
	}
	as.dropUnlisted(began, listed, as.findHidden(ctx, began, listed))
	as.changeState(func(f *feedState) { f.listed, f.lastErr = true, nil })
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
		return fmt.Errorf("list %s: the token of %s sees none; allow them to its account in argocd-rbac-cm: p, <role>, %s, get, %s, allow",
			which, client.Source(), which, api.AllOf(which, project))
	}
	return nil
}

// takeListed takes an Application from a list, unless the stream has brought a newer state
// since, or shortly before. The error is for what is no JSON, of which nobody knows what it is.
func (as *apiStream) takeListed(raw []byte, began time.Time, listed map[string]bool) error {
	key, version := identify(raw)
	if key != "" && as.isUnchanged(key, version) {
		listed[key] = true
		return nil
	}
	key, put := as.sink.decodeObject(raw)
	if key == "" {
		if !json.Valid(raw) {
			return fmt.Errorf("what begins with %.40q is not JSON", raw)
		}
		return nil
	}
	listed[key] = true
	as.order.Lock()
	defer as.order.Unlock()
	if seen := as.versions[key]; version < seen.version && seen.at.After(began.Add(-staleVersion)) {
		return nil
	}
	as.versions[key] = seenVersion{version: version, at: as.now()}
	put()
	return nil
}

// dropUnlisted forgets what a list doesn't have and no event has brought since it began. A hidden
// object isn't known to be gone.
func (as *apiStream) dropUnlisted(began time.Time, listed map[string]bool, hidden map[string]string) {
	as.order.Lock()
	defer as.order.Unlock()
	for _, key := range as.sink.listKeys("") {
		switch why, isHidden := hidden[key]; {
		case listed[key] || !as.versions[key].at.Before(began):
		case isHidden:
			as.apps.markUnreadable(key, why)
		default:
			as.sink.dropObject(key)
		}
	}
	maps.DeleteFunc(as.versions, func(key string, v seenVersion) bool { return !listed[key] && v.at.Before(began) })
}

// decode reads an Application; put stores it. The key is empty where it can't be read.
func (as *apiStream) decode(raw []byte) (key string, version uint64, put func()) {
	_, version = identify(raw)
	key, put = as.sink.decodeObject(raw)
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
func (as *apiStream) isUnchanged(key string, version uint64) bool {
	as.order.Lock()
	defer as.order.Unlock()
	seen, ok := as.versions[key]
	if !ok || version == 0 || seen.gone || seen.version != version {
		return false
	}
	seen.at = as.now()
	as.versions[key] = seen
	return true
}

// covers says that a namespace's Applications may be among those that are seen.
func (as *apiStream) covers(string) bool { return true }

// visitAll lists the Applications anew.
func (as *apiStream) visitAll(ctx context.Context, namespace, selector string, visit func(json.RawMessage) error) error {
	filter := as.filter
	filter.Namespace, filter.Selector = namespace, selector
	ctx, cancel := context.WithTimeout(ctx, apiListTimeout)
	defer cancel()
	body, err := as.client.ListApplications(ctx, filter)
	return visitList(body, err, as.title, visit)
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
