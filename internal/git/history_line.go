package git

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// maxLine bounds how many commits of a history are walked here before git's programs walk the rest.
// A long history needs their index of changed paths; for a short one starting them costs too much.
const maxLine = 32

// lineWalk is the newest part of a history that is one line, by first parents, or because each
// merge has the paths of one of its parents. Then the merge's history is that parent's (see
// simplifier, which does the same for whole histories).
type lineWalk struct {
	shas []string // what the query chooses, newest first
	rest string   // where git goes on; empty: nowhere, that was all
}

// walkLine walks a history as git would, from its newest commit on. ok is false when git
// has to walk all of it.
func (r *repository) walkLine(ctx context.Context, q LogQuery) (w lineWalk, ok bool) {
	for _, p := range q.Paths {
		if !validName(p) || path.Clean(p) != p {
			return lineWalk{}, false
		}
	}
	at := q.From
	for range r.line {
		if at == q.Until {
			return w, true
		}
		c, err := r.Commit(ctx, at)
		if err != nil {
			return lineWalk{}, false
		}
		next, chosen, err := r.stepLine(c, q)
		switch {
		case errors.Is(err, errForks) && q.Until == "":
			w.rest = at
			return w, true
		case err != nil, q.Until != "" && len(c.Parents) != 1:
			return lineWalk{}, false // what Until excludes isn't on this line alone
		}
		if chosen && len(w.shas) < q.Limit && strings.Contains(c.Message, q.Grep) {
			w.shas = append(w.shas, c.SHA)
		}
		if next == "" || q.Until == "" && len(w.shas) >= q.Limit {
			return w, q.Until == ""
		}
		at = next
	}
	w.rest = at
	return w, q.Until == ""
}

// errForks says that a history goes on along several lines.
var errForks = errors.New("the history goes on along several lines")

// stepLine gives the parent that a history goes on with ("": it begins here), and whether
// the commit itself is a part of it.
func (r *repository) stepLine(c *CommitInfo, q LogQuery) (next string, chosen bool, err error) {
	parents := c.Parents
	if q.FirstParent && len(parents) > 1 {
		parents = parents[:1]
	}
	if len(q.Paths) == 0 {
		if len(parents) > 1 {
			return "", false, errForks
		}
		return strings.Join(parents, ""), true, nil
	}
	if len(parents) == 0 {
		differs, err := r.differAt(emptyTree, c.SHA, q.Paths)
		return "", differs, err
	}
	for _, p := range parents {
		differs, err := r.differAt(p, c.SHA, q.Paths)
		if err != nil || !differs {
			return p, false, err
		}
	}
	if len(parents) > 1 {
		return "", false, errForks
	}
	return parents[0], true, nil
}

// differAt says whether two commits or trees differ at one of some paths.
func (r *repository) differAt(a, b string, paths []string) (bool, error) {
	for _, p := range paths {
		was, err := r.entryAt(a, p)
		if err != nil {
			return false, err
		}
		is, err := r.entryAt(b, p)
		if err != nil || was != is {
			return err == nil, err
		}
	}
	return false, nil
}

// entryAt is what a commit or tree has at a path; the zero value: nothing.
func (r *repository) entryAt(rev, name string) (treeEntry, error) {
	e, err := (&Tree{repo: r, sha: rev}).findEntry("log", name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotFollowed) {
		return treeEntry{}, nil
	}
	return e, err
}

// listCommits is the engine's, but for the newest commits of a line.
func (r *repository) listCommits(ctx context.Context, q LogQuery) ([]string, error) {
	w, ok := r.walkLine(ctx, q)
	if !ok {
		return r.engine.listCommits(ctx, q)
	}
	if w.rest == "" {
		return w.shas, nil
	}
	q.From, q.Limit = w.rest, q.Limit-len(w.shas)
	older, err := r.engine.listCommits(ctx, q)
	return slices.Concat(w.shas, older), err
}
