package gitea

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/forge"
)

// activity is one of a repository's feed.
type activity struct {
	OpType  string    `json:"op_type"`
	RefName string    `json:"ref_name"`
	Content string    `json:"content"`
	ActUser *sdk.User `json:"act_user"`
}

// Pushes reads the repository's feed. Accounts with private activity aren't in it.
func (d *Driver) Pushes(ctx context.Context, r forge.Repo, branch string, enough func(forge.Push) bool) error {
	op := "read who pushed to " + branch + " of " + r.String()
	ref := "refs/heads/" + branch
	read := 0
	done := false
	err := forEach(op, bounds, func(o sdk.ListOptions) (page []activity, resp *sdk.Response, err error) {
		resp, err = d.getPage(ctx, op, withPage(nil, o), &page, "repos", r.Owner, r.Name, "activities", "feeds")
		return page, resp, err
	}, func(a activity) bool {
		read++
		if a.RefName == ref && (a.OpType == "commit_repo" || a.OpType == "mirror_sync_push") {
			if p, ok := parsePush(a.Content); ok {
				p.By = toUser(a.ActUser)
				done = enough(p)
			}
		}
		return done || read >= forge.MaxPushes
	})
	if err == nil && !done && read >= forge.MaxPushes {
		return &forge.Error{Op: op, Kind: forge.ErrTooMany, Message: fmt.Sprintf("it isn't among the last %d activities", forge.MaxPushes)}
	}
	return err
}

// parsePush reads the content of a push in the feed. Where the branch is new, Gitea
// compares with some older commit, or with the default branch.
func parsePush(content string) (forge.Push, bool) {
	var c struct {
		HeadCommit *struct{ Sha1 string }
		CompareURL string
	}
	if json.Unmarshal([]byte(content), &c) != nil || c.HeadCommit == nil || !isCommit(c.HeadCommit.Sha1) {
		return forge.Push{}, false // a branch that was made is told twice, once without content
	}
	p := forge.Push{After: c.HeadCommit.Sha1}
	_, compared, _ := strings.Cut(c.CompareURL, "/compare/")
	if before, _, ok := strings.Cut(compared, "..."); ok && isCommit(before) {
		p.Before = before
	}
	return p, true
}

// isCommit says whether a text is a commit's whole name.
func isCommit(s string) bool {
	return len(s) >= 40 && strings.Trim(s, "0123456789abcdef") == "" && strings.Trim(s, "0") != ""
}
