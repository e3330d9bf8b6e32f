//go:build unix

package cli

import (
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/fieldedit"
)

func ownerOf(info fs.FileInfo) [2]uint32 {
	s := info.Sys().(*syscall.Stat_t)
	return [2]uint32{s.Uid, s.Gid}
}

// TestSetReadsNoPipe doesn't wait for somebody who writes.
func TestSetReadsNoPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "values.yaml")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	op, err := fieldedit.ParseOp("a=2")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { _, _, err := setFile(pipe, []fieldedit.Op{op}, false); done <- err }()
	select {
	case err := <-done:
		if err == nil {
			t.Error("a pipe was edited")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it waits for a pipe")
	}
}
