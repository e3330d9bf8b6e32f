package fieldedit

import (
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/wording"
)

// String names the release for people, by its distinct values, at most three
// ("1.4.2", "1.4.2, v9 and 3 more"): an image by its tag, else its digest, else
// its new name; then the other fields; whole files by their number.
func (r Release) String() string {
	var vals []string
	seen := map[string]bool{"": true}
	add := func(v string) {
		if !seen[v] {
			seen[v] = true
			vals = append(vals, v)
		}
	}
	for _, image := range r.imageNames() {
		add(image)
	}
	var files []Field
	for _, f := range r.Fields {
		switch f.Kind {
		case KindFile:
			files = append(files, f)
		case KindImage:
		default:
			add(f.Value)
		}
	}
	switch {
	case len(vals) == 0 && len(files) == 1:
		return fmt.Sprintf("%s (%s)", files[0].File, displayValue(KindFile, files[0].Value))
	case len(vals) == 0 && len(files) > 1:
		return fmt.Sprintf("%d files (%s)", len(files), wording.Short(r.ID()))
	case len(files) == 1:
		add("1 file")
	case len(files) > 1:
		add(fmt.Sprintf("%d files", len(files)))
	}
	switch {
	case len(vals) == 0:
		return "nothing"
	case len(vals) <= 3:
		return strings.Join(vals, ", ")
	}
	return fmt.Sprintf("%s, %s and %d more", vals[0], vals[1], len(vals)-2)
}

// imageNames names the release's images, one an entry.
func (r Release) imageNames() []string {
	var order []string
	entries := map[string]map[string]string{}
	for _, f := range r.Fields {
		image, key, err := parseImagePath(f.Path)
		if f.Kind != KindImage || err != nil {
			continue
		}
		if entries[f.File+image] == nil {
			entries[f.File+image] = map[string]string{}
			order = append(order, f.File+image)
		}
		entries[f.File+image][key] = f.Value
	}
	var names []string
	for _, at := range order {
		e := entries[at]
		switch {
		case e[imageNewTag] != "":
			names = append(names, e[imageNewTag])
		case e[imageDigest] != "":
			names = append(names, shortDigest(e[imageDigest]))
		default:
			names = append(names, e[imageNewName])
		}
	}
	return names
}

// shortDigest is a digest with its first 12 hex digits.
func shortDigest(d string) string {
	algorithm, hex, ok := strings.Cut(d, ":")
	if !ok {
		return d
	}
	return algorithm + ":" + wording.Short(hex)
}
