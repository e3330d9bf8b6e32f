package prtext

import (
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// Discovery is what a commit brings into a source environment by itself.
type Discovery struct {
	Unit        promotion.Unit
	Environment string
	Release     promotion.Release
	Changes     []Change
	Reasons     []string // why each version came in
}

// Message is the message of the commit. It depends on what comes in only: the same commit made again has the same name.
func (d *Discovery) Message() string {
	var b strings.Builder
	subject := fmt.Sprintf("Bring %s %s into %s", plainLine(d.Unit.Component, maxName), plainLine(d.Release.String(), maxValue),
		plainLine(d.Environment, maxName))
	b.WriteString(wording.ClipRunes(subject, subjectLimit) + "\n\n")
	for i, reason := range d.Reasons {
		if i == maxRows {
			fmt.Fprintf(&b, "and %s\n", wording.Count(len(d.Reasons)-i, "more version"))
			break
		}
		b.WriteString(plainLine(reason, maxReason) + "\n")
	}
	b.WriteString("\n" + moveMessage(Input{Changes: d.Changes}) + "\n")
	for _, t := range [][2]string{{promotion.TrailerPipeline, d.Unit.Pipeline}, {promotion.TrailerEnvironment, d.Environment},
		{promotion.TrailerComponent, d.Unit.Component}, {promotion.TrailerRelease, d.Release.ID},
		{promotion.TrailerKind, promotion.KindDiscovery}} {
		fmt.Fprintf(&b, "%s: %s\n", t[0], plainLine(t[1], maxName))
	}
	return b.String()
}
