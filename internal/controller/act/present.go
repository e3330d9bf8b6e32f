package act

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/wording"
)

// StatusContext is the name of the one commit status.
const StatusContext = "liftlock"

func (a *Actor) consoleURL(c *facts.Evaluation) string {
	u := c.Facts.Unit
	switch {
	case a.opts.Console == "":
		return ""
	case len(c.Members) > 0:
		return a.opts.Console + "/pipelines/" + url.PathEscape(u.Pipeline)
	}
	return a.opts.Console + "/pipelines/" + url.PathEscape(u.Pipeline) + "/" + url.PathEscape(u.Component)
}

// differenceURL leads to the rendered difference of a pull request that may not have a
// number yet.
func (a *Actor) differenceURL(u promotion.Unit, env, kind, release string) string {
	if a.opts.Console == "" {
		return ""
	}
	q := url.Values{"repository": {u.Repo}, "pipeline": {u.Pipeline}, "component": {u.Component}, "environment": {env}, "kind": {kind}, "release": {release}}
	return a.opts.Console + "/diff?" + q.Encode()
}

// describeEdits fills in what an edit on a commit moves, whom it reaches and what it
// does to their manifests.
func (a *Actor) describeEdits(ctx context.Context, c *facts.Evaluation, in *prtext.Input, base string, edits []fieldedit.Edit) {
	var files []string
	for _, e := range edits {
		files = append(files, e.File)
		for _, ch := range e.Changes {
			in.Changes = append(in.Changes, prtext.Change{Component: c.FieldOwner(in.Environment, e.File, ch.Path), File: ch.File, Path: ch.Path, Old: ch.Old, New: ch.New, Line: ch.Line})
		}
	}
	kind := promotion.KindPromotion
	if in.Revert {
		kind = promotion.KindRevert
	}
	var with []promotion.Member
	for _, p := range in.Members {
		with = append(with, p.Member)
	}
	in.BodyMarker = facts.Marker(kind, in.Release, in.RevertedPull, with)
	reached, others, err := a.opts.Gatherer.Reach(ctx, c, in.Environment, files)
	if err != nil {
		in.UnaffectedErr = err.Error()
		return
	}
	proven := false // asked for only where another target reads these files
	for _, t := range reached {
		at := prtext.Target{Name: t.Name, Component: t.Component, Environment: t.Environment, Cluster: facts.ClusterOf(&t)}
		if t.Environment == in.Environment && c.Moves(t.Component) {
			in.Reached = append(in.Reached, at)
			continue
		}
		if !proven && len(edits) > 0 {
			why, err := a.opts.Gatherer.WhyNotIsolated(ctx, c, in.Environment, base, edits)
			proven = err == nil && why == ""
		}
		if proven {
			in.UnchangedTargets = append(in.UnchangedTargets, at)
		} else {
			in.Reached = append(in.Reached, at)
		}
	}
	in.DiffURL = a.differenceURL(c.Facts.Unit, in.Environment, kind, in.Release)
	if len(c.Members) > 0 { // any of them has it all
		in.DiffURL = a.differenceURL(c.Members[0].Evaluation.Facts.Unit, in.Environment, kind, c.Members[0].Member.Release)
	}
	a.renderEffects(ctx, c, in, base, edits)
	in.UnaffectedCounts = map[string]int{}
	for _, t := range others {
		in.UnaffectedCounts[t.Environment]++
	}
}

// renderEffects fills in what an edit does to the manifests. That it can't be told
// keeps nobody from reading the rest.
func (a *Actor) renderEffects(ctx context.Context, c *facts.Evaluation, in *prtext.Input, base string, edits []fieldedit.Edit) {
	effects, err := a.opts.Gatherer.Effects(ctx, c, in.Environment, base, edits)
	if err != nil {
		in.RenderedErr = err.Error()
		return
	}
	limit := render.TextLimit{Bytes: prtext.RenderedBytes, Lines: prtext.RenderedLines, ObjectLines: prtext.RenderedObject}
	for _, e := range effects {
		r := prtext.Rendered{Target: e.Target.Name, Spec: e.Spec, Why: e.Why}
		if !e.Changes.Empty() {
			r.Summary, r.Diff = e.Changes.Summary(), e.Changes.Text(limit)
		}
		in.Rendered = append(in.Rendered, r)
	}
}

