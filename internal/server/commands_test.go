package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/server"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

const operatorToken = "a-token-of-an-operator"

// releaseToProd brings a release to where it waits in prod for approvals.
func (ha *harness) releaseToProd(tag string) emulator.PullRequest {
	ha.t.Helper()
	ha.awaitJudged()
	ha.commitRelease("web", tag)
	p := ha.awaitPromotion("web", "prod", tag)
	return ha.awaitPull(p.Number, "waits for approvals", func(p *emulator.PullRequest) bool { return liftlockStatus(p.Statuses).State == "pending" })
}

// TestQuestions asks in comments; every question is answered once, and what is
// no new comment by a person is left alone.
func TestQuestions(t *testing.T) { testQuestions(t, forgeFace()) }

func testQuestions(t *testing.T, face emulator.Face) {
	s := startHarness(t, harnessOptions{face: face})
	robot := map[emulator.Face]string{emulator.GitHub: "robot", emulator.GitLab: "project_1_bot_4ffca233d8298ea1"}[s.Forge.Face()] // GitLab shows a bot by its name
	s.must("add an app", s.Forge.AddUser(robot, "token-of-robot", emulator.UserOptions{Bot: true}))
	p := s.releaseToProd("1.1.0")
	for _, c := range []struct{ name, who, body, reaction, answer string }{
		{"status by a reader", "rita", "/liftlock status", "+1", "`prod`"},
		{"why", "linus", "/liftlock why", "+1", "approvals"},
		{"why of another environment", "linus", "/liftlock why qa", "+1", "`qa`"},
		{"help", "ada", "Good morning.\n\n/liftlock help\n", "+1", "/liftlock promote"},
		{"an unknown command", "ada", "/liftlock statsu", "confused", "did you mean status?"},
		{"a stranger", "mallory", "/liftlock status", "confused", "read the repository"},
		{"a hold by a reader", "rita", "/liftlock hold", "confused", "write to the repository"},
		{"a promote by a writer who is no approver", "linus", "/liftlock promote prod", "confused", "approvals gate"},
		{"a skip by somebody", "ada", "/liftlock skip approvals because it burns", "confused", "breakGlass names"},
		{"a skip without a reason", "ada", "/liftlock skip approvals because", "confused", "at least 10 characters"},
		{"an environment that isn't there", "ada", "/liftlock promote nowhere", "confused", "no environment"},
	} {
		id := s.addComment(p.Number, c.who, c.body)
		if a := s.awaitReaction(p.Number, id, c.reaction); !strings.Contains(a, c.answer) || !strings.Contains(a, "@"+c.who) {
			t.Errorf("%s: the answer is %q, want one to @%s with %q", c.name, a, c.who, c.answer)
		}
	}
	var ignored []int64
	for _, c := range []struct{ who, body string }{
		{"linus", "> /liftlock hold\n> and so on"},
		{"linus", "```\n/liftlock hold\n```"},
		{"linus", "write /liftlock hold to stop it"},
		{"linus", "/hold"},
		{robot, "/liftlock hold"},
	} {
		ignored = append(ignored, s.addComment(p.Number, c.who, c.body))
	}
	edited := s.addComment(p.Number, "linus", "nothing of interest")
	s.must("edit a comment", s.Forge.EditComment(repoName, "linus", edited, "/liftlock hold"))
	ignored = append(ignored, edited)
	// Every delivery again: nothing is answered twice.
	for _, d := range s.Forge.Deliveries() {
		if d.Event == "issue_comment" || d.Event == "Note Hook" {
			s.must("redeliver", s.Forge.Redeliver(d.ID))
		}
	}
	last := s.addComment(p.Number, "ada", "/liftlock status")
	s.awaitReaction(p.Number, last, "+1")
	s.awaitIdle()
	now := s.readPull(p.Number)
	if slices.Contains(now.Labels, promotion.LabelHold) {
		t.Error("something that is no command put the pull request on hold")
	}
	answers := map[string]int{}
	for _, c := range now.Comments {
		if slices.Contains(ignored, c.ID) && len(c.Reactions) > 0 {
			t.Errorf("comment %q got %v", c.Body, c.Reactions)
		}
		if c.User != s.bot && len(c.Reactions) > 1 {
			t.Errorf("comment %q got %v", c.Body, c.Reactions)
		}
		if c.User == s.bot && strings.HasPrefix(c.Body, "<!-- liftlock:answer id=") {
			mark, _, _ := strings.Cut(c.Body, "-->")
			answers[mark]++
		}
	}
	for mark, n := range answers {
		if n != 1 {
			t.Errorf("%s…: %d answers", mark, n)
		}
	}
	if len(answers) != 12 { // those above, and the last
		t.Errorf("%d answers, want 12", len(answers))
	}
}

