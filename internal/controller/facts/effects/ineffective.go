package effects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
)

// ListIneffective lists what of edits on a commit doesn't show in the manifests of a component's targets
// although it must, and the targets of which that isn't known. members are all that move by the edits. The error is
// that of a context that ended.
func (ga *Gatherer) ListIneffective(ctx context.Context, ev *branch.Basis, env, base string, members []promotion.Member,
	edits []fieldedit.Edit, component string) (
	out promotion.EffectFacts, err error) {
	components := ComponentNames(members)
	effects, err := ga.ListEffects(ctx, ev, components, env, base, edits)
	if err != nil {
		return promotion.EffectFacts{Unrendered: []promotion.UnrenderedTarget{{Target: "its targets", Why: err.Error()}}}, ctx.Err()
	}
	effects = slices.DeleteFunc(slices.Clone(effects), func(e isolation.Effect) bool { return e.Target.Component != component })
	unread := ga.addLiveEffects(ctx, ev, components, env, base, edits, effects)
	unread = append(unread, ga.addIgnored(ctx, ev, components, env, base, edits, effects)...)
	changes := changesOf(ev, env, members, edits, component)
	without := func(c *fieldedit.Change) []isolation.Effect {
		others, ok := withoutChange(edits, c)
		if !ok {
			return nil
		}
		out, err := ga.ListEffects(ctx, ev, components, env, base, others)
		if err != nil {
			return nil
		}
		return out
	}
	trees := overrideTrees(ev, env, base)
	for _, f := range isolation.ListIneffective(trees, effects, changes, without) {
		out.Ineffective = append(out.Ineffective, promotion.IneffectiveField{Target: f.Target, Field: f.Change.Path, File: f.Change.File,
			Line: f.Change.Line, OverriddenBy: f.Override.String()})
	}
	for _, e := range isolation.Unrendered(effects, changes) {
		out.Unrendered = append(out.Unrendered, promotion.UnrenderedTarget{Target: e.Target.Name, Why: e.Why})
	}
	out.Unrendered = append(out.Unrendered, unread...)
	for i := range effects {
		e := &effects[i]
		if e.Ignored == nil {
			continue
		}
		by := "Argo CD's settings"
		if len(e.Target.Ignores.Differences) > 0 {
			by = isolation.LocateIgnored(trees, &e.Target).String()
		}
		for _, f := range e.Ignored.Fields {
			out.Ignored = append(out.Ignored, promotion.IgnoredField{Target: e.Target.Name, Object: f.Object, Path: f.Path,
				Managers: f.Managers, By: by})
		}
	}
	return out, ctx.Err()
}

// withoutChange are edits without one of their changes; false where it can't be taken back alone.
func withoutChange(edits []fieldedit.Edit, c *fieldedit.Change) ([]fieldedit.Edit, bool) {
	at := slices.IndexFunc(edits, func(e fieldedit.Edit) bool { return e.File == c.File })
	if at < 0 || c.Added || c.Removed {
		return nil, false
	}
	if edits[at].Created || edits[at].Deleted {
		return nil, false
	}
	var op fieldedit.Op
	if image, isImage := fieldedit.ImageOfPath(c.Path); isImage && c.Kind == fieldedit.KindImage {
		op.Image = image
		switch c.Path[strings.LastIndexByte(c.Path, '.')+1:] {
		case "newTag":
			op.Edit.NewTag = c.Old
		case "newName":
			op.Edit.NewName = c.Old
		case "digest":
			op.Edit.Digest = c.Old
		default:
			return nil, false
		}
	} else {
		var err error
		if op, err = fieldedit.ParseOp(c.Path + "=" + c.Old); err != nil {
			return nil, false
		}
	}
	after, changed, err := fieldedit.Set(edits[at].After, c.File, []fieldedit.Op{op})
	if err != nil || len(changed) != 1 {
		return nil, false
	}
	out := slices.Clone(edits)
	if bytes.Equal(after, out[at].Before) {
		return slices.Delete(out, at, at+1), len(out) > 1
	}
	out[at].After = after
	out[at].Changes = slices.DeleteFunc(slices.Clone(out[at].Changes), func(o fieldedit.Change) bool { return o.Path == c.Path })
	return out, true
}

