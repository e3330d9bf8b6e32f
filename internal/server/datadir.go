package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.uber.org/zap"
)

// ownerOnly is the data directory's mode: it holds the database and the content
// of every repository.
const ownerOnly = 0o700

// makeDataDir makes the data directory and lets only the owner into it, also where it was there
// before with a wider mode. A folder that belongs to another account, such as the root of a volume
// with a group of its own, keeps its mode. Then its content is closed, and the log says so.
func makeDataDir(dir string, log *zap.Logger) error {
	for _, d := range []string{dir, filepath.Join(dir, mirrorsFolder)} {
		if err := os.MkdirAll(d, ownerOnly); err != nil {
			return fmt.Errorf("make the data directory: %w; set dataDir in the server's file to a folder that this user may write to", err)
		}
		info, err := os.Stat(d)
		if err != nil {
			return fmt.Errorf("look at the data directory: %w", err)
		}
		if info.Mode().Perm()&^ownerOnly == 0 {
			continue
		}
		err = os.Chmod(d, ownerOnly)
		if errors.Is(err, fs.ErrPermission) {
			log.Warn("the data directory belongs to another user and others may list it; what Liftlock makes in it is closed to them",
				zap.String("folder", d), zap.Stringer("mode", info.Mode().Perm()))
		} else if err != nil {
			return fmt.Errorf("keep others out of the data directory: %w", err)
		}
	}
	return nil
}
