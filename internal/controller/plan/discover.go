package plan

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/discovery"
	"github.com/liftlock/liftlock/internal/discover"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// VersionSource says which tags and versions there are.
type VersionSource = discovery.Source

// Discovery is what would come into source environments by itself. Lists are never nil.
type Discovery struct {
	Subject   string              `json:"looked"` // what was looked at, for people
	Commit    string              `json:"commit"`
	Pipelines []DiscoveryPipeline `json:"pipelines"`
	Problems  []appset.Problem    `json:"problems"` // kept something from being known
	Notes     []appset.Problem    `json:"notes"`
}

// DiscoveryPipeline is one pipeline's part, by environment as the pipeline orders them, then by component.
type DiscoveryPipeline struct {
	Name       string                `json:"name"`
	DryRun     bool                  `json:"observe,omitempty"` // mode: observe: the server commits nothing
	Components []DiscoveredComponent `json:"components"`
}

// DiscoveredComponent is a component in one source environment.
type DiscoveredComponent struct {
	Component   string              `json:"component"`
	Environment string              `json:"environment"`
	Branch      string              `json:"branch"`
	Versions    []DiscoveredVersion `json:"versions"`
	Comes       *promotion.Release  `json:"comes,omitempty"` // what the environment would have; nil: nothing comes in
	Changes     []fieldedit.Change  `json:"changes"`
	Files       []File              `json:"files"`
	Refused     string              `json:"refused,omitempty"` // why nothing comes in although something new is there
}

// DiscoveredVersion is what becomes of one version that is there.
type DiscoveredVersion struct {
	Name     string              `json:"name"` // of the image or the chart
	Where    []string            `json:"where"`
	Current  string              `json:"there"`
	Digest   string              `json:"digest,omitempty"`
	Rule     string              `json:"rule"`
	Comes    string              `json:"comes,omitempty"`
	Pinned   string              `json:"comesAs,omitempty"`    // its digest, where that is written or was verified
	Signer   string              `json:"signedWith,omitempty"` // where it has to be signed
	Why      string              `json:"why"`
	Rejected []discover.Rejected `json:"others"`
	Err      string              `json:"error,omitempty"`
}

// NewDiscovery is an empty answer; subject names the checkout's commit or tree for people.
func NewDiscovery(subject, commit string) *Discovery {
	return &Discovery{Subject: subject, Commit: commit, Pipelines: []DiscoveryPipeline{}, Problems: []appset.Problem{},
		Notes: []appset.Problem{}}
}

// Fill looks at all source environments with a discover. The error is for a repository that can't be read, and a context
// that ended.
func (d *Discovery) Fill(ctx context.Context, in Input, source VersionSource) error {
	m, err := newPlanner(ctx, in)
	if err != nil {
		return err
	}
	for _, of := range m.snapshot.Pipelines {
		d.Problems = append(d.Problems, of.TargetSet.Problems...)
		d.Notes = append(d.Notes, of.TargetSet.Notes...)
		if in.OnlyPipeline != "" && of.Name() != in.OnlyPipeline {
			continue
		}
		part, err := m.discoverPipeline(ctx, of, source, d)
		if err != nil {
			return err
		}
		d.Pipelines = append(d.Pipelines, part)
	}
	return nil
}

// discoverPipeline looks at the source environments of one pipeline.
func (pl *planner) discoverPipeline(ctx context.Context, p *branch.ResolvedPipeline, source VersionSource,
	d *Discovery) (DiscoveryPipeline, error) {
	out := DiscoveryPipeline{Name: p.Name(), DryRun: p.Spec.Mode == pipeline.ModeDryRun, Components: []DiscoveredComponent{}}
	for _, spec := range p.TopologicalOrder() {
		if len(spec.Discover) == 0 {
			continue
		}
		matched := map[int]bool{}
		for _, name := range slices.Sorted(maps.Keys(p.Units)) {
			ev, err := pl.gatherer.Gather(ctx, pl.snapshot, p.Units[name].Unit, false)
			if err != nil {
				return out, err
			}
			found, err := pl.gatherer.Discover(ctx, ev, name, spec.Name, source)
			if err != nil {
				return out, err
			}
			if found == nil {
				continue
			}
			for _, entry := range found.Matched {
				matched[entry] = true
			}
			shown, err := pl.describeDiscovered(found, d)
			if err != nil {
				return out, err
			}
			if len(shown.Versions) > 0 || shown.Refused != "" {
				out.Components = append(out.Components, shown)
			}
		}
		for i := range spec.Discover {
			if !matched[i] {
				d.Notes = append(d.Notes, appset.Problem{File: p.File, Message: fmt.Sprintf("discover[%d] of %s is about %s, which no "+
					"carried field names: carry a field that has its version beside its name", i, spec.Name, spec.Discover[i].Name())})
			}
		}
	}
	return out, nil
}

