package emulator

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"go.uber.org/zap"
)

// step is one look of the controller at every Application.
func (a *ArgoCD) step() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	heads := map[string]string{}
	for _, key := range sortedKeys(a.apps) {
		app := a.apps[key]
		if !app.appears.IsZero() {
			if now.Before(app.appears) {
				continue
			}
			if err := a.create(app, now); err != nil {
				a.log.Error("an Application can't be created", zap.String("application", key), zap.Error(err))
			}
		}
		branch := app.Repo + " " + app.Branch
		if _, ok := heads[branch]; !ok {
			head, err := a.repos.Head(app.Repo, app.Branch)
			if err != nil {
				a.log.Error("a branch can't be read", zap.String("application", key), zap.Error(err))
				continue
			}
			heads[branch] = head
		}
		a.look(app, heads[branch], now)
	}
}

// look lets one Application go on.
func (a *ArgoCD) look(app *application, head string, now time.Time) {
	if head != app.latest {
		if app.latest == app.noticed {
			app.moved = now
		}
		app.latest = head
	}
	a.operate(app, a.asked(app).operation, now)
	a.finishComparison(app, now)
	a.startComparison(app, a.asked(app).refresh, now)
	a.watchResources(app, now)
	if app.dirty {
		a.write(app, nil)
	}
}

// startComparison begins one when there is a reason: a refresh was asked for, a
// push was noticed, or it is time. Only the first two look at Git.
func (a *ArgoCD) startComparison(app *application, refresh bool, now time.Time) {
	noticed := app.latest != app.noticed && !now.Before(app.moved.Add(a.pace.Notice))
	due := app.soon || app.reconciled.IsZero() || a.pace.Resync > 0 && !now.Before(app.resync)
	if app.comparing != nil || !refresh && !noticed && !due {
		return
	}
	app.soon = false
	if refresh || noticed {
		app.noticed = app.latest
	}
	app.comparing = &comparison{ends: now.Add(a.pace.Compare), commit: app.noticed, options: app.Options, health: a.truth(app, now), refresh: refresh}
}

// finishComparison reports a comparison that is over: whether it is synced now,
// and how healthy it was when the comparison began.
func (a *ArgoCD) finishComparison(app *application, now time.Time) {
	c := app.comparing
	if c == nil || now.Before(c.ends) {
		return
	}
	app.comparing, app.compared = nil, c.options
	app.resync, app.reconciled, app.dirty = now.Add(a.pace.Resync), now, true
	want, err := a.content(app, c.commit)
	problem := app.fault.ComparisonError
	switch {
	case problem != "":
	case err != nil:
		problem = "Failed to load target state: " + err.Error()
	case want.missing:
		problem = fmt.Sprintf("Failed to load target state: failed to generate manifest for source 1 of 1: rpc error: code = Unknown desc = %s: app path does not exist", app.Path)
	}
	app.setCondition("ComparisonError", problem, now)
	a.report(app, c.health, now)
	app.revision = c.commit
	switch {
	case problem != "":
		app.sync = "Unknown"
	case app.live != nil && app.live.content.id == want.id:
		app.sync = "Synced"
	default:
		app.sync = "OutOfSync"
	}
	a.write(app, func(x object) {
		if c.refresh {
			if notes, ok := meta(x)["annotations"].(object); ok {
				delete(notes, refreshAnnotation)
				if len(notes) == 0 {
					delete(meta(x), "annotations")
				}
			}
		}
		a.autoSync(app, x, now)
	})
}

// autoSync asks for a sync where one is automated. A commit whose automated sync
// failed is not tried again.
func (a *ArgoCD) autoSync(app *application, x object, now time.Time) {
	if app.sync != "OutOfSync" || app.Manual || x["operation"] != nil || app.running() {
		return
	}
	if app.failed == app.revision {
		app.setCondition("SyncError", fmt.Sprintf("Failed sync attempt to %s: %s", app.revision, app.op.message), now)
		return
	}
	x["operation"] = object{"sync": object{"revision": app.revision}, "initiatedBy": object{"automated": true}, "retry": object{}}
}

