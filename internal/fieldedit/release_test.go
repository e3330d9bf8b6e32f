package fieldedit

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// newTree makes a commit of files.
func newTree(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

var allKinds = []pipeline.Carry{
	{KustomizeImages: []string{"registry.example/*"}},
	{YAML: &pipeline.FieldPick{Files: []string{"values*.yaml"}, Paths: []string{"image.tag", "replicas"}}},
	{JSON: &pipeline.FieldPick{Files: []string{"conf/**/config.json"}, Paths: []string{"releaseTag", "/n"}}},
}

func TestRead(t *testing.T) {
	commit := newTree(map[string]string{
		"apps/web/dev/kustomization.yaml": "images:\n- name: registry.example/web\n  newTag: \"1.20\"\n  newName: mirror.example/web\n" +
			"- name: registry.example/db\n  digest: sha256:1\n- name: other.example/x\n  newTag: v9\n- name: registry.example/deep/er\n  newTag: v9\n",
		"apps/web/dev/values.yaml":                 "# c\nimage:\n  tag: v1\nreplicas: 3\n",
		"apps/web/dev/values-eu.yaml":              "image: {}\nreplicas: ~\n",
		"apps/web/dev/deeper/values.yaml":          "image: {tag: no}\n",
		"apps/web/dev/conf/config.json":            `{"releaseTag": "r1", "n": 1.0}`,
		"apps/web/dev/conf/a/b/config.json":        `{}`,
		"apps/web/qa/kustomization.yml":            "resources: []\n",
		"apps/web/other/kustomization.yaml":        "images: []\n",
		"apps/web/other/kustomization.yml":         "images: []\n",
		"apps/web/aliased/values.yaml":             "x: &x {tag: v1}\nimage: *x\n",
		"apps/web/broken/values-x.yaml":            "image:\n  tag: [\n",
		"apps/web/mapping/values.yaml":             "image:\n  tag: {a: b}\n",
		"apps/web/merged/values.yaml":              "x: &x {tag: v1}\nimage:\n  <<: *x\n",
		"apps/web/lfs/values.yaml":                 "version https://git-lfs.github.com/spec/v1\n",
		"apps/web/updater/kustomization.yml":       "images: [{name: registry.example/web, newTag: a}]\n",
		"apps/web/updater/.argocd-source-web.yaml": "kustomize: {images: [other/x:v1, 'registry.example/web:v2']}\n",
		"apps/web/big/values.yaml":                 strings.Repeat("#", MaxFileSize+1),
		"apps/web/noname/kustomization.yaml":       "images:\n- newTag: v1\n",
		"a [x]{y}/values.yaml":                     "image: {tag: v3}\n",
	})
	commit["apps/web/linked/values.yaml"] = &fstest.MapFile{Data: []byte("../dev/values.yaml"), Mode: fs.ModeSymlink}
	commit["apps/web/linkedfolder"] = &fstest.MapFile{Data: []byte("dev"), Mode: fs.ModeSymlink}
	commit["apps/web/sub"] = &fstest.MapFile{Mode: fs.ModeIrregular}

	want := []Field{
		{KindImage, "kustomization.yaml", "images[registry.example/db].digest", "sha256:1", ""},
		{KindImage, "kustomization.yaml", "images[registry.example/web].newName", "mirror.example/web", ""},
		{KindImage, "kustomization.yaml", "images[registry.example/web].newTag", "1.20", ""},
		{KindJSON, "conf/config.json", "/n", "1.0", TypeNumber},
		{KindJSON, "conf/config.json", "releaseTag", "r1", ""},
		{KindYAML, "values-eu.yaml", "replicas", "", TypeNull},
		{KindYAML, "values.yaml", "image.tag", "v1", ""},
		{KindYAML, "values.yaml", "replicas", "3", TypeNumber},
	}
	got, err := Read(commit, Overlay{Roots: []string{"apps/web/dev/", "apps/web/dev", "apps/web/nothing"}, Carry: allKinds})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Fields); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	sorted := Release{Fields: append([]Field(nil), got.Fields...)}
	if sorted.Sort(); cmp.Diff(sorted, got) != "" {
		t.Error("the fields aren't sorted")
	}

	for root, value := range map[string]string{"apps/web/qa": "nothing", "apps/web/nothing": "nothing", "apps/web/aliased": "v1", "a [x]{y}": "v3"} {
		if r, err := Read(commit, Overlay{Roots: []string{root}, Carry: allKinds}); err != nil || r.String() != value {
			t.Errorf("%s: got %v, %v", root, r, err)
		}
	}

	errorsAt := []struct{ root, file, reason string }{
		{"apps/web/other", "apps/web/other/kustomization.yml", "takes only one"},
		{"apps/web/broken", "apps/web/broken/values-x.yaml:", "not YAML"},
		{"apps/web/mapping", "apps/web/mapping/values.yaml:2", "not a single value"},
		{"apps/web/merged", "apps/web/merged/values.yaml:3", "merge key"},
		{"apps/web/lfs", "apps/web/lfs/values.yaml", "LFS"},
		{"apps/web/linked", "apps/web/linked/values.yaml", "symlink"},
		{"apps/web/linkedfolder", "apps/web/linkedfolder", "symlink"},
		{"apps/web/sub", "apps/web/sub", "submodule"},
		{"apps/web/updater", "apps/web/updater/.argocd-source-web.yaml:1: images[registry.example/web].newTag", "lays this file over"},
		{"apps/web/big", "apps/web/big/values.yaml", "at most 20971520"},
		{"apps/web/noname", "apps/web/noname/kustomization.yaml:2", "no name"},
		{"apps/web/dev/values.yaml", "apps/web/dev/values.yaml", "is a file"},
		{"../x", "../x", "isn't a folder of the repository"},
		{"/x", "/x", "isn't a folder of the repository"},
	}
	for _, tt := range errorsAt {
		t.Run(tt.root, func(t *testing.T) {
			r, err := Read(commit, Overlay{Roots: []string{tt.root}, Carry: allKinds})
			if err == nil || !strings.Contains(err.Error(), tt.file) || !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("got %v, %v", r, err)
			}
		})
	}
}

