package console

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// actionBody is the body of the page that says what will happen before anything does, and
// what came of it afterwards.
type actionBody struct {
	*Command
	Comment string   // what would be the same in a pull request
	Happens []string // what will happen, sentence by sentence
	Refused string   // why this user can't do it; empty: nothing is known against it
	Gates   []string // skip: those that it has

	// The form.
	User                *user
	Token, Key          string
	Reason, For, Chosen string // as they were filled in

	Done   string // what came of it; empty: nothing was done yet
	Failed string // why nothing came of it
	// Uncertain says that it isn't known whether nothing did: sent again with its key, it isn't
	// done twice.
	Uncertain bool
	Back      string // the page that it began on
}

// IsLong says whether a hold is of more than one pull request.
func (a *actionBody) IsLong() bool { return a.Verb == command.Hold && a.Scope != command.ScopePR }

// TakesReason says whether a reason can be given.
func (a *actionBody) TakesReason() bool { return a.Verb.TakesReason() }

// actURL is where something is done to a promotion, given by its ID, or to a pipeline.
func (p *pages) actURL(verb string, promotionID int64) string {
	return p.pageURL("act", "promotions", promotionID, verb)
}

// actOnPipelineURL is where something is done to a pipeline, or to a part of it.
func (p *pages) actOnPipelineURL(repo, pipeline, verb, component, environment string) string {
	q := url.Values{}
	for name, value := range map[string]string{"component": component, "environment": environment} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if p.isAmbiguous(pipeline) {
		q.Set("repository", repo)
	}
	out := p.pageURL("act", "pipelines", pipeline, verb)
	if len(q) > 0 {
		out += "?" + q.Encode()
	}
	return out
}

// actOnPromotion takes /act/promotions/{id}/{verb}.
func (se *server) actOnPromotion(w http.ResponseWriter, r *http.Request) {
	verb := command.Verb(r.PathValue("verb"))
	if !slices.Contains(command.OnPromotion(), verb) {
		se.pageNotFound(w, r)
		return
	}
	_, p := se.loadPromotion(w, r)
	if p == nil {
		return
	}
	form := &api.PromotionCommand{For: r.PostFormValue("for"), Reason: r.PostFormValue("reason")}
	if verb == command.Skip {
		form.Gate, form.Head = r.PostFormValue("gate"), r.PostFormValue("head")
	}
	o, err := se.parsePromotionCommand(r, verb, form)
	if o == nil {
		se.renderError(w, r, err)
		return
	}
	if verb == command.Skip && r.Method == http.MethodGet {
		if pull := se.reader.readPull(r.Context(), o.Repo, o.Pull); pull != nil {
			o.Head = pull.PR.Head
		}
	}
	b := &actionBody{Command: o, Happens: describePromotionAction(p, o), Back: se.pages.pageURL("promotions", p.ID)}
	hasApprovals := false
	for _, g := range p.Detail.Gates {
		b.Gates = append(b.Gates, g.Gate)
		hasApprovals = hasApprovals || g.Gate == string(policies.GateApprovals)
	}
	se.act(w, r, b, hasApprovals, err)
}

// actOnPipeline takes /act/pipelines/{pipeline}/{verb}.
func (se *server) actOnPipeline(w http.ResponseWriter, r *http.Request) {
	verb, q := command.Verb(r.PathValue("verb")), r.URL.Query()
	if !slices.Contains(command.OnPipeline(), verb) {
		se.pageNotFound(w, r)
		return
	}
	form := &api.PipelineCommand{Repository: q.Get("repository"), Component: q.Get("component"), Environment: q.Get("environment"),
		For: r.PostFormValue("for"), Reason: r.PostFormValue("reason"), Reverts: verb == command.Hold && r.PostFormValue("reverts") != ""}
	if form.Component == "" && form.Environment == "" {
		form.Scope = command.ScopePipeline
	}
	o, err := se.parsePipelineCommand(r, verb, form)
	if o == nil {
		se.renderError(w, r, err)
		return
	}
	b := &actionBody{Command: o, Happens: describePipelineAction(o), Back: se.pages.pipelineURL(o.Repo, o.Pipeline)}
	if o.Component != "" {
		b.Back = se.pages.componentURL(o.Repo, o.Pipeline, o.Component)
	}
	se.act(w, r, b, false, err)
}

