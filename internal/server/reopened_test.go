package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/liftlock/liftlock/internal/server"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// Things from a time that is over come back: a pull request that a person closed, a database of
// yesterday, a second server that knows nothing of the first.

// TestEnvironmentRemoved takes an environment out of the pipeline file while its promotion is green:
// it isn't any more, and says why.
func TestEnvironmentRemoved(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		manualProd := strings.Replace(ungatedProd, "merge: auto", "merge: manual", 1)
		s := startHarness(t, harnessOptions{face: face, pipeline: pipelineYAML(nil, dev, qa, manualProd)})
		s.awaitJudged()
		s.commitRelease("web", "1.1.0")
		p := s.awaitPromotion("web", "prod", "1.1.0")
		s.awaitStatus(p.Head, "success", "")
		s.commitFiles("linus", "main", "Take prod out", map[string]string{".liftlock.yaml": pipelineYAML(nil, dev, qa)})
		s.awaitStatus(p.Head, "failure", "nothing looks after this")
		s.commitFiles("linus", "main", "Prod again, with approvals", map[string]string{".liftlock.yaml": pipelineYAML(nil, dev, qa, prod)})
		s.awaitPull(p.Number, "waits for approvals", func(p *emulator.PullRequest) bool {
			return strings.Contains(liftlockStatus(p.Statuses).Description, " of 2)")
		})
	})
}

// TestExtraFileInAPromotion has a writer push the promotion's own release over it with somewhat
// more. It is stopped, and where a person merges it all the same, its other changes are the
// person's and no promotion.
func TestExtraFileInAPromotion(t *testing.T) {
	manualProd := strings.Replace(ungatedProd, "merge: auto", "merge: manual", 1)
	s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa, manualProd)})
	s.awaitJudged()
	s.commitRelease("web", "1.1.0")
	p := s.awaitPromotion("web", "prod", "1.1.0")
	s.awaitStatus(p.Head, "success", "")
	files := map[string]string{}
	for env, tag := range map[string]string{"qa": "6.6.6", "prod": "1.1.0"} {
		name := overlayPath("web", env) + "/kustomization.yaml"
		text, _, err := s.Forge.File(repoName, "main", name)
		s.must("read an overlay", err)
		files[name] = newTag.ReplaceAllString(text, "newTag: "+tag)
	}
	head := s.commitFiles("grace", "elsewhere", "Promote web to prod: 1.1.0", files)
	s.must("push over it", s.Forge.SetBranch(repoName, "grace", p.Branch, head))
	s.awaitStatus(head, "failure", "")
	_, err := s.Forge.MergePull(repoName, p.Number, "ada", "merge")
	s.must("merge it all the same", err)
	s.awaitVerified("web", "prod", "1.1.0")
	s.awaitReason("web", "qa", "changed it by hand")
}

// TestReopenedPromotion opens a promotion again that a person closed long ago, when prod has something
// newer: by a promotion, or by a person's hotfix.
func TestReopenedPromotion(t *testing.T) {
	t.Parallel()
	for name, newer := range map[string]func(s *harness){
		"after a promotion": func(s *harness) {
			s.commitRelease("web", "1.2.0")
			p := s.awaitPromotion("web", "prod", "1.2.0")
			s.must("check", s.Forge.SetStatus(repoName, "ada", p.Head, emulator.Status{Context: "ci", State: "success"}))
			s.awaitMerged(p.Number)
			s.awaitVerified("web", "prod", "1.2.0")
		},
		"after a hotfix": func(s *harness) {
			s.editTag("linus", "web", "prod", "1.2.0")
			s.awaitReason("web", "prod", "changed it by hand")
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachFace(t, func(t *testing.T, face emulator.Face) {
				s := startHarness(t, harnessOptions{face: face, pipeline: pipelineYAML(nil, dev, qa, checkedProd)})
				s.awaitJudged()
				s.commitRelease("web", "1.1.0")
				old := s.awaitPromotion("web", "prod", "1.1.0")
				s.awaitIdle()
				s.must("close it", s.Forge.ClosePull(repoName, old.Number, "ada"))
				s.awaitReason("web", "prod", "closed by a person")
				newer(s)
				s.awaitIdle()
				s.must("put its branch back", s.Forge.SetBranch(repoName, "grace", old.Branch, old.Head))
				if err := s.Forge.ReopenPull(repoName, old.Number, "grace"); err != nil {
					t.Skipf("this forge refuses: %v", err)
				}
				s.must("check", s.Forge.SetStatus(repoName, "ada", old.Head, emulator.Status{Context: "ci", State: "success"}))
				s.lookAgain()
				s.lookAgain()
				if got := s.carriedTag("prod"); got != "newTag: 1.2.0" || s.readPull(old.Number).Merged {
					t.Errorf("a closed promotion brought %s to prod: %+v", got, liftlockStatus(s.readPull(old.Number).Statuses))
				}
			})
		})
	}
}

