package controller

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
)

// TestRequestersDontApprove holds that a person who asked for a promotion doesn't approve it, after
// the database was lost too. The commit that the command brought, or the comment on the pull
// request that bears our reaction, tells who asked.
func TestRequestersDontApprove(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open    string
		request func(w *fixture)
	}{
		"by the commit": {"manual", func(w *fixture) {
			w.must(w.run(wake.ForUnit(w.unit("web"))))
			w.release("2.0.0", "web")
			_, err := w.command("grace", 0, "web", command.Command{Verb: command.Promote, Environment: "qa"})
			w.must(err)
			w.settle("web", "it is open", func() bool { return len(w.pulls()) > 0 })
		}},
		"by the commit, brought up to date since": {"manual", func(w *fixture) {
			w.must(w.run(wake.ForUnit(w.unit("web"))))
			w.release("2.0.0", "web")
			_, err := w.command("grace", 0, "web", command.Command{Verb: command.Promote, Environment: "qa"})
			w.must(err)
			w.settle("web", "it is open", func() bool { return len(w.pulls()) > 0 })
			_, err = w.forge.CommitAs(repoName, "linus", "main", "Docs", map[string]string{"docs": "x"})
			w.must(err)
			w.must(w.repo.Forge.UpdateBranch(w.t.Context(), w.repo.Name, 1, w.pulls()[0].Head))
		}},
		"by the comment": {"auto", func(w *fixture) {
			p := w.openOne("web", "2.0.0", "web")
			_, err := w.forge.Comment(repoName, p.Number, "grace", "/liftlock promote")
			w.must(err)
			w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, "", "    - {name: qa, after: [dev], open: "+c.open+", merge: auto, gates: [{approvals: {count: 1}}], verify: "+quickly+"}\n", "web")
			w.signMarks() // without the store, nothing else tells whose an open promotion is
			c.request(w)
			st, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "liftlock.db"), store.Options{Now: w.clock.Now})
			w.must(err)
			t.Cleanup(func() { _ = st.Close() })
			w.addProcess(st, "another")
			w.runRepository()
			merged := func() bool {
				w.must(w.run(wake.ForPull(w.repo.ID, 1)))
				return w.pulls()[0].Merged
			}
			w.must(w.forge.Approve(repoName, 1, "grace"))
			w.settle("web", "only her own approval is there", func() bool {
				if merged() {
					t.Fatal("who asked for it approved it")
				}
				s, err := w.opts.Gatherer.Targets.Snapshot(t.Context(), w.repo.Repository)
				w.must(err)
				_, d, err := w.opts.Gatherer.Evaluate(t.Context(), s, w.unit("web"), true)
				w.must(err)
				waits := slices.DeleteFunc(d.Components[0].Env("qa").Gates, func(g policies.Result) bool { return g.Outcome == policies.Pass })
				return len(waits) == 1 && waits[0].Gate == "approvals" && strings.Contains(waits[0].Reason, "grace")
			})
			w.clock.Step(time.Minute)
			w.must(w.forge.Approve(repoName, 1, "ada"))
			w.settle("web", "it is merged", merged)
		})
	}
}

// TestRenamedRequesterDoesntApprove holds that who asked for a promotion doesn't approve it
// under another login either, after the database was lost too.
func TestRenamedRequesterDoesntApprove(t *testing.T) {
	t.Parallel()
	comment := func(w *fixture) {
		p := w.openOne("web", "2.0.0", "web")
		_, err := w.forge.Comment(repoName, p.Number, "grace", "/liftlock promote")
		w.must(err)
		w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
	}
	for name, c := range map[string]struct {
		open    string
		request func(w *fixture)
		lost    bool // the database
	}{
		"by the command": {"auto", comment, false},
		"by the commit": {"manual", func(w *fixture) {
			w.must(w.run(wake.ForUnit(w.unit("web"))))
			w.release("2.0.0", "web")
			_, err := w.ExecuteCommand(w.t.Context(), Command{Unit: w.unit("web"), Command: command.Command{Verb: command.Promote, Environment: "qa"}, By: "grace", ByID: w.accountID("grace"), Via: "comment", Source: "test"})
			w.must(err)
			w.settle("web", "it is open", func() bool { return len(w.pulls()) > 0 })
		}, true},
		"by the comment": {"auto", comment, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEmulatedFixture(t, "", "    - {name: qa, after: [dev], open: "+c.open+", merge: auto, gates: [{approvals: {count: 1}}], verify: "+quickly+"}\n", "web")
			w.signMarks() // without the store, nothing else tells whose an open promotion is
			c.request(w)
			if c.lost {
				st, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "liftlock.db"), store.Options{Now: w.clock.Now})
				w.must(err)
				t.Cleanup(func() { _ = st.Close() })
				w.addProcess(st, "another")
				w.runRepository()
				w.must(w.run(wake.ForPull(w.repo.ID, 1))) // the comment is read under the former login
				w.clock.Step(time.Minute)
				_, err = w.forge.Comment(repoName, 1, "linus", "Thanks")
				w.must(err)
				w.must(w.run(wake.ForPull(w.repo.ID, 1))) // and not again after this one
			}
			w.must(w.emulated.RenameUser("grace", "hopper"))
			w.must(w.forge.Approve(repoName, 1, "hopper"))
			merged := func() bool {
				w.must(w.run(wake.ForPull(w.repo.ID, 1)))
				return w.pulls()[0].Merged
			}
			w.settle("web", "only her own approval is there", func() bool {
				if merged() {
					t.Fatal("who asked for it approved it under another login")
				}
				_, d := w.evaluate()
				waits := slices.DeleteFunc(d.Components[0].Env("qa").Gates, func(g policies.Result) bool { return g.Outcome == policies.Pass })
				return len(waits) == 1 && waits[0].Gate == "approvals" && strings.Contains(waits[0].Reason, "hopper")
			})
			w.clock.Step(time.Minute)
			w.must(w.forge.Approve(repoName, 1, "ada"))
			w.settle("web", "it is merged", merged)
		})
	}
}

// accountID is the number of an account of the emulated forge.
func (f *fixture) accountID(login string) int64 {
	f.t.Helper()
	commit, err := f.forge.CommitAs(repoName, login, "by-"+login, "Docs", map[string]string{"docs": login})
	f.must(err)
	authors, err := f.repo.Forge.CommitAuthors(f.t.Context(), f.repo.Name, "", commit)
	f.must(err)
	return authors[0].Contributors[0].User.ID
}
