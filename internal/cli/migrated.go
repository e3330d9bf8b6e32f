package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/cli/checkout"
)

// Bounds of a folder of manifests, far above any real one's.
const (
	maxFolderFiles = 20_000
	maxFolderBytes = 256 << 20
)

// readMigrated reads the manifests of --from: files, folders and standard input.
func readMigrated(cmd *cobra.Command, names []string) ([]checkout.File, error) {
	if len(names) == 0 {
		return nil, nil
	}
	out := []checkout.File{}
	for i, name := range names {
		if name == "-" && slices.Contains(names[:i], "-") {
			return nil, fmt.Errorf("--from -: standard input can be read once")
		}
		var found []checkout.File
		var err error
		if info, statErr := os.Stat(name); statErr == nil && info.IsDir() {
			found, err = readFolder(name)
		} else {
			found = make([]checkout.File, 1)
			found[0], err = readManifest(cmd, name)
		}
		if err != nil {
			return nil, fmt.Errorf("--from: %w", err)
		}
		out = append(out, found...)
	}
	return out, nil
}

// readFolder reads the manifests below a folder, but for hidden folders and files that are too large to be one.
func readFolder(dir string) ([]checkout.File, error) {
	var out []checkout.File
	bytes := 0
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != dir && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case !entry.Type().IsRegular() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)):
			return nil
		}
		if info, err := entry.Info(); err != nil || info.Size() > maxManifest {
			return err
		}
		data, err := readBounded(name, maxManifest)
		if err != nil {
			return err
		}
		bytes += len(data)
		if out = append(out, checkout.File{Name: name, Data: data, InFolder: true}); len(out) > maxFolderFiles || bytes > maxFolderBytes {
			return fmt.Errorf("%s has more than %d manifests, or more than %d MiB of them: name the folders in it that count", dir,
				maxFolderFiles, maxFolderBytes>>20)
		}
		return nil
	})
	return out, err
}
