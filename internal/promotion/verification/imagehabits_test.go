package verification

import (
	"strings"
	"testing"
	"time"
)

// lander has a release land whose version runs as other images, and expects a state once it was healthy for long
// enough.
type lander func(s *scenario, version string, want State, text string, running ...string)

// newLander lands releases of one image, a commit each.
func newLander(from string) lander {
	releases := 0
	return func(s *scenario, version string, want State, text string, running ...string) {
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
}

// TestRenamedImages has a cluster run images under other names. Such a name counts once two
// versions ran under it, one after the other, and is reported then. From then on another version
// under that name keeps a target from being verified.
func TestRenamedImages(t *testing.T) {
	const from, to = "registry.example/acme/web", "mirror.example/copies-acme-web"
	land := newLander(from)
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

// TestPinnedImages has a cluster pin tags to digests on their way to the pods. The digest that ran for the release
// before isn't what another tag runs as.
func TestPinnedImages(t *testing.T) {
	const from, other = "registry.example/acme/web", "mirror.example/acme/web"
	a, b := "@sha256:"+strings.Repeat("a", 64), "@sha256:"+strings.Repeat("b", 64)
	land := newLander(from)
	held := from + ":1.1.0 isn't among the images that run (" + from + a + ", which ran for 1.0.9, is)"
	for name, run := range map[string]func(s *scenario){
		"the release before still runs": func(s *scenario) {
			land(s, "1.0.9", Verified, "", "proxy:3", from+a)
			land(s, "1.1.0", Progressing, held, "proxy:3", from+a)
			s.app.Images = []string{"proxy:3", from + b}
			s.judgeAt(s.now.Sub(start)+time.Minute, Soaking, "")
			s.judgeAt(s.now.Sub(start)+time.Minute, Verified, "synced and healthy for 1m")
		},
		"back to the release before": func(s *scenario) {
			land(s, "1.0.9", Verified, "", from+a)
			land(s, "1.1.0", Verified, "", from+b)
			land(s, "1.0.9", Progressing, "which ran for 1.1.0", from+b)
			s.app.Images = []string{from + a}
			s.judgeAt(s.now.Sub(start)+time.Minute, Soaking, "")
		},
		"both run": func(s *scenario) {
			land(s, "1.0.9", Verified, "", from+a)
			land(s, "1.1.0", Verified, "", from+a, from+b)
		},
		"the same tag again": func(s *scenario) {
			land(s, "1.0.9", Verified, "", from+a)
			land(s, "1.0.9", Verified, "", from+a)
		},
		"from a mirror": func(s *scenario) {
			land(s, "1.0.9", Verified, "", other+a)
			land(s, "1.1.0", Progressing, "which ran for 1.0.9", other+a)
		},
		"several digests ran, and which was whose isn't known": func(s *scenario) {
			land(s, "1.0.9", Verified, "", from+a, from+b)
			land(s, "1.1.0", Verified, "", from+a)
		},
		"the tag ran": func(s *scenario) {
			land(s, "1.0.9", Verified, "", from+":1.0.9"+a)
			land(s, "1.1.0", Verified, "", from+a)
		},
		"what ran was only reported": func(s *scenario) {
			s.e.Limits.OtherImagesPass = true
			land(s, "1.0.9", Verified, "", from+a)
			land(s, "1.1.0", Verified, "", from+a)
			s.e.Limits.OtherImagesPass = false
			land(s, "1.2.0", Progressing, "which ran for 1.0.9", from+a)
		},
	} {
		t.Run(name, func(t *testing.T) { run(newScenario(t)) })
	}
}
