package prtext

import (
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// The states of a commit status, as every forge spells them.
const (
	statusPending = "pending"
	statusSuccess = "success"
	statusFailure = "failure"
)

// pullStatus is the commit status of an open pull request of ours: its headline.
func pullStatus(in Input) Status {
	s := summarizeGates(in)
	if s.headModified != "" {
		return newStatus(statusFailure, "stopped: "+s.headModified)
	}
	switch h := promotion.JudgeHeadline(s.gates); h.Kind {
	case promotion.HeadlineBlocked:
		return newStatus(statusFailure, h.Text)
	case promotion.HeadlineHeld, promotion.HeadlineWaiting:
		return newStatus(statusPending, h.String())
	case promotion.HeadlinePassing:
		return newStatus(statusPending, h.Text)
	}
	// The forge's own answer is not part of the status. Where a branch protection requires the status, the
	// forge blocks the merge until it succeeds, and the two would wait for each other.
	switch {
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
