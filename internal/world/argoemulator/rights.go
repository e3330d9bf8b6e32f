package argoemulator

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Deny takes a right from the clients of the API server (get, list, watch or patch) and of Argo
// CD's own API (get). They are told so where they ask, and such requests are refused.
func (a *ArgoCD) Deny(verb, resource string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.denied[verb+" "+resource] = true
}

// isDenied says whether a right was taken from clients.
func (a *ArgoCD) isDenied(verb, resource string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.denied[verb+" "+resource]
}

// verbOf is Kubernetes' verb for a request.
func verbOf(r *http.Request, q objectQuery) string {
	switch {
	case r.Method != http.MethodGet:
		return strings.ToLower(r.Method)
	case r.URL.Query().Get("watch") != "":
		return "watch"
	case q.name != "":
		return "get"
	}
	return "list"
}

// reviewAccess answers what a client may do.
func (a *ArgoCD) reviewAccess(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Spec struct {
			Attributes struct {
				Verb     string `json:"verb"`
				Resource string `json:"resource"`
			} `json:"resourceAttributes"`
		} `json:"spec"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxPatch)).Decode(&review); err != nil {
		writeFailure(w, http.StatusBadRequest, "the object provided is unrecognized")
		return
	}
	allowed := !a.isDenied(review.Spec.Attributes.Verb, review.Spec.Attributes.Resource)
	writeJSON(w, http.StatusCreated, jsonObject{"kind": "SelfSubjectAccessReview", "status": jsonObject{"allowed": allowed}})
}
