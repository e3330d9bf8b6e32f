package verification

import (
	"regexp"
	"slices"
	"strings"
)

// pullReasons are why a pod waits that can't pull an image, with Init: before them for one of
// an init container's.
var pullReasons = []string{"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"}

// startReasons are why a pod waits that hasn't come so far that its release could fail.
var startReasons = []string{"ContainerCreating", "Pending", "PodInitializing"}

// quotedImage finds the images in what the kubelet says of failed pulls.
var quotedImage = regexp.MustCompile(`(?i)image \\?"([^"\\\s]+)`)

// otherFailure is a pod's message where another of its containers fails for another reason: Argo CD
// joins the messages of all of them, behind the first one's reason.
var otherFailure = regexp.MustCompile(
	`(?i)restarting failed container|(configmap|secret) "|find key|(create|start|run) (container|pod)|oci runtime|runas`)

// FailsToPull says that a pod with this reason waits for an image that it can't pull.
func FailsToPull(reason string) bool {
	return slices.Contains(pullReasons, strings.TrimPrefix(reason, "Init:"))
}

// UnpulledImages are the images that a resource's pods can't pull; for a pod that doesn't say
// which it is, all of its own. False where something else may be wrong with the resource too,
// or nothing is known of its pods.
func UnpulledImages(r Resource) ([]string, bool) {
	var out []string
	pods := r.Descendants
	if r.Group == "" && r.Kind == "Pod" {
		reason := ""
		if strings.Contains(r.Message, "pulling image") {
			reason = "ImagePullBackOff"
		}
		pods = []Descendant{{Kind: r.Kind, Name: r.Name, Health: r.Health, Reason: reason, Message: r.Message}}
	}
	for i := range pods {
		p := &pods[i]
		switch {
		case p.Kind != "Pod" || p.Health == progressing && slices.Contains(startReasons, p.Reason):
			continue
		case !FailsToPull(p.Reason):
			return nil, false
		}
		if otherFailure.MatchString(p.Message) {
			return nil, false
		}
		images := p.Images
		if found := quotedImage.FindAllStringSubmatch(p.Message, -1); found != nil {
			images = nil
			for _, f := range found {
				images = append(images, f[1])
			}
		}
		if len(images) == 0 {
			return nil, false
		}
		for _, image := range images {
			if !slices.Contains(out, image) {
				out = append(out, image)
			}
		}
	}
	return out, len(out) > 0
}
