package render

import (
	"fmt"
	"testing"
)

// TestBroughtImages lists the images that changes bring to what keeps pods running.
func TestBroughtImages(t *testing.T) {
	workload := func(apiVersion, kind, spec string) *Manifests {
		return &Manifests{Objects: []Object{{APIVersion: apiVersion, Kind: kind, Name: "web",
			JSON: []byte(fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"web"},"spec":%s}`, apiVersion, kind, spec))}}}
	}
	pods := func(images ...string) string {
		out := ""
		for i, image := range images {
			if i > 0 {
				out += ","
			}
			out += fmt.Sprintf(`{"name":"c%d","image":%q}`, i, image)
		}
		return `{"template":{"spec":{"containers":[` + out + `]}}}`
	}
	deployment := func(images ...string) *Manifests { return workload("apps/v1", "Deployment", pods(images...)) }
	for name, c := range map[string]struct {
		before, after *Manifests
		want          string
	}{
		"another tag":            {deployment("web:1"), deployment("web:2"), "[{{apps Deployment  web} web:2 [web:1]}]"},
		"one of two":             {deployment("web:1", "proxy:1"), deployment("web:2", "proxy:1"), "[{{apps Deployment  web} web:2 [web:1]}]"},
		"new":                    {nil, deployment("web:2"), "[{{apps Deployment  web} web:2 []}]"},
		"gone":                   {deployment("web:1"), nil, "[]"},
		"something else":         {workload("apps/v1", "Deployment", `{"paused":true}`), workload("apps/v1", "Deployment", `{"paused":false}`), "[]"},
		"without replicas":       {deployment("web:1"), workload("apps/v1", "Deployment", `{"replicas":0,"template":{"spec":{"containers":[{"image":"web:2"}]}}}`), "[]"},
		"an init container":      {nil, workload("apps/v1", "StatefulSet", `{"template":{"spec":{"initContainers":[{"image":"init:2"}]}}}`), "[{{apps StatefulSet  web} init:2 []}]"},
		"a rollout":              {nil, workload("argoproj.io/v1alpha1", "Rollout", pods("web:2")), "[{{argoproj.io Rollout  web} web:2 []}]"},
		"a pod":                  {nil, workload("v1", "Pod", `{"containers":[{"image":"web:2"}]}`), "[{{ Pod  web} web:2 []}]"},
		"what runs now and then": {nil, workload("batch/v1", "CronJob", `{"jobTemplate":{"spec":{"template":{"spec":{"containers":[{"image":"web:2"}]}}}}}`), "[]"},
		"of another kind":        {nil, workload("shop.example/v1", "Deployment", pods("web:2")), "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, m := range []*Manifests{c.before, c.after} {
				if m != nil {
					m.Digest = string(m.Objects[0].JSON)
				}
			}
			if got := fmt.Sprint(Diff(c.before, c.after).BroughtImages(c.before, c.after)); got != c.want {
				t.Errorf("it brings %s, want %s", got, c.want)
			}
		})
	}
}
