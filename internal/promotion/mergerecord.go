package promotion

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// AuditMerge is the verb of a merge in the audit trail, beside those of commands.
const AuditMerge = "merge"

// The ways in which the audit trail has a merge.
const (
	AuditViaServer = "server" // Liftlock merged
	AuditViaForge  = "forge"  // a person merged on the forge
)

// MergeRecord is the facts and gates by which one component's part of a merge was judged, as the
// audit trail keeps them. For a merge by a person it has the gates of the component's last
// evaluation: nothing was judged at the moment of that merge.
type MergeRecord struct {
	Kind    string `json:"kind"` // promotion or revert
	Release string `json:"release,omitempty"`
	Head    string `json:"head"`             // the head that was merged
	Tip     string `json:"tip,omitempty"`    // the head of the branch into which, when it was judged
	Commit  string `json:"commit,omitempty"` // as which it landed; empty: not known
	// JudgedAt is when the gates gave their answers; zero: they weren't evaluated.
	JudgedAt time.Time `json:"judgedAt,omitzero"`
	// SentAt is when the forge was about to be asked for the merge, after all that it was judged on was
	// read; zero: Liftlock didn't ask.
	SentAt time.Time `json:"sentAt,omitzero"`
	// Inputs is the sha256 of the facts that they were evaluated over, as JSON; empty where
	// those weren't kept, such as of a merge by a person.
	Inputs string            `json:"inputs,omitempty"`
	Gates  []policies.Result `json:"gates"` // what Liftlock itself waits for only where it didn't pass
}

// NewMergeRecord is the record of a merge of a component that was just judged. It has the
// decision's gates of the environment, and a hash of the facts that it was made from. The error
// says that those can't be written as JSON.
func NewMergeRecord(f *ComponentFacts, d *ComponentDecision, m Merge, release string) (MergeRecord, error) {
	raw, err := json.Marshal(f)
	if err != nil {
		return MergeRecord{}, fmt.Errorf("write down by what the merge of #%d was judged: %w", m.Pull, err)
	}
	sum := sha256.Sum256(raw)
	r := MergeRecord{Kind: KindPromotion, Release: release, Head: m.Head, Tip: m.Tip, JudgedAt: f.Now, Inputs: hex.EncodeToString(sum[:])}
	if m.Revert {
		r.Kind = KindRevert
	}
	if st := d.Env(m.Environment); st != nil {
		r.Gates = st.Gates
		if m.Revert {
			r.Gates = st.RevertGates
		}
	}
	return r, nil
}

// Describe says on one line what each gate answered, for the lists of the audit trail.
func (m *MergeRecord) Describe() string {
	switch {
	case m.Kind == KindRevert && len(m.Gates) == 0:
		return "a revert, which has no gates"
	case m.JudgedAt.IsZero():
		return "nobody had looked at its gates"
	case len(m.Gates) == 0:
		return "it has no gates"
	}
	said := make([]string, len(m.Gates))
	for i, g := range m.Gates {
		said[i] = string(g.Gate) + " " + string(g.Outcome)
		if g.SkippedBy != "" {
			said[i] = string(g.Gate) + " skipped by " + g.SkippedBy
		}
	}
	return strings.Join(said, ", ")
}

// Outcome says on one line what came of it.
func (m *MergeRecord) Outcome() string {
	if m.Commit == "" {
		return "merged"
	}
	return "merged as " + wording.Short(m.Commit)
}
