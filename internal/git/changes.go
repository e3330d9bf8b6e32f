package git

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/liftlock/liftlock/internal/proc"
)

const (
	// MaxDiff bounds what Diff returns, in bytes: more than anybody reads.
	MaxDiff = 1 << 20
	// maxPatch bounds the diff that PatchID hashes.
	maxPatch = 64 << 20
)

// FileChange is a path that differs between two commits.
type FileChange struct {
	Path    string
	Status  byte // 'A' added, 'D' deleted, 'M' content or mode changed, 'T' its kind changed
	OldMode Mode // 0 when added
	NewMode Mode // 0 when deleted
}

// Changed lists the paths that differ between the files of a and those of b,
// sorted as git sorts; a renamed file is one deleted and one added. With a ==
// "" everything in b is added. ErrUnknownCommit when the mirror lacks either.
func (r *repository) Changed(ctx context.Context, a, b string) ([]FileChange, error) {
	pair := commitPair{a, b}
	if list, known := r.caches.differences.Get(pair); known {
		return slices.Clone(list), nil
	}
	if a != "" && ctx.Err() == nil {
		if list, err := r.compareTrees(a, b); err == nil {
			r.keepDifference(pair, list)
			return list, nil
		}
	}
	if err := r.requirePair(ctx, a, b); err != nil {
		return nil, err
	}
	changes, err := r.engine.listChanges(ctx, a, b)
	if err == nil {
		r.keepDifference(pair, changes)
	}
	return changes, err
}

// keepDifference keeps a list that is the caller's to change.
func (r *repository) keepDifference(pair commitPair, list []FileChange) {
	if len(list) <= maxDifference {
		r.caches.differences.Put(pair, slices.Clone(list))
	}
}

// requirePair makes sure that two commits are there of which the first may be
// "", which stands for nothing.
func (r *repository) requirePair(ctx context.Context, a, b string) error {
	if err := r.requireCommits(ctx, b); err != nil || a == "" {
		return err
	}
	return r.requireCommits(ctx, a)
}

func (p *programs) listChanges(ctx context.Context, a, b string) ([]FileChange, error) {
	out, err := p.diffTree(ctx, a, b, maxList, nil, "--raw", "-z")
	if err != nil {
		return nil, err
	}
	// ":100644 100755 <id> <id> M\0path\0"
	var changes []FileChange
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		f := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(f) != 5 || f[4] == "" {
			return nil, fmt.Errorf("compare %s with %s: git diff-tree answers %q", a, b, shortenForLog(fields[i]))
		}
		oldMode, err1 := parseMode(f[0])
		newMode, err2 := parseMode(f[1])
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("compare %s with %s: %w", a, b, err)
		}
		changes = append(changes, FileChange{Path: fields[i+1], Status: f[4][0], OldMode: oldMode, NewMode: newMode})
	}
	return changes, nil
}

// Differing calls do for every path that is not the same in another commit, or only in one of them,
// in Git's order. both says that it is a file in both. An error of do ends it and is returned; the
// others are Changed's.
func (t *Tree) Differing(ctx context.Context, commit string, do func(path string, both bool) error) error {
	list, err := t.repo.Changed(ctx, commit, t.sha)
	if err != nil {
		return err
	}
	for _, c := range list {
		if err := do(c.Path, c.Status == 'M'); err != nil {
			return err
		}
	}
	return nil
}

func parseMode(s string) (Mode, error) {
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil {
		return 0, fmt.Errorf("git prints the mode %q", shortenForLog(s))
	}
	if n == 0 {
		return 0, nil
	}
	return normalMode(Mode(n)), nil
}

// patchOptions say what of a diff is wanted.
type patchOptions struct {
	limit   int64    // in bytes
	fullIDs bool     // the files' ids are written whole
	paths   []string // of these files or folders, taken literally; none: of all
}

