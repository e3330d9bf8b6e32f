package console

import "net/http"

// contentPolicy lets a page load nothing that isn't ours, and nobody frame it.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// strictTransport tells browsers for half a year to come by TLS only.
const strictTransport = "max-age=15552000"

// WithSecurityHeaders sets the headers of every answer of the server, from any handler. No answer
// is ever framed, sniffed, stored or run as a script that isn't ours. Where the request came by TLS
// of our own, browsers are told to stay with it.
func WithSecurityHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin") // with no-referrer, our own forms come with "Origin: null" too
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if r.TLS != nil {
			h.Set("Strict-Transport-Security", strictTransport)
		}
		next.ServeHTTP(w, r)
	})
}
