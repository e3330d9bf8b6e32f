package argocd

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gobwas/glob"
	"github.com/robfig/cron/v3"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

const (
	// maxWindows bounds the sync windows of one AppProject that are read.
	maxWindows = 200
	// maxBoundaries bounds how many openings and closings are tried for the next time when
	// syncs are possible, and maxAhead how far ahead.
	maxBoundaries = 1000
	maxAhead      = 366 * 24 * time.Hour
)

// wireWindow is a sync window as its AppProject says it.
type wireWindow struct {
	Kind         string   `json:"kind"`
	Schedule     string   `json:"schedule"`
	Duration     string   `json:"duration"`
	Applications []string `json:"applications"`
	Namespaces   []string `json:"namespaces"`
	Clusters     []string `json:"clusters"`
	ManualSync   bool     `json:"manualSync"`
	TimeZone     string   `json:"timeZone"`
	AndOperator  bool     `json:"andOperator"`
	// SyncOverrun lets a sync go on that began while the windows let it; of Argo CD 3.5 and later.
	SyncOverrun bool `json:"syncOverrun"`
}

// syncWindow is one that can be evaluated.
type syncWindow struct {
	wireWindow
	starts   cron.Schedule
	duration time.Duration
	zone     *time.Location
}

// decodeWindows reads a project's sync windows. One that can't be read is an error:
// without it nobody knows what the others allow.
func decodeWindows(raw []byte) ([]syncWindow, error) {
	var p struct {
		Spec struct {
			SyncWindows []wireWindow `json:"syncWindows"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("decode an AppProject's sync windows: %w", err)
	}
	if len(p.Spec.SyncWindows) > maxWindows {
		return nil, fmt.Errorf("decode an AppProject's sync windows: there are %d, more than the %d that are read",
			len(p.Spec.SyncWindows), maxWindows)
	}
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	var out []syncWindow
	for _, w := range p.Spec.SyncWindows {
		s := syncWindow{wireWindow: w}
		var err error
		if s.starts, err = parser.Parse(w.Schedule); err != nil {
			return nil, fmt.Errorf("decode the sync window %q: %w", clipMessage(w.Schedule), err)
		}
		if s.duration, err = time.ParseDuration(w.Duration); err != nil || s.duration <= 0 {
			return nil, fmt.Errorf("decode the sync window %q: its duration is %q", clipMessage(w.Schedule), clipMessage(w.Duration))
		}
		if s.zone, err = time.LoadLocation(w.TimeZone); err != nil {
			s.zone = time.UTC // as Argo CD does
		}
		out = append(out, s)
	}
	return out, nil
}

// matches says that the window is about an Application, as Argo CD decides it: any of
// the three lists, or all that aren't empty.
func (s *syncWindow) matches(app *verification.App) bool {
	d := app.Destination
	answers := []struct {
		patterns []string
		names    []string
	}{{s.Applications, []string{app.Name}}, {s.Clusters, []string{d.Name, d.Server}}, {s.Namespaces, []string{d.Namespace}}}
	found := false
	for _, a := range answers {
		if len(a.patterns) == 0 {
			continue
		}
		matched := matchesAny(a.patterns, a.names)
		if matched && !s.AndOperator {
			return true
		}
		if !matched && s.AndOperator {
			return false
		}
		found = matched
	}
	return found
}

func matchesAny(patterns, names []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		g, err := glob.Compile(pattern)
		return err == nil && slices.ContainsFunc(names, func(name string) bool { return name != "" && g.Match(name) })
	})
}

// wallClock is a time as Argo CD's schedules see it: the zone's wall clock, taken for UTC.
func (s *syncWindow) wallClock(at time.Time) time.Time {
	_, offset := at.In(s.zone).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// isActive says that a time is within the window; its very start isn't. A schedule that never comes
// (31 February) has no next start, which Argo CD takes for one in the past. Such a window is always
// open there, and so it is here.
func (s *syncWindow) isActive(at time.Time) bool {
	wall := s.wallClock(at)
	return s.starts.Next(wall.Add(-s.duration)).Before(wall)
}

// nextBoundary is when the window opens or closes next; zero: never.
func (s *syncWindow) nextBoundary(at time.Time) time.Time {
	wall := s.wallClock(at)
	start := s.starts.Next(wall)
	if begun := s.starts.Next(wall.Add(-s.duration)); !begun.IsZero() && begun.Before(wall) {
		if end := begun.Add(s.duration); start.IsZero() || end.Before(start) {
			start = end
		}
	}
	if start.IsZero() {
		return time.Time{}
	}
	return at.Add(start.Sub(wall))
}

// syncAttempt is a sync that windows let through or don't.
type syncAttempt struct {
	manual bool      // somebody asks for it
	began  time.Time // zero: it is yet to begin
}

// attemptOf is the sync that an Application is in, or else the one that it would be synced by.
func attemptOf(app *verification.App) syncAttempt {
	if op := app.Operation; op != nil && op.Phase == "Running" {
		return syncAttempt{manual: !op.Automated, began: op.StartedAt}
	}
	return syncAttempt{manual: !app.SyncsByItself()}
}

// allowsSync decides as Argo CD does (SyncWindows.CanSync): a deny wins over an allow, and
// where there are allows one has to be open. A sync that began while it was let through goes
// on if every deny that is open, or else every allow that is closed, says syncOverrun.
func allowsSync(windows []syncWindow, sync syncAttempt, at time.Time) bool {
	denied, denyManual, denyOverrun := false, true, true
	allowed, closed, closedManual, closedOverrun := false, false, true, true
	for i := range windows {
		switch w := &windows[i]; {
		case w.Kind == "deny" && w.isActive(at):
			denied, denyManual, denyOverrun = true, denyManual && w.ManualSync, denyOverrun && w.SyncOverrun
		case w.Kind == "allow" && w.isActive(at):
			allowed = true
		case w.Kind == "allow":
			closed, closedManual, closedOverrun = true, closedManual && w.ManualSync, closedOverrun && w.SyncOverrun
		}
	}
	switch {
	case denied:
		return sync.manual && denyManual || denyOverrun && sync.wasAllowed(windows)
	case allowed || !closed:
		return true
	}
	return sync.manual && closedManual || closedOverrun && sync.wasAllowed(windows)
}

// wasAllowed says that the sync has begun, and was let through then.
func (s syncAttempt) wasAllowed(windows []syncWindow) bool {
	return !s.began.IsZero() && allowsSync(windows, syncAttempt{manual: s.manual}, s.began)
}

// findChange is when a sync becomes possible again, or no longer is, after a time; zero: not within
// a year.
func findChange(windows []syncWindow, sync syncAttempt, after time.Time) time.Time {
	allowed := allowsSync(windows, sync, after)
	at := after
	for range maxBoundaries {
		next := time.Time{}
		for i := range windows {
			if b := windows[i].nextBoundary(at); !b.IsZero() && (next.IsZero() || b.Before(next)) {
				next = b
			}
		}
		if next.IsZero() || next.Sub(after) > maxAhead {
			return time.Time{}
		}
		at = next.Add(time.Second) // a window's very start isn't within it
		if allowsSync(windows, sync, at) != allowed {
			return next
		}
	}
	return time.Time{}
}

// ClosedWindow is the sync window that forbids a sync of an Application at a time, or forbids its
// running sync to go on. It is nil when there is none or its project's windows aren't known.
func (w *Watcher) ClosedWindow(app *verification.App, at time.Time) *verification.Window {
	windows, _ := w.projects.listWindows(app) // what isn't known keeps nobody here
	sync := attemptOf(app)
	if len(windows) == 0 || allowsSync(windows, sync, at) {
		return nil
	}
	return &verification.Window{Project: app.Project, Opens: findChange(windows, sync, at)}
}

// SyncWindow says whether the sync windows of its project let a sync of an Application begin at
// a time, and when that changes; zero: not within a year. The error says why nobody can tell:
// the projects can't be read, there is none of that name, or its windows make no sense.
func (w *Watcher) SyncWindow(app *verification.App, at time.Time) (isOpen bool, changes time.Time, err error) {
	if err := w.readyOf(w.projectFeeds); err != nil {
		return false, time.Time{}, fmt.Errorf("the AppProjects can't be read: %w", err)
	}
	windows, err := w.projects.listWindows(app)
	if err != nil {
		return false, time.Time{}, err
	}
	sync := syncAttempt{manual: !app.SyncsByItself()}
	return allowsSync(windows, sync, at), findChange(windows, sync, at), nil
}

// listWindows gives a copy of those of a project's windows that are about an Application. A
// project is in Argo CD's own namespace, which only the server's file names: where several
// have one, the Application's counts.
func (p *projectSink) listWindows(app *verification.App) ([]syncWindow, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	found := app.Namespace + "/" + app.Project
	if !p.names[found] {
		found = ""
		for key := range p.names {
			if strings.HasSuffix(key, "/"+app.Project) && (found == "" || key < found) {
				found = key
			}
		}
	}
	if found == "" {
		return nil, fmt.Errorf("there is no AppProject %q", clipMessage(app.Project))
	}
	if err := p.unreadable[found]; err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(p.windows[found]), func(s syncWindow) bool { return !s.matches(app) }), nil
}
