package history

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// TestIdentityCarry says which carried fields of the files that make targets tell targets apart. It
// says nothing of deployed files, nor of versions.
func TestIdentityCarry(t *testing.T) {
	target := appset.Target{Name: "web-prod", Project: "shop", DestNS: "shop-prod", Component: "web", Environment: "prod", ApplicationSetFile: "argocd/prod.yaml",
		Sources: []appset.Source{{Here: true, Path: "apps/web/prod", RepoURL: "https://git.example/acme/fleet.git"}}}
	components := map[string]map[string]*Environment{"web": {"prod": {Component: "web", Name: "prod", Targets: []appset.Target{target}, Roots: []string{"apps/web/prod"}, Files: []string{"argocd/prod.yaml"}}}}
	files := fstest.MapFS{
		"argocd/prod.yaml":          {Data: []byte("service: web\nproject: shop\nnamespace: shop-prod\nrepo: https://git.example/acme/fleet.git\nversion: 1.2.0\ntag: '{{ .tag }}'\n")},
		"apps/web/prod/values.yaml": {Data: []byte("service: web\n")},
	}
	for field, want := range map[string]string{
		"service": "line 1: service is carried, and it is the component web", "project": "the project shop", "namespace": "the namespace shop-prod",
		"repo": "the repository https://git.example/acme/fleet.git", "tag": "it is a template", "version": "",
	} {
		p := &pipeline.Pipeline{}
		p.Spec.Carry = []pipeline.Carry{{YAML: &pipeline.FieldPick{Files: []string{"{{environment}}.yaml", "values.yaml"}, Paths: []string{field}}}}
		got := IdentityCarry(p, components, func(string) fs.FS { return files })
		switch {
		case want == "" && len(got) > 0:
			t.Errorf("%s: %v", field, got)
		case want != "" && (len(got) != 1 || got[0].File != "argocd/prod.yaml" || !strings.Contains(got[0].Message, want)):
			t.Errorf("%s gives %v, not %q", field, got, want)
		}
	}
}
