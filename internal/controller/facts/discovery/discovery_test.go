package discovery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/discover"
	"github.com/liftlock/liftlock/internal/discover/signature"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// testSource is what registries have. details are given so many at a time; 0: all at once.
type testSource struct {
	tags    map[string]string // by image or chart, separated by blanks
	details map[string]discover.Details
	signed  map[string]string           // by digest: who signed it
	stale   map[string]discover.Details // what is remembered of tags that were pushed over since
	atOnce  int
	err     error
	calls   []string
}

func (s *testSource) ListTags(_ context.Context, image string) ([]string, error) {
	s.calls = append(s.calls, "tags of "+image)
	return strings.Fields(s.tags[image]), s.err
}

func (s *testSource) ListVersions(_ context.Context, chart string) ([]string, error) {
	s.calls = append(s.calls, "versions of "+chart)
	return strings.Fields(s.tags[chart]), s.err
}

func (s *testSource) ReadDigest(_ context.Context, image, tag string) (string, error) {
	s.calls = append(s.calls, "digest of "+image+":"+tag)
	return s.details[tag].Digest, s.err
}

func (s *testSource) VerifySignatures(_ context.Context, image, digest string, p *signature.Policy) (discover.Signature, error) {
	s.calls = append(s.calls, "signatures of "+image+"@"+digest)
	out := discover.Signature{Digest: digest}
	if s.signed[digest] == p.String() {
		out.By = p.String()
	} else {
		out.Why = "there is no signature"
	}
	return out, s.err
}

func (s *testSource) ReadDetails(_ context.Context, image string, tags []string) (map[string]discover.Details, bool, error) {
	s.calls = append(s.calls, fmt.Sprintf("%d of %s", len(tags), image))
	out := map[string]discover.Details{}
	for i, tag := range tags {
		if s.atOnce > 0 && i == s.atOnce {
			return out, false, s.err
		}
		out[tag] = s.details[tag]
		if old, is := s.stale[tag]; is {
			out[tag] = old
		}
	}
	return out, true, s.err
}

// passingError is of a registry that is away.
type passingError struct{}

func (passingError) Error() string   { return "it is asked again" }
func (passingError) IsPassing() bool { return true }

const pipelineHead = `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  applicationSets: [{path: a.yaml}]
  component: web
  environment: dev
  carry:
    - kustomizeImages: ["**"]
    - yaml: {files: ["values.yaml"], paths: ["image.tag", "sidecar.image"]}
    - yaml: {files: ["Chart.yaml"], paths: ["dependencies[*].version"]}
  environments:
    - name: dev
      discover:
`

