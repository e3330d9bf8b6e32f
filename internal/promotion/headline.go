package promotion

import (
	"cmp"
	"slices"

	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// HeadlineKind is what an open pull request of ours has come to.
type HeadlineKind string

// The kinds. Whoever shows one names it by these words.
const (
	HeadlineBlocked HeadlineKind = "blocked" // a gate fails
	HeadlineHeld    HeadlineKind = "held"
	HeadlineWaiting HeadlineKind = "waiting"
	HeadlineForge   HeadlineKind = "forge"   // every gate passes, and the forge doesn't take the merge yet
	HeadlinePassing HeadlineKind = "passing" // Liftlock itself is at it, for moments
	HeadlineReady   HeadlineKind = "ready"
	HeadlineStopped HeadlineKind = "stopped" // its branch isn't as Liftlock made it
)

// Headline is where a pull request stands, in one sentence without a full stop.
type Headline struct {
	Kind HeadlineKind
	Text string   // "waiting for grace (0 of 1)"
	Also []string // what else it waits for, each once and in a few words
}

// maxAlso bounds what else is named in one sentence.
const maxAlso = 3

// String is all of it in one sentence: "waiting for grace (0 of 1); also waiting for its window".
func (h Headline) String() string {
	if len(h.Also) == 0 {
		return h.Text
	}
	return h.Text + "; also waiting for " + wording.JoinFew(h.Also, maxAlso)
}

// JudgeHeadline says where an open pull request stands by what its gates answered. It is the one judge: the commit
// status, the comment, the console and the command line all show what it says. No gates: every one passes.
func JudgeHeadline(gates []policies.Result) Headline {
	var first, forge *policies.Result
	passing := false
	for i := range gates {
		g := &gates[i]
		own, _ := findOwnGate(g.Gate)
		switch {
		case g.Outcome == policies.Pass:
		case own.passing:
			passing = true
		case g.Gate == GateMergeable:
			forge = cmp.Or(forge, g)
		case first == nil || headlineRank(g) < headlineRank(first):
			first = g
		}
	}
	switch {
	case first != nil:
		h := describeFirst(first)
		h.Also = listOthers(gates, first)
		return h
	case passing:
		return Headline{Kind: HeadlinePassing, Text: "being brought up to date"}
	case forge != nil:
		return Headline{Kind: HeadlineForge, Text: "every gate passes; " + forge.Reason}
	}
	return Headline{Kind: HeadlineReady, Text: "every gate passes"}
}

// JudgePull says where the environment's open promotion stands, or its open revert; nothing where there is none, or
// where that isn't known yet.
func (e *EnvState) JudgePull(revert bool) Headline {
	pull, gates := e.Pull, e.Gates
	if revert {
		pull, gates = e.Revert, e.RevertGates
	}
	find := func(code cause.Code) *Reason {
		if i := slices.IndexFunc(e.Why, func(r Reason) bool { return r.Code == code }); i >= 0 {
			return &e.Why[i]
		}
		return nil
	}
	stopped := cmp.Or(find(cause.Unmanaged), find(cause.HeadModified))
	byHand := find(cause.Manual) != nil
	switch {
	case pull == 0:
		return Headline{}
	case len(gates) == 0 && stopped != nil:
		return Headline{Kind: HeadlineStopped, Text: "stopped: " + stopped.Text}
	case len(gates) == 0 && !byHand:
		return Headline{}
	}
	h := JudgeHeadline(gates)
	if h.Kind == HeadlineReady && byHand {
		h.Text += "; a person merges it"
	}
	return h
}

// headlineRank is how early a gate that doesn't pass speaks for all.
func headlineRank(g *policies.Result) int {
	switch {
	case g.Outcome == policies.Fail:
		return 0
	case g.Gate == GateHold:
		return 1
	}
	return 2
}

func describeFirst(g *policies.Result) Headline {
	switch {
	case g.Outcome == policies.Fail:
		return Headline{Kind: HeadlineBlocked, Text: "blocked by " + string(g.Gate) + ": " + g.Reason}
	case g.Gate == GateHold && g.Brief != "":
		return Headline{Kind: HeadlineHeld, Text: "on hold " + g.Brief}
	case g.Gate == GateHold:
		return Headline{Kind: HeadlineHeld, Text: "on hold: " + g.Reason}
	case g.Brief != "":
		return Headline{Kind: HeadlineWaiting, Text: "waiting for " + g.Brief}
	}
	return Headline{Kind: HeadlineWaiting, Text: "waiting for " + briefGate(g) + ": " + g.Reason}
}

// briefGate is what a gate that doesn't pass waits for, in a few words.
func briefGate(g *policies.Result) string {
	switch {
	case g.Outcome == policies.Fail, g.Brief == "":
		return cmp.Or(WordsOfGate(g.Gate).WaitsFor, string(g.Gate))
	case g.Gate == GateHold:
		return "the hold " + g.Brief
	}
	return g.Brief
}

// listOthers are the gates besides the first that speaks which don't pass, but for what passes by itself.
func listOthers(gates []policies.Result, first *policies.Result) []string {
	var out []string
	for i := range gates {
		g := &gates[i]
		own, _ := findOwnGate(g.Gate)
		if g == first || g.Outcome == policies.Pass || own.passing || g.Gate == GateMergeable {
			continue
		}
		if text := briefGate(g); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}
