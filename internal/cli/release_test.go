package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/plan"
)

// TestParseVersions holds what the flags of release mean, and what is wrong with the others.
func TestParseVersions(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	for _, tt := range []struct {
		image, chart string
		want         plan.ReleasedVersion
		err          string
	}{
		{image: "registry.example/web:1.4.2", want: plan.ReleasedVersion{Image: "registry.example/web", Tag: "1.4.2"}},
		{image: "registry.example:5000/web:v1", want: plan.ReleasedVersion{Image: "registry.example:5000/web", Tag: "v1"}},
		{image: "nginx:1.27", want: plan.ReleasedVersion{Image: "nginx", Tag: "1.27"}},
		{image: "web@" + digest, want: plan.ReleasedVersion{Image: "web", Digest: digest}},
		{image: "web:1@" + digest, want: plan.ReleasedVersion{Image: "web", Tag: "1", Digest: digest}},
		{image: "registry.example:5000/web", err: "it has no tag and no digest"},
		{image: "web:", err: "it has no tag and no digest"},
		{image: ":1", err: "write it like registry.example/web:1.4.2"},
		{image: "web=1.4.2", err: "write it like registry.example/web:1.4.2"},
		{image: "https://registry.example/web:1", err: "write it like registry.example/web:1.4.2"},
		{image: "web:-1", err: `"-1" is no tag`},
		{image: "web:1@sha256:12", err: `"sha256:12" is no digest`},
		{chart: "oci://registry.example/charts/web=3.2.0", want: plan.ReleasedVersion{Chart: "oci://registry.example/charts/web", Tag: "3.2.0"}},
		{chart: "https://charts.example/stable#web=v3", want: plan.ReleasedVersion{Chart: "https://charts.example/stable#web", Tag: "v3"}},
		{chart: "web=3.2.0", err: "write it like oci://"},
		{chart: "https://charts.example#web", err: "write it like oci://"},
		{chart: "https://charts.example#web=~3", err: `"~3" is no version`},
		{err: "nothing to release"},
	} {
		var images, charts []string
		if tt.image != "" {
			images = []string{tt.image}
		}
		if tt.chart != "" {
			charts = []string{tt.chart}
		}
		got, err := parseVersions(images, charts)
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s%s: %v, want %s", tt.image, tt.chart, err, tt.err)
			}
		case err != nil:
			t.Errorf("%s%s: %v", tt.image, tt.chart, err)
		case cmp.Diff([]plan.ReleasedVersion{tt.want}, got) != "":
			t.Errorf("%s%s: %+v", tt.image, tt.chart, got)
		case got[0].String() != tt.image+tt.chart:
			t.Errorf("%s%s is written as %s", tt.image, tt.chart, got[0])
		}
	}
	if _, err := parseVersions(make([]string, 3), nil); err == nil {
		t.Error("empty images are released")
	}
}

// FuzzParseImage holds that an image which is taken is written as it was given.
func FuzzParseImage(f *testing.F) {
	f.Add("registry.example:5000/web:1.4.2")
	f.Add("web:1@sha256:" + strings.Repeat("0", 64))
	f.Fuzz(func(t *testing.T, text string) {
		if v, err := parseImage(text); err == nil && v.String() != text {
			t.Errorf("%q is taken for %q", text, v)
		}
	})
}