// addLiveEffects adds what edits do to targets as their Applications run, where those have other options than in
// Git: somebody wrote them, or Image Updater, and the ApplicationSet leaves them. It gives those whose Applications
// can't be read.
func (ga *Gatherer) addLiveEffects(ctx context.Context, ev *branch.Basis, components []string, env, base string,
	edits []fieldedit.Edit,
	effects []isolation.Effect) []promotion.UnrenderedTarget {
	run, digest := map[string]isolation.RunningTarget{}, sha256.New()
	var unread []promotion.UnrenderedTarget
	for i := range effects {
		e := &effects[i]
		if e.Changes == nil || e.Nothing || e.Target.Live {
			continue
		}
		live, why := ga.readLiveOptions(ctx, e)
		if why != "" {
			unread = append(unread, promotion.UnrenderedTarget{Target: e.Target.Name, Why: why})
		}
		if live.After == nil {
			continue
		}
		run[e.Target.ID()] = live
		fmt.Fprintf(digest, "%q", e.Target.ID())
		for _, t := range []*appset.Target{live.Before, live.After} {
			for _, s := range t.Sources {
				fmt.Fprintf(digest, "%q", s.Options)
			}
		}
	}
	if len(run) == 0 {
		return unread
	}
	late := fmt.Sprintf("rendering as the Applications run (%x) took longer than %s; it is tried again, within the hour at the latest",
		digest.Sum(nil)[:6], editTimeout)
	j, err := ga.judgeEdit(ctx, ev, components, env, base, edits, late,
		func(ctx context.Context, edit *isolation.Edit) (j judgement, err error) {
			j.effects, err = ga.Renderer.EffectsAsRun(ctx, edit, run)
			return j, err
		})
	if err == nil && j.why != "" {
		err = errors.New(j.why)
	}
	for i := range effects {
		e := &effects[i]
		if run[e.Target.ID()].After == nil {
			continue
		}
		at := slices.IndexFunc(j.effects, func(r isolation.Effect) bool { return r.Target.ID() == e.Target.ID() })
		switch {
		case err != nil:
			unread = append(unread, promotion.UnrenderedTarget{Target: e.Target.Name, Why: err.Error()})
		case at >= 0 && j.effects[at].Why != "":
			unread = append(unread, promotion.UnrenderedTarget{Target: e.Target.Name, Why: "as its live Application is: " +
				j.effects[at].Why})
		case at >= 0:
			e.Run = &j.effects[at]
		}
	}
	return unread
}

// addIgnored adds what of the effects Argo CD ignores. It gives the targets of which that can't be told.
func (ga *Gatherer) addIgnored(ctx context.Context, ev *branch.Basis, components []string, env, base string, edits []fieldedit.Edit,
	effects []isolation.Effect) []promotion.UnrenderedTarget {
	rules, digest := map[string]*appset.IgnoreRules{}, sha256.New()
	respected := map[string]bool{}
	var unread []promotion.UnrenderedTarget
	for i := range effects {
		e := &effects[i]
		if e.Changes.Empty() {
			continue
		}
		own, settings := ga.readIgnores(&e.Target)
		found, err := appset.NewIgnoreRules(own, settings)
		if err != nil {
			unread = append(unread, promotion.UnrenderedTarget{Target: e.Target.Name, Why: err.Error()})
		}
		if found == nil {
			continue
		}
		e.Target.Ignores = own
		rules[e.Target.ID()], respected[e.Target.ID()] = found, own.Respected
		fmt.Fprintf(digest, "%q %s %q", e.Target.ID(), own.Differences, settings)
	}
	if len(rules) == 0 {
		return unread
	}
	late := fmt.Sprintf("what Argo CD ignores (%x) was looked for longer than %s; it is tried again, within the hour at the latest",
		digest.Sum(nil)[:6], editTimeout)
	j, err := ga.judgeEdit(ctx, ev, components, env, base, edits, late,
		func(ctx context.Context, edit *isolation.Edit) (j judgement, err error) {
			if j.ignored, err = ga.Renderer.ListIgnored(ctx, edit, rules); err != nil && ctx.Err() == nil {
				j.why, err = err.Error(), nil
			}
			return j, err
		})
	if err == nil && j.why != "" {
		err = errors.New(j.why)
	}
	for i := range effects {
		e := &effects[i]
		id := e.Target.ID()
		switch found := j.ignored[id]; {
		case rules[id] == nil:
		case err != nil:
			unread = append(unread, promotion.UnrenderedTarget{Target: e.Target.Name, Why: err.Error()})
		case found != nil:
			known := *found
			known.Respected = respected[id]
			e.Ignored = &known
		}
	}
	return unread
}

