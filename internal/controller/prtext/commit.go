package prtext

import (
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// subjectLimit keeps a commit's subject readable in git log.
const subjectLimit = 100

// CommitMessage is the message of the commit that a pull request of ours brings.
// It depends on what moves and why only, not on the facts of the moment: the
// same commit made again has the same name.
func CommitMessage(in Input) string {
	return wording.ClipRunes(formatTitle(in, restoredValue(in)), subjectLimit) + "\n\n" + moveMessage(in) + "\n" + commitTrailers(in)
}

// MergeMessage is the title and the message of the merge or squash commit. It
// carries the trailers too, because a squash keeps no other commit.
func MergeMessage(in Input) (subject, body string) {
	subject = wording.ClipRunes(formatTitle(in, restoredValue(in)), subjectLimit)
	if in.Number > 0 {
		subject = fmt.Sprintf("%s (#%d)", subject, in.Number)
	}
	return subject, moveMessage(in) + "\n" + commitTrailers(in)
}

// moveMessage says what moves, in lines that can't be read as trailers.
func moveMessage(in Input) string {
	var b strings.Builder
	if in.Revert {
		if in.By != "" {
			fmt.Fprintf(&b, "Takes back %s, asked for by %s", pullRef(in.RevertedPull), plainLine(in.By, maxName))
			if in.Reason != "" {
				b.WriteString(": " + plainLine(in.Reason, maxReason))
			}
			b.WriteString("\n\n")
		} else {
			fmt.Fprintf(&b, "Takes back %s: %s degraded after it.\n\n", pullRef(in.RevertedPull), plainLine(in.Environment, maxName))
		}
	}
	for i, c := range in.Changes {
		if i == maxRows {
			fmt.Fprintf(&b, "- and %s\n", wording.Count(len(in.Changes)-i, "more field"))
			break
		}
		fmt.Fprintf(&b, "- %s %s: %s -> %s\n", plainLine(c.File, maxAddress), plainLine(c.Path, maxAddress), plainValue(c.Old),
			plainValue(c.New))
	}
	return b.String()
}

func plainValue(s string) string {
	if s == "" {
		return "(nothing)"
	}
	return plainLine(s, maxValue)
}

func commitTrailers(in Input) string {
	kind := promotion.KindPromotion
	if in.Revert {
		kind = promotion.KindRevert
	}
	var b strings.Builder
	add := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", key, value)
		}
	}
	add(promotion.TrailerPipeline, plainLine(in.component().Unit.Pipeline, maxName))
	add(promotion.TrailerEnvironment, plainLine(in.Environment, maxName))
	add(promotion.TrailerComponent, plainLine(componentOf(in), maxName))
	add(promotion.TrailerRelease, plainLine(in.Release, maxName))
	if in.Batch {
		var members []promotion.Member
		for _, p := range in.Members {
			members = append(members, p.Member)
		}
		add(promotion.TrailerMembers, promotion.MembersTrailer(members))
	}
	if !in.Revert {
		add(promotion.TrailerRequesters, plainLine(promotion.RequestersTrailer(requestersOf(in)), maxRequesters))
	}
	add(promotion.TrailerKind, kind)
	return b.String()
}

// requestersOf are those whose commands bring what moves.
func requestersOf(in Input) []policies.Account {
	var out []policies.Account
	for _, m := range in.Members {
		if m.Facts != nil {
			out = append(out, m.Facts.Requesters(in.Environment, m.Release)...)
		}
	}
	slices.SortFunc(out, policies.Account.Compare)
	return slices.Compact(out)
}
