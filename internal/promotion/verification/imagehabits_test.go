package verification

import (
	"strings"
	"testing"
	"time"
)

// TestRenamedImages has a cluster run images under other names: what that is counts once two versions ran so, one
// after the other, is said then, and from then on another version under that name keeps a target from being verified.
func TestRenamedImages(t *testing.T) {
	const from, to = "registry.example/acme/web", "mirror.example/copies-acme-web"
	releases := 0
	// land has a release land whose version runs as another image, and expects a state once it was healthy for long enough.
	land := func(s *scenario, version string, want State, text string, running ...string) {
		s.t.Helper()
		releases++
		commit := strings.Repeat(string(rune('a'+releases)), 40)
		at := s.now.Sub(start) + time.Hour
		s.e.Commit, s.e.Release, s.e.Landed = commit, version, start.Add(at)
		s.e.Images = []LandedImage{{Workload: "Deployment web", Image: from + ":" + version, Was: []string{from + ":before"}}}
		s.rel, s.app.Revisions, s.app.Health, s.app.SyncStatus = []Relation{Holds}, []string{commit}, "Healthy", "Synced"
		s.app.Operation = &Operation{Phase: "Succeeded", Revisions: []string{commit}}
		s.e.OperationRel = []Relation{Holds}
		s.app.Images = running
		s.reconcile()
		s.judgeAt(at, Refreshing, "")
		first := Soaking
		if want != Verified {
			first = want
		}
		s.refresh(at+time.Second, first, "")
		s.judgeAt(at+time.Minute+time.Second, want, text)
	}
	const habit = "synced and healthy for 1m; acme/web runs as copies-acme-web here, which counts from now on"
	const held = from + ":1.3.0 isn't among the images that run (" + to + ":1.2.0 is)"
	learned := func(s *scenario) {
		land(s, "1.1.0", Verified, "", "proxy:3", to+":1.1.0")
		land(s, "1.2.0", Verified, habit, "proxy:3", to+":1.2.0")
	}
	for name, run := range map[string]func(s *scenario){
		"the first tells nothing": func(s *scenario) {
			land(s, "1.1.0", Verified, "", to+":1.1.0")
			land(s, "1.2.0", Verified, "", to+":1.1.0")
		},
		"two are a habit, which holds": func(s *scenario) {
			learned(s)
			land(s, "1.3.0", Progressing, held, "proxy:3", to+":1.2.0")
			s.app.Images = []string{"proxy:3", to + ":1.3.0"}
			s.judgeAt(s.now.Sub(start)+time.Minute, Soaking, "")
			s.judgeAt(s.now.Sub(start)+time.Minute, Verified, "synced and healthy for 1m")
			if strings.Contains(s.v.Reason, "counts from now on") {
				s.t.Errorf("it is said again: %s", s.v.Reason)
			}
		},
		"what ran is known as what landed": func(s *scenario) {
			learned(s)
			if got := s.v.Runs.Images[0]; got.Image != to+":1.2.0" || !got.Landed && s.v.Runs.At.IsZero() {
				s.t.Errorf("first among what ran is %+v", got)
			}
			land(s, "1.3.0", Verified, "", "proxy:3", to+":1.3.0")
			if got := s.v.Runs.Images[0]; got.Image != to+":1.3.0" || !got.Landed {
				s.t.Errorf("first among what ran is %+v", got)
			}
		},
		"the same version twice is one": func(s *scenario) {
			land(s, "1.1.0", Verified, "", to+":1.1.0")
			land(s, "1.1.0", Verified, "", to+":1.1.0")
			land(s, "1.3.0", Verified, "", to+":1.2.0")
		},
		"a coincidence is none": func(s *scenario) { // a sidecar has the release's version once
			land(s, "1.1.0", Verified, "", "tools/side:1.1.0")
			land(s, "1.2.0", Verified, "", "tools/side:1.1.0")
			land(s, "1.3.0", Verified, "", "tools/side:1.1.0")
		},
		"several of the version tell nothing": func(s *scenario) {
			land(s, "1.1.0", Verified, "", to+":1.1.0", "tools/side:1.1.0")
			land(s, "1.2.0", Verified, "", to+":1.2.0", "tools/side:1.2.0")
			land(s, "1.3.0", Verified, "", to+":1.2.0", "tools/side:1.2.0")
		},
		"latest tells nothing": func(s *scenario) {
			land(s, "latest", Verified, "", to+":latest")
			land(s, "1.2.0", Verified, "", to+":1.2.0")
			land(s, "1.3.0", Verified, "", to+":1.2.0")
		},
		"another name is another habit": func(s *scenario) {
			learned(s)
			land(s, "1.3.0", Verified, "", "cache.example/new-name:1.3.0")
			land(s, "1.4.0", Verified, "", to+":1.2.0")
		},
		"under its own name again": func(s *scenario) {
			learned(s)
			land(s, "1.3.0", Verified, "", from+":1.3.0")
			land(s, "1.4.0", Progressing, from+":1.4.0 isn't among the images that run ("+from+":1.3.0 is)", from+":1.3.0")
			s.app.Images = []string{to + ":1.2.0"}
			s.judgeAt(s.now.Sub(start)+time.Minute, Soaking, "")
		},
		"no pod of it": func(s *scenario) {
			learned(s)
			land(s, "1.3.0", Verified, "", "proxy:3")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			run(s)
		})
	}
}
