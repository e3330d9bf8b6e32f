package main

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// mainPackage is what is packed.
const mainPackage = "github.com/liftlock/liftlock/cmd/liftlock"

// program is a built one.
type program struct {
	platform string // as linux-amd64
	content  []byte
	info     *debug.BuildInfo
}

func (p program) system() string {
	system, _, _ := strings.Cut(p.platform, "-")
	return system
}

func (p program) fileName() string {
	if p.system() == "windows" {
		return "liftlock.exe"
	}
	return "liftlock"
}

// readPrograms reads what was built, each of which must be what its folder's name says.
func readPrograms(r release) ([]program, error) {
	folders, err := os.ReadDir(r.programs)
	if err != nil {
		return nil, err
	}
	var out []program
	for _, f := range folders {
		p := program{platform: f.Name()}
		if p.content, err = os.ReadFile(filepath.Join(r.programs, p.platform, p.fileName())); err != nil {
			return nil, err
		}
		if p.info, err = buildinfo.Read(bytes.NewReader(p.content)); err == nil {
			err = checkProgram(p, r)
		}
		if err != nil {
			return nil, fmt.Errorf("the program for %s: %w", p.platform, err)
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no program was built into %s", r.programs)
	}
	return out, nil
}

// checkProgram holds that a program is for its platform and from this commit. What Go itself
// notes in it has no version: that comes by -X, and Go leaves the linker's flags out where
// -trimpath is given. So the texts themselves are looked for.
func checkProgram(p program, r release) error {
	settings := map[string]string{}
	for _, s := range p.info.Settings {
		settings[s.Key] = s.Value
	}
	if p.info.Path != mainPackage {
		return fmt.Errorf("it is %s", p.info.Path)
	}
	if built := settings["GOOS"] + "-" + settings["GOARCH"]; built != p.platform {
		return fmt.Errorf("it is for %s", built)
	}
	if settings["CGO_ENABLED"] != "0" {
		return errors.New("it may need the system's C library: build it with CGO_ENABLED=0")
	}
	if settings["-trimpath"] != "true" {
		return errors.New("it has the paths of where it was built: build it with -trimpath")
	}
	for _, text := range []string{r.version, r.commit} {
		if text == "" || !bytes.Contains(p.content, []byte(text)) {
			return fmt.Errorf("it doesn't say that it is version %q of commit %q", r.version, r.commit)
		}
	}
	return nil
}
