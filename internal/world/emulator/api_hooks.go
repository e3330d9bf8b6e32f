package emulator

import (
	"net/http"
	"slices"
)

type hookRequest struct {
	Name   string      `json:"name"`
	Config *hookConfig `json:"config"`
	Events []string    `json:"events"`
	Add    []string    `json:"add_events"`
	Remove []string    `json:"remove_events"`
	Active *bool       `json:"active"`
}

func listHooks(c *call) (any, error) {
	return paginateAs(c, c.repo.hooks, c.wireHook), nil
}

func createHook(c *call) (any, error) {
	var in hookRequest
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	if in.Config == nil {
		return nil, invalidField("Hook", "config", "missing_field", "")
	}
	h := &hook{repo: c.repo, events: in.Events, active: in.Active == nil || *in.Active, created: c.now(), updated: c.now()}
	if h.events == nil {
		h.events = []string{"push"}
	}
	if err := h.configure(*in.Config); err != nil {
		return nil, err
	}
	h.id = c.nextID()
	c.repo.hooks = append(c.repo.hooks, h)
	c.pingHook(h, c.user)
	c.status = http.StatusCreated
	return c.wireHook(h), nil
}

// withHook finds the hook of the path.
func withHook(answer func(*call, *hook) (any, error)) handler {
	return func(c *call) (any, error) {
		id, err := c.pathNumber("id")
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(c.repo.hooks, func(h *hook) bool { return h.id == id })
		if i < 0 {
			return nil, notFound()
		}
		return answer(c, c.repo.hooks[i])
	}
}

func getHook(c *call, h *hook) (any, error) { return c.wireHook(h), nil }

func patchHook(c *call, h *hook) (any, error) {
	var in hookRequest
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	if in.Config != nil {
		if err := h.configure(*in.Config); err != nil {
			return nil, err
		}
	}
	if in.Events != nil {
		h.events = in.Events
	}
	h.events = slices.DeleteFunc(append(slices.Clone(h.events), in.Add...), func(e string) bool { return slices.Contains(in.Remove, e) })
	slices.Sort(h.events)
	h.events = slices.Compact(h.events)
	if in.Active != nil {
		h.active = *in.Active
	}
	h.updated = c.now()
	return c.wireHook(h), nil
}

func deleteHook(c *call, h *hook) (any, error) {
	c.repo.hooks = slices.DeleteFunc(c.repo.hooks, func(o *hook) bool { return o == h })
	c.status = http.StatusNoContent
	return nil, nil
}

func pingHook(c *call, h *hook) (any, error) {
	c.pingHook(h, c.user)
	c.status = http.StatusNoContent
	return nil, nil
}