// Diff says what one of our open pull requests changes; false when it is none
// of the case's, or its head isn't what we composed.
func (a *Actor) Diff(ctx context.Context, c *facts.Evaluation, d *promotion.ComponentDecision, pull int) (string, bool) {
	edits := c.HeadEdits[pull]
	for i := range c.Facts.Envs {
		env := &c.Facts.Envs[i]
		for _, p := range []*promotion.Pull{env.Open, env.Revert} {
			if p == nil || p.Number != pull || len(edits) == 0 {
				continue
			}
			in := a.newTextInput(ctx, c, d, env.Name, p == env.Revert)
			in.Number, in.Release, in.Name = pull, p.Release, p.Name
			a.describeEdits(ctx, c, &in, c.HeadBases[pull], edits)
			return prtext.DiffText(in), true
		}
	}
	return "", false
}

// Why a revert was opened is kept, so that its page can be written again.
type revertEvidence struct {
	Evidence []string `json:"evidence"`
	By       string   `json:"by,omitempty"`
	Reason   string   `json:"reason,omitempty"`
}

func evidenceKey(repo string, pull int) string { return "evidence|" + repo + "|" + strconv.Itoa(pull) }

func (a *Actor) putEvidence(ctx context.Context, tx *store.Tx, repo string, pull int, x promotion.OpenRevert) error {
	raw, err := json.Marshal(revertEvidence{Evidence: x.Evidence, By: x.By, Reason: x.Reason})
	if err != nil {
		return fmt.Errorf("keep the evidence of #%d: %w", pull, err)
	}
	return tx.PutState(ctx, evidenceKey(repo, pull), raw)
}

// readEvidence fills in why a revert was opened; false evidence is never made up: when
// the record is lost the page's body stays as it is.
func (a *Actor) readEvidence(ctx context.Context, c *facts.Evaluation, pull int, in *prtext.Input) error {
	raw, ok, err := a.opts.Store.State(ctx, evidenceKey(c.Facts.Unit.Repo, pull))
	if err != nil || !ok {
		return err
	}
	var k revertEvidence
	if err := json.Unmarshal(raw, &k); err != nil {
		return fmt.Errorf("read the evidence of #%d from the store: %w", pull, err)
	}
	in.Evidence, in.By, in.Reason = k.Evidence, k.By, k.Reason
	return nil
}

// shownState is what was last written on a pull request, so that it is written again
// only when it changes.
type shownState struct {
	Page    string `json:"page,omitempty"`    // digest of title and body
	Comment string `json:"comment,omitempty"` // digest
	ID      int64  `json:"id,omitempty"`      // of the comment
	Status  string `json:"status,omitempty"`  // head, state and description
}

func shownKey(r *facts.Repository, number int) string {
	return "shown|" + r.ID + "|" + strconv.Itoa(number)
}

func hashParts(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

func (a *Actor) readShown(ctx context.Context, r *facts.Repository, number int) (shownState, error) {
	var s shownState
	raw, ok, err := a.opts.Store.State(ctx, shownKey(r, number))
	if err != nil || !ok {
		return s, err
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return shownState{}, nil //nolint:nilerr // unreadable is unknown: everything is written again
	}
	return s, nil
}

func (a *Actor) putShown(ctx context.Context, r *facts.Repository, number int, s shownState) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("note what #%d shows: %w", number, err)
	}
	return a.opts.Store.PutState(ctx, shownKey(r, number), raw)
}

