package api

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/wording"
)

// WaitReasons are the things that stand between a release and its next step, a
// sentence each; empty when nothing does.
func (e *Environment) WaitReasons() []string {
	var out []string
	if e.Incoming != nil {
		out = append(out, gateSentences(e.Incoming.Gates)...)
	}
	if e.Revert != nil {
		for _, w := range gateSentences(e.Revert.Gates) {
			out = append(out, fmt.Sprintf("revert %s: %s", &e.Revert.Pull, w))
		}
	}
	for _, r := range e.Why {
		s := r.Text
		if r.Who != "" {
			s += " (" + r.Who + ")"
		}
		if !r.When.IsZero() {
			s += ", until " + formatTime(r.When)
		}
		out = append(out, s)
	}
	return out
}

func gateSentences(gates []Gate) []string {
	var out []string
	for i := range gates {
		if g := &gates[i]; g.Outcome != "pass" {
			out = append(out, g.Sentence())
		}
	}
	return out
}

// Sentence is the gate's answer in words.
func (g *Gate) Sentence() string {
	s := g.Gate + ": " + g.Reason
	if len(g.Who) > 0 {
		s += " (" + strings.Join(g.Who, ", ") + ")"
	}
	if !g.Until.IsZero() {
		s += ", until " + formatTime(g.Until)
	}
	return s
}

// Explain says in words what runs in the environment, what wants to come, and
// what it waits for; several lines.
func (e *Environment) Explain() string {
	var b strings.Builder
	name := e.Name
	if name == "" {
		name = "nothing that can be read"
	}
	fmt.Fprintf(&b, "%s carries %s", e.Environment, name)
	if !e.Since.IsZero() {
		fmt.Fprintf(&b, " since %s", formatTime(e.Since))
	}
	fmt.Fprintf(&b, ": %s", e.State)
	if e.Reason != "" {
		fmt.Fprintf(&b, ", %s", e.Reason)
	}
	if in := e.Incoming; in != nil {
		what := in.Name
		if what == "" {
			what = "a release"
		}
		switch {
		case in.Pull != nil && in.State == "held":
			fmt.Fprintf(&b, "\n%s is held in %s", what, in.Pull)
		case in.Pull != nil:
			fmt.Fprintf(&b, "\n%s is in %s", what, in.Pull)
		default:
			fmt.Fprintf(&b, "\n%s is %s; it has no open pull request", what, in.State)
		}
	}
	if e.Revert != nil {
		fmt.Fprintf(&b, "\nthe revert %s is open", &e.Revert.Pull)
	}
	for _, t := range e.Targets {
		if t.Drift != nil {
			fmt.Fprintf(&b, "\n%s %s, since %s", t.Name, t.Drift.Text, formatTime(t.Drift.Since))
		}
	}
	e.explainRuns(&b)
	for _, w := range e.WaitReasons() {
		b.WriteString("\n- " + w)
	}
	return b.String()
}

// maxExplainedRuns bounds the targets of which is said what they run.
const maxExplainedRuns = 5

// explainRuns says what the targets were seen to run when they were verified, a line each; nothing where nobody waited
// for that, as for what was there before the pipeline.
func (e *Environment) explainRuns(b *strings.Builder) {
	if e.State == "baseline" || e.State == "idle" {
		return
	}
	said, more := 0, 0
	for i := range e.Targets {
		t := &e.Targets[i]
		switch {
		case t.Runs == nil:
		case said == maxExplainedRuns:
			more++
		default:
			said++
			fmt.Fprintf(b, "\n%s ran %s, seen %s", t.Name, t.Runs.Describe(), formatTime(t.Runs.At))
		}
	}
	if more > 0 {
		fmt.Fprintf(b, "\nand %s more, which -o json lists", wording.Count(more, "target"))
	}
}

// Shown are the images that the release brought; where none is known to be one of them, all.
func (r *Runs) Shown() []RunningImage {
	landed := 0
	for landed < len(r.Images) && r.Images[landed].Landed {
		landed++
	}
	if landed == 0 {
		return r.Images
	}
	return r.Images[:landed]
}

