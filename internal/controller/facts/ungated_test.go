package facts

import (
	"context"
	"maps"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store/record"
)

// TestMergeWithMoreIsUngated holds that a merge of our head and the base with any other content is
// on record as merged past its gates. The forge's own merge is not.
func TestMergeWithMoreIsUngated(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"the forge's":              {nil, ""},
		"with a file besides":      {map[string]string{"more": "x"}, "merged by mallory without gates: head"},
		"with another release":     {map[string]string{overlayFile("web", "qa"): overlayText("web", "6.6.6")}, "merged by mallory without gates: head"},
		"with more in the overlay": {map[string]string{overlayFile("web", "qa"): overlayText("web", "1.1.0") + "replicas: [{name: web, count: 2}]\n"}, "merged by mallory without gates: head"},
	} {
		for _, method := range []string{"merge", "squash"} {
			t.Run(name+", "+method, func(t *testing.T) {
				w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
				n, branch, head := openToQA(w)
				w.soak("web")
				w.bringUpToDate(n, branch, head, tc.files)
				w.mergeBy(n, "mallory", method)
				ev, _ := w.evaluate("web", false)
				c := ev.Components[0]
				_, _, err := w.o.Records.ListChanged(w.ctx(), c)
				w.must(err)
				got := ""
				for _, u := range c.Ungated {
					got += u.String()
				}
				if got != tc.want {
					t.Errorf("on record is %q, want %q", got, tc.want)
				}
			})
		}
	}
}

// rebased pushes a commit onto the newest of main to a branch of ours, as the forge's button that
// rebases does. It has our commit's changes, and more where files say so.
func (sto *story) rebased(number int, branch, head string, files map[string]string) string {
	sto.t.Helper()
	onto := sto.commit("linus", "Docs", map[string]string{"docs": head})
	text, err := sto.repo.Mirror.Tree(head).ReadFile(overlayFile("web", "qa"))
	sto.must(err)
	changed := map[string]string{overlayFile("web", "qa"): string(text)}
	maps.Copy(changed, files)
	spec := git.CommitSpec{Message: "Rebased", When: sto.now, Parents: []string{onto}, Base: onto}
	for name, text := range changed {
		spec.Files = append(spec.Files, git.FileWrite{Path: name, Content: []byte(text)})
	}
	sha, err := sto.remote.Write(sto.ctx(), spec)
	sto.must(err)
	sto.pushOver(number, branch, sha)
	return sha
}

// ungated says what is on record of merges past their gates, with each call having failed that finds
// it out.
func (sto *story) ungated() (said string) {
	sto.t.Helper()
	ev, _ := sto.evaluate("web", false)
	c := ev.Components[0]
	sto.failUntilDone("records", func() { c.Merges, c.Ungated = nil, nil }, func(ctx context.Context) error {
		_, _, err := sto.o.Records.ListChanged(ctx, c)
		return err
	})
	for _, u := range c.Ungated {
		said += u.String()
	}
	return said
}

// TestRebaseIsGated holds that our commit on another base is ours still, where it changes what ours
// does, and lands as that.
func TestRebaseIsGated(t *testing.T) {
	const byMallory = "merged by mallory without gates: head"
	for name, tc := range map[string]struct {
		files map[string]string
		root  bool // what is known of ours has no parent, or isn't there any more
		want  string
	}{
		"rebased":              {},
		"with a file besides":  {files: map[string]string{"more": "x"}, want: byMallory},
		"with another release": {files: map[string]string{overlayFile("web", "qa"): overlayText("web", "6.6.6")}, want: byMallory},
		"of what is not known": {root: true, want: byMallory},
	} {
		for _, method := range []string{"merge", "squash", "rebase"} {
			t.Run(name+", "+method, func(t *testing.T) {
				w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
				n, branchName, head := openToQA(w)
				w.soak("web")
				w.rebased(n, branchName, head, tc.files)
				if tc.root {
					first := w.head("main")
					for {
						info, err := w.repo.Mirror.Commit(w.ctx(), first)
						w.must(err)
						if len(info.Parents) == 0 {
							break
						}
						first = info.Parents[0]
					}
					w.putRecord(branch.PushedHeads.Key(record.OfBranch(w.repo.ID, branchName)), branch.Pushed{{Head: "1111111111111111111111111111111111111111"}, {Head: first}})
				}
				w.mergeBy(n, "mallory", method)
				if got := w.ungated(); got != tc.want {
					t.Errorf("on record is %q, want %q", got, tc.want)
				}
			})
		}
	}
}

// TestMergeThatIsGated holds whose merges are on record as past the gates: a person's, of a pull
// request that waited at its last evaluation.
func TestMergeThatIsGated(t *testing.T) {
	const gated = "  environments:\n    - {name: dev}\n    - {name: qa, after: [dev], gates: [{approvals: {count: 1}}]}\n"
	hold := func(w *story, n int, _ string) {
		w.must(w.forge.SetLabels(storyRepo, n, "linus", promotion.LabelOurs, promotion.LabelHold))
		w.refreshPull(n)
		w.soak("web")
	}
	forget := func(w *story, _ int, branchName string) {
		w.must(w.store.DeleteRecord(w.ctx(), branch.PushedHeads.Key(record.OfBranch(w.repo.ID, branchName))))
	}
	for name, tc := range map[string]struct {
		spec   string
		login  string
		change func(w *story, n int, branch string)
		want   string
	}{
		"a person's":              {spec: gated, login: "mallory", want: "merged by mallory without gates: approvals"},
		"ours":                    {spec: gated, login: storyBot},
		"nothing waited":          {spec: twoEnvs, login: "mallory"},
		"nobody looked":           {spec: gated, login: "mallory", change: func(w *story, _ int, _ string) { w.restart() }},
		"what was pushed is lost": {spec: gated, login: "mallory", change: forget, want: "merged by mallory without gates: approvals"},
		"held, too":               {spec: gated, login: "mallory", change: hold, want: "merged by mallory without gates: hold, approvals"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStory(t, tc.spec, []string{"dev", "qa"}, "web")
			n, branch, _ := openToQA(w)
			w.soak("web")
			if tc.change != nil {
				tc.change(w, n, branch)
			}
			w.mergeBy(n, tc.login, "merge")
			if got := w.ungated(); got != tc.want {
				t.Errorf("on record is %q, want %q", got, tc.want)
			}
		})
	}
}
