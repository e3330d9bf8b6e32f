package render

import (
	"encoding/json"
	"slices"
)

// WorkloadImage is an image that a change brings to a workload, with those of it that the change takes away.
type WorkloadImage struct {
	Workload ObjectRef
	Image    string
	Was      []string // none: it is new, or comes beside what is there
}

// podWorkloads are the kinds, by their groups, that keep pods running for as long as they are
// there. Kinds that run once, or now and then, may have none of their newest pods.
var podWorkloads = map[string][]string{
	"":            {"Pod", "ReplicationController"},
	"apps":        {"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"},
	"argoproj.io": {"Rollout"},
}

// BroughtImages lists the images that changes bring to workloads which should have pods, from the manifests
// before them and after. A workload without replicas should have none; how many an autoscaler leaves it isn't
// known here.
func (c *Changes) BroughtImages(before, after *Manifests) []WorkloadImage {
	var out []WorkloadImage
	if c.Empty() || after == nil {
		return nil
	}
	old, recent := byIdentity(before), byIdentity(after)
	for i := range c.Objects {
		ch := &c.Objects[i]
		o := Object{APIVersion: ch.APIVersion, Kind: ch.Kind, Namespace: ch.Namespace, Name: ch.Name}
		id := o.toIdentity()
		now := recent[id]
		if ch.Op == Removed || now == nil || !slices.Contains(podWorkloads[id.group], id.kind) {
			continue
		}
		fields := fieldsOf(now)
		if hasNoReplicas(fields) {
			continue
		}
		had, has := []string(nil), listImages(fields)
		if was := old[id]; was != nil {
			had = listImages(fieldsOf(was))
		}
		gone := slices.DeleteFunc(slices.Clone(had), func(image string) bool { return slices.Contains(has, image) })
		for _, image := range has {
			if !slices.Contains(had, image) {
				out = append(out, WorkloadImage{Workload: now.toRef(), Image: image, Was: gone})
			}
		}
	}
	return out
}

func hasNoReplicas(fields map[string]any) bool {
	spec, _ := fields["spec"].(map[string]any)
	n, ok := spec["replicas"].(json.Number)
	return ok && n.String() == "0"
}

// listImages lists the images of the containers in an object's fields, sorted, each once.
func listImages(fields map[string]any) []string {
	var out []string
	var walk func(value any)
	walk = func(value any) {
		switch value := value.(type) {
		case []any:
			for _, item := range value {
				walk(item)
			}
		case map[string]any:
			for key, item := range value {
				if containers, ok := item.([]any); ok && (key == "containers" || key == "initContainers") {
					for _, c := range containers {
						if c, ok := c.(map[string]any); ok {
							if image, ok := c["image"].(string); ok && image != "" {
								out = append(out, image)
							}
						}
					}
					continue
				}
				walk(item)
			}
		}
	}
	walk(fields)
	slices.Sort(out)
	return slices.Compact(out)
}
