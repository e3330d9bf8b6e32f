package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// batchName stands for a component where several are moved by one pull request.
const batchName = promotion.BatchName

// gatedQA merges only after ada has approved, so that a test can see it open.
const gatedQA = "name: qa\nafter: [dev]\nmerge: auto\nonDegraded: revert-and-merge\ngates:\n  - approvals: {count: 1, from: {users: [ada]}}\nverify: " + verifyFast

// batchPipeline is a pipeline file whose components travel together.
func batchPipeline(environments ...string) string {
	return pipelineYAML([]string{"batch: environment"}, environments...)
}

// commitReleases is one build job's commit of several components into dev: a component
// and its tag each.
func (ha *harness) commitReleases(pairs ...string) {
	ha.t.Helper()
	files := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		files[overlayPath(pairs[i], "dev")+"/kustomization.yaml"] = strings.NewReplacer("NAME", pairs[i], "TAG", pairs[i+1]).Replace(kustomizationTemplate)
	}
	ha.commitFiles("linus", "main", "Release "+strings.Join(pairs, " "), files)
}

// awaitBatchPull waits for the open pull request of several into an environment whose
// title has all of the texts and whose head is another than before.
func (ha *harness) awaitBatchPull(env, before string, texts ...string) emulator.PullRequest {
	ha.t.Helper()
	var found emulator.PullRequest
	ha.waitFor("a pull request into "+env+" moves "+strings.Join(texts, ", "), func() (bool, string) {
		seen := ""
		for _, p := range ha.listPulls(batchName, env) {
			seen += p.Title + "; "
			if p.Open && p.Head != before && !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(p.Title, text) }) {
				found = p
				return true, ""
			}
		}
		_, why := ha.readEnvironment(ha.opts.components[0], env)
		return false, seen + why
	})
	return found
}

func (ha *harness) readTree() map[string]string {
	ha.t.Helper()
	tree, err := ha.Forge.Tree(repoName, "main")
	ha.must("list the tree", err)
	return tree
}

// TestBatch moves two components by one pull request an environment, and
// loses the database on the way.
func TestBatch(t *testing.T) { testBatch(t, forgeFace()) }

func testBatch(t *testing.T, face emulator.Face) {
	s := startHarness(t, harnessOptions{face: face, components: []string{"web", "api", "db"}, pipeline: batchPipeline(dev, gatedQA, prod)})
	s.awaitJudged()
	s.commitReleases("web", "1.1.0", "api", "2.0.0")
	p := s.awaitBatchPull("qa", "", "api 2.0.0", "web 1.1.0")
	for _, want := range []string{"api", "`2.0.0`", "web", "`1.1.0`", "All or nothing"} {
		if !strings.Contains(p.Body, want) {
			t.Errorf("the body lacks %q:\n%s", want, p.Body)
		}
	}
	s.awaitIdle()
	s.deleteDatabase()
	s.start()
	s.awaitJudged()
	s.approve(p.Number, "ada")
	p = s.awaitMerged(p.Number)
	s.awaitVerified("web", "qa", "1.1.0")
	s.awaitVerified("api", "qa", "2.0.0")
	next := s.awaitBatchPull("prod", "", "api 2.0.0", "web 1.1.0")
	s.awaitIdle()
	s.deleteDatabase()
	s.start()
	s.awaitJudged()
	s.approve(next.Number, "ada")
	s.approve(next.Number, "grace")
	s.awaitMerged(next.Number)
	s.awaitVerified("web", "prod", "1.1.0")
	s.awaitVerified("api", "prod", "2.0.0")
	s.awaitIdle()
	all, err := s.ownPulls()
	s.must("list the pull requests", err)
	if len(all) != 2 {
		t.Errorf("%d pull requests were made, want 2", len(all))
	}
	for _, component := range []string{"web", "api"} {
		var rows api.Promotions
		if _, err := s.getJSON("/api/v1/promotions?component="+component, &rows); err != nil || len(rows.Promotions) != 2 {
			t.Errorf("%s has %d promotions (%v), want 2", component, len(rows.Promotions), err)
		}
	}
}

