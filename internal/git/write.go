package git

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/proc"
)

const (
	// keepPrefix holds refs to commits that are on no branch yet, by the day
	// they were written: refs/liftlock/keep/20060102/<id>.
	keepPrefix = "refs/liftlock/keep/"
	keepDay    = "20060102"
	// newRef is the branch that fast-import builds on; it is never created.
	newRef = "refs/liftlock/new"
	// maxMessage bounds a commit message, in bytes.
	maxMessage = 256 << 10
	noCommit   = "0000000000000000000000000000000000000000"
)

// FileWrite is what happens to one file.
type FileWrite struct {
	Path    string // from the repository's root; see Write for what is refused
	Mode    Mode   // Regular or Executable; 0: as it is in Base, else Regular
	Content []byte // at most MaxFileSize
	Delete  bool   // remove it; one that isn't there is fine
}

// CommitSpec is a commit to write.
type CommitSpec struct {
	Parents []string // none: an orphan
	Base    string   // commit or tree whose files it starts from, usually Parents[0]; empty: none
	Files   []FileWrite
	Message string
	When    time.Time // of author and committer, in whole seconds, written in UTC

	AuthorTime time.Time // where the author's is another; zero: When

	Author, Committer *Ident // nil: the mirror's
}

// Write makes a commit in the mirror, without a work tree and without touching a branch; Push
// brings it to the remote. The same spec makes the same commit, and isn't written twice in a day.
// It is kept from maintenance for two weeks, on a branch or not.
//
// It refuses with ErrInvalid paths that are not plain (see checkWritePath) or that are named twice.
// It also refuses changes that would replace a folder by a file, a file by a folder, or a symbolic
// link or submodule by anything. These are allowed where the same spec deletes the entry in the
// way. It is ErrUnknownCommit when the mirror lacks a parent or the base; ErrTooLarge for a file
// past MaxFileSize.
func (m *Mirror) Write(ctx context.Context, s CommitSpec) (string, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	base, files, err := m.planCommit(ctx, &s, m.author)
	if err != nil {
		return "", err
	}
	spec := hashSpec(s, base, files, m.now().UTC().Format(keepDay))
	if sha, ok := m.caches.written.Get(spec); ok {
		return sha, nil
	}
	sha, err := m.engine.writeCommit(ctx, s, base, files)
	if err == nil {
		m.caches.written.Put(spec, sha)
	}
	return sha, err
}

// writtenSpec is what a commit was written from, and the day from which on it is kept.
type writtenSpec [sha256.Size]byte

func hashSpec(s CommitSpec, base string, files []FileWrite, day string) (spec writtenSpec) {
	h := sha256.New()
	fmt.Fprintln(h, day)
	streamSpec(h, s, base, files)
	h.Sum(spec[:0])
	return spec
}

// planCommit checks a spec, and fills in its author and committer where it has none. It gives the
// tree that the commit starts from and the changes of its files, in order.
func (r *repository) planCommit(ctx context.Context, s *CommitSpec, who Ident) (base string, files []FileWrite, err error) {
	if s.AuthorTime.IsZero() {
		s.AuthorTime = s.When
	}
	if s.Author == nil {
		s.Author = &who
	}
	if s.Committer == nil {
		s.Committer = &who
	}
	if err := r.checkSpec(ctx, s); err != nil {
		return "", nil, fmt.Errorf("write a commit: %w", err)
	}
	base = emptyTree
	if s.Base != "" {
		o, err := r.engine.findObject(s.Base + "^{tree}")
		if errors.Is(err, errMissing) {
			err = r.unknownCommitError(s.Base)
		}
		if err != nil {
			return "", nil, fmt.Errorf("write a commit: %w", err)
		}
		base = o.sha
	}
	files, err = r.planWrites(base, s.Files)
	if err != nil {
		return "", nil, fmt.Errorf("write a commit: %w", err)
	}
	return base, files, nil
}

