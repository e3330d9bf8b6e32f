package argoemulator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// apiRoot is the root path of Argo CD's own API, beside that of the Kubernetes server.
const apiRoot = "/argocd"

// APIURL is the address of Argo CD's own API.
func (a *ArgoCD) APIURL() string { return a.url + apiRoot }

// APIToken is what clients of Argo CD's own API must show.
func (a *ArgoCD) APIToken() string { return a.apiToken }

// WriteAuthority writes the certificate with which clients know the server.
func (a *ArgoCD) WriteAuthority(path string) error {
	if err := os.WriteFile(path, a.ca, 0o600); err != nil {
		return fmt.Errorf("writing the authority's certificate: %w", err)
	}
	return nil
}

// serveAPI is the front door of Argo CD's own API; address is what comes after /api.
func (a *ArgoCD) serveAPI(w http.ResponseWriter, r *http.Request, address string) {
	parts := strings.Split(strings.TrimPrefix(address, "/v1/"), "/")
	resource := parts[0]
	switch {
	case len(parts) == 3:
		resource = parts[2]
	case resource == "stream" || resource == "":
		resource = strings.Join(parts, "/")
	}
	if r.Header.Get("Authorization") != "Bearer "+a.apiToken {
		writeAPIFailure(w, http.StatusUnauthorized, 16, "invalid session: token signature is invalid")
		return
	}
	if code := a.admitRequest(r, objectQuery{resource: "api/" + resource}); code != 0 {
		writeAPIFailure(w, code, 2, "injected: "+http.StatusText(code))
		return
	}
	a.routeAPI(w, r, parts)
}

// listsByAPI are the lists besides that of Applications, with their resource in Kubernetes.
var listsByAPI = map[string]string{"applicationsets": "applicationsets", "projects": "appprojects"}

// routeAPI answers a request that was admitted.
func (a *ArgoCD) routeAPI(w http.ResponseWriter, r *http.Request, parts []string) {
	get, post := r.Method == http.MethodGet, r.Method == http.MethodPost
	address := strings.Join(parts, "/")
	switch {
	case get && address == "/version":
		writeJSON(w, http.StatusOK, jsonObject{"Version": "v2.14.21+emulated"})
	case get && parts[0] == "account":
		value := "yes"
		if len(parts) > 3 && a.isDenied(parts[3], parts[2]) { // account/can-i/applications/get/…
			value = "no"
		}
		writeJSON(w, http.StatusOK, jsonObject{"value": value})
	case get && address == "applications":
		a.listApplications(w, r)
	case get && address == "stream/applications":
		a.streamApplications(w, r)
	case get && listsByAPI[address] != "":
		a.mu.Lock()
		items := a.recordsOf(listsByAPI[address])
		a.mu.Unlock()
		writeJSON(w, http.StatusOK, jsonObject{"metadata": jsonObject{}, "items": items})
	case get && address == "clusters":
		writeJSON(w, http.StatusOK, jsonObject{"metadata": jsonObject{}, "items": a.listClusters()})
	case get && parts[0] == "applications" && len(parts) == 2:
		a.getApplication(w, r, parts[1])
	case get && parts[0] == "applications" && len(parts) == 3 && parts[2] == "resource-tree":
		a.serveTree(w, r, parts[1])
	case get && parts[0] == "applications" && len(parts) == 3 && parts[2] == "manifests":
		a.serveManifests(w, r, parts[1])
	case post && parts[0] == "applications" && len(parts) == 3 && parts[2] == "sync":
		a.requestSync(w, r, parts[1])
	default:
		writeAPIFailure(w, http.StatusNotFound, 5, "Not Found")
	}
}

