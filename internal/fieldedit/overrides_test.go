package fieldedit

import (
	"errors"
	"strings"
	"testing"
)

// TestOverrides holds which fields an .argocd-source file takes from what is
// beside it.
func TestOverrides(t *testing.T) {
	const web = "images:\n- name: registry.example/web\n  newName: mirror/web\n  newTag: v1\n"
	tests := []struct{ name, file, text, err string }{
		{"the image", "a/.argocd-source-web.yaml", "kustomize:\n  images:\n  - other/x:v1\n  - registry.example/web:v2\n", "a/.argocd-source-web.yaml:4: images[registry.example/web].newName: Argo CD lays this file over a/kustomization.yaml"},
		{"by the name without an Application", "a/.argocd-source.yaml", "kustomize: {images: ['registry.example/web=x:v2']}\n", "lays this file over"},
		{"by digest", "a/.argocd-source.yaml", "kustomize: {images: ['registry.example/web@sha256:00']}\n", "lays this file over"},
		{"by its new name", "a/.argocd-source.yaml", "kustomize: {images: ['mirror/web:v2']}\n", "lays this file over"},
		{"another image", "a/.argocd-source.yaml", "kustomize: {images: ['registry.example/webs:v2', 'localhost:5000/registry.example/web']}\n", ""},
		{"another kustomize option", "a/.argocd-source.yaml", "kustomize: {namePrefix: x-}\n", ""},
		{"another folder", "b/.argocd-source.yaml", "kustomize: {images: ['registry.example/web:v2']}\n", ""},
		{"a folder below", "a/x/.argocd-source.yaml", "kustomize: {images: ['registry.example/web:v2']}\n", ""},
		{"a Helm parameter", "a/.argocd-source-web.yaml", "helm:\n  parameters:\n  - name: other\n    value: x\n  - name: image.tag\n    value: v2\n", "a/.argocd-source-web.yaml:5: image.tag: Argo CD lays this file over a/values.yaml"},
		{"a Helm parameter elsewhere in the environment", "c/.argocd-source-web.yaml", "helm: {parameters: [{name: image.tag, value: v2}]}\n", "lays this file over a/values.yaml"},
		{"another Helm parameter", "a/.argocd-source-web.yaml", "helm: {parameters: [{name: image.pullPolicy, value: v2}]}\n", ""},
		{"inline values", "a/.argocd-source-web.yaml", "helm:\n  values: |\n    image: {tag: v2}\n", "image.tag: Argo CD lays this file over"},
		{"other inline values", "a/.argocd-source-web.yaml", "helm:\n  values: |\n    image: {pullPolicy: Always}\n", ""},
		{"a values object", "a/.argocd-source-web.yaml", "helm: {values: '', valuesObject: {image: {tag: v2}}}\n", "image.tag: Argo CD lays this file over"},
		{"broken", "a/.argocd-source-web.yaml", "helm: [", "a/.argocd-source-web.yaml:1: not YAML"},
		{"broken values", "a/.argocd-source-web.yaml", "helm: {values: '['}", "helm.values can't be read"},
		{"not one of Argo CD's", "a/argocd-source-web.yaml", "helm: [", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			commit := newTree(map[string]string{"a/kustomization.yaml": web, "a/values.yaml": "image: {tag: v1}\n", "c/x": "", tt.file: tt.text})
			_, err := Read(commit, Overlay{Roots: []string{"a", "c"}, Carry: allKinds})
			if tt.err == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var r *RefusedError
			if !errors.As(err, &r) || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %v", err)
			}
		})
	}
}
