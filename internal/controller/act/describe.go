package act

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/wording"
)

// differenceURL leads to the rendered difference of a pull request that may not have a
// number yet.
func (a *Actor) differenceURL(s *subject, kind, release string) string {
	if a.opts.Console == "" {
		return ""
	}
	u := s.unit()
	if s.batch && len(s.members) > 0 { // any of them has it all
		u.Component, release = s.members[0].Component, s.members[0].Release
	}
	q := url.Values{"repository": {u.Repo}, "pipeline": {u.Pipeline}, "component": {u.Component}, "environment": {s.env}, "kind": {kind},
		"release": {release}}
	return a.opts.Console + "/diff?" + q.Encode()
}

// moves says that a component is a member.
func (s *subject) moves(component string) bool {
	_, is := promotion.FindMember(s.members, component)
	return is
}

// components are the members' names, sorted.
func (s *subject) components() []string {
	out := make([]string, len(s.members))
	for i, m := range s.members {
		out[i] = m.Component
	}
	slices.Sort(out)
	return out
}

// setMarker fills in the mark that the body of a pull request on a branch carries while
// its head is this commit. It is signed only where own says that we made that head: the
// signature is all that proves so once the database is lost.
func setMarker(s *subject, in *prtext.Input, branchName, head string, own bool) {
	k := branch.Marker{Kind: promotion.KindPromotion, Release: in.Release, Of: in.RevertedPull}
	for _, m := range in.Members {
		if s.batch { // a component's own is told by the branch
			k.Members = append(k.Members, m.Member)
		}
	}
	if in.Revert {
		k.Kind = promotion.KindRevert
	}
	if !own {
		in.BodyMarker = k.String()
		return
	}
	in.BodyMarker = s.ev.Snapshot.Repo.Marks.Sign(s.ev.Snapshot.Repo.ID, branchName, head, k)
}

// describeEdits fills in what an edit on a commit moves and whom it reaches.
func (a *Actor) describeEdits(ctx context.Context, s *subject, in *prtext.Input, commits effects.Commits, edits []fieldedit.Edit) {
	if !in.Revert {
		a.describeMaking(ctx, s, in)
	}
	var files []string
	for _, e := range edits {
		files = append(files, e.File)
		for _, ch := range e.Changes {
			owner := ""
			if s.batch {
				owner = s.ev.FieldOwner(s.env, s.members, e.File, ch.Path)
			}
			in.Changes = append(in.Changes, prtext.Change{Component: owner, File: ch.File, Path: ch.Path, Old: ch.Old, New: ch.New,
				Line: ch.Line})
		}
	}
	kind := promotion.KindPromotion
	if in.Revert {
		kind = promotion.KindRevert
	}
	reached, others, err := a.opts.Gatherer.Effects.Reach(ctx, &s.ev.Basis, s.components(), in.Environment, commits.Base, edits)
	if err != nil {
		in.UnaffectedErr = err.Error()
		return
	}
	branch := s.ev.Snapshot.BranchFor(s.ev.Pipeline.Pipeline, in.Environment).Branch
	proven := false // asked for only where another target reads these files
	for _, t := range reached {
		at := prtext.Target{Name: t.Name, Component: t.Component, Environment: t.Environment,
			Cluster: a.opts.Gatherer.ArgoCDs.ClusterOf(&t.Target),
			Follows: t.OtherRevision(branch, files), CreatedOnly: t.IsCreatedOnly(files)}
		for _, f := range t.Fields {
			at.Fields = append(at.Fields, f.Path)
		}
		if t.Environment == in.Environment && s.moves(t.Component) {
			in.Reached = append(in.Reached, at)
			continue
		}
		if !proven && len(edits) > 0 {
			why, err := a.opts.Gatherer.Effects.WhyNotIsolated(ctx, &s.ev.Basis, s.components(), in.Environment, commits.Base, edits)
			proven = err == nil && why == ""
		}
		if proven {
			in.UnchangedTargets = append(in.UnchangedTargets, at)
		} else {
			in.Reached = append(in.Reached, at)
		}
	}
	in.DiffURL = a.differenceURL(s, kind, in.Release)
	in.UnaffectedCounts = map[string]int{}
	for _, t := range others {
		in.UnaffectedCounts[t.Environment]++
	}
}

// maxApplications bounds the components of a batch whose application's own commits the
// forge is asked for.
const maxApplications = 12

