package emulator

import (
	"net/http"
	"slices"
)

func createStatus(c *call, sha string) (any, error) {
	var in struct {
		State       string `json:"state"`
		TargetURL   string `json:"target_url"`
		Description string `json:"description"`
		Context     string `json:"context"`
	}
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	s := &status{state: in.State, target: in.TargetURL, description: in.Description, context: in.Context}
	if err := c.addStatus(c.repo, c.user, sha, s); err != nil {
		return nil, err
	}
	c.status = http.StatusCreated
	return c.wireStatus(c.repo, sha, s), nil
}

// listStatuses are all statuses of a commit, newest first.
func listStatuses(c *call, sha string) (any, error) {
	all := slices.Clone(c.repo.statuses[sha])
	slices.Reverse(all)
	return paginateAs(c, all, func(s *status) wireStatus { return c.wireStatus(c.repo, sha, s) }), nil
}

// combinedStatus is the newest of each context; it names no creators.
func combinedStatus(c *call, sha string) (any, error) {
	shown := []wireStatus{}
	for _, s := range c.latestStatuses(c.repo, sha) {
		w := c.wireStatus(c.repo, sha, s)
		w.Creator = nil
		shown = append(shown, w)
	}
	return map[string]any{
		"state": c.combinedState(c.repo, sha), "sha": sha, "total_count": len(shown), "statuses": paginate(c, shown),
		"repository": c.wireMinimalRepo(c.repo), "url": c.repoURL(c.repo) + "/commits/" + sha + "/status",
	}, nil
}

// listCheckRuns is always empty: no app that makes check runs lives here.
func listCheckRuns(*call, string) (any, error) {
	return map[string]any{"total_count": 0, "check_runs": []any{}}, nil
}
