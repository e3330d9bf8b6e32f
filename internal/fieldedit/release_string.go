package fieldedit

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/liftlock/liftlock/internal/wording"
)

// String names the release for people, by its distinct values: one alone ("1.4.2"), several with what they are of, at
// most three ("nginx 1.27, web 1.0.0 and 3 more"). An image has its tag, else its digest, else its new name. The
// other fields come then, and whole files by their number.
func (r Release) String() string {
	var vals, paths []string
	alike := map[string]int{} // how many have a short path
	seen := map[string]bool{"": true}
	add := func(path, v string) {
		if !seen[v] {
			seen[v] = true
			vals, paths = append(vals, v), append(paths, path)
			alike[shortPath(path)]++
		}
	}
	for _, image := range r.Images() {
		add(imagePath(image.Name, imageNewTag), image.version())
	}
	var files []Field
	for _, f := range r.Fields {
		switch f.Kind {
		case KindFile:
			files = append(files, f)
		case KindImage:
		default:
			add(f.Path, f.Value)
		}
	}
	values := len(vals) // without the files
	switch {
	case len(vals) == 0 && len(files) == 1:
		return fmt.Sprintf("%s (%s)", files[0].File, displayValue(KindFile, files[0].Value))
	case len(vals) == 0 && len(files) > 1:
		return fmt.Sprintf("%d files (%s)", len(files), wording.Short(r.ID()))
	case len(files) == 1:
		add("", "1 file")
	case len(files) > 1:
		add("", fmt.Sprintf("%d files", len(files)))
	}
	for i := range values {
		label := shortPath(paths[i])
		if alike[label] > 1 {
			label = ownPath(paths[i])
		}
		if values > 1 && !strings.Contains(vals[i], label) { // an image's own name says what it is of
			vals[i] = label + " " + vals[i]
		}
	}
	switch {
	case len(vals) == 0:
		return "nothing"
	case len(vals) <= 3:
		return strings.Join(vals, ", ")
	}
	return fmt.Sprintf("%s, %s and %d more", vals[0], vals[1], len(vals)-2)
}

// Image is an entry of a kustomization's images list, as far as it is carried.
type Image struct {
	File    string
	Name    string // by which it is found
	NewName string // empty: it keeps its name
	Tag     string
	Digest  string
}

// selector is what chooses an element in a field's address: [name=web].
var selector = regexp.MustCompile(`\[[^\]=]+=([^\]{}]+)\]`)

// shortPath is a field's address for a name: what chooses the element that it is of; else its last two keys, behind an
// environment's or a component's own part of it.
func shortPath(path string) string {
	if image, _, err := parseImagePath(path); err == nil {
		return image[strings.LastIndex(image, "/")+1:]
	}
	if all := selector.FindAllStringSubmatch(path, -1); len(all) > 0 {
		name := all[len(all)-1][1]
		return name[strings.LastIndex(name, "/")+1:]
	}
	keys := strings.FieldsFunc(ownPath(path), func(r rune) bool { return r == '.' || r == '/' })
	return strings.Join(keys[max(0, len(keys)-2):], ".")
}

// ownPath is a field's address behind an environment's or a component's own part of it.
func ownPath(path string) string {
	if i := strings.LastIndex(path, "}}"); i >= 0 {
		return strings.TrimLeft(path[i+len("}}"):], "./]")
	}
	return path
}

// version is what people call the image's version: its tag, else its digest, else its new name.
func (i *Image) version() string {
	switch {
	case i.Tag != "":
		return i.Tag
	case i.Digest != "":
		return shortDigest(i.Digest)
	}
	return i.NewName
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
