package argocd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// maxVanished is how many Applications are asked for by themselves that a list has no more. Of
// others what was found out about their project counts.
const maxVanished = 20

// findHidden says which of the known Applications that a list doesn't have needn't be gone, and
// why that isn't known: a list leaves out, without a word, what the token may not see. Asked
// for by itself, one that is gone isn't found, and one that may not be seen is forbidden.
func (f *apiStream) findHidden(ctx context.Context, began time.Time, listed map[string]bool) map[string]string {
	vanished := f.listVanished(began, listed)
	if len(vanished) == 0 {
		return nil
	}
	hidden, byProject, lookedUp := map[string]string{}, map[string]string{}, map[string]bool{}
	for i := range vanished {
		app := &vanished[i]
		key, why, isHidden := app.Namespace+"/"+app.Name, "", false
		if i < maxVanished {
			if why, isHidden = f.checkHidden(ctx, app); isHidden {
				byProject[app.Project] = why
			}
			lookedUp[app.Project] = true
		} else if why, isHidden = byProject[app.Project]; !isHidden && !lookedUp[app.Project] {
			why, isHidden = fmt.Sprintf("more than %d projects' Applications are no longer listed at once; whether it is gone is looked at later", maxVanished), true
		}
		if isHidden {
			hidden[key] = why
		}
	}
	return hidden
}

// listVanished are the Applications that a list has no more and no event has brought since it
// began, first one of each project.
func (f *apiStream) listVanished(began time.Time, listed map[string]bool) []verification.App {
	f.order.Lock()
	defer f.order.Unlock()
	keys := slices.DeleteFunc(f.sink.listKeys(""), func(key string) bool {
		return listed[key] || !f.versions[key].at.Before(began)
	})
	slices.Sort(keys)
	var first, rest []verification.App
	seen := map[string]bool{}
	for _, key := range keys {
		namespace, name, _ := strings.Cut(key, "/")
		switch app, ok := f.apps.getApplication(namespace, name); {
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

// checkHidden looks up an Application that isn't listed, and says why it can't be told that it is gone.
func (f *apiStream) checkHidden(ctx context.Context, app *verification.App) (why string, isHidden bool) {
	raw, err := f.client.Application(ctx, app.Namespace, app.Name, app.Project, false)
	switch {
	case api.IsNotFound(err):
		return "", false
	case api.IsForbidden(err):
		return fmt.Sprintf("the token of %s may no longer see it; allow it to its account in argocd-rbac-cm: p, <role>, %s, get, %s, allow", f.client.Source(), api.Applications, api.AllOf(api.Applications, app.Project)), true
	case err != nil:
		return fmt.Sprintf("it is no longer listed, and whether it is gone can't be told: %v", err), true
	}
	f.takeEvent(api.Event{Type: "MODIFIED", Application: raw}) // it has just come back
	return "", false
}

// markUnreadable notes of an Application that nobody knows how it is by now.
func (s *appStore) markUnreadable(key, why string) {
	s.changeMu.Lock()
	defer s.changeMu.Unlock()
	s.mu.RLock()
	prev := s.apps[key]
	s.mu.RUnlock()
	if prev == nil {
		return
	}
	next := *prev
	next.Conditions = []verification.Condition{{Type: unreadableCondition, Message: clipMessage(why)}}
	s.replaceIfChanged(key, prev, next)
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
		why = fmt.Errorf("the token of %s sees only some projects, so whether others exist isn't known; allow them to its account in argocd-rbac-cm: p, <role>, %s, get, %s, allow", w.api.Source(), api.Projects, api.AllOf(api.Projects, ""))
	}
	w.projects.setPartial(why)
	return nil
}
