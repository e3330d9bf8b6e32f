package github

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// graphQLLimitWait is how long to wait where GraphQL's own limit is used up and its answer doesn't
// say until when: "wait for at least one minute" (GitHub, "Rate limits for the REST API").
const graphQLLimitWait = time.Minute

// queryGraphQL makes a query of GitHub's GraphQL API, which is beside the REST API: at
// HOST/api/graphql on a GitHub Enterprise Server. What GraphQL itself refuses is in the answer,
// with 200, and no error here.
func (d *Driver) queryGraphQL(ctx context.Context, op string, r forge.Repo, query string, variables map[string]any, answer any) error {
	ctx, _, _ = inRepo(ctx, r)
	path := "graphql"
	if strings.HasSuffix(d.base.Path, "/api/v3/") {
		path = "../graphql"
	}
	req, err := d.api.NewRequest(http.MethodPost, path, map[string]any{"query": query, "variables": variables})
	if err != nil {
		return wrapError(op, err)
	}
	_, err = d.api.Do(ctx, req, answer)
	return wrapError(op, err)
}

// graphQLError is what GraphQL says is wrong with a query, or with a part of it.
type graphQLError struct {
	Type    string // NOT_FOUND, FORBIDDEN, RATE_LIMITED; empty: the query itself is refused
	Message string
	Path    []any // of the answer
}

// callGraphQL makes a call that succeeds or fails as a whole: what GraphQL says in a successful
// answer is wrong is the error. data is filled in from the answer's; nil where nobody reads it.
func (d *Driver) callGraphQL(ctx context.Context, op string, r forge.Repo, document string, variables map[string]any, data any) error {
	answer := struct {
		Data   any `json:"data"`
		Errors []graphQLError
	}{Data: data}
	if err := d.queryGraphQL(ctx, op, r, document, variables, &answer); err != nil {
		return err
	}
	if len(answer.Errors) == 0 {
		return nil
	}
	first := answer.Errors[0]
	e := &forge.Error{Op: op, Kind: forge.ErrInvalid, Message: rest.ClipMessage(first.Message)}
	switch {
	case first.Type == "NOT_FOUND":
		e.Kind = forge.ErrNotFound
	case first.Type == "FORBIDDEN", first.Type == "INSUFFICIENT_SCOPES":
		e.Kind, e.Hint = forge.ErrForbidden, "let Liftlock's account, or its App, write contents and pull requests"
	case first.Type == "RATE_LIMITED":
		e.Kind, e.RetryAfter = forge.ErrRateLimited, d.now().Add(graphQLLimitWait)
	case strings.Contains(first.Message, "doesn't exist on type"):
		e.Kind = forge.ErrUnsupported // a server that has no merge queue
	}
	return e
}
