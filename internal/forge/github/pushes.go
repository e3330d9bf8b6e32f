package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
)

// Pushes reads the repository's activity of one branch, which go-github doesn't know.
func (d *Driver) Pushes(ctx context.Context, r forge.Repo, branch string, enough func(forge.Push) bool) error {
	ctx, owner, name := inRepo(ctx, r)
	op := "read who pushed to " + branch + " of " + r.String()
	q := url.Values{"ref": {"refs/heads/" + branch}, "per_page": {fmt.Sprint(perPage)}}
	for range forge.MaxPushes / perPage {
		req, err := d.api.NewRequest(http.MethodGet, "repos/"+owner+"/"+name+"/activity?"+q.Encode(), nil)
		if err != nil {
			return wrapError(op, err)
		}
		var list []struct {
			Before, After, Ref string
			Type               string `json:"activity_type"`
			Actor              *gh.User
		}
		resp, err := d.api.Do(ctx, req, &list)
		if err != nil {
			return wrapError(op, err)
		}
		for _, a := range list {
			p := forge.Push{Before: commitOrNone(a.Before), After: commitOrNone(a.After), By: toUser(a.Actor),
				Merge: a.Type == "pr_merge" || a.Type == "merge_queue_merge"}
			if a.Ref == "refs/heads/"+branch && enough(p) {
				return nil
			}
		}
		if resp.After == "" {
			return nil
		}
		q.Set("after", resp.After)
	}
	return &forge.Error{Op: op, Kind: forge.ErrTooMany, Message: fmt.Sprintf("it isn't among the last %d pushes", forge.MaxPushes)}
}

func commitOrNone(sha string) string {
	if sha == zeroCommit {
		return ""
	}
	return sha
}
