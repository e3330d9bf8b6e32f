package emulator

import (
	"encoding/json"
	"maps"
	"strings"
)

// maxHistory is Argo CD's default revisionHistoryLimit.
const maxHistory = 10

// asked is what an Application's object asks its controller for.
type asked struct {
	version   int64 // of the object
	refresh   bool
	operation object
}

// asked reads the Application's object, once a version.
func (a *ArgoCD) asked(app *application) asked {
	rec := a.store.all[objectKey("applications", app.Namespace, app.Name)]
	if rec.version == app.wishes.version {
		return app.wishes
	}
	var x struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Operation object `json:"operation"`
	}
	app.wishes = asked{version: rec.version}
	if json.Unmarshal(rec.raw, &x) == nil {
		_, app.wishes.refresh = x.Metadata.Annotations[refreshAnnotation]
		app.wishes.operation = x.Operation
	}
	return app.wishes
}

func (app *application) source(url string, options map[string]any) object {
	s := object{"repoURL": url, "path": app.Path, "targetRevision": app.Branch}
	maps.Copy(s, options)
	return s
}

func (app *application) destination() object {
	d := object{"namespace": app.DestinationNamespace}
	if strings.Contains(app.Cluster, "://") {
		d["server"] = app.Cluster
	} else {
		d["name"] = app.Cluster
	}
	return d
}

func (app *application) spec(url string) object {
	s := object{"project": app.Project, "source": app.source(url, app.Options), "destination": app.destination()}
	if !app.Manual {
		s["syncPolicy"] = object{"automated": object{}}
	}
	return s
}

// status is what Argo CD writes.
func (a *ArgoCD) status(app *application) object {
	source := app.source(a.repos.CloneURL(app.Repo), app.compared)
	s := object{"controllerNamespace": "argocd", "sourceHydrator": object{}, "sourceType": "Kustomize", "summary": object{}}
	if app.sync != "" {
		s["sync"] = object{
			"status": app.sync, "revision": app.revision,
			"comparedTo": object{"source": source, "destination": app.destination()},
		}
	}
	if !app.reconciled.IsZero() {
		s["reconciledAt"] = a.pace.stamp(app.reconciled)
	}
	h := object{}
	if app.health.status != "" {
		h["status"] = app.health.status
		h["lastTransitionTime"] = a.pace.stamp(app.health.since)
	}
	if app.health.message != "" {
		h["message"] = app.health.message
	}
	s["health"] = h
	if r := app.resources(); len(r) > 0 {
		s["resources"] = r
	}
	if app.live != nil && len(app.live.content.images) > 0 {
		s["summary"] = object{"images": app.live.content.images}
	}
	var conditions []any
	for _, c := range app.conditions {
		conditions = append(conditions, object{"type": c.kind, "message": c.message, "lastTransitionTime": a.pace.stamp(c.since)})
	}
	if len(conditions) > 0 {
		s["conditions"] = conditions
	}
	if len(app.history) > 0 {
		s["history"] = app.history
	}
	if op := app.op; op != nil {
		state := object{
			"operation": op.request, "phase": op.phase, "message": op.message, "startedAt": a.pace.stamp(op.started),
			"syncResult": object{"revision": op.commit, "source": source},
		}
		if !op.at.IsZero() {
			state["finishedAt"] = a.pace.stamp(op.at)
		}
		s["operationState"] = state
	}
	return s
}

// resources are the Application's resources: a Deployment an image, and a
// ConfigMap, which has no health of its own.
func (app *application) resources() []any {
	if app.live == nil {
		return nil
	}
	status := "Synced"
	if app.sync == "OutOfSync" {
		status = "OutOfSync"
	}
	list := []any{object{"kind": "ConfigMap", "version": "v1", "namespace": app.DestinationNamespace, "name": app.Name, "status": "Synced"}}
	for _, r := range app.health.resources {
		h := object{"status": r.status}
		if r.message != "" {
			h["message"] = r.message
		}
		list = append(list, object{
			"group": "apps", "kind": "Deployment", "version": "v1", "namespace": app.DestinationNamespace,
			"name": r.name, "status": status, "health": h,
		})
	}
	return list
}

func (a *ArgoCD) historyEntry(app *application) object {
	id := 0
	if n := len(app.history); n > 0 {
		id = app.history[n-1].(object)["id"].(int) + 1
	}
	return object{
		"id": id, "revision": app.op.commit, "deployStartedAt": a.pace.stamp(app.op.started), "deployedAt": a.pace.stamp(app.op.at),
		"source": app.source(a.repos.CloneURL(app.Repo), app.Options), "initiatedBy": object{"automated": app.op.automated},
	}
}

func (app *application) remember(entry object) {
	app.history = append(app.history, entry)
	if over := len(app.history) - maxHistory; over > 0 {
		app.history = app.history[over:]
	}
}
