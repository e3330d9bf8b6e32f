package promotion

import (
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// TestWhyKeptOut holds that holds, reverts and refusals anywhere behind a source environment keep a release out of it, and
// that a later promotion of it ends that.
func TestWhyKeptOut(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	const release = "0123456789abcdef"
	env := func(name string, after ...string) Env {
		return Env{Name: name, Spec: pipeline.Environment{Name: name, After: after}}
	}
	for name, c := range map[string]struct {
		change func(f *ComponentFacts)
		want   string
	}{
		"nothing":                 {func(*ComponentFacts) {}, ""},
		"holds that aren't known": {func(f *ComponentFacts) { f.Holds = Unsure[[]Hold]("the branch is gone") }, "the holds can't be read: the branch is gone"},
		"a hold on the component": {func(f *ComponentFacts) { f.Holds = Sure([]Hold{{Scope: "component", By: "ada", At: noon}}) }, "component web is on hold by ada"},
		"a hold on the pipeline":  {func(f *ComponentFacts) { f.Holds = Sure([]Hold{{Scope: "pipeline", By: "ada", At: noon}}) }, "the pipeline is on hold by ada"},
		"a hold on it": {func(f *ComponentFacts) {
			f.Holds = Sure([]Hold{{Scope: "environment", Environment: "dev", By: "ada", At: noon}})
		}, "environment dev is on hold by ada"},
		"a hold on another": {func(f *ComponentFacts) {
			f.Holds = Sure([]Hold{{Scope: "environment", Environment: "qa", By: "ada", At: noon}})
		}, ""},
		"a hold that is over": {func(f *ComponentFacts) {
			f.Holds = Sure([]Hold{{Scope: "component", By: "ada", At: noon.Add(-time.Hour), Until: noon}})
		}, ""},
		"a revert further on": {func(f *ComponentFacts) {
			f.Envs[2].PastPulls = []PastPull{{Number: 7, Release: release, Revert: true, Merged: true, At: noon}}
		}, "it was reverted from prod by #7"},
		"a revert by a commit": {func(f *ComponentFacts) { f.Envs[1].RevertedReleases = []string{release[:12]} }, "it was reverted from qa by a commit"},
		"a revert elsewhere":   {func(f *ComponentFacts) { f.Envs[3].RevertedReleases = []string{release[:12]} }, ""},
		"a refusal":            {func(f *ComponentFacts) { f.Envs[1].PastPulls = []PastPull{{Number: 7, Release: release, At: noon}} }, "#7, which would have brought it into qa, was closed by a person"},
		"a refusal of another": {func(f *ComponentFacts) {
			f.Envs[1].PastPulls = []PastPull{{Number: 7, Release: "fedcba9876543210", At: noon}}
		}, ""},
		"a refusal of who knows": {func(f *ComponentFacts) { f.Envs[1].PastPulls = []PastPull{{Number: 7, At: noon}} }, ""},
		"a promotion after that": {func(f *ComponentFacts) {
			f.Envs[1].PastPulls = []PastPull{{Number: 8, Release: release, Merged: true, At: noon.Add(time.Hour)}, {Number: 7, Release: release, Revert: true, Merged: true, At: noon}}
		}, ""},
		"an environment that's no": {func(f *ComponentFacts) { f.Envs = f.Envs[1:] }, "there is no environment dev"},
	} {
		f := &ComponentFacts{Now: noon.Add(2 * time.Hour), Unit: Unit{Component: "web"}, Pipeline: &pipeline.Pipeline{}, Holds: Sure[[]Hold](nil),
			Envs: []Env{env("dev"), env("qa", "dev"), env("prod", "qa"), env("other")}}
		c.change(f)
		if got := WhyKeptOut(f, "dev", release); (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
