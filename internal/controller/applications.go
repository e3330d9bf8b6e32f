package controller

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// applicationIndex knows which units a change in an Argo CD concerns. It is only
// about latency: what it doesn't know is found by the next sweep.
type applicationIndex struct {
	mu          sync.Mutex
	last        map[applicationID]verification.App // what was last heard of each
	unsettled   map[string]map[applicationID]bool  // by Argo CD and name: those of them that haven't come to rest
	units       map[string]map[wake.Key]bool       // by Argo CD and name: whose target it is
	indexed     map[string]*facts.Snapshot         // by repository: of what units has its targets
	awaiting    map[wake.Key]map[string]bool       // by unit: the Applications, by Argo CD and name, of which even a mere reconciliation is news
	passed      map[wake.Key]map[string]bool       // by unit that is being looked at: the Applications, by Argo CD and name, that were merely reconciled meanwhile
	recent      map[wake.Key]recentStates          // by unit: the states that were news for it of late
	children    map[wake.Key]map[string]bool       // by unit: the Applications, by Argo CD and name, below its targets
	unreachable map[string]map[wake.Key]bool       // by Argo CD: units that were evaluated while it couldn't be asked
}

// applicationID names an Application among all Argo CDs.
type applicationID struct{ argocd, namespace, name string }

// applicationName is what a target knows of its Application: not the namespace.
func applicationName(argocd, name string) string { return argocd + "/" + name }

func newApplicationIndex() *applicationIndex {
	return &applicationIndex{last: map[applicationID]verification.App{}, unsettled: map[string]map[applicationID]bool{}, units: map[string]map[wake.Key]bool{}, indexed: map[string]*facts.Snapshot{}, awaiting: map[wake.Key]map[string]bool{}, passed: map[wake.Key]map[string]bool{}, recent: map[wake.Key]recentStates{}, children: map[wake.Key]map[string]bool{}, unreachable: map[string]map[wake.Key]bool{}}
}

// keysOfChange are the units that an Application's new state, heard of now, is news for. A
// mere reconciliation, also one of a newer commit in which nothing changed for it, only
// interests those that wait for this Application: after a push every one has one. That
// somebody asked for one interests nobody. The state comes with its digest where there are
// such units; there is none of a deletion.
func (x *applicationIndex) keysOfChange(a verification.App, deleted bool, now time.Time) (keys []wake.Key, state string) {
	id := applicationID{a.ArgoCD, a.Namespace, a.Name}
	x.mu.Lock()
	defer x.mu.Unlock()
	last, known := x.last[id]
	if deleted {
		delete(x.last, id)
	} else {
		x.last[id] = a
	}
	x.noteSettled(id, deleted || a.IsSettled())
	matters := !known || deleted || !reflect.DeepEqual(withoutComparison(last), withoutComparison(a))
	if !matters && !wasCompared(&last, &a) {
		return nil, ""
	}
	name := applicationName(id.argocd, id.name)
	for _, names := range x.passed {
		names[name] = true
	}
	for k := range x.units[name] {
		if matters || x.awaiting[k][name] {
			keys = append(keys, k)
		}
	}
	for k, names := range x.children {
		if names[name] && (matters || x.awaiting[k][name]) && !x.units[name][k] {
			keys = append(keys, k)
		}
	}
	if !deleted && len(keys) > 0 {
		state = digestApp(&a)
	}
	for _, k := range keys {
		x.noteState(k, id, state, now)
	}
	return keys, state
}

// noteSettled notes whether an Application has come to rest. The caller holds the lock.
func (x *applicationIndex) noteSettled(id applicationID, settled bool) {
	name := applicationName(id.argocd, id.name)
	switch of := x.unsettled[name]; {
	case !settled && of == nil:
		x.unsettled[name] = map[applicationID]bool{id: true}
	case !settled:
		of[id] = true
	default:
		if delete(of, id); len(of) == 0 {
			delete(x.unsettled, name)
		}
	}
}

