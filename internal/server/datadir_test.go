package server

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/server/config"
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

// TestMirrorDirs holds that no two repositories share a folder, nor one of them the folder
// that an earlier version gave to another.
func TestMirrorDirs(t *testing.T) {
	t.Parallel()
	s := &Server{o: Options{Config: &config.Config{DataDir: "data"}}}
	if dir, former := s.mirrorDirs("hub:acme/fleet"); dir != filepath.Join("data", "mirrors", "hub_acme_fleet.git") || former != "" {
		t.Errorf("it moved: %q, %q", dir, former)
	}
	if dir, former := s.mirrorDirs("hub:acme/my_fleet"); former != filepath.Join("data", "mirrors", "hub_acme_my_fleet.git") || dir == former {
		t.Errorf("%q, formerly %q", dir, former)
	}
	of := map[string]string{}
	ids := []string{"hub:a_b/c", "hub:a/b_c", "hub_a:b/c", "hub:a/b/c", "hub:a/b-c", "hub:a-b/c", "hub:a_/b", "hub:a/_b", "hub:_/_", "hub_:a/b"}
	for _, id := range ids {
		dir, _ := s.mirrorDirs(id)
		if of[dir] != "" {
			t.Errorf("%s and %s share %s", id, of[dir], dir)
		}
		of[dir] = id
	}
	for _, id := range ids {
		if _, former := s.mirrorDirs(id); former != "" && of[former] != "" {
			t.Errorf("%s would take %s from %s", id, former, of[former])
		}
	}
}
