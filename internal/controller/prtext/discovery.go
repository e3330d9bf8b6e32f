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

// Incoming is the pull request that brings something into a source environment.
type Incoming struct {
	Discovery
	Marker string // hidden; by which it is known again
}

// Title is the title of the pull request, and the subject of its commit.
func (d *Discovery) Title() string {
	subject := fmt.Sprintf("Bring %s %s into %s", plainLine(d.Unit.Component, maxName), plainLine(d.Release.String(), maxValue),
		plainLine(d.Environment, maxName))
	return wording.ClipRunes(subject, subjectLimit)
}

// Body is the body of the pull request.
func (in *Incoming) Body() string {
	var p page
	p.writeParagraph("New in the registry, and to come into %s of %s by the rules of the pipeline file:", codeSpan(in.Environment, maxName),
		codeSpan(in.Unit.Component, maxName))
	p.writeFolded("", listItems(in.Reasons))
	p.writeLine("- **Merge it**, and the release goes on from %s by promotions.", codeSpan(in.Environment, maxName))
	p.writeLine("- **Close it**, and this version stays out. A newer one opens another pull request.")
	p.writeLine("- **Push to its branch**, and Liftlock leaves it alone. Until then it follows the newest version.")
	p.writeGap()
	return truncateBody(p.String()) + "\n" + in.Marker + "\n"
}

// ObsoleteIncomingBody is the body of one that Liftlock closes.
func ObsoleteIncomingBody(environment string) string {
	var p page
	p.writeParagraph("Closed by Liftlock: nothing newer than what %s has comes in any more.", codeSpan(environment, maxName))
	return p.String()
}

// Message is the message of the commit. It depends on what comes in only: the same commit made again has the same name.
func (d *Discovery) Message() string {
	var b strings.Builder
	b.WriteString(d.Title() + "\n\n")
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
