package emulator

import (
	"net/http"
	"time"
)

// autoMerge is what a person has GitHub do once a pull request meets all that the repository
// demands ("Automatically merging a pull request").
type autoMerge struct {
	by     *account
	method string
	at     time.Time
}

// EnableAutoMerge has a pull request merged by itself, as somebody by hand. GitHub refuses that
// where it could be merged at once; GitLab merges it then.
func (f *Forge) EnableAutoMerge(repo string, number int, login string) error {
	return f.withPull(repo, number, login, func(p *pull, by *account) error {
		if f.face == GitLab {
			return f.acceptPull(p, by, acceptRequest{squash: p.gitlab.squash, removeBranch: p.gitlab.removeBranch,
				whenPipelineSucceeds: true})
		}
		refused := func(words string) error {
			return newAPIError(http.StatusUnprocessableEntity, "%s", words)
		}
		if !p.open || p.repo.permissionOf(by) < Write {
			return refused("Pull request Can't enable auto-merge for this pull request")
		}
		if err := f.testMerge(p); err != nil {
			return err
		}
		why, err := f.findMergeBlocker(p)
		if err != nil {
			return err
		}
		if why == "" && p.clean && !p.draft {
			return refused("Pull request Pull request is in clean status")
		}
		p.autoMerge = &autoMerge{by: by, method: p.repo.methods[0], at: f.now()}
		f.markUpdated(p)
		f.emitPull(p, by, "auto_merge_enabled", nil)
		return nil
	})
}

// disableAutoMerge takes that back.
func (f *Forge) disableAutoMerge(p *pull, by *account) error {
	if p.autoMerge == nil {
		return newAPIError(http.StatusUnprocessableEntity, "Can't disable auto-merge for this pull request")
	}
	p.autoMerge = nil
	f.markUpdated(p)
	f.emitPull(p, by, "auto_merge_disabled", map[string]any{"reason": "manual"})
	return nil
}

// RunAutoMerges merges what is set to merge by itself and meets all that is demanded. GitHub does
// it in the background; here it is done when this is called.
func (f *Forge) RunAutoMerges(repo, login string) error {
	return f.withRepositoryRefs(repo, login, func(r *repository, _ *account) error {
		for _, n := range sortedKeys(r.pulls) {
			p := r.pulls[n]
			if !p.open || p.autoMerge == nil || p.draft {
				continue
			}
			why, err := f.findMergeBlocker(p)
			if err != nil {
				return err
			}
			if why != "" {
				continue
			}
			if _, err := f.mergePull(p, p.autoMerge.by, mergeRequest{Method: p.autoMerge.method}); err != nil {
				return err
			}
		}
		return nil
	})
}

// wireAutoMerge shows who has a pull request merged by itself, and how.
type wireAutoMerge struct {
	EnabledBy     *wireUser `json:"enabled_by"`
	MergeMethod   string    `json:"merge_method"`
	CommitTitle   string    `json:"commit_title"`
	CommitMessage string    `json:"commit_message"`
}

func (f *Forge) wireAutoMerge(p *pull) *wireAutoMerge {
	if p.autoMerge == nil {
		return nil
	}
	return &wireAutoMerge{EnabledBy: f.wireUser(p.autoMerge.by), MergeMethod: p.autoMerge.method, CommitTitle: p.title}
}

// graphQLAutoMerge is the same as GraphQL shows it; nil where nobody has.
func (p *pull) graphQLAutoMerge() any {
	if p.autoMerge == nil {
		return nil
	}
	return map[string]any{"enabledAt": p.autoMerge.at}
}

func disableAutoMergeByGraphQL(c *call, in graphqlRequest) (any, error) {
	return changeQueue(c, in, "disablePullRequestAutoMerge", func(p *pull) error { return c.disableAutoMerge(p, c.user) })
}
