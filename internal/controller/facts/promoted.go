package facts

import (
	"cmp"
	"slices"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// releaseFacts fills in what a pull request moves, where a gate of the environment asks
// for it. What else there is to know of the promotion the decision knows by itself.
func (c *ComponentEvaluation) releaseFacts(env *promotion.Env, open *OpenPull, p *promotion.Pull) {
	if !slices.ContainsFunc(env.Gates, func(g policies.Gate) bool { return g.Expression != nil || g.Metric != nil || g.HTTP != nil }) {
		return
	}
	known := &policies.Promotion{Pipeline: c.Facts.Unit.Pipeline, Environment: env.Name, Component: c.Facts.Unit.Component, Pull: policies.PullRequest{Number: int64(p.Number), Labels: open.PR.Labels}}
	p.Review.Promotion = known
	if known.ReleaseErr = c.whyUnknown(p.Release); known.ReleaseErr != "" {
		return
	}
	carried := c.contents[p.Release]
	known.Release = &policies.Release{ID: p.Release, Short: wording.Short(p.Release), Name: p.Name}
	for _, i := range carried.Images() {
		known.Release.Images = append(known.Release.Images, policies.Image{Name: cmp.Or(i.NewName, i.Name), Tag: i.Tag, Digest: i.Digest, File: i.File})
	}
	old := map[string]string{}
	if env.Release.OK {
		for _, f := range c.contents[env.Release.Value.ID].Fields {
			old[f.Key()] = f.Value
		}
	}
	for _, f := range carried.Fields {
		known.Release.Fields = append(known.Release.Fields, policies.Field{File: f.File, Field: f.Path, Old: old[f.Key()], New: f.Value})
	}
}
