package git

import (
	"context"
	"errors"
	"fmt"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// CommitInfo is one commit.
type CommitInfo struct {
	SHA        string
	Tree       string // id of its root tree
	Parents    []string
	Author     Ident
	Committer  Ident
	AuthorTime time.Time // in the author's zone; whole seconds
	CommitTime time.Time
	Subject    string // the message's first paragraph as one line
	Message    string // the whole message
	// Trailers are the "Key: value" lines at the message's end. Keys are in
	// canonical form ("Liftlock-Kind") however they were written; of several
	// with the same key the last counts. Never nil. Anybody can write them.
	Trailers map[string]string
}

func (r *repository) unknownCommitError(sha string) error {
	return &Error{Op: "look up " + sha + " in " + r.name, Kind: ErrUnknownCommit}
}

// Has says whether the mirror has the commit, reachable from a branch or not.
func (r *repository) Has(ctx context.Context, sha string) (bool, error) {
	if err := checkSHA(sha); err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	o, err := r.engine.findObject(sha)
	if errors.Is(err, errMissing) {
		return false, nil
	}
	return err == nil && o.kind == "commit", err
}

// Commit reads one commit. ErrUnknownCommit when the mirror has none of this id.
func (r *repository) Commit(ctx context.Context, sha string) (*CommitInfo, error) {
	if err := checkSHA(sha); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := r.engine.readCommit(sha)
	if errors.Is(err, errMissing) {
		return nil, r.unknownCommitError(sha)
	}
	return c, err
}

// RememberLine answers IsAncestor for all commits of a line of first parents that aren't in the
// history of base, newest first. It asks git a question or two, instead of one for each of them and
// base, and remembers what these answer.
func (r *repository) RememberLine(ctx context.Context, base string, line []CommitInfo) error {
	if len(line) == 0 {
		return nil
	}
	descend, err := r.IsAncestor(ctx, base, line[0].SHA)
	if err != nil {
		return err
	}
	if descend {
		if oldest, err := r.IsAncestor(ctx, base, line[len(line)-1].SHA); err != nil || !oldest {
			return err // it was merged into the line on the way
		}
	}
	for _, c := range line {
		r.caches.ancestries.Put(commitPair{base, c.SHA}, descend)
		r.caches.ancestries.Put(commitPair{c.SHA, base}, false)
	}
	return nil
}

// IsAncestor says whether descendant's history holds ancestor; a commit is its
// own ancestor. ErrUnknownCommit when the mirror lacks either.
func (r *repository) IsAncestor(ctx context.Context, ancestor, descendant string) (bool, error) {
	pair := commitPair{ancestor, descendant}
	if is, known := r.caches.ancestries.Get(pair); known {
		return is, nil
	}
	if err := r.requireCommits(ctx, ancestor, descendant); err != nil {
		return false, err
	}
	if ancestor == descendant {
		return true, nil
	}
	is, err := r.engine.isAncestor(ctx, ancestor, descendant)
	if err == nil {
		r.caches.ancestries.Put(pair, is)
	}
	return is, err
}

// requireCommits makes sure that the commits are there.
func (r *repository) requireCommits(ctx context.Context, shas ...string) error {
	for _, sha := range shas {
		ok, err := r.Has(ctx, sha)
		if err != nil {
			return err
		}
		if !ok {
			return r.unknownCommitError(sha)
		}
	}
	return nil
}

// parseCommit reads a commit object: headers, an empty line, the message.
func parseCommit(data []byte) (*CommitInfo, error) {
	head, message, _ := strings.Cut(string(data), "\n\n")
	c := &CommitInfo{Message: message, Subject: parseSubject(message), Trailers: parseTrailers(message)}
	for line := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(line, " ")
		var err error
		switch key {
		case "tree":
			c.Tree = value
		case "parent":
			c.Parents = append(c.Parents, value)
		case "author":
			c.Author, c.AuthorTime, err = parseIdent(value)
		case "committer":
			c.Committer, c.CommitTime, err = parseIdent(value)
		}
		if err != nil {
			return nil, fmt.Errorf("its %s: %w", key, err)
		}
	}
	if !isSHA(c.Tree) {
		return nil, errors.New("it names no tree")
	}
	return c, nil
}

// parseIdent reads "Name <mail> seconds zone". Old commits have odd ones: what
// can't be understood is left empty, but the line needs its brackets.
func parseIdent(s string) (Ident, time.Time, error) {
	open, end := strings.IndexByte(s, '<'), strings.LastIndexByte(s, '>')
	if open < 0 || end < open {
		return Ident{}, time.Time{}, fmt.Errorf("%q has no e-mail address", shortenForLog(s))
	}
	id := Ident{Name: strings.TrimSpace(s[:open]), Email: s[open+1 : end]}
	f := strings.Fields(s[end+1:])
	if len(f) == 0 {
		return id, time.Time{}, nil
	}
	seconds, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return id, time.Time{}, nil
	}
	return id, time.Unix(seconds, 0).In(parseZone(f[1:])), nil
}

func parseZone(f []string) *time.Location {
	if len(f) == 0 || len(f[0]) != 5 {
		return time.UTC
	}
	n, err := strconv.Atoi(f[0])
	if err != nil || n == 0 {
		return time.UTC
	}
	return time.FixedZone("", (n/100*60+n%100)*60)
}

func parseSubject(message string) string {
	first, _, _ := strings.Cut(strings.TrimLeft(message, "\n"), "\n\n")
	return strings.Join(strings.Fields(first), " ")
}

var trailerForm = regexp.MustCompile(`^([A-Za-z0-9-]+):[ \t]*(.*)$`)

// parseTrailers reads the last paragraph, if it is not the first and every line is
// a trailer or the continuation of one (an indented line).
func parseTrailers(message string) map[string]string {
	out := map[string]string{}
	message = strings.TrimRight(message, "\n \t\r")
	i := strings.LastIndex(message, "\n\n")
	if i < 0 {
		return out
	}
	found := map[string]string{}
	last := ""
	for line := range strings.SplitSeq(message[i+2:], "\n") {
		if last != "" && strings.TrimLeft(line, " \t") != line {
			found[last] += " " + strings.TrimSpace(line)
			continue
		}
		f := trailerForm.FindStringSubmatch(strings.TrimRight(line, "\r"))
		if f == nil {
			return out
		}
		last = textproto.CanonicalMIMEHeaderKey(f[1])
		found[last] = strings.TrimSpace(f[2])
	}
	return found
}
