package checkout

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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
		fmt.Sprintf("Proposed by liftlock init from %s: %s, %s in %s.", d.describeSources(),
			wording.Count(len(managed.Targets), "Application"),
			wording.Count(len(p.Assignment.Components), "component"), wording.Count(len(p.Assignment.Environments), "environment")),
		"Nothing is merged by itself: gates and `merge: auto` are yours to add to environments.",
	}
	if p.Open.Charts != nil {
		p.Header = append(p.Header, todoHeader)
	}
	if p.Plain && slices.ContainsFunc(managed.Targets, func(t appset.Target) bool { return !t.AutoSync }) {
		p.Header = append(p.Header, "Those without an automated sync policy are synced only where they carry the annotation "+
			"liftlock.dev/pipeline: "+p.Name+".")
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
		p.Notes = append(p.Notes, fmt.Sprintf("Not carried, because one environment alone has it: %s.",
			wording.JoinFew(p.Carried.Alone, 4)))
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
		p.Header = append(p.Header, "What it reads is not in this repository alone: validate, plan and impact need these flags as well: "+
			strings.Join(d.query.Flags, " "))
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

// leftPlace is an environment of a component that nothing is promoted into, and why.
type leftPlace struct{ component, environment, why string }

// reason is why, the same for all environments and components where only their names differ in it.
func (l leftPlace) reason() string {
	words := []string{l.component, "{{component}}", l.environment, "{{environment}}"}
	if len(l.environment) > len(l.component) { // a name may be a part of the other
		words = slices.Concat(words[2:], words[:2])
	}
	return replaceWord(replaceWord(l.why, words[0], words[1]), words[2], words[3])
}

// replaceWord replaces a name wherever no letter and no digit is beside it, but for what is in braces.
func replaceWord(text, name, by string) string {
	isPart := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '{' || r == '}' }
	var out strings.Builder
	last := ' '
	for rest := text; rest != ""; {
		after, found := strings.CutPrefix(rest, name)
		next, _ := utf8.DecodeRuneInString(after)
		isWhole := !isPart(last) && (after == "" || !isPart(next))
		if found && name != "" && isWhole {
			out.WriteString(by)
			rest, last = after, '}'
			continue
		}
		r, size := utf8.DecodeRuneInString(rest)
		out.WriteString(rest[:size])
		rest, last = rest[size:], r
	}
	return out.String()
}

// planNotes say which environments of which components can't be read, and why: one line a reason.
func planNotes(pl *plan.Plan) []string {
	var left []leftPlace
	promotions := 0
	for _, part := range pl.Pipelines {
		promotions += len(part.Promotions)
		for _, w := range part.Waiting {
			if w.State != promotion.Mixed && w.State != promotion.Unreadable {
				continue
			}
			for _, why := range w.Why {
				left = append(left, leftPlace{w.Component, w.Environment, why.Text})
			}
		}
	}
	out := leftNotes(left)
	if promotions > 0 {
		out = append(out, fmt.Sprintf("As of now %s would open: liftlock plan shows them.", wording.Count(promotions, "promotion")))
	}
	return out
}

// leftNotes are a line for each reason, with the places.
func leftNotes(left []leftPlace) []string {
	places := map[string][]leftPlace{}
	var order []string
	for _, l := range left {
		reason := l.reason()
		if places[reason] == nil {
			order = append(order, reason)
		}
		places[reason] = append(places[reason], l)
	}
	var out []string
	var without []leftPlace
	hasNothing := func(reason string) bool { return strings.HasPrefix(reason, history.NothingCarried) }
	if len(slices.DeleteFunc(slices.Clone(order), func(reason string) bool { return !hasNothing(reason) })) > fewReasons {
		for _, reason := range order {
			if hasNothing(reason) {
				without = append(without, places[reason]...)
			}
		}
		order = slices.DeleteFunc(order, hasNothing)
		out = append(out, fmt.Sprintf("Not promoted, because nothing that is carried is found for it: %s. liftlock plan says where it "+
			"was looked for.", describePlaces(without)))
	}
	for _, reason := range order {
		all, why := places[reason], reason
		if len(all) == 1 {
			why = all[0].why
		}
		out = append(out, fmt.Sprintf("Not promoted, %s: %s.", describePlaces(all), why))
	}
	return out
}

// maxPlaces bounds the components, and the environments of each, that a note names.
const maxPlaces = 8

// describePlaces names each component once, with its environments: api, web in qa, prod; mail in prod.
func describePlaces(all []leftPlace) string {
	environments, components := map[string][]string{}, map[string][]string{}
	var order, parts []string
	for _, l := range all {
		if environments[l.component] == nil {
			order = append(order, l.component)
		}
		environments[l.component] = append(environments[l.component], l.environment)
	}
	var groups []string
	for _, component := range order {
		where := wording.JoinFew(environments[component], maxPlaces)
		if components[where] == nil {
			groups = append(groups, where)
		}
		components[where] = append(components[where], component)
	}
	for _, where := range groups {
		parts = append(parts, wording.JoinFew(components[where], maxPlaces)+" in "+where)
	}
	return strings.Join(parts, "; ")
}
