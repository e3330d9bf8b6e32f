package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/server/config"
)

// ownStatus is the commit status that Liftlock sets on every pull request.
const ownStatus = "liftlock"

// checkRules checks what the forge demands of merges into the branches that promotions go to, as
// far as they are among the repository's heads.
func (r *repositoryCheck) checkRules(ctx context.Context, pipes []*pipeline.Pipeline, heads map[string]string) {
	me, err := r.forge.Me(ctx)
	if err != nil {
		r.found.add("rules-unread", r.where, err.Error(), "try again when the forge answers")
		return
	}
	for _, branch := range promotedBranches(pipes, r.config.Branch) {
		if heads[branch] == "" {
			continue // which is found with the pipeline
		}
		before := len(r.found)
		where := fmt.Sprintf("rules of %s in %s", branch, r.config.Name)
		rules, err := r.forge.Rules(ctx, r.repo, branch)
		if err != nil {
			r.found.add("rules-unread", where, err.Error(), "try again when the forge answers, or let the account read the repository's "+
				"metadata")
			continue
		}
		j := rulesJudge{forgeType: r.forgeOf.Type, settings: r.settings, rules: rules, me: me.Login, noDeliveries: r.hasNoDeliveries()}
		j.unsigned, j.signingCure = r.Config.WhyUnsigned(r.forgeOf)
		for _, p := range pipes {
			j.judgePipeline(&r.found, where, branch, p)
		}
		j.judgeBranch(&r.found, where, branch)
		r.found.addOK(before, CodeRules, where, "Liftlock may merge there, and nobody past its gates")
	}
}

// promotedBranches are the branches that pull requests of acting pipelines go to, sorted.
func promotedBranches(pipes []*pipeline.Pipeline, tracked string) (branches []string) {
	for _, p := range pipes {
		for i := range p.Spec.Environments {
			e := &p.Spec.Environments[i]
			switch {
			case e.IsSource() || p.Spec.Mode == pipeline.ModeDryRun:
			case p.Spec.Layout == pipeline.LayoutBranches:
				branches = append(branches, e.Branch)
			default:
				branches = append(branches, tracked)
			}
		}
	}
	slices.Sort(branches)
	return slices.Compact(branches)
}

// rulesJudge judges the rules of one branch.
type rulesJudge struct {
	forgeType    string
	settings     *forge.RepositorySettings
	rules        *forge.BranchRules
	me           string // Liftlock's login
	noDeliveries bool   // no webhook tells the server of pushes, nor will one once it runs
	unsigned     string // why the forge takes Liftlock's commits for unsigned; empty: it doesn't
	signingCure  string // what to do about that
}

// hasNoDeliveries says that no webhook tells the server of pushes: it has no address, or the webhook is
// missing or off, and the server doesn't mend that itself.
func (r *repositoryCheck) hasNoDeliveries() bool {
	if r.Config.Webhooks.ExternalURL == "" {
		return true
	}
	app := r.forgeOf.Auth.App
	mended := r.config.ManageWebhooks || app != nil && app.ManageWebhook
	return !mended && slices.ContainsFunc(r.found, func(f Finding) bool { return f.Code == "hook-missing" || f.Code == "hook-off" })
}

// judgePipeline judges whether a pipeline's promotions can merge under the rules.
func (r *rulesJudge) judgePipeline(found *findings, where, branch string, p *pipeline.Pipeline) {
	method := p.Spec.Merge.Method
	if by := r.refusedBy(method); by != "" {
		found.add("method-refused", where, fmt.Sprintf("the pipeline %s merges by %s, which %s doesn't allow", p.Name(), method, by),
			"set merge.method in the pipeline file to one that is allowed, or allow it")
	} else if method == pipeline.MethodMerge {
		for i := range r.rules.Sets {
			if s := &r.rules.Sets[i]; s.LinearHistory && !s.Bypassed {
				found.add("linear-history", where, fmt.Sprintf("the pipeline %s makes merge commits, and %s demands a linear history",
					p.Name(), s.Name), "set merge.method to squash or rebase")
			}
		}
	}
	merges := func(e pipeline.Environment) bool {
		return !e.IsSource() && e.Merge == pipeline.Auto && (p.Spec.Layout != pipeline.LayoutBranches || e.Branch == branch)
	}
	if p.Spec.Mode == pipeline.ModeDryRun || !slices.ContainsFunc(p.Spec.Environments, merges) {
		return
	}
	for i := range r.rules.Sets {
		if s := &r.rules.Sets[i]; !s.Bypassed && r.excludes(s) {
			found.add("merge-forbidden", where, fmt.Sprintf("the pipeline %s merges by itself, and %s lets nobody merge but %s", p.Name(),
				s.Name, strings.Join(s.Mergers, ", ")), "let Liftlock's account merge there, or set merge: manual")
		}
	}
}

// maybeBypassed are the sets that the credentials may merge past in part, or that can't be told.
func maybeBypassed(r *forge.BranchRules) (names []string) {
	for i := range r.Sets {
		if r.Sets[i].MaybeBypassed {
			names = append(names, r.Sets[i].Name)
		}
	}
	return names
}

