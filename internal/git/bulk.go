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
	ctx, cancel := context.WithTimeout(ctx, localTimeout)
	defer cancel()
	c := t.repo.gitCommand("ls-tree", "-r", "-z", "--full-tree", t.sha)
	c.MaxStdout = 0 // piped
	p, err := proc.Start(ctx, c)
	if err != nil {
		return err
	}
	defer p.End()
	buf := make([]byte, 0, 1<<20)
	for {
		n, err := p.Stdout.Read(buf[len(buf):cap(buf)])
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
				return fmt.Errorf("list the files of %s: %w", t.sha, err)
			}
			if err := do(e.Path, e.Mode.FS(), e.Blob); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			if err := p.Wait(); err != nil {
				return t.repo.localError("list the files of "+t.sha, err)
			}
			return nil
		case err != nil:
			return fmt.Errorf("list the files of %s: %w", t.sha, errors.Join(ctx.Err(), err))
		case len(buf) == cap(buf):
			return fmt.Errorf("list the files of %s: a path of more than %d bytes", t.sha, cap(buf))
		}
	}
}

// ReadBlobs reads many contents in one go and calls do for each, in the order
// of ids: with the bytes, which are do's to keep, or with ErrTooLarge when
// there are more than limit of them. An error of do ends the reading and is
// returned. An id that the repository lacks is ErrCorrupt.
func (t *Tree) ReadBlobs(ctx context.Context, ids []string, limit int64, do func(i int, data []byte, err error) error) error {
	if len(ids) == 0 {
		return nil
	}
	for _, id := range ids {
		if err := checkSHA(id); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, localTimeout)
	defer cancel()
	c := t.repo.gitCommand("cat-file", "--batch", "--buffer")
	c.MaxStdout = 0 // piped
	p, err := proc.Start(ctx, c)
	if err != nil {
		return err
	}
	defer p.End()
	writeDone := make(chan error, 1)
	go func() { writeDone <- writeIDs(p.Stdin, ids) }()
	out := bufio.NewReaderSize(p.Stdout, 256<<10)
	for i, id := range ids {
		data, err := nextBlob(out, id, limit)
		if err != nil && !errors.Is(err, ErrTooLarge) {
			return t.bulkError(ctx, p, id, err)
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
		return nil, fmt.Errorf("%w: its %d bytes are more than the %d that are read", ErrTooLarge, o.size, limit)
	}
	return readContent(out, o.size)
}

// bulkError says why a bulk read ended early: the context, a missing object,
// or git's own words.
func (t *Tree) bulkError(ctx context.Context, p *proc.Process, id string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("read files of %s: %w", t.sha, ctx.Err())
	}
	if errors.Is(err, errMissing) {
		if _, err := t.readRequired(id); err != nil {
			return err // finds out why
		}
		// It is there for another program: nobody may take what wasn't read for nothing.
		return &Error{Op: "read object " + id, Err: errMissing}
	}
	p.Kill()
	werr := p.Wait()
	e := &Error{Op: "read object " + id, Err: errors.Join(err, werr)}
	if maybeDamaged(werr) {
		e.Kind = ErrCorrupt
	}
	return e
}
