package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"
)

// streamURL is where a page that is about one unit, or with an empty key about several, is told
// that it may have changed.
func (p *pages) streamURL(unit string) string {
	if unit == "" {
		return p.pageURL("live")
	}
	return p.pageURL("live") + "?" + url.Values{"unit": {unit}}.Encode()
}

// isUnmodified says whether whoever asks has a page with this entity tag already (RFC 9110,
// "If-None-Match").
func isUnmodified(r *http.Request, tag string) bool {
	for _, known := range strings.Split(r.Header.Get("If-None-Match"), ",") {
		if strings.TrimSpace(known) == tag {
			return true
		}
	}
	return false
}

// maxRenderedPages bounds the pages that are sent as they were rendered for somebody else.
const maxRenderedPages = 32

// renderedPage is a page that is told of changes, with its marks.
type renderedPage struct {
	version string // that the watch had seen before it was rendered
	page    page
	body    []byte
}

// rendering is what a request's page is kept as.
type rendering struct{ key, version string }

type renderingKey struct{}

// shareRendering sends those who ask again for a page, since they were told of a change, what was
// rendered since that change for others who may read the same.
func (se *server) shareRendering(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		as := rendering{version: se.changes.version(se.access.reading(r.Context()))}
		if r.Header.Get("If-None-Match") == "" || as.version == "" {
			next(w, r)
			return
		}
		as.key = fmt.Sprintf("%q %q", se.access.reading(r.Context()).key, r.URL.RequestURI())
		if u := userOf(r.Context()); u != nil {
			as.key += fmt.Sprintf(" %q %q", u.Name, u.Role)
		}
		if known, ok := se.rendered.Get(as.key); ok && known.version == as.version {
			known.page.Now = se.opts.Now()
			se.sendPage(w, r, http.StatusOK, &known.page, known.body)
			return
		}
		next(w, r.WithContext(context.WithValue(r.Context(), renderingKey{}, as)))
	}
}

// followPage streams that what is shown has changed: "changed", with the version of what is
// shown now as its id, and a comment as a sign of life. It begins with one where the version
// that the page is of, or that a stream which was cut off ended with, is another by now.
func (se *server) followPage(w http.ResponseWriter, r *http.Request) {
	v, err := parseQuery(r.URL.RawQuery, "unit", "version")
	if err == nil && v["unit"] != "" && !se.access.reading(r.Context()).mayRead(r.Context(), repositoryOfUnit(v["unit"])) {
		err = apiErrorf(http.StatusNotFound, "there is no unit %q", v["unit"])
	}
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	seen := v["version"]
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		seen = id
	}
	changed, leave, tooMany := se.changes.subscribe(r.Context(), se.opts.Client(r), v["unit"])
	if tooMany != "" {
		writeTooMany(w, tooMany)
		return
	}
	defer leave()
	s := se.openStream(w)
	defer s.clearDeadline()
	if err := se.sendChanges(r.Context(), s, seen, changed); err != nil && r.Context().Err() == nil {
		se.opts.Log.Debug("a page's stream ended", zap.Error(err))
	}
}

func (se *server) sendChanges(ctx context.Context, s *eventStream, seen string, changed <-chan struct{}) error {
	beat := time.NewTicker(se.opts.Heartbeat)
	defer beat.Stop()
	notice := func() string {
		return fmt.Sprintf("id: %s\nevent: changed\ndata: {}\n\n", se.changes.version(se.access.reading(ctx)))
	}
	begin := fmt.Sprintf("retry: %d\n", reconnectDelay.Milliseconds())
	if seen == "" || seen != se.changes.version(se.access.reading(ctx)) {
		begin += notice()
	} else {
		begin += "\n"
	}
	if err := s.send(begin); err != nil {
		return err
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
			err = s.send(notice())
		case <-beat.C:
			err = s.send(": still here\n\n")
		}
		if err != nil {
			return err
		}
	}
}
