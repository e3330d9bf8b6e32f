package deps

import (
	"path"
	"slices"
	"strings"
)

// kustomizationNames are the names that kustomize looks for, in its order.
var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// findKustomization finds the kustomization of a folder whose links are
// resolved; what it really is with its own links resolved, and its name in the
// folder. "" for none.
func (w *walker) findKustomization(dir string) (name string, at location) {
	var layoutFiles []string
	direct := w.tree.fileNumbers != nil && !w.tree.hasLinks
	if direct { // the listing knows at once
		layoutFiles = w.tree.layoutFiles[dir]
	}
	for _, base := range kustomizationNames {
		n := inFolder(dir, base)
		if direct && !slices.Contains(layoutFiles, base) {
			w.recordPath(n)
			continue
		}
		if found, err := w.findPath(n); err == nil && found.kind == kindFile && name == "" {
			name, at = n, found
		}
	}
	return name, at
}

// followKustomization follows one folder's kustomization.
func (w *walker) followKustomization(dir string) {
	at, ok := w.lookUp(dir)
	if !ok {
		return
	}
	dir = at.path
	name, at := w.findKustomization(dir)
	if name == "" {
		return // a missing base: kustomize fails until one comes into being
	}
	data, ok := w.readOrWiden(dir, name, at)
	if !ok {
		return
	}
	refs, err := parseReferences(data, w.plain)
	if err != nil {
		w.widenToFolder(dir, name, err)
	}
	for _, r := range refs {
		w.followReference(dir, name, r)
	}
}

// followReference follows one path that a kustomization names.
func (w *walker) followReference(dir, name string, r reference) {
	if r.kind == refRemote {
		w.recordRemote(r.path)
		return
	}
	leavesRepository := r.kind != refConfigString && isRemote(r.path)
	if leavesRepository && strings.Contains(r.path, "://") {
		w.recordRemote(r.path)
		return // kustomize never looks here for it
	}
	p, err := joinPath(dir, r.path)
	if err != nil {
		switch {
		case leavesRepository:
			w.recordRemote(r.path)
		case r.kind != refConfigString: // a plugin's string needn't be a path
			w.recordProblem(name, err)
		}
		return
	}
	at, err := w.findPath(p)
	switch {
	case err != nil:
		w.widenToFolder(dir, name, err)
		return
	case leavesRepository && at.kind != kindFile:
		w.recordRemote(r.path)
	}
	switch {
	case r.kind == refFolder:
		w.useNode(roleEverything, p, "")
	case r.kind == refConfigString:
		w.followNamedFolder(dir, p, at)
	case at.kind == kindFolder && r.kind == refFile:
		w.useNode(roleEverything, p, "") // kustomize refuses it; should it once not, it counts
	case at.kind == kindFolder && r.kind == refConfig:
		w.useNode(rolePluginConfigs, dir, p)
	case at.kind == kindFolder:
		w.useNode(roleKustomization, at.path, "")
	case r.kind == refConfig:
		w.useNode(rolePluginConfig, dir, p)
	}
}

// followPluginConfig records a plugin's configuration, and every file that one of its
// strings names: which key means a file is the plugin's secret.
func (w *walker) followPluginConfig(dir, p string) {
	if at, ok := w.lookUp(p); ok {
		w.followConfigStrings(dir, p, at)
	}
}

// followConfigStrings follows the strings of a plugin's configuration, where it is a file.
func (w *walker) followConfigStrings(dir, name string, at location) {
	for _, s := range w.stringsOf(dir, name, at) {
		w.followConfigString(dir, s)
	}
}

// stringsOf are the strings in a YAML file; none for what is no file.
func (w *walker) stringsOf(dir, name string, at location) []string {
	if at.kind != kindFile {
		return nil
	}
	data, ok := w.readOrWiden(dir, name, at)
	if !ok {
		return nil
	}
	list, err := collectStrings(data)
	if err != nil {
		w.widenToFolder(dir, name, err)
	}
	return list
}

// followPluginConfigs follows a folder whose kustomization makes plugin configurations.
// The files that they name are looked for in dir, the folder of the
// kustomization that uses the plugins.
func (w *walker) followPluginConfigs(dir, p string) {
	k := nodeKey{rolePluginConfigs, dir, p}
	if w.activeConfigs[k] {
		return // plugins whose configurations are made by these plugins
	}
	inner := &walker{sharedState: w.sharedState, plain: w.plain, prefetched: w.prefetched, result: w.result, seen: map[nodeKey]bool{},
		activeConfigs: w.activeConfigs}
	if inner.activeConfigs == nil {
		inner.activeConfigs = map[nodeKey]bool{}
	}
	inner.activeConfigs[k] = true
	first := len(w.result.files)
	inner.useNode(roleKustomization, p, "")
	configFiles := w.result.files[first:]
	for _, name := range configFiles {
		if at, err := w.tree.find(name); err == nil {
			w.followConfigStrings(dir, name, at)
		}
	}
}

// followConfigString follows a string of a plugin's configuration that may be a path,
// key=path, or the name of a chart.
func (w *walker) followConfigString(dir, s string) {
	try := []string{s, path.Join(defaultChartHome, s)}
	if _, value, ok := strings.Cut(s, "="); ok {
		try = append(try, value)
	}
	for _, c := range try {
		if c == "" {
			continue
		}
		p, err := joinPath(dir, c)
		if err != nil {
			continue
		}
		if at, err := w.findPath(p); err == nil {
			w.followNamedFolder(dir, p, at)
		}
	}
}

// followNamedFolder takes what a plugin's string names, if it is there. A string that
// means the folder itself, or one that it lies in, is hardly a path.
func (w *walker) followNamedFolder(dir, p string, at location) {
	if _, above := cutFolder(p, dir); at.kind == kindFolder && p != dir && !above {
		w.useNode(roleEverything, p, "")
	}
}

// followOptions follows a file of options of a source, and every file that it names.
func (w *walker) followOptions(dir, name string) {
	p, at, ok := w.lookUpWritten(name)
	if !ok || at.kind != kindFile {
		return
	}
	w.followUnknownLayout(dir)
	for _, s := range w.stringsOf(dir, p, at) {
		from := dir
		if rest, ok := strings.CutPrefix(s, "/"); ok {
			from, s = ".", rest
		} else if name, rest, ok := strings.Cut(s, "/"); ok && strings.HasPrefix(name, "$") {
			from, s = ".", rest
		}
		p, err := joinPath(from, s)
		if err != nil || p == dir {
			continue
		}
		at, err := w.findPath(p)
		if _, above := cutFolder(p, dir); err != nil || at.kind != kindFolder || above {
			continue
		}
		w.followFolder(at.path)
	}
}
