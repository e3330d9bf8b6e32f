package history

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
	"github.com/liftlock/liftlock/internal/promotion"
)

// StateBranch is the orphan branch that keeps holds on more than a pull request:
// one small file each, readable by people, found again when the store is lost.
const StateBranch = "liftlock-state"

// HoldFile is the content of a hold's file.
type HoldFile struct {
	By     string `yaml:"by"`
	ByID   int64  `yaml:"byID,omitempty"` // of the account By; 0: not known
	Reason string `yaml:"reason"`
	At     string `yaml:"at"` // RFC 3339

	Reverts bool   `yaml:"reverts,omitempty"` // reverts stand still too
	Via     string `yaml:"via,omitempty"`     // api: By is the name of one of its tokens; empty: somebody on the forge
	Subject string `yaml:"subject,omitempty"` // via console: which user By is, as of a promotion.Holding
	Until   string `yaml:"until,omitempty"`   // RFC 3339; empty: until somebody lifts it

	Also []OtherHold `yaml:"also,omitempty"` // what others hold of the same, or who holds reverts too for another time
}

// OtherHold is another hold in the same file.
type OtherHold struct {
	By      string `yaml:"by"`
	ByID    int64  `yaml:"byID,omitempty"`
	Reason  string `yaml:"reason"`
	At      string `yaml:"at"`
	Reverts bool   `yaml:"reverts,omitempty"`
	Via     string `yaml:"via,omitempty"`
	Subject string `yaml:"subject,omitempty"`
	Until   string `yaml:"until,omitempty"`
}

// EncodeHolds is the content of a file with at least one hold.
func EncodeHolds(holds []promotion.Holding) ([]byte, error) {
	var all []OtherHold
	for _, h := range holds {
		o := OtherHold{By: h.By, ByID: h.ByID, Reason: h.Reason, At: h.At.UTC().Format(time.RFC3339), Reverts: h.Reverts, Via: h.Via,
			Subject: h.Subject}
		if !h.Until.IsZero() {
			o.Until = h.Until.UTC().Format(time.RFC3339)
		}
		all = append(all, o)
	}
	first := all[0]
	return yaml.Marshal(HoldFile{By: first.By, ByID: first.ByID, Reason: first.Reason, At: first.At, Reverts: first.Reverts, Via: first.Via,
		Subject: first.Subject, Until: first.Until, Also: all[1:]})
}

// decodeHolds reads a hold's file. One that can't be read still holds, reverts too, and
// one whose end can't be read has none.
func decodeHolds(file string, data []byte) (out []promotion.Holding) {
	var f HoldFile
	if err := strictyaml.Decode(file, data, &f); err != nil {
		return []promotion.Holding{{Hold: promotion.Hold{Reason: "its file can't be read: " + err.Error(), Reverts: true}}}
	}
	for _, o := range append([]OtherHold{{By: f.By, ByID: f.ByID, Reason: f.Reason, At: f.At, Reverts: f.Reverts, Via: f.Via,
		Subject: f.Subject, Until: f.Until}}, f.Also...) {
		h := promotion.Holding{ByID: o.ByID, Via: o.Via, Subject: o.Subject, Hold: promotion.Hold{By: o.By, Reason: o.Reason,
			Reverts: o.Reverts}}
		h.At, _ = time.Parse(time.RFC3339, o.At) // zero where it can't be read
		h.Until, _ = time.Parse(time.RFC3339, o.Until)
		out = append(out, h)
	}
	return out
}

// ReadHolds reads a hold's file: what each who holds it set. None where there is none.
func ReadHolds(tree fs.FS, file string) ([]promotion.Holding, error) {
	data, err := fs.ReadFile(tree, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s on %s: %w", file, StateBranch, err)
	}
	return decodeHolds(file, data), nil
}

// JoinHolds adds to what a file has now those of the holds from before that aren't among it any more. Where
// either can't be read, what was there before counts.
func JoinHolds(now, before []promotion.Holding) []promotion.Holding {
	if len(now) == 0 || !isReadable(now) || !isReadable(before) {
		if len(before) == 0 {
			return now
		}
		return before
	}
	for _, h := range before {
		if !slices.Contains(now, h) {
			now = promotion.AddHold(now, h)
		}
	}
	return now
}

// isReadable says that every hold has an owner: a file that can't be read gives a hold without one.
func isReadable(all []promotion.Holding) bool {
	return !slices.ContainsFunc(all, func(h promotion.Holding) bool { return h.By == "" })
}

// ListHoldFiles lists the files of holds in the state branch's files.
func ListHoldFiles(tree fs.FS) ([]string, error) {
	var out []string
	for _, pattern := range []string{"holds/*/pipeline.yaml", "holds/*/component/*.yaml", "holds/*/environment/*.yaml"} {
		found, err := fs.Glob(tree, pattern)
		if err != nil {
			return nil, fmt.Errorf("list the holds on %s: %w", StateBranch, err)
		}
		out = append(out, found...)
	}
	return out, nil
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
		all, err := ReadHolds(tree, file)
		for _, h := range all {
			h.Scope, h.Environment = scope, env
			out = append(out, h.Hold)
		}
		return err
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
