package appset

import (
	"encoding/json"
	"fmt"
)

// AsRun is the target as its live Application, a whole object, has it: with that one's options, where its sources
// are the target's own. The error says why it can't be told.
func (t *Target) AsRun(live json.RawMessage) (*Target, error) {
	g, unknown, err := decodeApplication(live)
	if err == nil {
		err = unknown
	}
	if err != nil {
		return nil, fmt.Errorf("read the live Application %s: %w", t.Name, err)
	}
	sources := sourcesOf(g.app, func(string) bool { return false })
	if len(sources) != len(t.Sources) {
		return nil, fmt.Errorf("the live Application %s has %d sources, and %d in Git", t.Name, len(sources), len(t.Sources))
	}
	out := *t
	out.Live, out.ValueFiles = true, ""
	out.Sources = make([]Source, len(sources))
	for i, s := range sources {
		own := &t.Sources[i]
		isSame := s.Path == own.Path && s.Chart == own.Chart && s.Ref == own.Ref && s.TargetRevision == own.TargetRevision
		if !isSame || !SameRepository(s.RepoURL, own.RepoURL) {
			return nil, fmt.Errorf("the live Application %s has other sources than in Git", t.Name)
		}
		s.RepoURL, s.Here, s.At = own.RepoURL, own.Here, own.At
		out.Sources[i] = s
	}
	return &out, nil
}
