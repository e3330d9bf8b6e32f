package isolation

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/manifest/render"
)

// TestFindOverride finds in the order of Argo CD what has the last word on a carried field.
func TestFindOverride(t *testing.T) {
	const (
		own   = "charts/web/values-qa.yaml"
		later = "charts/web/values-local.yaml"
		set   = "argocd/sets.yaml"
	)
	tag := fieldedit.Change{Kind: fieldedit.KindYAML, File: own, Path: "image.tag", Old: "1.0.0", New: "1.1.0"}
	image := fieldedit.Change{Kind: fieldedit.KindImage, File: "apps/web/kustomization.yaml", Path: "images[registry.example/web].newTag", Old: "1.0.0", New: "1.1.0"}
	setText := func(lines string) string {
		return "kind: ApplicationSet\nmetadata: {name: other}\nspec:\n  parameters: [{name: image.tag}]\n---\nkind: ApplicationSet\nmetadata: {name: web}\n" + lines + "\n"
	}
	chart := func(options string) appset.Source {
		return appset.Source{Path: "charts/web", Here: true, ValueFiles: []string{"values-qa.yaml", "values-local.yaml"}, Options: json.RawMessage(options)}
	}
	for name, c := range map[string]struct {
		change  fieldedit.Change
		sources []appset.Source
		files   map[string]string
		live    bool
		want    string // empty: nothing overrides it
	}{
		"an override file": {change: tag, sources: []appset.Source{chart(`{"helm":{"parameters":[{"name":"image.tag","value":"1"}]}}`)},
			files: map[string]string{"charts/web/.argocd-source-web-qa.yaml": "helm:\n  parameters:\n  - {name: image.tag, value: 2}\n"},
			want:  "helm.parameters (charts/web/.argocd-source-web-qa.yaml:3)"},
		"an override file of another Application": {change: tag, sources: []appset.Source{chart("")},
			files: map[string]string{"charts/web/.argocd-source-web-dev.yaml": "helm: {parameters: [{name: image.tag, value: 2}]}\n"}},
		"an override file with values files": {change: tag, sources: []appset.Source{chart("")},
			files: map[string]string{"charts/web/.argocd-source.yaml": "helm: {valueFiles: [values-qa.yaml, extra.yaml]}\n", "charts/web/extra.yaml": "image: {tag: 3}\n"},
			want:  "a later values file, which charts/web/.argocd-source.yaml gives (charts/web/extra.yaml:1)"},
		"an override file without the values file": {change: tag, sources: []appset.Source{chart("")},
			files: map[string]string{"charts/web/.argocd-source-web-qa.yaml": "helm: {valueFiles: [extra.yaml]}\n"},
			want:  "helm.valueFiles without it (charts/web/.argocd-source-web-qa.yaml:1)"},
		"an override file of an image": {change: image, sources: []appset.Source{{Path: "apps/web", Here: true}},
			files: map[string]string{"apps/web/.argocd-source-web-qa.yaml": "kustomize: {images: ['registry.example/web:2']}\n"},
			want:  "kustomize.images (apps/web/.argocd-source-web-qa.yaml:1)"},
		"nothing":                  {change: tag, sources: []appset.Source{chart(`{"helm":{"releaseName":"x"}}`)}, files: map[string]string{later: "replicas: 2\n"}},
		"a parameter":              {change: tag, sources: []appset.Source{chart(`{"helm":{"parameters":[{"name":"image.tag","value":"1"}]}}`)}, want: "helm.parameters of the Application (argocd/sets.yaml:8)"},
		"of what it is in":         {change: tag, sources: []appset.Source{chart(`{"helm":{"parameters":[{"name":"image","value":"x"}]}}`)}, want: "helm.parameters of the Application (argocd/sets.yaml)"},
		"a parameter beside it":    {change: tag, sources: []appset.Source{chart(`{"helm":{"parameters":[{"name":"image.tagSuffix","value":"1"}]}}`)}},
		"a parameter with a dot":   {change: tag, sources: []appset.Source{chart(`{"helm":{"parameters":[{"name":"image\\.tag","value":"1"}]}}`)}},
		"of a live Application":    {change: tag, live: true, sources: []appset.Source{chart(`{"helm":{"parameters":[{"name":"image.tag","value":"1"}]}}`)}, want: "helm.parameters of the live Application web-qa"},
		"a file parameter goes on": {change: tag, sources: []appset.Source{chart(`{"helm":{"parameters":[{"name":"image.tag"}],"fileParameters":[{"name":"image.tag","path":"tag.txt"}]}}`)}, want: "helm.fileParameters of the Application (argocd/sets.yaml:8)"},
		"valuesObject":             {change: tag, sources: []appset.Source{chart(`{"helm":{"valuesObject":{"image":{"tag":"1"}}}}`)}, want: "helm.valuesObject of the Application (argocd/sets.yaml:9)"},
		"values":                   {change: tag, sources: []appset.Source{chart(`{"helm":{"values":"image:\n  tag: 1\n"}}`)}, want: "helm.values of the Application (argocd/sets.yaml:10)"},
		"values under an object":   {change: tag, sources: []appset.Source{chart(`{"helm":{"values":"image: {tag: 1}","valuesObject":{"replicas":2}}}`)}},
		"values take all of it":    {change: tag, sources: []appset.Source{chart(`{"helm":{"values":"image: null\n"}}`)}, want: "helm.values of the Application (argocd/sets.yaml:10)"},
		"a later values file":      {change: tag, sources: []appset.Source{chart("")}, files: map[string]string{later: "replicas: 2\nimage:\n  tag: 1\n"}, want: "a later values file (" + later + ":3)"},
		"an earlier values file": {change: fieldedit.Change{Kind: fieldedit.KindYAML, File: later, Path: "image.tag", New: "2"}, sources: []appset.Source{chart("")},
			files: map[string]string{own: "image: {tag: 1}\n"}},
		"a values file over the chart's own": {change: fieldedit.Change{Kind: fieldedit.KindYAML, File: "charts/web/values.yaml", Path: "image.tag", New: "2"}, sources: []appset.Source{chart("")},
			files: map[string]string{own: "image: {tag: 1}\n"}, want: "a later values file (" + own + ":1)"},
		"a values file of another source": {change: tag, files: map[string]string{"shared/v.yaml": "image: {tag: 1}\n"}, want: "a later values file (shared/v.yaml:1)", sources: []appset.Source{
			{Path: "charts/web", Here: true, ValueFiles: []string{"values-qa.yaml", "$values/shared/v.yaml"}}, {Ref: "values", Here: true}}},
		"a values file from elsewhere": {change: tag, files: map[string]string{"shared/v.yaml": "image: {tag: 1}\n"}, sources: []appset.Source{
			{Path: "charts/web", Here: true, ValueFiles: []string{"values-qa.yaml", "$values/shared/v.yaml"}}, {Ref: "values"}}},
		"an image":                  {change: image, sources: []appset.Source{{Path: "apps/web", Here: true, Options: json.RawMessage(`{"kustomize":{"images":["registry.example/web:9"]}}`)}}, want: "kustomize.images of the Application (argocd/sets.yaml:11)"},
		"another image":             {change: image, sources: []appset.Source{{Path: "apps/web", Here: true, Options: json.RawMessage(`{"kustomize":{"images":["registry.example/web2:9"]}}`)}}},
		"an image by its new name":  {change: image, sources: []appset.Source{{Path: "apps/web", Here: true, Options: json.RawMessage(`{"kustomize":{"images":["registry.example/web=mirror.example/web:9"]}}`)}}, want: "kustomize.images of the Application (argocd/sets.yaml:11)"},
		"the kustomization above":   {change: fieldedit.Change{Kind: fieldedit.KindImage, File: "base/kustomization.yaml", Path: image.Path, New: "2"}, sources: []appset.Source{{Path: "apps/web", Here: true}}, files: map[string]string{"apps/web/kustomization.yaml": "resources: [../../base]\nimages:\n- {name: registry.example/web, newTag: '1'}\n"}, want: "images of the kustomization above it (apps/web/kustomization.yaml:3)"},
		"its own kustomization":     {change: image, sources: []appset.Source{{Path: "apps/web", Here: true}}, files: map[string]string{"apps/web/kustomization.yaml": "images:\n- {name: registry.example/web, newTag: '1'}\n"}},
		"an image in a manifest":    {change: fieldedit.Change{Kind: fieldedit.KindYAML, File: "apps/web/d.yaml", Path: "spec.template.spec.containers[name=web].image", Old: "registry.example/web:1", New: "registry.example/web:2"}, sources: []appset.Source{{Path: "apps/web", Here: true, Options: json.RawMessage(`{"kustomize":{"images":["registry.example/web:9"]}}`)}}, want: "kustomize.images of the Application (argocd/sets.yaml:11)"},
		"of another repository":     {change: tag, sources: []appset.Source{{Path: "charts/web", Options: json.RawMessage(`{"helm":{"parameters":[{"name":"image.tag"}]}}`)}}},
		"options that nobody reads": {change: tag, sources: []appset.Source{chart(`{"helm":3}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{set: {Data: []byte(setText("helm: {fileParameters: [{name: image.tag}]}\nvaluesObject: {}\nvalues: |\nimages: ['registry.example/web:9']"))}}
			for file, text := range c.files {
				files[file] = &fstest.MapFile{Data: []byte(text)}
			}
			target := &appset.Target{Name: "web-qa", ApplicationSet: "web", ApplicationSetFile: set, Sources: c.sources, Live: c.live}
			found, ok := FindOverride(Trees{Files: files, Sets: files}, target, &c.change)
			if ok != (c.want != "") || found.String() != c.want {
				t.Errorf("it is %q (%t), want %q", found, ok, c.want)
			}
		})
	}
}

// TestListIneffective holds which changes must show in a target's manifests, and when they do.
func TestListIneffective(t *testing.T) {
	const file = "charts/web/values-qa.yaml"
	value := func(path, value string) fieldedit.Change {
		return fieldedit.Change{Kind: fieldedit.KindYAML, File: file, Path: path, Old: "1.0.0", New: value}
	}
	tag := value("image.tag", "1.1.0")
	changed := func(fields ...render.Field) *render.Changes {
		return &render.Changes{Objects: []render.Change{{Op: render.Changed, Kind: "Deployment", Name: "web", Fields: fields}}}
	}
	field := func(path string, value any) render.Field {
		return render.Field{Path: path, Op: render.Changed, Old: "web:1.0.0", New: value}
	}
	image := field("spec.template.spec.containers[name=web].image", "web:1.1.0")
	target := func(name, folder, options string) appset.Target {
		return appset.Target{Name: name, Sources: []appset.Source{{Path: folder, Here: true, ValueFiles: []string{"values-qa.yaml"}, Options: json.RawMessage(options)}}}
	}
	effect := func(changes *render.Changes, options string) Effect {
		return Effect{Target: target("web-qa", "charts/web", options), Files: []string{file}, Changes: changes}
	}
	const parameter = `{"helm":{"parameters":[{"name":"image.tag","value":"0.9.7"}]}}`
	none := &render.Changes{}
	asRun := func(git, run *render.Changes, options string) Effect {
		e, live := effect(git, ""), effect(run, options)
		live.Target.Live = true
		e.Run = &live
		return e
	}
	ignoring := func(changes, left *render.Changes, respected bool) Effect {
		e := effect(changes, "")
		e.Ignored = &Ignored{Fields: []IgnoredField{{Object: "Deployment web"}}, Left: left, Respected: respected}
		return e
	}
	sidecar := value("sidecar.image.tag", "2.0.0")
	digest := value("image.digest", "sha256:1")
	digestOnly := changed(field("spec.template.spec.containers[name=web].image", "web@sha256:1"))
	for name, c := range map[string]struct {
		changes []fieldedit.Change
		effects []Effect
		want    []string // paths, and what overrides the first
	}{
		"the live Application overrides it": {[]fieldedit.Change{tag}, []Effect{asRun(changed(image), none, parameter)},
			[]string{"image.tag", "helm.parameters of the live Application web-qa"}},
		"the live Application has something else": {[]fieldedit.Change{tag}, []Effect{asRun(changed(image), none, `{"helm":{"valueFiles":["other.yaml"]}}`)},
			[]string{"image.tag", "the live Application web-qa, which has other options than in Git,"}},
		"what is ignored isn't synced": {[]fieldedit.Change{tag}, []Effect{ignoring(changed(image), none, true)},
			[]string{"image.tag", "ignoreDifferences of the Application, with the sync option RespectIgnoreDifferences,"}},
		"what is ignored is synced":                   {[]fieldedit.Change{tag}, []Effect{ignoring(changed(image), none, false)}, nil},
		"something else is ignored":                   {[]fieldedit.Change{tag}, []Effect{ignoring(changed(image), changed(image), true)}, nil},
		"it shows in the live Application too":        {[]fieldedit.Change{tag}, []Effect{asRun(changed(image), changed(image), parameter)}, nil},
		"the live Application can't be rendered":      {[]fieldedit.Change{tag}, []Effect{asRun(changed(image), nil, parameter)}, nil},
		"it is the same without it":                   {[]fieldedit.Change{tag, sidecar}, []Effect{effect(changed(image), "")}, []string{"sidecar.image.tag", ""}},
		"it is the same without the tag of a digest":  {[]fieldedit.Change{tag, digest}, []Effect{effect(digestOnly, "")}, nil},
		"it is the same without a number of replicas": {[]fieldedit.Change{tag, value("replicas", "3")}, []Effect{effect(changed(image), "")}, nil},
		"it shows":                        {[]fieldedit.Change{tag}, []Effect{effect(changed(image), "")}, nil},
		"nothing changes":                 {[]fieldedit.Change{tag}, []Effect{effect(none, "")}, []string{"image.tag"}},
		"it isn't rendered":               {[]fieldedit.Change{tag}, []Effect{{Target: target("web-qa", "charts/web", parameter), Files: []string{file}, Why: "a plugin"}}, nil},
		"it has no manifests":             {[]fieldedit.Change{tag}, []Effect{{Target: target("web-qa", "charts/web", ""), Files: []string{file}, Changes: none, Nothing: true}}, nil},
		"it doesn't read the file":        {[]fieldedit.Change{tag}, []Effect{{Target: target("web-qa", "charts/web", parameter), Files: []string{"another"}, Changes: none}}, nil},
		"a number of replicas":            {[]fieldedit.Change{value("replicas", "3")}, []Effect{effect(none, "")}, nil},
		"one of two is overridden":        {[]fieldedit.Change{tag, value("replicas", "3")}, []Effect{effect(changed(field("spec.replicas", "3")), parameter)}, []string{"image.tag"}},
		"one of two is made otherwise":    {[]fieldedit.Change{tag, value("replicas", "3")}, []Effect{effect(changed(field("spec.replicas", "3")), "")}, nil},
		"another has the same value":      {[]fieldedit.Change{tag, value("labels.release", "1.1.0")}, []Effect{effect(changed(field("metadata.labels.release", "1.1.0")), parameter)}, []string{"image.tag"}},
		"another too, and the image":      {[]fieldedit.Change{tag, value("labels.release", "1.1.0")}, []Effect{effect(changed(field("metadata.labels.release", "1.1.0"), image), parameter)}, nil},
		"overridden by its own value":     {[]fieldedit.Change{tag}, []Effect{effect(changed(image), parameter)}, nil},
		"a secret":                        {[]fieldedit.Change{tag}, []Effect{effect(changed(render.Field{Path: "data.tag", Hidden: true}), parameter)}, nil},
		"a flat key":                      {[]fieldedit.Change{value(`image\.tag`, "1.1.0")}, []Effect{effect(none, "")}, []string{`image\.tag`}},
		"a container's arguments":         {[]fieldedit.Change{value("spec.template.spec.containers[name=web].args[0]", "-v")}, []Effect{effect(none, "")}, []string{"spec.template.spec.containers[name=web].args[0]"}},
		"an annotation of the pods":       {[]fieldedit.Change{value("spec.template.metadata.annotations.release", "2")}, []Effect{effect(none, "")}, []string{"spec.template.metadata.annotations.release"}},
		"an annotation of the Deployment": {[]fieldedit.Change{value("metadata.annotations.release", "2")}, []Effect{effect(none, "")}, nil},
		"a chart's version":               {[]fieldedit.Change{value("dependencies[name=redis].version", "2")}, []Effect{effect(none, "")}, []string{"dependencies[name=redis].version"}},
		"a version of its own":            {[]fieldedit.Change{value("config.version", "2")}, []Effect{effect(none, "")}, nil},
		"a whole file":                    {[]fieldedit.Change{{Kind: fieldedit.KindFile, File: file, Old: "a", New: "b"}}, []Effect{effect(none, "")}, nil},
		"a field that goes":               {[]fieldedit.Change{{Kind: fieldedit.KindYAML, File: file, Path: "image.tag", Old: "1", Removed: true}}, []Effect{effect(changed(field("spec.replicas", "3")), parameter)}, nil},
		"another target has no use for it": {[]fieldedit.Change{tag}, []Effect{effect(changed(image), ""),
			{Target: target("cache-qa", "charts/cache", ""), Files: []string{file}, Changes: none}}, nil},
		"another target of the chart doesn't get it": {[]fieldedit.Change{tag}, []Effect{effect(changed(image), ""),
			{Target: target("web-qa-2", "charts/web", ""), Files: []string{file}, Changes: none}}, []string{"image.tag"}},
	} {
		t.Run(name, func(t *testing.T) {
			// Without one of the changes the manifests change as they do, unless it is the tag that shows, or is made into something else.
			without := func(ch *fieldedit.Change) []Effect {
				if ch.Path == tag.Path && len(c.effects[0].Changes.Objects) > 0 && reflect.DeepEqual(c.effects[0].Changes.Objects[0].Fields[0], field("spec.replicas", "3")) {
					return []Effect{effect(changed(field("spec.replicas", "4")), "")}
				}
				return c.effects
			}
			var got []string
			for i, f := range ListIneffective(Trees{Files: fstest.MapFS{}, Sets: fstest.MapFS{}}, c.effects, c.changes, without) {
				got = append(got, f.Change.Path)
				if i == 0 && len(c.want) == 2 {
					got = append(got, f.Override.String())
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("without effect are %q, want %q", got, c.want)
			}
		})
	}
}

// BenchmarkMayBeOverridden is what a plan does for each target of a promotion where nothing overrides what it carries.
func BenchmarkMayBeOverridden(b *testing.B) {
	files := fstest.MapFS{"apps/web/qa/kustomization.yaml": {Data: []byte("images:\n- {name: registry.example/web, newTag: '1'}\n")}}
	changes := []fieldedit.Change{{Kind: fieldedit.KindImage, File: "apps/web/qa/kustomization.yaml", Path: "images[registry.example/web].newTag", Old: "1", New: "2"}}
	target := &appset.Target{Name: "web-qa", Sources: []appset.Source{{Path: "apps/web/qa", Here: true}}}
	for b.Loop() {
		if MayBeOverridden(Trees{Files: files, Sets: files}, target, []string{changes[0].File}, changes) {
			b.Fatal("it is overridden")
		}
	}
}
