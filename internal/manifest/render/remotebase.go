package render

//lint:file-ignore SA1019 people have kustomizations with deprecated fields.

import (
	"bytes"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
	"sigs.k8s.io/kustomize/api/types"
)

// externalMount is where kustomize finds the trees of remote bases, each below a number.
const externalMount = "/external/"

// remoteBase is a base in another repository.
type remoteBase struct {
	External
	path string // in the repository; "." is its root
}

// parseRemoteBase takes a reference apart as kustomize does (api/internal/git, NewRepoSpecFromURL):
// the repository ends at //, at .git or _git, or after its owner and name. ok is false for what
// may as well be a file on the web.
func parseRemoteBase(ref string) (b remoteBase, ok bool) {
	address, query, hasQuery := strings.Cut(strings.TrimPrefix(ref, "git::"), "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return remoteBase{}, false
	}
	b.Revision = values.Get("ref")
	if b.Revision == "" {
		b.Revision = values.Get("version") // kustomize's documentation, "remoteBuild"
	}
	scheme, rest, hasScheme := strings.Cut(address, "://")
	if !hasScheme {
		scheme, rest = "", address
	}
	repository, below, found := strings.Cut(rest, "//")
	if !found {
		repository, below, found = cutRepository(rest)
	}
	isFile := path.Ext(rest) == ".yaml" || path.Ext(rest) == ".yml" || path.Ext(rest) == ".json"
	if !found || isFile && !hasQuery {
		return remoteBase{}, false
	}
	switch {
	case hasScheme:
		repository = scheme + "://" + repository
	case strings.HasPrefix(strings.ToLower(repository), "github.com"):
		repository = "https://" + strings.Replace(repository, ":", "/", 1)
	}
	clean, inside := cleanTreePath(strings.Trim(below, "/"))
	b.RepoURL, b.path = repository, clean
	return b, inside && !strings.HasPrefix(strings.ToLower(scheme), "file")
}

// RemoteRepository is the address of the repository that a kustomization's reference names; false: of none.
func RemoteRepository(ref string) (address string, ok bool) {
	b, ok := parseRemoteBase(ref)
	return b.RepoURL, ok
}

// cutRepository finds the end of a repository's address that has no // after it.
func cutRepository(rest string) (repository, below string, ok bool) {
	for _, end := range []string{".git", "/_git/"} {
		i := strings.Index(rest, end)
		if i < 0 {
			continue
		}
		after := i + len(end)
		if end == "/_git/" { // Azure DevOps: the repository's name follows
			name, _, _ := strings.Cut(rest[after:], "/")
			after += len(name)
		}
		if after == len(rest) || rest[after] == '/' {
			return rest[:after], strings.TrimPrefix(rest[after:], "/"), true
		}
	}
	const hostOwnerName = 3
	n := hostOwnerName
	if first, _, _ := strings.Cut(rest, "/"); strings.Contains(first, ":") && strings.Contains(first, "@") { // git@git.example:acme/web
		n--
	}
	parts := strings.Split(rest, "/")
	if len(parts) < n {
		return "", "", false
	}
	return strings.Join(parts[:n], "/"), strings.Join(parts[n:], "/"), true
}

// mountRemoteBases gives a kustomization whose remote bases that are known here are folders: those
// where their trees are mounted.
func (k *kustomizeFS) mountRemoteBases(tree mountedTree, name string, data []byte) ([]byte, error) {
	var spec types.Kustomization
	if err := spec.Unmarshal(data); err != nil {
		return data, nil // kustomize says it better
	}
	folders := map[string]string{}
	for _, ref := range slices.Concat(spec.Resources, spec.Components, spec.Bases) {
		if !isWebAddress(ref) && !isGitAddress(ref) {
			continue
		}
		base, ok := parseRemoteBase(ref)
		if !ok {
			continue
		}
		if at := k.mount(base.External); at != "" {
			up := strings.Repeat("../", strings.Count(path.Join(tree.at, path.Dir(name)), "/"))
			folders[ref] = up + strings.TrimPrefix(path.Join(at, base.path), "/")
		}
	}
	if len(folders) == 0 {
		return data, nil
	}
	if len(spec.BuildMetadata) > 0 {
		return nil, newUnrenderable(name + " has remote bases and buildMetadata, which would say where they lie here")
	}
	return replaceReferences(name, data, folders)
}

// mount is where the tree of an external is; "" where it isn't known.
func (k *kustomizeFS) mount(e External) string {
	key := e.key()
	if at := k.mounted[key]; at != "" {
		return at
	}
	files := k.external(e)
	if files == nil {
		return ""
	}
	at := externalMount + strconv.Itoa(len(k.mounted))
	k.mounted[key], k.externals[at] = at, files
	return at
}

// replaceReferences writes a kustomization with other references in its lists of folders.
func replaceReferences(name string, data []byte, folders map[string]string) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return data, nil
	}
	top := doc.Content[0].Content
	for i := 0; i+1 < len(top); i += 2 {
		if !slices.Contains([]string{"resources", "components", "bases"}, top[i].Value) {
			continue
		}
		for _, item := range top[i+1].Content {
			if item.Kind == yaml.AliasNode {
				item = item.Alias
			}
			if folder, is := folders[item.Value]; is {
				item.Value, item.Style = folder, yaml.DoubleQuotedStyle
			}
		}
	}
	return yaml.Marshal(&doc)
}
