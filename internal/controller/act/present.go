package act

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

// Diff says what one of our open pull requests changes; false when the unit has none
// with the number, or its head isn't what we composed.
func (a *Actor) Diff(ctx context.Context, ev *facts.Evaluation, d *promotion.Decision, number int) (string, bool) {
	p := ev.OpenPulls[number]
	if p == nil || !isPresented(ev, p) || len(p.Edits) == 0 {
		return "", false
	}
	s := subjectOf(ev, d, p)
	in := a.newTextInput(&s, p.Revert)
	in.RevertedPull = 0
	a.describeEdits(ctx, &s, &in, p.Base, p.Edits)
	return prtext.DiffText(in), true
}

// openInput is what the texts of an open pull request are made from.
func (a *Actor) openInput(ctx context.Context, s *subject) (prtext.Input, error) {
	in := a.newTextInput(s, s.pull.Revert)
	if s.pull.Revert {
		if err := a.readEvidence(ctx, s, &in); err != nil {
			return in, err
		}
	}
	setMarker(s, &in, s.pull.PR.Branch, s.pull.Head)
	a.describeEdits(ctx, s, &in, s.pull.Base, s.pull.Edits)
	return in, nil
}

// Present writes on our pull requests what the decision says of them: title,
// body, labels, the comment and the commit status, each only when it changed.
func (a *Actor) Present(ctx context.Context, ev *facts.Evaluation, d *promotion.Decision) error {
	for _, env := range ev.Environments() {
		for _, n := range slices.Sorted(maps.Keys(ev.OpenPulls)) {
			if p := ev.OpenPulls[n]; p.Environment == env.Name && isPresented(ev, p) {
				s := subjectOf(ev, d, p)
				if err := a.presentOpen(ctx, &s); err != nil {
					return err
				}
			}
		}
		if err := a.presentLanded(ctx, ev, d, env.Name); err != nil {
			return err
		}
	}
	return nil
}

// isPresented says that a pull request shows what is decided of it. One of the other
// kind than spec.batch says by now only waits to be closed.
func isPresented(ev *facts.Evaluation, p *facts.OpenPull) bool {
	return p.Batch == ev.IsBatch() || p.Revert && !p.Batch
}

func (a *Actor) presentOpen(ctx context.Context, s *subject) error {
	r, p := s.ev.Snapshot.Repo, s.pull
	in, err := a.openInput(ctx, s)
	if err != nil {
		return err
	}
	page := prtext.Render(in)
	shown, err := a.readShown(ctx, r, p.Number)
	if err != nil {
		return err
	}
	// A person may edit our text; it is only written again when ours changes. A
	// head that isn't ours, or a revert whose evidence is lost, keeps its text.
	want := hashParts(page.Title, page.Body)
	if shown.Page != want && p.HeadState != promotion.HeadModified && !(p.Revert && len(in.Evidence) == 0 && in.By == "") {
		if p.PR.Title != page.Title || p.PR.Body != page.Body {
			if err := r.Forge.UpdatePullRequest(ctx, r.Name, p.Number, forge.PullRequestUpdate{Title: &page.Title, Body: &page.Body}); err != nil {
				return err
			}
		}
		shown.Page = want
		if err := a.putShown(ctx, r, p.Number, shown); err != nil {
			return err
		}
	}
	missing := slices.DeleteFunc(slices.Clone(page.Labels), p.PR.HasLabel)
	if len(missing) > 0 {
		if err := r.Forge.AddLabels(ctx, r.Name, p.Number, missing...); err != nil {
			return err
		}
	}
	for _, label := range p.PR.Labels { // of another head, or over by now
		gate, is := strings.CutPrefix(label, promotion.LabelSkipped)
		if !is || slices.ContainsFunc(p.Skips, func(k promotion.Skip) bool { return k.Gate == gate && k.Err == "" }) {
			continue
		}
		if err := r.Forge.RemoveLabel(ctx, r.Name, p.Number, label); err != nil {
			return err
		}
	}
	if p.PR.HasLabel(promotion.LabelSuperseded) {
		// A close that was begun and not ended, or somebody's retry: while it is
		// open the label would make a person's close no veto.
		if err := r.Forge.RemoveLabel(ctx, r.Name, p.Number, promotion.LabelSuperseded); err != nil {
			return err
		}
	}
	if err := a.putComment(ctx, r, p.Number, page.Comment); err != nil {
		return err
	}
	return a.putStatus(ctx, r, p.Number, p.Head, page.Status, a.consoleURL(s))
}

// presentLanded keeps the comments of merged pull requests up to date while anything
// that they brought is there and looked after.
func (a *Actor) presentLanded(ctx context.Context, ev *facts.Evaluation, d *promotion.Decision, env string) error {
	landed, watched := map[int]subject{}, map[int]bool{}
	reverts := map[int]bool{}
	for i, c := range ev.Components {
		e, st := c.Env(env), d.Components[i].Env(env)
		if l := e.Landed.Value; e.Landed.OK && l.Pull != 0 && st != nil && (!l.Batch || ev.IsBatch()) {
			s := subject{ev: ev, d: d, env: env, number: l.Pull, batch: l.Batch, members: l.Members}
			if !s.batch {
				s.members = []promotion.Member{{Component: c.Facts.Unit.Component, Release: e.Release.Value.ID, Name: e.Release.Value.Name}}
			}
			landed[l.Pull], watched[l.Pull], reverts[l.Pull] = s, watched[l.Pull] || st.State != promotion.Idle, l.By == promotion.ByRevert
		}
	}
	for _, n := range slices.Sorted(maps.Keys(landed)) {
		if !watched[n] {
			continue
		}
		s := landed[n]
		in := a.newTextInput(&s, reverts[n])
		in.Release, in.Name = s.identity(), s.name()
		past, _, err := a.opts.Store.State(ctx, facts.UngatedKey(ev.Snapshot.Repo.ID, n))
		if err != nil {
			return err
		}
		in.Ungated = facts.ParseUngated(past)
		if err := a.putComment(ctx, ev.Snapshot.Repo, n, prtext.LandedComment(in)); err != nil {
			return err
		}
		if reverts[n] {
			if err := a.presentReverted(ctx, &s, in); err != nil {
				return err
			}
		}
	}
	return nil
}

// identity is the release that moves, or the identity of all that move.
func (s *subject) identity() string {
	if s.batch {
		return promotion.BatchID(s.members)
	}
	return s.members[0].Release
}

// presentReverted tells the readers of the promotion that was taken back by a merged
// revert.
func (a *Actor) presentReverted(ctx context.Context, s *subject, in prtext.Input) error {
	of, release := s.ev.RevertedPull(s.env, s.number)
	if of == 0 {
		return nil
	}
	in.Revert, in.Number, in.RevertedPull = false, of, s.number
	if !s.batch {
		in.Release, in.Name = release, s.ev.ReleaseName(release)
	}
	return a.putComment(ctx, s.ev.Snapshot.Repo, of, prtext.RevertedComment(in))
}
