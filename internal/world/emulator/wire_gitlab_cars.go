package emulator

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// mergeCar is a merge request on a merge train.
type mergeCar struct {
	id               int64
	pull             *pull
	by               *account
	base             string
	request          acceptRequest
	status           string // idle, fresh, stale, merging, merged or skip_merged
	created, updated time.Time
	mergedAt         time.Time
}

func (m *mergeCar) active() bool { return !strings.HasSuffix(m.status, "merged") }

func (f *Forge) carObject(o *mergeCar) restObject {
	p := o.pull
	w := restObject{
		"id": o.id, "merge_request": restObject{"id": p.id, "iid": p.number, "project_id": p.repo.id, "title": p.title,
			"description": p.body,
			"state":       p.gitlabMRState(), "created_at": formatGitLabTime(p.created), "updated_at": formatGitLabTime(p.updated),
			"web_url": f.pullPage(p)},
		"user": f.gitlabUser(o.by), "pipeline": nil, "created_at": formatGitLabTime(o.created), "updated_at": formatGitLabTime(o.updated),
		"target_branch": o.base, "status": o.status, "merged_at": gitlabTimeOrNull(o.mergedAt), "duration": nil,
	}
	if pipe := p.repo.findPipeline(p.head, ""); pipe != nil {
		w["pipeline"] = f.gitlabPipeline(p.repo, pipe)
	}
	return w
}

func listCars(c *call) (any, error) {
	if !c.repo.gitlab.QueueMerges || c.repo.gitlab.Free {
		return nil, gitlabForbidden()
	}
	q, err := c.params()
	if err != nil {
		return nil, err
	}
	if err := q.oneOf("scope", "active", "complete"); err != nil {
		return nil, err
	}
	branch, scope := c.r.PathValue("target_branch"), q.text("scope")
	var found []*mergeCar
	for _, o := range c.repo.cars {
		if (branch == "" || o.base == branch) && (scope == "" || (scope == "active") == o.active()) {
			found = append(found, o)
		}
	}
	if q.text("sort") != "asc" {
		slices.Reverse(found)
	}
	return pageOf(c, found, c.carObject), nil
}

// findCar finds a merge request's newest car; nil: it has none.
func (p *pull) findCar() *mergeCar {
	for _, o := range slices.Backward(p.repo.cars) {
		if o.pull == p {
			return o
		}
	}
	return nil
}

func getCar(c *call, p *pull) (any, error) {
	o := p.findCar()
	if o == nil {
		return nil, gitlabNotFound("")
	}
	return c.carObject(o), nil
}

// addCar lets a merge request join its branch's merge train: 201, or 202 when it will once its
// pipeline is through (api/merge_trains.md).
func addCar(c *call, p *pull) (any, error) {
	q, err := c.params()
	if err != nil {
		return nil, err
	}
	if !p.repo.gitlab.QueueMerges || p.repo.gitlab.Free || !mayMergeInto(p.repo, p.base, c.user) {
		return nil, gitlabForbidden()
	}
	if sha := q.text("sha"); sha != "" && sha != p.head {
		return nil, gitlabRefusal(http.StatusConflict, "SHA does not match HEAD of source branch: "+p.head)
	}
	if o := p.findCar(); o != nil && o.active() {
		return nil, gitlabRefusal(http.StatusConflict, "The merge request is already on a merge train.")
	}
	if err := c.finishCheck(p); err != nil {
		return nil, err
	}
	o := &mergeCar{id: c.nextID(), pull: p, by: c.user, base: p.base, request: acceptRequest{squash: p.gitlab.squash || q.isTrue("squash"),
		removeBranch: p.gitlab.removeBranch},
		status: "fresh", created: c.now(), updated: c.now()}
	c.status = http.StatusCreated
	switch blocker := c.findGitLabBlocker(p); {
	case !p.open:
		return nil, gitlabRefusal(http.StatusBadRequest, "The merge request is not open.")
	case blocker == "ci_still_running" && (q.isTrue("auto_merge") || q.isTrue("when_pipeline_succeeds")):
		o.status, c.status = "idle", http.StatusAccepted
	case blocker != "mergeable":
		return nil, gitlabRefusal(http.StatusBadRequest, "The merge request is not mergeable.")
	}
	p.repo.cars = append(p.repo.cars, o)
	c.markUpdated(p)
	c.addSystemNote(p, c.user, "added this merge request to the merge train")
	return []restObject{c.carObject(o)}, nil
}

// onQueue says that a merge request is on a merge train, or joins one when its pipeline is through.
func (p *pull) onQueue() bool {
	o := p.findCar()
	return o != nil && o.active()
}

// dropCar takes a merge request off its merge train, if it is on one: by a person, a push or
// its end. A car that is gone is shown by nothing (api/merge_trains.md has no word for it).
func (f *Forge) dropCar(p *pull, by *account) {
	if !p.onQueue() {
		return
	}
	p.repo.cars = slices.DeleteFunc(p.repo.cars, func(o *mergeCar) bool { return o.pull == p && o.active() })
	f.addSystemNote(p, by, "removed this merge request from the merge train")
	f.markUpdated(p)
}

// FailMergeQueue has what a merge train runs for a merge request fail: it is put off its train, and
// is as it was otherwise.
func (f *Forge) FailMergeQueue(repo string, number int, login string) error {
	return f.withPull(repo, number, login, func(p *pull, by *account) error {
		if f.face == GitHub {
			f.dequeue(p, by, "CI_FAILURE")
			return nil
		}
		f.dropCar(p, by)
		return nil
	})
}

// RunMergeQueue brings the merge trains or merge queues of a project to their end. It merges all
// that can be merged, in the order in which they joined and as the account that had them join. The
// others are taken off their train.
func (f *Forge) RunMergeQueue(repo, login string) error {
	err := f.withRepositoryRefs(repo, login, func(r *repository, by *account) error {
		if f.face == GitHub {
			return f.runQueue(r, by)
		}
		for _, o := range slices.Clone(r.cars) {
			if !o.active() {
				continue
			}
			if err := f.finishCheck(o.pull); err != nil {
				return err
			}
			if !o.pull.open || f.findGitLabBlocker(o.pull) != "mergeable" {
				f.dropCar(o.pull, o.by)
				continue
			}
			o.status, o.updated = "merging", f.now()
			if err := f.landMergeRequest(o.pull, o.by, o.request); err != nil {
				return err
			}
			o.status, o.updated, o.mergedAt = "merged", f.now(), f.now()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("running the merge queue of %s: %w", repo, err)
	}
	return nil
}

// HoldMerge leaves a merge request in the middle of its merge, where GitLab shows it as locked,
// or lets go of it.
func (f *Forge) HoldMerge(repo string, number int, login string, held bool) error {
	return f.withPull(repo, number, login, func(p *pull, _ *account) error {
		p.gitlab.inMerge = held
		f.markUpdated(p)
		return nil
	})
}
