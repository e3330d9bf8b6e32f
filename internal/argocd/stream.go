package argocd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// maxObject bounds one object on the wire, in bytes. etcd takes requests of
// 1.5 MiB unless told otherwise; nothing near this is an Application.
const maxObject = 16 << 20

var errTooLarge = fmt.Errorf("an object is larger than %d bytes", maxObject)

// allowance lets through so many bytes until it is renewed.
type allowance struct {
	r    io.Reader
	left int
}

func (a *allowance) Read(p []byte) (int, error) {
	if a.left <= 0 {
		return 0, errTooLarge
	}
	n, err := a.r.Read(p[:min(len(p), a.left)])
	a.left -= n
	return n, err
}

func (a *allowance) renew() { a.left = maxObject }

type listMeta struct {
	ResourceVersion string `json:"resourceVersion"`
	Continue        string `json:"continue"`
}

// readPage reads one page of a list of the API server's, as readList does.
func readPage(r io.Reader, item func(raw []byte)) (listMeta, error) {
	meta, err := readList(r, item)
	if err == nil && meta.ResourceVersion == "" {
		err = errors.New("the list has no resourceVersion")
	}
	return meta, err
}

// noEOF tells a cut answer from a complete one.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// eventDecoder reads the events of a watch, one object at a time.
type eventDecoder struct {
	feed   *feed
	src    *allowance
	dec    *json.Decoder
	body   io.Closer
	cancel func()
	// version is where the watch is: an event that doesn't say its own must not
	// send the Reflector anywhere else, or what happens meanwhile is lost.
	version string
}

func newEventDecoder(f *feed, version string, body io.ReadCloser, cancel func()) *eventDecoder {
	src := &allowance{r: body}
	return &eventDecoder{feed: f, version: version, src: src, dec: json.NewDecoder(src), body: body, cancel: cancel}
}

// moveOn gives an object the version where the watch is, if it has none of its own.
func (ed *eventDecoder) moveOn(o *slimObject) *slimObject {
	ed.version = cmp.Or(o.ResourceVersion, ed.version)
	o.ResourceVersion = ed.version
	return o
}

// Decode gives the next event; its error is recorded as the reason why there is no watch.
func (ed *eventDecoder) Decode() (watch.EventType, runtime.Object, error) {
	var e struct {
		Type   watch.EventType `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	ed.src.renew()
	if err := ed.dec.Decode(&e); err != nil {
		if !errors.Is(err, io.EOF) {
			ed.feed.recordFailure(fmt.Errorf("watch %s: read: %w", ed.feed.displayName(), err))
		}
		return "", nil, err
	}
	switch e.Type {
	case watch.Error:
		status := &metav1.Status{}
		if err := json.Unmarshal(e.Object, status); err != nil {
			return "", nil, fmt.Errorf("an error that can't be read: %w", err)
		}
		status.Message = clipMessage(status.Message)
		ed.feed.recordFailure(fmt.Errorf("watch %s: %w", ed.feed.displayName(), apierrors.FromObject(status)))
		return e.Type, status, nil
	case watch.Bookmark:
		var mark slimObject
		_ = json.Unmarshal(e.Object, &struct {
			Metadata *metav1.ObjectMeta `json:"metadata"`
		}{&mark.ObjectMeta}) // one that can't be read moves nothing
		return e.Type, ed.moveOn(&mark), nil
	default:
		return e.Type, ed.moveOn(ed.feed.decodeSlim(e.Object)), nil
	}
}

// Close ends the watch.
func (ed *eventDecoder) Close() {
	ed.cancel()
	_ = ed.body.Close() // read only: there is nothing to lose
	ed.feed.markEnded()
}

// readListPage asks for one page of a list and hands each object to item, as readPage does.
func readListPage(ctx context.Context, r *rest.Request, o metav1.ListOptions, timeout time.Duration,
	item func(raw []byte)) (listMeta, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if o.Limit > 0 {
		r = r.Param("limit", strconv.FormatInt(o.Limit, 10))
	}
	if o.LabelSelector != "" {
		r = r.Param("labelSelector", o.LabelSelector)
	}
	if o.Continue != "" {
		r = r.Param("continue", o.Continue)
	}
	body, err := r.Stream(ctx)
	if err != nil {
		return listMeta{}, err
	}
	defer func() { _ = body.Close() }() // read only: there is nothing to lose
	return readPage(body, item)
}

// visitPages reads a list to its end, page by page, until visit returns an error.
func visitPages(page func(o metav1.ListOptions, item func(raw []byte)) (listMeta, error), selector string,
	visit func(raw json.RawMessage) error) error {
	o := metav1.ListOptions{Limit: pageSize, LabelSelector: selector}
	for {
		var refused error
		meta, err := page(o, func(raw []byte) {
			if refused == nil {
				refused = visit(raw)
			}
		})
		if err = cmp.Or(refused, err); err != nil || meta.Continue == "" {
			return err
		}
		o.Continue = meta.Continue
	}
}
