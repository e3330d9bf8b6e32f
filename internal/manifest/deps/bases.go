package deps

import "path"

// Bases lists the folders that a kustomization's bytes may build on. They are its resources, bases
// and components that are neither remote nor, by their names, files of manifests. They are as
// written there; an error means that the list may not be complete.
func Bases(data []byte) ([]string, error) {
	refs, err := parseReferences(data, &plainParser{})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, r := range refs {
		if r.kind == refBase && !isRemote(r.path) && !isManifestName(r.path) {
			out = append(out, r.path)
		}
	}
	return out, nil
}

func isManifestName(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}
