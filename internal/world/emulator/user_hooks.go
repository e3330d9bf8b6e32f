package emulator

import (
	"fmt"
	"slices"
)

// Hook is a repository's webhook as an administrator sees it.
type Hook struct {
	URL    string
	Secret string   // given, never shown
	Events []string // empty: all
	Active bool
}

// Hooks are a repository's webhooks.
func (f *Forge) Hooks(repo string) ([]Hook, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findRepository(repo)
	if err != nil {
		return nil, err
	}
	var all []Hook
	for _, h := range r.hooks {
		all = append(all, Hook{URL: h.url, Events: slices.Clone(h.events), Active: h.active})
	}
	return all, nil
}

// SetHookEvents changes what a webhook is sent, as an administrator can by mistake.
func (f *Forge) SetHookEvents(repo, url string, events ...string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findRepository(repo)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(r.hooks, func(h *hook) bool { return h.url == url })
	if i < 0 {
		return fmt.Errorf("%s has no webhook to %s", repo, url)
	}
	r.hooks[i].events = slices.Clone(events)
	return nil
}

// AddHook creates a webhook that sends JSON, as an administrator would by hand.
func (f *Forge) AddHook(repo, login string, n Hook) error {
	return f.withRepository(repo, login, func(r *repository, u *account) error {
		h := &hook{repo: r, events: slices.Clone(n.Events), active: n.Active, created: f.now(), updated: f.now(), uuid: newUUID()}
		if len(h.events) == 0 {
			h.events = []string{"*"}
		}
		if err := h.configure(hookConfig{URL: n.URL, Secret: n.Secret, ContentType: "json"}); err != nil {
			return err
		}
		h.id = f.nextID()
		r.hooks = append(r.hooks, h)
		if f.face == GitHub {
			f.pingHook(h, u)
		}
		return nil
	})
}

// RemoveHooks removes a repository's webhooks.
func (f *Forge) RemoveHooks(repo string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findRepository(repo)
	if err != nil {
		return err
	}
	r.hooks = nil
	return nil
}
