package emulator

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

func pullLabels(c *call, p *pull) (any, error) {
	return paginateAs(c, p.labels, func(name string) wireLabel { return c.wireLabel(c.repo, name) }), nil
}

// addLabels takes a list of names, bare or as {"labels": […]}.
func addLabels(c *call, p *pull) (any, error) {
	var names []string
	if json.Unmarshal(c.body, &names) != nil {
		var in struct {
			Labels []string `json:"labels"`
		}
		if err := c.decodeBody(&in); err != nil {
			return nil, err
		}
		names = in.Labels
	}
	if err := c.Forge.addLabels(p, c.user, names); err != nil {
		return nil, err
	}
	return pullLabels(c, p)
}

func removeLabel(c *call, p *pull) (any, error) {
	if err := c.Forge.removeLabel(p, c.user, c.r.PathValue("label")); err != nil {
		return nil, err
	}
	return pullLabels(c, p)
}

func listComments(c *call, p *pull) (any, error) {
	return c.pageOfComments(p.comments)
}

func allComments(c *call) (any, error) {
	var all []*comment
	for _, n := range sortedKeys(c.repo.pulls) {
		all = append(all, c.repo.pulls[n].comments...)
	}
	byUpdate := c.r.URL.Query().Get("sort") == "updated"
	slices.SortStableFunc(all, func(a, b *comment) int {
		if byUpdate {
			return a.updated.Compare(b.updated)
		}
		return a.created.Compare(b.created)
	})
	if c.r.URL.Query().Get("direction") == "desc" {
		slices.Reverse(all)
	}
	return c.pageOfComments(all)
}

// pageOfComments lists those updated at or after the query's since.
func (c *call) pageOfComments(all []*comment) (any, error) {
	var since time.Time
	if s := c.r.URL.Query().Get("since"); s != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, s); err != nil {
			return nil, newAPIError(http.StatusUnprocessableEntity, "Invalid request. since is not a valid date-time.")
		}
	}
	all = slices.DeleteFunc(slices.Clone(all), func(o *comment) bool { return o.updated.Before(since) })
	return paginateAs(c, all, c.wireComment), nil
}

func createComment(c *call, p *pull) (any, error) {
	body, err := c.bodyField()
	if err != nil {
		return nil, err
	}
	o, err := c.addComment(p, c.user, body)
	if err != nil {
		return nil, err
	}
	c.status = http.StatusCreated
	return c.wireComment(o), nil
}

func (c *call) bodyField() (string, error) {
	var in struct {
		Body string `json:"body"`
	}
	err := c.decodeBody(&in)
	return in.Body, err
}

// withComment finds the comment of the path.
func withComment(answer func(*call, *comment) (any, error)) handler {
	return func(c *call) (any, error) {
		id, err := c.pathNumber("id")
		if err != nil {
			return nil, err
		}
		o := c.repo.findComment(id)
		if o == nil {
			return nil, notFound()
		}
		return answer(c, o)
	}
}

func getComment(c *call, o *comment) (any, error) { return c.wireComment(o), nil }

func patchComment(c *call, o *comment) (any, error) {
	if o.user != c.user && c.repo.permissionOf(c.user) < Write {
		return nil, notPermitted(c)
	}
	body, err := c.bodyField()
	if err != nil {
		return nil, err
	}
	if err := c.editComment(o, c.user, body); err != nil {
		return nil, err
	}
	return c.wireComment(o), nil
}

func removeComment(c *call, o *comment) (any, error) {
	if o.user != c.user && c.repo.permissionOf(c.user) < Write {
		return nil, notPermitted(c)
	}
	c.deleteComment(o, c.user)
	c.status = http.StatusNoContent
	return nil, nil
}

func listReactions(c *call, o *comment) (any, error) {
	content := c.r.URL.Query().Get("content")
	chosen := slices.DeleteFunc(slices.Clone(o.reactions), func(r *reaction) bool {
		return content != "" &&
			!strings.EqualFold(r.content, content)
	})
	return paginateAs(c, chosen, c.wireReaction), nil
}

func createReaction(c *call, o *comment) (any, error) {
	var in struct {
		Content string `json:"content"`
	}
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	r, created, err := c.addReaction(o, c.user, in.Content)
	if err != nil {
		return nil, err
	}
	if created {
		c.status = http.StatusCreated
	}
	return c.wireReaction(r), nil
}

func deleteReaction(c *call, o *comment) (any, error) {
	id, err := c.pathNumber("reaction")
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(o.reactions, func(r *reaction) bool { return r.id == id })
	if i < 0 {
		return nil, notFound()
	}
	if o.reactions[i].user != c.user {
		return nil, notPermitted(c)
	}
	o.reactions = slices.Delete(o.reactions, i, i+1)
	c.status = http.StatusNoContent
	return nil, nil
}