// putComment brings the one comment up to date: the one we know, the one that is found,
// or a new one.
func (a *Actor) putComment(ctx context.Context, r *facts.Repository, number int, text string) error {
	s, err := a.readShown(ctx, r, number)
	if err != nil {
		return err
	}
	if s.ID != 0 && s.Comment == hashParts(text) {
		return nil
	}
	if s.ID == 0 {
		if s.ID, err = a.findComment(ctx, r, number); err != nil {
			return err
		}
	}
	if s.ID != 0 {
		err = r.Forge.UpdateComment(ctx, r.Name, number, s.ID, text)
		if errors.Is(err, forge.ErrNotFound) {
			s.ID = 0 // somebody deleted it
		}
	}
	if s.ID == 0 {
		var k *forge.Comment
		if k, err = r.Forge.CreateComment(ctx, r.Name, number, text); err == nil {
			s.ID = k.ID
		}
	}
	if err != nil {
		return err
	}
	s.Comment = hashParts(text)
	return a.putShown(ctx, r, number, s)
}

// UpdateComment brings the one comment on a pull request that isn't ours up to date. With
// worth false there is nothing to tell, and none is begun.
func (a *Actor) UpdateComment(ctx context.Context, r *facts.Repository, number int, text string, worth bool) error {
	s, err := a.readShown(ctx, r, number)
	if err != nil {
		return err
	}
	if !worth && s.ID == 0 {
		if s.ID, err = a.findComment(ctx, r, number); err != nil || s.ID == 0 {
			return err
		}
	}
	return a.putComment(ctx, r, number, text)
}

func (a *Actor) findComment(ctx context.Context, r *facts.Repository, number int) (int64, error) {
	comments, err := r.Forge.Comments(ctx, r.Name, number, time.Time{})
	if err != nil {
		return 0, err
	}
	for _, k := range comments {
		if k.User == r.BotLogin && prtext.IsStatusComment(k.Body) {
			return k.ID, nil
		}
	}
	return 0, nil
}

// Present writes on our pull requests what the decision says of them: title,
// body, labels, the comment and the commit status, each only when it changed.
func (a *Actor) Present(ctx context.Context, c *facts.Evaluation, d *promotion.ComponentDecision) error {
	for i := range c.Facts.Envs {
		env := &c.Facts.Envs[i]
		if p := env.Open; p != nil && c.OwnsPull(p.Number) {
			if err := a.presentOpen(ctx, c, d, env, p, false); err != nil {
				return err
			}
		}
		if p := env.Revert; p != nil && c.OwnsPull(p.Number) {
			if err := a.presentOpen(ctx, c, d, env, p, true); err != nil {
				return err
			}
		}
		if err := a.presentLanded(ctx, c, d, env); err != nil {
			return err
		}
	}
	return nil
}

func (a *Actor) presentOpen(ctx context.Context, c *facts.Evaluation, d *promotion.ComponentDecision, env *promotion.Env, p *promotion.Pull, revert bool) error {
	r := c.Snapshot.Repo
	in := a.newTextInput(ctx, c, d, env.Name, revert)
	in.Number, in.Release, in.Name = p.Number, p.Release, p.Name
	if revert {
		if of := c.RevertedPulls[p.Number]; of != nil {
			in.RevertedPull = of.Number
		}
		if err := a.readEvidence(ctx, c, p.Number, &in); err != nil {
			return err
		}
	}
	a.describeEdits(ctx, c, &in, c.HeadBases[p.Number], c.HeadEdits[p.Number])
	page := prtext.Render(in)
	pr := c.OpenPulls[p.Number]
	s, err := a.readShown(ctx, r, p.Number)
	if err != nil {
		return err
	}
	// A person may edit our text; it is only written again when ours changes. A
	// head that isn't ours, or a revert whose evidence is lost, keeps its text.
	want := hashParts(page.Title, page.Body)
	if s.Page != want && p.HeadState != promotion.HeadModified && !(revert && len(in.Evidence) == 0 && in.By == "") {
		if pr.Title != page.Title || pr.Body != page.Body {
			if err := r.Forge.UpdatePullRequest(ctx, r.Name, p.Number, forge.PullRequestUpdate{Title: &page.Title, Body: &page.Body}); err != nil {
				return err
			}
		}
		s.Page = want
		if err := a.putShown(ctx, r, p.Number, s); err != nil {
			return err
		}
	}
	missing := slices.DeleteFunc(slices.Clone(page.Labels), pr.HasLabel)
	if len(missing) > 0 {
		if err := r.Forge.AddLabels(ctx, r.Name, p.Number, missing...); err != nil {
			return err
		}
	}
	if pr.HasLabel(promotion.LabelSuperseded) {
		// A close that was begun and not ended, or somebody's retry: while it is
		// open the label would make a person's close no veto.
		if err := r.Forge.RemoveLabel(ctx, r.Name, p.Number, promotion.LabelSuperseded); err != nil {
			return err
		}
	}
	if err := a.putComment(ctx, r, p.Number, page.Comment); err != nil {
		return err
	}
	return a.putStatus(ctx, r, p.Number, p.Head, page.Status, a.consoleURL(c))
}

