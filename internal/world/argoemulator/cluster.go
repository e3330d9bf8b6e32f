package argoemulator

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// content is what a folder of a repository deploys.
type content struct {
	id       string // equal for equal manifests
	images   []string
	replicas map[string]int // by Deployment, where the folder says so
	missing  bool           // there is no such folder
}

const (
	// The bounds of what is kept of repositories.
	maxContents = 4096
	maxTrees    = 16
	maxBlobs    = 4096
	// maxPods bounds the pods of a Deployment that are told of.
	maxPods = 20
	// maxBases bounds how far a kustomization's references are followed.
	maxBases = 20
)

// readContent reads what an Application deploys at a commit: its folder, with its
// source's options.
func (a *ArgoCD) readContent(app *application, commit string) (content, error) {
	c, err := a.readFolder(app, commit)
	if len(app.Options) > 0 {
		c.id += fmt.Sprint(" ", app.Options) // in the order of their keys
	}
	return c, err
}

// readFolder reads what a folder deploys. With many Applications a push is one git
// command, and one a changed kustomization.
func (a *ArgoCD) readFolder(app *application, commit string) (content, error) {
	if commit == "" {
		return content{missing: true}, nil
	}
	key := app.Repo + " " + commit + " " + app.Path
	if c, ok := a.contents.Get(key); ok {
		return c, nil
	}
	tree, err := a.readTree(app.Repo, commit)
	if err != nil {
		return content{}, err
	}
	dir := path.Clean(app.Path)
	c := content{missing: tree[dir] == ""}
	if !c.missing {
		ids, images, err := a.readKustomization(app.Repo, tree, dir, maxBases)
		if err != nil {
			return c, err
		}
		c.id, c.images = strings.Join(append([]string{tree[dir]}, ids...), " "), images
		if c.replicas, err = a.readReplicas(app.Repo, tree[path.Join(dir, "kustomization.yaml")]); err != nil {
			return c, err
		}
	}
	a.contents.Put(key, c)
	return c, nil
}

func (a *ArgoCD) readTree(repo, commit string) (map[string]string, error) {
	return a.trees.GetOrLoad(repo+" "+commit, func() (map[string]string, error) { return a.repos.Tree(repo, commit) })
}

func (a *ArgoCD) readBlob(repo, id string) (string, error) {
	return a.blobs.GetOrLoad(repo+" "+id, func() (string, error) { return a.repos.Blob(repo, id) })
}

// readReplicas reads how many pods a kustomization wants of each Deployment.
func (a *ArgoCD) readReplicas(repo, file string) (map[string]int, error) {
	if file == "" {
		return nil, nil
	}
	text, err := a.readBlob(repo, file)
	if err != nil {
		return nil, err
	}
	var k struct {
		Replicas []struct {
			Name  string `yaml:"name"`
			Count int    `yaml:"count"`
		}
	}
	if err := yaml.Unmarshal([]byte(text), &k); err != nil {
		return nil, fmt.Errorf("read the replicas of a kustomization: %w", err)
	}
	out := map[string]int{}
	for _, r := range k.Replicas {
		out[r.Name] = min(r.Count, maxPods)
	}
	return out, nil
}

