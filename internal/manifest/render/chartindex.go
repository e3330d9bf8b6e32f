package render

import (
	"fmt"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"
)

// ChartVersion is a version of a chart in the index of a Helm repository.
type ChartVersion struct {
	Version string
	URL     string // of the packed chart; it may be relative to the index
	Digest  string // SHA-256 in hex; empty: it isn't said
}

// chartIndex is what is read of an index (helm: IndexFile in pkg/repo).
type chartIndex struct {
	Entries map[string][]listedChart `json:"entries"`
}

type listedChart struct {
	Version string   `json:"version"`
	URLs    []string `json:"urls"`
	Digest  string   `json:"digest"`
}

// readChart reads the versions of a chart in an index.
func readChart(index []byte, chart string) ([]listedChart, error) {
	if err := checkAliases(index); err != nil {
		return nil, fmt.Errorf("the index: %w", err)
	}
	var all chartIndex
	if err := yaml.Unmarshal(index, &all); err != nil {
		return nil, clipError(fmt.Errorf("the index can't be read: %w", err))
	}
	versions, is := all.Entries[chart]
	if !is {
		return nil, fmt.Errorf("the index has no chart %s", clipExcerpt(chart))
	}
	return versions, nil
}

// ListChart lists the versions of a chart that can be fetched, each once, in the order of the index.
func ListChart(index []byte, chart string) ([]string, error) {
	versions, err := readChart(index, chart)
	if err != nil {
		return nil, err
	}
	var out []string
	seen := map[string]bool{}
	for _, v := range versions {
		if !seen[v.Version] && len(v.URLs) > 0 {
			out, seen[v.Version] = append(out, v.Version), true
		}
	}
	return out, nil
}

// FindChart finds the newest version of a chart that a constraint allows, as Helm does. A version
// that is written the same comes first, and an empty constraint means the newest that is no
// pre-release.
func FindChart(index []byte, chart, constraint string) (ChartVersion, error) {
	versions, err := readChart(index, chart)
	if err != nil {
		return ChartVersion{}, err
	}
	wanted := constraint
	if wanted == "" {
		wanted = "*"
	}
	allowed, err := semver.NewConstraint(wanted)
	var names []string
	found := map[string]ChartVersion{}
	for _, v := range versions {
		if _, twice := found[v.Version]; twice || len(v.URLs) == 0 {
			continue
		}
		here := ChartVersion{Version: v.Version, URL: v.URLs[0], Digest: v.Digest}
		if v.Version == constraint {
			return here, nil
		}
		names, found[v.Version] = append(names, v.Version), here
	}
	if err == nil {
		if newest := NewestVersion(allowed, names); newest != "" {
			return found[newest], nil
		}
	}
	return ChartVersion{}, fmt.Errorf("the index has no version of %s that fits %s", clipExcerpt(chart), clipExcerpt(wanted))
}

// ParseTagRange reads a Git source's revision as Argo CD does (util/git, resolveSemverRevision): a range of versions,
// such as v1.* or >=1.2 <2, is the newest tag within it. false: it is a version or anything else, and names itself.
func ParseTagRange(revision string) (allowed *semver.Constraints, ok bool) {
	if _, err := semver.NewVersion(revision); err == nil || revision == "" || revision == "HEAD" {
		return nil, false
	}
	allowed, err := semver.NewConstraint(revision)
	return allowed, err == nil
}

// NewestVersion is the newest of versions that a constraint allows, as it is written there; of two
// that are the same the first, and "" for none. Texts that aren't versions are skipped.
func NewestVersion(allowed *semver.Constraints, versions []string) string {
	var newest *semver.Version
	for _, text := range versions {
		if v, err := semver.NewVersion(text); err == nil && allowed.Check(v) && (newest == nil || v.GreaterThan(newest)) {
			newest = v
		}
	}
	if newest == nil {
		return ""
	}
	return newest.Original()
}
