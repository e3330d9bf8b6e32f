package deps

import (
	"fmt"
	"path"
	"strings"
)

// manifestOptions are the options of a plain folder as a node's argument.
func manifestOptions(s *Source) string {
	shape := "f"
	if s.Recurse {
		shape = "r"
	}
	return strings.Join(append([]string{shape, s.Include, s.Exclude}, s.Libs...), "\x00")
}

// plain are the options of a plain folder.
type plain struct {
	shape            shape
	include, exclude string
	libs             []string
}

func parseManifestOptions(arg string) plain {
	f := strings.Split(arg, "\x00")
	out := plain{shape: manifests, include: f[1], exclude: f[2], libs: f[3:]}
	if f[0] == "r" {
		out.shape = recursive
	}
	return out
}

// manifests records a plain folder's manifests, and what Jsonnet among them
// imports.
func (w *walker) manifests(dir string, o plain) {
	at, err := w.find(dir)
	if err != nil {
		w.problem(dir, err)
		return
	}
	dir = at.path
	r := rule{dir: dir, shape: o.shape}
	if r.include, err = compile(o.include); err != nil {
		w.widen(dir, dir, fmt.Errorf("include %q is not a glob: %w", o.include, err))
		return
	}
	if r.exclude, err = compile(o.exclude); err != nil {
		w.widen(dir, dir, fmt.Errorf("exclude %q is not a glob: %w", o.exclude, err))
		return
	}
	w.out.rules = append(w.out.rules, r)
	if at.kind != folder {
		return
	}
	lookup := strings.Join(append([]string{dir}, o.libs...), "\x00")
	w.contents(dir, func(name string) bool {
		covered := r.covers(name)
		if covered && strings.HasSuffix(name, ".jsonnet") {
			w.use(roleJsonnet, name, lookup)
		}
		return covered
	})
}

// jsonnetFile follows the imports of one Jsonnet file. They are looked up from
// the file's folder and then from the others, so all of these count.
func (w *walker) jsonnetFile(name, lookup string) {
	at, err := w.find(name)
	if err != nil {
		w.problem(name, err)
		return
	}
	if at.kind != file {
		return
	}
	dir := path.Dir(name)
	list, err := w.importsOf(at)
	if err != nil {
		w.widen(dir, name, err)
	}
	from := append([]string{dir}, strings.Split(lookup, "\x00")...)
	for _, i := range list {
		for n, dir := range from {
			p, err := clean(dir, i.path)
			if err != nil {
				if n == 0 {
					w.problem(name, err)
				}
				continue
			}
			at, err := w.find(p)
			switch {
			case err != nil:
				w.problem(name, err)
			case at.kind == file && i.code:
				w.use(roleJsonnet, p, lookup)
			}
		}
	}
}

// importsOf parses a Jsonnet file once for all that import it.
func (w *walker) importsOf(at place) ([]imported, error) {
	w.mu.Lock()
	list, ok := w.jsonnet[at.path]
	w.mu.Unlock()
	if ok {
		return list, nil
	}
	data, err := w.read(at)
	if err != nil {
		return nil, err
	}
	if list, err = imports(data); err != nil {
		return list, err
	}
	w.mu.Lock()
	w.jsonnet[at.path] = list
	w.mu.Unlock()
	return list, nil
}
