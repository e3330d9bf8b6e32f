package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/liftlock/liftlock/internal/proc"
)

// List calls do for every file of the tree, symbolic links and submodules
// included, sorted by path byte by byte. The id stands for the content: equal
// ids are equal contents, and ReadBlobs takes it (not a submodule's). An error
// of do ends the listing and is returned. ErrUnknownCommit when the
// repository lacks the commit.
func (t *Tree) List(ctx context.Context, do func(path string, mode fs.FileMode, id string) error) error {
	if err := t.repo.requireCommits(ctx, t.sha); err != nil {
		return err
	}
	return t.repo.engine.listFiles(ctx, t.sha, "", func(e FileEntry) error { return do(e.Path, e.Mode.FS(), e.Blob) })
}

func (p *programs) listFiles(ctx context.Context, commit, path string, do func(FileEntry) error) error {
	ctx, cancel := context.WithTimeout(ctx, localTimeout)
	defer cancel()
	args := []string{"ls-tree", "-r", "-z", "--full-tree", commit, "--"}
	if path != "" {
		args = append(args, path)
	}
	c := p.gitCommand(args...)
	c.MaxStdout = 0 // piped
	git, err := proc.Start(ctx, c)
	if err != nil {
		return err
	}
	defer git.End()
	buf := make([]byte, 0, 1<<20)
	for {
		n, err := git.Stdout.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		// One string for the paths of many lines.
		end := bytes.LastIndexByte(buf, 0) + 1
		text := string(buf[:end])
		buf = append(buf[:0], buf[end:]...)
		for text != "" {
			var line string
			line, text, _ = strings.Cut(text, "\x00")
			e, err := parseFileEntry(line)
			if err != nil {
				return fmt.Errorf("list the files of %s: %w", commit, err)
			}
			if err := do(e); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			if err := git.Wait(); err != nil {
				return p.localError("list the files of "+commit, err)
			}
			return nil
		case err != nil:
			return fmt.Errorf("list the files of %s: %w", commit, errors.Join(ctx.Err(), err))
		case len(buf) == cap(buf):
			return fmt.Errorf("list the files of %s: a path of more than %d bytes", commit, cap(buf))
		}
	}
}

// ReadBlobs reads many contents in one go and calls do for each, in the order of ids. do gets the
// bytes, which are its to keep, or ErrTooLarge when there are more than limit of them. An error of
// do ends the reading and is returned. An id that the repository lacks is ErrCorrupt.
func (t *Tree) ReadBlobs(ctx context.Context, ids []string, limit int64, do func(i int, data []byte, err error) error) error {
	if len(ids) == 0 {
		return nil
	}
	for _, id := range ids {
		if err := checkSHA(id); err != nil {
			return err
		}
	}
	err := t.repo.engine.readBlobs(ctx, t.sha, ids, limit, do)
	var missing *missingObjectError
	if !errors.As(err, &missing) {
		return err
	}
	if _, err := t.readRequired(missing.id); err != nil {
		return err // finds out why
	}
	// It is there for another program: nobody may take what wasn't read for nothing.
	return &Error{Op: "read object " + missing.id, Err: errMissing}
}

// missingObjectError says which of many objects isn't there.
type missingObjectError struct{ id string }

func (m *missingObjectError) Error() string { return "object " + m.id + " is missing" }

func (p *programs) readBlobs(ctx context.Context, commit string, ids []string, limit int64,
	do func(i int, data []byte, err error) error) error {
	ctx, cancel := context.WithTimeout(ctx, localTimeout)
	defer cancel()
	c := p.gitCommand("cat-file", "--batch", "--buffer")
	c.MaxStdout = 0 // piped
	c.Limits = proc.Limits{Data: p.limits().Data}
	git, err := proc.Start(ctx, c)
	if err != nil {
		return err
	}
	defer git.End()
	writeDone := make(chan error, 1)
	go func() { writeDone <- writeIDs(git.Stdin, ids) }()
	out := bufio.NewReaderSize(git.Stdout, 256<<10)
	for i, id := range ids {
		data, err := nextBlob(out, id, limit)
		if err != nil && !errors.Is(err, ErrTooLarge) {
			return explainBulkError(ctx, git, commit, id, err)
		}
		if err := do(i, data, err); err != nil {
			return err
		}
	}
	return <-writeDone
}

// writeIDs writes one id a line and closes the input, so that git answers at once.
func writeIDs(stdin io.WriteCloser, ids []string) error {
	w := bufio.NewWriter(stdin)
	for _, id := range ids {
		_, _ = w.WriteString(id) // Flush says what went wrong
		_ = w.WriteByte('\n')
	}
	return errors.Join(w.Flush(), stdin.Close())
}

func nextBlob(out *bufio.Reader, id string, limit int64) ([]byte, error) {
	o, err := readHeader(out, id)
	if err != nil {
		return nil, err
	}
	if o.size > limit {
		if _, err := io.CopyN(io.Discard, out, o.size+1); err != nil {
			return nil, err
		}
		return nil, tooLargeError(o.size, limit)
	}
	return readContent(out, o.size)
}

// explainBulkError says why a bulk read ended early: the context, a missing
// object, or git's own words.
func explainBulkError(ctx context.Context, git *proc.Process, commit, id string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("read files of %s: %w", commit, ctx.Err())
	}
	if errors.Is(err, errMissing) {
		return &missingObjectError{id}
	}
	git.Kill()
	werr := git.Wait()
	e := &Error{Op: "read object " + id, Err: errors.Join(err, werr)}
	if maybeDamaged(werr) {
		e.Kind = ErrCorrupt
	}
	return e
}