// TestHoldOnPullRequest stops a merge with the label, and lets it go again.
func TestHoldOnPullRequest(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	p := s.releaseToProd("1.1.0")
	s.awaitReaction(p.Number, s.addComment(p.Number, "ada", "/liftlock hold pr the database is moving"), "+1")
	s.approve(p.Number, "ada")
	s.approve(p.Number, "grace")
	s.awaitPull(p.Number, "is held", func(p *emulator.PullRequest) bool {
		return slices.Contains(p.Labels, promotion.LabelHold) && strings.Contains(liftlockStatus(p.Statuses).Description, "hold")
	})
	s.awaitIdle()
	if s.readPull(p.Number).Merged {
		t.Fatal("a held pull request was merged")
	}
	if a := s.awaitReaction(p.Number, s.addComment(p.Number, "linus", "/liftlock unhold"), "confused"); !strings.Contains(a, "so it takes somebody whose approval counts there: ada, grace") {
		t.Errorf("a writer who is no approver lifts a hold: %q", a)
	}
	s.awaitReaction(p.Number, s.addComment(p.Number, "grace", "/liftlock unhold"), "+1")
	s.awaitMerged(p.Number)
}

// TestHoldsOutliveTheDatabase sets holds on all that is larger than a pull
// request, by comment and by API; they are files that are found again.
func TestHoldsOutliveTheDatabase(t *testing.T) {
	s := startHarness(t, harnessOptions{components: []string{"web", "api"}})
	p := s.releaseToProd("1.1.0")
	s.awaitReaction(p.Number, s.addComment(p.Number, "linus", "/liftlock hold component the schema is moving"), "+1")
	s.awaitFile("liftlock-state", "holds/shop/component/web.yaml", "the schema is moving")
	s.approve(p.Number, "ada")
	s.approve(p.Number, "grace")
	s.awaitReason("web", "prod", "component web is on hold by linus")
	if status, answer := s.postCommand(operatorToken, "/api/v1/pipelines/shop/hold", api.PipelineCommand{Environment: "qa", Reason: "load test"}); status != http.StatusOK {
		t.Fatalf("hold qa: HTTP %d %s", status, answer)
	}
	s.awaitFile("liftlock-state", "holds/shop/environment/qa.yaml", "load test")
	s.awaitReaction(p.Number, s.addComment(p.Number, "grace", "/liftlock hold pipeline a long weekend"), "+1")
	s.awaitFile("liftlock-state", "holds/shop/pipeline.yaml", "a long weekend")
	s.awaitIdle()
	s.deleteDatabase()
	s.commitRelease("api", "2.0.0")
	s.start()
	s.awaitReason("web", "prod", "component web is on hold by linus")
	s.awaitReason("api", "qa", "environment qa is on hold by ops")
	s.awaitReason("api", "qa", "the pipeline is on hold by grace")
	s.awaitIdle()
	if s.readPull(p.Number).Merged || len(s.listPulls("api", "qa")) != 0 {
		t.Fatal("a hold was lost with the database")
	}
	// Lifting a hold that covers an environment with an approvals gate takes an approver.
	if a := s.awaitReaction(p.Number, s.addComment(p.Number, "linus", "/liftlock unhold pipeline"), "confused"); !strings.Contains(a, "approvals gate") {
		t.Errorf("a writer who is no approver lifts the pipeline's hold: %q", a)
	}
	if status, answer := s.postCommand(operatorToken, "/api/v1/pipelines/shop/unhold", api.PipelineCommand{Scope: "pipeline"}); status != http.StatusConflict || !strings.Contains(answer, "approvals gate") {
		t.Errorf("an operator, who is no approver, lifts the pipeline's hold: HTTP %d %s", status, answer)
	}
	s.awaitReaction(p.Number, s.addComment(p.Number, "ada", "/liftlock unhold pipeline"), "+1")
	if status, answer := s.postCommand(operatorToken, "/api/v1/pipelines/shop/unhold", api.PipelineCommand{Environment: "qa"}); status != http.StatusOK {
		t.Errorf("unhold qa: HTTP %d %s", status, answer)
	}
	s.awaitPromotion("api", "qa", "2.0.0")
	if s.readPull(p.Number).Merged {
		t.Error("web is still on hold and was merged")
	}
	s.awaitReaction(p.Number, s.addComment(p.Number, "ada", "/liftlock unhold component"), "+1")
	s.awaitMerged(p.Number)
}

