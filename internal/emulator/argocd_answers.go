package emulator

import (
	"encoding/json"
	"net/http"
	"strings"
)

func jsonAnswer(w http.ResponseWriter, code int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		code, body = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body) // a client that is gone needs no answer
}

var reasons = map[int]string{
	http.StatusBadRequest: "BadRequest", http.StatusUnauthorized: "Unauthorized", http.StatusForbidden: "Forbidden",
	http.StatusNotFound: "NotFound", http.StatusMethodNotAllowed: "MethodNotAllowed", http.StatusConflict: "Conflict",
	http.StatusGone: "Expired", http.StatusRequestEntityTooLarge: "RequestEntityTooLarge",
	http.StatusUnsupportedMediaType: "UnsupportedMediaType", http.StatusTooManyRequests: "TooManyRequests",
	http.StatusInternalServerError: "InternalError", http.StatusServiceUnavailable: "ServiceUnavailable",
	http.StatusGatewayTimeout: "Timeout",
}

func failure(code int, message string) object {
	return object{
		"kind": "Status", "apiVersion": "v1", "metadata": object{}, "status": "Failure",
		"message": message, "reason": reasons[code], "code": code,
	}
}

func statusAnswer(w http.ResponseWriter, code int, message string) {
	jsonAnswer(w, code, failure(code, message))
}

// discovery is the little of it that clients need to map kinds to resources.
func discovery(w http.ResponseWriter, r *http.Request) {
	group := object{
		"name":             "argoproj.io",
		"versions":         []any{object{"groupVersion": "argoproj.io/v1alpha1", "version": "v1alpha1"}},
		"preferredVersion": object{"groupVersion": "argoproj.io/v1alpha1", "version": "v1alpha1"},
	}
	switch r.URL.Path {
	case "/api":
		jsonAnswer(w, http.StatusOK, object{"kind": "APIVersions", "versions": []string{"v1"}})
	case "/apis":
		jsonAnswer(w, http.StatusOK, object{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{group}})
	case "/apis/argoproj.io":
		group["kind"], group["apiVersion"] = "APIGroup", "v1"
		jsonAnswer(w, http.StatusOK, group)
	case "/api/v1":
		jsonAnswer(w, http.StatusOK, resourceList("v1", "secrets"))
	case "/apis/argoproj.io/v1alpha1":
		jsonAnswer(w, http.StatusOK, resourceList("argoproj.io/v1alpha1", "applications", "applicationsets", "appprojects"))
	case "/version":
		jsonAnswer(w, http.StatusOK, object{"major": "1", "minor": "31", "gitVersion": "v1.31.0"})
	case "/healthz", "/livez", "/readyz":
		w.WriteHeader(http.StatusOK)
	default:
		statusAnswer(w, http.StatusNotFound, "the server could not find the requested resource")
	}
}

func resourceList(version string, resources ...string) object {
	var list []any
	for _, name := range resources {
		list = append(list, object{
			"name": name, "singularName": strings.ToLower(kinds[name]), "namespaced": true, "kind": kinds[name],
			"verbs": []string{"get", "list", "patch", "watch"},
		})
	}
	return object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": list}
}
