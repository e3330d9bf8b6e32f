package argocd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// maxVanished is how many Applications are asked for by themselves that a list has no more. The
// others' end isn't known until a later list. Where a project's first one may not be seen, that is
// taken to be the reason for its others.
const maxVanished = 200

// findHidden says which of the known Applications that a list doesn't have may still exist, and why
// that isn't known. A list silently leaves out what the token may not see, a whole project or some
// names. Asked for by itself, a deleted one isn't found, and one that may not be seen is forbidden.
func (as *apiStream) findHidden(ctx context.Context, began time.Time, listed map[string]bool) map[string]string {
	vanished := as.listVanished(began, listed)
	if len(vanished) == 0 {
		return nil
	}
	hidden, byProject := map[string]string{}, map[string]string{}
	left := maxVanished
	for i := range vanished {
		app := &vanished[i]
		key, why, isHidden, failed := app.Namespace+"/"+app.Name, "", true, false
		if left > 0 {
			why, isHidden, failed = as.checkHidden(ctx, app)
			left--
			if failed {
				left = 0 // the others would fail too, and each take its time
			}
			as.lastVanished = key
		} else if why = byProject[app.Project]; why == "" {
			why = "it is no longer listed, nor are many others; whether it is gone is looked at with a later list"
		}
		if isHidden {
			hidden[key] = why
			byProject[app.Project] = cmp.Or(byProject[app.Project], why)
		}
	}
	return hidden
}

// listVanished are the Applications that a list no longer has and no event has brought since it
// began. First come those of each project once, then the others from behind the one that was asked
// for last, so that each has its turn.
func (as *apiStream) listVanished(began time.Time, listed map[string]bool) []verification.App {
	as.order.Lock()
	defer as.order.Unlock()
	keys := slices.DeleteFunc(as.sink.listKeys(""), func(key string) bool {
		return listed[key] || !as.versions[key].at.Before(began)
	})
	slices.Sort(keys)
	next, _ := slices.BinarySearch(keys, as.lastVanished+"\x00")
	var first, rest []verification.App
	seen := map[string]bool{}
	for _, key := range slices.Concat(keys[next:], keys[:next]) {
		namespace, name, _ := strings.Cut(key, "/")
		switch app, ok := as.apps.getApplication(namespace, name); {
		case !ok:
		case seen[app.Project]:
			rest = append(rest, *app)
		default:
			seen[app.Project] = true
			first = append(first, *app)
		}
	}
	return append(first, rest...)
}

// checkHidden looks up an Application that isn't listed, and says why it can't be told that it is
// gone; failed: because it couldn't be asked.
func (as *apiStream) checkHidden(ctx context.Context, app *verification.App) (why string, isHidden, failed bool) {
	raw, err := as.client.Application(ctx, app.Namespace, app.Name, app.Project, false)
	switch {
	case api.IsNotFound(err):
		return "", false, false
	case api.IsForbidden(err):
		return fmt.Sprintf("the token of %s may no longer see it; allow it to its account in argocd-rbac-cm: p, <role>, %s, get, %s, allow",
			as.client.Source(), api.Applications, api.AllOf(api.Applications, app.Project)), true, false
	case err != nil:
		return fmt.Sprintf("it is no longer listed, and whether it is gone can't be told: %v", err), true, true
	}
	as.takeEvent(api.Event{Type: "MODIFIED", Application: raw}) // it has just come back
	return "", false, false
}

// markUnreadable notes of an Application that nobody knows how it is by now.
func (as *appStore) markUnreadable(key, why string) {
	as.changeMu.Lock()
	defer as.changeMu.Unlock()
	as.mu.RLock()
	prev := as.apps[key]
	as.mu.RUnlock()
	if prev == nil {
		return
	}
	next := *prev
	next.Conditions = []verification.Condition{{Type: unreadableCondition, Message: clipMessage(why)}}
	as.replaceIfChanged(key, prev, next)
}

// noteHiddenProjects notes whether the token may see all projects: of one that is listed without
// the others nobody knows whether those exist.
func (w *Watcher) noteHiddenProjects(ctx context.Context) error {
	may, err := w.api.MaySee(ctx, api.Projects, "")
	if err != nil {
		return fmt.Errorf("ask whether all projects may be seen: %w", err)
	}
	var why error
	if !may {
		why = fmt.Errorf("the token of %s sees only some projects, so whether others exist isn't known; allow them to its account in "+
			"argocd-rbac-cm: p, <role>, %s, get, %s, allow", w.api.Source(), api.Projects, api.AllOf(api.Projects, ""))
	}
	w.projects.setPartial(why)
	return nil
}
