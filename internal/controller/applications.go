package controller

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// applicationIndex knows which units a change in an Argo CD concerns. It is only
// about latency: what it doesn't know is found by the next sweep.
type applicationIndex struct {
	mu        sync.Mutex
	last      map[applicationID]verification.App // what was last heard of each
	unsettled map[string]map[applicationID]bool  // by Argo CD and name: those of them that haven't come to rest
	units     map[string]map[wake.Key]bool       // by Argo CD and name: whose target it is
	indexed   map[string]*branch.Snapshot        // by repository: of what units has its targets
	// by unit: the Applications, by Argo CD and name, of which even a mere reconciliation is news
	awaiting map[wake.Key]map[string]bool
	// by unit that is being evaluated: the Applications, by Argo CD and name, that were merely
	// reconciled meanwhile
	passed      map[wake.Key]map[string]bool
	recent      map[wake.Key]recentStates    // by unit: the states that were news for it of late
	children    map[wake.Key]map[string]bool // by unit: the Applications, by Argo CD and name, below its targets
	unreachable map[string]map[wake.Key]bool // by Argo CD: units that were evaluated while it couldn't be asked
}

// applicationID names an Application among all Argo CDs.
type applicationID struct{ argocd, namespace, name string }

// applicationName is what a target knows of its Application: not the namespace.
func applicationName(argocd, name string) string { return argocd + "/" + name }

func newApplicationIndex() *applicationIndex {
	return &applicationIndex{last: map[applicationID]verification.App{}, unsettled: map[string]map[applicationID]bool{},
		units: map[string]map[wake.Key]bool{}, indexed: map[string]*branch.Snapshot{}, awaiting: map[wake.Key]map[string]bool{},
		passed: map[wake.Key]map[string]bool{}, recent: map[wake.Key]recentStates{}, children: map[wake.Key]map[string]bool{},
		unreachable: map[string]map[wake.Key]bool{}}
}

// keysOfChange are the units that an Application's new state, heard of now, is news for. A mere
// reconciliation, also one of a newer commit without a change for the Application, only concerns
// units that wait for it: after a push every one has one. That somebody asked for one interests
// nobody. The state comes with its digest where there are such units; there is none of a deletion.
func (ai *applicationIndex) keysOfChange(a verification.App, deleted bool, now time.Time) (keys []wake.Key, state string) {
	id := applicationID{a.ArgoCD, a.Namespace, a.Name}
	ai.mu.Lock()
	defer ai.mu.Unlock()
	last, known := ai.last[id]
	if deleted {
		delete(ai.last, id)
	} else {
		ai.last[id] = a
	}
	ai.noteSettled(id, deleted || a.IsSettled())
	matters := !known || deleted || !reflect.DeepEqual(withoutComparison(last), withoutComparison(a))
	if !matters && !wasCompared(&last, &a) {
		return nil, ""
	}
	name := applicationName(id.argocd, id.name)
	for _, names := range ai.passed {
		names[name] = true
	}
	for k := range ai.units[name] {
		if matters || ai.awaiting[k][name] {
			keys = append(keys, k)
		}
	}
	for k, names := range ai.children {
		if names[name] && (matters || ai.awaiting[k][name]) && !ai.units[name][k] {
			keys = append(keys, k)
		}
	}
	if !deleted && len(keys) > 0 {
		state = digestApp(&a)
	}
	for _, k := range keys {
		ai.noteState(k, id, state, now)
	}
	return keys, state
}

// noteSettled notes whether an Application has come to rest. The caller holds the lock.
func (ai *applicationIndex) noteSettled(id applicationID, settled bool) {
	name := applicationName(id.argocd, id.name)
	switch of := ai.unsettled[name]; {
	case !settled && of == nil:
		ai.unsettled[name] = map[applicationID]bool{id: true}
	case !settled:
		of[id] = true
	default:
		if delete(of, id); len(of) == 0 {
			delete(ai.unsettled, name)
		}
	}
}

// isAwaiting says that a unit waits for an Application, by Argo CD and name.
func (ai *applicationIndex) isAwaiting(key wake.Key, name string) bool {
	ai.mu.Lock()
	defer ai.mu.Unlock()
	return ai.awaiting[key][name]
}

// isAwaitedSettled says that a unit waits for Applications, and that all of them have come to
// rest: nothing that it waits for is still to come.
func (ai *applicationIndex) isAwaitedSettled(key wake.Key) bool {
	ai.mu.Lock()
	defer ai.mu.Unlock()
	for name := range ai.awaiting[key] {
		if len(ai.unsettled[name]) > 0 {
			return false
		}
	}
	return len(ai.awaiting[key]) > 0
}

