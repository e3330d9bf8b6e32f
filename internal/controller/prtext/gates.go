package prtext

import (
	"cmp"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/policies"
)

// gateWords says of Liftlock's own conditions, and of the forge, what waits for them in a
// few words, and what helps. Gates of the pipeline file speak for themselves.
var gateWords = map[string]struct{ waitsFor, remedy string }{
	"approvals":             {"", "a review by somebody who may write and is no author of the release"},
	"window":                {"its window", "by itself"},
	"windows":               {"one of its windows", "by itself"},
	"expression":            {"its expression", "another release, or a change of what the expression asks for"},
	"checks":                {"checks on its head", "the checks, when they pass"},
	"soak":                  {"its soak", "by itself, while the environment before stays well"},
	"freeze":                {"the end of a freeze", "by itself"},
	"pipeline-file":         {"a working pipeline file", "a commit that mends the pipeline file"},
	"targets":               {"its targets", "a commit that mends the ApplicationSets or the pipeline file"},
	gateHold:                {"the hold", "`/liftlock unhold`, as the reason says"},
	promotion.GateMergeable: {"the forge", "the forge: its checks and branch protection"},
	"diverged":              {"a decision about a change by hand", ""},
	"base":                  {"being composed anew", "Liftlock, by itself"},
	"reverting":             {"the open revert", "merging or closing the revert"},
	"settled":               {"its targets to be as Git says", "a sync of the targets, or a commit with what was changed in them"},
	"verifying":             {"what is there to be verified", byItself},
	"upstream":              {"upstream to be well", byItself},
	"closed":                {"a decision about a promotion that a person closed", ""},
	gateBatch:               {"what came along upstream", byItself},
	"limit":                 {"the limit of merges", "by itself"},
	"degraded":              {"a person's decision", "a person: merge it or close it"},
}

const byItself = "by itself, when the targets are well; `/liftlock why` shows them"

// waitsFor is what a gate that waits waits for, in a few words.
func waitsFor(gate string) string { return cmp.Or(gateWords[gate].waitsFor, gate) }

// gateRemedy is what helps with a gate that doesn't say who can change it.
func gateRemedy(in Input, g policies.Result) string {
	switch {
	case g.Outcome == policies.Fail && g.Gate == "checks":
		return "the checks, when they run again and pass; or another release"
	case g.Outcome == policies.Fail:
		return "a commit that changes the pipeline file, or another release"
	case g.Gate == "diverged", g.Gate == "closed":
		return promoteCommand(in)
	}
	return gateWords[g.Gate].remedy
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
		p.writeLine("| %s | %s | %s | %s |", outcomeLabel(g.Outcome), escapeText(g.Gate, maxName), linkReason(in, g.Reason),
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
	seen := map[string]bool{}
	for _, g := range gs.gates {
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
