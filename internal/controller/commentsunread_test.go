package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// TestCommentsAreReadAtAnyCount holds that a command is read of which an event told, although
// the forge counts as many comments as were read before: another one was deleted meanwhile.
func TestCommentsAreReadAtAnyCount(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "1.1.0", "web")
	w.comment("ada", p.Number, "what will be deleted")
	w.must(w.opts.Store.Tx(t.Context(), "test", func(tx *store.Tx) error {
		read, err := facts.ReadCommentsRead(t.Context(), tx, w.repo.ID, p.Number)
		if err != nil {
			return err
		}
		count := len(w.pulls()[0].Comments) + 1 // as many as there are with the next one
		read.Count = &count
		return read.Store(t.Context(), tx, w.repo.ID, p.Number)
	}))
	id := w.comment("ada", p.Number, "/liftlock hold pr the database is moving")
	if got := w.reactionsTo(p.Number, id); !slices.Contains(got, bot+" "+reactionDone) {
		t.Errorf("the command was not read: the reactions are %q", got)
	}
	if _, unread, err := w.opts.Store.Record(t.Context(), facts.UnreadComments.Key(record.OfPull(w.repo.ID, p.Number))); err != nil || unread {
		t.Errorf("the comments count as unread still (%v)", err)
	}
}

// TestACommentOnAPersonsPullRequestIsRead holds that an event of a comment has those of a person's
// own pull request read, although that changed last when they were read before.
func TestACommentOnAPersonsPullRequestIsRead(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	_, err := w.forge.CommitAs(repoName, "linus", "docs", "Docs", map[string]string{"docs.md": "more\n"})
	w.must(err)
	number, err := w.forge.OpenPull(repoName, "linus", "docs", "main", "Docs", "")
	w.must(err)
	id, err := w.forge.Comment(repoName, number, "ada", "/liftlock help")
	w.must(err)
	w.clock.Step(time.Minute)
	pr, err := w.opts.Gatherer.PullCache.RefreshPullRequest(t.Context(), w.repo.Repository, number)
	w.must(err)
	w.must(userComments.Put(t.Context(), w.opts.Store, record.OfPull(w.repo.ID, number), pr.UpdatedAt.UTC()))
	for _, c := range []struct {
		unread bool
		want   int
	}{{false, 0}, {true, 1}} {
		if c.unread {
			w.must(facts.UnreadComments.Put(t.Context(), w.opts.Store, record.OfPull(w.repo.ID, number), "delivery"))
		}
		_, err = w.answerUserPull(t.Context(), w.repo, pr)
		w.must(err)
		if got := w.reactionsTo(number, id); len(got) != c.want {
			t.Errorf("with an event %t there are the reactions %q", c.unread, got)
		}
	}
}
