package argocd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

func (w *wireSpec) decodeSources() []verification.Source {
	if w.SourceHydrator != nil {
		d := w.SourceHydrator.DrySource
		return []verification.Source{{RepoURL: d.RepoURL, Path: d.Path, TargetRevision: d.TargetRevision}}
	}
	raws := w.Sources
	if len(raws) == 0 && isPresent(w.Source) {
		raws = []json.RawMessage{w.Source}
	}
	out := make([]verification.Source, min(len(raws), maxSources))
	for i := range out {
		out[i] = sourceOf(raws[i])
	}
	return out
}

// sourceOf reads one source. A source that isn't understood leaves its fields empty.
func sourceOf(raw json.RawMessage) verification.Source {
	var w wireSource
	if json.Unmarshal(raw, &w) != nil {
		return verification.Source{}
	}
	return verification.Source{RepoURL: w.RepoURL, Path: w.Path, Chart: w.Chart, TargetRevision: w.TargetRevision, Ref: w.Ref,
		Options: OptionsOf(raw)}
}

// OptionsOf is a digest of what else a source of an Application says (Helm's
// parameters, images, patches) than where it is; empty when it says nothing else.
// It is what verification.Source.Options holds. Empty values count as absent, as
// the API server and the controllers leave them out or not as it comes.
func OptionsOf(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return ""
	}
	for _, known := range []string{"repoURL", "path", "chart", "targetRevision", "ref", "name"} {
		delete(all, known)
	}
	rest := map[string]any{}
	for k, v := range all {
		if m := decodeNonEmpty(v); m != nil {
			rest[k] = m
		}
	}
	if len(rest) == 0 {
		return ""
	}
	canonical, err := json.Marshal(rest)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:8])
}
