package emulator

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// thread is a discussion that can be resolved.
type thread struct {
	resolvedBy *account // nil: it is open
	resolvedAt time.Time
}

// openThreads counts the discussions that nobody has resolved.
func (p *pull) openThreads() int {
	n := 0
	for _, c := range p.comments {
		if c.thread != nil && c.thread.resolvedBy == nil {
			n++
		}
	}
	return n
}

// addSystemNote leaves GitLab's own note; it sends no event.
func (f *Forge) addSystemNote(p *pull, by *account, body string) {
	now := f.now()
	p.gitlab.systemNotes = append(p.gitlab.systemNotes, &comment{id: f.nextID(), pull: p, user: by, body: body, created: now, updated: now,
		system: true})
}

func (f *Forge) noteObject(o *comment) restObject {
	p := o.pull
	w := restObject{
		"id": o.id, "type": nil, "body": o.body, "author": f.gitlabUser(o.user), "created_at": formatGitLabTime(o.created),
		"updated_at": formatGitLabTime(o.updated),
		"system":     o.system, "noteable_id": p.id, "noteable_type": "MergeRequest", "noteable_iid": p.number, "project_id": p.repo.id,
		"resolvable": o.thread != nil, "confidential": o.internal, "internal": o.internal, "imported": false, "imported_from": "none",
		"commands_changes": restObject{},
	}
	if t := o.thread; t != nil {
		w["type"], w["resolved"], w["resolved_by"], w["resolved_at"] = "DiscussionNote", t.resolvedBy != nil, f.gitlabUser(t.resolvedBy),
			gitlabTimeOrNull(t.resolvedAt)
	}
	return w
}

// visibleNotes are the notes of a merge request that an account may read: internal ones are
// for members who may write.
func visibleNotes(p *pull, to *account, filter string) []*comment {
	var all []*comment
	if filter != "only_activity" {
		all = append(all, p.comments...)
	}
	if filter != "only_comments" {
		all = append(all, p.gitlab.systemNotes...)
	}
	return slices.DeleteFunc(all, func(o *comment) bool { return o.internal && p.repo.permissionOf(to) < Read })
}

func listNotes(c *call, p *pull) (any, error) {
	q, err := c.params()
	if err != nil {
		return nil, err
	}
	for name, values := range map[string][]string{"order_by": {"created_at", "updated_at"}, "sort": {"asc", "desc"},
		"activity_filter": {"all_notes", "only_comments", "only_activity"}} {
		if err := q.oneOf(name, values...); err != nil {
			return nil, err
		}
	}
	all := visibleNotes(p, c.user, q.text("activity_filter"))
	slices.SortStableFunc(all, func(a, b *comment) int {
		if q.text("order_by") == "updated_at" {
			return cmp.Or(a.updated.Compare(b.updated), cmp.Compare(a.id, b.id))
		}
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.id, b.id))
	})
	if q.text("sort") != "asc" {
		slices.Reverse(all)
	}
	return pageOf(c, all, c.noteObject), nil
}

// withNote finds the note of the path in its merge request.
func withNote(answer func(*call, *comment) (any, error)) handler {
	return withMergeRequest(func(c *call, p *pull) (any, error) {
		id := c.r.PathValue("note_id")
		all := visibleNotes(p, c.user, "")
		i := slices.IndexFunc(all, func(o *comment) bool { return strconv.FormatInt(o.id, 10) == id })
		if i < 0 {
			return nil, gitlabNotFound("Note")
		}
		return answer(c, all[i])
	})
}

func getNote(c *call, o *comment) (any, error) { return c.noteObject(o), nil }

// createNote runs the quick actions of its body and cuts them out. A body of nothing but quick
// actions makes no note: 202 (api/notes.md).
func createNote(c *call, p *pull) (any, error) {
	q, err := c.params()
	if err != nil {
		return nil, err
	}
	if err := q.require("body"); err != nil {
		return nil, err
	}
	body, commands := cutQuickActions(q.text("body"))
	if err := checkNote(body, len(commands) > 0); err != nil {
		return nil, err
	}
	if err := c.runQuickActions(p, c.user, commands); err != nil {
		return nil, err
	}
	if strings.TrimSpace(body) == "" {
		c.status = http.StatusAccepted
		var said []string
		changes := restObject{}
		for _, a := range commands {
			said = append(said, "Applied "+a.name+" command.")
			changes[a.name] = a.argument
		}
		return restObject{"commands_changes": changes, "summary": said}, nil
	}
	o := c.recordComment(p, c.user, body, q.isTrue("internal") || q.isTrue("confidential"), nil)
	c.status = http.StatusCreated
	return c.noteObject(o), nil
}

// maxNote is GitLab's limit for a note.
const maxNote = 1000000

func checkNote(body string, mayBeEmpty bool) error {
	if strings.TrimSpace(body) == "" && !mayBeEmpty {
		return gitlabRefusal(http.StatusBadRequest, restObject{"note": []string{"can't be blank"}})
	}
	if len(body) > maxNote {
		return gitlabRefusal(http.StatusBadRequest, restObject{"note": []string{fmt.Sprintf("is too long (%d B). The maximum size is %d B.",
			len(body), maxNote)}})
	}
	return nil
}

