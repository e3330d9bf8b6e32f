package controller

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// checkCounter counts evaluations of people's changes.
type checkCounter struct{ checks, failed int }

func (*checkCounter) Run(string, time.Duration, error) {}
func (c *checkCounter) Check(_ time.Duration, failed bool) {
	if c.checks++; failed {
		c.failed++
	}
}
func (*checkCounter) Skipped(string, string, string)           {}
func (*checkCounter) Discovered(string, string, time.Duration) {}

// openChange has linus propose files, and gives the pull request's number.
func (f *fixture) openChange(branch string, files map[string]string) int {
	f.t.Helper()
	_, err := f.forge.CommitAs(repoName, "linus", branch, "Change", files)
	f.must(err)
	number, err := f.forge.OpenPull(repoName, "linus", branch, "main", "A change", "")
	f.must(err)
	return number
}

// pull is a pull request as it is now.
func (f *fixture) pull(number int) emulator.PullRequest {
	f.t.Helper()
	all := f.pulls()
	return all[slices.IndexFunc(all, func(p emulator.PullRequest) bool { return p.Number == number })]
}

// question comments on a pull request, and gives the answer's text, empty where there is none,
// and how its author's comment was acknowledged.
func (f *fixture) question(by string, number int, text string) (answer string, reactions []string) {
	f.t.Helper()
	f.clock.Step(time.Minute)
	before := len(f.pull(number).Comments)
	id, err := f.forge.Comment(repoName, number, by, text)
	f.must(err)
	f.must(f.run(wake.ForPull(f.repo.ID, number)))
	for _, c := range f.pull(number).Comments[before:] {
		if c.User == bot && strings.Contains(c.Body, "@"+by) {
			answer += c.Body
		}
	}
	return answer, f.reactionsTo(number, id)
}

// TestAPersonsChangeIsExplained holds that a person's own pull request shows what it does, which is
// found out once, and what commands in its comments answer.
func TestAPersonsChangeIsExplained(t *testing.T) {
	w := newFixture(t, "", manualQA, "api", "web")
	checks := &checkCounter{}
	w.opts.Metrics = checks
	number := w.openChange("theirs", map[string]string{kustomizationOf("web", "qa"): kustomization("web", "3.0.0")})
	pull := wake.ForPull(w.repo.ID, number)
	w.must(w.run(pull))
	p := w.pull(number)
	if len(p.Statuses) != 1 || p.Statuses[0].State != "success" || len(p.Comments) != 1 || !strings.Contains(p.Comments[0].Body, "web-qa") {
		t.Errorf("it shows %+v and %+v", p.Statuses, p.Comments)
	}
	w.must(w.run(pull))
	if checks.checks != 1 || checks.failed != 0 || len(w.pull(number).Comments) != 1 {
		t.Errorf("looked at twice it is evaluated %d times, of which %d failed, and has %d comments", checks.checks, checks.failed, len(w.pull(number).Comments))
	}
	for _, c := range []struct {
		by, text, reaction string
		says, never        []string
	}{
		{"ada", "/liftlock diff", reactionDone, []string{"web"}, []string{"api"}},
		{"ada", "/liftlock status", reactionDone, []string{"web:", "qa"}, []string{"api:"}},
		{"ada", "/liftlock why qa", reactionDone, []string{"web:"}, []string{"dev"}},
		{"ada", "/liftlock help", reactionDone, []string{"/liftlock diff"}, nil},
		{"ada", "/liftlock promote qa", reactionRefused, []string{"promote is about a promotion"}, nil},
		{"ada", "/liftlock hold", reactionRefused, []string{"hold is about a promotion"}, nil},
		{"grace", "/liftlock status\n/liftlock promote qa\n/liftlock diff", reactionRefused, []string{"web:", "promote is about a promotion", "web-qa"}, nil},
	} {
		answer, reactions := w.question(c.by, number, c.text)
		if !slices.Equal(reactions, []string{bot + " " + c.reaction}) {
			t.Errorf("%q is acknowledged by %q, and answered %q", c.text, reactions, answer)
		}
		for _, part := range c.says {
			if !strings.Contains(answer, part) {
				t.Errorf("%q is answered without %q:\n%s", c.text, part, answer)
			}
		}
		for _, part := range c.never {
			if strings.Contains(answer, part) {
				t.Errorf("%q is answered with %q:\n%s", c.text, part, answer)
			}
		}
	}
	if n := w.checkSlots.occupied(); n != 0 {
		t.Errorf("%d places among the evaluations are left occupied", n)
	}
	w.must(w.forge.ClosePull(repoName, number, "linus"))
	w.must(w.run(pull))
	if _, kept, err := w.opts.Store.Record(t.Context(), checkedHeads.Key(record.OfPull(w.repo.ID, number))); err != nil || kept {
		t.Errorf("of a closed one it is kept what was found out: %t, %v", kept, err)
	}
}

