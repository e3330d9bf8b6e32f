package prtext

import (
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
)

// several says that the pull request moves components together.
func several(in Input) bool { return len(in.Passengers) > 0 }

// subject is what moves, for people: the component, or how many.
func subject(in Input) string {
	if several(in) {
		return plural(len(in.Passengers), "component", "components")
	}
	return component(in)
}

// alone is the input for one of the components that move together.
func alone(in Input, p Passenger) Input {
	in.Facts, in.Decision, in.Release, in.Name, in.Passengers = p.Facts, p.Decision, p.Release, p.Name, nil
	return in
}

// listed are the components with their releases, for a sentence.
func listed(in Input) string {
	var out []string
	for i, p := range in.Passengers {
		if i == openRows {
			out = append(out, plural(len(in.Passengers)-i, "more", "more"))
			break
		}
		out = append(out, text(p.Component, maxName)+" "+code(releaseName(p), maxName))
	}
	return list(out)
}

func releaseName(p Passenger) string {
	if p.Name != "" {
		return p.Name
	}
	return promotion.Short(p.Release)
}

// opening is the first sentence of a promotion's body.
func opening(p *page, in Input) {
	if !several(in) {
		p.line("Moves **%s** %s into **%s**.", text(component(in), maxName), code(name(in), maxName), text(in.Environment, maxName))
		p.gap()
		return
	}
	p.line("Moves **%s** into **%s** together: %s.", subject(in), text(in.Environment, maxName), listed(in))
	p.gap()
	p.line("All or nothing: it is merged when every one of them may be, goes on when all are verified, and is taken back as a whole.")
	p.gap()
}

// movesOf is the table of what changes, for each component its own.
func movesOf(p *page, in Input) {
	p.line("### What moves")
	p.gap()
	of := map[string][]Change{}
	for _, c := range in.Changes {
		of[c.Component] = append(of[c.Component], c)
	}
	p.eachOf(in.Passengers, func(q Passenger) {
		p.line("**%s**", text(q.Component, maxName))
		p.gap()
		if len(of[q.Component]) == 0 {
			p.line("See the diff.")
			p.gap()
			return
		}
		p.folded(moveHead, moveRows(of[q.Component]))
	})
	if shared := of[""]; len(shared) > 0 {
		p.line("In files that they share")
		p.gap()
		p.folded(moveHead, moveRows(shared))
	}
}

// stays says of each component where its release has been.
func stays(p *page, in Input) {
	p.line("### Where these releases have been")
	p.gap()
	p.eachOf(in.Passengers, func(q Passenger) {
		lines := stayLines(alone(in, q))
		if len(lines) == 0 {
			return
		}
		p.line("**%s** %s", text(q.Component, maxName), code(releaseName(q), maxName))
		p.gap()
		p.folded("", lines)
	})
}

// openParts is how many components' parts are written openly: a reviewer has one
// screen.
const openParts = 4

// eachOf writes a part for each component, the first ones openly and the rest in a
// fold.
func (p *page) eachOf(all []Passenger, write func(Passenger)) {
	for i, q := range all {
		if i == openParts {
			p.line("<details><summary>%s</summary>", plural(len(all)-i, "more component", "more components"))
			p.gap()
		}
		write(q)
	}
	if len(all) > openParts {
		p.line("</details>")
		p.gap()
	}
}

// belongs says that a target is of a component that moves.
func belongs(in Input, componentName string) bool {
	if several(in) {
		return slices.ContainsFunc(in.Passengers, func(p Passenger) bool { return p.Component == componentName })
	}
	return componentName == component(in)
}

// landedTogether is the comment after the merge of several: how each is, and
// what a person can do.
func landedTogether(in Input) string {
	var p page
	p.line("%s", statusMark)
	p.line("%s", togetherSummary(in))
	p.gap()
	st := state(in)
	if at := stamp(st.Since); at != "" {
		p.line("Merged %s as %s.", at, code(promotion.Short(st.Commit), maxName))
		p.gap()
	}
	for _, q := range in.Passengers {
		one := alone(in, q)
		own := state(one)
		if own.LandedPull != in.Number {
			p.line("- %s: %s carries something else by now.", text(q.Component, maxName), text(in.Environment, maxName))
			continue
		}
		s := "- " + text(q.Component, maxName) + ": " + landedSummary(one, own)
		if own.Undo > 0 && own.State != promotion.Degraded {
			s = fmt.Sprintf("- %s: %s goes back with the others.", text(q.Component, maxName), code(releaseName(q), maxName))
		}
		if r := linked(in, own.Reason); r != "" {
			s += " " + strings.TrimSuffix(r, ".") + "."
		}
		p.line("%s", s)
	}
	p.gap()
	for _, q := range in.Passengers {
		one := alone(in, q)
		own := state(one)
		if own.LandedPull != in.Number || own.State == promotion.Verified || own.State == promotion.Idle {
			continue
		}
		p.line("%s:", text(q.Component, maxName))
		p.gap()
		targets(&p, one, own)
		reasons(&p, in, "Why it isn't taken back", holds(own))
		if next := landedNext(one, own); next != "" {
			p.line("%s", next)
			p.gap()
		}
	}
	if !in.Revert {
		p.line("What came together goes on together: no release of these is ready for the next environment before all are verified here, and `/liftlock revert` takes all of them back.")
		p.gap()
	}
	if in.Console != "" {
		p.line("[Console](%s)", address(in.Console))
	}
	return bound(p.String())
}

// togetherSummary is the one sentence for who reads nothing else: how the worst
// of them is.
func togetherSummary(in Input) string {
	order := []string{promotion.Degraded, promotion.Failed, promotion.Mixed, promotion.Unreadable, promotion.Diverged, promotion.Verifying}
	count := map[string]int{}
	undo := 0
	for _, q := range in.Passengers {
		st := state(alone(in, q))
		if st.LandedPull == in.Number {
			count[st.State]++
			undo = max(undo, st.Undo)
		}
	}
	what := fmt.Sprintf("%s in %s", subject(in), text(in.Environment, maxName))
	if in.Revert {
		what += ", back as before"
	}
	for _, s := range order {
		if count[s] == 0 {
			continue
		}
		out := fmt.Sprintf("**%s:** %d of %s", strings.ToUpper(s[:1])+s[1:], count[s], what)
		if undo > 0 && s == promotion.Degraded {
			out += fmt.Sprintf(". The revert %s of all of them is open", ref(undo))
		}
		return out + "."
	}
	return "**Verified:** " + what + "."
}
