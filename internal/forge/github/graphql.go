package github

import (
	"context"
	"net/http"
	"strings"
)

// queryGraphQL makes a query of GitHub's GraphQL API, which is beside the REST API: at
// HOST/api/graphql on a GitHub Enterprise Server. What GraphQL itself refuses is in the answer,
// with 200, and no error here.
func (d *Driver) queryGraphQL(ctx context.Context, op, query string, variables map[string]string, answer any) error {
	path := "graphql"
	if strings.HasSuffix(d.base.Path, "/api/v3/") {
		path = "../graphql"
	}
	req, err := d.api.NewRequest(http.MethodPost, path, map[string]any{"query": query, "variables": variables})
	if err != nil {
		return wrapError(op, nil, err)
	}
	if resp, err := d.api.Do(ctx, req, answer); err != nil {
		return wrapError(op, resp, err)
	}
	return nil
}

// graphQLError is what GraphQL says is wrong with a query, or with a part of it.
type graphQLError struct {
	Type    string // NOT_FOUND, FORBIDDEN, RATE_LIMITED; empty: the query itself is refused
	Message string
	Path    []any // of the answer
}