// TestJoining composes the open pull request anew for each component that becomes ready, but not
// once it is approved: later ones wait for the next.
func TestJoining(t *testing.T) {
	s := startHarness(t, harnessOptions{components: []string{"web", "api", "db"}, pipeline: batchPipeline(dev, strings.Replace(gatedQA, "merge: auto", "merge: manual", 1))})
	s.awaitJudged()
	s.commitRelease("web", "1.1.0")
	first := s.awaitBatchPull("qa", "", "web 1.1.0")
	s.commitRelease("api", "2.0.0-broken-in-dev") // never ready
	s.commitRelease("db", "3.0.0")
	p := s.awaitBatchPull("qa", first.Head, "web 1.1.0", "db 3.0.0")
	if p.Number != first.Number || strings.Contains(p.Title, "api") {
		t.Errorf("#%d %q came after #%d", p.Number, p.Title, first.Number)
	}
	s.commitRelease("web", "1.2.0")
	p = s.awaitBatchPull("qa", p.Head, "web 1.2.0", "db 3.0.0")
	s.approve(p.Number, "ada")
	s.commitRelease("api", "2.1.0")
	s.awaitVerified("api", "dev", "2.1.0")
	s.awaitReason("api", "qa", "which is approved without it")
	s.commitRelease("db", "3.1.0")
	s.awaitReason("db", "qa", "waits its turn")
	s.awaitIdle()
	if now := s.readPull(p.Number); now.Head != p.Head {
		t.Fatalf("the approved #%d was composed anew: %s", p.Number, now.Title)
	}
	if _, err := s.Forge.MergePull(repoName, p.Number, "linus", "merge"); err != nil {
		t.Fatal(err)
	}
	s.awaitVerified("web", "qa", "1.2.0")
	s.awaitVerified("db", "qa", "3.0.0")
	if next := s.awaitBatchPull("qa", p.Head, "api 2.1.0", "db 3.1.0"); next.Number == p.Number || strings.Contains(next.Title, "web") {
		t.Errorf("the next one is #%d %q", next.Number, next.Title)
	}
}

// TestBatchRevert takes all back when one degrades, byte for byte, whatever
// the merge method; the releases stay away without the database too, and a
// person brings them back.
func TestBatchRevert(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"merge", "squash", "rebase"} {
		t.Run(method, func(t *testing.T) {
			s := startHarness(t, harnessOptions{components: []string{"web", "api"}, pipeline: pipelineYAML([]string{"batch: environment", "merge: {method: " + method + "}"}, dev, gatedQA, prod)})
			s.awaitJudged()
			const bad = "1.1.0-broken-in-qa"
			s.commitReleases("web", bad, "api", "2.0.0")
			p := s.awaitBatchPull("qa", "", "web "+bad, "api 2.0.0")
			before := s.readTree()
			s.approve(p.Number, "ada")
			p = s.awaitMerged(p.Number)
			s.waitFor("one revert of both merges", func() (bool, string) {
				rs := s.listReverts(batchName, "qa")
				_, seen := s.readEnvironment("web", "qa")
				return len(rs) == 1 && rs[0].Merged, seen
			})
			if d := cmp.Diff(before, s.readTree()); d != "" {
				t.Errorf("the way back (-want +got):\n%s", d)
			}
			back := s.listReverts(batchName, "qa")[0]
			for _, want := range []string{s.mention(p.Number), "api", "web-qa", "2 components"} {
				if !strings.Contains(back.Title+back.Body, want) {
					t.Errorf("the revert lacks %q:\n%s\n%s", want, back.Title, back.Body)
				}
			}
			for _, component := range []string{"web", "api"} {
				s.awaitReason(component, "qa", "was reverted from qa")
			}
			s.awaitIdle()
			s.deleteDatabase()
			s.start()
			for _, component := range []string{"web", "api"} {
				s.awaitReason(component, "qa", "was reverted from qa")
			}
			s.awaitIdle()
			if n := len(s.listPulls(batchName, "qa")) + len(s.listPulls(batchName, "prod")); n != 1 {
				t.Fatalf("%d promotions of what was taken back", n)
			}
			if method != "merge" {
				return
			}
			// A fix of one moves alone; what was well comes back when somebody says so.
			s.commitRelease("web", "1.1.1")
			s.awaitBatchPull("qa", "", "web 1.1.1")
			s.awaitReaction(p.Number, s.addComment(p.Number, "ada", "/liftlock promote qa"), "+1")
			s.awaitBatchPull("qa", "", "web 1.1.1", "api 2.0.0")
		})
	}
}