// Others counts the images besides those that are shown.
func (r *Runs) Others() int { return len(r.Images) - len(r.Shown()) + r.More }

// Describe says in words what ran: "web:1.1.0 (sha256:0123456789ab, 3 pods since …) and 2 other images".
func (r *Runs) Describe() string {
	var all []string
	shown := r.Shown()
	for i := range shown {
		all = append(all, shown[i].describe())
	}
	text := strings.Join(all, ", ")
	if n := r.Others(); n > 0 {
		text += " and " + wording.Count(n, "other image")
	}
	return text
}

func (r *RunningImage) describe() string {
	known := []string{r.ShortDigest()}
	if r.Pods > 0 {
		pods := wording.Count(r.Pods, "pod")
		if !r.Since.IsZero() {
			pods += " since " + formatTime(r.Since)
		}
		known = append(known, pods)
	}
	return r.Image + " (" + strings.Join(known, ", ") + ")"
}

// ShortDigest is the digest for people, with the first of its digits.
func (r *RunningImage) ShortDigest() string {
	kind, digits, ok := strings.Cut(r.Digest, ":")
	if !ok {
		return "digest isn't reported"
	}
	return kind + ":" + wording.Short(digits)
}

// Verified counts the targets that are verified.
func (e *Environment) Verified() int {
	n := 0
	for _, t := range e.Targets {
		if t.State == "verified" {
			n++
		}
	}
	return n
}

// Drifted counts the targets that differ from what was synced to them.
func (e *Environment) Drifted() int {
	n := 0
	for _, t := range e.Targets {
		if t.Drift != nil {
			n++
		}
	}
	return n
}

// Attention says that a person should look: something failed, was changed by
// hand, is held, is stuck, or can't be read or told.
func (e *Environment) Attention() bool {
	switch e.State {
	case "degraded", "failed", "diverged", "mixed", "unreadable":
		return true
	}
	if e.Stuck() != nil || slices.ContainsFunc(e.Targets, func(t Target) bool { return t.Untold }) {
		return true
	}
	if e.Incoming != nil && e.Incoming.State == "held" {
		return true
	}
	for _, g := range e.allGates() {
		if g.Outcome == "fail" {
			return true
		}
	}
	return e.Revert != nil
}

// Stuck is why a release doesn't move and won't by itself; nil where nothing says so.
func (e *Environment) Stuck() *Reason {
	for i := range e.Why {
		if e.Why[i].Code.IsStuck() {
			return &e.Why[i]
		}
	}
	return nil
}

// Moving says that something is under way here: a release is being verified, or
// a pull request is open.
func (e *Environment) Moving() bool {
	return e.State == "verifying" || e.Revert != nil || e.Incoming != nil && e.Incoming.Pull != nil
}

// Waiting says that a release wants to come in and something stops it.
func (e *Environment) Waiting() bool {
	if e.Incoming == nil || e.Incoming.State == "closed" {
		return false
	}
	return len(e.WaitReasons()) > 0
}

func (e *Environment) allGates() []Gate {
	var out []Gate
	if e.Incoming != nil {
		out = append(out, e.Incoming.Gates...)
	}
	if e.Revert != nil {
		out = append(out, e.Revert.Gates...)
	}
	return out
}

// anyEnvironment says whether the question is true of one of the component's environments.
func (c *Component) anyEnvironment(matches func(*Environment) bool) bool {
	for i := range c.Environments {
		if matches(&c.Environments[i]) {
			return true
		}
	}
	return false
}

// Attention says that a person should look at the component.
func (c *Component) Attention() bool { return c.anyEnvironment((*Environment).Attention) }

// Moving says that something is under way.
func (c *Component) Moving() bool { return c.anyEnvironment((*Environment).Moving) }

// Waiting says that a release waits to come into one of the environments.
func (c *Component) Waiting() bool { return c.anyEnvironment((*Environment).Waiting) }

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// WhyShown are the reasons without those that are true of a whole fleet on its
// first day and that the state says already.
func (e *Environment) WhyShown() []Reason {
	var out []Reason
	for _, r := range e.Why {
		if r.Code != cause.Baseline && r.Text != e.Reason {
			out = append(out, r)
		}
	}
	return out
}