// readKustomization reads a folder's images, and the identities of the local
// folders and files that it refers to: a change there is a change here.
func (a *ArgoCD) readKustomization(repo string, tree map[string]string, dir string, left int) (ids, images []string, err error) {
	file := tree[path.Join(dir, "kustomization.yaml")]
	if file == "" {
		return nil, nil, nil
	}
	text, err := a.readBlob(repo, file)
	if err != nil {
		return nil, nil, err
	}
	var k struct {
		Resources  []string
		Components []string
		Bases      []string
		Images     []struct {
			Name    string `yaml:"name"`
			NewName string `yaml:"newName"`
			NewTag  string `yaml:"newTag"`
			Digest  string `yaml:"digest"`
		}
	}
	if err := yaml.Unmarshal([]byte(text), &k); err != nil {
		return nil, nil, fmt.Errorf("%s/kustomization.yaml: %w", dir, err)
	}
	for _, i := range k.Images {
		image := cmp.Or(i.NewName, i.Name)
		switch {
		case i.Digest != "":
			image += "@" + i.Digest
		case i.NewTag != "":
			image += ":" + i.NewTag
		}
		images = append(images, image)
	}
	for _, ref := range slices.Concat(k.Resources, k.Components, k.Bases) {
		to := path.Join(dir, ref)
		if left == 0 || strings.Contains(ref, "://") || tree[to] == "" {
			continue
		}
		more, _, err := a.readKustomization(repo, tree, to, left-1)
		if err != nil {
			return nil, nil, err
		}
		ids = append(append(ids, tree[to]), more...)
	}
	return ids, images, nil
}

// rollout is what a cluster runs since the sync that brought it.
type rollout struct {
	content     content
	startedAt   time.Time
	preexisting bool // it runs since before the world began
}

// health is an Application's health with that of its resources.
type health struct {
	status, message string
	since           time.Time
	resources       []resource
}

type resource struct {
	name, status, message string
	pod                   podState // of each of its pods; zero: none is told of
}

// podState is how a pod is, as Argo CD tells it.
type podState struct{ health, reason, message string }

// worst first; Argo CD reports the worst of an Application's resources.
var healthOrder = []string{"Missing", "Degraded", "Progressing", "Healthy"}

// actualHealth is how an Application's resources are, which is not yet what Argo CD
// says about them. since is not set.
func (a *ArgoCD) actualHealth(app *application, now time.Time) health {
	if app.live == nil {
		return health{status: "Missing"}
	}
	h := health{status: "Healthy"}
	for _, image := range app.live.content.images {
		r := a.deploymentHealth(app, image, now)
		h.resources = append(h.resources, r)
		if slices.Index(healthOrder, r.status) < slices.Index(healthOrder, h.status) {
			h.status = r.status
		}
	}
	return h
}

// deploymentHealth is the health of the Deployment that runs an image.
func (a *ArgoCD) deploymentHealth(app *application, image string, now time.Time) resource {
	name := deploymentName(image)
	r := resource{name: name, status: "Progressing", message: "Waiting for rollout to finish: 0 of 1 updated replicas are available...",
		pod: podState{health: "Progressing", reason: "ContainerCreating"}}
	age := now.Sub(app.live.startedAt)
	failed := resource{name: name, status: "Degraded", message: fmt.Sprintf("Deployment %q exceeded its progress deadline", name)}
	switch {
	case imageFails(image, "broken", app.DestinationNamespace):
		r.pod = podState{"Degraded", "ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q", image)}
		if failed.pod = r.pod; app.live.preexisting || age >= a.timings.Degrade {
			return failed
		}
	case imageFails(image, "late", app.DestinationNamespace) && (app.live.preexisting || age >= a.timings.Rollout+a.timings.LateFailure):
		failed.pod = podState{"Degraded", "CrashLoopBackOff", "back-off 10s restarting failed container=" + name}
		return failed
	case app.live.preexisting || age >= a.timings.Rollout:
		return resource{name: name, status: "Healthy", pod: podState{health: "Healthy", reason: "Running"}}
	}
	return r
}

// deploymentName is the name of the Deployment that runs an image.
func deploymentName(image string) string {
	name, _, _ := strings.Cut(path.Base(strings.SplitN(path.Base(image), ":", 2)[0]), "@")
	return name
}

// imageFails says whether an image has a way of failing that applies in a namespace. The word is in
// its name or tag, and where it ends in "-in-x" the namespace is x or ends in "-x".
func imageFails(image, word, namespace string) bool {
	if !strings.Contains(image, word) {
		return false
	}
	i := strings.LastIndex(image, "-in-")
	if i < 0 {
		return true
	}
	where := image[i+len("-in-"):]
	return namespace == where || strings.HasSuffix(namespace, "-"+where)
}
