package verification

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/liftlock/liftlock/internal/wording"
)

// Argo CD's Synced says that the cluster has Git's content, but for ignored fields. And a rewriter
// of an Application or a workload isn't always seen. So what a target runs is compared with what
// was rendered for it, until it is verified.

// LandedImage is an image that what landed brought to a workload which should have pods.
type LandedImage struct {
	Workload string // its kind and name, for people
	Image    string
	Was      []string // what it took the place of; none: of nothing
}

// otherImagesVerdict answers for a target that is known to run another image than the landed
// release's. Its health says nothing of the release, whose time begins when it runs. Nothing is
// taken back for it; a person is asked once it has lasted for as long as getting healthy may take.
func (j *judgement) otherImagesVerdict(why string) Verdict {
	m := &j.mem
	m.resetStreaks()
	m.TimeoutFrom = j.now
	if m.OthersSince.IsZero() {
		m.OthersSince = j.now
	}
	if j.health != healthy {
		why += "; its health is " + j.health + messageSuffix(j.healthDetail())
	}
	if until := m.OthersSince.Add(j.Timeout); j.now.Before(until) {
		return Verdict{State: Progressing, Reason: why, Next: until}
	}
	return Verdict{State: Failed, Reason: fmt.Sprintf("%s, for longer than %s", why, formatDuration(j.Timeout))}
}

// describeOtherImages says which of the images that landed doesn't run, and what runs in its place;
// "" where all do, or nothing tells. Where no image of that name runs at all, none of the
// workload's pods may be there. An autoscaler leaves it none, or its image goes by another name
// here.
func (j *judgement) describeOtherImages() string {
	if j.app == nil {
		return ""
	}
	for i := range j.e.Images {
		landed := &j.e.Images[i]
		others := findOtherImages(j.app.Images, landed, &j.mem)
		if len(others) == 0 {
			continue
		}
		verb := "is"
		if len(others) > 1 {
			verb = "are"
		}
		return clipMessage(fmt.Sprintf("%s isn't among the images that run (%s %s), though Argo CD calls it synced: the live Application "+
			"or something in the cluster may override it, an ignored difference may hide it, or the rollout of %s may be paused",
			landed.Image, wording.JoinFew(others, maxNamed), verb, landed.Workload))
	}
	return ""
}

// findOtherImages finds the images that run in a landed one's place; none where that itself runs, or what may
// be it.
func findOtherImages(running []string, landed *LandedImage, mem *Memory) []string {
	var others []string
	want := parseImageName(landed.Image)
	for _, image := range running {
		got := nameInManifests(image, mem.Habits)
		pin := findPin(got, want, mem.Pins)
		switch {
		case landed.isRunBy(image, mem):
			return nil
		case got.isOf(want) && pin != nil:
			others = append(others, fmt.Sprintf("%s, which ran for %s,", image, pin.Tag))
		case got.isOf(want), slices.Contains(landed.Was, image):
			others = append(others, image)
		}
	}
	return others
}

// isRunBy says that a pod with an image runs the landed one, or what may be it.
func (l *LandedImage) isRunBy(image string, mem *Memory) bool {
	got, want := nameInManifests(image, mem.Habits), parseImageName(l.Image)
	return image == l.Image || got.isOf(want) && got.mayBe(want) && findPin(got, want, mem.Pins) == nil
}

// imageName is an image's name in its parts.
type imageName struct{ repository, tag, digest string }

// parseImageName takes an image's name apart, as registries' clients do; one that isn't one has no parts.
func parseImageName(text string) imageName {
	rest, digest, _ := strings.Cut(text, "@")
	tag, err := name.NewTag(rest, name.WeakValidation)
	if err != nil {
		return imageName{}
	}
	out := imageName{repository: strings.TrimPrefix(tag.RepositoryStr(), "library/"), digest: digest}
	if digest == "" || strings.Contains(rest[strings.LastIndex(rest, "/")+1:], ":") {
		out.tag = tag.TagStr()
	}
	return out
}

// isOf says that an image is of the other's repository, whichever registry has it: clusters pull from mirrors,
// which may have it below a folder of theirs.
func (i imageName) isOf(other imageName) bool {
	if i.repository == "" || other.repository == "" {
		return false
	}
	return i.repository == other.repository || strings.HasSuffix(i.repository, "/"+other.repository)
}

// mayBe says that an image that runs may be the one that is wanted: by digest where both have one, else by tag.
// A tag that was pinned to a digest on its way into the cluster can't be told from another here: findPin does.
func (i imageName) mayBe(want imageName) bool {
	switch {
	case i.digest != "" && want.digest != "":
		return i.digest == want.digest
	case i.tag != "" && want.tag != "":
		return i.tag == want.tag
	}
	return true
}
