package act

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store/record"
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
	a.describeEdits(ctx, &s, &in, openCommits(&s), p.Edits)
	a.renderEffects(ctx, &s, &in, openCommits(&s), p.Edits, effects.ReaderPatience)
	return prtext.DiffText(in), true
}

// openInput is what the texts of an open pull request are made from, but for the manifests.
func (a *Actor) openInput(ctx context.Context, s *subject) (prtext.Input, error) {
	in := a.newTextInput(s, s.pull.Revert)
	if s.pull.Revert {
		if err := a.readEvidence(ctx, s, &in); err != nil {
			return in, err
		}
	}
	setMarker(s, &in, s.pull.PR.Branch, s.pull.Head, s.pull.Revert || s.pull.IsProven())
	a.describeEdits(ctx, s, &in, openCommits(s), s.pull.Edits)
	return in, nil
}

func openCommits(s *subject) effects.Commits {
	return effects.Commits{Base: s.pull.Base, Head: s.pull.Head}
}

// Present writes on our pull requests what the decision says of them: title,
// body, labels, the comment and the commit status, each only when it changed. It gives
// when to look again because a text was put off, for its pace or the forge's limits; zero: none
// was.
func (a *Actor) Present(ctx context.Context, ev *facts.Evaluation, d *promotion.Decision) (next time.Time, err error) {
	look := func(at time.Time) { next = branch.Earliest(next, at) }
	var failed error // the first: what fails on one pull request keeps no other from showing that it waits
	for _, env := range ev.Environments() {
		for _, n := range slices.Sorted(maps.Keys(ev.OpenPulls)) {
			if p := ev.OpenPulls[n]; p.Environment == env.Name && isPresented(ev, p) {
				s := subjectOf(ev, d, p)
				at, err := a.presentOpen(ctx, &s)
				if ctx.Err() != nil {
					return next, err
				}
				if err != nil && failed == nil {
					failed = err
				}
				look(at)
			}
		}
		if err := a.presentLanded(ctx, ev, d, env.Name, look); err != nil {
			if ctx.Err() != nil {
				return next, err
			}
			if failed == nil {
				failed = err
			}
		}
	}
	return next, failed
}

// isPresented says that a pull request shows what is decided of it. One of the other
// kind than spec.batch says by now only waits to be closed.
func isPresented(ev *facts.Evaluation, p *facts.OpenPull) bool {
	return p.Batch == ev.IsBatch() || p.Revert && !p.Batch
}

// presentOpen presents an open pull request; the time is Present's.
func (a *Actor) presentOpen(ctx context.Context, s *subject) (time.Time, error) {
	r, p := s.ev.Snapshot.Repo, s.pull
	in, err := a.openInput(ctx, s)
	if err != nil {
		return time.Time{}, err
	}
	a.renderEffects(ctx, s, &in, openCommits(s), p.Edits, presentPatience)
	page := renderPage(r, in)
	passes := forge.StatusState(page.Status.State) == forge.StatusSuccess
	if !passes { // first: where the forge requires it, a green one that is over lets anybody merge
		if _, err := a.putStatus(forge.WithPriority(ctx, forge.PriorityNormal), r, p.Number, p.Head, page.Status,
			a.consoleURL(s)); err != nil {
			return time.Time{}, err
		}
	}
	later, err := a.putPage(ctx, s, &in, page)
	if err != nil {
		return time.Time{}, err
	}
	if err := a.putLabels(ctx, s, page.Labels); err != nil {
		return time.Time{}, err
	}
	next, err := a.putComment(ctx, r, p.Number, commentText{body: page.Comment, notice: page.Notice})
	next = branch.Earliest(next, later)
	if err != nil || !passes {
		return next, err
	}
	// A merge may wait for it: then it is as urgent.
	set, err := a.putStatus(ctx, r, p.Number, p.Head, page.Status, a.consoleURL(s))
	if set && p.Mergeable == promotion.MergeBlocked {
		// Where the forge requires this very status, nothing else tells that it doesn't block any
		// more: events of our own account's actions aren't evaluated.
		a.opts.Gatherer.PullCache.ForgetMergeable(r, p.Number)
		next = branch.Earliest(next, a.opts.Now().Add(ownStatusDelay))
	}
	return next, err
}

// ownStatusDelay lets the forge take note of our status before it is asked whether it still blocks.
const ownStatusDelay = 250 * time.Millisecond

// renderPage renders a pull request's page in the words of its forge.
func renderPage(r *branch.Repository, in prtext.Input) prtext.Page {
	page := prtext.Render(in)
	page.Title, page.Body = r.Words(page.Title), r.Words(page.Body)
	return page
}

// putPage writes title and body where ours have changed. A person may edit our text; it is only
// written again when ours changes. A head that isn't ours, or a revert whose evidence is lost,
// keeps its text, and so does one that is still being rendered. Text that another server, or this
// one before its restart, has shown needn't go meanwhile. A write for which the forge's limits
// leave no call is put off, and the time is when to look again; zero: it wasn't.
func (a *Actor) putPage(ctx context.Context, s *subject, in *prtext.Input, page prtext.Page) (time.Time, error) {
	r, p := s.ev.Snapshot.Repo, s.pull
	shown, err := a.readShown(ctx, r, p.Number)
	if err != nil {
		return time.Time{}, err
	}
	want := hashParts(page.Title, page.Body)
	lacksEvidence := p.Revert && len(in.Evidence) == 0 && in.By == ""
	if shown.Page == want || s.rendering || lacksEvidence || p.HeadState == promotion.HeadModified {
		return time.Time{}, nil
	}
	if p.PR.Title != page.Title || p.PR.Body != page.Body {
		if err := r.Forge.UpdatePullRequest(forge.WithPriority(ctx, forge.PriorityComment), r.Name, p.Number,
			forge.PullRequestUpdate{Title: &page.Title, Body: &page.Body}); err != nil {
			return putOff(err)
		}
	}
	shown.Page = want
	return time.Time{}, a.putShown(ctx, r, p.Number, shown)
}