// updateNote is for its author and for maintainers, and not for GitLab's own notes.
func updateNote(c *call, o *comment) (any, error) {
	q, err := c.params()
	if err != nil {
		return nil, err
	}
	if o.system || o.user != c.user && c.repo.permissionOf(c.user) < Admin {
		return nil, gitlabForbidden()
	}
	body, commands := cutQuickActions(q.text("body"))
	if err := checkNote(body, false); err != nil {
		return nil, err
	}
	if err := c.runQuickActions(o.pull, c.user, commands); err != nil {
		return nil, err
	}
	if body != o.body {
		o.body, o.updated = body, c.now()
		c.markUpdated(o.pull)
		c.emitComment(o, c.user, "edited", nil)
	}
	return c.noteObject(o), nil
}

func deleteNote(c *call, o *comment) (any, error) {
	if o.system || o.user != c.user && c.repo.permissionOf(c.user) < Admin {
		return nil, gitlabForbidden()
	}
	c.deleteComment(o, c.user)
	c.status = http.StatusNoContent
	return nil, nil
}

func (c *call) awardObject(o *comment) func(*reaction) restObject {
	return func(r *reaction) restObject {
		return restObject{"id": r.id, "name": awardName(r.content), "user": c.gitlabUser(r.user), "created_at": formatGitLabTime(r.at),
			"updated_at": formatGitLabTime(r.at), "awardable_id": o.id, "awardable_type": "Note", "url": nil}
	}
}

// awards are GitLab's names for the reactions that the world knows.
var awards = map[string]string{"+1": "thumbsup", "-1": "thumbsdown", "laugh": "laughing", "confused": "confused", "heart": "heart",
	"hooray": "tada", "rocket": "rocket", "eyes": "eyes"}

func awardName(content string) string { return awards[content] }

func listAwards(c *call, o *comment) (any, error) {
	return pageOf(c, o.reactions, c.awardObject(o)), nil
}

// createAward answers 404 to a name that there isn't and to one that is given already.
func createAward(c *call, o *comment) (any, error) {
	q, err := c.params()
	if err != nil {
		return nil, err
	}
	if err := q.require("name"); err != nil {
		return nil, err
	}
	for content, name := range awards {
		if name != q.text("name") {
			continue
		}
		r, created, err := c.addReaction(o, c.user, content)
		if err != nil {
			return nil, err
		}
		if !created {
			return nil, gitlabRefusal(http.StatusNotFound, "404 Award Emoji Name has already been taken Not Found")
		}
		c.status = http.StatusCreated
		c.emitAward(o, r, "award")
		return c.awardObject(o)(r), nil
	}
	return nil, gitlabRefusal(http.StatusNotFound, "404 Award Emoji Name is not a valid emoji name Not Found")
}

func deleteAward(c *call, o *comment) (any, error) {
	id := c.r.PathValue("award_id")
	i := slices.IndexFunc(o.reactions, func(r *reaction) bool { return strconv.FormatInt(r.id, 10) == id })
	switch {
	case i < 0:
		return nil, gitlabNotFound("")
	case o.reactions[i].user != c.user:
		return nil, gitlabUnauthorized()
	}
	r := o.reactions[i]
	o.reactions = slices.Delete(o.reactions, i, i+1)
	c.status = http.StatusNoContent
	c.emitAward(o, r, "revoke")
	return nil, nil
}

func (c *call) discussionObject(o *comment) restObject {
	return restObject{"id": discussionID(o), "individual_note": o.thread == nil, "notes": []restObject{c.noteObject(o)}}
}

func discussionID(o *comment) string { return fmt.Sprintf("%040x", o.id) }

func listDiscussions(c *call, p *pull) (any, error) {
	return pageOf(c, visibleNotes(p, c.user, ""), c.discussionObject), nil
}

// createDiscussion starts a thread that can be resolved (api/discussions.md).
func createDiscussion(c *call, p *pull) (any, error) {
	q, err := c.params()
	if err != nil {
		return nil, err
	}
	if err := q.require("body"); err != nil {
		return nil, err
	}
	body, commands := cutQuickActions(q.text("body"))
	if err := checkNote(body, false); err != nil {
		return nil, err
	}
	o := c.recordComment(p, c.user, body, false, &thread{})
	c.status = http.StatusCreated
	return c.discussionObject(o), c.runQuickActions(p, c.user, commands)
}

func resolveDiscussion(c *call, p *pull) (any, error) {
	q, err := c.params()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(p.comments, func(o *comment) bool { return o.thread != nil && discussionID(o) == c.r.PathValue("discussion_id") })
	if i < 0 {
		return nil, gitlabNotFound("Discussion")
	}
	o := p.comments[i]
	*o.thread = thread{}
	if q.isTrue("resolved") {
		*o.thread = thread{resolvedBy: c.user, resolvedAt: c.now()}
	}
	c.markUpdated(p)
	return c.discussionObject(o), nil
}
