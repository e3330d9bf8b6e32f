package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/wording"
)

// maxInFlight is how many files are asked for before the first has come.
const maxInFlight = 64

// List calls do for every file, symbolic link and submodule (an irregular
// file) of the tree, sorted by path byte by byte. The id is for ReadBlobs, and
// stands for one path of one tree. An error of do ends the listing.
func (r *remoteTree) List(ctx context.Context, do func(path string, mode fs.FileMode, id string) error) error {
	type file struct {
		path string
		mode fs.FileMode
	}
	var all []file
	folders := []string{"."}
	for len(folders) > 0 {
		dir := folders[len(folders)-1]
		folders = folders[:len(folders)-1]
		entries, err := r.listFolder(dir)
		if err != nil {
			return pathError("list", dir, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, e := range entries {
			name := joinName(dir, e.name)
			if e.mode == fs.ModeDir {
				folders = append(folders, name)
			} else {
				all = append(all, file{name, e.mode})
			}
		}
	}
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.path, b.path) })
	for _, f := range all {
		letter := frameFile
		if f.mode == fs.ModeSymlink {
			letter = frameLink
		}
		if err := do(f.path, f.mode, string(letter)+f.path); err != nil {
			return err
		}
	}
	return nil
}

// ReadBlobs reads files, and the texts of links, by their ids and calls do for each in that order.
// do gets the bytes, or the reason why there are none: the file can't be read, or has more than
// limit bytes. Many are asked for at once. An error of do ends the reading.
func (r *remoteTree) ReadBlobs(ctx context.Context, ids []string, limit int64, do func(i int, data []byte, err error) error) error {
	inFlight := make([]<-chan reply, 0, maxInFlight)
	next := 0
	for i := range ids {
		for next < len(ids) && len(inFlight) < maxInFlight {
			id := ids[next]
			if id == "" || id[0] != frameFile && id[0] != frameLink || !validName(id[1:]) {
				return fmt.Errorf("reading files: %q is no id of a listing", wording.Clip(id, 80))
			}
			answer, err := r.conn.startRequest(id[0], r.tree, id[1:])
			if err != nil {
				return err
			}
			inFlight, next = append(inFlight, answer), next+1
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		data, err := r.conn.awaitReply(inFlight[0])
		inFlight = inFlight[1:]
		switch {
		case errors.Is(err, errParentExited), errors.Is(err, errProtocol):
			return err
		case err != nil:
			err = pathError("read", ids[i][1:], err)
		case int64(len(data)) > limit:
			data, err = nil, pathError("read", ids[i][1:], fmt.Errorf("its %d bytes are more than the %d that are read", len(data), limit))
		}
		if err := do(i, data, err); err != nil {
			return err
		}
	}
	return nil
}
