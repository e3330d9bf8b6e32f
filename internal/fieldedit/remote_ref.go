package fieldedit

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// refKeys are the parameters of a remote base's query that say which revision it is (kustomize's
// documentation, "remoteBuild": version is another word for ref).
var refKeys = []string{"ref", "version"}

// remoteLists are the lists of a kustomization that may have remote bases, in the order in which
// they are searched. Each has its name in a release: to kustomize bases are resources.
var remoteLists = []struct{ key, list string }{{"resources", "resources"}, {"bases", "resources"}, {"components", "components"}}

// remoteBase is an entry of such a list, taken apart.
type remoteBase struct {
	text       string
	address    string // all before the query
	hasRef     bool
	start, end int  // where in text the ref is
	unsure     bool // there are several
}

func parseRemote(text string) remoteBase {
	address, query, _ := strings.Cut(text, "?")
	r := remoteBase{text: text, address: address}
	at := len(address) + 1
	for part := range strings.SplitSeq(query, "&") {
		if key, _, ok := strings.Cut(part, "="); ok && slices.Contains(refKeys, key) {
			r.unsure = r.hasRef
			r.hasRef, r.start, r.end = true, at+len(key)+1, at+len(part)
		}
		at += len(part) + 1
	}
	return r
}

// ref is the base's ref, as it is written; "" without one.
func (r remoteBase) ref() string { return r.text[r.start:r.end] }

// ParseRemote takes an entry of a kustomization's resources, bases or components apart: the address
// of a remote base, and its ref as it is written. ok is false where it has none, or several.
func ParseRemote(text string) (address, ref string, ok bool) {
	r := parseRemote(text)
	return r.address, r.ref(), r.hasRef && !r.unsure
}

func refPath(list, remote string) string { return fmt.Sprintf("%s[%s].ref", list, remote) }

// parseRefPath takes a remote base's path apart.
func parseRefPath(path string) (list, remote string, err error) {
	list, rest, _ := strings.Cut(path, "[")
	remote, found := strings.CutSuffix(rest, "].ref")
	known := slices.ContainsFunc(remoteLists, func(l struct{ key, list string }) bool { return l.list == list })
	if !found || !known || remote == "" {
		return "", "", fmt.Errorf("%q isn't a remote base's field: it must be resources[ADDRESS].ref or components[ADDRESS].ref", path)
	}
	return list, remote, nil
}

// remoteItem is an entry of a list that may have remote bases.
type remoteItem struct {
	remoteBase
	list string
	node *yaml.Node
	path []fieldpath.Segment
}

// walkRemotes calls do with each entry of the lists that may have remote bases.
func (d *document) walkRemotes(do func(remoteItem) error) error {
	for _, l := range remoteLists {
		key := fieldpath.Segment{Kind: fieldpath.Key, Key: l.key}
		s, err := d.findPath(fieldpath.New(key))
		if err != nil {
			return withLocation(err, "", l.key)
		}
		if s.node == nil || resolveAlias(s.node).Kind != yaml.SequenceNode {
			continue // what isn't a list, kustomize refuses
		}
		for i, item := range resolveAlias(s.node).Content {
			n := resolveAlias(item)
			if n.Kind != yaml.ScalarNode || !strings.Contains(n.Value, "?") {
				continue
			}
			at := []fieldpath.Segment{key, {Kind: fieldpath.Index, Index: i}}
			if err := do(remoteItem{parseRemote(n.Value), l.list, item, at}); err != nil {
				return err
			}
		}
	}
	return nil
}

// remoteAddresses are those of the remote bases that have a ref and whose address a glob matches.
func (d *document) remoteAddresses(globs []string) ([]fieldAddress, error) {
	var out []fieldAddress
	known := map[string]bool{}
	err := d.walkRemotes(func(r remoteItem) error {
		a := fieldAddress{kind: KindRef, list: r.list, remote: r.address}
		if !r.hasRef || known[a.String()] || !matchesAny(globs, r.address) {
			return nil
		}
		if len(out) == maxPicked {
			return newRefusal(r.node.Line, "kustomizeRefs picks more than %d remote bases: narrow it", maxPicked)
		}
		known[a.String()] = true
		out = append(out, a)
		return nil
	})
	return out, err
}

