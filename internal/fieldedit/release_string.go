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
	var names []string
	for _, i := range r.Images() {
		switch {
		case i.Tag != "":
			names = append(names, i.Tag)
		case i.Digest != "":
			names = append(names, shortDigest(i.Digest))
		default:
			names = append(names, i.NewName)
		}
	}
	return names
}

// Image is an entry of a kustomization's images list, as far as it is carried.
type Image struct {
	File    string
	Name    string // by which it is found
	NewName string // empty: it keeps its name
	Tag     string
	Digest  string
}

// Images are the release's images, in the order of its fields.
func (r Release) Images() []Image {
	var images []Image
	at := map[[2]string]int{}
	for _, f := range r.Fields {
		name, key, err := parseImagePath(f.Path)
		if f.Kind != KindImage || err != nil {
			continue
		}
		place := [2]string{f.File, name}
		i, known := at[place]
		if !known {
			i = len(images)
			at[place] = i
			images = append(images, Image{File: f.File, Name: name})
		}
		switch key {
		case imageNewName:
			images[i].NewName = f.Value
		case imageNewTag:
			images[i].Tag = f.Value
		case imageDigest:
			images[i].Digest = f.Value
		}
	}
	return images
}

// shortDigest is a digest with its first 12 hex digits.
func shortDigest(d string) string {
	algorithm, hex, ok := strings.Cut(d, ":")
	if !ok {
		return d
	}
	return algorithm + ":" + wording.Short(hex)
}
