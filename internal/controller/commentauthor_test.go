package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// soakedByGrace is an environment whose releases wait for an hour, and whose gates grace may skip.
const soakedByGrace = "  breakGlass: {users: [grace]}\n"

const skipSoak = "/liftlock skip soak production burns"

// editComment edits a comment at once, in the second in which it was written.
func (f *fixture) editComment(login string, id int64, body string) {
	f.t.Helper()
	f.must(f.forge.(*memoryForge).forge.EditComment(f.forge.(*memoryForge).repo, id, login, body))
}

// commentEdited has somebody comment, somebody else edit that within the second, and looks.
func (f *fixture) commentEdited(author string, number int, body, editor, edited string) (id int64) {
	f.t.Helper()
	f.clock.SetTime(f.clock.Now().Add(5 * time.Second).Truncate(time.Second))
	id, err := f.forge.Comment(repoName, number, author, body)
	f.must(err)
	f.editComment(editor, id, edited)
	f.lookAtComments(number)
	return id
}

// lookAtComments has the comments of a pull request read as when an event told of one.
func (f *fixture) lookAtComments(number int) {
	f.t.Helper()
	f.must(facts.UnreadComments.Put(f.t.Context(), f.opts.Store, record.OfPull(f.repo.ID, number), f.clock.Now().String()))
	f.runPullRequest(number)
}

// runPullRequest runs a pull request's key.
func (f *fixture) runPullRequest(number int) {
	f.t.Helper()
	f.must(f.run(wake.ForPull(f.repo.ID, number)))
}

// answersTo are our answers to a comment, oldest first.
func (f *fixture) answersTo(number int, id int64) (out []string) {
	f.t.Helper()
	i := slices.IndexFunc(f.pulls(), func(p emulator.PullRequest) bool { return p.Number == number })
	for _, k := range f.pulls()[i].Comments {
		if prtext.IsReplyTo(k.Body, id) {
			out = append(out, k.Body)
		}
	}
	return out
}

// outcomesOf are what came of the commands of a verb, as the audit trail has them, oldest first.
func (f *fixture) outcomesOf(verb string) (out []string) {
	f.t.Helper()
	all, err := f.opts.Store.AuditTrail(f.t.Context(), store.AuditFilter{Verb: verb}, 100)
	f.must(err)
	for _, a := range slices.Backward(all) {
		out = append(out, a.Actor+" "+a.Outcome)
	}
	return out
}

// TestEditedCommentDoesNotLoosen holds that a command that loosens counts as its author's only
// where no other account has edited the comment. That includes edits within the second in which it
// was written. One that restrains counts in any case.
func TestEditedCommentDoesNotLoosen(t *testing.T) {
	w := newFixture(t, soakedByGrace, soakedQA, "web")
	p := w.openOne("web", "1.1.0", "web")
	id := w.commentEdited("grace", p.Number, "looks good", "linus", skipSoak)
	const refused = "linus edited the comment after it was written, so it isn't known to be its author's: write it anew"
	if got := w.outcomesOf("skip"); len(got) != 1 || got[0] != "grace refused: "+refused {
		t.Errorf("the audit trail says %q", got)
	}
	if got := w.reactionsTo(p.Number, id); !slices.Equal(got, []string{bot + " " + reactionRefused}) {
		t.Errorf("the reactions are %q", got)
	}
	if got := w.answersTo(p.Number, id); len(got) != 1 || !strings.Contains(got[0], refused) {
		t.Errorf("it is answered by %q", got)
	}
	w.commentEdited("grace", p.Number, "looks good", "linus", "/liftlock hold pr the database is moving")
	if got := w.outcomesOf("hold"); !slices.Equal(got, []string{"grace taken"}) {
		t.Errorf("of a hold the audit trail says %q", got)
	}
	w.comment("grace", p.Number, "/liftlock unhold")
	w.comment("grace", p.Number, skipSoak)
	if got := w.outcomesOf("skip"); len(got) != 2 || got[1] != "grace taken" {
		t.Errorf("of one that nobody edited the audit trail says %q", got)
	}
}

