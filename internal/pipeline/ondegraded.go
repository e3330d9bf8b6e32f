package pipeline

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// What happens when an environment degrades.
const (
	OnDegradedRevert         = "revert"
	OnDegradedRevertAndMerge = "revert-and-merge"
	OnDegradedHold           = "hold"
)

// OnDegraded says what happens when a promotion's targets degrade. The action alone is a
// shorthand.
type OnDegraded struct {
	// Open a revert; open and merge it; or hold and ask a person.
	Action string `yaml:"action" json:"action" jsonschema:"enum=revert,enum=revert-and-merge,enum=hold,default=revert"`
	// How many of the component's targets must be degraded before a revert opens or merges by
	// itself; shares are rounded up. More than there are: all. With fewer degraded, a person is
	// asked. Not set: one. Not with hold.
	Quorum Quorum `yaml:"quorum" json:"quorum,omitzero"`
}

// ShorthandKey is the key whose value may stand for the whole.
func (*OnDegraded) ShorthandKey() string { return "action" }

// String is how the pipeline file says it.
func (o OnDegraded) String() string {
	if o.Quorum.IsZero() {
		return o.Action
	}
	return fmt.Sprintf("{action: %s, quorum: %s}", o.Action, o.Quorum)
}

// MarshalJSON writes the action alone where there is nothing else, as facts that were
// written down before there was a quorum have it.
func (o OnDegraded) MarshalJSON() ([]byte, error) {
	if o.Quorum.IsZero() {
		return json.Marshal(o.Action)
	}
	type plain OnDegraded
	return json.Marshal(plain(o))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (o *OnDegraded) UnmarshalJSON(data []byte) error {
	*o = OnDegraded{}
	if len(data) > 0 && data[0] == '{' {
		type plain OnDegraded
		return json.Unmarshal(data, (*plain)(o))
	}
	return json.Unmarshal(data, &o.Action)
}

// Quorum is a number of targets, or a share of them in percent. The zero Quorum is any one.
type Quorum struct{ Targets, Percent int }

// IsZero says that the pipeline file asks for none.
func (q Quorum) IsZero() bool { return q == Quorum{} }

// Of is how many of so many targets it takes: at least one and at most all. So a quorum that is
// larger than an environment, or than the rest of it, can still be reached.
func (q Quorum) Of(total int) int {
	n := q.Targets
	if q.Percent > 0 {
		n = (total*q.Percent + 99) / 100
	}
	return max(1, min(n, total))
}

// String is how the pipeline file says it.
func (q Quorum) String() string {
	if q.Percent > 0 {
		return strconv.Itoa(q.Percent) + "%"
	}
	return strconv.Itoa(max(q.Targets, 1))
}

// MarshalText writes what UnmarshalText reads.
func (q Quorum) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

var quorumPattern = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,8})%?$`)

const maxQuorumTargets = 1_000_000 // far more than an environment has

// UnmarshalText reads "2" or "50%".
func (q *Quorum) UnmarshalText(text []byte) error {
	s := string(text)
	if !quorumPattern.MatchString(s) {
		return fmt.Errorf("not a quorum; write a share of the targets in whole percent, like 50%%, or a number of them, like 2")
	}
	number, isShare := strings.CutSuffix(s, "%")
	n, err := strconv.Atoi(number)
	switch {
	case err != nil:
		return fmt.Errorf("not a quorum: %w", err)
	case n < 1 && isShare:
		return fmt.Errorf("must be at least 1%%; it is %s", s)
	case n < 1:
		return fmt.Errorf("must be at least 1; it is %s; leave it out for any one target, or write action: hold for no revert by itself", s)
	case n > 100 && isShare:
		return fmt.Errorf("must be at most 100%%; it is %s; write action: hold where no revert is to open by itself", s)
	case n > maxQuorumTargets:
		return fmt.Errorf("must be at most %d; it is %s", maxQuorumTargets, s)
	case isShare:
		*q = Quorum{Percent: n}
	default:
		*q = Quorum{Targets: n}
	}
	return nil
}
