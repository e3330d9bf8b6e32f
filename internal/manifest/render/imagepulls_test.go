package render

import (
	"strings"
	"testing"
)

func TestMayExplainPull(t *testing.T) {
	const before = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1, template: {spec: {containers: [{name: web, image: \"web:1.4\"}, {name: proxy, image: \"proxy:1.4.2\"}]}}}"
	const custom = "apiVersion: shop.example/v1\nkind: Shop\nmetadata: {name: web}\nspec: {image: {repository: web, tag: \"1.4\"}}"
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: pull}\nstringData: {a: \"1\"}"
	for _, c := range []struct {
		name, before, from, to, image string
		want                          bool
	}{
		{"the image itself", before, "web:1.4", "web:1.5", "web:1.5", true},
		{"as another writes it", before, "web:1.4", "web:1.5", "docker.io/library/web:1.5", true},
		{"another image", before, "web:1.4", "web:1.5", "proxy:1.4.2", false},
		{"something else", before, "replicas: 1", "replicas: 2", "web:1.4", false},
		{"a part of it", custom, "1.4", "1.5", "registry.example/web:1.5", true},
		{"another part", custom, "1.4", "1.5", "proxy:1.4.2", false},
		{"a container more", before, "{name: proxy,", "{name: late, image: \"late:1\"}, {name: proxy,", "late:1", true},
		{"how it is pulled", before, "{spec: {containers", "{spec: {imagePullSecrets: [{name: pull}], containers", "proxy:1.4.2", true},
		{"for which node", before, "{spec: {containers", "{spec: {nodeSelector: {arch: arm64}, containers", "proxy:1.4.2", true},
		{"with which credentials", secret, "\"1\"", "\"2\"", "proxy:1.4.2", true},
		{"a setting in a text", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: operator}\ndata: {values: \"image: web:1.4\"}", "web:1.4", "web:1.5", "web:1.5", true},
	} {
		after := strings.Replace(c.before, c.from, c.to, 1)
		if got := Diff(manifestsOf(t, c.before), manifestsOf(t, after)).MayExplainPull(c.image); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	for name, clipped := range map[string]Changes{
		"objects are left out": {LeftOut: map[Op]int{Added: 1}},
		"fields are left out":  {Objects: []Change{{Kind: "Deployment", MoreFields: 1}}},
		"a value is hidden":    {Objects: []Change{{Kind: "Deployment", Fields: []Field{{Path: "spec", Hidden: true}}}}},
	} {
		if !clipped.MayExplainPull("web:1") {
			t.Errorf("%s: it doesn't", name)
		}
	}
}