// listClusters are the clusters of the Secrets, without what marks those and without
// credentials, and the one that Argo CD runs in.
func (a *ArgoCD) listClusters() []any {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := []any{jsonObject{"name": "in-cluster", "server": "https://kubernetes.default.svc"}}
	for _, raw := range a.recordsOf("secrets") {
		var secret struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Data struct{ Name, Server []byte } `json:"data"`
		}
		if json.Unmarshal(raw, &secret) != nil || secret.Metadata.Labels["argocd.argoproj.io/secret-type"] != "cluster" {
			continue
		}
		delete(secret.Metadata.Labels, "argocd.argoproj.io/secret-type")
		out = append(out, jsonObject{"name": string(secret.Data.Name), "server": string(secret.Data.Server),
			"labels": secret.Metadata.Labels})
	}
	return out
}

// writeAPIFailure answers as the gRPC gateway does; code is gRPC's.
func writeAPIFailure(w http.ResponseWriter, status, code int, message string) {
	writeJSON(w, status, jsonObject{"error": message, "code": code, "message": message})
}

// findByQuery finds the Application that a request's query is about.
func (a *ArgoCD) findByQuery(w http.ResponseWriter, r *http.Request, name string) *application {
	q := r.URL.Query()
	return a.findByProject(w, q.Get("appNamespace"), q.Get("project"), name)
}

// findByProject finds an Application that a request is about. One that isn't there may not
// be seen either, unless the request names its project.
func (a *ArgoCD) findByProject(w http.ResponseWriter, namespace, project, name string) *application {
	app := a.apps[cmp.Or(namespace, "argocd")+"/"+name]
	switch {
	case app != nil && app.appearsAt.IsZero() && (project == "" || project == app.Project):
		return app
	case project == "":
		writeAPIFailure(w, http.StatusForbidden, 7, "permission denied")
	default:
		writeAPIFailure(w, http.StatusNotFound, 5, fmt.Sprintf("applications.argoproj.io %q not found", name))
	}
	return nil
}

// serveTree serves an Application's resource tree.
func (a *ArgoCD) serveTree(w http.ResponseWriter, r *http.Request, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if app := a.findByQuery(w, r, name); app != nil {
		writeJSON(w, http.StatusOK, jsonObject{"nodes": app.listNodes()})
	}
}

// listNodes are the Application's resources, and below each Deployment its ReplicaSet and
// the pods of that.
func (app *application) listNodes() []any {
	nodes := []any{}
	if app.live == nil {
		return nodes
	}
	node := func(group, kind, name string, parent []any) jsonObject {
		n := jsonObject{"version": "v1", "kind": kind, "namespace": app.DestinationNamespace, "name": name, "uid": kind + "-" + name}
		if group != "" {
			n["group"] = group
		}
		if parent != nil {
			n["parentRefs"] = parent
		}
		return n
	}
	reference := func(kind, name string) []any {
		return []any{jsonObject{"group": "apps", "kind": kind, "namespace": app.DestinationNamespace, "name": name,
			"uid": kind + "-" + name}}
	}
	nodes = append(nodes, node("", "ConfigMap", app.Name, nil))
	for _, d := range app.health.resources {
		set := d.name + "-6d5f9c"
		deployment, replicas := node("apps", "Deployment", d.name, nil), node("apps", "ReplicaSet", set, reference("Deployment", d.name))
		deployment["health"], replicas["health"] = healthObject(d.status, d.message), healthObject("Healthy", "")
		nodes = append(nodes, deployment, replicas)
		if d.pod == (podState{}) {
			continue
		}
		for i := range max(app.live.content.replicas[d.name], 1) {
			pod := node("", "Pod", fmt.Sprintf("%s-%d", set, i), reference("ReplicaSet", set))
			pod["health"], pod["info"] = healthObject(d.pod.health, d.pod.message),
				[]any{jsonObject{"name": "Status Reason", "value": d.pod.reason}}
			nodes = append(nodes, pod)
		}
	}
	return nodes
}

func healthObject(status, message string) jsonObject {
	h := jsonObject{"status": status}
	if message != "" {
		h["message"] = message
	}
	return h
}
