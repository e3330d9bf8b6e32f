package github

import (
	"encoding/json"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/world/emulator/githubshape"
)

// TestGraphQLDocuments holds every document that the driver has for GitHub against its schema.
func TestGraphQLDocuments(t *testing.T) {
	t.Parallel()
	schema, err := githubshape.DescribeGraphQL()
	if err != nil {
		t.Fatal(err)
	}
	repository := map[string]any{"owner": "acme", "name": "fleet"}
	with := func(name string, value any) map[string]any {
		return map[string]any{"owner": "acme", "name": "fleet", name: value}
	}
	for name, c := range map[string]struct {
		document  string
		variables map[string]any
	}{
		"authors":                   {authorsQuery, with("oid", head1)},
		"pull requests":             {bulkQuery([]int{1, 23}, false), repository},
		"pull requests in a queue":  {bulkQuery([]int{1}, true), repository},
		"merge commits":             {mergeCommitsQuery([]*forge.PullRequest{{Number: 1}, {Number: 23}}), repository},
		"a place in the queue":      {queueQuery, with("number", 1)},
		"join the queue":            {enqueueMutation, map[string]any{"id": "x", "head": head1}},
		"leave it":                  {dequeueMutation, map[string]any{"id": "x"}},
		"take it off merging later": {disableMutation, map[string]any{"id": "x"}},
	} {
		body, err := json.Marshal(map[string]any{"query": c.document, "variables": c.variables})
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range schema.Check(body, nil) {
			t.Errorf("%s: %s", name, wrong)
		}
	}
}