func (app *application) running() bool { return app.op != nil && app.op.phase == "Running" }

// operate begins the sync that .operation asks for, and ends the one that runs.
func (a *ArgoCD) operate(app *application, request object, now time.Time) {
	switch {
	case app.running():
		if !now.Before(app.op.due) {
			a.finishSync(app, now)
		}
	case request != nil:
		a.startSync(app, request, now)
	}
}

func (a *ArgoCD) startSync(app *application, request object, now time.Time) {
	sync, _ := request["sync"].(object)
	commit, _ := sync["revision"].(string)
	if commit == "" || commit == app.Branch || commit == "HEAD" {
		commit = app.latest
	}
	by, _ := request["initiatedBy"].(object)
	app.op = &operation{
		request: request, commit: commit, phase: "Running", message: "waiting for completion of tasks",
		started: now, due: now.Add(a.pace.Sync), automated: by["automated"] == true,
	}
	app.setCondition("SyncError", "", now)
	app.dirty = true
}

// finishSync ends the running sync. What Argo CD reports in this moment is the
// field's most repeated trap: Synced with the new commit, a fresh reconciledAt,
// and the health from before.
func (a *ArgoCD) finishSync(app *application, now time.Time) {
	op := app.op
	op.at = now
	want, err := a.content(app, op.commit)
	switch {
	case app.fault.SyncError != "":
		op.phase, op.message = "Failed", app.fault.SyncError
	case err != nil:
		op.phase, op.message = "Error", err.Error()
	case want.missing:
		op.phase, op.message = "Error", "ComparisonError: "+app.Path+": app path does not exist"
	default:
		op.phase, op.message = "Succeeded", "successfully synced (all tasks run)"
		if app.live == nil || app.live.content.id != want.id {
			app.live = &rollout{content: want, at: now}
		}
		app.sync, app.revision, app.reconciled = "Synced", op.commit, now
		app.failed = ""
		app.remember(a.historyEntry(app))
	}
	if op.phase != "Succeeded" && op.automated {
		app.failed = op.commit
	}
	app.soon = op.phase != "Succeeded" || op.commit != app.noticed
	app.dirty = true
	a.write(app, func(x object) { delete(x, "operation") })
}

// watchResources reports health that changed by itself. As in the real one it
// is no comparison: neither reconciledAt nor the revision move.
func (a *ArgoCD) watchResources(app *application, now time.Time) {
	if app.reconciled.IsZero() || app.live != nil && !app.live.ready && now.Before(app.live.at.Add(a.pace.HealthLag)) {
		return
	}
	a.report(app, a.truth(app, now), now)
}

// report takes over a health, or the one that a fault wants.
func (a *ArgoCD) report(app *application, h health, now time.Time) {
	if app.fault.Health != "" {
		h = health{status: app.fault.Health, message: app.fault.Message, resources: h.resources}
		if name := app.fault.Resource; name != "" {
			own := slices.DeleteFunc(slices.Clone(h.resources), func(r resource) bool { return r.name == name })
			h.resources = append(own, resource{name: name, status: h.status, message: h.message})
		}
	}
	h.since = app.health.since
	if h.status != app.health.status || h.since.IsZero() {
		h.since = now
	}
	if !reflect.DeepEqual(h, app.health) {
		app.health, app.dirty = h, true
	}
}

// setCondition sets a condition; an empty message removes it.
func (app *application) setCondition(kind, message string, now time.Time) {
	var kept []condition
	for _, c := range app.conditions {
		if c.kind == kind && c.message == message {
			return
		}
		if c.kind != kind {
			kept = append(kept, c)
		} else {
			app.dirty = true
		}
	}
	if message != "" {
		kept = append(kept, condition{kind, message, now})
		app.dirty = true
	}
	app.conditions = kept
}