func TestReadSeveralRoots(t *testing.T) {
	commit := newTree(map[string]string{
		"qa/eu/values.yaml": "image: {tag: v1}\n",
		"qa/us/values.yaml": "\n\nimage: {tag: \"v1\"}\nreplicas: 1\n",
		"qa/ap/values.yaml": "image: {tag: v2}\n",
	})
	r, err := Read(commit, Overlay{Roots: []string{"qa/eu", "qa/us"}, Carry: allKinds})
	if err != nil || len(r.Fields) != 2 {
		t.Fatalf("got %v, %v", r, err)
	}
	found, err := Locate(commit, Overlay{Roots: []string{"qa/us", "qa/eu"}, Carry: allKinds})
	if err != nil || len(found) != 3 || found[1].File != "qa/us/values.yaml" || found[1].Line != 3 || found[1].Root != "qa/us" {
		t.Errorf("located %+v, %v", found, err)
	}
	_, err = Read(commit, Overlay{Roots: []string{"qa/eu", "qa/us", "qa/ap"}, Carry: allKinds})
	var mixed *MixedError
	if !errors.As(err, &mixed) || len(mixed.Found) != 3 || mixed.Path != "image.tag" {
		t.Fatalf("got %v", err)
	}
	want := `the environment's overlays disagree about image.tag: "v2" in qa/ap/values.yaml:1, "v1" in qa/eu/values.yaml:1, "v1" in qa/us/values.yaml:3; make them the same`
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}

func TestReadBadCarry(t *testing.T) {
	for name, c := range map[string]pipeline.Carry{
		"no kind":         {},
		"bad path":        {YAML: &pipeline.FieldPick{Files: []string{"*"}, Paths: []string{"a..b"}}},
		"half a wildcard": {YAML: &pipeline.FieldPick{Files: []string{"*"}, Paths: []string{"a.b*"}}},
		"leaves the root": {YAML: &pipeline.FieldPick{Files: []string{"../*.yaml"}, Paths: []string{"a"}}},
		"absolute":        {JSON: &pipeline.FieldPick{Files: []string{"/a.json"}, Paths: []string{"a"}}},
		"bad glob":        {KustomizeImages: []string{"[a"}},
	} {
		t.Run(name, func(t *testing.T) {
			commit := newTree(map[string]string{"kustomization.yaml": "images: [{name: a, newTag: b}]\n"})
			if r, err := Read(commit, Overlay{Roots: []string{""}, Carry: []pipeline.Carry{c}}); err == nil {
				t.Errorf("got %v", r)
			}
		})
	}
}