// copyDatabase copies a database's files into a folder.
func copyDatabase(t *testing.T, database, dir string) {
	t.Helper()
	files, err := filepath.Glob(database + "*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of %s: %v", database, err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(f)), data, 0o600)
		}
		if err != nil {
			t.Fatalf("copy a database: %v", err)
		}
	}
}

// TestOlderDatabase restores a database of before a revert, a promotion and a person's rollback: none is
// done again, and the rollback stands.
func TestOlderDatabase(t *testing.T) {
	revertsProd := strings.Replace(ungatedProd, "merge: auto", "merge: auto\nonDegraded: revert-and-merge", 1)
	s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa, revertsProd)})
	s.promoteAllTheWay("1.1.0")
	s.stop()
	database := filepath.Join(s.dir, "data", "liftlock.db")
	backup := t.TempDir()
	copyDatabase(t, database, backup)
	s.start()
	s.commitRelease("web", "1.2.0")
	s.awaitVerified("web", "prod", "1.2.0")
	s.must("break prod", s.ArgoCD.SetFault("argocd", "web-prod", argoemulator.AppFault{Health: "Degraded", Message: "crash", Resource: "web"}))
	s.waitFor("1.2.0 is taken back", func() (bool, string) { tag := s.carriedTag("prod"); return tag == "newTag: 1.1.0", tag })
	s.must("mend prod", s.ArgoCD.SetFault("argocd", "web-prod", argoemulator.AppFault{}))
	s.awaitVerified("web", "prod", "1.1.0")
	s.commitRelease("web", "1.3.0")
	s.awaitVerified("web", "prod", "1.3.0")
	s.editTag("ada", "web", "prod", "1.1.0")
	s.awaitReason("web", "prod", "changed it by hand")
	s.awaitIdle()
	before, err := s.ownPulls()
	s.must("list what is ours", err)
	s.deleteDatabase()
	copyDatabase(t, filepath.Join(backup, "liftlock.db"), filepath.Dir(database))
	s.start()
	s.awaitJudged()
	s.lookAgain()
	after, err := s.ownPulls()
	s.must("list what is ours", err)
	if len(after) != len(before) || s.carriedTag("prod") != "newTag: 1.1.0" {
		_, why := s.readEnvironment("web", "prod")
		t.Errorf("%d pull requests, after %d; prod has %s: %s", len(after), len(before), s.carriedTag("prod"), why)
	}
}

// TestTwoDatabases has two servers with a database each serve one repository with one account.
// Everything is done once, and at rest neither writes against the other.
func TestTwoDatabases(t *testing.T) {
	s := startHarness(t, harnessOptions{poll: 2 * time.Second, sweep: 3 * time.Second})
	core, _ := observer.New(zapcore.InfoLevel)
	first := s.url
	s.url = ""
	o := s.serverOptions(core)
	s.url = first
	o.Config.DataDir = t.TempDir()
	o.Config.Store = config.Secret("sqlite://" + filepath.Join(o.Config.DataDir, "second.db"))
	second, err := server.New(t.Context(), o)
	s.must("build a second server", err)
	t.Cleanup(s.run(second))
	s.awaitJudged()
	p := s.releaseToProd("1.1.0")
	s.approve(p.Number, "ada")
	s.approve(p.Number, "grace")
	s.awaitMerged(p.Number)
	s.commitRelease("web", "1.2.0")
	p = s.awaitPromotion("web", "prod", "1.2.0")
	if all := s.listPulls("web", "prod"); len(all) != 2 {
		t.Errorf("%d promotions to prod of two releases", len(all))
	}
	// At rest: three polls and sweeps of each in which nothing is written.
	writes := func() (n int) {
		for route, calls := range s.Forge.Calls() {
			reads := strings.HasPrefix(route, "GET") || strings.HasSuffix(route, "/graphql") || strings.HasSuffix(route, "git-upload-pack")
			if !reads {
				n += calls
			}
		}
		return n
	}
	quiet, last := 0, -1
	s.waitEvery(time.Second, "nothing is written any more", func() (bool, string) {
		if now := writes(); now != last {
			quiet, last = 0, now
		} else {
			quiet++
		}
		return quiet == 10, fmt.Sprint(s.Forge.Calls())
	})
}
