package promotion

import (
	"cmp"
	"strings"
)

// MergeBehind and MergeBlocked are the forge's words for a merge that rules of its own stop:
// the head must contain its base's tip first, or something else is missing.
const (
	MergeBehind  MergeState = "behind"
	MergeBlocked MergeState = "blocked"
)

// RuleReport says which of the forge's own rules keep a pull request from being merged.
type RuleReport struct {
	Read     bool     `json:"read,omitempty"`     // they were read; else Err says why not, or nobody tried
	Err      string   `json:"err,omitempty"`      // why they can't be read
	Unmet    []string `json:"unmet,omitempty"`    // what is missing for sure, by rule
	Unsure   []string `json:"unsure,omitempty"`   // what else they demand, of which it can't be told whether it is met, by rule
	Hidden   string   `json:"hidden,omitempty"`   // what Liftlock's account doesn't see of them
	Bypassed bool     `json:"bypassed,omitempty"` // Liftlock's account may merge past one of them, and doesn't
}

// Describe says what is in the way, by the rules' names; empty where they don't tell.
func (r *RuleReport) Describe() string {
	if len(r.Unmet) > 0 {
		return strings.Join(r.Unmet, "; ")
	}
	var parts []string
	if len(r.Unsure) > 0 {
		parts = append(parts, "one of its rules, and which one it doesn't say: "+strings.Join(r.Unsure, "; "))
	}
	if r.Hidden != "" {
		parts = append(parts, "Liftlock doesn't see "+r.Hidden)
	}
	if r.Err != "" {
		parts = append(parts, "its rules can't be read: "+r.Err)
	}
	return strings.Join(parts, "; ")
}

// blockedReason says why the forge doesn't let a pull request be merged.
func (p *Pull) blockedReason() string {
	word := cmp.Or(p.MergeNote, string(p.Mergeable))
	why := p.Rules.Describe()
	switch {
	case why == "":
		return "the forge blocks the merge: " + word
	case word == string(p.Mergeable): // says nothing that the rules don't
		return "the forge blocks the merge by " + why
	}
	return "the forge blocks the merge (" + word + ") by " + why
}
