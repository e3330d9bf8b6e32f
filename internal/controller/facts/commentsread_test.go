package facts

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
)

// TestCommentsRead holds when a pull request's comments needn't be read: the forge counts as many
// as were read and as we wrote since. A pull request that a sweep finds changed is read all the
// same.
func TestCommentsRead(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	const own, change = "ours", "the sweep finds it changed"
	two := 2
	for name, c := range map[string]struct {
		read  CommentsRead
		then  []string
		first bool
		count int // the forge's; below zero: it doesn't say
		want  bool
	}{
		"nothing was read":                     {count: 0},
		"opened, and described":                {then: []string{own}, first: true, count: 1, want: true},
		"somebody else was there first":        {then: []string{own}, first: true, count: 2},
		"ours, where others' are not known":    {then: []string{own}, count: 1},
		"read, and as many":                    {read: CommentsRead{Count: &two}, count: 2, want: true},
		"read, and one more":                   {read: CommentsRead{Count: &two}, count: 3},
		"read, and one went":                   {read: CommentsRead{Count: &two}, count: 1},
		"read, and we wrote one":               {read: CommentsRead{Count: &two}, then: []string{own}, count: 3, want: true},
		"read, and we and somebody wrote one":  {read: CommentsRead{Count: &two}, then: []string{own}, count: 4},
		"read, and ours was among them":        {read: CommentsRead{Count: &two, Until: now}, then: []string{own}, count: 3},
		"read before ours was written":         {read: CommentsRead{Count: &two, Until: now.Add(-time.Second)}, then: []string{own}, count: 3, want: true},
		"read, and the forge doesn't count":    {read: CommentsRead{Count: &two}, count: -1},
		"read, and changed since":              {read: CommentsRead{Count: &two}, then: []string{change}, count: 2},
		"read, and swept without a change":     {read: CommentsRead{Count: &two, UpdatedAt: now}, then: []string{change}, count: 2, want: true},
		"never read, and changed, says nobody": {then: []string{change}, count: 0},
	} {
		o, _, _ := newCachedPulls(t, now)
		pr := &forge.PullRequest{Number: 1, UpdatedAt: now, CommentCount: &c.count}
		if c.count < 0 {
			pr.CommentCount = nil
		}
		err := o.store.Tx(t.Context(), "test", func(tx *store.Tx) error {
			if err := c.read.Store(t.Context(), tx, "hub:acme/fleet", 1); err != nil {
				return err
			}
			for _, what := range c.then {
				var err error
				if what == own {
					err = CountOwnComment(t.Context(), tx, "hub:acme/fleet", 1, now, c.first)
				} else {
					err = ForgetCommentCount(t.Context(), tx, "hub:acme/fleet", pr)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadCommentsRead(t.Context(), o.store.(*store.Store), "hub:acme/fleet", 1)
		if err != nil || got.Covers(pr) != c.want {
			t.Errorf("%s: %+v covers %d: %t, %v", name, got, c.count, got.Covers(pr), err)
		}
	}
}
