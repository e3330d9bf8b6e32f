package effects

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/manifest/render"
)

// TestChangesOpenNothingElse opens for somebody's change what targets of the tracked branch are made of, and
// other versions of the same, so many of them; and nothing else.
func TestChangesOpenNothingElse(t *testing.T) {
	var opened []string
	o := &ChangeGatherer{externals: branch.GivenExternalFiles(func(_ context.Context, e render.External) (render.Tree, error) {
		opened = append(opened, e.RepoURL+" "+e.Chart+" "+e.Revision)
		if e.Revision == "gone" {
			return render.Tree{}, branch.ErrNotListed
		}
		return render.Tree{Revision: "c0ffee"}, nil
	})}
	target := func(sources ...appset.Source) *appset.Target { return &appset.Target{Name: "web", Sources: sources} }
	at := func(url, chart, revision string) appset.Source {
		return appset.Source{RepoURL: url, Chart: chart, TargetRevision: revision}
	}
	const charts, base, vault = "https://charts.example", "https://git.example/acme/base", "https://git.example/acme/vault"
	ours := target(at(charts, "web", "1.0.0"), at(base, "", "v1"), at(base, "", "gone"))
	s := &branch.Snapshot{Pipelines: []*branch.ResolvedPipeline{{TargetSet: &appset.TargetSet{Targets: []appset.Target{*ours}}}, {}}}
	theirs := target(at(charts, "web", "1.0.0"), at(charts, "web", "1.1.0"), at(charts, "vault", "1.0.0"), at(base, "", "v1"), at(base, "", "secret"), at(base, "", "v2"), at(base, "", "v1.2.0"), at(base, "", strings.Repeat("c0", 20)),
		at(charts, "web", "1.x"), at(vault, "", "v1.2.0"), at(vault, "", "v1"), at("https://evil.example", "web", "1.0.0"))
	got := o.openAllowed(t.Context(), s, []evaluate.RenderPair{{Before: ours, After: theirs}, {After: theirs}}, maxNewVersions)
	want := []string{charts + " web 1.0.0", base + "  v1", base + "  gone", charts + " web 1.1.0", base + "  v1.2.0"}
	if !slices.Equal(opened, want) || len(got) != 4 || got[0].At != "c0ffee" {
		t.Errorf("opened %q, and gave %+v; want %q", opened, got, want)
	}
	opened = nil
	if o.openAllowed(t.Context(), s, []evaluate.RenderPair{{Before: ours, After: theirs}}, 0); !slices.Equal(opened, want[:3]) {
		t.Errorf("of a fork are opened %q, want %q", opened, want[:3])
	}
	var many []appset.Source
	for i := range 3 * maxNewVersions {
		many = append(many, at(charts, "web", fmt.Sprintf("2.0.%d", i)), at(charts, "web", fmt.Sprintf("2.0.%d", i)))
	}
	if got := o.openAllowed(t.Context(), s, []evaluate.RenderPair{{Before: ours, After: target(many...)}}, maxNewVersions); len(got) != 2+maxNewVersions {
		t.Errorf("%d are opened of a change with many versions", len(got))
	}
	if got := (&ChangeGatherer{}).openAllowed(t.Context(), s, []evaluate.RenderPair{{After: ours}}, maxNewVersions); got != nil {
		t.Errorf("without externals: %+v", got)
	}
}
