package api

import (
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/wording"
)

// Newest is what to say first of what is available: a version or, where none is known, why not. nil: there is nothing.
func (e *Environment) Newest() *AvailableVersion {
	for i := range e.Available {
		if e.Available[i].Version != "" {
			return &e.Available[i]
		}
	}
	if len(e.Available) == 0 {
		return nil
	}
	return &e.Available[0]
}

// BesidesNewest counts what is available besides the newest.
func (e *Environment) BesidesNewest() int { return len(e.Available) + e.MoreAvailable - 1 }

// ShortVersion is the version for people: of a digest, its first digits.
func (av *AvailableVersion) ShortVersion() string {
	if kind, digits, ok := strings.Cut(av.Version, ":"); ok {
		return kind + ":" + wording.Short(digits)
	}
	return av.Version
}

// Describe says in words what there is: "registry.example/web 1.3.0, seen 2026-03-02T09:00:00Z: held by rule: …".
func (av *AvailableVersion) Describe() string {
	name := av.Name
	if name == "" {
		name = "what could come in"
	}
	if av.Version == "" {
		return fmt.Sprintf("%s: unknown since %s: %s", name, formatTime(av.Since), av.Reason)
	}
	return fmt.Sprintf("%s %s, seen %s: %s", name, av.ShortVersion(), formatTime(av.Since), av.Reason)
}

// explainAvailable says what registries have and the environment doesn't get, a line each.
func (e *Environment) explainAvailable(b *strings.Builder) {
	for i := range e.Available {
		b.WriteString("\n+ " + e.Available[i].Describe())
	}
	if e.MoreAvailable > 0 {
		fmt.Fprintf(b, "\n+ and %s", wording.Count(e.MoreAvailable, "more version"))
	}
}
