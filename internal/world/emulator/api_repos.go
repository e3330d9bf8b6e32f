package emulator

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
)

func getPermission(c *call) (any, error) {
	a, err := c.findAccount(c.r.PathValue("login"))
	if err != nil {
		return nil, notFound()
	}
	p := c.repo.permissionOf(a)
	return map[string]any{"permission": p.String(), "role_name": p.String(), "user": c.wireUser(a)}, nil
}

// withCommit finds the commit of the path: an id, a branch or a tag.
func withCommit(answer func(*call, string) (any, error)) handler {
	return func(c *call) (any, error) {
		rev := c.r.PathValue("sha")
		sha, err := c.repo.git.resolveRevision(rev)
		if errors.Is(err, errNoObject) {
			return nil, newAPIError(http.StatusUnprocessableEntity, "No commit found for SHA: %s", rev)
		}
		if err != nil {
			return nil, err
		}
		return answer(c, sha)
	}
}

func getRef(c *call) (any, error) {
	name := "refs/" + c.r.PathValue("ref")
	sha := c.repo.refs[name]
	if sha == "" {
		return nil, notFound()
	}
	return map[string]any{
		"ref": name, "node_id": "REF_" + sha, "url": c.repoURL(c.repo) + "/git/" + name,
		"object": wireObject{Type: "commit", SHA: sha, URL: c.repoURL(c.repo) + "/git/commits/" + sha},
	}, nil
}

func deleteRef(c *call) (any, error) {
	name := "refs/" + c.r.PathValue("ref")
	sha := c.repo.refs[name]
	if sha == "" {
		return nil, newAPIError(http.StatusUnprocessableEntity, "Reference does not exist")
	}
	if name == "refs/heads/"+c.repo.branch {
		return nil, newAPIError(http.StatusUnprocessableEntity, "Cannot delete the default branch")
	}
	if err := c.repo.git.deleteRef(name, sha); err != nil {
		return nil, err
	}
	c.status = http.StatusNoContent
	return nil, c.noticeRefs(c.repo, c.user)
}

func listLabels(c *call) (any, error) {
	return paginateAs(c, sortedKeys(c.repo.labels), func(name string) wireLabel { return c.wireLabel(c.repo, name) }), nil
}

func createLabel(c *call) (any, error) {
	var in struct{ Name, Color string }
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	if strings.TrimSpace(in.Name) == "" {
		return nil, invalidField("Label", "name", "missing_field", "")
	}
	if c.repo.labels[in.Name] != nil {
		return nil, invalidField("Label", "name", "already_exists", "")
	}
	l := c.ensureLabel(c.repo, in.Name)
	l.Color = cmp.Or(in.Color, l.Color)
	c.status = http.StatusCreated
	return c.wireLabel(c.repo, in.Name), nil
}