// TestFind holds what comes in of what an environment carries, and what the source is asked for.
func TestFind(t *testing.T) {
	t.Parallel()
	const kustomization, values, chart = "dev/kustomization.yaml", "dev/values.yaml", "dev/Chart.yaml"
	for name, c := range map[string]struct {
		rules  []string
		files  map[string]string
		past   map[string]string // of the same files; nil: nothing was there before
		source testSource
		want   []string // a version a line: what it is, then what comes in or why not
		fields string   // what changes
		calls  []string
	}{
		"a tag": {[]string{`{image: r/web, choose: {semver: "*"}}`}, map[string]string{kustomization: "images: [{name: r/web, newTag: 1.0.0}, {name: r/other, newTag: 1.0.0}]"}, nil,
			testSource{tags: map[string]string{"r/web": "1.0.0 1.1.0"}}, []string{"r/web 1.0.0: 1.1.0, the highest version in *"}, "images[r/web].newTag=1.1.0", []string{"tags of r/web"}},
		"a tag with its digest": {[]string{`{image: r/web, choose: {semver: "*"}}`}, map[string]string{kustomization: "images: [{name: r/web, newTag: 1.0.0, digest: 'sha256:a'}]"}, nil,
			testSource{tags: map[string]string{"r/web": "1.0.0 1.1.0"}, details: map[string]discover.Details{"1.1.0": {Digest: "sha256:b"}}}, []string{"r/web 1.0.0: 1.1.0, the highest version in *"}, "images[r/web].digest=sha256:b images[r/web].newTag=1.1.0", []string{"tags of r/web", "1 of r/web"}},
		"a digest": {[]string{`{image: r/web, choose: {digest: {tag: main}}}`}, map[string]string{kustomization: "images: [{name: r/web, digest: 'sha256:a'}]"}, nil,
			testSource{details: map[string]discover.Details{"main": {Digest: "sha256:b"}}}, []string{"r/web : sha256:b, what the tag main has now"}, "images[r/web].digest=sha256:b", []string{"digest of r/web:main"}},
		"a digest for a platform": {[]string{`{image: r/web, platforms: [linux/arm64], choose: {digest: {tag: main}}}`}, map[string]string{kustomization: "images: [{name: r/web, digest: 'sha256:a'}]"}, nil,
			testSource{details: map[string]discover.Details{"main": {Digest: "sha256:b"}, "sha256:b": {Platforms: []string{"linux/amd64"}}}}, []string{"r/web : sha256:b, what the tag main has now, doesn't come in"}, "", []string{"digest of r/web:main", "1 of r/web"}},
		"a digest that was there": {[]string{`{image: r/web, choose: {digest: {tag: main}}}`}, map[string]string{kustomization: "images: [{name: r/web, digest: 'sha256:a'}]"}, map[string]string{kustomization: "images: [{name: r/web, digest: 'sha256:b'}]"},
			testSource{details: map[string]discover.Details{"main": {Digest: "sha256:b"}}}, []string{"r/web : sha256:b, what the tag main has now, doesn't come in"}, "", []string{"digest of r/web:main"}},
		"a reference": {[]string{`{image: r/side, choose: {semver: "*"}}`}, map[string]string{values: "sidecar: {image: 'r/side:1.0.0'}"}, nil,
			testSource{tags: map[string]string{"r/side": "1.1.0"}}, []string{"r/side 1.0.0: 1.1.0, the highest version in *"}, "sidecar.image=r/side:1.1.0", []string{"tags of r/side"}},
		"a chart": {[]string{`{chart: "https://c.example#redis", choose: {semver: "~1.0"}}`}, map[string]string{chart: "dependencies: [{name: redis, version: 1.0.0, repository: 'https://c.example'}]"}, nil,
			testSource{tags: map[string]string{"https://c.example#redis": "1.0.1 1.1.0"}}, []string{"https://c.example#redis 1.0.0: 1.0.1, the highest version in ~1.0"}, "dependencies[name=redis].version=1.0.1", []string{"versions of https://c.example#redis"}},
		"several": {[]string{`{image: "r/*", choose: {semver: "*"}}`}, map[string]string{kustomization: "images: [{name: r/web, newTag: 1.0.0}, {name: r/api, newTag: 2.0.0}]"}, nil,
			testSource{tags: map[string]string{"r/web": "1.1.0", "r/api": "1.0.0"}}, []string{"r/web 1.0.0: 1.1.0, the highest version in *", "r/api 2.0.0: no tag that may come in is newer than 2.0.0"}, "images[r/web].newTag=1.1.0", []string{"tags of r/web", "tags of r/api"}},
		"what was taken back": {[]string{`{image: r/web, choose: {semver: "*"}}`}, map[string]string{kustomization: "images: [{name: r/web, newTag: 1.0.0}]"}, map[string]string{kustomization: "images: [{name: r/web, newTag: 1.1.0}]"},
			testSource{tags: map[string]string{"r/web": "1.0.0 1.1.0"}}, []string{"r/web 1.0.0: 1.0.0 is there, the highest version in *"}, "", []string{"tags of r/web"}},
		"one place and another": {[]string{`{image: "r/*", choose: {semver: "*"}}`}, map[string]string{kustomization: "images: [{name: r/side, newTag: 1.0.0}]", values: "sidecar: {image: 'r/side:1.1.0'}"}, nil,
			testSource{}, []string{"r/side 1.0.0! it is at dev/kustomization.yaml:1 and at dev/values.yaml:1, with different versions: which of them counts can't be told; make them the same",
				"r/side 1.1.0! it is at dev/values.yaml:1 and at dev/kustomization.yaml:1, with different versions: which of them counts can't be told; make them the same"}, "", nil},
		"one version at two places": {[]string{`{image: "r/*", choose: {semver: "*"}}`}, map[string]string{kustomization: "images: [{name: r/side, newTag: 1.0.0}]", values: "sidecar: {image: 'r/side:1.0.0'}"}, nil,
			testSource{tags: map[string]string{"r/side": "1.1.0"}}, []string{"r/side 1.0.0: 1.1.0, the highest version in *", "r/side 1.0.0: 1.1.0, the highest version in *"}, "images[r/side].newTag=1.1.0 sidecar.image=r/side:1.1.0", []string{"tags of r/side", "tags of r/side"}},
		"no tag to write": {[]string{`{image: r/web, choose: {semver: "*"}}`}, map[string]string{kustomization: "images: [{name: r/web, digest: 'sha256:a'}]"}, nil, testSource{},
			[]string{"r/web ! the rule writes a tag, and no carried field has one"}, "", nil},
		"a registry that is away": {[]string{`{image: r/web, choose: {semver: "*"}}`}, map[string]string{kustomization: "images: [{name: r/web, newTag: 1.0.0}]"}, nil, testSource{err: passingError{}},
			[]string{"r/web 1.0.0~ it is asked again"}, "", []string{"tags of r/web"}},
		"a registry that refuses": {[]string{`{image: r/web, choose: {semver: "*"}}`}, map[string]string{kustomization: "images: [{name: r/web, newTag: 1.0.0}]"}, nil, testSource{err: errors.New("it refuses")},
			[]string{"r/web 1.0.0! it refuses"}, "", []string{"tags of r/web"}},
		"tags that take long": {[]string{`{image: r/web, choose: {newest: {tags: ., by: created}}}`}, map[string]string{kustomization: "images: [{name: r/web, newTag: a}]"}, nil,
			testSource{tags: map[string]string{"r/web": "a b c"}, atOnce: 2}, []string{"r/web a~ its tags are looked into a few at a time; it goes on soon"}, "", []string{"tags of r/web", "3 of r/web"}},
		"what no entry names": {[]string{`{image: r/web, choose: {semver: "*"}}`}, map[string]string{kustomization: "images: [{name: r/other, newTag: 1.0.0}]", values: "image: {tag: v1}"}, nil, testSource{}, nil, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := pipeline.Parse("p", []byte(pipelineHead+"        - "+strings.Join(c.rules, "\n        - ")+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			p := all[0]
			at := &history.Environment{Component: "web", Name: "dev", Roots: []string{"dev"}}
			read := func(files map[string]string) (fstest.MapFS, fieldedit.Release) {
				tree := fstest.MapFS{}
				for name, text := range files {
					tree[name] = &fstest.MapFile{Data: []byte(text + "\n")}
				}
				r, err := fieldedit.Read(tree, at.Overlay(p))
				if err != nil {
					t.Fatal(err)
				}
				return tree, r
			}
			tree, current := read(c.files)
			q := Query{Pipeline: p, Environment: &p.Spec.Environments[0], At: at, Tree: tree, Current: current, Past: func() ([]fieldedit.Release, error) {
				if c.past == nil {
					return nil, nil
				}
				_, was := read(c.past)
				return []fieldedit.Release{was}, nil
			}}
			var f Found
			if err := f.Find(t.Context(), &q, &c.source); err != nil || f.Refused != "" {
				t.Fatalf("%v, %s", err, f.Refused)
			}
			var got []string
			for _, v := range f.Versions {
				sign, text := ":", v.Choice.Why
				if v.Err != "" {
					sign, text = "!", v.Err
				}
				if v.Passing {
					sign = "~"
				}
				got = append(got, fmt.Sprintf("%s %s%s %s", v.Name, v.Current, sign, text))
			}
			var fields []string
			for _, d := range fieldedit.Compare(current, f.Want) {
				fields = append(fields, d.Path+"="+d.New)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || strings.Join(fields, " ") != c.fields {
				t.Errorf("%q (-want +got):\n%s", fields, diff)
			}
			if diff := cmp.Diff(c.calls, c.source.calls); diff != "" {
				t.Errorf("the source is asked for (-want +got):\n%s", diff)
			}
			if isLong := strings.HasPrefix(name, "tags that"); f.Unfinished != isLong {
				t.Errorf("unfinished: %t", f.Unfinished)
			}
		})
	}
}

// TestFindRefuses holds that files that can't be read bring nothing in, and that a history that can't be read is an error.
func TestFindRefuses(t *testing.T) {
	t.Parallel()
	all, err := pipeline.Parse("p", []byte(pipelineHead+"        - {image: r/web, choose: {semver: \"*\"}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	q := Query{Pipeline: all[0], Environment: &all[0].Spec.Environments[0], At: &history.Environment{Component: "web", Name: "dev", Roots: []string{"dev"}},
		Tree: fstest.MapFS{"dev/kustomization.yaml": &fstest.MapFile{Data: []byte("images: {}\n")}}}
	var f Found
	if err := f.Find(t.Context(), &q, &testSource{}); err != nil || !strings.Contains(f.Refused, "images is a mapping, not a list") {
		t.Errorf("%q, %v", f.Refused, err)
	}
	lost := errors.New("the history is gone")
	q.Tree = fstest.MapFS{"dev/kustomization.yaml": &fstest.MapFile{Data: []byte("images: [{name: r/web, newTag: 1.0.0}]\n")}}
	q.Past = func() ([]fieldedit.Release, error) { return nil, lost }
	if err := new(Found).Find(t.Context(), &q, &testSource{tags: map[string]string{"r/web": "1.1.0"}}); !errors.Is(err, lost) {
		t.Errorf("%v", err)
	}
}