// awaitFile waits until a file on a branch has a text.
func (ha *harness) awaitFile(branch, name, text string) {
	ha.t.Helper()
	ha.waitFor(name+" on "+branch+" has "+text, func() (bool, string) {
		got, ok, err := ha.Forge.File(repoName, branch, name)
		return err == nil && ok && strings.Contains(got, text), got
	})
}

// TestManualOpening opens only when a person says so.
func TestManualOpening(t *testing.T) {
	s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa+"\nopen: manual", prod)})
	s.awaitJudged()
	s.commitRelease("web", "1.1.0")
	s.awaitReason("web", "qa", "/liftlock promote qa opens it")
	s.awaitIdle()
	if n := len(s.listPulls("web", "qa")); n != 0 {
		t.Fatalf("%d pull requests were opened without a person", n)
	}
	body := api.PipelineCommand{Component: "web", Environment: "qa"}
	for token, want := range map[string]int{"": 401, "a-token-of-nobody": 401, "a-token-of-a-viewer": 403} {
		if status, answer := s.postCommand(token, "/api/v1/pipelines/shop/promote", body); status != want {
			t.Errorf("promote with %q: HTTP %d %s, want %d", token, status, answer, want)
		}
	}
	if status, answer := s.postCommand(operatorToken, "/api/v1/pipelines/shop/promote", body); status != http.StatusOK {
		t.Fatalf("promote: HTTP %d %s", status, answer)
	}
	p := s.awaitMerged(s.awaitPromotion("web", "qa", "1.1.0").Number)
	s.awaitVerified("web", "qa", "1.1.0")
	prodPull := s.awaitPromotion("web", "prod", "1.1.0")
	s.awaitIdle()
	// The upstream promotion's pull request takes a promote for what comes after it.
	if a := s.awaitReaction(p.Number, s.addComment(p.Number, "linus", "/liftlock promote"), "confused"); !strings.Contains(a, "approvals gate") {
		t.Errorf("promote to prod by no approver: %q", a)
	}
	s.stop()
	if got := s.readAudit(); !slices.Contains(got, "ops api promote taken") || !slices.Contains(got, "linus comment promote refused") {
		t.Errorf("the audit trail holds %q", got)
	}
	if !s.readPull(prodPull.Number).Open {
		t.Error("prod's pull request is not open")
	}
}

// readAudit reads the audit trail, "actor via verb outcome" each; the server must be
// stopped.
func (ha *harness) readAudit() []string {
	ha.t.Helper()
	db, err := store.Open(context.Background(), "sqlite://"+filepath.Join(ha.dir, "data", "liftlock.db"), store.Options{})
	ha.must("open the database", err)
	rows, err := db.AuditTrail(context.Background(), store.AuditFilter{}, 100)
	ha.must("read the audit trail", errors.Join(err, db.Close()))
	var out []string
	for _, a := range rows {
		outcome, _, _ := strings.Cut(a.Outcome, ":")
		out = append(out, strings.Join([]string{a.Actor, a.Via, a.Verb, outcome}, " "))
	}
	return out
}

// TestPromoteOverDiverged leaves a hotfix alone until an approver promotes over it.
func TestPromoteOverDiverged(t *testing.T) {
	s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa, strings.Replace(prod, "[ada, grace]", "[ada, grace, rita]", 1)), access: map[string]emulator.Permission{"rita": emulator.Write}})
	p := s.runStory()
	s.editTag("grace", "web", "prod", "1.1.0-hotfix")
	s.awaitEnvironment("web", "prod", "is diverged", func(e *api.EnvironmentWhy) bool {
		return e.State == promotion.Diverged && strings.Contains(e.Text, "grace")
	})
	s.commitRelease("web", "1.2.0")
	s.awaitVerified("web", "qa", "1.2.0")
	s.awaitIdle()
	if n := len(s.listPulls("web", "prod")); n != 1 {
		t.Fatalf("%d pull requests into the diverged prod", n-1)
	}
	s.awaitReaction(p.Number, s.addComment(p.Number, "ada", "/liftlock promote prod"), "+1")
	p = s.awaitPromotion("web", "prod", "1.2.0")
	s.approve(p.Number, "ada") // who promotes isn't who approves
	s.approve(p.Number, "grace")
	s.awaitEnvironment("web", "prod", "waits for somebody else", func(e *api.EnvironmentWhy) bool {
		return e.Incoming != nil && len(e.Incoming.Gates) == 1 && strings.Contains(e.Incoming.Gates[0].Reason, "authors of the release don't count (ada)")
	})
	s.approve(p.Number, "rita")
	s.awaitMerged(p.Number)
	s.awaitVerified("web", "prod", "1.2.0")
}

