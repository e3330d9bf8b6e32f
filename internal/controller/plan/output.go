package plan

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/wording"
)

// WriteText writes a plan for people. The diffs in it are as git apply takes
// them, but for characters that would drive a terminal; short leaves them out.
func WriteText(w io.Writer, p *Plan, short bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "From %s, taking for granted what a checkout can't tell:\n", appset.Printable(p.Subject))
	for _, a := range p.Assumptions {
		fmt.Fprintf(&b, "  - %s\n", a)
	}
	b.WriteByte('\n')
	opening := 0
	for i := range p.Pipelines {
		writePipeline(&b, &p.Pipelines[i], len(p.Pipelines) > 1, short)
		opening += len(p.Pipelines[i].Promotions)
	}
	fmt.Fprintf(&b, "%s would open.\n", wording.Count(opening, "promotion"))
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}

func writePipeline(b *strings.Builder, p *Pipeline, several, short bool) {
	if several {
		fmt.Fprintf(b, "pipeline %s\n\n", appset.Printable(p.Name))
	}
	if p.DryRun {
		b.WriteString("mode is observe: nothing is opened; this is what would be.\n\n")
	}
	for i := range p.Promotions {
		writePromotion(b, &p.Promotions[i], short)
	}
	var waiting strings.Builder
	var environments []string // that are up to date, with their components
	upToDate := map[string]int{}
	for _, w := range p.Waiting {
		if w.Why[0].Code != cause.UpToDate {
			writeWaiting(&waiting, &w)
			continue
		}
		if upToDate[w.Environment]++; upToDate[w.Environment] == 1 {
			environments = append(environments, w.Environment)
		}
	}
	if waiting.Len() > 0 {
		fmt.Fprintf(b, "Not now:\n%s\n", waiting.String())
	}
	for i, e := range environments {
		environments[i] = wording.Count(upToDate[e], "component") + " in " + appset.Printable(e)
	}
	if len(environments) > 0 {
		fmt.Fprintf(b, "Up to date: %s.\n\n", strings.Join(environments, ", "))
	}
}

// maxFieldsShown bounds the fields of an Application that are named.
const maxFieldsShown = 3

func writePromotion(b *strings.Builder, p *Promotion, short bool) {
	into, indent := " into "+p.Environment, ""
	if p.Branch != "" {
		into += " (branch " + p.Branch + ")"
	}
	if len(p.Parts) > 1 {
		fmt.Fprintf(b, "together%s:\n", appset.Printable(into))
		into, indent = "", "  "
	}
	for _, part := range p.Parts {
		fmt.Fprintf(b, "%s%s: %s → %s\n", indent, appset.Printable(part.Component+into), appset.Printable(part.From.String()),
			appset.Printable(part.To.String()))
	}
	for i := range p.Changes {
		fmt.Fprintf(b, "  %s\n", appset.Printable(p.Changes[i].String()))
	}
	if len(p.Reached) > 0 || p.ReachErr == "" {
		fmt.Fprintf(b, "  reaches %s\n", joinNames(p.Reached))
	}
	if p.ReachErr != "" {
		fmt.Fprintf(b, "  whose Applications it changes can't be told: %s\n", appset.Printable(p.ReachErr))
	}
	for _, a := range p.Applications {
		for i, f := range a.Fields {
			if i == maxFieldsShown {
				fmt.Fprintf(b, "    and %s of %s\n", wording.Count(len(a.Fields)-i, "more field"), appset.Printable(a.Target))
				break
			}
			fmt.Fprintf(b, "    %s: %s %s → %s\n", appset.Printable(a.Target), appset.Printable(f.Path), appset.PrintableValue(f.Before),
				appset.PrintableValue(f.After))
		}
	}
	for _, u := range p.Unreached {
		if u.CreatedOnly {
			fmt.Fprintf(b, "  does not reach %s, whose ApplicationSet only creates Applications and never updates them: somebody has to "+
				"change it, or it fails after arriveWithin\n", appset.Printable(u.Target))
			continue
		}
		fmt.Fprintf(b, "  does not reach %s, which follows %s: somebody has to move that, or it fails after arriveWithin\n",
			appset.Printable(u.Target), appset.Printable(u.Follows))
	}
	if len(p.Ineffective) > 0 {
		fmt.Fprintf(b, "  is not merged (%s): %s\n", promotion.GateEffect, appset.Printable(promotion.DescribeIneffective(p.Ineffective)))
	}
	if note := p.DescribeNotes(); note != "" {
		fmt.Fprintf(b, "  %s: %s\n", promotion.GateEffect, appset.Printable(note))
	}
	if len(p.Unaffected) > 0 {
		fmt.Fprintf(b, "  also read by %s, which provably stay as they are\n", joinNames(p.Unaffected))
	}
	for _, r := range p.Rendered {
		what := r.Summary
		if r.Spec {
			what = "the Application itself changes; manifests: " + what
		}
		if r.Why != "" {
			what = "not rendered: " + r.Why
		}
		fmt.Fprintf(b, "  %s: %s\n", appset.Printable(r.Target), appset.Printable(what))
		if !short {
			for l := range strings.Lines(r.Diff) {
				b.WriteString("    " + l)
			}
		}
	}
	b.WriteByte('\n')
	if short {
		return
	}
	for _, f := range p.Files {
		for l := range strings.Lines(f.Diff) {
			b.WriteString(printableLine(l))
		}
		b.WriteByte('\n')
	}
}

// maxNames bounds the targets that a line names.
const maxNames = 8

func joinNames(list []string) string {
	return appset.Printable(cmp.Or(wording.JoinFew(list, maxNames), "no target"))
}

// printableLine keeps what a diff needs: tabs and other spaces, and the carriage
// return of a line that ends in one.
func printableLine(l string) string {
	text, end := strings.TrimSuffix(l, "\n"), "\n"
	if t, ok := strings.CutSuffix(text, "\r"); ok {
		text, end = t, "\r\n"
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if r == '\t' || n > 1 && strconv.IsGraphic(r) {
			b.WriteString(text[:n])
		} else {
			b.WriteString(appset.Printable(text[:n]))
		}
		text = text[n:]
	}
	return b.String() + end
}

func writeWaiting(b *strings.Builder, w *Waiting) {
	what := "is " + w.State // mixed or unreadable
	switch {
	case w.State == promotion.NotHere:
		what = "is not there"
	case w.Release != nil:
		what = "carries " + w.Release.String()
	}
	fmt.Fprintf(b, "  %s in %s %s\n", appset.Printable(w.Component), appset.Printable(w.Environment), appset.Printable(what))
	if w.Candidate != nil {
		fmt.Fprintf(b, "      waits to come: %s\n", appset.Printable(w.Candidate.String()))
	}
	for _, r := range w.Why {
		fmt.Fprintf(b, "      %s\n", appset.Printable(r.Text))
	}
}
