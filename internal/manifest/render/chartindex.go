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
	Entries map[string][]struct {
		Version string   `json:"version"`
		URLs    []string `json:"urls"`
		Digest  string   `json:"digest"`
	} `json:"entries"`
}

// FindChart finds the newest version of a chart that a constraint allows, as Helm does: a version
// that is written the same comes first, and an empty one means the newest that is no pre-release.
func FindChart(index []byte, chart, constraint string) (ChartVersion, error) {
	if err := checkAliases(index); err != nil {
		return ChartVersion{}, fmt.Errorf("the index: %w", err)
	}
	var all chartIndex
	if err := yaml.Unmarshal(index, &all); err != nil {
		return ChartVersion{}, clipError(fmt.Errorf("the index can't be read: %w", err))
	}
	versions, is := all.Entries[chart]
	if !is {
		return ChartVersion{}, fmt.Errorf("the index has no chart %s", clipExcerpt(chart))
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

// NewestVersion is the newest of versions that a constraint allows, as it is written there; of two that are the
// same the first, and "" for none. What is no version is passed over.
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
