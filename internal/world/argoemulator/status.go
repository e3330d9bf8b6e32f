package argoemulator

import (
	"encoding/json"
	"maps"
	"strings"
)

// maxHistory is Argo CD's default revisionHistoryLimit.
const maxHistory = 10

// pendingRequests is what an Application's object asks its controller for.
type pendingRequests struct {
	version   int64 // of the object
	refresh   bool
	operation jsonObject
}

// readRequests reads the Application's object, once a version.
func (a *ArgoCD) readRequests(app *application) pendingRequests {
	rec := a.store.records[objectKey("applications", app.Namespace, app.Name)]
	if rec.version == app.requested.version {
		return app.requested
	}
	var x struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Operation jsonObject `json:"operation"`
	}
	app.requested = pendingRequests{version: rec.version}
	if json.Unmarshal(rec.raw, &x) == nil {
		_, app.requested.refresh = x.Metadata.Annotations[refreshAnnotation]
		app.requested.operation = x.Operation
	}
	return app.requested
}

func (app *application) buildSource(url string, options map[string]any) jsonObject {
	s := jsonObject{"repoURL": url, "path": app.Path, "targetRevision": app.Branch}
	maps.Copy(s, options)
	return s
}

func (app *application) buildDestination() jsonObject {
	d := jsonObject{"namespace": app.DestinationNamespace}
	if strings.Contains(app.Cluster, "://") {
		d["server"] = app.Cluster
	} else {
		d["name"] = app.Cluster
	}
	return d
}

func (app *application) buildSpec(url string) jsonObject {
	s := jsonObject{"project": app.Project, "source": app.buildSource(url, app.Options), "destination": app.buildDestination()}
	if !app.Manual {
		s["syncPolicy"] = jsonObject{"automated": jsonObject{}}
	}
	return s
}

// buildStatus is what Argo CD writes.
func (a *ArgoCD) buildStatus(app *application) jsonObject {
	source := app.buildSource(a.repos.CloneURL(app.Repo), app.comparedOptions)
	s := jsonObject{"controllerNamespace": "argocd", "sourceHydrator": jsonObject{}, "sourceType": "Kustomize", "summary": jsonObject{}}
	if app.sync != "" {
		s["sync"] = jsonObject{
			"status": app.sync, "revision": app.revision,
			"comparedTo": jsonObject{"source": source, "destination": app.buildDestination()},
		}
	}
	if !app.reconciled.IsZero() {
		s["reconciledAt"] = a.timings.formatTime(app.reconciled)
	}
	h := jsonObject{}
	if app.health.status != "" {
		h["status"] = app.health.status
		h["lastTransitionTime"] = a.timings.formatTime(app.health.since)
	}
	if app.health.message != "" {
		h["message"] = app.health.message
	}
	s["health"] = h
	if r := app.listResources(); len(r) > 0 {
		s["resources"] = r
	}
	if images := app.listImages(); len(images) > 0 {
		s["summary"] = jsonObject{"images": images}
	}
	var conditions []any
	for _, c := range app.conditions {
		conditions = append(conditions, jsonObject{"type": c.kind, "message": c.message,
			"lastTransitionTime": a.timings.formatTime(c.since)})
	}
	if len(conditions) > 0 {
		s["conditions"] = conditions
	}
	if len(app.history) > 0 {
		s["history"] = app.history
	}
	if op := app.op; op != nil {
		result := jsonObject{"revision": op.commit, "source": source}
		if op.phase == "Failed" {
			result["resources"] = []any{jsonObject{
				"group": "apps", "kind": "Deployment", "version": "v1", "namespace": app.DestinationNamespace, "name": app.Name,
				"status": "SyncFailed", "syncPhase": "Sync", "message": op.message,
			}}
		}
		state := jsonObject{
			"operation": op.request, "phase": op.phase, "message": op.message, "startedAt": a.timings.formatTime(op.started),
			"syncResult": result,
		}
		if !op.at.IsZero() {
			state["finishedAt"] = a.timings.formatTime(op.at)
		}
		s["operationState"] = state
	}
	return s
}

// listImages are those of the Application's pods.
func (app *application) listImages() []string {
	switch {
	case app.fault.Images != nil:
		return app.fault.Images
	case app.live != nil:
		return app.live.content.images
	}
	return nil
}

// listResources are the Application's resources: a Deployment an image, and a
// ConfigMap, which has no health of its own.
func (app *application) listResources() []any {
	if app.live == nil {
		return nil
	}
	status := "Synced"
	if app.sync == "OutOfSync" {
		status = "OutOfSync"
	}
	list := []any{jsonObject{"kind": "ConfigMap", "version": "v1", "namespace": app.DestinationNamespace, "name": app.Name,
		"status": "Synced"}}
	for _, r := range app.health.resources {
		h := jsonObject{"status": r.status}
		if r.message != "" {
			h["message"] = r.message
		}
		list = append(list, jsonObject{
			"group": "apps", "kind": "Deployment", "version": "v1", "namespace": app.DestinationNamespace,
			"name": r.name, "status": status, "health": h,
		})
	}
	for _, name := range app.children {
		list = append(list, jsonObject{"group": "argoproj.io", "kind": "Application", "version": "v1alpha1", "namespace": app.Namespace,
			"name": name, "status": "Synced"})
	}
	return list
}

func (a *ArgoCD) historyEntry(app *application) jsonObject {
	id := 0
	if n := len(app.history); n > 0 {
		id = app.history[n-1].(jsonObject)["id"].(int) + 1
	}
	return jsonObject{
		"id": id, "revision": app.op.commit, "deployStartedAt": a.timings.formatTime(app.op.started),
		"deployedAt": a.timings.formatTime(app.op.at),
		"source":     app.buildSource(a.repos.CloneURL(app.Repo), app.Options), "initiatedBy": jsonObject{"automated": app.op.automated},
	}
}

func (app *application) addHistory(entry jsonObject) {
	app.history = append(app.history, entry)
	if over := len(app.history) - maxHistory; over > 0 {
		app.history = app.history[over:]
	}
}
