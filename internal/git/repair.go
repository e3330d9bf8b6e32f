package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.uber.org/zap"
)

// leftoverPattern are what git's programs leave outside refs/ when they are killed.
// Nobody else works here, so nobody needs them. Below refs/ a branch may have
// such a name; there only ".lock" can't be one's end.
var leftoverPattern = regexp.MustCompile(`\.lock$|^packed-refs\.new$|^pack-.*\.keep$|^tmp_|^gc\.pid|^fast_import_crash_|^\.tmp-|^incoming-`)

// looseRefPattern is what a file below refs/ holds when it was written completely.
var looseRefPattern = regexp.MustCompile(`^([0-9a-f]{40}|ref: refs/[^\n]+)\n?$`)

// repair removes what killed processes left, and rewrites the configuration.
// It must not run while a git command writes to the mirror.
func (mp *mirrorPrograms) repair() error {
	if err := mp.removeLeftovers(); err != nil {
		return err
	}
	return mp.writeConfig(mp.dir)
}

// writeConfig makes a mirror's configuration files as they should be.
func (mp *mirrorPrograms) writeConfig(dir string) error {
	for file, text := range map[string]string{"config": mirrorConfig, userConfig: mp.remote.userConfigText()} {
		name := filepath.Join(dir, file)
		if have, err := os.ReadFile(name); err == nil && string(have) == text {
			continue
		}
		if err := os.WriteFile(name+".lock", []byte(text), 0o600); err != nil {
			return err
		}
		if err := os.Rename(name+".lock", name); err != nil {
			return err
		}
	}
	return nil
}

// removeLeftovers removes stale locks, unfinished files and references that
// were cut off by a crash.
func (mp *mirrorPrograms) removeLeftovers() error {
	refs := filepath.Join(mp.dir, "refs")
	return filepath.WalkDir(mp.dir, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if name == mp.dir {
			return nil
		}
		inRefs := strings.HasPrefix(name, refs+string(filepath.Separator))
		isLock := inRefs && strings.HasSuffix(name, ".lock")
		isLeftover := !inRefs && leftoverPattern.MatchString(d.Name()) && !isFetchedKeep(name)
		if isLock || isLeftover {
			mp.log.Info("removing what a killed git left", zap.String("file", name))
			if err := os.RemoveAll(name); err != nil {
				return err
			}
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if inRefs && !d.IsDir() {
			return mp.removeBrokenRef(name)
		}
		return nil
	})
}

func (mp *mirrorPrograms) removeBrokenRef(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if looseRefPattern.Match(data) {
		return nil
	}
	mp.log.Warn("removing a reference that was not written completely", zap.String("file", name))
	return os.Remove(name)
}
