package checkout

import (
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/pipeline"
)

func TestDistinguishingNames(t *testing.T) {
	long := strings.Repeat("a-long-folder/", 8)
	for _, c := range []struct {
		name        string
		files, want []string
	}{
		{"what differs", []string{"argocd/dev/sets.yaml", "argocd/prod/sets.yaml"}, []string{"dev", "prod"}},
		{"at different depths", []string{"argocd/dev.yaml", "argocd/live/eu/sets.yaml"}, []string{"dev", "live-eu-sets"}},
		{"long paths", []string{"x/" + long + "eu.yaml", "y/" + long + "us.yaml"}, []string{
			"a-long-folder-a-long-folder-a-long-folder-a-long-folder-eu", "a-long-folder-a-long-folder-a-long-folder-a-long-folder-us"}},
		{"long paths that end alike", []string{"x/" + long + "b/sets.yaml", "y/" + long + "b/sets.yaml", "x/z.yaml"}, []string{
			"folder-a-long-folder-a-long-folder-a-long-folder-b-sets", "folder-a-long-folder-a-long-folder-a-long-folder-b-sets-2", "x-z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := distinguishingNames(c.files)
			if !slices.Equal(got, c.want) {
				t.Errorf("%q", got)
			}
			for _, name := range got {
				if err := pipeline.ValidName(name); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
