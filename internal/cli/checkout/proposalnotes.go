package checkout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/plan"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// describe writes what was found, and what the proof showed, into the proposal's comments.
func (d *deployed) describe(managed *appset.TargetSet, proven *Proposal) {
	p := &d.proposal
	p.Header = []string{
		fmt.Sprintf("Proposed by liftlock init from %s: %s, %s in %s.", d.describeSources(), wording.Count(len(managed.Targets), "Application"),
			wording.Count(len(p.Assignment.Components), "component"), wording.Count(len(p.Assignment.Environments), "environment")),
		"Nothing is merged by itself: gates and `merge: auto` are yours to add to environments.",
	}
	if p.Plain && slices.ContainsFunc(managed.Targets, func(t appset.Target) bool { return !t.AutoSync }) {
		p.Header = append(p.Header, "Those without an automated sync policy are synced only where they carry the annotation liftlock.dev/pipeline: "+p.Name+".")
	}
	d.describeKnown()
	d.noteUnresolved()
	if n := len(managed.Targets) - p.Assignment.Targets; n > 0 {
		var names []string
		for _, t := range managed.Targets {
			if !t.Managed() {
				names = append(names, t.Name)
			}
		}
		p.Notes = append(p.Notes, fmt.Sprintf("In no environment, and so left alone: %s.", wording.JoinFew(appset.SortedUnique(names), 8)))
	}
	if len(p.Carried.Alone) > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("Not carried, because one environment alone has it: %s.", wording.JoinFew(p.Carried.Alone, 4)))
	}
	if proven.PlanError != nil {
		p.Notes = append(p.Notes, fmt.Sprintf("Not planned: %v.", proven.PlanError))
		return
	}
	p.Notes = append(p.Notes, planNotes(proven.Plan)...)
}

// describeSources says where the ApplicationSets or Applications are from.
func (d *deployed) describeSources() string {
	if len(d.live) == 0 {
		return d.sets.describe()
	}
	if len(d.query.Files) > 0 {
		return wording.Count(len(d.live), "ApplicationSet") + " that no file or chart of the repository has as they were given"
	}
	return wording.Count(len(d.live), "ApplicationSet") + " of the running Argo CD"
}

// describeKnown writes what else is needed to read the sets, into the comments above the file.
func (d *deployed) describeKnown() {
	p := &d.proposal
	if len(d.live) > 0 {
		p.Header = append(p.Header, "ApplicationSets are read as they run: plan needs --clusters live, or --argocd-url.")
	}
	if len(d.query.Flags) > 0 {
		p.Header = append(p.Header, "What it reads is not in this repository alone: validate, plan and impact need these flags as well: "+strings.Join(d.query.Flags, " "))
	}
}

// noteUnresolved writes which sets are left out.
func (d *deployed) noteUnresolved() {
	p := &d.proposal
	if len(d.unresolved) > 0 {
		var names []string
		for _, u := range d.unresolved {
			names = append(names, u.ApplicationSet)
		}
		p.Notes = append(p.Notes, fmt.Sprintf("Left out, because they couldn't be resolved: %s.", wording.JoinFew(names, 8)))
	}
}

// fewReasons are as many places in which nothing is found as are told one by one.
const fewReasons = 4

// planNotes say which environments of which components can't be read, and why: one line a reason.
func planNotes(pl *plan.Plan) []string {
	places := map[string][]string{}
	var order []string
	promotions := 0
	for _, part := range pl.Pipelines {
		promotions += len(part.Promotions)
		for _, w := range part.Waiting {
			if w.State != promotion.Mixed && w.State != promotion.Unreadable {
				continue
			}
			for _, why := range w.Why {
				if places[why.Text] == nil {
					order = append(order, why.Text)
				}
				places[why.Text] = append(places[why.Text], w.Component+" in "+w.Environment)
			}
		}
	}
	var out, without []string
	hasNothing := func(why string) bool { return strings.HasPrefix(why, history.NothingCarried) }
	if len(slices.DeleteFunc(slices.Clone(order), func(why string) bool { return !hasNothing(why) })) > fewReasons {
		for _, why := range order {
			if hasNothing(why) {
				without = append(without, places[why]...)
			}
		}
		order = slices.DeleteFunc(order, hasNothing)
		out = append(out, fmt.Sprintf("Not promoted, because nothing that is carried is found for it: %s. liftlock plan says where it was looked for.", wording.JoinFew(without, 8)))
	}
	for _, why := range order {
		out = append(out, fmt.Sprintf("Not promoted, %s: %s.", wording.JoinFew(places[why], 4), why))
	}
	if promotions > 0 {
		out = append(out, fmt.Sprintf("As of now %s would open: liftlock plan shows them.", wording.Count(promotions, "promotion")))
	}
	return out
}