// TestQuarantineIsLifted reverts what degrades, keeps it away, and lets a person
// bring it back on record.
func TestQuarantineIsLifted(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	s.awaitJudged()
	const bad = "1.1.0-broken-in-qa"
	s.commitRelease("web", bad)
	first := s.awaitMerged(s.awaitPromotion("web", "qa", bad).Number)
	s.waitFor("the revert merges", func() (bool, string) {
		rs := s.listReverts("web", "qa")
		return len(rs) == 1 && rs[0].Merged, ""
	})
	s.awaitReason("web", "qa", "was reverted from qa")
	s.awaitIdle()
	if n := len(s.listPulls("web", "qa")) + len(s.listPulls("web", "prod")); n != 1 {
		t.Fatalf("%d promotions of a release that was reverted", n)
	}
	// Also without the database.
	s.deleteDatabase()
	s.start()
	s.awaitReason("web", "qa", "was reverted from qa")
	s.awaitIdle()
	if n := len(s.listPulls("web", "qa")); n != 1 {
		t.Fatalf("%d promotions after the database was lost", n)
	}
	s.awaitReaction(first.Number, s.addComment(first.Number, "linus", "/liftlock promote qa"), "+1")
	s.awaitPromotion("web", "qa", bad)
	s.stop()
	if got := s.readAudit(); !slices.Contains(got, "linus comment promote taken") {
		t.Errorf("the audit trail holds %q", got)
	}
}

// TestRevertByCommand takes a healthy release back because a person says so.
func TestRevertByCommand(t *testing.T) { testRevertByCommand(t, forgeFace()) }

func testRevertByCommand(t *testing.T, face emulator.Face) {
	s := startHarness(t, harnessOptions{face: face})
	p := s.runStory()
	if a := s.awaitReaction(p.Number, s.addComment(p.Number, "linus", "/liftlock revert"), "confused"); !strings.Contains(a, "approvals gate") {
		t.Errorf("a revert by no approver: %q", a)
	}
	s.awaitReaction(p.Number, s.addComment(p.Number, "ada", "/liftlock revert customers complain"), "+1")
	var revert emulator.PullRequest
	s.waitFor("the revert opens", func() (bool, string) {
		rs := s.listReverts("web", "prod")
		if len(rs) == 1 {
			revert = rs[0]
		}
		_, seen := s.readEnvironment("web", "prod")
		return len(rs) == 1, seen
	})
	revert = s.awaitPull(revert.Number, "says why", func(p *emulator.PullRequest) bool {
		return strings.Contains(p.Body, "customers complain") && strings.Contains(p.Body, "ada")
	})
	if _, err := s.Forge.MergePull(repoName, revert.Number, "grace", "merge"); err != nil {
		t.Fatal(err)
	}
	s.awaitEnvironment("web", "prod", "is back", func(e *api.EnvironmentWhy) bool {
		return e.LandedBy == promotion.ByRevert && strings.Contains(e.Name, "1.0.0")
	})
	s.awaitIdle()
	if n := len(s.listPulls("web", "prod")); n != 1 {
		t.Errorf("%d promotions into prod after its revert", n)
	}
}

// TestVetoByClosing keeps closed what a person closed, until retry.
func TestVetoByClosing(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	p := s.releaseToProd("1.1.0")
	s.must("close it", s.Forge.ClosePull(repoName, p.Number, "grace"))
	s.awaitReason("web", "prod", "was closed by a person")
	s.awaitIdle()
	s.deleteDatabase()
	s.start()
	s.awaitReason("web", "prod", "was closed by a person")
	s.awaitIdle()
	if n := len(s.listPulls("web", "prod")); n != 1 {
		t.Fatalf("%d pull requests after a person closed the first", n)
	}
	s.awaitReaction(p.Number, s.addComment(p.Number, "linus", "/liftlock retry"), "+1")
	again := s.awaitPromotion("web", "prod", "1.1.0")
	s.must("close it", s.Forge.ClosePull(repoName, again.Number, "grace"))
	s.awaitReason("web", "prod", "was closed by a person")
	// A new release is another matter.
	s.commitRelease("web", "1.2.0")
	s.awaitPromotion("web", "prod", "1.2.0")
}

