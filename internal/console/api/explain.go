package api

import (
	"fmt"
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
	switch {
	case e.State == "not-here":
		return e.Reason
	case e.Name == "":
		fmt.Fprintf(&b, "%s carries nothing that can be read", e.Environment)
	default:
		fmt.Fprintf(&b, "%s carries %s", e.Environment, e.Name)
	}
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
		case in.Pull != nil && in.Headline != "":
			fmt.Fprintf(&b, "\n%s is in %s: %s", what, in.Pull, in.Headline)
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
		if e.Revert.Headline != "" {
			b.WriteString(": " + e.Revert.Headline)
		}
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
	e.explainAvailable(&b)
	return b.String()
}

// maxExplainedRuns bounds the targets of which is said what they run.
const maxExplainedRuns = 5

// explainRuns says what the targets were seen to run when they were verified, a line each. It says
// nothing where that wasn't awaited, as for releases from before the pipeline.
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
