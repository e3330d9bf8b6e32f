package prtext

import (
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
)

// subjectLimit keeps a commit's subject readable in git log.
const subjectLimit = 100

// CommitMessage is the message of the commit that a pull request of ours brings.
// It depends on what moves and why only, not on the facts of the moment: the
// same commit made again has the same name.
func CommitMessage(in Input) string {
	return short(headline(in, restored(in)), subjectLimit) + "\n\n" + message(in) + "\n" + trailers(in)
}

// MergeMessage is the title and the message of the merge or squash commit. It
// carries the trailers too, because a squash keeps no other commit.
func MergeMessage(in Input) (subject, body string) {
	subject = short(headline(in, restored(in)), subjectLimit)
	if in.Number > 0 {
		subject = fmt.Sprintf("%s (#%d)", subject, in.Number)
	}
	return subject, message(in) + "\n" + trailers(in)
}

// message says what moves, in lines that can't be read as trailers.
func message(in Input) string {
	var b strings.Builder
	if in.Revert {
		if in.By != "" {
			fmt.Fprintf(&b, "Takes back %s, asked for by %s", ref(in.Of), plain(in.By, maxName))
			if in.Reason != "" {
				b.WriteString(": " + plain(in.Reason, maxReason))
			}
			b.WriteString("\n\n")
		} else {
			fmt.Fprintf(&b, "Takes back %s: %s degraded after it.\n\n", ref(in.Of), plain(in.Environment, maxName))
		}
	}
	for i, c := range in.Changes {
		if i == maxRows {
			fmt.Fprintf(&b, "- and %s\n", plural(len(in.Changes)-i, "more field", "more fields"))
			break
		}
		fmt.Fprintf(&b, "- %s %s: %s -> %s\n", plain(c.File, maxAddress), plain(c.Path, maxAddress), value(c.Old), value(c.New))
	}
	return b.String()
}

func value(s string) string {
	if s == "" {
		return "(nothing)"
	}
	return plain(s, maxValue)
}

func trailers(in Input) string {
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
	if in.Facts != nil {
		add(promotion.TrailerPipeline, plain(in.Facts.Unit.Pipeline, maxName))
	}
	add(promotion.TrailerEnvironment, plain(in.Environment, maxName))
	add(promotion.TrailerComponent, plain(component(in), maxName))
	add(promotion.TrailerRelease, plain(in.Release, maxName))
	var with []promotion.Passenger
	for _, p := range in.Passengers {
		with = append(with, p.Passenger)
	}
	add(promotion.TrailerPassengers, promotion.PassengersTrailer(with))
	add(promotion.TrailerKind, kind)
	return b.String()
}