// refusedBy is what doesn't allow a method of merging; empty: nothing.
func (r *rulesJudge) refusedBy(method string) string {
	if !slices.Contains(r.settings.Methods, method) {
		return "the repository's settings"
	}
	for i := range r.rules.Sets {
		if s := &r.rules.Sets[i]; !s.Bypassed && len(s.Methods) > 0 && !slices.Contains(s.Methods, method) {
			return s.Name
		}
	}
	return ""
}

// excludes says that a set keeps Liftlock's account from merging, as far as its words tell: teams
// and roles of one's own aren't looked into.
func (r *rulesJudge) excludes(s *forge.RuleSet) bool {
	// Gitea excepts no administrator.
	if len(s.Mergers) == 0 || r.settings.Permission >= forge.PermissionAdmin && r.forgeType != config.Gitea {
		return false
	}
	return !slices.ContainsFunc(s.Mergers, func(who string) bool {
		role := strings.HasPrefix(who, "team ") || r.forgeType == config.GitLab && !strings.HasPrefix(who, "Maintainers")
		return role || strings.EqualFold(who, r.me)
	})
}

// judgeBranch judges whether the rules let somebody pass by Liftlock's gates, and whether its
// commits can pass by them.
func (r *rulesJudge) judgeBranch(found *findings, where, branch string) {
	switch {
	case r.rules.IsBypassed():
		found.add("rules-bypassed", where, "Liftlock's account may bypass them: what it merges, it merges past what they demand",
			"take its account off the bypass list")
	case r.rules.IsMaybeBypassed():
		found.add("rules-bypass-unsure", where, "Liftlock's account may bypass a part of them, or the forge doesn't show whether it may ("+
			strings.Join(maybeBypassed(r.rules), ", ")+"): a merge that the forge blocks, and no rule explains, waits for a person "+
			"instead of being tried", "take it, its teams and its role off the bypass lists; in classic protection switch on Do not "+
			"allow bypassing the above settings")
	}
	r.judgeSignatures(found, where)
	r.judgeApprovals(found, where)
	requires := func(s *forge.RuleSet) bool { return s.AnyChecks || slices.Contains(s.Checks, ownStatus) }
	unheard := r.noDeliveries && r.rules.Queue() != nil
	const webhook = "give the server an externalURL that the forge reaches, and the repository a webhook to it that is on"
	switch {
	case unheard && slices.ContainsFunc(r.rules.Sets, func(s forge.RuleSet) bool { return requires(&s) }):
		// Also where our own account is let past the rules: the others aren't.
		found.add("queue-unheard", where, "merges go through the forge's merge queue, which demands the commit status liftlock, and no "+
			"webhook tells of its groups: everybody's pull requests wait there until the queue's timeout", webhook+
			"; until then don't require the status liftlock")
	case r.rules.Any(requires):
	case r.rules.Hidden != "":
		found.add("rules-hidden", where, "not all can be read: "+r.rules.Hidden,
			"see yourself that the commit status liftlock is required, or let the account read the rules")
	default:
		cure := "require the commit status liftlock for " + branch + ": it is on every pull request, so it stops nobody else"
		if r.forgeType == config.GitLab {
			cure = "switch on Pipelines must succeed in the project's settings of merge requests: the status liftlock is part of them"
		}
		if unheard {
			cure = webhook + ", and only then require the commit status liftlock: without one the merge queue would wait for it until " +
				"its timeout"
		}
		found.add("status-optional", where, "the commit status liftlock isn't required: people can merge past gates, holds and freezes",
			cure)
	}
}

// judgeApprovals judges whether the approvals that GitLab demands stay when a merge request is brought
// up to date, which takes a push there. Other forges bring one up to date themselves, and keep them.
func (r *rulesJudge) judgeApprovals(found *findings, where string) {
	for i := range r.rules.Sets {
		if s := &r.rules.Sets[i]; r.forgeType == config.GitLab && s.UpToDate && s.DropsApprovals && s.Approvals > 0 {
			found.add("approvals-dropped", where, s.Name+" demand approvals, remove them when commits are added, and merge only what is "+
				"up to date: whenever another one lands, a promotion needs new approvals",
				"let the project make merge commits, or switch on merge trains; or keep approvals when commits are added")
		}
	}
}

// judgeSignatures judges whether what Liftlock pushes passes where signatures are demanded.
func (r *rulesJudge) judgeSignatures(found *findings, where string) {
	if r.unsigned != "" && r.rules.Any(func(s *forge.RuleSet) bool { return s.Signatures }) {
		found.add("signatures-required", where, "they demand signed commits, and "+r.unsigned, r.signingCure)
	}
	if r.rules.Any(func(s *forge.RuleSet) bool { return s.SignedMerges }) {
		found.add("merges-signed", where, "they demand that the forge signs what it merges, and whether it can isn't shown",
			"see that it has a key and signs merges by Liftlock's account (Gitea: [repository.signing] MERGES in its app.ini)")
	}
}