// Diff is the unified diff from a's files to b's, of some paths (files or folders, taken literally)
// or of all. Output past MaxDiff is cut off, and the last line says so. With a == "" everything in
// b is added.
func (r *repository) Diff(ctx context.Context, a, b string, paths ...string) (string, error) {
	if err := r.requirePair(ctx, a, b); err != nil {
		return "", err
	}
	out, err := r.engine.writePatch(ctx, a, b, patchOptions{limit: MaxDiff, paths: paths})
	if errors.Is(err, ErrTooLarge) {
		if i := bytes.LastIndexByte(out, '\n'); i >= 0 {
			out = out[:i+1]
		}
		return string(out) + fmt.Sprintf("… cut off after %d bytes\n", len(out)), nil
	}
	return string(out), err
}

// PatchID identifies a change, whatever it is based on. Two pairs of commits have the same id when
// their diffs are the same but for line numbers and the files' other content further than three
// lines away. Each part of them must also be in the same one of the places that look alike. Unlike
// git patch-id it counts white space, which means something in YAML. The id is 64 hex digits; a
// change of nothing has the id "". It is ErrTooLarge for a diff of more than 64 MiB, and for a file
// past MaxFileSize.
func (r *repository) PatchID(ctx context.Context, a, b string) (string, error) {
	if err := r.requirePair(ctx, a, b); err != nil {
		return "", err
	}
	out, err := r.engine.writePatch(ctx, a, b, patchOptions{limit: maxPatch, fullIDs: true})
	if err != nil || len(out) == 0 {
		return "", err
	}
	return patchID(out, func(id string) ([]byte, error) {
		o, err := r.engine.readObject(id)
		if err != nil {
			return nil, fmt.Errorf("read a file of %s: %w", a, err)
		}
		return o.data, nil
	})
}

func (p *programs) writePatch(ctx context.Context, a, b string, o patchOptions) ([]byte, error) {
	options := []string{"-p", "--unified=3", "--no-color", "--diff-algorithm=myers"}
	if o.fullIDs {
		options = append(options, "--full-index")
	}
	out, err := p.diffTree(ctx, a, b, o.limit, o.paths, options...)
	if errors.Is(err, proc.ErrTooMuchOutput) {
		err = &Error{Op: "write the change from " + a + " to " + b, Kind: ErrTooLarge}
	}
	return out, err
}

