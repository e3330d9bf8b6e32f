package promotion

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/wording"
)

// BatchName stands where a component's name does in what the components of
// a pipeline share: branches, trailers and wake keys. No component of a pipeline
// with batch: environment may have it.
const BatchName = "batch"

// Member is one component in what a pull request moves: usually the only one.
type Member struct {
	Component string `json:"component"`
	Release   string `json:"release"` // the identity that moves in; of a revert: the one that is taken back
	Name      string `json:"name,omitempty"`
	CommandID int64  `json:"command,omitempty"` // the command that its part fulfils, 0 without one
}

// String is the component with its release, for messages.
func (m Member) String() string {
	return m.Component + " " + cmp.Or(m.Name, wording.Short(m.Release))
}

// BatchID is the identity of what moves together: sha256, 64 hex digits, over
// the components with their releases, sorted. "" for nobody.
func BatchID(members []Member) string {
	if len(members) == 0 {
		return ""
	}
	lines := make([]string, 0, len(members))
	for _, p := range members {
		lines = append(lines, p.Component+" "+p.Release+"\n")
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(sum[:])
}

// FindMember finds a component among members; false when it isn't one of them.
func FindMember(members []Member, component string) (Member, bool) {
	i := slices.IndexFunc(members, func(p Member) bool { return p.Component == component })
	if i < 0 {
		return Member{}, false
	}
	return members[i], true
}

// formatMembers is what people call what moves together.
func formatMembers(members []Member) string {
	out := make([]string, len(members))
	for i, p := range members {
		out[i] = p.String()
	}
	return strings.Join(out, ", ")
}
