package emulator

import "net/http"

func createStatus(c *call) (any, error) {
	sha, err := c.resolveCommit()
	if err != nil {
		return nil, err
	}
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
func listStatuses(c *call) (any, error) {
	sha, err := c.resolveCommit()
	if err != nil {
		return nil, err
	}
	shown := []wireStatus{}
	all := c.repo.statuses[sha]
	for i := len(all) - 1; i >= 0; i-- {
		shown = append(shown, c.wireStatus(c.repo, sha, all[i]))
	}
	return paginate(c, shown), nil
}

// combinedStatus is the newest of each context; it names no creators.
func combinedStatus(c *call) (any, error) {
	sha, err := c.resolveCommit()
	if err != nil {
		return nil, err
	}
	shown := []wireStatus{}
	for _, s := range c.latestStatuses(c.repo, sha) {
		w := c.wireStatus(c.repo, sha, s)
		w.Creator = nil
		shown = append(shown, w)
	}
	return map[string]any{
		"state": c.combinedState(c.repo, sha), "sha": sha, "total_count": len(shown), "statuses": paginate(c, shown),
		"repository": c.wireRepo(c.repo, nil), "url": c.repoURL(c.repo) + "/commits/" + sha + "/status",
	}, nil
}

// listCheckRuns is always empty: no app that makes check runs lives here.
func listCheckRuns(c *call) (any, error) {
	if _, err := c.resolveCommit(); err != nil {
		return nil, err
	}
	return map[string]any{"total_count": 0, "check_runs": []any{}}, nil
}
