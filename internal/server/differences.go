package server

import (
	"context"
	"errors"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/console"
	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
)

// compareLive compares what a pipeline resolves to with what runs, for the console.
func (s *Server) compareLive(ctx context.Context, repo, pipeline string) (*api.Differences, error) {
	e := s.runningEngine()
	if e == nil {
		return nil, console.ErrNotReady
	}
	c, err := e.Compare(ctx, repo, pipeline)
	if errors.Is(err, branch.ErrNoPipeline) {
		return nil, &console.Refusal{Reason: err.Error()}
	}
	if err != nil {
		return nil, err
	}
	return &api.Differences{
		Repository: repo, Pipeline: pipeline, At: s.o.Clock.Now(), Commit: c.Commit, Problems: c.Problems, Notes: c.Notes, Equal: c.Equal,
		Unexpected: c.Unexpected(),
		Unsure:     c.Unsure, Missing: apiDifferences(c.Missing), Extra: apiDifferences(c.Extra), Different: apiDifferences(c.Different),
	}, nil
}

func apiDifferences(list []appset.Difference) []api.Difference {
	out := make([]api.Difference, 0, len(list))
	for _, d := range list {
		o := api.Difference{ArgoCD: d.ArgoCD, Namespace: d.Namespace, Name: d.Name, ApplicationSet: d.ApplicationSet, File: d.File,
			Expected: d.Expected, More: d.More}
		for _, f := range d.Fields {
			o.Fields = append(o.Fields, api.FieldDifference(f))
		}
		out = append(out, o)
	}
	return out
}
