package server

import (
	"encoding/json"
	"errors"
	"net/http"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/policies"
)

// serveGateCallback takes POST /api/v1/promotions/{id}/gates/{gate}: a later answer of an endpoint
// of the gate http to the request with that id. No byte of the body is interpreted before its
// signature is found to be the endpoint's, and nothing but the request that it names changes.
// Bodies of unknown senders have a budget of their own, as deliveries have, in which slow senders
// keep no others out. 401 says that it isn't signed, 400 that it can't be read, 404 that no
// promotion waits for it, 409 that another answer counts already.
func (s *Server) serveGateCallback(w http.ResponseWriter, r *http.Request) {
	id, gate := r.PathValue("id"), r.PathValue("gate")
	body, refusal := s.callbacks.ReadBody(w, r, policies.MaxEndpointAnswer)
	if refusal != nil {
		w.Header().Set("Content-Type", "application/json")
		s.callbacks.WriteRefusal(w, refusal)
		writeCallbackBody(w, refusal.Reason)
		return
	}
	// Whether there is an endpoint of that name is only for who has its secret.
	signedAt, err := policies.VerifyEndpoint(s.gateEndpoints.Secret(gate), r.Header.Get(policies.EndpointSignature), body, s.o.Clock.Now())
	if err != nil {
		s.metrics.gateCallback("", "unsigned")
		writeCallbackAnswer(w, http.StatusUnauthorized, err.Error())
		return
	}
	a, err := policies.ParseEndpointAnswer(body, id)
	if err != nil {
		s.metrics.gateCallback(gate, "malformed")
		writeCallbackAnswer(w, http.StatusBadRequest, err.Error())
		return
	}
	a.At = signedAt
	err = facts.AcceptCallback(r.Context(), s.store, gate, a)
	switch {
	case err == nil:
		s.metrics.gateCallback(gate, string(a.Outcome))
		writeCallbackAnswer(w, http.StatusOK, "")
	case errors.Is(err, facts.ErrNoRequest):
		s.metrics.gateCallback(gate, "unknown")
		writeCallbackAnswer(w, http.StatusNotFound, err.Error())
	case errors.Is(err, facts.ErrFinal), errors.Is(err, facts.ErrStaleCallback):
		s.metrics.gateCallback(gate, "late")
		writeCallbackAnswer(w, http.StatusConflict, err.Error())
	default:
		s.metrics.gateCallback(gate, "failed")
		s.log.Error("what an endpoint said could not be stored; it is asked again", zap.String("endpoint", gate), zap.String("request", id),
			zap.Error(err))
		writeCallbackAnswer(w, http.StatusServiceUnavailable, "it could not be stored; send it again")
	}
}

// writeCallbackAnswer answers in JSON, as the API does.
func writeCallbackAnswer(w http.ResponseWriter, status int, failed string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	writeCallbackBody(w, failed)
}

func writeCallbackBody(w http.ResponseWriter, failed string) {
	body := map[string]string{}
	if failed != "" {
		body["error"] = failed
	}
	_ = json.NewEncoder(w).Encode(body) // a reader who is gone
}