// patchID hashes a diff without its line numbers; read gives a file by its id. Lines
// of content begin with '+', '-', ' ' or '\\', so the lines that are treated here
// can't be content.
func patchID(diff []byte, read func(id string) ([]byte, error)) (string, error) {
	h := sha256.New()
	var index []byte // held back: only a binary file's says what changed
	var before []byte
	isRead := false
	for line := range bytes.Lines(diff) {
		switch {
		case bytes.HasPrefix(line, []byte("index ")):
			index, before, isRead = line, nil, false
			continue
		case bytes.HasPrefix(line, []byte("Binary files ")):
			h.Write(index)
		case bytes.HasPrefix(line, []byte("@@ ")):
			first, count := parseHunk(line)
			if !isRead && count > 0 {
				id, _, _ := strings.Cut(strings.TrimPrefix(string(index), "index "), "..")
				var err error
				if before, err = read(id); err != nil {
					return "", err
				}
				isRead = true
			}
			line = []byte("@@" + describePlace(before, first, count) + "\n") // without git's guess at the function
		}
		h.Write(line)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hunkHeader begins a part of a diff: where it is in the file before, and how long.
var hunkHeader = regexp.MustCompile(`^@@ -([0-9]+)(?:,([0-9]+))? `)

// parseHunk reads the first line of a part, from 1, and how many lines it has of the
// file before.
func parseHunk(line []byte) (first, count int) {
	m := hunkHeader.FindSubmatch(line)
	if m == nil {
		return 0, 0
	}
	count = 1
	if len(m[2]) > 0 {
		count, _ = strconv.Atoi(string(m[2])) // it is digits
	}
	first, _ = strconv.Atoi(string(m[1]))
	return first, count
}

// maxAlike bounds how many places that look alike are counted.
const maxAlike = 100

// describePlace says in which of a file's places that look alike some lines are. A diff that reads
// the same may change the same value in another place, and a person who reviewed one hasn't seen
// the other. It is empty where there is one such place; where there are very many, it is their
// line.
func describePlace(file []byte, first, count int) string {
	start := skipLines(file, first-1)
	part := file[start : start+skipLines(file[start:], count)]
	if count == 0 || len(part) == 0 {
		return ""
	}
	earlier, all := 0, 0
	isAlike := func(at int) {
		if all++; at < start {
			earlier++
		}
	}
	if bytes.HasPrefix(file, part) {
		isAlike(0)
	}
	onItsOwnLine := append([]byte{'\n'}, part...)
	for at := 0; all <= maxAlike; {
		i := bytes.Index(file[at:], onItsOwnLine)
		if i < 0 {
			break
		}
		at += i + 1
		isAlike(at)
	}
	switch {
	case all > maxAlike:
		return fmt.Sprintf(" line %d", first)
	case all < 2:
		return ""
	}
	return fmt.Sprintf(" place %d", earlier+1)
}

// skipLines is where so many lines of a text end.
func skipLines(text []byte, lines int) int {
	at := 0
	for ; lines > 0 && at < len(text); lines-- {
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			return len(text)
		}
		at += i + 1
	}
	return at
}

// diffTree compares two commits' trees. The output comes back also with an error.
func (p *programs) diffTree(ctx context.Context, a, b string, limit int64, paths []string, options ...string) ([]byte, error) {
	if a == "" {
		a = emptyTree
	}
	args := slices.Concat([]string{"diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv"}, options,
		[]string{a, b, "--"}, paths)
	c := p.gitCommand(args...)
	c.MaxStdout = limit
	out, err := p.runGit(ctx, c)
	if err != nil {
		return out, p.localError("compare "+a+" with "+b, err)
	}
	return out, nil
}

// TreeHash is the id of the tree or file at a path ("" or "." is the root):
// two commits with the same hash have the same content there.
// fs.ErrNotExist when there is nothing, ErrUnknownCommit when the mirror
// lacks the commit.
func (r *repository) TreeHash(ctx context.Context, sha, path string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if path == "" {
		path = "."
	}
	e, err := r.Tree(sha).findEntry("hash", path)
	return e.sha, err
}

// FileEntry is one file of a commit.
type FileEntry struct {
	Path string
	Mode Mode
	Blob string // the content's id; of a submodule the commit's
}

// Files lists all files below a folder ("" or "." is the root), or the one
// file at that path, with links and submodules, sorted as git sorts. Nothing
// there is an empty list. ErrUnknownCommit when the mirror lacks the commit.
func (r *repository) Files(ctx context.Context, sha, prefix string) ([]FileEntry, error) {
	if err := r.requireCommits(ctx, sha); err != nil {
		return nil, err
	}
	path := ""
	if prefix != "" && prefix != "." {
		if !validName(prefix) || strings.Contains(prefix, "\x00") {
			return nil, &fs.PathError{Op: "list", Path: prefix, Err: fs.ErrInvalid}
		}
		path = prefix
	}
	entries, size := []FileEntry{}, 0
	err := r.engine.listFiles(ctx, sha, path, func(e FileEntry) error {
		if size += len(e.Mode.String()) + len(e.Blob) + len(e.Path); size > maxList {
			return &Error{Op: "list the files of " + sha, Kind: ErrTooLarge}
		}
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// parseFileEntry reads one line of git ls-tree: "100644 blob <id>\tpath".
func parseFileEntry(line string) (FileEntry, error) {
	head, path, ok := strings.Cut(line, "\t")
	modeText, rest, _ := strings.Cut(head, " ")
	_, id, found := strings.Cut(rest, " ")
	mode, err := parseMode(modeText)
	if err != nil || !ok || !found {
		return FileEntry{}, fmt.Errorf("git ls-tree answers %q", shortenForLog(line))
	}
	return FileEntry{Path: path, Mode: mode, Blob: id}, nil
}
