package deps

import (
	"path"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ruleShape says which of the files below a rule's folder it covers.
type ruleShape uint8

const (
	shapeAll       ruleShape = iota // every file
	shapeManifests                  // a plain folder's manifests
	shapeRecursive                  // those of its subfolders too
	shapeCharts                     // files in the folder itself whose name ends in Chart.yaml
	shapeGlob                       // those that its glob matches
)

// rule covers files that may come into being in a folder.
type rule struct {
	dir              string
	shape            ruleShape
	include, exclude *pattern // of manifests; nil: no such filter
	glob             string   // of shapeGlob, on the path below the folder
}

// manifestNamePattern is what counts as a manifest in a plain folder.
var manifestNamePattern = regexp.MustCompile(`\.(yaml|yml|json|jsonnet)$`)

// covers says that a file of this name would be read.
func (r *rule) covers(name string) bool {
	rel, ok := cutFolder(r.dir, name)
	switch {
	case !ok:
		return false
	case r.shape == shapeAll:
		return true
	case r.shape == shapeGlob:
		return doublestar.MatchUnvalidated(r.glob, rel) || r.leadsThrough(rel)
	case r.shape != shapeRecursive && strings.Contains(rel, "/"):
		return false
	case r.shape == shapeCharts:
		return strings.HasSuffix(rel, chartSuffix)
	case !manifestNamePattern.MatchString(path.Base(rel)):
		return false
	case r.exclude != nil && r.exclude.match(rel, false):
		return false
	}
	return r.include == nil || r.include.match(rel, true)
}

// leadsThrough says that a glob may go through a path, as through a link that leads to a folder.
// Files that come into being there aren't known by their names, so that others count too.
func (r *rule) leadsThrough(rel string) bool {
	if strings.Contains(r.glob, "{") { // there may be slashes in it
		return true
	}
	for i, c := range r.glob {
		if c == '/' && doublestar.MatchUnvalidated(r.glob[:i], rel) {
			return true
		}
	}
	return false
}

// equal says that two rules cover the same files.
func (r rule) equal(o rule) bool {
	if r.dir != o.dir || r.shape != o.shape || r.glob != o.glob {
		return false
	}
	return r.include.String() == o.include.String() && r.exclude.String() == o.exclude.String()
}
