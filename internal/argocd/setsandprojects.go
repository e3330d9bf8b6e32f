package argocd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/argocd/api"
)

// SetsAndProjects is what one look at an Argo CD finds besides its Applications. A kind that may
// not be listed is not known, and its error says why.
type SetsAndProjects struct {
	Sets        []ApplicationSet
	SetsErr     error
	Projects    []string // their names; nil: not known
	ProjectsErr error
	Line        string // the line of Argo CD that its kinds are of, as "3.5"; empty: not known
}

// checkMaySee tells what Argo CD's own API hides, which lists nothing where it should refuse,
// from what there isn't.
func (w *Watcher) checkMaySee(ctx context.Context, which string) error {
	if w.client != nil {
		return nil // the API server refuses
	}
	return checkMaySee(ctx, w.api, which)
}

// ListSetsAndProjects lists the ApplicationSets and the AppProjects once, for a program that
// asks and ends; one that stays lets Run keep them up to date. The error is for
// an Argo CD that answers neither question.
func (w *Watcher) ListSetsAndProjects(ctx context.Context) (*SetsAndProjects, error) {
	a := &SetsAndProjects{Projects: []string{}}
	for _, f := range w.setFeeds {
		err := f.visitAll(ctx, "", "", func(raw json.RawMessage) error {
			set, _, err := decodeSet(raw)
			a.Sets = append(a.Sets, set)
			return err
		})
		if err == nil && len(a.Sets) == 0 {
			err = w.checkMaySee(ctx, api.ApplicationSets)
		}
		if err != nil {
			a.Sets, a.SetsErr = nil, err
			break
		}
	}
	slices.SortFunc(a.Sets, func(a, b ApplicationSet) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, f := range w.projectFeeds {
		err := f.visitAll(ctx, "", "", func(raw json.RawMessage) error {
			var o struct {
				Metadata wireMeta `json:"metadata"`
			}
			err := json.Unmarshal(raw, &o)
			a.Projects = append(a.Projects, o.Metadata.Name)
			return err
		})
		if err == nil && len(a.Projects) == 0 {
			err = w.checkMaySee(ctx, api.Projects)
		}
		if err != nil {
			a.Projects, a.ProjectsErr = nil, err
		}
	}
	slices.Sort(a.Projects)
	a.Line, _ = w.detectLine(ctx) // without it, sets are resolved as where there is no connection
	if a.SetsErr != nil && a.ProjectsErr != nil {
		return nil, fmt.Errorf("argocd %s (%s): %w", w.name, w.host, a.SetsErr)
	}
	return a, nil
}
