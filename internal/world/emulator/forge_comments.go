package emulator

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	// maxBodyLength is GitHub's limit for the body of a comment or pull request.
	maxBodyLength = 65536
	// maxDescription and maxStatuses are GitHub's limits for commit statuses.
	maxDescription = 140
	maxStatuses    = 1000
)

type comment struct {
	id               int64
	pull             *pull
	user             *account
	body             string
	created, updated time.Time
	reactions        []*reaction
	editor           *account  // who edited it last; nil: nobody
	editedAt         time.Time // and when

	system, internal bool    // GitLab's own; not for everybody
	thread           *thread // GitLab's discussion that it begins; nil: none
}

type reaction struct {
	id      int64
	user    *account
	content string
	at      time.Time
}

type status struct {
	id                                  int64
	state, context, description, target string
	creator                             *account
	at                                  time.Time

	word, ref string // GitLab's state, where it isn't the world's; the branch
}

// reactionContents that GitHub knows.
var reactionContents = []string{"+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"}

func (f *Forge) addComment(p *pull, by *account, body string) (*comment, error) {
	if err := checkBody(body); err != nil {
		return nil, err
	}
	return f.recordComment(p, by, body, false, nil), nil
}

// recordComment adds a comment that is in order.
func (f *Forge) recordComment(p *pull, by *account, body string, internal bool, t *thread) *comment {
	now := f.now() // one moment: a comment whose times differ was edited
	c := &comment{id: f.nextID(), pull: p, user: by, body: body, created: now, updated: now, internal: internal, thread: t}
	p.comments = append(p.comments, c)
	f.markUpdated(p)
	f.emitComment(c, by, "created", nil)
	return c
}

func (f *Forge) editComment(c *comment, by *account, body string) error {
	if err := checkBody(body); err != nil {
		return err
	}
	before := c.body
	c.body, c.updated = body, f.now()
	c.editor, c.editedAt = by, c.updated
	f.markUpdated(c.pull)
	f.emitComment(c, by, "edited", map[string]any{"changes": map[string]any{"body": changedFrom(before)}})
	return nil
}

func (f *Forge) deleteComment(c *comment, by *account) {
	c.pull.comments = slices.DeleteFunc(c.pull.comments, func(o *comment) bool { return o == c })
	f.markUpdated(c.pull)
	f.emitComment(c, by, "deleted", nil)
}

func checkBody(body string) error {
	if strings.TrimSpace(body) == "" {
		return invalidField("IssueComment", "data", "unprocessable", "Body cannot be blank")
	}
	if len(body) > maxBodyLength {
		return invalidField("IssueComment", "data", "unprocessable", "Body is too long (maximum is 65536 characters)")
	}
	return nil
}

func (r *repository) findComment(id int64) *comment {
	for _, p := range r.pulls {
		for _, c := range p.comments {
			if c.id == id {
				return c
			}
		}
	}
	return nil
}

// addReaction adds a reaction; one that is there already is given back, with created
// false. It moves no updated_at, as on GitHub.
func (f *Forge) addReaction(c *comment, by *account, content string) (r *reaction, created bool, err error) {
	if !slices.Contains(reactionContents, content) {
		return nil, false, invalidField("Reaction", "content", "invalid", "")
	}
	for _, r := range c.reactions {
		if r.user == by && r.content == content {
			return r, false, nil
		}
	}
	r = &reaction{id: f.nextID(), user: by, content: content, at: f.now()}
	c.reactions = append(c.reactions, r)
	return r, true, nil
}

// addLabels adds labels to a pull request, creating those that the repository
// doesn't have.
func (f *Forge) addLabels(p *pull, by *account, names []string) error {
	for _, name := range names {
		if name == "" || len(name) > 50 || strings.ContainsAny(name, "\n") {
			return invalidField("Label", "name", "invalid", "")
		}
	}
	if f.face == GitLab {
		return f.setLabels(p, by, append(slices.Clone(p.labels), names...))
	}
	for _, name := range names {
		f.ensureLabel(p.repo, name)
		if slices.Contains(p.labels, name) {
			continue
		}
		p.labels = append(p.labels, name)
		f.markUpdated(p)
		f.emitPull(p, by, "labeled", map[string]any{"label": f.wireLabel(p.repo, name)})
	}
	return nil
}

func (f *Forge) removeLabel(p *pull, by *account, name string) error {
	i := slices.Index(p.labels, name)
	if i < 0 {
		return newAPIError(http.StatusNotFound, "Label does not exist")
	}
	if f.face == GitLab {
		return f.setLabels(p, by, slices.Delete(slices.Clone(p.labels), i, i+1))
	}
	p.labels = slices.Delete(p.labels, i, i+1)
	f.markUpdated(p)
	f.emitPull(p, by, "unlabeled", map[string]any{"label": f.wireLabel(p.repo, name)})
	return nil
}

// ensureLabel finds a repository's label, or creates it.
func (f *Forge) ensureLabel(r *repository, name string) *label {
	l := r.labels[name]
	if l == nil {
		l = &label{ID: f.nextID(), Name: name, Color: "ededed"}
		r.labels[name] = l
	}
	return l
}

func (f *Forge) addStatus(r *repository, by *account, sha string, s *status) error {
	if !slices.Contains([]string{"pending", "success", "failure", "error"}, s.state) {
		return invalidField("Status", "state", "custom", "state is not included in the list")
	}
	if len([]rune(s.description)) > maxDescription {
		return invalidField("Status", "description", "custom", "description is too long (maximum is 140 characters)")
	}
	if s.context == "" {
		s.context = "default"
	}
	same := 0
	for _, o := range r.statuses[sha] {
		if o.context == s.context {
			same++
		}
	}
	if same >= maxStatuses {
		return invalidField("Status", "", "custom", "This SHA and context has reached the maximum number of statuses.")
	}
	return f.recordStatus(r, by, sha, s)
}

// recordStatus adds a status that is in order; one with an identity is a step of what there
// is. On GitLab it moves a pipeline, and callers hold refsMu: what waits for it merges.
func (f *Forge) recordStatus(r *repository, by *account, sha string, s *status) error {
	if s.id == 0 {
		s.id = f.nextID()
	}
	s.creator, s.at = by, f.now()
	r.statuses[sha] = append(r.statuses[sha], s)
	if f.face == GitLab {
		f.followStatus(r, by, sha, s)
		return f.runAutoMerges(r, sha)
	}
	f.emitStatus(r, by, sha, s)
	return nil
}

// latestStatuses are the newest statuses of each context on a commit, oldest first.
func (f *Forge) latestStatuses(r *repository, sha string) []*status {
	var last []*status
	for _, s := range r.statuses[sha] {
		last = append(slices.DeleteFunc(last, func(o *status) bool { return o.context == s.context && o.ref == s.ref }), s)
	}
	return last
}

// combinedState is GitHub's combined state: pending where there is none at all.
func (f *Forge) combinedState(r *repository, sha string) string {
	latest := f.latestStatuses(r, sha)
	has := func(states ...string) bool {
		return slices.ContainsFunc(latest, func(s *status) bool { return slices.Contains(states, s.state) })
	}
	switch {
	case has("failure", "error"):
		return "failure"
	case len(latest) == 0 || has("pending"):
		return "pending"
	default:
		return "success"
	}
}
