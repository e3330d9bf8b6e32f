package deps

import (
	"path"
	"slices"
	"strings"
)

// kustomizationNames are the names that kustomize looks for, in its order.
var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// kustomizationFile finds the kustomization of a folder whose links are
// resolved; what it really is with its own links resolved, and its name in the
// folder. "" for none.
func (w *walker) kustomizationFile(dir string) (name string, at place) {
	var marks []string
	direct := w.view.at != nil && !w.view.anyLinks
	if direct { // the listing knows at once
		marks = w.view.marks[dir]
	}
	for _, base := range kustomizationNames {
		n := inFolder(dir, base)
		if direct && !slices.Contains(marks, base) {
			w.see(n)
			continue
		}
		if found, err := w.find(n); err == nil && found.kind == file && name == "" {
			name, at = n, found
		}
	}
	return name, at
}

// kustomization follows one folder's kustomization.
func (w *walker) kustomization(dir string) {
	at, err := w.find(dir)
	if err != nil {
		w.problem(dir, err)
		return
	}
	dir = at.path
	name, at := w.kustomizationFile(dir)
	if name == "" {
		return // a missing base: kustomize fails until one comes into being
	}
	data, err := w.read(at)
	if err != nil {
		w.widen(dir, name, err)
		return
	}
	refs, err := references(data, w.plain)
	if err != nil {
		w.widen(dir, name, err)
	}
	for _, r := range refs {
		w.reference(dir, name, r)
	}
}

// reference follows one path that a kustomization names.
func (w *walker) reference(dir, name string, r reference) {
	if r.kind == refRemote {
		w.remote(r.path)
		return
	}
	away := r.kind != refInline && remote(r.path)
	if away && strings.Contains(r.path, "://") {
		w.remote(r.path)
		return // kustomize never looks here for it
	}
	p, err := clean(dir, r.path)
	if err != nil {
		switch {
		case away:
			w.remote(r.path)
		case r.kind != refInline: // a plugin's string needn't be a path
			w.problem(name, err)
		}
		return
	}
	at, err := w.find(p)
	switch {
	case err != nil:
		w.widen(dir, name, err)
		return
	case away && at.kind != file:
		w.remote(r.path)
	}
	switch {
	case r.kind == refFolder:
		w.use(roleEverything, p, "")
	case r.kind == refInline:
		w.named(dir, p, at)
	case at.kind == folder && r.kind == refFile:
		w.use(roleEverything, p, "") // kustomize refuses it; should it once not, it counts
	case at.kind == folder && r.kind == refConfig:
		w.use(roleConfigs, dir, p)
	case at.kind == folder:
		w.use(roleKustomization, at.path, "")
	case r.kind == refConfig:
		w.use(roleConfig, dir, p)
	}
}

// config records a plugin's configuration, and every file that one of its
// strings names: which key means a file is the plugin's secret.
func (w *walker) config(dir, p string) {
	at, err := w.find(p)
	if err != nil {
		w.problem(p, err)
		return
	}
	if at.kind != file {
		return
	}
	data, err := w.read(at)
	if err != nil {
		w.widen(dir, p, err)
		return
	}
	w.candidates(dir, p, data)
}

// candidates follows the strings of a plugin's configuration.
func (w *walker) candidates(dir, name string, data []byte) {
	list, err := stringsOf(data)
	if err != nil {
		w.widen(dir, name, err)
	}
	for _, s := range list {
		w.candidate(dir, s)
	}
}

// configs follows a folder whose kustomization makes plugin configurations.
// The files that they name are looked for in dir, the folder of the
// kustomization that uses the plugins.
func (w *walker) configs(dir, p string) {
	k := key{roleConfigs, dir, p}
	if w.configured[k] {
		return // plugins whose configurations are made by these plugins
	}
	inner := &walker{work: w.work, plain: w.plain, given: w.given, out: w.out, seen: map[key]bool{}, configured: w.configured}
	if inner.configured == nil {
		inner.configured = map[key]bool{}
	}
	inner.configured[k] = true
	first := len(w.out.files)
	inner.use(roleKustomization, p, "")
	made := w.out.files[first:]
	for _, name := range made {
		at, err := w.view.find(name)
		if err != nil || at.kind != file {
			continue
		}
		data, err := w.read(at)
		if err != nil {
			w.widen(dir, name, err)
			continue
		}
		w.candidates(dir, name, data)
	}
}

// candidate follows a string of a plugin's configuration that may be a path,
// key=path, or the name of a chart.
func (w *walker) candidate(dir, s string) {
	try := []string{s, path.Join(defaultChartHome, s)}
	if _, value, ok := strings.Cut(s, "="); ok {
		try = append(try, value)
	}
	for _, c := range try {
		if c == "" {
			continue
		}
		p, err := clean(dir, c)
		if err != nil {
			continue
		}
		if at, err := w.find(p); err == nil {
			w.named(dir, p, at)
		}
	}
}

// named takes what a plugin's string names, if it is there. A string that
// means the folder itself, or one that it lies in, is hardly a path.
func (w *walker) named(dir, p string, at place) {
	if _, above := within(p, dir); at.kind == folder && p != dir && !above {
		w.use(roleEverything, p, "")
	}
}

// options follows a file of options of a source, and every file that it names.
func (w *walker) options(dir, name string) {
	p, err := clean(".", name)
	if err != nil {
		w.problem(name, err)
		return
	}
	at, err := w.find(p)
	if err != nil {
		w.problem(p, err)
		return
	}
	if at.kind != file {
		return
	}
	w.whatever(dir)
	data, err := w.read(at)
	if err != nil {
		w.widen(dir, p, err)
		return
	}
	list, err := stringsOf(data)
	if err != nil {
		w.widen(dir, p, err)
	}
	for _, s := range list {
		from := dir
		if rest, ok := strings.CutPrefix(s, "/"); ok {
			from, s = ".", rest
		} else if name, rest, ok := strings.Cut(s, "/"); ok && strings.HasPrefix(name, "$") {
			from, s = ".", rest
		}
		p, err := clean(from, s)
		if err != nil || p == dir {
			continue
		}
		at, err := w.find(p)
		if _, above := within(p, dir); err != nil || at.kind != folder || above {
			continue
		}
		w.folder(at.path)
	}
}
