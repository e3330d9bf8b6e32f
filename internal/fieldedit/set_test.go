package fieldedit

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSet(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	const k = "# dev\nresources:\n- ../../base\n\nimages:\n- name: registry.example/web\n  newTag: 1.4.1 # by the build\n"
	tests := []struct {
		name, file, in string
		paths, images  []string
		want           string
		lines          []string
	}{
		{"image", "overlays/dev/kustomization.yaml", k, nil, []string{"registry.example/web=1.4.2"},
			strings.Replace(k, "1.4.1", "1.4.2", 1), []string{"overlays/dev/kustomization.yaml:7: images[registry.example/web].newTag 1.4.1 → 1.4.2"}},
		{"image again", "overlays/dev/kustomization.yaml", k, nil, []string{"registry.example/web=1.4.1"}, k, []string{"nothing to do"}},
		{"tag and digest", "Kustomization", k, nil, []string{"registry.example/web=1.4.2@" + digest},
			strings.Replace(k, "1.4.1 # by the build\n", "1.4.2 # by the build\n  digest: "+digest+"\n", 1),
			[]string{"Kustomization:7: images[registry.example/web].newTag 1.4.1 → 1.4.2", "Kustomization:8: images[registry.example/web].digest " + digest + " (added)"}},
		{"digest", "kustomization.yml", k, nil, []string{"registry.example/web@" + digest}, k + "  digest: " + digest + "\n",
			[]string{"kustomization.yml:8: images[registry.example/web].digest " + digest + " (added)"}},
		{"path in a kustomization", "kustomization.yml", k, []string{"images[name=registry.example/web].newTag=2"}, nil,
			strings.Replace(k, "1.4.1", `"2"`, 1), []string{"kustomization.yml:7: images[name=registry.example/web].newTag 1.4.1 → 2"}},
		{"several paths", "values.yaml", "a: 1\nb: x\nc: y", []string{"c=", "a=2", "z=a b"}, nil, "a: 2\nb: x\nc: \"\"\nz: a b",
			[]string{"values.yaml:1: a 1 → 2", `values.yaml:3: c y → ""`, `values.yaml:4: z "a b" (added)`}},
		{"JSON", "conf/config.JSON", `{"a": ["x"]}`, []string{"/a/0==y"}, nil, `{"a": ["=y"]}`, []string{"conf/config.JSON:1: /a/0 x → =y"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, changes, err := Set([]byte(tt.in), tt.file, parseOps(t, tt.paths, tt.images))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if diff := cmp.Diff(tt.lines, ChangeLines(changes)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	refusals := []struct {
		name, file, in string
		paths, images  []string
		err            string
	}{
		{"misspelt image", "d/kustomization.yaml", k, nil, []string{"registry.example/wep=1"},
			"d/kustomization.yaml:6: images[registry.example/wep]: the images list has no entry named registry.example/wep; there are registry.example/web: add the entry first"},
		{"not a kustomization", "values.yaml", "a: 1\n", nil, []string{"a=1"}, "values.yaml: it isn't a kustomization"},
		{"unknown kind", "values.toml", "a = 1\n", []string{"a=1"}, nil, "values.toml: its name says neither"},
		{"not YAML", "values.yaml", "a: [\n", []string{"a=1"}, nil, "values.yaml:"},
		{"twice", "values.yaml", "a: 1\n", []string{"a=1", "a=2"}, nil, "a is set twice"},
		{"twice in other words", "values.yaml", "a: [1]\n", []string{"a[0]=2", "/a/0=3"}, nil, "changed it again"},
		{"one refused refuses all", "values.yaml", "a: 1\nb: |\n  x\n", []string{"a=2", "b=3"}, nil, "values.yaml:2: b: it is a block scalar"},
	}
	for _, tt := range refusals {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := Set([]byte(tt.in), tt.file, parseOps(t, tt.paths, tt.images))
			var r *RefusedError
			if !errors.As(err, &r) || !strings.Contains(err.Error(), tt.err) || got != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func parseOps(t *testing.T, paths, images []string) []Op {
	t.Helper()
	var out []Op
	add := func(op Op, err error) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, op)
	}
	for _, p := range paths {
		add(ParseOp(p))
	}
	for _, i := range images {
		add(ParseImageOp(i))
	}
	return out
}

func TestParseOp(t *testing.T) {
	for arg, want := range map[string][2]string{
		"image.tag=1.4.2":              {"image.tag", "1.4.2"},
		"l[name=web].image=a=b":        {"l[name=web].image", "a=b"},
		`l["]="].x=y`:                  {`l["]="].x`, "y"},
		`l["a\"]="].x=y`:               {`l["a\"]="].x`, "y"},
		"/a[/b=c]":                     {"/a[/b", "c]"},
		"a=":                           {"a", ""},
		`l[name="web"].env[0].value=x`: {"l[name=web].env[0].value", "x"},
	} {
		op, err := ParseOp(arg)
		if err != nil || op.Path.String() != want[0] || op.Value != want[1] {
			t.Errorf("%s: got %q = %q, %v", arg, op.Path, op.Value, err)
		}
	}
	for _, arg := range []string{"", "a", "=b", "a[b=c", "a..b=c"} {
		if op, err := ParseOp(arg); err == nil {
			t.Errorf("%s: got %+v", arg, op)
		}
	}
	for _, arg := range []string{"", "a", "a=", "=b", "a=b c", "a=-b", "a=n/b:c d", "a=/b:c", "a=b:", "a=:c", "a=b/c:d:e f", "a@sha256:00", "a=b@", "@sha256:" + strings.Repeat("0", 64)} {
		if op, err := ParseImageOp(arg); err == nil {
			t.Errorf("%s: got %+v", arg, op)
		}
	}
	digest := "sha256:" + strings.Repeat("0", 64)
	for arg, want := range map[string]Op{
		"localhost:5000/web=v1":       {Image: "localhost:5000/web", Edit: ImageEdit{NewTag: "v1"}},
		"registry:5000/a/b@" + digest: {Image: "registry:5000/a/b", Edit: ImageEdit{Digest: digest}},
		"a=v1@" + digest:              {Image: "a", Edit: ImageEdit{NewTag: "v1", Digest: digest}},
		"web=registry:5000/a/b:v1":    {Image: "web", Edit: ImageEdit{NewName: "registry:5000/a/b", NewTag: "v1"}},
		"web=registry:5000/a/b":       {Image: "web", Edit: ImageEdit{NewName: "registry:5000/a/b"}},
		"web=mirror:v1":               {Image: "web", Edit: ImageEdit{NewName: "mirror", NewTag: "v1"}},
		"r/web=r/web:v1@" + digest:    {Image: "r/web", Edit: ImageEdit{NewName: "r/web", NewTag: "v1", Digest: digest}},
	} {
		if op, err := ParseImageOp(arg); err != nil || cmp.Diff(want.Edit, op.Edit) != "" || op.Image != want.Image {
			t.Errorf("%s: got %+v, %v", arg, op, err)
		}
	}
}
