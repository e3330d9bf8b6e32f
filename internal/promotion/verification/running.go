package verification

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// maxRuns bounds the images that are kept of what a target ran.
const maxRuns = 20

// Runs is what a target was seen to run when it was verified.
type Runs struct {
	At     time.Time      `json:"at"`     // when it was looked
	Images []RunningImage `json:"images"` // those that the release brought first, bounded
	More   int            `json:"more,omitempty"`
	// OfPods says that its pods were read, not the Application's list of images alone.
	OfPods bool `json:"ofPods,omitempty"`
}

// RunningImage is an image that pods of a target have. Unreported fields are left out.
type RunningImage struct {
	Image  string    `json:"image"`            // as the pods name it
	Digest string    `json:"digest,omitempty"` // sha256:…, of the name or of what a container runs
	Pods   int       `json:"pods,omitempty"`   // how many have it
	Since  time.Time `json:"since,omitzero"`   // when the oldest of them was made
	Landed bool      `json:"landed,omitempty"` // the release brought it
}

// VerifiedRuns is what the targets of an environment were seen to run when a release was verified there: the data of
// the event.
type VerifiedRuns struct {
	Ran []TargetRuns `json:"ran"` // by name, bounded
}

// TargetRuns is what one target was seen to run.
type TargetRuns struct {
	Target string `json:"target"`
	Runs
}

// noteRuns remembers what a target runs when it is verified, and once more when its pods could be read.
func (j *judgement) noteRuns(v *Verdict) {
	m := &j.mem
	knowsMore := m.Runs == nil || !m.Runs.OfPods && len(j.e.Running) > 0
	if v.State == Verified && !v.Lapsed && knowsMore {
		m.Runs = j.listRunning()
	}
	if m.isVerified() {
		v.Runs = m.Runs
	}
}

// listRunning is what is known of what runs now: nil where nobody tells of an image.
func (j *judgement) listRunning() *Runs {
	out := &Runs{At: j.now, Images: slices.Clone(j.e.Running), OfPods: len(j.e.Running) > 0}
	if !out.OfPods {
		for _, image := range j.app.Images {
			out.Images = append(out.Images, RunningImage{Image: image})
		}
	}
	if len(out.Images) == 0 {
		return nil
	}
	for i := range out.Images {
		image := &out.Images[i]
		image.Digest = cmp.Or(image.Digest, DigestOf(image.Image))
		image.Landed = slices.ContainsFunc(j.e.Images, func(l LandedImage) bool { return l.isRunBy(image.Image, &j.mem) }) ||
			j.mem.Runs.hasLanded(image.Image)
	}
	slices.SortStableFunc(out.Images, func(a, b RunningImage) int {
		if a.Landed != b.Landed {
			if a.Landed {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Image, b.Image)
	})
	if over := len(out.Images) - maxRuns; over > 0 {
		out.Images, out.More = out.Images[:maxRuns], over
	}
	return out
}

// hasLanded says that an image was known before as one that the release brought: that is looked for only once.
func (r *Runs) hasLanded(image string) bool {
	return r != nil && slices.ContainsFunc(r.Images, func(i RunningImage) bool { return i.Landed && i.Image == image })
}

// DigestOf is the digest that an image's name ends with; "" where it has none.
func DigestOf(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	if strings.HasPrefix(digest, "sha256:") {
		return digest
	}
	return ""
}
