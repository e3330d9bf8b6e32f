package emulator

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// gitDataRoutes make Git's objects one by one ("Git database"). None moves a reference.
var gitDataRoutes = []route{
	{pattern: "POST " + repoPath + "/git/blobs", permission: Write, handle: createBlob},
	{pattern: "POST " + repoPath + "/git/trees", permission: Write, handle: createTree},
	{pattern: "POST " + repoPath + "/git/commits", permission: Write, handle: createCommit},
}

func createBlob(c *call) (any, error) {
	var in struct {
		Content  string `json:"content"`
		Encoding string `json:"encoding"`
	}
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	data := []byte(in.Content)
	switch in.Encoding {
	case "", "utf-8":
	case "base64":
		var err error
		if data, err = base64.StdEncoding.DecodeString(in.Content); err != nil {
			return nil, newAPIError(http.StatusUnprocessableEntity, "content is not valid Base64")
		}
	default:
		return nil, newAPIError(http.StatusUnprocessableEntity, "Invalid encoding: %s", in.Encoding)
	}
	sha, err := c.repo.git.hashObject("blob", data)
	if err != nil {
		return nil, err
	}
	c.status = http.StatusCreated
	return map[string]any{"sha": sha, "url": c.repoURL(c.repo) + "/git/blobs/" + sha}, nil
}

// treeChange is an entry of a tree that is to be made: with the id of what is there, with its
// content, or with neither, which deletes it.
type treeChange struct {
	Path    string  `json:"path"`
	Mode    string  `json:"mode"`
	Type    string  `json:"type"`
	SHA     *string `json:"sha"`
	Content *string `json:"content"`
}

// treeModes are the modes that GitHub takes.
var treeModes = []string{"100644", "100755", "040000", "160000", "120000"}

func createTree(c *call) (any, error) {
	var in struct {
		Base    string       `json:"base_tree"`
		Entries []treeChange `json:"tree"`
	}
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	if len(in.Entries) == 0 {
		return nil, newAPIError(http.StatusUnprocessableEntity, "Invalid tree info")
	}
	for i := range in.Entries {
		e := &in.Entries[i]
		isPath := e.Path != "" && !strings.HasPrefix(e.Path, "/")
		isTwo := e.SHA != nil && e.Content != nil
		if !isPath || isTwo || !slices.Contains(treeModes, e.Mode) {
			return nil, newAPIError(http.StatusUnprocessableEntity,
				"Must supply a valid tree.path, a valid tree.mode, and one of tree.sha and tree.content")
		}
		if e.Content == nil {
			continue
		}
		sha, err := c.repo.git.hashObject("blob", []byte(*e.Content))
		if err != nil {
			return nil, err
		}
		e.SHA = &sha
	}
	sha, err := c.repo.git.editTree(in.Base, in.Entries)
	if errors.Is(err, errNoObject) {
		// Also of what is to be deleted and isn't there.
		return nil, newAPIError(http.StatusUnprocessableEntity, "GitRPC::BadObjectState")
	}
	if err != nil {
		return nil, err
	}
	c.status = http.StatusCreated
	return map[string]any{"sha": sha, "url": c.repoURL(c.repo) + "/git/trees/" + sha, "tree": []any{}, "truncated": false}, nil
}