// TestBatchWaitsForAllMembers keeps everybody from the next environment until all that came
// along are verified, and says who is waited for.
func TestBatchWaitsForAllMembers(t *testing.T) {
	s := startHarness(t, harnessOptions{components: []string{"web", "api"}, pipeline: batchPipeline(dev, strings.Replace(gatedQA, "timeout: 4s", "timeout: 10m", 1), prod)})
	s.awaitJudged()
	s.must("keep api-qa from becoming healthy", s.ArgoCD.SetFault("argocd", "api-qa", argoemulator.AppFault{Health: "Progressing", Message: "one more replica"}))
	s.commitReleases("web", "1.1.0", "api", "2.0.0")
	p := s.awaitBatchPull("qa", "", "web 1.1.0", "api 2.0.0")
	s.approve(p.Number, "ada")
	s.awaitMerged(p.Number)
	s.awaitVerified("web", "qa", "1.1.0")
	s.awaitReason("web", "prod", "api 2.0.0 came with it and is not verified in qa")
	s.awaitIdle()
	if n := len(s.listPulls(batchName, "prod")); n != 0 {
		t.Fatalf("%d pull requests into prod before all are verified", n)
	}
	s.must("let api-qa become healthy", s.ArgoCD.SetFault("argocd", "api-qa", argoemulator.AppFault{}))
	s.awaitBatchPull("prod", "", "web 1.1.0", "api 2.0.0")
}

// TestBatchCommands gives commands in a pull request of several, and about one
// of its components.
func TestBatchCommands(t *testing.T) {
	s := startHarness(t, harnessOptions{components: []string{"web", "api"}, pipeline: batchPipeline(dev, gatedQA)})
	s.awaitJudged()
	s.commitReleases("web", "1.1.0", "api", "2.0.0")
	p := s.awaitBatchPull("qa", "", "web 1.1.0", "api 2.0.0")
	for command, want := range map[string][]string{
		"status": {"web", "api"}, "why": {"web", "api", "approvals"}, "help": {"/liftlock promote"}, "diff": {"`1.1.0`", "`2.0.0`"},
	} {
		answer := s.awaitReaction(p.Number, s.addComment(p.Number, "linus", "/liftlock "+command), "+1")
		for _, text := range want {
			if !strings.Contains(answer, text) {
				t.Errorf("/liftlock %s lacks %q: %s", command, text, answer)
			}
		}
	}
	s.awaitReaction(p.Number, s.addComment(p.Number, "linus", "/liftlock hold pr the database is moving"), "+1")
	s.approve(p.Number, "ada")
	s.awaitPull(p.Number, "is held", func(p *emulator.PullRequest) bool {
		return slices.Contains(p.Labels, promotion.LabelHold) && strings.Contains(liftlockStatus(p.Statuses).Description, "hold")
	})
	s.awaitIdle()
	if s.readPull(p.Number).Merged {
		t.Fatal("a held pull request was merged")
	}
	before := s.readTree()
	s.awaitReaction(p.Number, s.addComment(p.Number, "ada", "/liftlock unhold"), "+1")
	s.awaitMerged(p.Number)
	s.awaitVerified("web", "qa", "1.1.0")
	s.awaitVerified("api", "qa", "2.0.0")
	// A revert that is asked for one of them takes all back.
	body := api.PipelineCommand{Component: "web", Environment: "qa", Reason: "customers complain"}
	var rows api.Promotions
	if _, err := s.getJSON("/api/v1/promotions?component=web", &rows); err != nil || len(rows.Promotions) != 1 {
		t.Fatalf("%d promotions of web (%v)", len(rows.Promotions), err)
	}
	if status, answer := s.postCommand(operatorToken, "/api/v1/promotions/"+itoa(int(rows.Promotions[0].ID))+"/revert", api.PromotionCommand{Reason: body.Reason}); status != http.StatusConflict {
		t.Errorf("a revert by no approver: HTTP %d %s", status, answer)
	}
	s.awaitReaction(p.Number, s.addComment(p.Number, "ada", "/liftlock revert customers complain"), "+1")
	s.waitFor("the revert of both merges", func() (bool, string) {
		rs := s.listReverts(batchName, "qa")
		_, seen := s.readEnvironment("api", "qa")
		return len(rs) == 1 && rs[0].Merged && strings.Contains(rs[0].Body, "customers complain"), seen
	})
	if d := cmp.Diff(before, s.readTree()); d != "" {
		t.Errorf("the way back (-want +got):\n%s", d)
	}
	s.awaitIdle()
	if n := len(s.listPulls(batchName, "qa")); n != 1 {
		t.Errorf("%d promotions after the revert", n)
	}
}

