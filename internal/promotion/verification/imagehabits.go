package verification

import (
	"fmt"
	"slices"
	"strings"
)

// Some clusters have images under other names: an admission webhook rewrites them to a registry
// that keeps copies. No report says which name that is, but a version that comes and goes with the
// release's tells.

const (
	// maxImageHabits bounds the habits that are kept of a target, and the pins.
	maxImageHabits = 20
	// habitSeen is how many versions must have run under a name before it counts: one may be a coincidence.
	habitSeen = 2
)

// ImageHabit is that a target's cluster runs the images of one repository under the name of another.
type ImageHabit struct {
	From string // the repository's path in manifests
	To   string // and in pods
	Last string // the last version that was verified so
	Seen int    // how many there were, one after the other
}

// ImagePin is the digest that ran in the place of a tag when that was verified, on a cluster that pins tags on
// their way to the pods. What runs by the same digest for another tag is the release before.
type ImagePin struct {
	Repository string // its path in manifests
	Tag        string // as the manifests had it
	Digest     string
}

// isHabit says that it counts.
func (i *ImageHabit) isHabit() bool { return i.Seen >= habitSeen }

// nameInManifests is a running image's name as the manifests have it, by the habits that count.
func nameInManifests(image string, habits []ImageHabit) imageName {
	name := parseImageName(image)
	for i := range habits {
		if habits[i].isHabit() && habits[i].To == name.repository {
			name.repository = habits[i].From
			break
		}
	}
	return name
}

// learnHabits remembers under which names the landed images run that don't run under their own, and by which
// digests. It says of those that have become a habit what they are; "" where none has.
func (j *judgement) learnHabits() string {
	var said []string
	for _, landed := range j.e.Images {
		want := parseImageName(landed.Image)
		if want.repository == "" {
			continue
		}
		if slices.ContainsFunc(j.app.Images, func(image string) bool { return parseImageName(image).isOf(want) }) {
			j.dropHabits(want.repository)
		} else if to := j.findRenamed(want); to != "" && j.rememberHabit(want.repository, to, want.version()) {
			said = append(said, fmt.Sprintf("%s runs as %s here, which counts from now on", want.repository, to))
		}
		if j.mem.OtherImages == "" {
			j.rememberPin(want)
		}
	}
	return clipMessage(strings.Join(said, "; "))
}

// findRenamed is the one repository of which an image runs in a landed one's version; "" where there is none, or
// several.
func (j *judgement) findRenamed(want imageName) string {
	found := ""
	for _, image := range j.app.Images {
		got := parseImageName(image)
		isOther := slices.ContainsFunc(j.e.Images, func(l LandedImage) bool { return got.isOf(parseImageName(l.Image)) })
		if isOther || got.repository == "" || !got.hasVersionOf(want) {
			continue
		}
		if found != "" && found != got.repository {
			return ""
		}
		found = got.repository
	}
	return found
}

// rememberHabit notes a version that ran under another repository's name; true when that has just become a habit.
// The Memory before keeps its own list.
func (j *judgement) rememberHabit(from, to, version string) bool {
	m := &j.mem
	habits := slices.Clone(m.Habits)
	at := slices.IndexFunc(habits, func(h ImageHabit) bool { return h.From == from })
	switch {
	case at < 0:
		habits = append(habits, ImageHabit{From: from, To: to, Last: version, Seen: 1})
		m.Habits = habits[max(0, len(habits)-maxImageHabits):]
		return false
	case habits[at].To != to:
		habits[at] = ImageHabit{From: from, To: to, Last: version, Seen: 1}
	case habits[at].Last != version:
		habits[at].Last = version
		habits[at].Seen = min(habits[at].Seen+1, habitSeen+1)
	}
	m.Habits = habits
	return habits[at].Seen == habitSeen && habits[at].Last == version
}

// dropHabits forgets under which name a repository's images ran: they run under their own.
func (j *judgement) dropHabits(from string) {
	if slices.ContainsFunc(j.mem.Habits, func(h ImageHabit) bool { return h.From == from }) {
		j.mem.Habits = slices.DeleteFunc(slices.Clone(j.mem.Habits), func(h ImageHabit) bool { return h.From == from })
		if len(j.mem.Habits) == 0 {
			j.mem.Habits = nil
		}
	}
}

// rememberPin notes the digest that runs for a landed tag; it forgets the repository's last one where the tag
// itself runs, or several digests do.
func (j *judgement) rememberPin(want imageName) {
	m, digest := &j.mem, ""
	for _, image := range j.app.Images {
		got := nameInManifests(image, m.Habits)
		if !got.isOf(want) {
			continue
		}
		if got.tag != "" || digest != "" && digest != got.digest {
			digest = ""
			break
		}
		digest = got.digest
	}
	pins := slices.DeleteFunc(slices.Clone(m.Pins), func(p ImagePin) bool { return p.Repository == want.repository })
	if digest != "" && want.tag != "" && want.digest == "" {
		pins = append(pins, ImagePin{Repository: want.repository, Tag: want.tag, Digest: digest})
	}
	m.Pins = pins[max(0, len(pins)-maxImageHabits):]
	if len(m.Pins) == 0 {
		m.Pins = nil
	}
}

// findPin is the other tag for which a running image's digest stood when that was verified; nil where there is none.
func findPin(got, want imageName, pins []ImagePin) *ImagePin {
	if got.tag != "" || want.tag == "" || want.digest != "" {
		return nil
	}
	at := slices.IndexFunc(pins, func(p ImagePin) bool {
		return p.Repository == want.repository && p.Digest == got.digest && p.Tag != want.tag
	})
	if at < 0 {
		return nil
	}
	return &pins[at]
}

// version is an image's digest, or its tag.
func (i imageName) version() string {
	if i.digest != "" {
		return i.digest
	}
	return i.tag
}

// hasVersionOf says that two images have the same digest, or the same tag: "latest" tells nothing.
func (i imageName) hasVersionOf(other imageName) bool {
	if i.digest != "" && other.digest != "" {
		return i.digest == other.digest
	}
	return i.tag != "" && i.tag != "latest" && i.tag == other.tag
}
