package argocd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

const (
	// podsPerSecond bounds what a release that is verified on many targets at once costs Argo CD; of so many
	// the pods are read at once before that counts.
	podsPerSecond = 1
	podsBurst     = 20
	// maxLivePods bounds the pods of one Application that are read as they are in the cluster.
	maxLivePods = 3
	// maxDigest bounds a digest: sha512's has 135 bytes.
	maxDigest = 160
)

// RunningImages are the images of an Application's pods, with the number of pods of each, and since
// when. For those that a few pods tell, it has the digest that a container runs. Unreported parts
// are left out; none where there is no API to ask, or no pod. ErrTreesBusy says that others are
// asked for first.
func (w *Watcher) RunningImages(ctx context.Context, app *verification.App) ([]verification.RunningImage, error) {
	if w.trees == nil {
		return nil, nil
	}
	if !w.trees.pods.Allow() {
		return nil, ErrTreesBusy
	}
	nodes, err := w.trees.api.ResourceTree(ctx, app.Namespace, app.Name, app.Project)
	if err != nil {
		return nil, fmt.Errorf("argocd %s: read the pods of Application %s/%s: %w", w.name, app.Namespace, app.Name, err)
	}
	found := countImages(nodes)
	for i := range found[:min(len(found), maxLivePods)] {
		image := &found[i]
		if image.Digest = verification.DigestOf(image.Image); image.Digest != "" {
			continue
		}
		// Without the right to see a pod everything else is known all the same.
		if pod, err := w.trees.api.LivePod(ctx, app.Namespace, app.Name, app.Project, image.newest.Resource); err == nil {
			image.Digest = digestInPod(&pod, image.Image)
		}
	}
	out := make([]verification.RunningImage, 0, len(found))
	for i := range found {
		out = append(out, found[i].RunningImage)
	}
	return out, nil
}

// podsImage is an image with the newest of the pods that have it.
type podsImage struct {
	verification.RunningImage
	newest *api.Node
}

// countImages lists the images of the pods in a tree, that of the newest pod first, bounded.
func countImages(nodes []api.Node) []podsImage {
	var out []podsImage
	for i := range nodes {
		n := &nodes[i]
		if !isPod(n) {
			continue
		}
		for _, image := range slices.Compact(slices.Sorted(slices.Values(n.Images))) {
			at := slices.IndexFunc(out, func(p podsImage) bool { return p.Image == image })
			if at < 0 {
				if len(out) == maxImages || len(image) > maxMessage {
					continue
				}
				at = len(out)
				out = append(out, podsImage{verification.RunningImage{Image: image, Since: n.CreatedAt.UTC()}, n})
			}
			p := &out[at]
			p.Pods++
			if n.CreatedAt.After(p.newest.CreatedAt) {
				p.newest = n
			}
			p.Since = earlierOf(p.Since, n.CreatedAt.UTC())
		}
	}
	slices.SortStableFunc(out, func(a, b podsImage) int { return b.newest.CreatedAt.Compare(a.newest.CreatedAt) })
	return out
}

// earlierOf is the earlier of two times; zero where one isn't known.
func earlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// digestInPod is the digest of what a pod's containers of an image run; "" where the pod doesn't say, or they
// run several.
func digestInPod(pod *api.Pod, image string) string {
	digest := ""
	for _, part := range []struct {
		wanted []api.Container
		runs   []api.ContainerStatus
	}{{pod.Spec.Containers, pod.Status.ContainerStatuses}, {pod.Spec.InitContainers, pod.Status.InitContainerStatuses}} {
		for _, c := range part.wanted {
			at := slices.IndexFunc(part.runs, func(s api.ContainerStatus) bool { return s.Name == c.Name })
			if c.Image != image || at < 0 {
				continue
			}
			switch is := imageDigest(part.runs[at].ImageID); {
			case is == "" || is == digest:
			case digest != "":
				return ""
			default:
				digest = is
			}
		}
	}
	return digest
}

// imageDigest is the digest in what a runtime says of an image that it pulled. An image that was only loaded has
// the digest of its configuration there, without a name, which is another thing.
func imageDigest(id string) string {
	_, digest, ok := strings.Cut(id, "@")
	if !ok || !strings.HasPrefix(digest, "sha") || len(digest) > maxDigest {
		return ""
	}
	return digest
}
