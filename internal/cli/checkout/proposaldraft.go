package checkout

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/cli/propose"
	"github.com/liftlock/liftlock/internal/wording"
)

// maxSeenProblems bounds the reasons that are listed of why nothing is generated.
const maxSeenProblems = 5

// draftTemplates gives the choice of templates, where an error is that, the pipeline file with the rest.
func (d *deployed) draftTemplates(err error) error {
	var choice *propose.ChoiceError
	if !errors.As(err, &choice) {
		return err
	}
	d.proposal.Assignment, d.proposal.Branches, d.proposal.Sets = nil, nil, d.setEntries(nil)
	d.proposal.Open.Templates = choice
	d.writeDraft(choice, "")
	return err
}

// draftTargets gives the pipeline file with the ApplicationSets alone, where they are there and generate nothing. An
// error that comes of no set stays what it is.
func (d *deployed) draftTargets(nothing error) error {
	if d.sets == nil || d.sets.isEmpty() || d.targets == nil || !errors.Is(nothing, propose.ErrNothingUsable) {
		return nothing
	}
	var seen []string
	for i := range d.targets.Problems {
		if i > 0 && i < maxSeenProblems { // the question has the first
			seen = append(seen, d.targets.Problems[i].String())
		}
	}
	d.proposal.Name = d.pipelineName()
	return d.draftTemplates(propose.NoTargets(nothing, seen,
		"see whether the folders and files that they generate from are in this checkout; clusters come from --clusters FILE, which "+
			"liftlock init --clusters-example begins"))
}

// draftCarry is that a person has to say what a promotion moves, with the pipeline file of the rest.
func (d *deployed) draftCarry(ctx context.Context, source *propose.Source) error {
	p := &d.proposal
	seen, err := source.ListVersions(ctx)
	if err != nil {
		return err
	}
	found := fmt.Sprintf("%s in %s", wording.Count(len(p.Assignment.Components), "component"),
		strings.Join(p.Assignment.Environments, ", "))
	choice := &propose.ChoiceError{
		Question: fmt.Sprintf("what does a promotion move? No image, tag, version or revision is at the same place in two environments "+
			"of a component: looked at the YAML and JSON files in %s", wording.JoinFew(lookedAt(source.Components), 6)),
		Seen:  seen,
		Other: "a version can move that each environment has in a folder or a file of its own, or at a path with {{environment}}",
	}
	p.Open.Carry = choice
	if err := d.orderEnvironments(); err != nil {
		if !errors.As(err, &p.Open.Order) {
			return err
		}
	}
	d.writeDraft(choice, ", "+found)
	return choice
}

// draftOrder gives the choice of the environments' order, where an error is that, the pipeline file with the rest.
func (d *deployed) draftOrder(err error) error {
	var choice *propose.ChoiceError
	if !errors.As(err, &choice) {
		return err
	}
	p := &d.proposal
	p.Open.Order = choice
	d.writeDraft(choice, fmt.Sprintf(", %s in %s", wording.Count(len(p.Assignment.Components), "component"),
		wording.Count(len(p.Assignment.Environments), "environment")))
	return err
}

// todoHeader says that something is open.
const todoHeader = "What has to be said before it can be used is marked TODO: liftlock validate says what is missing."

// writeDraft writes the pipeline file as far as it is known into a choice; found is what of components and environments is.
func (d *deployed) writeDraft(choice *propose.ChoiceError, found string) {
	d.proposal.Header = []string{
		fmt.Sprintf("Begun by liftlock init from %s: %s%s.", d.describeSources(),
			wording.Count(len(d.targets.Targets), "Application"), found),
		todoHeader,
	}
	d.keepClusters()
	d.nameUntold()
	d.describeKnown()
	d.noteUnresolved()
	choice.Draft, choice.Known = d.proposal.Write(), &d.proposal
}
