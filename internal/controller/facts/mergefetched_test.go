package facts

import (
	"errors"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

// TestEnsureMergeFetched waits for the newest merge of ours to be on the branch, fetches
// it where it is not, and gives up after some tries.
func TestEnsureMergeFetched(t *testing.T) {
	c := newTestRepo(t, "fleet", map[string]string{"a": "1\n"})
	c.BotLogin = "liftlock"
	before := c.at
	after := c.commit("main", map[string]string{"a": "2\n"})
	c.at = before
	rewritten := c.commit("gone", map[string]string{"a": "3\n"})
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	merge := func(number int, commit string, minutes int) *pullRecord {
		var p pullRecord
		p.PR = forge.PullRequest{Number: number, State: forge.Merged, Author: "liftlock", Base: "main", MergeCommit: commit, MergedAt: at.Add(time.Duration(minutes) * time.Minute)}
		return &p
	}
	somebodys := merge(3, rewritten, 9)
	somebodys.PR.Author = "ann"
	otherBranch := merge(4, rewritten, 9)
	otherBranch.PR.Base = "env/qa"
	open := merge(5, rewritten, 9)
	open.PR.State = forge.Open
	for name, step := range map[string]struct {
		pulls []*pullRecord
		tip   string
		want  []error // of each try
	}{
		"none":                    {nil, after, []error{nil}},
		"there":                   {[]*pullRecord{merge(1, before, 1), merge(2, after, 2)}, after, []error{nil, nil}},
		"the branch moved since":  {[]*pullRecord{merge(1, before, 1), merge(2, after, 2)}, before, []error{forge.ErrConflict, forge.ErrConflict}},
		"the newest counts":       {[]*pullRecord{merge(2, rewritten, 1), merge(1, after, 2)}, after, []error{nil}},
		"not ours to wait for":    {[]*pullRecord{somebodys, otherBranch, open, merge(6, "", 9)}, after, []error{nil}},
		"nobody knows it":         {[]*pullRecord{merge(1, "1111111111111111111111111111111111111111", 1)}, after, []error{forge.ErrRetryable}},
		"the branch is rewritten": {[]*pullRecord{merge(1, rewritten, 1)}, after, []error{forge.ErrRetryable, forge.ErrRetryable, forge.ErrRetryable, forge.ErrRetryable, nil, nil}},
		"it was rewritten once":   {[]*pullRecord{merge(1, rewritten, -30)}, after, []error{nil, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			g := branch.NewGitGatherer(nil, nil, nil)
			for try, want := range step.want {
				env := &promotion.Env{Branch: "main", Tip: step.tip}
				err := g.EnsureMergeFetched(t.Context(), c.Repository, env, findNewestMerge(c.Repository, env, step.pulls), at)
				if !errors.Is(err, want) {
					t.Errorf("try %d: %v, want %v", try, err, want)
				}
			}
		})
	}
}
