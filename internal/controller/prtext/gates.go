package prtext

import (
	"strings"

	"github.com/liftlock/liftlock/policies"
)

// waitsFor is what a gate that waits waits for, in a few words. Gates of the
// pipeline file speak for themselves; the others are promotion's own conditions.
func waitsFor(gate string) string {
	switch gate {
	case "pipeline-file":
		return "a working pipeline file"
	case "targets":
		return "its targets"
	case gateHold:
		return "the hold"
	case gateMergeable:
		return "the forge"
	case "diverged":
		return "a decision about a change by hand"
	case "base":
		return "being composed anew"
	case "reverting":
		return "the open revert"
	case "settled":
		return "what is there to be verified"
	case "upstream":
		return "upstream to be well"
	case gateBatch:
		return "what came along upstream"
	case "limit":
		return "the limit of merges"
	case "degraded":
		return "a person's decision"
	}
	return gate
}

// gateRemedy is what helps with a gate that doesn't say who can change it.
func gateRemedy(in Input, g policies.Result) string {
	if g.Outcome == policies.Fail {
		return "a commit that changes the pipeline file, or another release"
	}
	switch g.Gate {
	case "approvals":
		return "a review by somebody who may write and is no author of the release"
	case "pipeline-file":
		return "a commit that mends the pipeline file"
	case "targets":
		return "a commit that mends the ApplicationSets or the pipeline file"
	case gateHold:
		return "`/liftlock unhold`, as the reason says"
	case gateMergeable:
		return "the forge: its checks and branch protection"
	case "diverged":
		return promoteCommand(in)
	case "base":
		return "Liftlock, by itself"
	case "reverting":
		return "merging or closing the revert"
	case "settled", "upstream", gateBatch:
		return "by itself, when the targets are well; `/liftlock why` shows them"
	case "limit":
		return "by itself"
	case "degraded":
		return "a person: merge it or close it"
	}
	return ""
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
		p.writeLine("| %s | %s | %s | %s |", outcomeLabel(g.Outcome), escapeText(g.Gate, maxName), linkReason(in, g.Reason), whoCanPass(in, g))
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
func (s gateSummary) splitGates() (fails, waits []string) {
	seen := map[string]bool{}
	for _, g := range s.gates {
		if g.Outcome == policies.Pass || seen[g.Gate] {
			continue
		}
		seen[g.Gate] = true
		if g.Outcome == policies.Fail {
			fails = append(fails, escapeText(g.Gate, maxName))
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