// findRemote finds a remote base by its address. Bases that can't be told apart are refused.
func (d *document) findRemote(list, remote string) (nodeLookup, error) {
	var found *remoteItem
	err := d.walkRemotes(func(r remoteItem) error {
		switch {
		case r.list != list || r.address != remote:
			return nil
		case r.unsure:
			return newRefusal(r.node.Line, "the remote base has several of ref= and version=: keep one")
		case found != nil:
			return newRefusal(r.node.Line, "the remote base is there twice (also on line %d): remove one", found.node.Line)
		}
		found = &r
		return nil
	})
	if err != nil {
		return nodeLookup{}, err
	}
	if found == nil {
		return nodeLookup{mismatch: newRefusal(0, "the kustomization has no remote base %s: add it by hand", remote)}, nil
	}
	return d.findPath(fieldpath.New(found.path...))
}

// setRef sets the ref of the remote base that was found: those bytes of its text and no others. The
// document is d itself where it has that ref.
func (d *document) setRef(s nodeLookup, value string) (next *document, old string, err error) {
	if s.node == nil {
		return nil, "", s.mismatch
	}
	n, err := requireScalar(s.node)
	if err != nil {
		return nil, "", err
	}
	r := parseRemote(n.Value)
	odd := func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) || c == '&' }
	switch {
	case !r.hasRef:
		return nil, "", newRefusal(s.node.Line, "the remote base has no ref= here: add it by hand")
	case r.ref() == value:
		return d, value, nil
	case s.uneditable != nil:
		return nil, "", s.uneditable
	case strings.ContainsFunc(value, odd):
		return nil, "", newRefusal(s.node.Line, "%q isn't a ref that a URL can have", value)
	}
	if err := checkEditable(s.node); err != nil {
		return nil, "", err
	}
	start, end, err := d.scalarSpan(n)
	if err != nil {
		return nil, "", err
	}
	if n.Style&quotedStyles != 0 {
		start, end = start+1, end-1
	}
	if string(d.data[start:end]) != n.Value {
		return nil, "", newRefusal(n.Line, "it is written with escapes: write it plainly")
	}
	text := n.Value[:r.start] + value + n.Value[r.end:]
	next, err = d.acceptChange(spliceBytes(d.data, start+r.start, start+r.end, value), replaceScalar(n, text))
	return next, r.ref(), err
}

// RemoteRef is a remote base of a kustomization with the ref that is asked of it.
type RemoteRef struct {
	List    string // resources or components
	Address string
	Ref     string
}

// UncarriedRefs lists the refs of the remote bases in a kustomization that the overlay doesn't
// carry. The file is given from the repository's root, at or below one of the overlay's own roots.
// There are none where there is no such file. The error is that of a file that can't be read
// surely.
func UncarriedRefs(tree fs.FS, o Overlay, file string) ([]RemoteRef, error) {
	b, err := o.resolvePlaceholders()
	if err != nil {
		return nil, err
	}
	f := newFiles(tree, b.parseCache)
	f.onlyFile = file
	d, err := f.readDocument(file, formatYAML)
	if errors.Is(err, errAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	carried, err := f.locateFields(b)
	if err != nil {
		return nil, err
	}
	var out []RemoteRef
	err = d.walkRemotes(func(r remoteItem) error {
		isCarried := slices.ContainsFunc(carried, func(l Location) bool {
			switch {
			case l.File != file:
				return false
			case l.Field.Kind == KindRef:
				return l.address.list == r.list && l.address.remote == r.address
			}
			return l.Field.Kind == KindFile || l.Field.Kind == KindYAML && l.Line == r.node.Line
		})
		if r.hasRef && !r.unsure && !isCarried {
			out = append(out, RemoteRef{r.list, r.address, r.ref()})
		}
		return nil
	})
	return out, err
}

// Repository is where the base lies, as far as its address tells: up to what is a folder in it.
func (r RemoteRef) Repository() string {
	scheme, rest, found := strings.Cut(r.Address, "://")
	if !found {
		scheme, rest = "", r.Address
	}
	rest, _, _ = strings.Cut(rest, "//")
	if name, _, found := strings.Cut(rest+"/", ".git/"); found {
		return scheme + "://" + name
	}
	parts := strings.Split(rest, "/")
	const hostOwnerName = 3
	n := hostOwnerName
	if scheme == "" && strings.Contains(parts[0], ":") { // git@git.example:acme/web
		n--
	}
	return scheme + "://" + strings.Join(parts[:min(n, len(parts))], "/")
}
