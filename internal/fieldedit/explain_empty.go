package fieldedit

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
	"github.com/liftlock/liftlock/internal/wording"
	"gopkg.in/yaml.v3"
)

// maxExplained bounds the names that an explanation lists.
const maxExplained = 6

// ExplainEmpty says, of an overlay in which nothing is carried, which fields an entry may have
// meant. They are images that its globs don't match, files that it picks but whose fields aren't
// there, and files in shared folders that would need a placeholder. It is empty where there are
// none, or where the overlay can't be read.
func ExplainEmpty(tree fs.FS, o Overlay) string {
	b, err := o.resolvePlaceholders()
	if err != nil {
		return ""
	}
	f := newFiles(tree, b.parseCache)
	var out []string
	for i := range b.entries {
		e := &b.entries[i]
		var why string
		if e.isKustomization() {
			why = f.explainKustomizations(b, e)
		} else {
			why = f.explainFiles(b, e, o.Environment)
		}
		if why != "" {
			out = append(out, why)
		}
	}
	return strings.Join(out, "; ")
}

// explainKustomizations names the images or remote bases that are there.
func (c *commitFiles) explainKustomizations(b *resolvedOverlay, e *carryEntry) string {
	key, what, globs, all := "kustomizeImages", "images", e.images, &carryEntry{images: []string{"**"}}
	if len(e.refs) > 0 {
		key, what, globs, all = "kustomizeRefs", "remote bases with a ref", e.refs, &carryEntry{refs: []string{"**"}}
	}
	var names []string
	for _, root := range b.roots {
		if b.shared[root] {
			continue
		}
		found, err := c.locateInKustomization(root, all)
		if err != nil {
			return ""
		}
		for _, l := range found {
			names = append(names, l.address.image+l.address.remote)
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s matches none of the %s that are there: %s", key, wording.JoinFew(globs, 3), what,
		wording.JoinFew(names, maxExplained))
}

// explainFiles names files that are picked and have none of the fields, or that are picked in
// a folder which others have too.
func (c *commitFiles) explainFiles(b *resolvedOverlay, e *carryEntry, environment string) string {
	var without, shared []string
	looked := ""
	for _, root := range b.roots {
		if b.isBase(root) && !b.mayHoldEntry(root, e) {
			continue
		}
		files, err := c.globFiles(b, root, e)
		if err != nil {
			return ""
		}
		if looked == "" && !b.shared[root] {
			looked = root
		}
		for _, file := range files {
			switch at := joinRoot(root, file.name); {
			case !b.shared[root]:
				without = append(without, at)
			case !e.hasPlaceholders():
				if named, ok := nameForEnvironment(file.name, environment); ok {
					shared = append(shared, fmt.Sprintf("%s lies in a folder that others have too: pick it as %s", at, named))
				}
			}
		}
	}
	if len(shared) > 0 {
		return wording.JoinFew(shared, 2)
	}
	switch {
	case len(without) == 0:
		return c.explainNames(b, e, looked)
	case e.whole:
		return ""
	}
	var paths []string
	for _, p := range e.paths {
		paths = append(paths, p.path.String())
	}
	why := fmt.Sprintf("%s has no %s", wording.JoinFew(without, 3), strings.Join(paths, ", "))
	if spelled := c.explainSpelling(e, without); spelled != "" {
		return why + "; did you mean " + spelled + ", which is there?"
	}
	if there := c.listFields(without[0]); len(there) > 0 {
		why += "; there are " + wording.JoinFew(there, maxExplained)
	}
	return why
}

// explainNames names the files of a folder that an entry may pick from, where it picks none by its name.
func (c *commitFiles) explainNames(b *resolvedOverlay, e *carryEntry, root string) string {
	if root == "" {
		return ""
	}
	entries, err := fs.ReadDir(c.tree, root)
	if err != nil {
		return ""
	}
	var names []string
	for _, entry := range entries {
		_, as, err := fileKind(entry.Name())
		isOfFormat := e.whole || err == nil && as == e.format
		if !entry.IsDir() && isOfFormat && b.mayHoldFile(root, entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	if len(names) == 0 {
		return ""
	}
	var globs []string
	for _, g := range e.files {
		globs = append(globs, g.filled)
	}
	return fmt.Sprintf("%s has no %s; there are %s", root, wording.JoinFew(globs, 3), wording.JoinFew(names, maxExplained))
}

// listFields lists the fields of a file that can be carried one by one, in their order: texts and numbers that
// stand in mappings.
func (c *commitFiles) listFields(file string) (paths []string) {
	_, as, err := fileKind(file)
	if err != nil {
		return nil
	}
	d, err := c.readDocument(file, as)
	if err != nil {
		return nil
	}
	left := maxSpelled
	var walk func(n *yaml.Node, before []fieldpath.Segment)
	walk = func(n *yaml.Node, before []fieldpath.Segment) {
		if left--; left < 0 {
			return
		}
		switch n = resolveAlias(n); {
		case n.Kind == yaml.ScalarNode && len(before) > 0 && n.ShortTag() != "!!null":
			paths = append(paths, fieldpath.New(before...).String())
		case n.Kind == yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				step := fieldpath.Segment{Kind: fieldpath.Key, Key: n.Content[i].Value}
				walk(n.Content[i+1], append(before[:len(before):len(before)], step))
			}
		}
	}
	for _, root := range d.roots {
		walk(root, nil)
	}
	return paths
}

// explainSpelling is how one of the files spells a field that none of them has under an entry's path.
func (c *commitFiles) explainSpelling(e *carryEntry, files []string) string {
	for _, file := range files {
		_, as, err := fileKind(file)
		if err != nil {
			continue
		}
		d, err := c.readDocument(file, as)
		if err != nil {
			continue
		}
		for _, p := range e.paths {
			if spelled := d.otherSpelling(p.path.Segments()); spelled != "" {
				return spelled
			}
		}
	}
	return ""
}

// nameForEnvironment writes the placeholder for an environment that a file's name has as a word.
func nameForEnvironment(name, environment string) (string, bool) {
	base := path.Base(name)
	i := strings.Index(base, environment)
	if i < 0 || environment == "" {
		return "", false
	}
	end := i + len(environment)
	if i > 0 && isWordCharacter(base[i-1]) || end < len(base) && isWordCharacter(base[end]) {
		return "", false
	}
	return path.Join(path.Dir(name), base[:i]+"{{environment}}"+base[end:]), true
}

func isWordCharacter(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return false
}