// keysOfTarget are the units whose target an Application is.
func (ai *applicationIndex) keysOfTarget(a *verification.App) []wake.Key {
	ai.mu.Lock()
	defer ai.mu.Unlock()
	return slices.Collect(maps.Keys(ai.units[applicationName(a.ArgoCD, a.Name)]))
}

// setChildren notes which Applications are below a unit's targets.
func (ai *applicationIndex) setChildren(key wake.Key, names map[string]bool) {
	ai.mu.Lock()
	defer ai.mu.Unlock()
	delete(ai.children, key)
	if len(names) > 0 {
		ai.children[key] = names
	}
}

// withoutComparison is an Application without what every comparison sets anew.
func withoutComparison(a verification.App) verification.App {
	a.ReconciledAt, a.RefreshedAt, a.RefreshPending, a.Revisions = time.Time{}, time.Time{}, false, nil
	return a
}

// wasCompared says that Argo CD compared an Application between two of its states. Its
// times are of whole seconds.
func wasCompared(last, next *verification.App) bool {
	return !last.ReconciledAt.Equal(next.ReconciledAt) || last.RefreshPending && !next.RefreshPending ||
		!slices.Equal(last.Revisions, next.Revisions)
}

// setTargets records which Applications belong to a repository's targets, before any of its units
// is evaluated: another process may have run all of its woken keys so far.
func (ai *applicationIndex) setTargets(s *branch.Snapshot, argocdOf func(*appset.Target) string) {
	ai.mu.Lock()
	defer ai.mu.Unlock()
	if ai.indexed[s.Repo.ID] == s {
		return
	}
	ai.indexed[s.Repo.ID] = s
	for name, keys := range ai.units {
		maps.DeleteFunc(keys, func(k wake.Key, _ bool) bool { return k.Repository == s.Repo.ID })
		if len(keys) == 0 {
			delete(ai.units, name)
		}
	}
	known := map[wake.Key]bool{}
	for _, p := range s.Pipelines {
		for _, u := range p.Units {
			key := wake.ForUnit(s.RunsAs(u.Unit))
			known[key] = true
			for _, env := range u.Envs {
				for i := range env.Targets {
					name := applicationName(argocdOf(&env.Targets[i]), env.Targets[i].Name)
					if ai.units[name] == nil {
						ai.units[name] = map[wake.Key]bool{}
					}
					ai.units[name][key] = true
				}
			}
		}
	}
	maps.DeleteFunc(ai.recent, func(k wake.Key, _ recentStates) bool { return k.Repository == s.Repo.ID && !known[k] })
}

// beginLook records that a unit is about to be evaluated. Only the evaluation tells for which
// Applications it waits, and one of these may be reconciled meanwhile. Another process may have
// evaluated it before, without this one's knowledge. It gives the digests of recent states, none of
// which is newer than the evaluated state.
func (ai *applicationIndex) beginLook(key wake.Key, now time.Time) (states []string) {
	ai.mu.Lock()
	defer ai.mu.Unlock()
	ai.passed[key] = map[string]bool{}
	return ai.listRecentStates(key, now)
}

// endLook forgets what was noted since beginLook, also of a look that failed.
func (ai *applicationIndex) endLook(key wake.Key) {
	ai.mu.Lock()
	defer ai.mu.Unlock()
	delete(ai.passed, key)
}

// setAwaiting notes for which Applications, by Argo CD and name, a unit waits, and which Argo CDs
// could not be asked when it was evaluated. The unit must be evaluated again when one of them was
// reconciled since the look began.
func (ai *applicationIndex) setAwaiting(key wake.Key, awaited map[string]bool, unreachable []string) (again bool) {
	ai.mu.Lock()
	defer ai.mu.Unlock()
	for name := range ai.passed[key] {
		again = again || awaited[name]
	}
	delete(ai.passed, key)
	delete(ai.awaiting, key)
	if len(awaited) > 0 {
		ai.awaiting[key] = awaited
	}
	for argocd, keys := range ai.unreachable {
		if delete(keys, key); len(keys) == 0 {
			delete(ai.unreachable, argocd)
		}
	}
	for _, argocd := range unreachable {
		if ai.unreachable[argocd] == nil {
			ai.unreachable[argocd] = map[wake.Key]bool{}
		}
		ai.unreachable[argocd][key] = true
	}
	return again
}

// takeUnreachable gives, once, the units that were evaluated while an Argo CD
// couldn't be asked.
func (ai *applicationIndex) takeUnreachable(argocd string) []wake.Key {
	ai.mu.Lock()
	defer ai.mu.Unlock()
	keys := slices.Collect(maps.Keys(ai.unreachable[argocd]))
	delete(ai.unreachable, argocd)
	return keys
}
