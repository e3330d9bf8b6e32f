package emulator

import (
	"errors"
	"strconv"
	"strings"
)

// graphqlRequest is a document of GraphQL with the variables that the known ones have.
type graphqlRequest struct {
	Query     string `json:"query"`
	Variables struct {
		Owner, Name, OID string
		Number           int
		ID, Head         string
	} `json:"variables"`
}

// answerGraphQL answers the few documents that the REST API has no call for, and tells them apart
// by their questions. They ask who made a commit with whom, who edited a comment, and for the merge
// queue and auto-merge. It also answers the one that reads pull requests with their reviews, for
// which REST has several. GraphQL answers 200 to what it can't find or do.
func answerGraphQL(c *call) (any, error) {
	var in graphqlRequest
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	if pullAlias.MatchString(in.Query) {
		return queryPulls(c, in)
	}
	for _, known := range []struct {
		words  string
		answer func(*call, graphqlRequest) (any, error)
	}{{"authors(", queryAuthors}, {"mergeQueueEntry", queryQueue}, {"enqueuePullRequest(", enqueueByGraphQL}, {"dequeuePullRequest(",
		dequeueByGraphQL}, {"disablePullRequestAutoMerge(", disableAutoMergeByGraphQL}, {"lastEditedAt", queryEditor}} {
		if strings.Contains(in.Query, known.words) {
			return known.answer(c, in)
		}
	}
	return graphqlErrors("", "the emulator knows no such document"), nil
}

func graphqlErrors(kind, message string) map[string]any {
	return map[string]any{"data": nil, "errors": []map[string]any{{"type": kind, "message": message}}}
}

// repositoryOf finds the repository of a document's variables; nil where it can't be seen.
func (c *call) repositoryOf(owner, name string) *repository {
	r := c.repos[strings.ToLower(owner+"/"+name)]
	if r == nil || r.permissionOf(c.user) < Read || c.token != nil && !c.token.covers(r) {
		return nil
	}
	return r
}

// queryQueue says how a pull request stands to its base's merge queue.
func queryQueue(c *call, in graphqlRequest) (any, error) {
	r := c.repositoryOf(in.Variables.Owner, in.Variables.Name)
	if r == nil || r.pulls[in.Variables.Number] == nil {
		return graphqlErrors("NOT_FOUND", "Could not resolve to a PullRequest with the number of "+strconv.Itoa(in.Variables.Number)+"."),
			nil
	}
	p := r.pulls[in.Variables.Number]
	state := "OPEN"
	if p.merged {
		state = "MERGED"
	} else if !p.open {
		state = "CLOSED"
	}
	w := map[string]any{"id": nodeID("PR", p.id), "headRefOid": p.head, "state": state, "mergeQueueEntry": p.graphQLQueueEntry(),
		"autoMergeRequest": p.graphQLAutoMerge()}
	return map[string]any{"data": map[string]any{"repository": map[string]any{"pullRequest": w}}}, nil
}

// graphQLQueueEntry is a pull request's place in the merge queue; nil for none.
func (p *pull) graphQLQueueEntry() any {
	e := p.findEntry()
	switch {
	case e == nil:
		return nil
	case e.group != "":
		return map[string]any{"state": "AWAITING_CHECKS"}
	}
	return map[string]any{"state": "QUEUED"}
}

// pullByNode finds a pull request by its global ID; nil where it can't be seen.
func (c *call) pullByNode(id string) *pull {
	for _, name := range sortedKeys(c.repos) {
		r := c.repositoryOf(c.repos[name].owner.login, c.repos[name].name)
		if r == nil {
			continue
		}
		for _, p := range r.pulls {
			if nodeID("PR", p.id) == id {
				return p
			}
		}
	}
	return nil
}

// queryEditor says who edited a comment last, and when; null: nobody did.
func queryEditor(c *call, in graphqlRequest) (any, error) {
	for _, name := range sortedKeys(c.repos) {
		r := c.repositoryOf(c.repos[name].owner.login, c.repos[name].name)
		if r == nil {
			continue
		}
		for _, p := range r.pulls {
			for _, o := range p.comments {
				if nodeID("IC", o.id) == in.Variables.ID {
					return map[string]any{"data": map[string]any{"node": o.graphQLEdit()}}, nil
				}
			}
		}
	}
	return graphqlErrors("NOT_FOUND", "Could not resolve to a node with the global id of '"+in.Variables.ID+"'."), nil
}

func (c *comment) graphQLEdit() map[string]any {
	if c.editor == nil {
		return map[string]any{"lastEditedAt": nil, "editor": nil}
	}
	return map[string]any{"lastEditedAt": c.editedAt, "editor": map[string]any{"login": strings.TrimSuffix(c.editor.login, "[bot]")}}
}

// changeQueue does something to a pull request's place in its queue.
func changeQueue(c *call, in graphqlRequest, name string, change func(p *pull) error) (any, error) {
	p := c.pullByNode(in.Variables.ID)
	if p == nil {
		return graphqlErrors("NOT_FOUND", "Could not resolve to a node with the global id of '"+in.Variables.ID+"'."), nil
	}
	if p.repo.permissionOf(c.user) < Write {
		return graphqlErrors("FORBIDDEN", c.user.login+" does not have the correct permissions to execute `"+name+"`"), nil
	}
	var refusal *apiError
	switch err := change(p); {
	case errors.As(err, &refusal):
		return graphqlErrors("UNPROCESSABLE", refusal.Message), nil
	case err != nil:
		return nil, err
	}
	return map[string]any{"data": map[string]any{name: map[string]any{"clientMutationId": nil}}}, nil
}

func enqueueByGraphQL(c *call, in graphqlRequest) (any, error) {
	return changeQueue(c, in, "enqueuePullRequest", func(p *pull) error { return c.enqueue(p, c.user, in.Variables.Head) })
}

func dequeueByGraphQL(c *call, in graphqlRequest) (any, error) {
	return changeQueue(c, in, "dequeuePullRequest", func(p *pull) error {
		c.dequeue(p, c.user, "MANUAL")
		return nil
	})
}
