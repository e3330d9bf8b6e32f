package policies

import (
	"fmt"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/wording"
)

// These say what becomes of a promotion into an environment whose targets drifted.
const (
	DriftBlock = "block"
	DriftWarn  = "warn"
)

// Settled asks that the environment's targets don't differ from Git, because a sync overwrites
// changes that somebody made in the cluster.
type Settled struct {
	// block: waits while a target has drifted since its sync, or that isn't known. warn: passes and says so.
	Drift string `yaml:"drift" json:"drift" jsonschema:"required,enum=block,enum=warn"`
}

// TargetDrift is how one target of the environment differs from Git.
type TargetDrift struct {
	Target  string    `json:"target"`
	InSync  bool      `json:"inSync,omitempty"`  // it is known not to
	Differs string    `json:"differs,omitempty"` // how it does: "differs from Git in 2 resources: …"
	Since   time.Time `json:"since,omitzero"`    // since when it does
	Err     string    `json:"err,omitempty"`     // why it can't be told
}

// How many targets a reason names, and how much it says of each, in characters.
const (
	maxDriftNamed = 3
	maxDriftText  = 120
)

var _ evaluator = (*Settled)(nil)

func (*Settled) kindName() GateName { return GateSettled }

func (s *Settled) describe() string {
	if s.Drift == DriftWarn {
		return "targets that differ from Git are only told of (drift: warn)"
	}
	return "targets that are in the cluster as Git says (drift: block)"
}

func (s *Settled) validate() []Problem {
	switch s.Drift {
	case DriftBlock, DriftWarn:
		return nil
	case "":
		return []Problem{{Path: "settled.drift", Message: "is missing: block, to wait while a target differs from Git, or warn"}}
	}
	return []Problem{{Path: "settled.drift", Message: fmt.Sprintf("must be block or warn; it is %q",
		wording.ClipLine(s.Drift, maxDriftText))}}
}

func (s *Settled) evaluate(f Facts) Result {
	r := Result{Gate: s.kindName(), Outcome: Wait}
	var differ, untold []string
	for i := range f.Drift {
		switch d := &f.Drift[i]; {
		case d.InSync:
		case d.Differs != "":
			differ = append(differ, d.describe())
		default:
			untold = append(untold, d.describe())
		}
	}
	switch {
	case len(f.Drift) == 0:
		r.Reason = "whether the targets are as Git says can't be told: no target of the environment is known"
	case len(differ)+len(untold) == 0:
		r.Outcome, r.Reason = Pass, "as Git says on "+wording.Count(len(f.Drift), "target")
		return r
	default:
		r.Reason = joinDrift(append(differ, untold...))
	}
	switch {
	case s.Drift == DriftWarn:
		r.Outcome = Pass
		r.Reason += " (drift: warn)"
	case len(differ) > 0:
		r.Reason += "; sync what differs, or put into Git what was changed"
	}
	return r
}

// describe says of a target that isn't in sync how it is.
func (t *TargetDrift) describe() string {
	if t.Differs == "" {
		why := t.Err
		if why == "" {
			why = "nobody has looked yet"
		}
		return fmt.Sprintf("whether %s is as Git says can't be told: %s", t.Target, wording.ClipLine(why, maxDriftText))
	}
	said := t.Target + " " + wording.ClipLine(t.Differs, maxDriftText)
	if !t.Since.IsZero() {
		said += ", since " + formatInstant(t.Since, time.UTC)
	}
	return said
}

// joinDrift is what is said of the first ones, and how many more there are.
func joinDrift(all []string) string {
	said := strings.Join(all[:min(len(all), maxDriftNamed)], "; ")
	if more := len(all) - maxDriftNamed; more > 0 {
		said += "; and " + wording.Plural(more, "target more", "targets more")
	}
	return said
}