// TestHeldComponentLeaves lets the others go on without one that is on hold.
func TestHeldComponentLeaves(t *testing.T) {
	s := startHarness(t, harnessOptions{components: []string{"web", "api"}, pipeline: batchPipeline(dev, gatedQA)})
	s.awaitJudged()
	s.commitReleases("web", "1.1.0", "api", "2.0.0")
	p := s.awaitBatchPull("qa", "", "web 1.1.0", "api 2.0.0")
	hold := api.PipelineCommand{Scope: "component", Component: "web", Reason: "the schema is moving"}
	if status, answer := s.postCommand(operatorToken, "/api/v1/pipelines/shop/hold", hold); status != http.StatusOK {
		t.Fatalf("hold: HTTP %d %s", status, answer)
	}
	alone := s.awaitBatchPull("qa", p.Head, "1 component to qa: api 2.0.0")
	if alone.Number != p.Number || strings.Contains(alone.Title, "web") {
		t.Errorf("#%d %q came after #%d", alone.Number, alone.Title, p.Number)
	}
	s.waitFor("web's record says that it left", func() (bool, string) {
		var rows api.Promotions
		_, err := s.getJSON("/api/v1/promotions?component=web", &rows)
		return err == nil && len(rows.Promotions) == 1 && rows.Promotions[0].State == "superseded", fmt.Sprintf("%+v %v", rows.Promotions, err)
	})
	s.approve(alone.Number, "ada")
	s.awaitMerged(alone.Number)
	s.awaitVerified("api", "qa", "2.0.0")
	s.awaitReason("web", "qa", "component web is on hold by ops")
}

// TestBatchVeto keeps all closed that a person closed, until retry.
func TestBatchVeto(t *testing.T) {
	s := startHarness(t, harnessOptions{components: []string{"web", "api"}, pipeline: batchPipeline(dev, gatedQA)})
	s.awaitJudged()
	s.commitReleases("web", "1.1.0", "api", "2.0.0")
	p := s.awaitBatchPull("qa", "", "web 1.1.0", "api 2.0.0")
	s.must("close it", s.Forge.ClosePull(repoName, p.Number, "grace"))
	for range 2 {
		s.awaitReason("web", "qa", "was closed by a person")
		s.awaitReason("api", "qa", "was closed by a person")
		s.awaitIdle()
		if n := len(s.listPulls(batchName, "qa")); n != 1 {
			t.Fatalf("%d pull requests after a person closed the first", n)
		}
		s.deleteDatabase()
		s.start()
	}
	s.awaitReaction(p.Number, s.addComment(p.Number, "linus", "/liftlock retry"), "+1")
	s.awaitBatchPull("qa", "", "web 1.1.0", "api 2.0.0")
}

// TestBatchHeadModified leaves alone what somebody else pushed to the branch of
// several, and composes it anew when a person says so.
func TestBatchHeadModified(t *testing.T) {
	s := startHarness(t, harnessOptions{components: []string{"web", "api"}, pipeline: batchPipeline(dev, gatedQA)})
	s.awaitJudged()
	s.commitReleases("web", "1.1.0", "api", "2.0.0")
	p := s.awaitBatchPull("qa", "", "web 1.1.0", "api 2.0.0")
	s.commitFiles("linus", p.Branch, "And another thing", map[string]string{"apps/web/base/deployment.yaml": "kind: Secret\n"})
	s.approve(p.Number, "ada")
	s.awaitPull(p.Number, "is stopped", func(p *emulator.PullRequest) bool {
		return strings.Contains(liftlockStatus(p.Statuses).Description, "is not what Liftlock composed")
	})
	s.awaitIdle()
	if s.readPull(p.Number).Merged {
		t.Fatal("somebody else's work was merged")
	}
	spoilt := s.readPull(p.Number).Head
	s.awaitReaction(p.Number, s.addComment(p.Number, "linus", "/liftlock retry"), "+1")
	s.awaitBatchPull("qa", spoilt, "web 1.1.0", "api 2.0.0")
	s.approve(p.Number, "ada")
	s.awaitMerged(p.Number)
	s.awaitVerified("web", "qa", "1.1.0")
	s.awaitVerified("api", "qa", "2.0.0")
}

