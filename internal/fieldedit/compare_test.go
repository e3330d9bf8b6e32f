package fieldedit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/wording"
)

func TestReleaseString(t *testing.T) {
	image := func(name, key, value string) Field {
		return Field{Kind: KindImage, File: "kustomization.yaml", Path: imagePath(name, key), Value: value}
	}
	value := func(path, v string) Field { return Field{Kind: KindYAML, File: "values.yaml", Path: path, Value: v} }
	file := func(name string) Field {
		return Field{Kind: KindFile, File: name, Value: wholeValue(ModeExecutable, objectID([]byte(name)))}
	}
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	for name, tt := range map[string]struct {
		fields []Field
		want   string
	}{
		"nothing":             {nil, "nothing"},
		"a tag":               {[]Field{image("w", "newTag", "1.4.2")}, "1.4.2"},
		"a tag of a new name": {[]Field{image("w", "newName", "mirror/w"), image("w", "newTag", "1.4.2")}, "1.4.2"},
		"a tag with a digest": {[]Field{image("w", "digest", digest), image("w", "newTag", "1.4.2")}, "1.4.2"},
		"a digest":            {[]Field{image("w", "digest", digest), image("w", "newName", "mirror/w")}, "sha256:0123456789ab"},
		"a new name":          {[]Field{image("w", "newName", "mirror/w")}, "mirror/w"},
		"images alike":        {[]Field{image("a", "newTag", "v1"), image("b", "newTag", "v1")}, "v1"},
		"images first":        {[]Field{value("x", "5"), image("b", "newTag", "v1")}, "b v1, x 5"},
		"too many":            {[]Field{image("a", "newTag", "v1"), image("b", "newTag", "v2"), value("x", "3"), value("y", "4")}, "a v1, b v2 and 2 more"},
		"of a list":           {[]Field{value("spec.containers[name=proxy].image", "r/proxy:1"), value("dependencies[name=cart].version", "1.8.0")}, "r/proxy:1, cart 1.8.0"},
		"deep fields":         {[]Field{value("web.image.tag", "1"), value("job.image.tag", "2"), value("{{environment}}.tag", "3")}, "web.image.tag 1, job.image.tag 2, tag 3"},
		"null":                {[]Field{value("x", "")}, "nothing"},
		"a tag and a file":    {[]Field{file("a"), image("a", "newTag", "v1")}, "v1, 1 file"},
		"a tag and files":     {[]Field{file("a"), file("b"), image("a", "newTag", "v1")}, "v1, 2 files"},
		"one file":            {[]Field{file("config/a.conf")}, "config/a.conf (673a65a executable)"},
	} {
		if got := (Release{Fields: tt.fields}).String(); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
	two, other := Release{Fields: []Field{file("a"), file("b")}}, Release{Fields: []Field{file("a"), file("c")}}
	if got := two.String(); got != "2 files ("+wording.Short(two.ID())+")" || got == other.String() {
		t.Errorf("got %q and %q", got, other.String())
	}
}

func TestCompareReleases(t *testing.T) {
	f := func(path, v string) Field { return Field{Kind: KindYAML, File: "values.yaml", Path: path, Value: v} }
	from := Release{Fields: []Field{f("c", "3"), f("a", "1"), f("b", "2")}}
	to := Release{Fields: []Field{f("a", "1"), f("b", "5"), f("d", "4")}}
	var got []string
	for _, d := range Compare(from, to) {
		got = append(got, d.String())
	}
	if diff := cmp.Diff([]string{"values.yaml: b 2 → 5", "values.yaml: c 3 (removed)", "values.yaml: d 4 (added)"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if d := Compare(from, from); len(d) != 0 {
		t.Errorf("itself: %v", d)
	}
	if d := Compare(Release{}, to); len(d) != 3 || !d[0].Added {
		t.Errorf("nothing: %v", d)
	}
	if from.Fields[0].Path != "c" {
		t.Error("the release was sorted")
	}
}

func TestScope(t *testing.T) {
	carry := append([]pipeline.Carry{{Files: &pipeline.FilePick{Include: []string{"config/**", "run.sh"}, Exclude: []string{"**/*.env.yaml"}}}}, allKinds...)
	tests := []struct {
		roots, paths []string
		in, out      []string
	}{
		{[]string{"a/b", "c"}, []string{"a/b", "c"}, []string{"a/b/kustomization.yml", "a/b/values-x.yaml", "a/b/conf/x/config.json", "a/b/config/new/x", "c/run.sh"},
			[]string{"a/kustomization.yaml", "a/b/x/kustomization.yaml", "a/b/config/x.env.yaml", "a/b/x/values.yaml", "run.sh", "a/bc/run.sh"}},
		{[]string{"."}, nil, []string{"kustomization.yaml", "config/x"}, []string{"x/kustomization.yaml"}},
	}
	for _, tt := range tests {
		s, err := NewScope(Overlay{Roots: tt.roots, Carry: carry})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.paths, s.Paths()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		for _, name := range tt.in {
			if !s.Covers(name) {
				t.Errorf("%v doesn't cover %s", tt.roots, name)
			}
		}
		for _, name := range tt.out {
			if s.Covers(name) {
				t.Errorf("%v covers %s", tt.roots, name)
			}
		}
	}
	narrow, err := NewScope(Overlay{Roots: []string{"a/"}, Carry: []pipeline.Carry{carry[0], {KustomizeImages: []string{"*"}}, {JSON: &pipeline.FieldPick{Files: []string{"x/config.json", "conf/*/y.json"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a/Kustomization", "a/conf", "a/config", "a/kustomization.yaml", "a/kustomization.yml", "a/run.sh", "a/x/config.json"}, narrow.Paths()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := NewScope(Overlay{Roots: []string{"../x"}, Carry: carry}); err == nil {
		t.Error("a root outside of the repository")
	}
}
