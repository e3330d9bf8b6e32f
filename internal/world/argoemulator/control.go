package argoemulator

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"go.uber.org/zap"
)

// reconcileAll is one look of the controller at every Application.
func (a *ArgoCD) reconcileAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	heads := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(a.apps)) {
		app := a.apps[key]
		if !app.appearsAt.IsZero() {
			if now.Before(app.appearsAt) {
				continue
			}
			if err := a.createObject(app, now); err != nil {
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
		a.reconcileApplication(app, heads[branch], now)
	}
}

// reconcileApplication lets one Application go on.
func (a *ArgoCD) reconcileApplication(app *application, head string, now time.Time) {
	if head != app.branchHead {
		if app.branchHead == app.noticedHead {
			app.headMovedAt = now
		}
		app.branchHead = head
	}
	a.handleOperation(app, a.readRequests(app).operation, now)
	a.finishComparison(app, now)
	a.startComparison(app, a.readRequests(app).refresh, now)
	a.reportResourceHealth(app, now)
	if app.dirty {
		a.updateObject(app, nil)
	}
}

// startComparison begins one when there is a reason: a refresh was asked for, a
// push was noticed, or it is time. Only the first two look at Git.
func (a *ArgoCD) startComparison(app *application, refresh bool, now time.Time) {
	noticed := app.branchHead != app.noticedHead && !now.Before(app.headMovedAt.Add(a.timings.Notice))
	due := app.compareNext || app.reconciled.IsZero() || a.timings.Resync > 0 && !now.Before(app.resyncAt)
	if app.comparing != nil || !refresh && !noticed && !due {
		return
	}
	app.compareNext = false
	if refresh || noticed {
		app.noticedHead = app.branchHead
	}
	app.comparing = &comparison{endsAt: now.Add(a.timings.Compare), commit: app.noticedHead, options: app.Options,
		health: a.actualHealth(app, now), refresh: refresh}
}

// finishComparison reports a comparison that is over: whether it is synced now,
// and how healthy it was when the comparison began.
func (a *ArgoCD) finishComparison(app *application, now time.Time) {
	c := app.comparing
	if c == nil || now.Before(c.endsAt) {
		return
	}
	app.comparing, app.comparedOptions = nil, c.options
	app.resyncAt, app.reconciled, app.dirty = now.Add(a.timings.Resync), now, true
	want, err := a.readContent(app, c.commit)
	problem := app.fault.ComparisonError
	switch {
	case problem != "":
	case err != nil:
		problem = "Failed to load target state: " + err.Error()
	case want.missing:
		problem = fmt.Sprintf("Failed to load target state: failed to generate manifest for source 1 of 1: rpc error: code = Unknown "+
			"desc = %s: app path does not exist", app.Path)
	}
	app.setCondition("ComparisonError", problem, now)
	a.reportHealth(app, c.health, now)
	app.revision = c.commit
	switch {
	case problem != "":
		app.sync = "Unknown"
	case app.live != nil && app.live.content.id == want.id:
		app.sync = "Synced"
	default:
		app.sync = "OutOfSync"
	}
	a.updateObject(app, func(x jsonObject) {
		if c.refresh {
			if notes, ok := metadataOf(x)["annotations"].(jsonObject); ok {
				delete(notes, refreshAnnotation)
				if len(notes) == 0 {
					delete(metadataOf(x), "annotations")
				}
			}
		}
		a.autoSync(app, x, now)
	})
}

// autoSync asks for a sync where one is automated. A commit whose automated sync
// failed is not tried again.
func (a *ArgoCD) autoSync(app *application, x jsonObject, now time.Time) {
	if app.sync != "OutOfSync" || app.Manual || x["operation"] != nil || app.isSyncing() {
		return
	}
	if app.failedCommit == app.revision {
		app.setCondition("SyncError", fmt.Sprintf("Failed sync attempt to %s: %s", app.revision, app.op.message), now)
		return
	}
	x["operation"] = jsonObject{"sync": jsonObject{"revision": app.revision}, "initiatedBy": jsonObject{"automated": true},
		"retry": jsonObject{}}
}

func (app *application) isSyncing() bool { return app.op != nil && app.op.phase == "Running" }

// handleOperation begins the sync that .operation asks for, and ends the one that runs.
func (a *ArgoCD) handleOperation(app *application, request jsonObject, now time.Time) {
	switch {
	case app.isSyncing():
		if !now.Before(app.op.due) {
			a.finishSync(app, now)
		}
	case request != nil:
		a.startSync(app, request, now)
	}
}

func (a *ArgoCD) startSync(app *application, request jsonObject, now time.Time) {
	sync, _ := request["sync"].(jsonObject)
	commit, _ := sync["revision"].(string)
	if commit == "" || commit == app.Branch || commit == "HEAD" {
		commit = app.branchHead
	}
	by, _ := request["initiatedBy"].(jsonObject)
	app.op = &operation{
		request: request, commit: commit, phase: "Running", message: "waiting for completion of tasks",
		started: now, due: now.Add(a.timings.Sync), automated: by["automated"] == true,
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
	want, err := a.readContent(app, op.commit)
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
			app.live = &rollout{content: want, startedAt: now}
		}
		app.sync, app.revision, app.reconciled = "Synced", op.commit, now
		app.failedCommit = ""
		app.addHistory(a.historyEntry(app))
	}
	if op.phase != "Succeeded" && op.automated {
		app.failedCommit = op.commit
	}
	app.compareNext = op.phase != "Succeeded" || op.commit != app.noticedHead
	app.dirty = true
	a.updateObject(app, func(x jsonObject) { delete(x, "operation") })
}

// reportResourceHealth reports health that changed by itself. As in the real one it
// is no comparison: neither reconciledAt nor the revision move.
func (a *ArgoCD) reportResourceHealth(app *application, now time.Time) {
	if app.reconciled.IsZero() || app.live != nil && !app.live.preexisting && now.Before(app.live.startedAt.Add(a.timings.HealthLag)) {
		return
	}
	a.reportHealth(app, a.actualHealth(app, now), now)
}

// reportHealth takes over a health, or the one that a fault wants.
func (a *ArgoCD) reportHealth(app *application, h health, now time.Time) {
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
