package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

const (
	// maxIneffective bounds the fields, and the targets that aren't rendered, that a reason names.
	maxIneffective = 3
	// maxUnrenderedWhy bounds why one of them isn't, in bytes.
	maxUnrenderedWhy = 300
)

// IneffectiveField is a carried field that a promotion changes without any change in a target's
// rendered manifests. It is an image, a chart's version or a part of a pod template.
type IneffectiveField struct {
	Target string `json:"target"`
	Field  string `json:"field"`
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	// OverriddenBy is what has the last word on it, with its place; empty: that isn't known.
	OverriddenBy string `json:"overriddenBy,omitempty"`
}

// String says it with what overrides the field.
func (i IneffectiveField) String() string {
	place := i.File
	if i.Line > 0 {
		place = fmt.Sprintf("%s:%d", i.File, i.Line)
	}
	why := "something that isn't known overrides it, or nothing uses it"
	if i.OverriddenBy != "" {
		why = i.OverriddenBy + " overrides it"
	}
	return fmt.Sprintf("%s (%s) doesn't show in the rendered manifests of %s: %s", i.Field, place, i.Target, why)
}

// DescribeIneffective says of fields that they have no effect; "" where there are none.
func DescribeIneffective(fields []IneffectiveField) string {
	var said []string
	for _, f := range fields[:min(len(fields), maxIneffective)] {
		said = append(said, f.String())
	}
	if more := len(fields) - len(said); more > 0 {
		said = append(said, wording.Count(more, "more field")+" likewise")
	}
	return strings.Join(said, "; ")
}

// EffectFacts is what a promotion does, and doesn't, to what its component's targets run.
type EffectFacts struct {
	// Ineffective is what doesn't show in their rendered manifests, although it must.
	Ineffective []IneffectiveField `json:"ineffective,omitempty"`
	// Unrendered are those of which that isn't known.
	Unrendered []UnrenderedTarget `json:"unrendered,omitempty"`
	// Ignored is what changes in their manifests and their Argo CD ignores.
	Ignored []IgnoredField `json:"ignored,omitempty"`
	// Disagreements are the targets that their Argo CDs render otherwise.
	Disagreements []Disagreement `json:"disagreements,omitempty"`
}

// Disagreement is a target for which an Argo CD and Liftlock say different things of what a promotion changes.
type Disagreement struct {
	Target string `json:"target"`
	How    string `json:"how"`
}

// DescribeDisagreements says of targets that they are rendered otherwise; "" where there are none.
func DescribeDisagreements(all []Disagreement) string {
	var said []string
	for _, d := range all[:min(len(all), maxIneffective)] {
		said = append(said, fmt.Sprintf("%s (%s)", d.Target, d.How))
	}
	if len(said) == 0 {
		return ""
	}
	if more := len(all) - len(said); more > 0 {
		said = append(said, wording.Count(more, "more target"))
	}
	return "Argo CD renders it otherwise than Liftlock for " + strings.Join(said, ", ") +
		": what is said here of these targets may be wrong"
}

// Join adds another component's.
func (e *EffectFacts) Join(o EffectFacts) {
	e.Ineffective, e.Unrendered = append(e.Ineffective, o.Ineffective...), append(e.Unrendered, o.Unrendered...)
	e.Ignored, e.Disagreements = append(e.Ignored, o.Ignored...), append(e.Disagreements, o.Disagreements...)
}

// DescribeNotes says what can't be told before the merge, nor by Argo CD's word after it; "" where there is nothing.
func (e *EffectFacts) DescribeNotes() string {
	return strings.Join(slices.DeleteFunc([]string{DescribeIgnored(e.Ignored), DescribeDisagreements(e.Disagreements),
		DescribeUnrendered(e.Unrendered)}, func(s string) bool { return s == "" }), "; ")
}

// IgnoredField is a field of a target's manifests that a promotion changes and Argo CD ignores.
type IgnoredField struct {
	Target string `json:"target"`
	Object string `json:"object"`         // its kind and name
	Path   string `json:"path,omitempty"` // empty: any field that Managers own
	// Managers are field managers whose fields are ignored: which those are only the cluster knows.
	Managers []string `json:"managers,omitempty"`
	By       string   `json:"by"` // who says so, with its place
}

// DescribeIgnored says of fields that Argo CD ignores them; "" where there are none.
func DescribeIgnored(fields []IgnoredField) string {
	var said []string
	for _, f := range fields[:min(len(fields), maxIneffective)] {
		what := f.Path
		if what == "" {
			what = "what " + strings.Join(f.Managers, " and ") + " manages"
		}
		said = append(said, fmt.Sprintf("%s of %s in %s (%s)", what, f.Object, f.Target, f.By))
	}
	if len(said) == 0 {
		return ""
	}
	if more := len(fields) - len(said); more > 0 {
		said = append(said, wording.Count(more, "more field"))
	}
	return "Argo CD ignores " + strings.Join(said, ", ") + ": it says Synced whether that arrives or not"
}

// UnrenderedTarget is a target of which it can't be told before the merge whether what a promotion carries shows there.
type UnrenderedTarget struct {
	Target string `json:"target"`
	Why    string `json:"why"`
}

// DescribeUnrendered says of targets that they aren't rendered; "" where there are none.
func DescribeUnrendered(targets []UnrenderedTarget) string {
	var said []string
	for _, t := range targets[:min(len(targets), maxIneffective)] {
		said = append(said, fmt.Sprintf("%s (%s)", t.Target, strings.TrimRight(wording.ClipLine(t.Why, maxUnrenderedWhy), ". ")))
	}
	if len(said) == 0 {
		return ""
	}
	if more := len(targets) - len(said); more > 0 {
		said = append(said, wording.Count(more, "more target"))
	}
	return "whether it shows isn't known before the merge for " + strings.Join(said, ", ") + ": the verification finds out"
}

// evaluateEffect is the gate that a promotion's changes come to its targets. It is listed only
// while one doesn't, or where that isn't known: then it passes with a note. Somebody may skip it,
// as the pipeline file's gates.
func (ev *evaluator) evaluateEffect(e *Env, p *Pull) []policies.Result {
	if !e.Spec.RequiresEffect() {
		return nil
	}
	note := p.DescribeNotes()
	if len(p.Ineffective) == 0 {
		if note == "" {
			return nil
		}
		return []policies.Result{{Gate: GateEffect, Outcome: policies.Pass, Reason: note}}
	}
	reason := DescribeIneffective(p.Ineffective)
	if note != "" {
		reason += "; " + note
	}
	skip, why := ev.findSkip(p, GateEffect)
	if skip != nil {
		return []policies.Result{{Gate: GateEffect, Outcome: policies.Pass, SkippedBy: cmp.Or(skip.By, "somebody"), Until: skip.Until,
			Reason: fmt.Sprintf("skipped by %s until %s: %s (without that: %s)", orSomebody(skip.By), skip.Until.UTC().Format(time.RFC3339),
				skip.Reason, reason)}}
	}
	if why != "" {
		reason += "; the skip doesn't count: " + why
	}
	return []policies.Result{{Gate: GateEffect, Outcome: policies.Wait, Reason: reason}}
}