// presentLanded keeps the comment of the newest merged promotion or revert up to
// date while its verification goes on.
func (a *Actor) presentLanded(ctx context.Context, c *facts.Evaluation, d *promotion.ComponentDecision, env *promotion.Env) error {
	if !env.Landed.OK || env.Landed.Value.Pull == 0 || len(env.Landed.Value.Members) > 0 {
		return nil // nothing of ours, or it is told of with those that came along
	}
	st := d.Env(env.Name)
	if st == nil || st.State == promotion.Idle {
		return nil
	}
	l := env.Landed.Value
	in := a.newTextInput(ctx, c, d, env.Name, l.By == promotion.ByRevert)
	in.Number, in.Release, in.Name = l.Pull, env.Release.Value.ID, env.Release.Value.Name
	if err := a.putComment(ctx, c.Snapshot.Repo, l.Pull, prtext.LandedComment(in)); err != nil {
		return err
	}
	if l.By != promotion.ByRevert {
		return nil
	}
	return a.presentReverted(ctx, c, in, env)
}

// presentReverted tells the readers of the promotion that was taken back.
func (a *Actor) presentReverted(ctx context.Context, c *facts.Evaluation, in prtext.Input, env *promotion.Env) error {
	for i := range env.PastPulls {
		revert := &env.PastPulls[i]
		if revert.Number != env.Landed.Value.Pull {
			continue
		}
		for j := range env.PastPulls {
			p := &env.PastPulls[j]
			if p.Revert || !p.Merged || wording.Short(p.Release) != wording.Short(revert.Release) || p.At.After(revert.At) {
				continue
			}
			in.Revert, in.Number, in.RevertedPull, in.Release = false, p.Number, revert.Number, p.Release
			in.Name = c.ReleaseContents[p.Release].String()
			return a.putComment(ctx, c.Snapshot.Repo, p.Number, prtext.RevertedComment(in))
		}
	}
	return nil
}

// putStatus sets the commit status liftlock where it isn't so already.
func (a *Actor) putStatus(ctx context.Context, r *facts.Repository, number int, commit string, st prtext.Status, target string) error {
	s, err := a.readShown(ctx, r, number)
	if err != nil {
		return err
	}
	want := hashParts(commit, st.State, st.Description)
	if s.Status == want {
		return nil
	}
	err = r.Forge.SetStatus(ctx, r.Name, commit, forge.Status{Context: StatusContext, State: forge.StatusState(st.State), Description: st.Description, TargetURL: target})
	if err != nil {
		return err
	}
	s.Status = want
	return a.putShown(ctx, r, number, s)
}

// SetStatus sets the commit status liftlock on a pull request that isn't ours, or,
// with number 0, on a commit of the tracked branch.
func (a *Actor) SetStatus(ctx context.Context, r *facts.Repository, number int, commit string, st prtext.Status) error {
	return a.putStatus(ctx, r, number, commit, st, a.opts.Console)
}
