package prtext

import (
	"cmp"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/policies"
)

// waitsFor is what a gate that waits waits for, in a few words.
func waitsFor(gate policies.GateName) string {
	return cmp.Or(promotion.WordsOfGate(gate).WaitsFor, string(gate))
}

// gateRemedy is what helps with a gate that doesn't say who can change it.
func gateRemedy(in Input, g policies.Result) string {
	words := promotion.WordsOfGate(g.Gate)
	switch {
	case g.Outcome == policies.Fail:
		return cmp.Or(words.FailRemedy, "a commit that changes the pipeline file, or another release")
	case promotion.PromoteHelps(g.Gate):
		return promoteCommand(in)
	}
	return words.Remedy
}

// promoteCommand is the command that brings a release into the page's environment.
func promoteCommand(in Input) string { return codeSpan("/liftlock promote "+in.Environment, maxName) }

// whoCanPass says who or what can make a gate pass, and when.
func whoCanPass(in Input, g policies.Result) string {
	if g.Outcome == policies.Pass {
		return ""
	}
	who := joinLogins(g.Who)
	if who == "" {
		who = gateRemedy(in, g)
	}
	if until := formatTime(g.Until); until != "" {
		if who != "" {
			who += "; "
		}
		who += "at " + until
	}
	return who
}

func writeGateTable(p *page, in Input, gates []policies.Result) {
	if len(gates) == 0 {
		return
	}
	p.writeLine("| | gate | now | who or what can change it |")
	p.writeLine("|---|---|---|---|")
	for i, g := range gates {
		if i == maxRows {
			p.writeGap()
			p.writeLine("and %d more", len(gates)-i)
			break
		}
		p.writeLine("| %s | %s | %s | %s |", outcomeLabel(g.Outcome), escapeText(string(g.Gate), maxName), linkReason(in, g.Reason),
			whoCanPass(in, g))
	}
	p.writeGap()
}

func outcomeLabel(o policies.Outcome) string {
	switch o {
	case policies.Pass:
		return "✅ pass"
	case policies.Fail:
		return "❌ fail"
	}
	return "⏳ wait"
}

// splitGates sorts the gates that don't pass by what they wait for, each once.
func (gs gateSummary) splitGates() (fails, waits []string) {
	seen := map[policies.GateName]bool{}
	for _, g := range gs.gates {
		if g.Outcome == policies.Pass || seen[g.Gate] {
			continue
		}
		seen[g.Gate] = true
		if g.Outcome == policies.Fail {
			fails = append(fails, escapeText(string(g.Gate), maxName))
		} else {
			waits = append(waits, escapeText(waitsFor(g.Gate), maxName))
		}
	}
	return fails, waits
}

// joinAnd is "a, b and c".
func joinAnd(s []string) string {
	if len(s) < 2 {
		return strings.Join(s, "")
	}
	return strings.Join(s[:len(s)-1], ", ") + " and " + s[len(s)-1]
}