// checkSpec holds what needs no look at the base's files.
func (r *repository) checkSpec(ctx context.Context, s *CommitSpec) error {
	if err := r.requireCommits(ctx, s.Parents...); err != nil {
		return err
	}
	if s.Base != "" {
		if err := checkSHA(s.Base); err != nil {
			return err
		}
	}
	if err := checkIdent("author", *s.Author); err != nil {
		return err
	}
	if err := checkIdent("committer", *s.Committer); err != nil {
		return err
	}
	invalid := func(why string) error { return &Error{Op: "commit spec", Kind: ErrInvalid, Hint: why} }
	switch {
	case s.When.Unix() <= 0, s.AuthorTime.Unix() <= 0:
		return invalid("When must be set: the same spec must always make the same commit")
	case len(s.Message) > maxMessage || strings.Contains(s.Message, "\x00"):
		return invalid("a message has no zero bytes and at most 256 KiB")
	}
	s.Message = strings.TrimRight(s.Message, "\n") + "\n"
	if strings.TrimSpace(s.Message) == "" {
		return invalid("the message is empty")
	}
	seen := map[string]bool{}
	for _, f := range s.Files {
		if err := checkWritePath(f.Path); err != nil {
			return err
		}
		op := fmt.Sprintf("write %q", shortenForLog(f.Path))
		switch {
		case seen[f.Path]:
			return &Error{Op: op, Kind: ErrInvalid, Hint: "the path is named twice"}
		case len(f.Content) > MaxFileSize:
			return &Error{Op: op, Kind: ErrTooLarge}
		case !f.Delete && f.Mode != 0 && f.Mode != Regular && f.Mode != Executable:
			return &Error{Op: op, Kind: ErrInvalid, Hint: "only regular and executable files are written, not mode " + f.Mode.String()}
		}
		seen[f.Path] = true
	}
	return nil
}

// planWrites puts the writes in order, deletions first, fills in their modes and
// refuses those that something in the base is in the way of.
func (r *repository) planWrites(base string, files []FileWrite) ([]FileWrite, error) {
	deleted, written := map[string]bool{}, map[string]bool{}
	for _, f := range files {
		if f.Delete {
			deleted[f.Path] = true
		} else {
			written[f.Path] = true
		}
	}
	tree := &Tree{repo: r, sha: base}
	out := slices.Clone(files)
	for i := range out {
		f := &out[i]
		// Two writes of one spec can be in each other's way, too.
		for at := range parentFolders(f.Path) {
			if !f.Delete && written[at] {
				return nil, conflictError(f.Path, at+" is written as a file")
			}
		}
		have, in, err := r.findInBase(tree, f.Path)
		if err != nil {
			return nil, err
		}
		switch {
		case in != "" && f.Delete:
			// Nothing below a file: already gone.
		case in != "" && !deleted[in]:
			return nil, conflictError(f.Path, in+" is not a folder")
		case have == Directory && f.Delete:
			return nil, conflictError(f.Path, "it is a folder; delete its files")
		case have == Directory && !r.allDeleted(tree, f.Path, deleted):
			return nil, conflictError(f.Path, "it is a folder with files in it")
		case (have == Symlink || have == Submodule) && !f.Delete:
			return nil, conflictError(f.Path, "it is a symbolic link or submodule")
		}
		if f.Mode == 0 {
			f.Mode = Regular
			if have == Executable {
				f.Mode = Executable
			}
		}
	}
	slices.SortFunc(out, func(a, b FileWrite) int {
		if a.Delete != b.Delete {
			if a.Delete {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Path, b.Path)
	})
	return out, nil
}

func conflictError(path, why string) error {
	return &Error{Op: fmt.Sprintf("write %q", shortenForLog(path)), Kind: ErrInvalid, Hint: why}
}

// parentFolders are the folders above a path, the outermost first.
func parentFolders(path string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range len(path) {
			if path[i] == '/' && !yield(path[:i]) {
				return
			}
		}
	}
}

// findInBase says what is at a path: its mode (0: nothing), or the ancestor that
// is not a folder.
func (r *repository) findInBase(tree *Tree, path string) (mode Mode, in string, err error) {
	for at := range parentFolders(path) {
		e, err := tree.findEntry("write", at)
		if errors.Is(err, fs.ErrNotExist) {
			return 0, "", nil
		}
		if err != nil {
			return 0, "", err
		}
		if e.mode != Directory {
			return 0, at, nil
		}
	}
	e, err := tree.findEntry("write", path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, "", nil
	}
	return e.mode, "", err
}

// allDeleted says whether the spec deletes everything below a folder.
func (r *repository) allDeleted(tree *Tree, folder string, deleted map[string]bool) bool {
	err := fs.WalkDir(tree, folder, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !deleted[name] {
			err = fs.SkipAll
			deleted = nil
		}
		return err
	})
	return err == nil && deleted != nil
}