// describeMaking fills in who made what moves. That it can't be told keeps nobody from
// reading the rest.
func (a *Actor) describeMaking(ctx context.Context, s *subject, in *prtext.Input) {
	r := s.ev.Snapshot.Repo
	for i := range in.Members {
		m := &in.Members[i]
		c, _ := s.ev.Component(m.Component)
		if c == nil {
			continue
		}
		all, err := a.opts.Gatherer.Authors.ReleaseCommits(ctx, &c.ComponentBasis, s.env, m.Release)
		if err != nil {
			m.CommitsErr = err.Error()
			continue
		}
		for _, found := range all {
			made := prtext.ReleaseCommits{Source: found.Source, More: found.More, Skipped: found.Skipped}
			if found.Base != "" {
				made.Since = c.Env(s.env).Release.Value.String()
				made.CompareURL = r.Forge.CompareURL(r.Name, found.Base, found.Head)
			}
			made.Commits = listCommits(r.Forge, r.Name, found.Commits)
			m.Commits = append(m.Commits, made)
		}
		if i >= maxApplications {
			continue
		}
		for _, found := range a.opts.Gatherer.Authors.ApplicationCommits(ctx, &c.ComponentBasis, s.env, m.Release) {
			m.Commits = append(m.Commits, applicationCommits(r.Forge, found))
		}
	}
}

// applicationCommits is what is new in the application's own repository, for people.
func applicationCommits(f forge.Forge, found people.ApplicationCommits) prtext.ReleaseCommits {
	if found.Image != "" {
		return prtext.ReleaseCommits{Image: found.Image, Err: found.Err.Error()}
	}
	out := prtext.ReleaseCommits{Repository: found.Repository.String(), From: shortCommit(found.From), To: shortCommit(found.To),
		More: found.More, Commits: listCommits(f, found.Repository, found.Commits)}
	switch {
	case errors.Is(found.Err, forge.ErrNotFound):
		out.Err = "there are no such revisions, or Liftlock's account may not read that repository"
	case forge.IsRetryable(found.Err):
		// The forge's own words may be others each time, and each time the body would be too.
		out.Err = "the forge can't answer now; it is asked again"
	case found.Err != nil:
		out.Err = found.Err.Error()
	default:
		out.CompareURL = f.CompareURL(found.Repository, found.From, found.To)
	}
	return out
}

// shortCommit shortens what is the whole name of a commit; a tag stays.
func shortCommit(revision string) string {
	if len(revision) >= 40 && strings.Trim(revision, "0123456789abcdef") == "" {
		return wording.Short(revision)
	}
	return revision
}

func listCommits(f forge.Forge, r forge.Repo, all []people.ReleaseCommit) []prtext.ReleaseCommit {
	var out []prtext.ReleaseCommit
	for _, k := range all {
		out = append(out, prtext.ReleaseCommit{SHA: k.SHA, Subject: k.Subject, Authors: k.Authors, At: k.At, URL: f.CommitURL(r, k.SHA)})
	}
	return out
}

// RenderLimit bounds what a pull request shows of one target's manifests.
var RenderLimit = render.TextLimit{Bytes: prtext.RenderedBytes, Lines: prtext.RenderedLines, ObjectLines: prtext.RenderedObject}

// presentPatience is how long a look at a pull request waits for an Argo CD that renders its
// changes. An Argo CD that has the rendering already takes as long.
const presentPatience = 2 * time.Second

// renderEffects fills in what an edit does to the manifests. That it can't be told
// keeps nobody from reading the rest.
func (a *Actor) renderEffects(ctx context.Context, s *subject, in *prtext.Input, commits effects.Commits, edits []fieldedit.Edit,
	patience time.Duration) {
	effects, pending, err := a.opts.Gatherer.Effects.ShownEffects(ctx, &s.ev.Basis, s.components(), in.Environment, commits, edits,
		patience)
	s.rendering = pending
	if err != nil {
		in.RenderedErr = err.Error()
		return
	}
	for _, e := range effects {
		r := prtext.Rendered{Target: e.Target.Name, Spec: e.Spec, Why: e.Why, Ignored: e.Ignored.Describe(), Disagreement: e.Disagreement}
		if !e.Changes.Empty() {
			r.Summary, r.Diff = e.Changes.Summary(), e.Changes.Text(RenderLimit)
		}
		in.Rendered = append(in.Rendered, r)
	}
}

func (a *Actor) putEvidence(ctx context.Context, tx *store.Tx, repo string, pull int, x promotion.OpenRevert) error {
	return stored.RevertReasons.Put(ctx, tx, record.OfPull(repo, pull), stored.RevertReason{Evidence: x.Evidence, By: x.By,
		Reason: x.Reason})
}

// readEvidence fills in why a revert was opened; false evidence is never made up: when
// the record is lost the page's body stays as it is.
func (a *Actor) readEvidence(ctx context.Context, s *subject, in *prtext.Input) error {
	k, ok, err := stored.RevertReasons.Get(ctx, a.opts.Store, record.OfPull(s.ev.Unit.Repo, s.number))
	if err != nil || !ok {
		return err
	}
	in.Evidence, in.By, in.Reason = k.Evidence, k.By, k.Reason
	return nil
}
