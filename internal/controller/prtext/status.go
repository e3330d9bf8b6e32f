package prtext

import (
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// The states of a commit status, as every forge spells them.
const (
	statusPending = "pending"
	statusSuccess = "success"
	statusFailure = "failure"
)

// pullStatus is the commit status of an open pull request of ours: its gates.
func pullStatus(in Input) Status {
	s := summarizeGates(in)
	if s.headModified != "" {
		return newStatus(statusFailure, "stopped: "+s.headModified)
	}
	var wait, fail *policies.Result
	for i := range s.gates {
		g := &s.gates[i]
		switch {
		case g.Outcome == policies.Pass || g.Gate == promotion.GateMergeable:
			// The forge's own answer is not part of the status: where a branch protection requires
			// the status, the forge blocks the merge until it succeeds, and the two would wait for
			// each other.
		case g.Outcome == policies.Fail && fail == nil:
			fail = g
		case g.Outcome != policies.Fail && wait == nil:
			wait = g
		}
	}
	switch {
	case fail != nil:
		return newStatus(statusFailure, string(fail.Gate)+": "+fail.Reason)
	case wait != nil && wait.Gate == policies.GateApprovals:
		// Whose are missing changes with each, and every change is a call of the forge, which
		// shows who approved right beside the status.
		return newStatus(statusPending, "waits for "+waitsFor(wait.Gate)+": Liftlock's comment says whose")
	case wait != nil:
		return newStatus(statusPending, "waits for "+waitsFor(wait.Gate)+": "+wait.Reason)
	case !s.evaluated:
		return newStatus(statusPending, "its gates are not known yet")
	case s.byHand:
		return newStatus(statusSuccess, "every gate passes; a person merges it")
	}
	return newStatus(statusSuccess, "every gate passes")
}

// OtherStatus is the commit status on pull requests that aren't ours and on the
// tracked branch. pipelineErr says with file and line what is wrong with the
// pipeline files at that commit; empty: nothing.
func OtherStatus(pipelineErr string, touchesPipeline bool) Status {
	switch {
	case strings.TrimSpace(pipelineErr) != "":
		first, rest, _ := strings.Cut(strings.TrimSpace(pipelineErr), "\n")
		n := 0
		for line := range strings.Lines(rest) {
			if strings.TrimSpace(line) != "" {
				n++
			}
		}
		if n == 0 {
			return newStatus(statusFailure, first)
		}
		more := " (and " + wording.Plural(n, "more)", "more)")
		return Status{State: statusFailure, Description: wording.ClipRunes(plainLine(first, maxReason), maxStatus-len(more)) + more}
	case touchesPipeline:
		return newStatus(statusSuccess, "pipeline files are valid")
	}
	return newStatus(statusSuccess, "no pipeline file touched")
}

func newStatus(state, description string) Status {
	return Status{State: state, Description: wording.ClipRunes(plainLine(description, maxReason), maxStatus)}
}
