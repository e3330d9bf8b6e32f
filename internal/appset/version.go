package appset

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/argoproj/argo-cd/v2/common"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"

	"github.com/liftlock/liftlock/internal/wording"
)

// Version is an Argo CD's version: what its ApplicationSet controller makes of a set depends on it.
// The zero value is one that isn't known; it is resolved as 2.14 does.
//
// The generator library of this package is 2.14's. The methods here are the differences of newer
// controllers, as far as these show in the generated Applications.
type Version struct{ Major, Minor, Patch uint64 }

// ParseVersion reads a version as Argo CD says it ("v3.5.7+1a2b3c4"), or a line of
// versions ("3.5").
func ParseVersion(text string) (Version, error) {
	v, err := semver.NewVersion(strings.TrimSpace(text))
	if err != nil || v.Major() == 0 {
		return Version{}, fmt.Errorf("%q is no version of Argo CD; v3.5.7 is one, and 3.5 names its line", wording.Clip(text, maxQuoted))
	}
	return Version{v.Major(), v.Minor(), v.Patch()}, nil
}

// IsKnown says that it is a version.
func (v Version) IsKnown() bool { return v != Version{} }

// String is the version's line, which is all that is told of it.
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// atLeast says that it is of that line or of a newer one.
func (v Version) atLeast(line Version) bool {
	return v.Major > line.Major || v.Major == line.Major && v.Minor >= line.Minor
}

// appliesNestedSelectors: the selectors within a nested matrix or merge count in every
// set. Before, a set had to say so with applyNestedSelectors.
func (v Version) appliesNestedSelectors() bool { return v.atLeast(Version{3, 0, 0}) }

// needsDestination: an Application without a destination is dropped; one that names a
// server is checked by the server alone, whatever its clusters are called.
func (v Version) needsDestination() bool { return v.atLeast(Version{3, 0, 0}) }

// skipsEmptyLists: a generator's file that is an empty list gives no parameters. Before,
// it gave those of a file without content (argoproj/argo-cd#23500, of which no tag of 3.0
// and 3.1 has the mending).
func (v Version) skipsEmptyLists() bool { return v.atLeast(Version{3, 2, 0}) }

// mergesTyped: a merge without Go templates leaves its values as they are. Before, it
// made strings of those that it overrode.
func (v Version) mergesTyped() bool { return v.atLeast(Version{3, 1, 0}) }

// listsClustersOnce: of several cluster Secrets with one name the clusters generator
// takes the last. Before, it took that one several times.
func (v Version) listsClustersOnce() bool { return v.atLeast(Version{3, 2, 0}) }

// dropsDuplicates: of several Applications with one name none is created. Before, the
// first was.
func (v Version) dropsDuplicates() bool { return v.atLeast(Version{3, 2, 0}) }

// selectsInMaps: a selector sees the labels, annotations and values of a set with Go
// templates one by one. Before, it saw each of these maps as one text.
func (v Version) selectsInMaps() bool { return v.atLeast(Version{3, 4, 0}) }

// keepsOwnValues: in the values of a matrix's second generator, what the first one's
// parameters lack is left for the second's own. Before, it was an error, or no value.
func (v Version) keepsOwnValues() bool { return v.atLeast(Version{3, 4, 0}) }

// expandsValueFiles: an entry of helm.valueFiles may be a glob, and a file that is named twice is
// read once. Before, each entry was one file's name.
func (v Version) expandsValueFiles() bool { return v.atLeast(Version{3, 4, 0}) }

// normalizesSources: the options of every source are left out where they say nothing.
// Before, those of a single source were.
func (v Version) normalizesSources() bool { return v.atLeast(Version{3, 5, 0}) }

// ownAnnotations are what Argo CD and kubectl write on cluster Secrets for themselves,
// without the one that is never kept (ParseClusters).
var ownAnnotations = []string{
	argov1alpha1.AnnotationKeyRefresh, argov1alpha1.AnnotationKeyHydrate, common.AnnotationKeyAppInstance, common.AnnotationInstallationID,
}

// exposedAnnotations are the clusters without what a clusters generator doesn't give on.
// 3.3.19, 3.4.13 and 3.5.7 began with that.
func (v Version) exposedAnnotations(clusters []Cluster) []Cluster {
	since, known := map[uint64]uint64{3: 19, 4: 13, 5: 7}[v.Minor]
	if !v.atLeast(Version{3, 3, 0}) || v.Major == 3 && known && v.Patch < since {
		return clusters
	}
	out := slices.Clone(clusters)
	for i := range out {
		out[i].Annotations = maps.Clone(out[i].Annotations)
		for _, key := range ownAnnotations {
			delete(out[i].Annotations, key)
		}
	}
	return out
}
