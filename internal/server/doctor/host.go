package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/liftlock/liftlock/internal/git"
)

// Host is the machine that Liftlock runs on.
type Host interface {
	// CheckGit gives the version of git; an error where there is none, or one that is too old.
	CheckGit(ctx context.Context) (version string, err error)
	// FreeBytes is how much this user can still write to the file system that a folder is on.
	FreeBytes(dir string) (int64, error)
	// MayWrite is an error where this user can't write to a folder.
	MayWrite(dir string) error
}

// System is this machine. It is only read.
type System struct{}

var _ Host = System{}

// CheckGit implements Host.
func (System) CheckGit(ctx context.Context) (string, error) { return git.InstalledVersion(ctx) }

// FreeBytes implements Host.
func (System) FreeBytes(dir string) (int64, error) { return freeBytes(dir) }

// MayWrite implements Host.
func (System) MayWrite(dir string) error { return mayWrite(dir) }

const (
	// lowDisk is where a warning is due: mirrors grow with the repositories, and a repack needs
	// the room of the largest once more.
	lowDisk = 2 << 30
	// fullDisk is too little for anything: the database's own journal may not find room.
	fullDisk = 200 << 20
)

func (d *doctor) checkHost(ctx context.Context) (found findings) {
	const where = "host"
	dir := d.Config.DataDir
	ctx, cancel := d.limit(ctx)
	defer cancel()
	version, err := d.Host.CheckGit(ctx)
	if err != nil {
		found.add("git-unusable", where, err.Error(), "install git 2.30 or newer and put it in the PATH of the service")
	}
	at := existingFolder(dir)
	free, err := d.Host.FreeBytes(at)
	switch {
	case err != nil:
		found.add("disk-unread", where, fmt.Sprintf("how much room dataDir has can't be read: %v", err),
			"check dataDir in the server's file")
	case free < fullDisk:
		found.add("disk-full", where, fmt.Sprintf("%s has %s left", dir, formatBytes(free)),
			"free some room, or put dataDir onto a larger file system: nothing can be written down")
	case free < lowDisk:
		found.add("disk-low", where, fmt.Sprintf("%s has %s left", dir, formatBytes(free)),
			"give dataDir 2 GiB and twice its largest repository")
	}
	if err := d.Host.MayWrite(at); err != nil {
		found.add("data-dir-closed", where, fmt.Sprintf("%s can't be written to: %v", at, err),
			"give it to the user that the server runs as, or run doctor as that user")
	}
	found.addOK(0, CodeHost, where, fmt.Sprintf("git %s; dataDir %s has %s left", version, dir, formatBytes(free)))
	return found
}

// existingFolder is a folder, or the nearest one above it that is there: serve makes the rest.
func existingFolder(dir string) string {
	for {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return dir
		}
		dir = up
	}
}

// formatBytes is for people: 3.4 GiB.
func formatBytes(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
