package evaluate

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/wording"
)

// A worker's answer about one rendering begins with one of these.
const (
	saidManifests    byte = 'm' // objects, reads, notes
	saidUnrenderable byte = 'u' // a render.Unrenderable as JSON
	saidLimit        byte = 'l' // the text of an error that wraps render.ErrLimit
	saidError        byte = 'e' // the text of another
)

// maxObjectValues bounds the values of all objects of a target, where each member or element is
// one. A few bytes can be a large Go value, and the server's own process compares manifests.
const maxObjectValues = 1_000_000

// maxRenderError bounds the text of an error; render's own are shorter.
const maxRenderError = 8 << 10

// appendOutcome writes what came of a rendering. The digest isn't sent: the reader makes it.
func appendOutcome(b []byte, m *render.Manifests, err error) []byte {
	var cannot *render.Unrenderable
	switch {
	case err == nil:
		return appendManifests(append(b, saidManifests), m)
	case errors.As(err, &cannot):
		if text, err := json.Marshal(cannot); err == nil {
			return append(append(b, saidUnrenderable), text...)
		}
	case errors.Is(err, render.ErrLimit):
		return append(append(b, saidLimit), err.Error()...)
	}
	return append(append(b, saidError), err.Error()...)
}

// renderError is an error of a rendering that happened in a worker.
type renderError struct {
	text string
	kind error // render.ErrLimit or nil
}

func (r *renderError) Error() string { return r.text }
func (r *renderError) Unwrap() error { return r.kind }

// readOutcome reads what appendOutcome wrote, as far as it can be meant. The error says why
// it can't.
func readOutcome(said []byte) (render.Outcome, error) {
	if len(said) == 0 {
		return render.Outcome{}, errors.New("its answer is empty")
	}
	letter, rest := said[0], said[1:]
	switch letter {
	case saidManifests:
		m, err := readManifests(rest)
		return render.Outcome{Manifests: m}, err
	case saidUnrenderable:
		u := &render.Unrenderable{}
		if err := json.Unmarshal(rest, u); err != nil {
			return render.Outcome{}, fmt.Errorf("its answer can't be read: %s", wording.Clip(err.Error(), maxRenderedWhy))
		}
		return render.Outcome{Err: u}, nil
	case saidLimit, saidError:
		e := &renderError{text: wording.Clip(string(rest), maxRenderError)}
		if letter == saidLimit {
			e.kind = render.ErrLimit
		}
		return render.Outcome{Err: e}, nil
	}
	return render.Outcome{}, errors.New("its answer begins with an unknown letter")
}

func appendText[T string | []byte | json.RawMessage](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendList(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendText(b, s)
	}
	return b
}

func appendManifests(b []byte, m *render.Manifests) []byte {
	size := 0
	for i := range m.Objects {
		size += 100 + len(m.Objects[i].JSON)
	}
	b = slices.Grow(b, size)
	b = binary.AppendUvarint(b, uint64(len(m.Objects)))
	for i := range m.Objects {
		o := &m.Objects[i]
		for _, s := range []string{o.APIVersion, o.Kind, o.Namespace, o.Name} {
			b = appendText(b, s)
		}
		b = appendText(b, o.JSON)
	}
	b = appendList(b, m.Notes)
	return appendReads(b, &m.Reads)
}

func appendReads(b []byte, r *render.ReadSet) []byte {
	for _, list := range [][]string{r.Files, r.Links, r.Folders, r.Absent} {
		b = appendList(b, list)
	}
	flag := byte(0)
	if r.Revision {
		flag = 1
	}
	b = append(b, flag)
	b = binary.AppendUvarint(b, uint64(len(r.Branches)))
	for _, branch := range slices.Sorted(maps.Keys(r.Branches)) {
		below := r.Branches[branch]
		b = appendReads(appendText(b, branch), &below)
	}
	return b
}

// wordReader takes manifests apart; after a first mistake everything is empty.
type wordReader struct {
	rest []byte
	err  error
}

var errCutOff = errors.New("its answer is cut off")

func (w *wordReader) readNumber() int {
	n, used := binary.Uvarint(w.rest)
	if used <= 0 || n > uint64(len(w.rest)) { // whatever is counted takes at least a byte each
		w.err, w.rest = errCutOff, nil
		return 0
	}
	w.rest = w.rest[used:]
	return int(n)
}

func (w *wordReader) readBytes() []byte {
	n := w.readNumber()
	if n > len(w.rest) {
		w.err, w.rest = errCutOff, nil
		return nil
	}
	out := w.rest[:n:n]
	w.rest = w.rest[n:]
	return out
}

func (w *wordReader) readText() string { return string(w.readBytes()) }

func (w *wordReader) readList() []string {
	var out []string
	for n := w.readNumber(); n > 0 && w.err == nil; n-- {
		out = append(out, w.readText())
	}
	return out
}

func (w *wordReader) readFlag() bool {
	if len(w.rest) == 0 {
		w.err = errCutOff
		return false
	}
	flag := w.rest[0] == 1
	w.rest = w.rest[1:]
	return flag
}

func readManifests(said []byte) (*render.Manifests, error) {
	r := &wordReader{rest: said}
	m := &render.Manifests{}
	n := r.readNumber()
	m.Objects = make([]render.Object, 0, min(n, 1000))
	values := 0
	for ; n > 0 && r.err == nil; n-- {
		o := render.Object{APIVersion: r.readText(), Kind: r.readText(), Namespace: r.readText(), Name: r.readText()}
		text := r.readBytes()
		if r.err != nil {
			break
		}
		if !json.Valid(text) {
			return nil, errors.New("its answer has an object that is no JSON")
		}
		if values += countSeparators(text); values > maxObjectValues {
			return nil, fmt.Errorf("its manifests have more than %d values", maxObjectValues)
		}
		o.JSON = bytes.Clone(text)
		m.Objects = append(m.Objects, o)
	}
	m.Notes = r.readList()
	m.Reads = r.readReads(0)
	if r.err == nil && len(r.rest) > 0 {
		r.err = errors.New("its answer goes on after its end")
	}
	if r.err != nil {
		return nil, r.err
	}
	m.Digest = render.DigestObjects(m.Objects)
	return m, nil
}

func (w *wordReader) readReads(depth int) render.ReadSet {
	out := render.ReadSet{Files: w.readList(), Links: w.readList(), Folders: w.readList(), Absent: w.readList(), Revision: w.readFlag()}
	n := w.readNumber()
	if n > 0 && depth > 0 {
		w.err = errors.New("its answer has branches of branches")
	}
	for ; n > 0 && w.err == nil; n-- {
		if out.Branches == nil {
			out.Branches = map[string]render.ReadSet{}
		}
		branch := w.readText()
		out.Branches[branch] = w.readReads(depth + 1)
	}
	return out
}

// countSeparators is about how many values a JSON text has, or more.
func countSeparators(text []byte) int {
	return bytes.Count(text, []byte{','}) + bytes.Count(text, []byte{'{'}) + bytes.Count(text, []byte{'['})
}
