package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/console/api"
)

// maxBody bounds a command's body: names and a reason.
const maxBody = 16 << 10

// writeJSON writes a value as JSON.
func writeJSON(w http.ResponseWriter, status int, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"error":"the answer can't be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // a reader that left is no failure of ours
}

// writeErrorf writes an error.
func writeErrorf(w http.ResponseWriter, status int, format string, args ...any) {
	writeJSON(w, status, api.Error{Error: fmt.Sprintf(format, args...)})
}

// apiError is an error that knows its answer.
type apiError struct {
	status int
	text   string
}

func (a *apiError) Error() string { return a.text }

func apiErrorf(status int, format string, args ...any) *apiError {
	return &apiError{status, fmt.Sprintf(format, args...)}
}

// writeError writes whatever went wrong with a request. An error that isn't the caller's doing is
// logged.
func (se *server) writeError(w http.ResponseWriter, r *http.Request, err error) {
	var known *apiError
	if errors.As(err, &known) {
		if known.status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "5")
		}
		writeErrorf(w, known.status, "%s", known.text)
		return
	}
	if r.Context().Err() != nil {
		return // nobody is there any more
	}
	se.opts.Log.Error("a request could not be answered", zap.String("path", r.URL.Path), zap.Error(err))
	w.Header().Set("Retry-After", "5")
	writeErrorf(w, http.StatusServiceUnavailable, "%s", err)
}

// decodeBody reads a command's body into v, strictly. An empty body leaves v as it
// is where that is allowed.
func decodeBody(w http.ResponseWriter, r *http.Request, v any, mayBeEmpty bool) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooBig *http.MaxBytesError
	switch {
	case errors.As(err, &tooBig):
		return apiErrorf(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", maxBody)
	case err != nil:
		return apiErrorf(http.StatusBadRequest, "the body can't be read: %v", err)
	case len(body) == 0 && mayBeEmpty:
		return nil
	case len(body) == 0:
		return apiErrorf(http.StatusBadRequest, "a body is needed, a JSON object that says what the command is about")
	}
	// A form or plain text can be posted from any web page without being asked;
	// JSON can't.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return apiErrorf(http.StatusUnsupportedMediaType, "send the body as application/json")
	}
	if err := decodeStrict(body, v); err != nil {
		return apiErrorf(http.StatusBadRequest, "the body is not what is expected: %v", err)
	}
	return nil
}

// prefersType says that a request names a media type before any other that it accepts.
func prefersType(r *http.Request, mediaType string) bool {
	first, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	kind, _, err := mime.ParseMediaType(first)
	return err == nil && kind == mediaType
}