// createCommit makes a commit on no branch. An App's commit for which the call names no author
// GitHub commits and signs itself ("Signature verification for bots").
func createCommit(c *call) (any, error) {
	var in struct {
		Message           string     `json:"message"`
		Tree              string     `json:"tree"`
		Parents           []string   `json:"parents"`
		Author, Committer *wireIdent `json:",omitempty"`
		Signature         string     `json:"signature"`
	}
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	switch {
	case in.Message == "":
		return nil, newAPIError(http.StatusUnprocessableEntity, "Message can't be blank")
	case in.Signature != "":
		return nil, newAPIError(http.StatusUnprocessableEntity, "the emulator takes no signature")
	case !c.repo.git.has(in.Tree, "tree"):
		return nil, newAPIError(http.StatusUnprocessableEntity, "Tree SHA does not exist")
	}
	for _, p := range in.Parents {
		if !c.repo.git.has(p, "commit") {
			return nil, newAPIError(http.StatusUnprocessableEntity, "Parent SHA does not exist or is not a commit object")
		}
	}
	own := c.commitIdent(c.user)
	author, committer := own, own
	signs := c.token != nil && in.Author == nil && in.Committer == nil
	if in.Author != nil {
		author = gitIdent{Name: in.Author.Name, Email: in.Author.Email, When: own.When}
		committer = author
	}
	if in.Committer != nil {
		committer = gitIdent{Name: in.Committer.Name, Email: in.Committer.Email, When: own.When}
	}
	if signs {
		author.Email = fmt.Sprintf("%d+%s@%s", c.user.id, c.user.login, c.noReplyHost())
		committer = c.webFlow()
	}
	sha, err := c.repo.git.commitTree(in.Tree, in.Parents, author, committer, in.Message)
	if err == nil && signs {
		sha, err = c.signByForge(c.repo, sha)
	}
	if err != nil {
		return nil, err
	}
	made, err := c.repo.git.readCommit(sha)
	if err != nil {
		return nil, err
	}
	verified, err := c.verifyCommit(c.repo, sha)
	if err != nil {
		return nil, err
	}
	w := c.wireCommit(c.repo, made)
	c.status = http.StatusCreated
	return map[string]any{
		"sha": sha, "node_id": w.NodeID, "url": c.repoURL(c.repo) + "/git/commits/" + sha, "html_url": w.HTMLURL, "author": w.Commit.Author,
		"committer": w.Commit.Committer,
		"tree":      w.Commit.Tree, "message": w.Commit.Message, "parents": w.Parents, "verification": verified,
	}, nil
}

// hashObject stores an object and gives its id.
func (b *bareRepo) hashObject(kind string, data []byte) (string, error) {
	if data == nil {
		data = []byte{} // no input at all is another thing
	}
	out, err := b.runIn(b.dir, data, nil, "hash-object", "-t", kind, "-w", "--stdin")
	return strings.TrimSpace(out), err
}

// has says whether an id is that of an object of a kind.
func (b *bareRepo) has(sha, kind string) bool {
	if !objectID.MatchString(sha) {
		return false
	}
	out, err := b.runGit("cat-file", "-t", sha)
	return err == nil && strings.TrimSpace(out) == kind
}

// editTree makes a tree of another (empty: of none) and changes. errNoObject: one of them, or what
// is to be deleted, isn't there.
func (b *bareRepo) editTree(base string, changes []treeChange) (string, error) {
	index, done, err := b.newIndex()
	if err != nil {
		return "", err
	}
	defer done()
	env := []string{"GIT_INDEX_FILE=" + index}
	if base != "" {
		if !b.has(base, "tree") && !b.has(base, "commit") {
			return "", errNoObject
		}
		if _, err := b.runIn(b.dir, nil, env, "read-tree", base); err != nil {
			return "", err
		}
	}
	listed, err := b.runIn(b.dir, nil, env, "ls-files", "-z")
	if err != nil {
		return "", err
	}
	var info bytes.Buffer
	for _, e := range changes {
		switch {
		case e.SHA != nil && !b.has(*e.SHA, "blob"):
			return "", errNoObject
		case e.SHA != nil:
			info.WriteString(e.Mode + " " + *e.SHA + "\t" + e.Path + "\x00")
		case !strings.Contains("\x00"+listed, "\x00"+e.Path+"\x00"):
			return "", errNoObject
		default:
			info.WriteString("0 " + zeroCommit + "\t" + e.Path + "\x00")
		}
	}
	if _, err := b.runIn(b.dir, info.Bytes(), env, "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	out, err := b.runIn(b.dir, nil, env, "write-tree")
	return strings.TrimSpace(out), err
}