func (mp *mirrorPrograms) writeCommit(ctx context.Context, s CommitSpec, base string, files []FileWrite) (string, error) {
	sha, err := mp.importCommit(ctx, s, base, files)
	if err == nil && mp.opts.SigningKey != nil {
		sha, err = mp.signCommit(ctx, sha)
	}
	if err != nil {
		return "", mp.localError("write a commit to the mirror of "+mp.remote.url, err)
	}
	return sha, nil
}

// importCommit runs git fast-import, which writes the commit and tells its id. It is then told
// under which ref to keep it, and sets that ref only when it was told "done": killed before, it
// leaves nothing. A commit that is to be signed is kept under no ref.
func (mp *mirrorPrograms) importCommit(ctx context.Context, s CommitSpec, base string, files []FileWrite) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, localTimeout)
	defer cancel()
	c := mp.gitCommand("fast-import", "--quiet", "--force", "--done", "--date-format=raw")
	c.MaxStdout = 0 // piped
	git, err := proc.Start(ctx, c)
	if err != nil {
		return "", err
	}
	sha, err := mp.streamCommit(git, s, base, files)
	if werr := git.Wait(); werr != nil {
		// Its own words say more than a broken pipe.
		if rerr := mp.removeLeftovers(); rerr != nil {
			werr = fmt.Errorf("%w; then removing what it left: %w", werr, rerr)
		}
		return "", werr
	}
	return sha, err
}

func (mp *mirrorPrograms) streamCommit(git *proc.Process, s CommitSpec, base string, files []FileWrite) (string, error) {
	w := bufio.NewWriterSize(git.Stdin, 64<<10)
	streamSpec(w, s, base, files)
	io.WriteString(w, "get-mark :1\n") // a bufio.Writer keeps its error for Flush
	if err := w.Flush(); err != nil {
		return "", err
	}
	answer := make([]byte, 41)
	if _, err := io.ReadFull(git.Stdout, answer); err != nil {
		return "", fmt.Errorf("git fast-import does not name the commit: %w", err)
	}
	sha := string(answer[:40])
	if err := checkSHA(sha); err != nil {
		return "", err
	}
	if mp.opts.SigningKey == nil {
		fmt.Fprintf(w, "reset %s\nfrom :1\n\n", mp.keepRef(sha))
	}
	fmt.Fprintf(w, "reset %s\nfrom %s\n\ndone\n", newRef, noCommit)
	return sha, w.Flush()
}

// keepRef is the ref that keeps a commit that is written now.
func (mp *mirrorPrograms) keepRef(sha string) string {
	return keepPrefix + mp.opts.Now().UTC().Format(keepDay) + "/" + sha
}

// streamSpec writes the stream that makes the commit.
func streamSpec(w io.Writer, s CommitSpec, base string, files []FileWrite) {
	fmt.Fprintf(w, "commit %s\nmark :1\n", newRef)
	fmt.Fprintf(w, "author %s <%s> %d +0000\n", s.Author.Name, s.Author.Email, s.AuthorTime.Unix())
	fmt.Fprintf(w, "committer %s <%s> %d +0000\n", s.Committer.Name, s.Committer.Email, s.When.Unix())
	fmt.Fprintf(w, "data %d\n%s\n", len(s.Message), s.Message)
	for i, parent := range s.Parents {
		command := "merge"
		if i == 0 {
			command = "from"
		}
		fmt.Fprintf(w, "%s %s\n", command, parent)
	}
	// Not the first parent's files, but exactly the base's.
	fmt.Fprintf(w, "deleteall\n")
	if base != emptyTree {
		fmt.Fprintf(w, "M %s %s \"\"\n", Directory, base)
	}
	for _, f := range files {
		if f.Delete {
			fmt.Fprintf(w, "D %s\n", quotePath(f.Path))
			continue
		}
		fmt.Fprintf(w, "M %s inline %s\ndata %d\n", f.Mode, quotePath(f.Path), len(f.Content))
		w.Write(f.Content) // as above
		io.WriteString(w, "\n")
	}
}

// quotePath quotes a path for git's streams. checkWritePath has let through
// nothing that would need more than the quotes; escaping is for defence.
func quotePath(p string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(p) + `"`
}

// Committer is who the commits that Write makes are committed by.
func (m *Mirror) Committer() Ident { return m.author }