// TestSwitchingBatch closes what is open of the other kind, and never carries
// anything twice.
func TestSwitchingBatch(t *testing.T) {
	alone := pipelineYAML([]string{"batch: component"}, dev, gatedQA)
	s := startHarness(t, harnessOptions{components: []string{"web", "api"}, pipeline: alone})
	s.awaitJudged()
	s.commitReleases("web", "1.1.0", "api", "2.0.0")
	web, other := s.awaitPromotion("web", "qa", "1.1.0"), s.awaitPromotion("api", "qa", "2.0.0")
	s.commitFiles("linus", "main", "Let them travel together", map[string]string{".liftlock.yaml": batchPipeline(dev, gatedQA)})
	p := s.awaitBatchPull("qa", "", "web 1.1.0", "api 2.0.0")
	for _, n := range []int{web.Number, other.Number} {
		if old := s.readPull(n); old.Open || !slices.Contains(old.Labels, promotion.LabelSuperseded) {
			t.Errorf("#%d is open: %t, labels %v", n, old.Open, old.Labels)
		}
	}
	s.commitFiles("linus", "main", "Each on its own again", map[string]string{".liftlock.yaml": alone})
	s.awaitPromotion("web", "qa", "1.1.0")
	web = s.awaitPromotion("web", "qa", "1.1.0")
	s.awaitPromotion("api", "qa", "2.0.0")
	if s.readPull(p.Number).Open {
		t.Errorf("#%d is still open", p.Number)
	}
	s.approve(web.Number, "ada")
	s.awaitMerged(web.Number)
	s.awaitVerified("web", "qa", "1.1.0")
}

// TestReservedName refuses a component that has the name of all of them.
func TestReservedName(t *testing.T) {
	s := startHarness(t, harnessOptions{components: []string{"web", batchName}, pipeline: batchPipeline(dev, gatedQA)})
	s.waitFor("the server looks at web", func() (bool, string) {
		e, seen := s.readEnvironment("web", "dev")
		return e != nil, seen
	})
	s.commitRelease("web", "1.1.0")
	s.awaitReason("web", "qa", "call it something else")
	s.awaitIdle()
	if n := len(s.listPulls(batchName, "qa")); n != 0 {
		t.Errorf("%d pull requests", n)
	}
}

// TestBatchIntoManyEnvironments opens into more environments at once than a run asks
// questions one after the other.
func TestBatchIntoManyEnvironments(t *testing.T) {
	environments := []string{dev}
	var regions []string
	for i := range 10 {
		regions = append(regions, fmt.Sprintf("region-%d", i))
		environments = append(environments, "name: "+regions[i]+"\nafter: [dev]\nverify: "+verifyFast)
	}
	s := startHarness(t, harnessOptions{components: []string{"web", "api"}, pipeline: batchPipeline(environments...)})
	s.awaitJudged()
	s.commitReleases("web", "1.1.0", "api", "2.0.0")
	for _, region := range regions {
		s.awaitBatchPull(region, "", "api 2.0.0", "web 1.1.0")
	}
}

// TestBatchWithoutABranch goes on elsewhere when an environment's branch is
// gone while a pull request for it is open.
func TestBatchWithoutABranch(t *testing.T) {
	branches := map[string]string{"dev": "env/dev", "qa": "env/qa", "other": "env/other"}
	s := startHarness(t, harnessOptions{components: []string{"web", "api"}, branches: branches,
		pipeline: batchPipeline(dev, gatedQA, "name: other\nafter: [dev]\nmerge: auto\nverify: "+verifyFast)})
	s.awaitJudged()
	s.commitRelease("web", "1.1.0")
	s.awaitBatchPull("qa", "", "web 1.1.0")
	s.must("delete qa's branch", s.Forge.SetBranch(repoName, "linus", "env/qa", ""))
	s.commitRelease("api", "2.0.0")
	s.awaitVerified("web", "other", "1.1.0")
	s.awaitVerified("api", "other", "2.0.0")
}
