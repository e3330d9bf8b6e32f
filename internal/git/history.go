package git

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// maxLog bounds one Log.
const maxLog = 10_000

// LogQuery picks commits.
type LogQuery struct {
	From        string   // the newest commit
	Until       string   // exclusive, with everything it descends from; empty: back to the beginning
	FirstParent bool     // only the line of first parents: what landed on the branch
	Paths       []string // only commits that changed one of these files or folders, taken literally
	Grep        string   // only commits whose message has this text, taken literally, in one line
	Limit       int      // at most so many; 0 or more than 10,000: 10,000
}

// Log lists commits, newest first; no commit comes before one of its
// descendants. ErrUnknownCommit when the mirror lacks From or Until.
func (r *repository) Log(ctx context.Context, q LogQuery) ([]CommitInfo, error) {
	if err := r.requireCommits(ctx, q.From); err != nil {
		return nil, err
	}
	if q.Until != "" {
		if err := r.requireCommits(ctx, q.Until); err != nil {
			return nil, err
		}
	}
	if strings.ContainsAny(q.Grep, "\n\x00") {
		return nil, &Error{Op: "search commit messages", Kind: ErrInvalid, Hint: "the text must be of one line"}
	}
	if q.Limit <= 0 || q.Limit > maxLog {
		q.Limit = maxLog
	}
	shas, err := r.listCommits(ctx, q)
	if err != nil {
		return nil, err
	}
	commits := make([]CommitInfo, 0, len(shas))
	for _, sha := range shas {
		c, err := r.Commit(ctx, sha)
		if err != nil {
			return nil, fmt.Errorf("list the history of %s: %w", q.From, err)
		}
		commits = append(commits, *c)
	}
	return commits, nil
}

func (p *programs) listCommits(ctx context.Context, q LogQuery) ([]string, error) {
	args := []string{"rev-list", "--max-count=" + strconv.Itoa(q.Limit)}
	if q.FirstParent {
		args = append(args, "--first-parent")
	} else {
		args = append(args, "--date-order")
	}
	if q.Grep != "" {
		args = append(args, "--fixed-strings", "--grep="+q.Grep)
	}
	args = append(args, q.From)
	if q.Until != "" {
		args = append(args, "^"+q.Until)
	}
	args = append(args, "--")
	args = append(args, q.Paths...)
	out, err := p.runGit(ctx, p.gitCommand(args...))
	if err != nil {
		return nil, p.localError("list the history of "+q.From, err)
	}
	return strings.Fields(string(out)), nil
}
