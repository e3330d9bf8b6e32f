package verification

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestFindOtherImages compares what landed with what runs, as clusters pull and pin it.
func TestFindOtherImages(t *testing.T) {
	a, b := "@sha256:"+strings.Repeat("a", 64), "@sha256:"+strings.Repeat("b", 64)
	const web, was = "registry.example/web:1.1.0", "registry.example/web:1.0.9"
	for name, c := range map[string]struct {
		landed, replaced string
		running, want    []string
	}{
		"it runs":                  {landed: web, replaced: was, running: []string{"registry.example/proxy:3", web}},
		"another runs":             {landed: web, replaced: was, running: []string{was}, want: []string{was}},
		"several others run":       {landed: web, replaced: was, running: []string{"registry.example/web:1.0.8", was}, want: []string{"registry.example/web:1.0.8", was}},
		"both run":                 {landed: web, replaced: was, running: []string{was, web}},
		"it was renamed":           {landed: web, replaced: "old.example/site:7", running: []string{"old.example/site:7"}, want: []string{"old.example/site:7"}},
		"from a mirror":            {landed: "web:1.1.0", running: []string{"mirror.example:5000/hub/web:1.1.0"}},
		"from Docker's own":        {landed: "nginx:1.27", running: []string{"docker.io/library/nginx:1.27"}},
		"another from a mirror":    {landed: "web:1.1.0", running: []string{"mirror.example:5000/hub/web:1.0.9"}, want: []string{"mirror.example:5000/hub/web:1.0.9"}},
		"pinned on its way":        {landed: web, replaced: was, running: []string{"registry.example/web" + b}},
		"pinned beside its tag":    {landed: web, replaced: was, running: []string{web + b}},
		"another pinned":           {landed: web, replaced: was, running: []string{was + a}, want: []string{was + a}},
		"by digest":                {landed: web + b, replaced: was + a, running: []string{"registry.example/web" + b}},
		"by another digest":        {landed: web + b, replaced: was + a, running: []string{web + a}, want: []string{web + a}},
		"no tag is latest":         {landed: "registry.example/web", running: []string{"registry.example/web:latest"}},
		"no pod of it":             {landed: web, replaced: was, running: []string{"registry.example/proxy:3"}},
		"a name that ends like it": {landed: web, replaced: was, running: []string{"registry.example/other-web:1.0.9"}},
		"not the name of one":      {landed: web, replaced: was, running: []string{"web:1.0 .9", ""}},
		"what landed isn't one":    {landed: "{{ .image }}", running: []string{was}},
	} {
		t.Run(name, func(t *testing.T) {
			landed := LandedImage{Workload: "Deployment web", Image: c.landed}
			if c.replaced != "" {
				landed.Was = []string{c.replaced}
			}
			if got := findOtherImages(c.running, &landed, &Memory{}); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("in its place runs %q, want %q", got, c.want)
			}
		})
	}
}

