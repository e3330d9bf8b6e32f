package argoemulator

import (
	"encoding/json"
	"net/http"
	"strings"
)

func writeJSON(w http.ResponseWriter, code int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		code, body = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body) // a client that is gone needs no answer
}

var statusReasons = map[int]string{
	http.StatusBadRequest: "BadRequest", http.StatusUnauthorized: "Unauthorized", http.StatusForbidden: "Forbidden",
	http.StatusNotFound: "NotFound", http.StatusMethodNotAllowed: "MethodNotAllowed", http.StatusConflict: "Conflict",
	http.StatusGone: "Expired", http.StatusRequestEntityTooLarge: "RequestEntityTooLarge",
	http.StatusUnsupportedMediaType: "UnsupportedMediaType", http.StatusTooManyRequests: "TooManyRequests",
	http.StatusInternalServerError: "InternalError", http.StatusServiceUnavailable: "ServiceUnavailable",
	http.StatusGatewayTimeout: "Timeout",
}

func failureStatus(code int, message string) jsonObject {
	return jsonObject{
		"kind": "Status", "apiVersion": "v1", "metadata": jsonObject{}, "status": "Failure",
		"message": message, "reason": statusReasons[code], "code": code,
	}
}

func writeFailure(w http.ResponseWriter, code int, message string) {
	writeJSON(w, code, failureStatus(code, message))
}

// serveDiscovery is the little of it that clients need to map kinds to resources.
func serveDiscovery(w http.ResponseWriter, r *http.Request) {
	group := jsonObject{
		"name":             "argoproj.io",
		"versions":         []any{jsonObject{"groupVersion": "argoproj.io/v1alpha1", "version": "v1alpha1"}},
		"preferredVersion": jsonObject{"groupVersion": "argoproj.io/v1alpha1", "version": "v1alpha1"},
	}
	switch r.URL.Path {
	case "/api":
		writeJSON(w, http.StatusOK, jsonObject{"kind": "APIVersions", "versions": []string{"v1"}})
	case "/apis":
		writeJSON(w, http.StatusOK, jsonObject{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{group}})
	case "/apis/argoproj.io":
		group["kind"], group["apiVersion"] = "APIGroup", "v1"
		writeJSON(w, http.StatusOK, group)
	case "/api/v1":
		writeJSON(w, http.StatusOK, resourceList("v1", "secrets"))
	case "/apis/argoproj.io/v1alpha1":
		writeJSON(w, http.StatusOK, resourceList("argoproj.io/v1alpha1", "applications", "applicationsets", "appprojects"))
	case "/version":
		writeJSON(w, http.StatusOK, jsonObject{"major": "1", "minor": "31", "gitVersion": "v1.31.0"})
	case "/healthz", "/livez", "/readyz":
		w.WriteHeader(http.StatusOK)
	default:
		writeFailure(w, http.StatusNotFound, "the server could not find the requested resource")
	}
}

func resourceList(version string, resources ...string) jsonObject {
	var list []any
	for _, name := range resources {
		list = append(list, jsonObject{
			"name": name, "singularName": strings.ToLower(kindByResource[name]), "namespaced": true, "kind": kindByResource[name],
			"verbs": []string{"get", "list", "patch", "watch"},
		})
	}
	return jsonObject{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": list}
}
