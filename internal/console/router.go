package console

import (
	"net/http"
	"sort"
	"strings"
)

// router collects routes so that a wrong method is answered as the rest is: the
// API's errors are JSON.
type router struct {
	mux        *http.ServeMux
	apiMethods map[string][]string // methods by the API's paths
}

func newRouter() *router { return &router{mux: http.NewServeMux(), apiMethods: map[string][]string{}} }

func (r *router) handleAPI(method, path string, h http.HandlerFunc) {
	r.apiMethods[path] = append(r.apiMethods[path], method)
	r.mux.HandleFunc(method+" "+path, h)
}

func (r *router) handlePage(path string, h http.HandlerFunc) { r.mux.HandleFunc("GET "+path, h) }

// handleRest closes the list: what is left is 405 where the path exists, else 404.
func (r *router) handleRest(noPage http.HandlerFunc) http.Handler {
	for path, methods := range r.apiMethods {
		sort.Strings(methods)
		allow := strings.Join(methods, ", ")
		r.mux.HandleFunc(path, func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Allow", allow)
			writeErrorf(w, http.StatusMethodNotAllowed, "%s is answered to %s only", req.URL.Path, allow)
		})
	}
	r.mux.HandleFunc("/api/", func(w http.ResponseWriter, req *http.Request) {
		writeErrorf(w, http.StatusNotFound, "there is no %s in this API; docs/api.md lists what there is", req.URL.Path)
	})
	r.mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			w.Header().Set("Allow", "GET")
			http.Error(w, "pages are only read", http.StatusMethodNotAllowed)
			return
		}
		noPage(w, req)
	})
	return r.mux
}

// withSecurityHeaders sets what every answer carries. No answer is ever framed, sniffed,
// stored or run as a script that isn't ours; there are no cookies, so there is
// nothing that another site could use.
func withSecurityHeaders(next http.Handler) http.Handler {
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