// act shows what will happen, or, posted, has it done and shows what came of it. invalid says
// what is wrong with what was filled in.
func (se *server) act(w http.ResponseWriter, r *http.Request, b *actionBody, hasApprovals bool, invalid error) {
	u := userOf(r.Context())
	b.User, b.Token, b.By, b.Role, b.Via = u, u.formToken(), u.By(), u.Role, "console"
	b.Account = se.accountOn(u, b.Repo)
	b.Command.Subject = se.digestUser(u.Subject)
	b.Comment = command.Comment(b.Grammar())
	if b.Verb == command.Skip {
		b.Comment = command.Prefix + " skip GATE REASON" // which gate is to be chosen yet
	}
	b.Reason, b.For, b.Chosen = r.PostFormValue("reason"), r.PostFormValue("for"), r.PostFormValue("gate")
	b.Key = cmp.Or(r.PostFormValue("key"), rand.Text())
	if err := u.mayGive(b.Grammar(), b.Account, hasApprovals && b.Verb != command.Unhold); err != nil {
		b.Refused = err.Error()
	}
	status := http.StatusOK
	if r.Method == http.MethodPost {
		err := invalid
		if bad := checkText(b.Key, maxKey); err == nil && bad != nil {
			err = apiErrorf(http.StatusBadRequest, "the form's key %v", bad)
		}
		if err == nil {
			b.Source = "console " + u.Subject + " " + b.Key
			b.Done, err = se.giveCommand(r.Context(), b.Command)
		}
		var known *apiError
		switch {
		case errors.As(err, &known):
			status, b.Failed = known.status, known.text
			if b.Uncertain = status == http.StatusInternalServerError; !b.Uncertain {
				b.Key = rand.Text() // what is sent next is another command
			}
		case err != nil:
			se.renderError(w, r, err)
			return
		}
	}
	se.renderPage(w, r, status, "act", page{Title: se.reader.wordsOf(b.Repo)(actionTitle(b.Command)), Still: true, Body: b})
}

// actionTitle names what is done to what.
func actionTitle(o *Command) string {
	verb := o.Verb.Title()
	switch {
	case o.Verb == command.Promote:
		return fmt.Sprintf("%s %s to %s", verb, o.Component, o.Environment)
	case o.Pull != 0:
		return fmt.Sprintf("%s #%d, %s to %s", verb, o.Pull, o.Component, o.Environment)
	case o.Component != "":
		return fmt.Sprintf("%s %s in all environments", verb, o.Component)
	case o.Environment != "":
		return fmt.Sprintf("%s the environment %s of %s", verb, o.Environment, o.Pipeline)
	}
	return fmt.Sprintf("%s the pipeline %s", verb, o.Pipeline)
}

// describePromotionAction says what a command does to a promotion.
func describePromotionAction(p *api.Promotion, o *Command) []string {
	named := cmp.Or(p.Pull, &api.Pull{Number: o.Pull})
	pull, release := named.String(), cmp.Or(p.Name, wording.Short(p.Release))
	says := "A comment in " + pull + " says that it was you, and so does the audit trail."
	switch o.Verb {
	case command.Hold:
		return []string{pull + " is not merged until the hold is lifted or ends, whatever its gates say. Its label " + promotion.LabelHold +
			" shows it.", says}
	case command.Unhold:
		return []string{"The hold on " + pull + " is lifted: your own and, where your role is enough for it, everybody's. It is merged " +
			"as soon as its gates pass.", says}
	case command.Retry:
		return []string{"What failed is tried again: a step of Liftlock's, a sync, or, where somebody closed " + pull +
			", the promotion of " + release + ".", says}
	case command.Revert:
		return []string{wording.ForPage(named.URL, "A pull request is opened") + fmt.Sprintf(" that takes %s back to what it had in %s "+
			"before %s.", o.Component, o.Environment, pull),
			release + " doesn't come to " + o.Environment + " again until it changes, or somebody promotes it.", says}
	}
	return []string{fmt.Sprintf("%s passes the gate that you choose for %s, and only as it is now. All others still have to pass.", pull,
		wording.Count(int(promotion.SkipDuration.Hours()), "hour")),
		"Its label and a comment in " + pull + " say that it was you, and so does the audit trail, for good."}
}

// describePipelineAction says what a command does to a pipeline or to a part of it.
func describePipelineAction(o *Command) []string {
	about := "of the pipeline " + o.Pipeline
	switch {
	case o.Component != "":
		about = "of " + o.Component + ", in any environment,"
	case o.Environment != "":
		about = "into " + o.Environment + ", of any component,"
	}
	switch o.Verb {
	case command.Promote:
		return []string{fmt.Sprintf("Liftlock opens a pull request that brings to %s what comes before it has verified of %s, or goes on "+
			"with the one that is open.", o.Environment, o.Component),
			"That holds also where somebody closed that pull request, where the release was taken back before, or where somebody changed " +
				"the environment by hand: it is then overwritten.",
			"Its gates still have to pass. The audit trail says that it was you."}
	case command.Hold:
		return []string{"No promotion " + about + " is opened or merged until the hold is lifted or ends.",
			"Reverts go on, unless you choose to hold them too.", "Everybody sees the hold, with your name and the reason."}
	}
	return []string{"The hold on promotions " + about + " is lifted: your own and, where your role is enough for it, everybody's.",
		"What waited for it goes on as soon as its gates pass. The audit trail says that it was you."}
}
