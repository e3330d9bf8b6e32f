package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestUngatedMergesAreForgotten holds that a merge past its gates is known for as long as its
// release is in its environment, and no longer, also where the component is gone.
func TestUngatedMergesAreForgotten(t *testing.T) {
	t.Parallel()
	gated := "    - {name: qa, after: [dev], merge: manual, gates: [{soak: {for: 720h}}], verify: " + quickly + "}\n"
	for kind, k := range listKindsOfUnit() {
		t.Run(kind, func(t *testing.T) {
			w := newFixture(t, k.spec, gated, append([]string{"other"}, k.components...)...)
			known := func() (pulls []int) {
				all, err := facts.UngatedMerges.List(t.Context(), w.opts.Store, record.Within{})
				w.must(err)
				for _, e := range all {
					pulls = append(pulls, e.About.Number)
				}
				return pulls
			}
			merge := func(tag string, components ...string) (pull int) {
				p := w.openOne(k.key, tag, components...)
				w.must(w.run(wake.ForUnit(w.unit(k.key))))
				_, err := w.forge.MergePull(repoName, p.Number, "grace", "merge")
				w.must(err)
				w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
				looks := 0
				w.settle(k.key, "it is looked at", func() bool { looks++; return looks > 4 })
				return p.Number
			}
			first := merge("2.0.0", k.components...)
			if got := known(); !slices.Equal(got, []int{first}) {
				t.Fatalf("after the first: %v", got)
			}
			want := []int{merge("3.0.0", k.components[0])}
			if len(k.components) > 1 {
				want = []int{first, want[0]} // another component still has it
			}
			if got := known(); !slices.Equal(got, want) {
				t.Fatalf("after the second: %v, want %v", got, want)
			}
			last := merge("4.0.0", k.components...)
			if got := known(); !slices.Equal(got, []int{last}) {
				t.Fatalf("after the last: %v, want %v", got, last)
			}
			for _, component := range k.components {
				if got := known(); len(got) != 1 {
					t.Fatalf("while %s is there: %v", component, got)
				}
				w.must(w.forgetUnit(t.Context(), w.unit(component)))
			}
			if got := known(); len(got) != 0 {
				t.Errorf("when all is gone: %v", got)
			}
		})
	}
}

// TestMergedPastItsGates holds that a merge by hand is told with the gates that it went past, once,
// and that the verification goes on. Our own merges and those that wait for nothing aren't told.
func TestMergedPastItsGates(t *testing.T) {
	t.Parallel()
	gated := "    - {name: qa, after: [dev], merge: manual, gates: [{approvals: {count: 1}}, {soak: {for: 720h}}], verify: " + quickly + "}\n"
	for name, c := range map[string]struct{ env, want string }{
		"past two gates":       {gated, "was merged by grace without gates: approvals, soak"},
		"where nothing waits":  {manualQA, ""},
		"by us, when all pass": {autoQA, ""},
	} {
		for kind, k := range listKindsOfUnit() {
			t.Run(name+", "+kind, func(t *testing.T) {
				w := newFixture(t, k.spec, c.env, k.components...)
				p := w.openOne(k.key, "2.0.0", k.components...)
				if c.env != autoQA {
					w.must(w.run(wake.ForUnit(w.unit(k.key))))
					_, err := w.forge.MergePull(repoName, p.Number, "grace", "merge")
					w.must(err)
				}
				w.settle(k.key, "it is verified", func() bool {
					w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
					all, err := w.opts.Store.Events(t.Context(), store.EventFilter{Component: k.components[0], Environment: "qa", Limit: 1000})
					w.must(err)
					return slices.ContainsFunc(all, func(e store.Event) bool { return e.Kind == promotion.Verified })
				})
				for _, component := range k.components {
					all, err := w.opts.Store.Events(t.Context(), store.EventFilter{Component: component, Limit: 1000})
					w.must(err)
					var replies []string
					for _, e := range all {
						if e.Kind == "ungated" {
							replies = append(replies, e.Message)
						}
					}
					if c.want == "" && len(replies) > 0 || c.want != "" && (len(replies) != 1 || !strings.Contains(replies[0], c.want)) {
						t.Errorf("of %s is told %q, want %q", component, replies, c.want)
					}
				}
				comments := w.pulls()[0].Comments
				if got := slices.ContainsFunc(comments, func(k emulator.Comment) bool { return strings.Contains(k.Body, "without gates") }); got != (c.want != "") {
					t.Errorf("the comment tells of it: %t", got)
				}
			})
		}
	}
}

// TestAnUnmanagedHeadIsMergedUngated holds that it is on record when a person merges their own push
// over a promotion, though no gate was judged for that. The merge commit of the forge's button
// isn't such a push.
func TestAnUnmanagedHeadIsMergedUngated(t *testing.T) {
	commit := func(w *fixture, branch, file, content string) string {
		sha, err := w.forge.CommitAs(repoName, "linus", branch, "Write "+file, map[string]string{file: content})
		w.must(err)
		return sha
	}
	rebase := func(w *fixture, p emulator.PullRequest, tag string) { // somewhere else, so that the pull request stays open
		w.must(w.forge.SetBranch(repoName, "linus", "rebased", commit(w, "main", "docs.txt", "x\n")))
		w.must(w.forge.SetBranch(repoName, "linus", p.Branch, commit(w, "rebased", kustomizationOf("web", "qa"), kustomization("web", tag))))
	}
	for name, c := range map[string]struct {
		push      func(w *fixture, p emulator.PullRequest)
		unmanaged bool
	}{
		"pushed over": {func(w *fixture, p emulator.PullRequest) { commit(w, p.Branch, "more.txt", "more\n") }, true},
		"brought up to date": {func(w *fixture, p emulator.PullRequest) {
			commit(w, "main", "docs.txt", "x\n")
			w.must(w.repo.Forge.UpdateBranch(w.t.Context(), w.repo.Name, p.Number, p.Head))
		}, false},
		"rebased":                   {func(w *fixture, p emulator.PullRequest) { rebase(w, p, "2.0.0") }, false},
		"rebased to another change": {func(w *fixture, p emulator.PullRequest) { rebase(w, p, "3.0.0") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, "", manualQA, "web")
			p := w.openOne("web", "2.0.0", "web")
			w.must(w.run(wake.ForUnit(w.unit("web"))))
			c.push(w, p)
			w.runRepository()
			_, err := w.forge.MergePull(repoName, p.Number, "linus", "merge")
			w.must(err)
			w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
			looks := 0
			w.settle("web", "it is looked at", func() bool { looks++; return looks > 2 })
			got, err := facts.ReadUngated(t.Context(), w.opts.Store, w.repo.ID, p.Number)
			w.must(err)
			if is := got != ""; is != c.unmanaged || is && got != "merged by linus without gates: head" {
				t.Errorf("on record is %q", got)
			}
		})
	}
}
