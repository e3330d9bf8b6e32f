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
	var newest *semver.Version
	var found ChartVersion
	for _, v := range versions {
		if len(v.URLs) == 0 {
			continue
		}
		here := ChartVersion{Version: v.Version, URL: v.URLs[0], Digest: v.Digest}
		if v.Version == constraint {
			return here, nil
		}
		version, wrong := semver.NewVersion(v.Version)
		if err == nil && wrong == nil && allowed.Check(version) && (newest == nil || version.GreaterThan(newest)) {
			newest, found = version, here
		}
	}
	if newest == nil {
		return ChartVersion{}, fmt.Errorf("the index has no version of %s that fits %s", clipExcerpt(chart), clipExcerpt(wanted))
	}
	return found, nil
}
