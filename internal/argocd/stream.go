package argocd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxObject bounds one object on the wire, in bytes. etcd takes requests of
// 1.5 MiB unless told otherwise; nothing near this is an Application.
const maxObject = 16 << 20

var errTooLarge = fmt.Errorf("an object is larger than %d bytes", maxObject)

// allowance lets through so many bytes until it is renewed.
type allowance struct {
	r    io.Reader
	left int
}

func (a *allowance) Read(p []byte) (int, error) {
	if a.left <= 0 {
		return 0, errTooLarge
	}
	n, err := a.r.Read(p[:min(len(p), a.left)])
	a.left -= n
	return n, err
}

func (a *allowance) renew() { a.left = maxObject }

type listMeta struct {
	ResourceVersion string `json:"resourceVersion"`
	Continue        string `json:"continue"`
}

// readPage reads one page of a list and hands each object to item, whose
// argument is only valid during the call. It holds one object at a time.
func readPage(r io.Reader, item func(raw []byte)) (listMeta, error) {
	src := &allowance{r: r}
	dec := json.NewDecoder(src)
	var meta listMeta
	src.renew()
	if err := expectDelim(dec, '{'); err != nil {
		return meta, err
	}
	var raw json.RawMessage
	for dec.More() {
		src.renew()
		key, err := dec.Token()
		if err != nil {
			return meta, err
		}
		switch key {
		case "metadata":
			err = dec.Decode(&meta)
		case "items":
			err = readItems(dec, src, &raw, item)
		default:
			err = dec.Decode(&raw)
		}
		if err != nil {
			return meta, fmt.Errorf("read the list's %v: %w", key, noEOF(err))
		}
	}
	src.renew()
	if err := expectDelim(dec, '}'); err != nil {
		return meta, err
	}
	if meta.ResourceVersion == "" {
		return meta, errors.New("the list has no resourceVersion")
	}
	return meta, nil
}

func readItems(dec *json.Decoder, src *allowance, raw *json.RawMessage, item func([]byte)) error {
	src.renew()
	open, err := dec.Token()
	if err != nil || open == nil { // null: no items
		return err
	}
	if open != json.Delim('[') {
		return fmt.Errorf("want a list, got %v", open)
	}
	for dec.More() {
		src.renew()
		if err := dec.Decode(raw); err != nil {
			return err
		}
		item(*raw)
	}
	return expectDelim(dec, ']')
}

func expectDelim(dec *json.Decoder, want json.Delim) error {
	got, err := dec.Token()
	if err != nil {
		return noEOF(err)
	}
	if got != want {
		return fmt.Errorf("want %v, got %v", want, got)
	}
	return nil
}

// noEOF tells a cut answer from a complete one.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// watchEvent is one line of a watch.
type watchEvent struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// readEvents hands each event to take until the stream ends (nil) or breaks, or
// take returns an error. The event's object is only valid during the call.
func readEvents(r io.Reader, take func(watchEvent) error) error {
	src := &allowance{r: r}
	dec := json.NewDecoder(src)
	var e watchEvent
	for {
		src.renew()
		e.Type, e.Object = "", e.Object[:0]
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the watch: %w", err)
		}
		if err := take(e); err != nil {
			return err
		}
	}
}
