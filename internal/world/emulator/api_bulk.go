package emulator

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pullAlias is a pull request that a query reads, with the name of it in the answer.
var pullAlias = regexp.MustCompile(`(\w+): ?pullRequest\(number: ?([0-9]+)\)`)

// graphQLFields are the names that the emulator can answer with or reads in a query, of
// GitHub's schema. Like GitHub it refuses a query with any other.
var graphQLFields = strings.Fields(
	`query String Int owner name repository pullRequest number fields fragment on PullRequest url title body isDraft
	isCrossRepository state createdAt updatedAt closedAt mergedAt mergeStateStatus headRefName headRefOid baseRefName author who mergedBy mergeCommit oid mergeQueueEntry autoMergeRequest enabledAt
	labels first nodes comments totalCount reviews last databaseId fullDatabaseId submittedAt authorCanPushToRepository commit Actor __typename login User Bot Mannequin`)

var graphQLWord = regexp.MustCompile(`[A-Za-z_]\w*`)

// queryPulls answers a query for pull requests by their numbers with what the REST API tells of
// each, its reviews and its reviewers' permissions in several calls. A missing one is null, with an
// error that says where.
func queryPulls(c *call, in graphqlRequest) (any, error) {
	r, query := c.repositoryOf(in.Variables.Owner, in.Variables.Name), in.Query
	if r == nil {
		return map[string]any{"data": map[string]any{"repository": nil},
			"errors": []map[string]any{{"type": "NOT_FOUND", "path": []any{"repository"}}}}, nil
	}
	aliases := pullAlias.FindAllStringSubmatch(query, -1)
	for _, word := range graphQLWord.FindAllString(query, -1) {
		isAlias := slices.ContainsFunc(aliases, func(a []string) bool { return a[1] == word })
		if !isAlias && !slices.Contains(graphQLFields, word) {
			return map[string]any{"errors": []map[string]any{{"message": "Field '" + word + "' doesn't exist on type 'PullRequest'"}}}, nil
		}
	}
	if c.token != nil && c.token.permissions["pull_requests"] == "" {
		return map[string]any{"data": map[string]any{"repository": nil}, "errors": []map[string]any{{"type": "FORBIDDEN",
			"path": []any{"repository"}, "message": "Resource not accessible by integration"}}}, nil
	}
	read := graphQLWord.FindAllString(pullAlias.ReplaceAllString(query, ""), -1)
	found, errs := map[string]any{}, []map[string]any{}
	for _, a := range aliases {
		n, _ := strconv.Atoi(a[2]) // digits; one that is too large is no number of a pull request
		p := r.pulls[n]
		if p == nil {
			found[a[1]] = nil
			errs = append(errs, map[string]any{"type": "NOT_FOUND", "path": []any{"repository", a[1]},
				"message": "Could not resolve to a PullRequest with the number of " + a[2] + "."})
			continue
		}
		shown, err := c.graphQLPull(p)
		if err != nil {
			return map[string]any{"errors": []map[string]any{{"message": "Something went wrong while executing your query."}}}, nil
		}
		maps.DeleteFunc(shown, func(field string, _ any) bool { return !slices.Contains(read, field) })
		found[a[1]] = shown
	}
	out := map[string]any{"data": map[string]any{"repository": found}}
	if len(errs) > 0 {
		out["errors"] = errs
	}
	return out, nil
}

// graphQLPull is a pull request as GraphQL shows it. Like the REST API it begins to compute
// whether it can be merged.
func (c *call) graphQLPull(p *pull) (map[string]any, error) {
	_, mergeState, err := c.computeMergeability(p)
	if err != nil {
		return nil, err
	}
	state, mergeCommit := "CLOSED", any(nil)
	switch {
	case p.open:
		state = "OPEN"
	case p.merged:
		state, mergeCommit = "MERGED", map[string]any{"oid": p.mergeSHA}
	}
	labels, reviews := []map[string]any{}, []map[string]any{}
	for _, name := range p.labels {
		labels = append(labels, map[string]any{"name": name})
	}
	for _, v := range p.reviews {
		reviews = append(reviews, map[string]any{"fullDatabaseId": strconv.FormatInt(v.id, 10), "state": v.state, "submittedAt": v.at,
			"commit": map[string]any{"oid": v.commit},
			"author": graphQLActor(v.user), "authorCanPushToRepository": p.repo.permissionOf(v.user) >= Write})
	}
	total := len(reviews)
	return map[string]any{
		"number": p.number, "url": c.pullPage(p), "title": p.title, "body": p.body, "isDraft": p.draft,
		"isCrossRepository": p.headRepo != p.repo,
		"state":             state, "createdAt": p.created, "updatedAt": p.updated, "closedAt": timeOrNull(p.closed),
		"mergedAt":         timeOrNull(p.mergedAt),
		"mergeStateStatus": strings.ToUpper(mergeState), "headRefName": p.branch, "headRefOid": p.head, "baseRefName": p.base,
		"mergeQueueEntry": p.graphQLQueueEntry(), "autoMergeRequest": p.graphQLAutoMerge(), "author": graphQLActor(p.author),
		"mergedBy": graphQLActor(p.mergedBy), "mergeCommit": mergeCommit,
		"labels": map[string]any{"nodes": labels}, "comments": map[string]any{"totalCount": len(p.comments)},
		"reviews": map[string]any{"totalCount": total, "nodes": reviews[max(0, total-maxPageSize):]},
	}, nil
}

// graphQLActor is an account as GraphQL shows it: the login of an App's bot without the [bot]
// that the REST API has there.
func graphQLActor(a *account) any {
	if a == nil {
		return nil
	}
	return map[string]any{"__typename": a.kind, "login": strings.TrimSuffix(a.login, "[bot]"), "databaseId": a.id}
}
