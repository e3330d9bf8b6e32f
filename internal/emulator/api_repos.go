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

// resolveCommit finds the commit of the path: an id, a branch or a tag.
func (c *call) resolveCommit() (string, error) {
	rev := c.r.PathValue("sha")
	sha, err := c.repo.git.resolveRevision(rev)
	if errors.Is(err, errNoObject) {
		return "", newAPIError(http.StatusUnprocessableEntity, "No commit found for SHA: %s", rev)
	}
	return sha, err
}

func getCommit(c *call) (any, error) {
	sha, err := c.resolveCommit()
	if err != nil {
		return nil, err
	}
	found, err := c.repo.git.readCommit(sha)
	if err != nil {
		return nil, err
	}
	return c.wireCommit(c.repo, found), nil
}

// commitPulls are the pull requests that brought a commit, or would.
func commitPulls(c *call) (any, error) {
	sha, err := c.resolveCommit()
	if err != nil {
		return nil, err
	}
	found := []*wirePull{}
	for _, n := range sortedNumbers(c.repo.pulls) {
		p := c.repo.pulls[n]
		brought := p.merged && p.mergeSHA == sha
		for _, o := range p.commits {
			brought = brought || o == sha
		}
		if brought {
			found = append(found, c.wirePull(p))
		}
	}
	return paginate(c, found), nil
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
	all := []wireLabel{}
	for _, name := range sortedKeys(c.repo.labels) {
		all = append(all, c.wireLabel(c.repo, name))
	}
	return paginate(c, all), nil
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