// TestOtherImages has a target be verified by what landed alone: its time begins when that runs.
func TestOtherImages(t *testing.T) {
	const held = "web:1.1.0 isn't among the images that run (web:1.0.9 is), though Argo CD calls it synced: the live Application or something in the cluster may override it, an ignored difference may hide it, or the rollout of Deployment web may be paused"
	overridden := func(t *testing.T) *scenario {
		s := newScenario(t)
		s.e.Images = []LandedImage{{Workload: "Deployment web", Image: "web:1.1.0", Was: []string{"web:1.0.9"}}}
		s.app.Images = []string{"proxy:3", "web:1.0.9"}
		return s
	}
	for name, run := range map[string]func(s *scenario){
		"its time begins when it runs": func(s *scenario) {
			s.deploy(time.Second, "Healthy", Progressing)
			s.judgeAt(9*minute, Progressing, held)
			s.app.Images = []string{"proxy:3", "web:1.1.0"}
			s.judgeAt(2*time.Hour, Soaking, "not yet for 1m")
			s.judgeAt(2*time.Hour+59*second, Soaking, "")
			s.judgeAt(2*time.Hour+time.Minute, Verified, "healthy for 1m")
		},
		"a person is asked in the end, and it goes on all the same": func(s *scenario) {
			s.deploy(time.Second, "Healthy", Progressing)
			s.judgeAt(11*minute, Failed, held+", for longer than 10m")
			s.judgeAt(time.Hour, Failed, held)
			s.app.Images = []string{"proxy:3", "web:1.1.0"}
			s.judgeAt(2*time.Hour, Soaking, "not yet for 1m")
			s.judgeAt(2*time.Hour+time.Minute, Verified, "healthy for 1m")
		},
		"it has all its time to get healthy": func(s *scenario) {
			s.deploy(time.Second, "Healthy", Progressing)
			s.judgeAt(time.Hour, Failed, held)
			s.app.Images, s.app.Health = []string{"web:1.0.9", "web:1.1.0"}, "Progressing"
			s.judgeAt(time.Hour+second, Progressing, "health is Progressing")
			s.judgeAt(time.Hour+9*minute, Progressing, "")
			s.judgeAt(time.Hour+11*minute, Degraded, "did not become healthy within 10m")
		},
		"its time begins when it is first seen to run": func(s *scenario) {
			s.deploy(time.Second, "Healthy", Progressing)
			s.judgeAt(time.Hour, Failed, held)
			s.app.Images, s.app.Health = []string{"web:1.0.9", "web:1.1.0"}, "Progressing" // hours later, or just before the look
			s.judgeAt(2*time.Hour, Progressing, "health is Progressing")
			s.judgeAt(2*time.Hour+9*minute, Progressing, "")
			s.judgeAt(2*time.Hour+10*minute, Degraded, "did not become healthy within 10m")
		},
		"its time begins when it runs, though Argo CD didn't compare before": func(s *scenario) {
			s.sync()
			s.app.Health = "Progressing"
			s.judgeAt(0, Refreshing, "")
			s.app.RefreshPending = true
			s.judgeAt(9*minute, Refreshing, "")
			s.judgeAt(11*minute, Unclear, "has not compared again within 10m")
			s.app.RefreshPending, s.app.Images = false, []string{"web:1.0.9", "web:1.1.0"}
			s.reconcile()
			s.judgeAt(20*minute, Progressing, "health is Progressing")
			s.judgeAt(29*minute, Progressing, "")
			s.judgeAt(30*minute, Degraded, "did not become healthy within 10m")
		},
		"what is unwell in its place isn't its doing": func(s *scenario) {
			s.deploy(time.Second, "Degraded", Progressing)
			s.judgeAt(9*minute, Progressing, held+"; its health is Degraded")
			s.judgeAt(time.Hour, Failed, held+"; its health is Degraded")
		},
		"what crashes beside it is": func(s *scenario) {
			s.app.Images = []string{"web:1.0.9", "web:1.1.0"}
			s.deploy(time.Second, "Degraded", Progressing)
			s.judgeAt(minute, Degraded, "")
		},
		"a pause is a pause": func(s *scenario) {
			s.deploy(time.Second, "Suspended", Suspended)
		},
		"only reported": func(s *scenario) {
			s.e.Limits.OtherImagesPass = true
			s.verify()
			if s.v.OtherImages != held {
				s.t.Errorf("it is said to be verified with %q", s.v.OtherImages)
			}
			s.app.Images = nil
			if s.judgeAt(2*minute, Verified, ""); s.v.OtherImages != held {
				s.t.Errorf("later it is said to be verified with %q", s.v.OtherImages)
			}
		},
		"once verified it isn't asked again": func(s *scenario) {
			s.app.Images = []string{"web:1.1.0"}
			s.verify()
			s.app.Images = []string{"web:1.0.9"}
			s.judgeAt(2*minute, Verified, "")
		},
		"nobody knows": func(s *scenario) {
			s.e.Images = nil
			s.verify()
		},
	} {
		t.Run(name, func(t *testing.T) { run(overridden(t)) })
	}
}
