package console

import (
	"slices"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/wording"
)

// choice is one thing that a person may do next, as a link.
type choice struct {
	Text, URL string
	Dangerous bool // it takes something back that runs
	Away      bool // the link leads to the forge
}

// choices are what may be done next about a promotion.
type choices struct {
	Primary *choice // what its state calls for; nil: nothing
	Others  []choice
}

// promotionChoices lists what applies to a promotion in its state, and nothing that would be refused for that
// state. Who may do it is said by the page of the action.
func (p *pages) promotionChoices(pr *api.Promotion) choices {
	act := func(text string, verb command.Verb) choice {
		return choice{Text: text, URL: p.actURL(string(verb), pr.ID), Dangerous: verb == command.Revert}
	}
	isPromotion := pr.Kind == "promotion"
	review := choice{Text: "Review " + pr.Pull.String(), URL: pr.Pull.URL, Away: true}
	hold, unhold, retry := act("Hold", command.Hold), act("Lift the hold", command.Unhold), act("Try again", command.Retry)
	skip := act("Skip a gate", command.Skip)
	name := pr.Name
	if name == "" {
		name = wording.Short(pr.Release)
	}
	revert := act("Revert "+name+" in "+pr.Environment, command.Revert)
	var ordered []choice // the first is the primary one
	hasPrimary := true
	switch pr.State {
	case "open", "held", "waiting":
		if pr.State == "held" {
			ordered = []choice{unhold, review}
		} else {
			ordered = []choice{review, hold}
		}
		if isPromotion && len(pr.Detail.Gates) > 0 {
			ordered = append(ordered, skip)
		}
		ordered = append(ordered, retry)
	case "degraded":
		ordered = []choice{revert, retry}
	case "failed":
		ordered = []choice{retry, revert}
	case "closed":
		ordered = []choice{retry}
	case "merged", "verifying":
		ordered, hasPrimary = []choice{revert, retry}, false
	case "verified":
		ordered, hasPrimary = []choice{revert}, false
	}
	canRevert := isPromotion && pr.Detail.Current // where the environment has moved on, there is nothing to take back
	ordered = slices.DeleteFunc(ordered, func(c choice) bool { return c.Dangerous && !canRevert || c.Away && c.URL == "" })
	if !hasPrimary || len(ordered) == 0 {
		return choices{Others: ordered}
	}
	return choices{Primary: &ordered[0], Others: ordered[1:]}
}