// TestAChangeOfManyComponents holds that an answer is about a few of them and counts the others, and
// says so where there is none.
func TestAChangeOfManyComponents(t *testing.T) {
	components := []string{"a", "b", "c", "d", "e", "f", "g"}
	w := newFixture(t, "", manualQA, components...)
	files := map[string]string{}
	for _, c := range components {
		files[kustomizationOf(c, "qa")] = kustomization(c, "3.0.0")
	}
	answer, _ := w.question("ada", w.openChange("all", files), "/liftlock status")
	if !strings.Contains(answer, "It touches 2 more components.") || strings.Count(answer, "- `qa`:") != maxDescribedComponents {
		t.Errorf("of all of them it answers:\n%s", answer)
	}
	for _, c := range components[maxDescribedComponents:] {
		delete(files, kustomizationOf(c, "qa"))
	}
	answer, _ = w.question("ada", w.openChange("some", files), "/liftlock status")
	if strings.Contains(answer, "more components") || strings.Count(answer, "- `qa`:") != maxDescribedComponents {
		t.Errorf("of as many as one answer is about it answers:\n%s", answer)
	}
	answer, _ = w.question("ada", w.openChange("docs", map[string]string{"docs/x.md": "x\n"}), "/liftlock status")
	if !strings.Contains(answer, "This change touches no component of a pipeline.") {
		t.Errorf("of none of them it answers:\n%s", answer)
	}
}

// TestQuestionsWaitForASlot holds that a question that can't be evaluated because others are is
// evaluated later, without another comment.
func TestQuestionsWaitForASlot(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	number := w.openChange("theirs", map[string]string{kustomizationOf("web", "qa"): kustomization("web", "3.0.0")})
	key := wake.ForPull(w.repo.ID, number).String()
	var leave []func()
	occupy := func(repo string) {
		t.Helper()
		l, ok := w.checkSlots.enter(repo, "somebody", 1, checkRetryDelay)
		if !ok {
			t.Fatal("there is no free place")
		}
		leave = append(leave, l)
	}
	for i := range maxConcurrentChecks {
		occupy("another repository " + strconv.Itoa(i))
	}
	next := func(want time.Duration) {
		t.Helper()
		w.clock.Step(10 * time.Second)
		again, err := w.runKey(t.Context(), key)
		if err != nil || again.IsZero() && want != 0 || !again.IsZero() && again.Sub(w.clock.Now()) != want {
			t.Errorf("it is looked at again after %s, %v", again.Sub(w.clock.Now()), err)
		}
	}
	next(checkRetryDelay)
	if p := w.pull(number); len(p.Statuses)+len(p.Comments) != 0 {
		t.Errorf("it shows %+v, %+v", p.Statuses, p.Comments)
	}
	leave[0]()
	next(0)
	if p := w.pull(number); len(p.Statuses) != 1 || len(p.Comments) != 1 {
		t.Errorf("with a free place it shows %+v, %+v", p.Statuses, p.Comments)
	}
	occupy("another repository")
	id, err := w.forge.Comment(repoName, number, "ada", "/liftlock diff")
	w.must(err)
	next(commandRetryDelay)
	if got := w.reactionsTo(number, id); len(got) != 0 {
		t.Errorf("without a free place the question is acknowledged by %q", got)
	}
	leave[1]()
	next(0)
	if got := w.reactionsTo(number, id); !slices.Equal(got, []string{bot + " " + reactionDone}) || w.checkSlots.occupied() != maxConcurrentChecks-1 {
		t.Errorf("with one it is acknowledged by %q, and %d places are occupied", got, w.checkSlots.occupied())
	}
}

