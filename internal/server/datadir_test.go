package server

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/zap"
)

func TestDataDirectoryIsTheOwnersOnly(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(dir string) error{
		"new":                   func(string) error { return nil },
		"made with wider modes": func(dir string) error { return os.MkdirAll(filepath.Join(dir, mirrorsFolder), 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if err := prepare(dir); err != nil {
				t.Fatal(err)
			}
			if err := makeDataDir(dir, zap.NewNop()); err != nil {
				t.Fatal(err)
			}
			for _, d := range []string{dir, filepath.Join(dir, mirrorsFolder)} {
				info, err := os.Stat(d)
				if err != nil {
					t.Fatal(err)
				}
				if info.Mode().Perm() != ownerOnly {
					t.Errorf("%s has the mode %o", d, info.Mode().Perm())
				}
			}
		})
	}
}
