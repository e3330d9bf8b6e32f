package verification

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRuns keeps what a target runs when it is verified: what the release brought first, and no more than is told.
func TestRuns(t *testing.T) {
	const digest = "sha256:0123"
	landed := []LandedImage{{Workload: "Deployment web", Image: "web:1.1.0", Was: []string{"web:1.0.9"}}}
	made := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	many := make([]string, 0, 30)
	for i := range 30 {
		many = append(many, fmt.Sprintf("job-%02d:1", i))
	}
	for name, c := range map[string]struct {
		landed  []LandedImage
		images  []string
		running []RunningImage
		want    []RunningImage
		ofPods  bool
		more    int
	}{
		"nobody tells": {landed: landed},
		"a list alone": {landed: landed, images: []string{"proxy:3", "web:1.1.0"}, want: []RunningImage{{Image: "web:1.1.0", Landed: true}, {Image: "proxy:3"}}},
		"a digest in the name": {landed: landed, images: []string{"mirror.example/web:1.1.0@" + digest},
			want: []RunningImage{{Image: "mirror.example/web:1.1.0@" + digest, Digest: digest, Landed: true}}},
		"a digest that is none": {images: []string{"web@latest"}, want: []RunningImage{{Image: "web@latest"}}},
		"pods": {landed: landed, images: []string{"web:1.1.0"}, running: []RunningImage{{Image: "proxy:3", Pods: 2}, {Image: "web:1.1.0", Digest: digest, Pods: 2, Since: made}},
			want: []RunningImage{{Image: "web:1.1.0", Digest: digest, Pods: 2, Since: made, Landed: true}, {Image: "proxy:3", Pods: 2}}, ofPods: true},
		"which landed isn't known": {images: []string{"web:1.1.0", "a:1"}, want: []RunningImage{{Image: "a:1"}, {Image: "web:1.1.0"}}},
		"more than are kept": {images: many, more: 10, want: func() (out []RunningImage) {
			for _, i := range many[:20] {
				out = append(out, RunningImage{Image: i})
			}
			return out
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			s.e.Images, s.e.Running, s.app.Images = c.landed, c.running, c.images
			s.deploy(time.Second, "Healthy", Soaking)
			if s.v.Runs != nil {
				t.Errorf("before it is verified it runs %+v", s.v.Runs)
			}
			s.judgeAt(time.Second+time.Minute, Verified, "")
			var want *Runs
			if c.want != nil {
				want = &Runs{At: s.v.Since, Images: c.want, OfPods: c.ofPods, More: c.more}
			}
			if diff := cmp.Diff(want, s.v.Runs); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRunsStay keeps what ran at the verification, whatever comes later, but for the pods where they are told later.
func TestRunsStay(t *testing.T) {
	s := newScenario(t)
	s.e.Images = []LandedImage{{Workload: "Deployment web", Image: "web:1.1.0"}}
	s.app.Images = []string{"proxy:3", "web:1.1.0"}
	s.verify()
	first := s.v.Runs
	s.e.Images, s.app.Images = nil, []string{"web:1.0.9"}
	s.judgeAt(2*minute, Verified, "")
	if diff := cmp.Diff(first, s.v.Runs); diff != "" {
		t.Errorf("a look later (-want +got):\n%s", diff)
	}
	s.e.Running = []RunningImage{{Image: "web:1.1.0", Pods: 2}}
	s.judgeAt(3*minute, Verified, "")
	want := &Runs{At: s.now, OfPods: true, Images: []RunningImage{{Image: "web:1.1.0", Pods: 2, Landed: true}}}
	if diff := cmp.Diff(want, s.v.Runs); diff != "" {
		t.Errorf("with its pods (-want +got):\n%s", diff)
	}
	s.e.Running = []RunningImage{{Image: "web:1.0.9", Pods: 9}}
	s.judgeAt(4*minute, Verified, "")
	if diff := cmp.Diff(want, s.v.Runs); diff != "" {
		t.Errorf("other pods later (-want +got):\n%s", diff)
	}
	s.e.Commit, s.rel = commitY, []Relation{Before}
	if v := s.judgeAt(5*minute, Arriving, ""); v.Runs != nil {
		t.Errorf("before another commit is there it runs %+v", v.Runs)
	}
}
