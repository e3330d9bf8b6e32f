package argoemulator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// serveManifests renders an Application at a revision of its source, as it runs but for that.
func (a *ArgoCD) serveManifests(w http.ResponseWriter, r *http.Request, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	app := a.findByQuery(w, r, name)
	if app == nil {
		return
	}
	commit, err := cmp.Or(r.URL.Query().Get("revision"), app.noticedHead), error(nil)
	var c content
	switch c, err = a.readContent(app, commit); {
	case err == nil && app.fault.RenderError != "":
		err = fmt.Errorf("%s", app.fault.RenderError)
	case err == nil && c.missing:
		err = fmt.Errorf("%s: app path does not exist", app.Path)
	}
	if err != nil {
		writeAPIFailure(w, http.StatusInternalServerError, 2, "error generating manifests: rpc error: code = Unknown desc = "+err.Error())
		return
	}
	manifests := []string{}
	for _, x := range app.renderObjects(&c) {
		metadata := metadataOf(x)
		group, _, ok := strings.Cut(x["apiVersion"].(string), "/")
		if !ok {
			group = ""
		}
		metadata["annotations"] = jsonObject{"argocd.argoproj.io/tracking-id": fmt.Sprintf("%s:%s/%s:%s/%s", app.Name, group, x["kind"],
			app.DestinationNamespace, metadata["name"])}
		raw, err := json.Marshal(x)
		if err != nil {
			writeAPIFailure(w, http.StatusInternalServerError, 2, err.Error())
			return
		}
		manifests = append(manifests, string(raw))
	}
	writeJSON(w, http.StatusOK, jsonObject{"manifests": manifests})
}

// renderObjects are the objects that an Application deploys. A Secret's data are hidden, as
// Argo CD's API hides them.
func (app *application) renderObjects(c *content) []jsonObject {
	out := []jsonObject{
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": jsonObject{"name": app.Name},
			"data": jsonObject{"images": strings.Join(c.images, "\n")}},
		{"apiVersion": "v1", "kind": "Secret", "metadata": jsonObject{"name": app.Name}, "data": jsonObject{"password": "++++++++"}},
	}
	for _, image := range c.images {
		name := deploymentName(image)
		out = append(out, jsonObject{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": jsonObject{"name": name},
			"spec": jsonObject{
				"replicas": max(c.replicas[name], 1),
				"template": jsonObject{"spec": jsonObject{"containers": []any{jsonObject{"name": name, "image": image}}}}}})
	}
	return out
}
