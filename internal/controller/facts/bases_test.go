package facts

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
)

// TestBasesFollowKustomizations says which folders of kustomizations are an environment's alone
// after each push, while the targets stay the same. A snapshot that kept them from the one before
// has the same as one without.
func TestBasesFollowKustomizations(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	const own = "envs/qa/web"
	based := func(on ...string) string {
		text := "images:\n- name: registry.example/other\n  newTag: 1.0.0\nresources:\n"
		for _, folder := range on {
			text += "- ../../../" + folder + "\n"
		}
		return text
	}
	last := w.snapshot()
	for _, step := range []struct {
		what  string
		files map[string]string
		want  map[string][]string
		same  bool // the units are kept
	}{
		{"one that nobody builds on", map[string]string{own + "/kustomization.yaml": overlayText("web", "1.0.0")}, nil, true},
		{"qa builds on it", map[string]string{overlayFile("web", "qa"): based(own)}, map[string][]string{"qa": {own}}, false},
		{"docs", map[string]string{"README.md": "x"}, map[string][]string{"qa": {own}}, true},
		{"another tag in it", map[string]string{own + "/kustomization.yaml": overlayText("web", "1.1.0")}, map[string][]string{"qa": {own}}, true},
		{"it builds on a further one", map[string]string{own + "/kustomization.yaml": based("envs/qa/more"), "envs/qa/more/Kustomization": "images: []\n"},
			map[string][]string{"dev": {"base/web"}, "qa": {"envs/qa/more", own}}, false},
		{"dev builds on the further one", map[string]string{overlayFile("web", "dev"): based("envs/qa/more")}, map[string][]string{"qa": {own}}, false},
		{"and on both", map[string]string{overlayFile("web", "dev"): based(own)}, nil, false},
		{"and on none", map[string]string{overlayFile("web", "dev"): overlayText("web", "1.0.0")}, map[string][]string{"dev": {"base/web"}, "qa": {"envs/qa/more", own}}, false},
		{"it has two kustomizations", map[string]string{own + "/kustomization.yml": "images: []\n"}, map[string][]string{"dev": {"base/web"}}, false},
		{"and one again", map[string]string{own + "/kustomization.yml": ""}, map[string][]string{"dev": {"base/web"}, "qa": {"envs/qa/more", own}}, false},
		{"it isn't YAML", map[string]string{own + "/kustomization.yaml": "resources: [\n"}, map[string][]string{"dev": {"base/web"}}, false},
		{"it is gone", map[string]string{own + "/kustomization.yaml": ""}, map[string][]string{"dev": {"base/web"}}, true},
	} {
		w.commit("ada", step.what, step.files)
		now := w.snapshot()
		got := map[string][]string{}
		for name, e := range now.Pipelines[0].Units["web"].Envs {
			if len(e.Bases) > 0 {
				got[name] = e.Bases
			}
		}
		if step.want == nil {
			step.want = map[string][]string{}
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
		if !branch.SameTargetSlice(last.Pipelines[0].TargetSet, now.Pipelines[0].TargetSet) {
			t.Errorf("%s: the targets were resolved again", step.what)
		}
		same := reflect.ValueOf(last.Pipelines[0].Units).Pointer() == reflect.ValueOf(now.Pipelines[0].Units).Pointer()
		if same != step.same {
			t.Errorf("%s: the units are kept: %v", step.what, same)
		}
		fresh, err := history.ReadBases(w.ctx(), w.repo.Mirror.Tree(now.Commit), now.Pipelines[0].Bases.Folders["main"], nil, nil)
		w.must(err)
		if !reflect.DeepEqual(fresh, now.Pipelines[0].Bases.Of["main"]) {
			t.Errorf("%s: kept %+v, read anew %+v", step.what, now.Pipelines[0].Bases.Of["main"], fresh)
		}
		last = now
	}
}