// readIgnores is what a target's Application ignores, as it runs where it is known to, and what its Argo CD's settings do.
func (ga *Gatherer) readIgnores(t *appset.Target) (own appset.Ignores, settings map[string]string) {
	own = t.Ignores
	argo := ga.targets.Argocds.ByName[ga.targets.Argocds.ArgoCDOf(t)]
	if argo.Apps == nil {
		return own, nil
	}
	if app, err := ga.targets.Argocds.FindApp(t); err == nil && app != nil {
		if app.Ignored != "" {
			own.Differences = json.RawMessage(app.Ignored)
		}
		own.Respected = app.RespectsIgnored
	}
	if argo.Live == nil {
		return own, nil
	}
	if said := argo.Live.Version().Ignored; said != "" && json.Unmarshal([]byte(said), &settings) != nil {
		return own, nil
	}
	return own, settings
}

// readLiveOptions is an effect's target as its Application runs and, where the edit changes the Application itself, as it
// will then; none where that has the options that Git says. why says that it has others that can't be read.
func (ga *Gatherer) readLiveOptions(ctx context.Context, e *isolation.Effect) (run isolation.RunningTarget, why string) {
	t := &e.Target
	if e.Spec {
		if t = e.Before; t == nil {
			return run, ""
		}
	}
	argo := ga.targets.Argocds.ByName[ga.targets.Argocds.ArgoCDOf(t)]
	app, err := ga.targets.Argocds.FindApp(t)
	if err != nil || app == nil || app.Deleting {
		return run, "" // there is none yet, or it isn't known; what runs is verified anyway
	}
	if argo.Live == nil || len(app.Sources) != len(t.Sources) {
		return run, ""
	}
	// Fields that a set ignores stay as they run, also where Git had the same until now.
	differs := e.Spec && len(e.Target.Policy.IgnoreDifferences) > 0
	for i, s := range t.Sources {
		differs = differs || app.Sources[i].Options != argocd.OptionsOf(s.Options)
	}
	if !differs || t.Hydration != nil {
		return run, ""
	}
	raw, err := argo.Live.Whole(ctx, app)
	if err == nil {
		run.Before, err = t.AsRun(raw)
	}
	run.After = run.Before
	if err == nil && e.Spec {
		run.After, err = e.Target.AsLeft(t, raw)
	}
	if err != nil {
		return isolation.RunningTarget{}, "its live Application has other options than in Git: " + err.Error()
	}
	return run, ""
}

// MayBeOverridden says that something is known to override what edits on a commit change for a component of
// members in a target that reads some files.
func MayBeOverridden(ev *branch.Basis, env, base string, members []promotion.Member, edits []fieldedit.Edit, t *appset.Target,
	files []string) bool {
	return isolation.MayBeOverridden(overrideTrees(ev, env, base), t, files, changesOf(ev, env, members, edits, t.Component))
}

// changesOf are the changes of edits that belong to a component, or of which that can't be told.
func changesOf(ev *branch.Basis, env string, members []promotion.Member, edits []fieldedit.Edit, component string) []fieldedit.Change {
	var out []fieldedit.Change
	for i := range edits {
		for _, ch := range edits[i].Changes {
			owner := component
			if len(members) > 1 {
				owner = ev.FieldOwner(env, members, edits[i].File, ch.Path)
			}
			if owner == component || owner == "" {
				ch.File = edits[i].File
				out = append(out, ch)
			}
		}
	}
	return out
}

// overrideTrees are where it is looked for what overrides fields on a commit of an environment's branch.
func overrideTrees(ev *branch.Basis, env, base string) isolation.Trees {
	m := ev.Snapshot.Repo.Mirror
	at := isolation.Trees{Files: m.Tree(base)}
	if at.Sets = at.Files; ev.Pipeline.BranchOf(env) != "" {
		at.Sets = m.Tree(ev.Snapshot.Commit)
	}
	return at
}