// TestQuestionsThatAreRefused holds why a question on a person's pull request has no answer, and
// which aren't read at all.
func TestQuestionsThatAreRefused(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	number := w.openChange("theirs", map[string]string{kustomizationOf("web", "qa"): kustomization("web", "3.0.0")})
	pr, err := w.repo.Forge.PullRequest(t.Context(), w.repo.Name, number)
	w.must(err)
	const why = "its head brings more than Liftlock fetches"
	w.must(w.opts.Store.PutRecord(t.Context(), checkedHeads.Key(record.OfPull(w.repo.ID, number)), []byte(`{"head":"`+pr.Head+`","refused":"`+why+`"}`)))
	answer, reactions := w.question("ada", number, "/liftlock diff")
	if !strings.Contains(answer, why) || !slices.Equal(reactions, []string{bot + " " + reactionRefused}) {
		t.Errorf("of what is too large it says %q, by %q", answer, reactions)
	}
	answer, reactions = w.question("grace", number, strings.Repeat("/liftlock status\n", 20))
	if !strings.Contains(answer, rateLimitedText) || !strings.Contains(answer, why) || !slices.Equal(reactions, []string{bot + " " + reactionRefused}) {
		t.Errorf("of too many questions it says %q, by %q", answer, reactions)
	}
	if answer, reactions = w.question("mallory", number, "/liftlock why"); answer != "" && !strings.Contains(answer, "mallory may not give /liftlock why") {
		t.Errorf("who has no rights is answered %q, by %q", answer, reactions)
	}
	if all, err := w.opts.Store.AuditTrail(t.Context(), store.AuditFilter{}, 1); err != nil || len(all) != 1 || all[0].Actor != "mallory" || !strings.HasPrefix(all[0].Outcome, "refused: mallory may not give /liftlock why") {
		t.Errorf("and is on record as %+v, %v", all, err)
	}
	id, err := w.forge.Comment(repoName, number, "linus", "/liftlock help")
	w.must(err)
	w.clock.Step(maxUserCommandAge + time.Minute)
	w.must(w.run(wake.ForPull(w.repo.ID, number)))
	if got := w.reactionsTo(number, id); len(got) != 0 {
		t.Errorf("a question of yesterday is acknowledged by %q", got)
	}
	_, err = w.forge.CommitAs(repoName, "linus", "nobodys", "Branch", map[string]string{"x": "x"})
	w.must(err)
	_, err = w.forge.CommitAs(repoName, "linus", "another", "Branch", map[string]string{"y": "y"})
	w.must(err)
	other, err := w.forge.OpenPull(repoName, "linus", "another", "nobodys", "Of nobody", "")
	w.must(err)
	if answer, reactions = w.question("ada", other, "/liftlock diff"); answer != "" || len(reactions) != 0 || len(w.pull(other).Statuses) != 0 {
		t.Errorf("into a branch that nobody looks after it says %q, by %q", answer, reactions)
	}
}

// TestAChangeOfNowhere holds that a pull request which can't be evaluated says so, and why.
func TestAChangeOfNowhere(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	checks := &checkCounter{}
	w.opts.Metrics = checks
	hosted := w.forge.(*memoryForge)
	head, err := hosted.write("linus", "From nothing", "", map[string]string{"x": "x"})
	w.must(err)
	w.must(hosted.forge.Push(w.repo.Name, "linus", "nowhere", head, false))
	number, err := w.forge.OpenPull(repoName, "linus", "nowhere", "main", "From nothing", "")
	w.must(err)
	answer, reactions := w.question("ada", number, "/liftlock diff")
	if !strings.Contains(answer, "what this change touches can't be told: it has no commit in common with main") || !slices.Equal(reactions, []string{bot + " " + reactionRefused}) {
		t.Errorf("it is answered %q, by %q", answer, reactions)
	}
	if p := w.pull(number); checks.checks != 1 || checks.failed != 1 || len(p.Statuses) != 1 || p.Statuses[0].State != "failure" {
		t.Errorf("of %d evaluations %d failed, and it shows %+v", checks.checks, checks.failed, p.Statuses)
	}
}

// TestAStrangersBranchNamedLikeOurs holds that a person's pull request on a branch that a promotion
// would use wakes that promotion's unit, which can't open one there.
func TestAStrangersBranchNamedLikeOurs(t *testing.T) {
	w := newFixture(t, "", manualQA, "api", "web")
	number := w.openChange(promotion.Branch("shop", "qa", "web"), map[string]string{"docs/x.md": "x\n"})
	pr, err := w.repo.Forge.PullRequest(t.Context(), w.repo.Name, number)
	w.must(err)
	w.must(w.opts.Store.PutRecord(t.Context(), checkedHeads.Key(record.OfPull(w.repo.ID, number)), []byte(`{"head":"`+pr.Head+`","refused":"`+"x"+`"}`))) // nothing is evaluated
	w.dropDue()
	w.must(w.run(wake.ForPull(w.repo.ID, number)))
	if due := w.takeDue(); !slices.Equal(due, []string{wake.ForUnit(w.unit("web")).String()}) {
		t.Errorf("it wakes %q", due)
	}
}
