package smarthttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
)

// noID stands for nothing where an id is due.
const noID = "0000000000000000000000000000000000000000"

// missingObjects is why a commit isn't taken whose history the server doesn't have whole.
const missingObjects = "missing necessary objects"

// maxMessages bounds what is kept of what a server says besides.
const maxMessages = 8 << 10

// Update moves one ref, if it is where it is believed to be.
type Update struct {
	Ref      string // full name
	Old, New string // full ids; empty: there is none
}

// RejectedError is a push that the server took and didn't carry out.
type RejectedError struct {
	Unpack   bool   // what the pack brings can't be stored as it is, whatever the ref
	Reason   string // the protocol's: "failed to update ref", "pre-receive hook declined"
	Messages string // what its hooks said; empty: nothing
}

func (r *RejectedError) Error() string { return "the server refuses the push: " + r.Reason }

// Push moves a ref; pack has what the new commit brings and is empty for a removal. The server
// compares the ref with u.Old when it moves it, as with a lease. RejectedError: it isn't there,
// or the server refuses. With any other error than StatusError it isn't known whether it arrived.
func (c *Client) Push(ctx context.Context, who Credentials, u Update, pack []byte) error {
	var body bytes.Buffer
	e := pktline.NewEncoder(&body)
	line := idOrNone(u.Old) + " " + idOrNone(u.New) + " " + u.Ref + "\x00 report-status side-band-64k object-format=sha1 agent=" + agent
	if err := errors.Join(e.EncodeString(line), e.Flush()); err != nil {
		return err
	}
	body.Write(pack)
	answer, err := c.post(ctx, receivePack, who, false, body.Bytes())
	if err != nil {
		return err
	}
	defer answer.Close()
	band := sideband.NewDemuxer(sideband.Sideband64k, io.LimitReader(answer, maxAnswer))
	messages := &firstBytes{}
	band.Progress = messages
	report := packp.NewReportStatus()
	if err := report.Decode(band); err != nil {
		return fmt.Errorf("read how the push ended: %w", scanError(err, nil))
	}
	reject := func(unpack bool, reason string) error {
		return &RejectedError{Unpack: unpack, Reason: clip(reason), Messages: clip(strings.TrimSpace(messages.String()))}
	}
	if report.UnpackStatus != "ok" {
		return reject(true, report.UnpackStatus)
	}
	for _, s := range report.CommandStatuses {
		if s.ReferenceName.String() != u.Ref {
			continue
		}
		if s.Error() != nil {
			return reject(s.Status == missingObjects, s.Status)
		}
		return nil
	}
	return fmt.Errorf("%w: it says nothing of %s", ErrNotSpoken, u.Ref)
}

func idOrNone(id string) string {
	if id == "" {
		return noID
	}
	return id
}

// firstBytes keeps the beginning of what is written.
type firstBytes struct{ bytes.Buffer }

func (f *firstBytes) Write(p []byte) (int, error) {
	f.Buffer.Write(p[:min(len(p), maxMessages-f.Len())])
	return len(p), nil
}
