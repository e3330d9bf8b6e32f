package history

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/strictyaml"
)

// StateBranch is the orphan branch that keeps holds on more than a pull request:
// one small file each, readable by people, found again when the store is lost.
const StateBranch = "liftlock-state"

// HoldFile is the content of a hold's file.
type HoldFile struct {
	By     string `yaml:"by"`
	Reason string `yaml:"reason"`
	At     string `yaml:"at"` // RFC 3339

	Reverts bool   `yaml:"reverts,omitempty"` // reverts stand still too
	Via     string `yaml:"via,omitempty"`     // api: By is the name of one of its tokens; empty: somebody on the forge
	Until   string `yaml:"until,omitempty"`   // RFC 3339; empty: until somebody lifts it
}

// decodeHold reads a hold's file. One that can't be read still holds, reverts too, and
// one whose end can't be read has none.
func decodeHold(file string, data []byte) (h promotion.Hold, via string) {
	var f HoldFile
	if err := strictyaml.Decode(file, data, &f); err != nil {
		return promotion.Hold{Reason: "its file can't be read: " + err.Error(), Reverts: true}, ""
	}
	h = promotion.Hold{By: f.By, Reason: f.Reason, Reverts: f.Reverts}
	h.At, _ = time.Parse(time.RFC3339, f.At) // zero where it can't be read
	h.Until, _ = time.Parse(time.RFC3339, f.Until)
	return h, f.Via
}

// ReadHold reads a hold's file, and whether its author is the name of one of the API's
// tokens (via is api then). False where there is none.
func ReadHold(tree fs.FS, file string) (h promotion.Hold, via string, ok bool, err error) {
	data, err := fs.ReadFile(tree, file)
	if errors.Is(err, fs.ErrNotExist) {
		return h, "", false, nil
	}
	if err != nil {
		return h, "", false, fmt.Errorf("read %s on %s: %w", file, StateBranch, err)
	}
	h, via = decodeHold(file, data)
	return h, via, true, nil
}

// HoldPath is where a hold's file lies on the state branch.
func HoldPath(pipeline, scope, name string) string {
	if scope == "pipeline" {
		return path.Join("holds", pipeline, "pipeline.yaml")
	}
	return path.Join("holds", pipeline, scope, name+".yaml")
}

// Holds reads the holds that concern a component out of the state branch's files.
// A hold's file that can't be read still holds: what restrains is never dropped
// for being unclear. The error is one of reading the tree.
func Holds(tree fs.FS, pipeline, component string) ([]promotion.Hold, error) {
	var out []promotion.Hold
	add := func(scope, env, file string) error {
		h, _, ok, err := ReadHold(tree, file)
		if err != nil || !ok {
			return err
		}
		h.Scope, h.Environment = scope, env
		out = append(out, h)
		return nil
	}
	err := cmp.Or(add("pipeline", "", HoldPath(pipeline, "pipeline", "")), add("component", "", HoldPath(pipeline, "component", component)))
	if err != nil {
		return nil, err
	}
	envs, err := fs.ReadDir(tree, path.Join("holds", pipeline, "environment"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the held environments on %s: %w", StateBranch, err)
	}
	for _, e := range envs {
		if name, ok := strings.CutSuffix(e.Name(), ".yaml"); ok && name != "" {
			if err := add("environment", name, HoldPath(pipeline, "environment", name)); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
