package server

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/policies"
)

// maxCallbacks bounds how many callbacks are read at once, until whose signature is known
// they are a stranger's: 4 MiB of bodies. Who is kept out is asked again by and by.
const maxCallbacks = 64

// serveGateCallback takes POST /api/v1/promotions/{id}/gates/{gate}: what an endpoint of
// the gate http says later of the request with that id. Nothing of the body is looked at
// before its signature is found to be the endpoint's, and nothing but the request that it
// names changes. 401 says that it isn't signed, 400 that it can't be read, 404 that no
// promotion waits for it, 409 that something else counts already.
func (s *Server) serveGateCallback(w http.ResponseWriter, r *http.Request) {
	id, gate := r.PathValue("id"), r.PathValue("gate")
	select {
	case s.callbacks <- struct{}{}:
		defer func() { <-s.callbacks }()
	default:
		writeCallbackAnswer(w, http.StatusServiceUnavailable, "too many at once; send it again")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, policies.MaxEndpointAnswer))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		writeCallbackAnswer(w, http.StatusRequestEntityTooLarge, "the body is too large")
		return
	}
	if err != nil {
		return // nobody is there any more
	}
	// Whether there is an endpoint of that name is only for who has its secret.
	signedAt, err := policies.VerifyEndpoint(s.gateEndpoints.Secret(gate), r.Header.Get(policies.EndpointSignature), body, s.o.Clock.Now())
	if err != nil {
		writeCallbackAnswer(w, http.StatusUnauthorized, err.Error())
		return
	}
	a, err := policies.ParseEndpointAnswer(body, id)
	if err != nil {
		writeCallbackAnswer(w, http.StatusBadRequest, err.Error())
		return
	}
	a.At = signedAt
	err = facts.AcceptCallback(r.Context(), s.store, gate, a)
	switch {
	case err == nil:
		writeCallbackAnswer(w, http.StatusOK, "")
	case errors.Is(err, facts.ErrNoRequest):
		writeCallbackAnswer(w, http.StatusNotFound, err.Error())
	case errors.Is(err, facts.ErrFinal), errors.Is(err, facts.ErrStaleCallback):
		writeCallbackAnswer(w, http.StatusConflict, err.Error())
	default:
		s.log.Error("what an endpoint said could not be stored; it is asked again", zap.String("endpoint", gate), zap.String("request", id), zap.Error(err))
		writeCallbackAnswer(w, http.StatusServiceUnavailable, "it could not be stored; send it again")
	}
}

// writeCallbackAnswer answers in JSON, as the API does.
func writeCallbackAnswer(w http.ResponseWriter, status int, failed string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body := map[string]string{}
	if failed != "" {
		body["error"] = failed
	}
	_ = json.NewEncoder(w).Encode(body) // a reader who is gone
}
