package emulator

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	// maxBody is GitHub's limit for the body of a comment or pull request.
	maxBody = 65536
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
}

// reactions that GitHub knows.
var reactions = []string{"+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"}

func (f *Forge) addComment(p *pull, by *account, body string) (*comment, error) {
	if err := checkBody(body); err != nil {
		return nil, err
	}
	now := f.now() // one moment: a comment whose times differ was edited
	c := &comment{id: f.nextID(), pull: p, user: by, body: body, created: now, updated: now}
	p.comments = append(p.comments, c)
	f.touch(p)
	f.emitComment(c, by, "created", nil)
	return c, nil
}

func (f *Forge) editComment(c *comment, by *account, body string) error {
	if err := checkBody(body); err != nil {
		return err
	}
	before := c.body
	c.body, c.updated = body, f.now()
	f.touch(c.pull)
	f.emitComment(c, by, "edited", map[string]any{"changes": map[string]any{"body": was(before)}})
	return nil
}

func (f *Forge) deleteComment(c *comment, by *account) {
	c.pull.comments = slices.DeleteFunc(c.pull.comments, func(o *comment) bool { return o == c })
	f.touch(c.pull)
	f.emitComment(c, by, "deleted", nil)
}

func checkBody(body string) error {
	if strings.TrimSpace(body) == "" {
		return invalid("IssueComment", "data", "unprocessable", "Body cannot be blank")
	}
	if len(body) > maxBody {
		return invalid("IssueComment", "data", "unprocessable", "Body is too long (maximum is 65536 characters)")
	}
	return nil
}

func (r *repository) comment(id int64) *comment {
	for _, p := range r.pulls {
		for _, c := range p.comments {
			if c.id == id {
				return c
			}
		}
	}
	return nil
}

// react adds a reaction; one that is there already is given back, with created
// false. It moves no updated_at, as on GitHub.
func (f *Forge) react(c *comment, by *account, content string) (r *reaction, created bool, err error) {
	if !slices.Contains(reactions, content) {
		return nil, false, invalid("Reaction", "content", "invalid", "")
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
			return invalid("Label", "name", "invalid", "")
		}
	}
	for _, name := range names {
		f.label(p.repo, name)
		if slices.Contains(p.labels, name) {
			continue
		}
		p.labels = append(p.labels, name)
		f.touch(p)
		f.emitPull(p, by, "labeled", map[string]any{"label": f.wireLabel(p.repo, name)})
	}
	return nil
}

func (f *Forge) removeLabel(p *pull, by *account, name string) error {
	i := slices.Index(p.labels, name)
	if i < 0 {
		return refuse(http.StatusNotFound, "Label does not exist")
	}
	p.labels = slices.Delete(p.labels, i, i+1)
	f.touch(p)
	f.emitPull(p, by, "unlabeled", map[string]any{"label": f.wireLabel(p.repo, name)})
	return nil
}

// label finds a repository's label, or creates it.
func (f *Forge) label(r *repository, name string) *label {
	l := r.labels[name]
	if l == nil {
		l = &label{ID: f.nextID(), Name: name, Color: "ededed"}
		r.labels[name] = l
	}
	return l
}

func (f *Forge) addStatus(r *repository, by *account, sha string, s *status) error {
	if !slices.Contains([]string{"pending", "success", "failure", "error"}, s.state) {
		return invalid("Status", "state", "custom", "state is not included in the list")
	}
	if len([]rune(s.description)) > maxDescription {
		return invalid("Status", "description", "custom", "description is too long (maximum is 140 characters)")
	}
	if s.context == "" {
		s.context = "default"
	}
	same := 0
	for _, o := range r.checks[sha] {
		if o.context == s.context {
			same++
		}
	}
	if same >= maxStatuses {
		return invalid("Status", "", "custom", "This SHA and context has reached the maximum number of statuses.")
	}
	s.id, s.creator, s.at = f.nextID(), by, f.now()
	r.checks[sha] = append(r.checks[sha], s)
	f.emitStatus(r, by, sha, s)
	return nil
}

// latest are the newest statuses of each context on a commit, oldest first.
func (f *Forge) latest(r *repository, sha string) []*status {
	var last []*status
	for _, s := range r.checks[sha] {
		last = append(slices.DeleteFunc(last, func(o *status) bool { return o.context == s.context }), s)
	}
	return last
}

// combined is GitHub's combined state: pending where there is none at all.
func (f *Forge) combined(r *repository, sha string) string {
	latest := f.latest(r, sha)
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
