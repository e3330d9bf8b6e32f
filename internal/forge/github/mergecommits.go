package github

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
)

// addMergeCommits fills in the commits as which pull requests landed, where the REST API doesn't
// say: its version 2026-03-10 no longer has merge_commit_sha. GraphQL still has it as mergeCommit.
// It asks nothing about pull requests whose commit is known. A commit that GraphQL doesn't know or
// refuses stays empty.
func (d *Driver) addMergeCommits(ctx context.Context, r forge.Repo, pulls []forge.PullRequest) error {
	var missing []*forge.PullRequest
	for i := range pulls {
		if p := &pulls[i]; p.State == forge.Merged && p.MergeCommit == "" {
			missing = append(missing, p)
		}
	}
	for some := range slices.Chunk(missing, perPage) {
		var data struct {
			Repository map[string]*struct{ MergeCommit *bulkCommit }
		}
		op := fmt.Sprintf("read as which commits %d pull requests of %s landed", len(some), r)
		err := d.callGraphQL(ctx, op, r, mergeCommitsQuery(some), map[string]any{"owner": r.Owner, "name": r.Name}, &data)
		switch {
		case forge.IsRetryable(err) || ctx.Err() != nil:
			return err
		case err != nil:
			return nil // all the rest that is known of them is known
		}
		for _, p := range some {
			if shown := data.Repository[pullName(p.Number)]; shown != nil && shown.MergeCommit != nil {
				p.MergeCommit = shown.MergeCommit.OID
			}
		}
	}
	return nil
}

// pullName is what a pull request is called in a query of several.
func pullName(n int) string { return "p" + strconv.Itoa(n) }

func mergeCommitsQuery(pulls []*forge.PullRequest) string {
	var q strings.Builder
	q.WriteString(`query($owner:String!,$name:String!){repository(owner:$owner,name:$name){`)
	for _, p := range pulls {
		fmt.Fprintf(&q, "%s:pullRequest(number:%d){mergeCommit{oid}} ", pullName(p.Number), p.Number)
	}
	q.WriteString("}}")
	return q.String()
}
