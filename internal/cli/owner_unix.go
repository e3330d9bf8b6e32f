//go:build unix

package cli

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file the owner and the group of another, as far as this user may. A build that
// runs as root must not leave a file that its next step can't write.
func keepOwner(f *os.File, as fs.FileInfo) {
	want, ok := as.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	if f.Chown(int(want.Uid), int(want.Gid)) != nil {
		_ = f.Chown(-1, int(want.Gid)) // not even that: it stays ours
	}
}