// TestAnAuthorConfirmsAComment has a forge that doesn't tell who edits comments. There a command
// that loosens waits for its author's own 👍 on it, while the others are done at once and once, and
// the audit trail says so.
func TestAnAuthorConfirmsAComment(t *testing.T) {
	w := newFixture(t, soakedByGrace, soakedQA, "web")
	hub := w.forge.(*memoryForge)
	hub.forge.HideEditors()
	p := w.openOne("web", "1.1.0", "web")
	id := w.commentEdited("grace", p.Number, "looks good", "linus", "/liftlock hold pr wait\n"+skipSoak+"\n/liftlock nonsense")
	expect := func(what string, skips, holds []string, comments int, reactions ...string) {
		t.Helper()
		if got := w.outcomesOf("skip"); !slices.Equal(got, skips) {
			t.Errorf("%s: skip %q", what, got)
		}
		if got := w.outcomesOf("hold"); !slices.Equal(got, holds) {
			t.Errorf("%s: hold %q", what, got)
		}
		if got := w.reactionsTo(p.Number, id); !slices.Equal(got, reactions) {
			t.Errorf("%s: the reactions are %q", what, got)
		}
		if got := w.answersTo(p.Number, id); len(got) != comments {
			t.Errorf("%s: %d answers: %q", what, len(got), got)
		}
	}
	held := []string{"grace taken"}
	expect("at once", nil, held, 1)
	if got := w.answersTo(p.Number, id); !strings.Contains(got[0], confirmationText) || !strings.Contains(got[0], "nonsense") {
		t.Errorf("it is answered by %q", got)
	}
	react := func(login, content string) {
		t.Helper()
		w.must(hub.forge.As(login).React(t.Context(), hub.repo, p.Number, id, content))
	}
	react("linus", forge.Confirmation)
	react("grace", "eyes")
	w.runPullRequest(p.Number)
	expect("somebody else reacted", nil, held, 1, "linus +1", "grace eyes")
	react("grace", forge.Confirmation)
	w.runPullRequest(p.Number)
	expect("its author reacted", []string{"grace taken"}, held, 2, "linus +1", "grace eyes", "grace +1", bot+" "+reactionRefused)
	all, err := w.opts.Store.AuditTrail(t.Context(), store.AuditFilter{Verb: "skip"}, 1)
	if w.must(err); len(all) != 1 || !strings.Contains(string(all[0].Data), "reaction") {
		t.Errorf("the audit trail keeps %+v", all)
	}
	left, err := facts.Unconfirmed.List(t.Context(), w.opts.Store, record.Within{Repo: w.repo.ID})
	if w.must(err); len(left) > 0 {
		t.Errorf("it waits still: %v", left)
	}
}

// TestAnUnconfirmedCommentIsRefused holds that a command waits an hour for its author's word, and no longer, and
// that of a comment that was deleted nothing is left.
func TestAnUnconfirmedCommentIsRefused(t *testing.T) {
	w := newFixture(t, soakedByGrace, soakedQA, "web")
	hub := w.forge.(*memoryForge)
	hub.forge.HideEditors()
	p := w.openOne("web", "1.1.0", "web")
	id := w.comment("grace", p.Number, skipSoak)
	deleted := w.comment("grace", p.Number, skipSoak)
	w.must(hub.forge.DeleteComment(hub.repo, deleted, "grace"))
	w.clock.Step(confirmWithin - time.Minute)
	w.runPullRequest(p.Number)
	if got := w.outcomesOf("skip"); len(got) > 0 {
		t.Errorf("before its time the audit trail says %q", got)
	}
	w.clock.Step(2 * time.Minute)
	w.runPullRequest(p.Number)
	if got := w.outcomesOf("skip"); len(got) != 1 || !strings.HasPrefix(got[0], "grace refused: its author didn't confirm") {
		t.Errorf("the audit trail says %q", got)
	}
	if got := w.reactionsTo(p.Number, id); !slices.Equal(got, []string{bot + " " + reactionRefused}) || len(w.answersTo(p.Number, id)) != 2 {
		t.Errorf("the reactions are %q, it is answered by %q", got, w.answersTo(p.Number, id))
	}
	w.clock.Step(confirmWithin)
	w.must(w.run(wake.ForSweep(w.repo.ID)))
	left, err := facts.Unconfirmed.List(t.Context(), w.opts.Store, record.Within{Repo: w.repo.ID})
	if w.must(err); len(left) > 0 {
		t.Errorf("something waits still: %v", left)
	}
}

// TestCommentsOfBotsAndEditors holds that neither what a bot writes nor what somebody edited later is a command, whatever
// their rights.
func TestCommentsOfBotsAndEditors(t *testing.T) {
	w := newFixture(t, soakedByGrace, soakedQA, "web")
	hub := w.forge.(*memoryForge)
	hub.forge.AddUser("helper-bot", 77, true)
	w.must(w.forge.Grant(repoName, "helper-bot", emulator.Write))
	p := w.openOne("web", "1.1.0", "web")
	id, err := w.forge.Comment(repoName, p.Number, "helper-bot", "/liftlock hold pr by a bot")
	w.must(err)
	w.lookAtComments(p.Number)
	if got := w.reactionsTo(p.Number, id); len(got) > 0 || len(w.outcomesOf("hold")) > 0 {
		t.Errorf("a bot's command was taken: %q, %q", got, w.outcomesOf("hold"))
	}
	id, err = w.forge.Comment(repoName, p.Number, "grace", "looks good")
	w.must(err)
	w.lookAtComments(p.Number)
	w.clock.Step(2 * time.Second)
	w.editComment("grace", id, "/liftlock hold pr edited in")
	w.lookAtComments(p.Number)
	if got := w.reactionsTo(p.Number, id); len(got) > 0 || len(w.outcomesOf("hold")) > 0 {
		t.Errorf("an edited command was taken: %q, %q", got, w.outcomesOf("hold"))
	}
	w.comment("grace", p.Number, "/liftlock hold pr plainly")
	if got := w.outcomesOf("hold"); !slices.Equal(got, []string{"grace taken"}) {
		t.Errorf("a plain command: %q", got)
	}
}