// putLabels sets the labels that should be there, and takes off those of ours that are
// over.
func (a *Actor) putLabels(ctx context.Context, s *subject, labels []string) error {
	r, p := s.ev.Snapshot.Repo, s.pull
	missing := slices.DeleteFunc(slices.Clone(labels), p.PR.HasLabel)
	if len(missing) > 0 {
		if err := r.Forge.AddLabels(ctx, r.Name, p.Number, missing...); err != nil {
			return err
		}
	}
	for _, label := range p.PR.Labels { // of another head, or over by now
		gate, is := strings.CutPrefix(label, promotion.LabelSkipped)
		if !is || slices.ContainsFunc(p.Skips, func(k promotion.Skip) bool { return string(k.Gate) == gate && k.Err == "" }) {
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
		if err := facts.Closing.Drop(ctx, a.opts.Store, record.OfPull(r.ID, p.Number)); err != nil {
			return err
		}
	}
	return nil
}

// presentLanded keeps the comments of merged pull requests up to date while anything
// that they brought is there and looked after. look is given when an edit that was put
// off may be made.
func (a *Actor) presentLanded(ctx context.Context, ev *facts.Evaluation, d *promotion.Decision, env string, look func(time.Time)) error {
	landed, watched := map[int]subject{}, map[int]bool{}
	reverts := map[int]bool{}
	for i, c := range ev.Components {
		e, st := c.Env(env), d.Components[i].Env(env)
		l := e.Landed.Value
		if !e.Landed.OK || l.Pull == 0 || st == nil {
			continue
		}
		if l.Batch && !ev.IsBatch() {
			continue
		}
		s := subject{ev: ev, d: d, env: env, number: l.Pull, batch: l.Batch, members: l.Members}
		if !s.batch {
			s.members = []promotion.Member{{Component: c.Facts.Unit.Component, Release: e.Release.Value.ID, Name: e.Release.Value.Name}}
		}
		landed[l.Pull], watched[l.Pull], reverts[l.Pull] = s, watched[l.Pull] || st.State != promotion.Idle, l.By == promotion.ByRevert
	}
	for _, n := range slices.Sorted(maps.Keys(landed)) {
		if !watched[n] {
			continue
		}
		s := landed[n]
		if at := a.landingShownAt(&s); !reverts[n] && at.After(a.opts.Now()) {
			look(at)
			continue
		}
		in := a.newTextInput(&s, reverts[n])
		in.Release, in.Name = s.identity(), s.name()
		var err error
		if in.Ungated, err = facts.ReadUngated(ctx, a.opts.Store, ev.Snapshot.Repo.ID, n); err != nil {
			return err
		}
		at, err := a.putComment(ctx, ev.Snapshot.Repo, n, commentText{body: prtext.LandedComment(in), notice: prtext.LandedNotice(in)})
		if err != nil {
			return err
		}
		look(at)
		if reverts[n] {
			at, err := a.presentReverted(ctx, &s, in)
			if err != nil {
				return err
			}
			look(at)
		}
	}
	return nil
}

// landingGrace is for how long what has landed may be verified without a word: where that
// doesn't take longer, its comment is written once less.
const landingGrace = 20 * time.Second

// landingShownAt is when a merged pull request's comment is to say that what landed is being
// verified; zero: now, or there is more to say.
func (a *Actor) landingShownAt(s *subject) time.Time {
	var landed time.Time
	for _, m := range s.members {
		c, i := s.ev.Component(m.Component)
		if c == nil {
			return time.Time{}
		}
		st := s.d.Components[i].Env(s.env)
		if st == nil || st.State != promotion.Verifying || st.LandedPull != s.number {
			return time.Time{}
		}
		if st.Since.After(landed) {
			landed = st.Since
		}
	}
	if now := a.opts.Now(); landed.After(now) {
		landed = now // the forge's clock is ahead
	}
	return landed.Add(landingGrace)
}

// identity is the release that moves, or the identity of all that move.
func (s *subject) identity() string {
	if s.batch {
		return promotion.BatchID(s.members)
	}
	return s.members[0].Release
}

// presentReverted tells the readers of the promotion that was taken back by a merged
// revert; the time is Present's.
func (a *Actor) presentReverted(ctx context.Context, s *subject, in prtext.Input) (time.Time, error) {
	of, release := s.ev.RevertedPull(s.env, s.number)
	if of == 0 {
		return time.Time{}, nil
	}
	in.Revert, in.Number, in.RevertedPull = false, of, s.number
	if !s.batch {
		in.Release, in.Name = release, s.ev.ReleaseName(release)
	}
	return a.putComment(ctx, s.ev.Snapshot.Repo, of, commentText{body: prtext.RevertedComment(in), notice: "reverted"})
}
