package memoryforge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
)

// reactions are those that GitHub knows.
var reactions = []string{"+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"}

type comment struct {
	info      forge.Comment
	pull      *pull
	by        *account
	reactions []reaction
	editor    *account // who edited it last; nil: nobody
}

type reaction struct {
	by      *account
	content string
}

func (c *call) checkComment(body string) error {
	switch {
	case strings.TrimSpace(body) == "":
		return c.failure(forge.ErrInvalid, "Validation Failed: Body cannot be blank")
	case len(body) > maxBody:
		return c.failure(forge.ErrInvalid, "Validation Failed: Body is too long (maximum is 65536 characters)")
	}
	return nil
}

func (c *call) addComment(p *pull, body string) (*comment, error) {
	if err := c.checkComment(body); err != nil {
		return nil, err
	}
	id, at := c.nextID(), c.now()
	made := &comment{pull: p, by: c.by, info: forge.Comment{
		ID: id, User: c.by.user.Login, UserID: c.by.user.ID, Bot: c.by.user.Bot, Body: body, CreatedAt: at, UpdatedAt: at,
		URL: fmt.Sprintf("%s#issuecomment-%d", p.info.URL, id),
	}}
	p.comments = append(p.comments, made)
	c.repo.comments[id] = made
	c.markUpdated(p)
	c.emitPullEvent(CommentEvent, p, c.by, "created")
	return made, nil
}

// findComment finds a comment by its id, which is the repository's as on GitHub:
// nobody looks at the pull request that a caller names with it.
func (c *call) findComment(id int64) (*comment, error) {
	if found := c.repo.comments[id]; found != nil {
		return found, nil
	}
	return nil, c.failure(forge.ErrNotFound, "Not Found")
}

func (c *call) editComment(id int64, body string) error {
	found, err := c.findComment(id)
	if err != nil {
		return err
	}
	if err := c.requireRights(found.by); err != nil {
		return err
	}
	if err := c.checkComment(body); err != nil {
		return err
	}
	found.info.Body, found.info.UpdatedAt, found.editor = body, c.now(), c.by
	c.markUpdated(found.pull)
	c.emitPullEvent(CommentEvent, found.pull, c.by, "edited")
	return nil
}

func (c *call) deleteComment(id int64) error {
	found, err := c.findComment(id)
	if err != nil {
		return err
	}
	if err := c.requireRights(found.by); err != nil {
		return err
	}
	delete(c.repo.comments, id)
	found.pull.comments = slices.DeleteFunc(found.pull.comments, func(o *comment) bool { return o == found })
	c.markUpdated(found.pull)
	c.emitPullEvent(CommentEvent, found.pull, c.by, "deleted")
	return nil
}

// addReaction adds a reaction, once. It updates no pull request, as on GitHub.
func (c *call) addReaction(id int64, content string) error {
	found, err := c.findComment(id)
	if err != nil {
		return err
	}
	if !slices.Contains(reactions, content) {
		return c.failure(forge.ErrInvalid, "Validation Failed: content is invalid")
	}
	if r := (reaction{by: c.by, content: content}); !slices.Contains(found.reactions, r) {
		found.reactions = append(found.reactions, r)
	}
	return nil
}

// HideEditors has nobody told from now on who edits comments, as on Gitea.
func (f *Forge) HideEditors() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hidesEditors = true
}

// readAuthorship is what GitHub says of who edited a comment, or, after HideEditors, Gitea.
func (c *call) readAuthorship(id int64) (forge.Authorship, string, error) {
	found, err := c.findComment(id)
	switch {
	case err != nil:
		return forge.AuthorshipUnknown, "", err
	case c.hidesEditors && slices.Contains(found.reactions, reaction{by: found.by, content: forge.Confirmation}):
		return forge.ConfirmedByAuthor, "", nil
	case c.hidesEditors:
		return forge.AuthorshipUnknown, "", nil
	case found.editor != nil:
		return forge.EditedLater, found.editor.user.Login, nil
	}
	return forge.AuthorsOwn, "", nil
}

// Reactions are those to a comment, each as "login content", oldest first; none where
// there is no such comment.
func (f *Forge) Reactions(r forge.Repo, id int64) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	repo := f.repos[strings.ToLower(r.String())]
	if repo == nil || repo.comments[id] == nil {
		return nil
	}
	var out []string
	for _, given := range repo.comments[id].reactions {
		out = append(out, given.by.user.Login+" "+given.content)
	}
	return out
}
