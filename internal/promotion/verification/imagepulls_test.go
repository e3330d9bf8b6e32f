package verification

import (
	"slices"
	"testing"
)

func TestUnpulledImages(t *testing.T) {
	pod := func(health, reason, message string, images ...string) Descendant {
		return Descendant{Kind: "Pod", Name: "web-1", Health: health, Reason: reason, Message: message, Images: images}
	}
	back := pod("Degraded", "ImagePullBackOff", `Back-off pulling image "web:2"`, "proxy:1", "web:2")
	for _, c := range []struct {
		name string
		pods []Descendant
		want []string
	}{
		{"it says which", []Descendant{back}, []string{"web:2"}},
		{"as containerd says it", []Descendant{pod("Degraded", "ErrImagePull", `rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/web:2": failed to resolve reference`)}, []string{"docker.io/library/web:2"}},
		{"of a name with an s", []Descendant{pod("Degraded", "ErrImagePull", `failed to pull and unpack image "docker.io/library/postgres:17": not found`)}, []string{"docker.io/library/postgres:17"}},
		{"of a registry with an s", []Descendant{pod("Degraded", "ImagePullBackOff", `Back-off pulling image "registry.example/shop/web:1.5"`)}, []string{"registry.example/shop/web:1.5"}},
		{"quoted twice", []Descendant{pod("Degraded", "ImagePullBackOff", `Back-off pulling image \"shop:2\": not found`)}, []string{"shop:2"}},
		{"two containers can't pull", []Descendant{pod("Degraded", "ImagePullBackOff", `Back-off pulling image "proxy:1", Back-off pulling image "web:2"`, "proxy:1", "web:2")}, []string{"proxy:1", "web:2"}},
		{"another container crashes", []Descendant{pod("Degraded", "ImagePullBackOff", `Back-off pulling image "proxy:1", back-off 5m0s restarting failed container=web pod=web-1_shop(7)`, "proxy:1", "web:2")}, nil},
		{"another container lacks its configuration", []Descendant{pod("Degraded", "ImagePullBackOff", `Back-off pulling image "proxy:1", configmap "web" not found`, "proxy:1", "web:2")}, nil},
		{"it doesn't say which", []Descendant{pod("Degraded", "ErrImagePull", "rpc error", "proxy:1", "web:2")}, []string{"proxy:1", "web:2"}},
		{"an init container", []Descendant{pod("Progressing", "Init:ImagePullBackOff", "", "wait:1")}, []string{"wait:1"}},
		{"nothing is known of its images", []Descendant{pod("Degraded", "ErrImagePull", "")}, nil},
		{"others only start", []Descendant{back, pod("Progressing", "ContainerCreating", "")}, []string{"web:2"}},
		{"another crashes", []Descendant{back, pod("Degraded", "CrashLoopBackOff", "")}, nil},
		{"another doesn't get ready", []Descendant{back, pod("Progressing", "", "")}, nil},
		{"what made it", []Descendant{back, {Kind: "ReplicaSet", Health: "Progressing", Message: "waiting"}}, []string{"web:2"}},
		{"no pods", []Descendant{{Kind: "ReplicaSet", Health: "Progressing"}}, nil},
		{"each once", []Descendant{back, back}, []string{"web:2"}},
	} {
		got, ok := UnpulledImages(Resource{Group: "apps", Kind: "Deployment", Health: "Degraded", Descendants: c.pods})
		if !slices.Equal(got, c.want) || ok != (c.want != nil) {
			t.Errorf("%s: %q, %t", c.name, got, ok)
		}
	}
	if got, ok := UnpulledImages(Resource{Kind: "Pod", Health: "Degraded", Message: `Back-off pulling image "web:2"`}); !ok || got[0] != "web:2" {
		t.Errorf("a pod of its own: %q, %t", got, ok)
	}
	if got, ok := UnpulledImages(Resource{Group: "metrics.example", Kind: "Pod", Health: "Degraded", Message: `Back-off pulling image "web:2"`}); ok {
		t.Errorf("what only is called a pod: %q", got)
	}
	if got, ok := UnpulledImages(Resource{Kind: "Pod", Health: "Degraded", Message: "CrashLoopBackOff"}); ok {
		t.Errorf("one that crashes: %q", got)
	}
}
