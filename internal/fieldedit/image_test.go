package fieldedit

import (
	"errors"
	"strings"
	"testing"
)

func TestSetImage(t *testing.T) {
	const web = "registry.example/web"
	tests := []struct {
		name, in, want string
		edit           ImageEdit
	}{
		{"tag", "images:\n- name: registry.example/web\n  newTag: v1 # x\n- name: db\n  newTag: v1\n",
			"images:\n- name: registry.example/web\n  newTag: v2 # x\n- name: db\n  newTag: v1\n", ImageEdit{NewTag: "v2"}},
		{"a tag is always a string", "images:\n- name: registry.example/web\n  newTag: 1\n",
			"images:\n- name: registry.example/web\n  newTag: \"2\"\n", ImageEdit{NewTag: "2"}},
		{"quotes are kept", "images:\n- newTag: '1.1'\n  name: \"registry.example/web\"\n",
			"images:\n- newTag: '1.2'\n  name: \"registry.example/web\"\n", ImageEdit{NewTag: "1.2"}},
		{"a tag is added behind the new name", "images:\n  - name: registry.example/web\n    newName: other/web\n    digest: sha256:1\n",
			"images:\n  - name: registry.example/web\n    newName: other/web\n    newTag: v1\n    digest: sha256:2\n", ImageEdit{NewTag: "v1", Digest: "sha256:2"}},
		{"a new name is added before the tag", "images:\n- name: registry.example/web # w\n  newTag: v1\n",
			"images:\n- name: registry.example/web # w\n  newName: mirror/web\n  newTag: v1\n", ImageEdit{NewName: "mirror/web"}},
		{"flow", "images: [{name: registry.example/web}]\n", "images: [{name: registry.example/web, newTag: v1}]\n", ImageEdit{NewTag: "v1"}},
		{"the digest wins anyway", "images:\n- name: registry.example/web\n  digest: sha256:1\n",
			"images:\n- name: registry.example/web\n  digest: sha256:2\n", ImageEdit{Digest: "sha256:2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := SetImage([]byte(tt.in), web, tt.edit)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if e, ok, err := GetImage(got, web); err != nil || !ok || tt.edit.NewTag != "" && e.NewTag != tt.edit.NewTag {
				t.Errorf("reads back as %+v, %v, %v", e, ok, err)
			}
		})
	}
	refusals := []struct{ name, in, reason string }{
		{"no such entry", "images:\n- name: registry.example/wep\n  newTag: v1\n", "there are registry.example/wep"},
		{"no images", "resources: [a]\n", "no entry named"},
		{"empty images", "images:\n", "no entry named"},
		{"twice", "images:\n- name: registry.example/web\n- name: registry.example/web\n", "two items"},
		{"pinned", "images:\n- name: registry.example/web\n  newTag: v0\n  digest: sha256:1\n", "pinned by a digest"},
		{"images is a mapping", "images: {name: registry.example/web}\n", "no entry named"},
	}
	for _, tt := range refusals {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := SetImage([]byte(tt.in), web, ImageEdit{NewTag: "v1"})
			var r *RefusedError
			if !errors.As(err, &r) || !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// TestAddImage covers entries that a promotion adds.
func TestAddImage(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"entry", "images:\n- name: a\n  newTag: v1 # x\n# end\n", "images:\n- name: a\n  newTag: v1 # x\n- name: r/web\n  newTag: \"1.20\"\n# end\n"},
		{"indented entry", "images:\n  - newTag: v1\n    name: a\nx: 1\n", "images:\n  - newTag: v1\n    name: a\n  - name: r/web\n    newTag: \"1.20\"\nx: 1\n"},
		{"flow entry", "images: [{name: a}]\n", "images: [{name: a}, {name: r/web, newTag: \"1.20\"}]\n"},
		{"empty list", "images: []\n", "images: [{name: r/web, newTag: \"1.20\"}]\n"},
		{"no list", "resources:\n  - a\n", "resources:\n  - a\nimages:\n  - name: r/web\n    newTag: \"1.20\"\n"},
		{"no list, CRLF", "resources:\r\n- a\r\n", "resources:\r\n- a\r\nimages:\r\n- name: r/web\r\n  newTag: \"1.20\"\r\n"},
		{"no list in flow", "{resources: [a]}\n", "{resources: [a], images: [{name: r/web, newTag: \"1.20\"}]}\n"},
		{"flow entries over lines", "{\n  \"images\": [\n    {\"name\": \"a\"}\n  ]\n}\n", "{\n  \"images\": [\n    {\"name\": \"a\"},\n    {\"name\": \"r/web\", \"newTag\": \"1.20\"}\n  ]\n}\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := parseDocument([]byte(tt.in), formatYAML)
			if err != nil {
				t.Fatal(err)
			}
			d, c, err := d.setField(fieldAddress{kind: KindImage, image: "r/web", key: imageNewTag}, "1.20", TypeString)
			if err != nil {
				t.Fatal(err)
			}
			if string(d.data) != tt.want || !c.Added {
				t.Errorf("got\n%s\nwant\n%s", d.data, tt.want)
			}
		})
	}
}
