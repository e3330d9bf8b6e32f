//go:build unix

package doctor

import "golang.org/x/sys/unix"

func freeBytes(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // their types differ by system
}

func mayWrite(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
