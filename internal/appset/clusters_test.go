package appset

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseClusters(t *testing.T) {
	const list = `apiVersion: v1
kind: List
items:
- kind: Secret
  metadata: {name: b, namespace: argocd, labels: {argocd.argoproj.io/secret-type: cluster, env: prod}, annotations: {kubectl.kubernetes.io/last-applied-configuration: "hunter2", a: b}}
  data: {name: cHJvZA==, server: aHR0cHM6Ly9wcm9k, config: aHVudGVyMg==, project: dGVhbQ==}
- kind: Secret
  metadata: {name: repo, labels: {argocd.argoproj.io/secret-type: repository}}
  data: {url: eA==}
---
kind: Secret
metadata: {name: a, labels: {argocd.argoproj.io/secret-type: cluster}}
stringData: {name: dev, server: https://dev}
`
	got, err := ParseClusters([]byte(list))
	must(t, err)
	label := map[string]string{"argocd.argoproj.io/secret-type": "cluster"}
	want := []Cluster{
		{Secret: "a", Name: "dev", Server: "https://dev", Labels: label},
		{Secret: "b", Namespace: "argocd", Name: "prod", Server: "https://prod", Project: "team",
			Labels: map[string]string{"argocd.argoproj.io/secret-type": "cluster", "env": "prod"}, Annotations: map[string]string{"a": "b"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got, err := ParseClusters(nil); err != nil || got == nil || len(got) > 0 {
		t.Errorf("an empty file is an empty list, not %v %v", got, err)
	}
	for name, bad := range map[string]string{
		"not YAML": "a: [", "another kind": "kind: ConfigMap", "not base64": strings.Replace(list, "cHJvZA==", "'hunter2!'", 1),
		"no server":  "kind: Secret\nmetadata: {labels: {argocd.argoproj.io/secret-type: cluster}}\ndata: {name: eA==}",
		"wrong type": "kind: Secret\nmetadata: {labels: {argocd.argoproj.io/secret-type: cluster}}\ndata: {name: [hunter2]}",
	} {
		_, err := ParseClusters([]byte(bad))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseClusters(f *testing.F) {
	f.Add([]byte("kind: List\nitems: [{metadata: {labels: {argocd.argoproj.io/secret-type: cluster}}, data: {server: eA==}}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		clusters, err := ParseClusters(data)
		for _, c := range clusters {
			if err == nil && c.Server == "" {
				t.Fatal("a cluster without a server")
			}
		}
	})
}