// hookedForge does something between the reading of a pull request and that of its
// comments, once.
type hookedForge struct {
	forge.Forge
	do func(number int)
}

func (h *hookedForge) Comments(ctx context.Context, repo forge.Repo, number int, since time.Time) ([]forge.Comment, error) {
	h.do(number)
	return h.Forge.Comments(ctx, repo, number, since)
}

// TestRetryRightAfterClosing: a command is about what its author saw, not about
// what was read before it.
func TestRetryRightAfterClosing(t *testing.T) {
	var s *harness
	var once sync.Once
	var target, retry atomic.Int64
	do := func(number int) {
		if int64(number) != target.Load() {
			return
		}
		once.Do(func() {
			id, err := int64(0), s.Forge.ClosePull(repoName, number, "grace")
			if err == nil {
				id, err = s.Forge.Comment(repoName, number, "linus", "/liftlock retry")
			}
			if err != nil {
				t.Error(err)
			}
			retry.Store(id)
		})
	}
	s = startHarness(t, harnessOptions{noHook: true, poll: 100 * time.Millisecond, sweep: 100 * time.Millisecond,
		seams: server.Seams{Forge: func(f forge.Forge) forge.Forge { return &hookedForge{f, do} }}})
	p := s.releaseToProd("1.1.0")
	target.Store(int64(p.Number))
	s.waitFor("the pull request comes again", func() (bool, string) {
		all := s.listPulls("web", "prod")
		return len(all) == 2 && retry.Load() != 0, fmt.Sprintf("%d pull requests, retry in comment %d", len(all), retry.Load())
	})
	s.awaitReaction(p.Number, retry.Load(), "+1")
}

// TestComparison asks how far prod is behind, for a release that waits for approvals.
func TestComparison(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	s.releaseToProd("1.1.0")
	var far, none api.Comparison
	if _, err := s.getJSON("/api/v1/pipelines/shop/compare?component=web&from=dev&to=prod", &far); err != nil {
		t.Fatal(err)
	}
	if far.Common == nil || len(far.Behind) != 1 || far.Behind[0].Name != "1.1.0" || far.Behind[0].By != promotion.ByPerson || far.Behind[0].Who == "" ||
		len(far.Ahead) != 0 || len(far.Fields) != 1 {
		t.Errorf("prod and dev: %+v", far)
	}
	if _, err := s.getJSON("/api/v1/pipelines/shop/compare?component=web&from=dev&to=qa", &none); err != nil {
		t.Fatal(err)
	}
	if len(none.Behind)+len(none.Ahead)+len(none.Fields) != 0 || none.Unknown != "" {
		t.Errorf("qa and dev: %+v", none)
	}
}

// TestAPIOnPromotions gives the commands by a promotion's id.
func TestAPIOnPromotions(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	p := s.releaseToProd("1.1.0")
	s.awaitIdle()
	var list api.Promotions
	if _, err := s.getJSON("/api/v1/promotions", &list); err != nil {
		t.Fatal(err)
	}
	id := int64(0)
	for _, row := range list.Promotions {
		if row.Pull != nil && row.Pull.Number == p.Number {
			id = row.ID
		}
	}
	path := "/api/v1/promotions/" + itoa(int(id))
	if status, answer := s.postCommand(operatorToken, path+"/hold", api.PromotionCommand{Reason: "wait"}); status != http.StatusOK {
		t.Fatalf("hold: HTTP %d %s", status, answer)
	}
	s.awaitPull(p.Number, "is held", func(p *emulator.PullRequest) bool { return slices.Contains(p.Labels, promotion.LabelHold) })
	for verb, want := range map[string]int{"revert": 409, "skip": 403} {
		if status, answer := s.postCommand(operatorToken, path+"/"+verb, api.PromotionCommand{}); status != want {
			t.Errorf("%s by an operator: HTTP %d %s, want %d", verb, status, answer, want)
		}
	}
	if status, answer := s.postCommand(operatorToken, path+"/unhold", api.PromotionCommand{}); status != http.StatusOK {
		t.Errorf("unhold by who set it: HTTP %d %s", status, answer)
	}
	if status, answer := s.postCommand("a-token-of-a-viewer", path+"/hold", api.PromotionCommand{}); status != 403 {
		t.Errorf("hold by a viewer: HTTP %d %s", status, answer)
	}
}