// describeDiscovered is what a component's answer shows. What can't be known is a problem.
func (pl *planner) describeDiscovered(f *discovery.Found, d *Discovery) (DiscoveredComponent, error) {
	out := DiscoveredComponent{Component: f.Component, Environment: f.Environment, Branch: f.Branch, Versions: []DiscoveredVersion{},
		Changes: []fieldedit.Change{}, Files: []File{}, Refused: f.Refused}
	for i := range f.Versions {
		v := &f.Versions[i]
		shown := DiscoveredVersion{Name: v.Name, Where: v.Where, Current: v.Current, Digest: v.Digest, Rule: v.Rule, Why: v.Choice.Why,
			Rejected: v.Choice.Rejected, Err: v.Err}
		if shown.Rejected == nil {
			shown.Rejected = []discover.Rejected{}
		}
		if v.Err == "" && v.Choice.Tag != "" {
			shown.Comes, shown.Signer = v.Choice.Tag, v.Choice.Signer
			if v.Pinned || v.Choice.Signer != "" {
				shown.Pinned = v.Choice.Digest
			}
		}
		if v.Err != "" {
			d.Problems = append(d.Problems, appset.Problem{Message: fmt.Sprintf("%s of %s in %s: %s", v.Name, f.Component, f.Environment,
				v.Err)})
		}
		out.Versions = append(out.Versions, shown)
	}
	if len(f.Edits) > 0 {
		release := f.Release
		out.Comes = &release
	}
	for i := range f.Edits {
		file, err := describeFile(pl.input.Mirror.Tree(f.Tip), &f.Edits[i])
		if err != nil {
			return out, err
		}
		out.Changes, out.Files = append(out.Changes, f.Edits[i].Changes...), append(out.Files, file)
	}
	return out, nil
}

// maxRejectedShown bounds the tags of which the table says why they don't come in.
const maxRejectedShown = 5

// WriteDiscovery writes an answer for people; all shows every tag.
func WriteDiscovery(w io.Writer, d *Discovery, all bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "From %s:\n\n", appset.Printable(d.Subject))
	coming, looked := 0, 0
	for i := range d.Pipelines {
		p := &d.Pipelines[i]
		if len(d.Pipelines) > 1 {
			fmt.Fprintf(&b, "pipeline %s\n\n", appset.Printable(p.Name))
		}
		if p.DryRun && len(p.Components) > 0 {
			b.WriteString("mode is observe: the server commits nothing; this is what would come in.\n\n")
		}
		for k := range p.Components {
			writeDiscovered(&b, &p.Components[k], all)
			looked++
			if p.Components[k].Comes != nil {
				coming++
			}
		}
	}
	switch {
	case looked == 0 && len(d.Problems) > 0:
		b.WriteString("What would come in isn't known.\n")
	case looked == 0:
		b.WriteString("No source environment has a discover about what it carries.\n")
	default:
		fmt.Fprintf(&b, "%s would come in, of %s.\n", wording.Count(coming, "release"), wording.Count(looked, "component"))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing what would come in: %w", err)
	}
	return nil
}

func writeDiscovered(b *strings.Builder, c *DiscoveredComponent, all bool) {
	fmt.Fprintf(b, "%s in %s", appset.Printable(c.Component), appset.Printable(c.Environment))
	if c.Comes != nil {
		fmt.Fprintf(b, " gets %s", appset.Printable(c.Comes.String()))
	}
	b.WriteByte('\n')
	for i := range c.Versions {
		v := &c.Versions[i]
		there := v.Current
		if there == "" {
			there = v.Digest
		}
		fmt.Fprintf(b, "  %s %s", appset.Printable(v.Name), appset.Printable(there))
		switch {
		case v.Err != "":
			fmt.Fprintf(b, ": %s\n", appset.Printable(v.Err))
		case v.Comes != "":
			fmt.Fprintf(b, " → %s\n", appset.Printable(v.Why))
			if v.Signer != "" {
				fmt.Fprintf(b, "      %s is signed with %s\n", appset.Printable(v.Pinned), appset.Printable(v.Signer))
			}
		default:
			fmt.Fprintf(b, ": %s\n", appset.Printable(v.Why))
		}
		shown := v.Rejected
		if !all {
			shown = shown[:min(len(shown), maxRejectedShown)]
		}
		for _, r := range shown {
			fmt.Fprintf(b, "      %s %s\n", appset.Printable(r.Tag), appset.Printable(r.Why))
		}
		if more := len(v.Rejected) - len(shown); more > 0 {
			fmt.Fprintf(b, "      and %d more, which --all shows\n", more)
		}
	}
	for i := range c.Changes {
		fmt.Fprintf(b, "  %s\n", appset.Printable(c.Changes[i].String()))
	}
	if c.Refused != "" {
		fmt.Fprintf(b, "  nothing comes in: %s\n", appset.Printable(c.Refused))
	}
	b.WriteByte('\n')
}
