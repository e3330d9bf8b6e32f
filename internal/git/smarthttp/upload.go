package smarthttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
)

// delimiter stands between a command's capabilities and its arguments.
const delimiter = "0001"

// command is a request of version 2.
func command(name string, arguments ...string) []byte {
	var b bytes.Buffer
	e := pktline.NewEncoder(&b)
	encode(e, "command="+name, "agent="+agent, "object-format=sha1")
	b.WriteString(delimiter)
	encode(e, arguments...)
	if err := e.Flush(); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}

func encode(e *pktline.Encoder, lines ...string) {
	for _, line := range lines {
		if err := e.EncodeString(line + "\n"); err != nil {
			panic(err) // only a line of over 64 KiB is refused: names and ids are checked before
		}
	}
}

// Refs are the refs whose names start with one of the prefixes, and what each points to: full
// ids in lower case by full names. A repository without any has none.
func (c *Client) Refs(ctx context.Context, who Credentials, prefixes ...string) (map[string]string, error) {
	arguments := make([]string, len(prefixes))
	for i, p := range prefixes {
		arguments[i] = "ref-prefix " + p
	}
	answer, err := c.post(ctx, uploadPack, who, true, command("ls-refs", arguments...))
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	limited := &io.LimitedReader{R: answer, N: maxAnswer}
	refs := map[string]string{}
	lines := pktline.NewScanner(limited)
	for lines.Scan() {
		line := lines.Bytes()
		if len(line) == 0 {
			return refs, nil
		}
		id, name, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		name, _, _ = strings.Cut(name, " ") // attributes, which weren't asked for
		switch {
		case id == "unborn":
		case !ok || !isID(id) || !isRefName(name):
			return nil, fmt.Errorf("%w: a line of refs is %q", ErrNotSpoken, clip(string(line)))
		// a prefix is a wish, which a server needn't heed
		case slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }):
			refs[name] = id
		}
	}
	if limited.N == maxAnswer && lines.Err() == nil { // as a server without version 2 answers
		return nil, fmt.Errorf("%w: it is empty", ErrNotSpoken)
	}
	return nil, scanError(lines.Err(), limited)
}

// Pack has the server send the objects of commits that a mirror with other commits lacks, as a thin
// pack, and gives it to take while it arrives. take's result comes back as it is; it must have read
// all of the pack.
func (c *Client) Pack(ctx context.Context, who Credentials, wants, haves []string, take func(pack io.Reader) error) error {
	arguments := []string{"thin-pack", "no-progress", "ofs-delta"}
	for _, id := range wants {
		arguments = append(arguments, "want "+id)
	}
	for _, id := range haves {
		arguments = append(arguments, "have "+id)
	}
	answer, err := c.post(ctx, uploadPack, who, true, command("fetch", append(arguments, "done")...))
	if err != nil {
		return err
	}
	defer answer.Close()
	lines := pktline.NewScanner(answer)
	if !lines.Scan() {
		return scanError(lines.Err(), nil)
	}
	if section := string(lines.Bytes()); section != "packfile\n" {
		return fmt.Errorf("%w: it begins with %q", ErrNotSpoken, clip(section))
	}
	return take(&packReader{sideband.NewDemuxer(sideband.Sideband64k, answer)})
}

// packReader is a pack out of the sideband that it comes in.
type packReader struct{ band *sideband.Demuxer }

func (p *packReader) Read(b []byte) (int, error) {
	n, err := p.band.Read(b)
	if err != nil && err != io.EOF {
		err = scanError(err, nil)
	}
	return n, err
}

// scanError says why no further line came.
func scanError(err error, limited *io.LimitedReader) error {
	var refused *pktline.ErrorLine
	switch {
	case limited != nil && limited.N <= 0:
		return fmt.Errorf("%w: over %d MiB", ErrTooLarge, maxAnswer>>20)
	case errors.As(err, &refused):
		return &RefusedError{clip(refused.Text)}
	case errors.Is(err, pktline.ErrInvalidPktLen):
		return fmt.Errorf("%w: %w", ErrNotSpoken, err)
	case err == nil:
		return io.ErrUnexpectedEOF
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errStalled), errors.Is(err, context.Canceled),
		errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return errors.New(clip(err.Error())) // it may repeat what the server sent
}

// isID says that a text is an object's full id.
func isID(s string) bool {
	return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == ""
}

// isRefName says that a text can be the name of a ref: nothing in it ends a line or a field.
func isRefName(s string) bool {
	return strings.HasPrefix(s, "refs/") && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f })
}