// isAwaiting says that a unit waits for an Application, by Argo CD and name.
func (x *applicationIndex) isAwaiting(key wake.Key, name string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.awaiting[key][name]
}

// isAwaitedSettled says that a unit waits for Applications, and that all of them have come to
// rest: nothing that it waits for is still to come.
func (x *applicationIndex) isAwaitedSettled(key wake.Key) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name := range x.awaiting[key] {
		if len(x.unsettled[name]) > 0 {
			return false
		}
	}
	return len(x.awaiting[key]) > 0
}

// keysOfTarget are the units whose target an Application is.
func (x *applicationIndex) keysOfTarget(a *verification.App) []wake.Key {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(maps.Keys(x.units[applicationName(a.ArgoCD, a.Name)]))
}

// setChildren notes which Applications are below a unit's targets.
func (x *applicationIndex) setChildren(key wake.Key, names map[string]bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.children, key)
	if len(names) > 0 {
		x.children[key] = names
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
	return !last.ReconciledAt.Equal(next.ReconciledAt) || last.RefreshPending && !next.RefreshPending || !slices.Equal(last.Revisions, next.Revisions)
}

// setTargets notes whose the Applications of a repository's targets are, before anything of it is
// looked at: another process may have run all that was woken of it so far.
func (x *applicationIndex) setTargets(s *facts.Snapshot, argocdOf func(*appset.Target) string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.indexed[s.Repo.ID] == s {
		return
	}
	x.indexed[s.Repo.ID] = s
	for name, keys := range x.units {
		maps.DeleteFunc(keys, func(k wake.Key, _ bool) bool { return k.Repository == s.Repo.ID })
		if len(keys) == 0 {
			delete(x.units, name)
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
					if x.units[name] == nil {
						x.units[name] = map[wake.Key]bool{}
					}
					x.units[name][key] = true
				}
			}
		}
	}
	maps.DeleteFunc(x.recent, func(k wake.Key, _ recentStates) bool { return k.Repository == s.Repo.ID && !known[k] })
}

// beginLook notes that a unit is about to be looked at: only then it is known for which
// Applications it waits, of which one may be reconciled meanwhile. Another process may have
// looked before, and this one knows nothing of that. It gives the digests of the states that
// were heard of late, none of which is newer than what is looked at.
func (x *applicationIndex) beginLook(key wake.Key, now time.Time) (states []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.passed[key] = map[string]bool{}
	return x.listRecentStates(key, now)
}

// endLook forgets what was noted since beginLook, also of a look that failed.
func (x *applicationIndex) endLook(key wake.Key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.passed, key)
}

// setAwaiting notes for which Applications, by Argo CD and name, a unit waits, and which
// Argo CDs could not be asked when it was evaluated. It has to be looked at again when one
// of them was reconciled since the look began.
func (x *applicationIndex) setAwaiting(key wake.Key, awaited map[string]bool, unreachable []string) (again bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name := range x.passed[key] {
		again = again || awaited[name]
	}
	delete(x.passed, key)
	delete(x.awaiting, key)
	if len(awaited) > 0 {
		x.awaiting[key] = awaited
	}
	for argocd, keys := range x.unreachable {
		if delete(keys, key); len(keys) == 0 {
			delete(x.unreachable, argocd)
		}
	}
	for _, argocd := range unreachable {
		if x.unreachable[argocd] == nil {
			x.unreachable[argocd] = map[wake.Key]bool{}
		}
		x.unreachable[argocd][key] = true
	}
	return again
}

// takeUnreachable gives, once, the units that were evaluated while an Argo CD
// couldn't be asked.
func (x *applicationIndex) takeUnreachable(argocd string) []wake.Key {
	x.mu.Lock()
	defer x.mu.Unlock()
	keys := slices.Collect(maps.Keys(x.unreachable[argocd]))
	delete(x.unreachable, argocd)
	return keys
}
