package branch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/liftlock/liftlock/internal/appset"
)

// ErrNoPipeline says that the tracked branch has no such pipeline.
var ErrNoPipeline = errors.New("no such pipeline on the tracked branch")

// LiveComparison is how what a pipeline resolves to and what runs part.
type LiveComparison struct {
	Commit   string   // of the tracked branch
	Problems []string // why something can't be resolved
	Notes    []string // what should be known of the rest, such as sets whose live Applications are used
	*appset.Differences
}

// Compare resolves a pipeline at the tracked branch's fetched head and compares
// the result with the live Applications of its Argo CDs, which are listed anew.
// Nothing of it is kept. The error says which Argo CD can't be read, or that
// there is no such pipeline.
func (tg *TargetGatherer) Compare(ctx context.Context, r *Repository, name string) (*LiveComparison, error) {
	s, err := tg.Snapshot(ctx, r)
	if err != nil {
		return nil, err
	}
	p := s.Pipeline(name)
	if p == nil {
		return nil, fmt.Errorf("%s: %w", name, ErrNoPipeline)
	}
	in, err := tg.NewInputCollector(r).collectInput(ctx, p.Pipeline, s.Commit)
	if err != nil {
		return nil, err
	}
	in.Manifests = true
	in.Revision = "" // thousands of manifests are not worth keeping for this
	fl, err := tg.Resolver.Resolve(ctx, in)
	if err != nil {
		return nil, err
	}
	c, err := appset.NewComparison(in, fl)
	if err != nil {
		return nil, err
	}
	for _, argocd := range tg.Argocds.NamesOf(p.Pipeline) {
		a, ok := tg.Argocds.ByName[argocd]
		if !ok || a.Live == nil {
			return nil, fmt.Errorf("there is no connection to the Argo CD %s", argocd)
		}
		if err := a.Live.Each(ctx, func(raw json.RawMessage) error { return c.CompareLive(argocd, raw) }); err != nil {
			return nil, err
		}
	}
	out := &LiveComparison{Commit: s.Commit, Problems: p.Problems, Differences: c.Differences()}
	for _, n := range fl.Notes {
		out.Notes = append(out.Notes, n.Text())
	}
	return out, nil
}
