package console

import (
	"fmt"
	"net/http"
	"sort"
	"strings"

	"github.com/klauspost/compress/gzhttp"
)

// Access says who is answered.
type Access string

// These say who is answered.
const (
	ForReaders  Access = "readers"  // those who may read: everybody, or the holders of tokens
	ForCommands Access = "commands" // holders of a token with the role that the command needs
	ForUsers    Access = "users"    // who has logged in, by the pages' own forms where it changes anything
	ForAnybody  Access = "anybody"  // nothing is said that isn't for everybody
)

// Route is one address that the console answers.
type Route struct {
	Method, Path string // in http.ServeMux's words
	Access       Access
}

// router collects routes so that each is behind what its access says, and a wrong
// method is answered as the rest is: the API's errors are JSON.
type router struct {
	mux        *http.ServeMux
	compress   func(http.Handler) http.HandlerFunc
	readers    func(http.HandlerFunc) http.HandlerFunc // lets only readers pass
	streams    func(http.HandlerFunc) http.HandlerFunc // the same for an answer that lasts
	share      func(http.HandlerFunc) http.HandlerFunc // sends a page as it was rendered for others
	routes     []Route
	apiMethods map[string][]string // methods by the API's paths
}

func newRouter(readers, streams, share func(http.HandlerFunc) http.HandlerFunc) (*router, error) {
	// Nothing that is compressed holds a secret beside what a stranger can put into it, which
	// its size could give away.
	compress, err := gzhttp.NewWrapper(gzhttp.ContentTypes([]string{"text/html", "text/plain", "text/css", "text/javascript",
		"application/json", "image/svg+xml"}))
	if err != nil {
		return nil, fmt.Errorf("compress answers: %w", err)
	}
	return &router{compress: compress, mux: http.NewServeMux(), readers: readers, streams: streams, share: share,
		apiMethods: map[string][]string{}}, nil
}

// handleQuestion is a route of the API that readers are answered.
func (r *router) handleQuestion(path string, h http.HandlerFunc) {
	r.handleAPI(Route{http.MethodGet, path, ForReaders}, r.readers(r.compress(h)))
}

// handleLongQuestion is one whose answer is sent while it is made, and not compressed.
func (r *router) handleLongQuestion(path string, h http.HandlerFunc) {
	r.handleAPI(Route{http.MethodGet, path, ForReaders}, r.streams(h))
}

// handleCommand is a route of the API whose handler asks for the role that it needs.
func (r *router) handleCommand(path string, h http.HandlerFunc) {
	r.handleAPI(Route{http.MethodPost, path, ForCommands}, h)
}

func (r *router) handleAPI(route Route, h http.HandlerFunc) {
	r.apiMethods[route.Path] = append(r.apiMethods[route.Path], route.Method)
	r.handle(route, h)
}

// handlePage is a page for readers.
func (r *router) handlePage(path string, h http.HandlerFunc) {
	r.handle(Route{http.MethodGet, path, ForReaders}, r.readers(r.compress(r.share(h))))
}

// handleStream is an answer that lasts.
func (r *router) handleStream(path string, h http.HandlerFunc) {
	r.handle(Route{http.MethodGet, path, ForReaders}, r.streams(h))
}

// handleOpen is what everybody is answered.
func (r *router) handleOpen(path string, h http.HandlerFunc) {
	r.handle(Route{http.MethodGet, path, ForAnybody}, h)
}

// handleUser is a page, or a form's, whose handler sees to it that somebody has logged in.
func (r *router) handleUser(method, path string, h http.HandlerFunc) {
	r.handle(Route{method, path, ForUsers}, h)
}

func (r *router) handle(route Route, h http.HandlerFunc) {
	r.routes = append(r.routes, route)
	r.mux.HandleFunc(route.Method+" "+route.Path, h)
}

// handleRest closes the list: what is left is 405 where the path exists, else 404.
func (r *router) handleRest(noPage http.HandlerFunc) {
	for path, methods := range r.apiMethods {
		sort.Strings(methods)
		allow := strings.Join(methods, ", ")
		r.mux.HandleFunc(path, r.readers(func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Allow", allow)
			writeErrorf(w, http.StatusMethodNotAllowed, "%s is answered to %s only", req.URL.Path, allow)
		}))
	}
	r.mux.HandleFunc("/api/", r.readers(func(w http.ResponseWriter, req *http.Request) {
		writeErrorf(w, http.StatusNotFound, "there is no %s in this API; docs/api.md lists what there is", req.URL.Path)
	}))
	r.mux.HandleFunc("/", r.readers(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			w.Header().Set("Allow", "GET")
			http.Error(w, "pages are only read", http.StatusMethodNotAllowed)
			return
		}
		noPage(w, req)
	}))
}
