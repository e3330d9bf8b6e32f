package emulator

import (
	"slices"
	"strings"
	"time"
)

// listProjectEvents lists a project's pushes, newest first unless it is said otherwise
// (api/events.md, "List a project's visible events"). The world records no events of other kinds.
func listProjectEvents(c *call) (any, error) {
	p, err := c.params()
	if err != nil {
		return nil, err
	}
	if err := p.oneOf("sort", "asc", "desc"); err != nil {
		return nil, err
	}
	var before, after time.Time
	for name, day := range map[string]*time.Time{"before": &before, "after": &after} {
		if !p.has(name) {
			continue
		}
		if *day, err = time.Parse(time.DateOnly, p.text(name)); err != nil {
			return nil, badParameter("%s is invalid", name)
		}
	}
	var found []activity
	for _, a := range c.repo.activities {
		isTooLate := !before.IsZero() && !a.at.Before(before)
		isTooEarly := !after.IsZero() && a.at.Before(after.AddDate(0, 0, 1))
		wantsOthers := p.has("action") && p.text("action") != "pushed"
		if isTooLate || isTooEarly || wantsOthers {
			continue
		}
		found = append(found, a)
	}
	if p.text("sort") != "asc" {
		slices.Reverse(found)
	}
	return pageOf(c, found, func(a activity) restObject { return c.pushEvent(c.repo, &a) }), nil
}

// pushEvent is a move of a branch as the event that it made. How many commits it brought, and the
// title of the last, are left out.
func (f *Forge) pushEvent(r *repository, a *activity) restObject {
	kind, name := "pushed", "pushed to"
	switch {
	case a.before == "":
		kind, name = "created", "pushed new"
	case a.after == "":
		kind, name = "removed", "deleted"
	}
	push := restObject{"action": kind, "ref_type": "branch", "commit_from": orNull(a.before), "commit_to": orNull(a.after),
		"ref": strings.TrimPrefix(a.ref, "refs/heads/"), "ref_count": nil}
	return restObject{
		"id": a.id, "project_id": r.id, "action_name": name, "target_id": nil, "target_iid": nil, "target_type": nil, "target_title": nil,
		"created_at": formatGitLabTime(a.at), "author_id": a.by.id, "author": f.gitlabUserObject(a.by), "author_username": a.by.login,
		"push_data": push,
	}
}
