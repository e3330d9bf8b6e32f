package isolation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/manifest/deps"
	"github.com/liftlock/liftlock/internal/wording"
)

// maxListed bounds the targets that a refusal names, and the search for more.
const maxListed = 5

// WhyNotIsolated says why an edit must not be made: which targets it changes that it
// isn't for, or of which that can't be told. "" is the proof that there are
// none. The error is that of a context that ended, or of a tree that can't be
// read.
func (r *Renderer) WhyNotIsolated(ctx context.Context, e *Edit) (string, error) {
	if p := firstNewProblem(e.Before.Problems, e.After.Problems); p != "" {
		return "which targets it would change can't be told: " + p, nil
	}
	all := e.pairTargets()
	if why := explainRegenerated(e, all); why != "" {
		return why, nil
	}
	readers, err := e.renderingTargets(ctx, all)
	if err != nil {
		return "", err
	}
	var found dependents
	for some := range slices.Chunk(readers, maxRenderedAtOnce) {
		rendered, err := r.renderPairs(ctx, e, some)
		if err != nil {
			return "", err
		}
		if found.add(e, some, rendered); len(found.changed) == maxListed {
			break
		}
	}
	return found.explain(), nil
}

// dependents are the targets outside that an edit changes, or of which that can't be told.
type dependents struct {
	changed, unknown []string
	files            []string // that they read of the edited ones
	reason           string   // why it can't be told of the first
}

// add takes pairs, until as many are known to change as are listed.
func (d *dependents) add(e *Edit, pairs []targetPair, rendered []renderedPair) {
	for i := range pairs {
		p, both := &pairs[i], &rendered[i]
		switch {
		case both.failed.why != "":
			d.unknown = append(d.unknown, p.targetName())
			d.reason = cmp.Or(d.reason, fmt.Sprintf("%s can't be rendered here: %s", p.targetName(), both.failed.why))
		case both.before == nil || both.after == nil || both.before.Digest != both.after.Digest:
			d.changed = append(d.changed, p.targetName())
		default:
			continue
		}
		d.files = append(d.files, e.FilesByTarget[p.id]...)
		if len(d.changed) == maxListed {
			return
		}
	}
}

func (d *dependents) explain() string {
	slices.Sort(d.files)
	read := strings.Join(slices.Compact(d.files), ", ")
	switch changed, unknown := d.changed, d.unknown; {
	case len(changed) > 0:
		more := ""
		if len(changed) == maxListed {
			more = " and maybe others"
		}
		return fmt.Sprintf("%s is also read by %s%s, whose manifests it would change", read, joinNames(changed), more)
	case len(unknown) > 0:
		return fmt.Sprintf("%s is also read by %s, and whether it would change their manifests can't be told (%s)", read,
			joinNames(unknown), d.reason)
	}
	return ""
}

// firstNewProblem is the first problem that wasn't there before.
func firstNewProblem(before, after []string) string {
	for _, p := range after {
		if !slices.Contains(before, p) {
			return p
		}
	}
	return ""
}

// explainRegenerated names the targets outside whose Applications an edit changes.
func explainRegenerated(e *Edit, all []targetPair) string {
	var names []string
	for _, p := range all {
		if !p.mayChange && !p.sameSpec() {
			names = append(names, p.targetName())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s also decides what the ApplicationSets generate for %s", strings.Join(e.Files, ", "), joinNames(names))
}

// renderingTargets are the targets outside whose manifests may depend on an edited
// file. Those that only their generators read it for don't: their Applications
// are known to be the same.
func (e *Edit) renderingTargets(ctx context.Context, all []targetPair) ([]targetPair, error) {
	var out []targetPair
	var readers []deps.Reader
	generated := false
	for _, p := range all {
		if p.mayChange || p.before == nil || len(e.FilesByTarget[p.id]) == 0 {
			continue
		}
		out = append(out, p)
		own := appset.Target(*p.before)
		own.GeneratorFiles = nil
		readers = append(readers, evaluate.Reader(&own))
		generated = generated || slices.ContainsFunc(e.FilesByTarget[p.id],
			func(f string) bool { return slices.Contains(p.before.GeneratorFiles, f) })
	}
	if !generated {
		return out, nil
	}
	ix, err := deps.Build(ctx, e.Before.Tree, readers)
	if err != nil {
		return nil, fmt.Errorf("find out what the targets render: %w", err)
	}
	changed := ix.AffectedReaders(e.Files)
	return slices.DeleteFunc(out, func(p targetPair) bool { return len(changed[p.id]) == 0 }), nil
}

func joinNames(names []string) string {
	return wording.JoinFew(slices.Compact(slices.Sorted(slices.Values(names))), maxListed)
}
