package deps

import (
	"path"
	"regexp"
	"strings"
)

// shape says which of the files below a rule's folder it covers.
type shape uint8

const (
	allBelow   shape = iota // every file
	manifests               // a plain folder's manifests
	recursive               // those of its subfolders too
	chartFiles              // files in the folder itself whose name ends in Chart.yaml
)

// rule covers files that may come into being in a folder.
type rule struct {
	dir              string
	shape            shape
	include, exclude *pattern // of manifests; nil: no such filter
}

// manifestName is what counts as a manifest in a plain folder.
var manifestName = regexp.MustCompile(`\.(yaml|yml|json|jsonnet)$`)

// covers says that a file of this name would be read.
func (r *rule) covers(name string) bool {
	rel, ok := within(r.dir, name)
	switch {
	case !ok:
		return false
	case r.shape == allBelow:
		return true
	case r.shape != recursive && strings.Contains(rel, "/"):
		return false
	case r.shape == chartFiles:
		return strings.HasSuffix(rel, chartSuffix)
	case !manifestName.MatchString(path.Base(rel)):
		return false
	case r.exclude != nil && r.exclude.match(rel, false):
		return false
	}
	return r.include == nil || r.include.match(rel, true)
}

// equal says that two rules cover the same files.
func (r rule) equal(o rule) bool {
	return r.dir == o.dir && r.shape == o.shape && r.include.String() == o.include.String() && r.exclude.String() == o.exclude.String()
}
