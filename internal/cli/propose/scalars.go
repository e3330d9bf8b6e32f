package propose

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// scalar is one value of a file.
type scalar struct {
	kind     string // fieldedit's
	segments []fieldpath.Segment
	path     string // as a pipeline file has it
	key      string // the mapping's key that it is under
	value    string
	picks    []fieldpath.Segment // each tells the value's document from the file's others
}

// maxScalars bounds the values of one file that are read.
const maxScalars = 5000

// readScalars lists the values of a file: of a kustomization its images and the refs of its remote
// bases. A file that can't be read has none: the proof names its fault.
func readScalars(base string, data []byte) []scalar {
	documents := readDocuments(data)
	if appset.IsKustomization(base) {
		if len(documents) != 1 {
			return nil
		}
		return append(readImages(documents[0]), readRefs(documents[0])...)
	}
	kind := fieldedit.KindYAML
	if strings.HasSuffix(base, ".json") {
		if kind = fieldedit.KindJSON; len(documents) != 1 {
			return nil
		}
	}
	reader := scalarReader{kind: kind}
	for _, d := range documents {
		if kind == fieldedit.KindYAML {
			reader.picks = documentPicks(documents, d)
		}
		reader.read(d, nil, "")
	}
	if len(documents) == 1 {
		return reader.found
	}
	return pickDocuments(reader.found)
}

// scalarReader reads the values of a file's documents.
type scalarReader struct {
	kind  string
	picks []fieldpath.Segment // that tell the document from the file's others
	found []scalar
}

// read reads what is below a value, which is at a path and under a mapping's key.
func (s *scalarReader) read(n *yaml.Node, at []fieldpath.Segment, key string) {
	if len(s.found) >= maxScalars || len(at) > maxDepth*2 {
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if name := n.Content[i].Value; name != "" && name != "<<" {
				s.read(n.Content[i+1], appendSegment(at, fieldpath.Segment{Kind: fieldpath.Key, Key: name}), name)
			}
		}
	case yaml.SequenceNode:
		by := identifyingKey(n)
		for i, item := range n.Content {
			segment := fieldpath.Segment{Kind: fieldpath.Index, Index: i}
			if by != "" {
				segment = fieldpath.Segment{Kind: fieldpath.Match, KeyPath: []string{by}, Value: mappingValue(item, by)}
			} else if label, value := clusterLabel(n, item); label != "" {
				segment = fieldpath.Segment{Kind: fieldpath.Match, KeyPath: append(slices.Clone(clusterLabels), label), Value: value}
			}
			s.read(item, appendSegment(at, segment), key)
		}
	case yaml.ScalarNode:
		if n.Style == yaml.LiteralStyle || n.Style == yaml.FoldedStyle || n.Tag == "!!null" || len(at) == 0 {
			return
		}
		if path, ok := nameablePath(at); ok {
			s.found = append(s.found, scalar{kind: s.kind, segments: at, path: path, key: key, value: n.Value, picks: s.picks})
		}
	}
}

// nameablePath writes a path; not ok where no pipeline file can name it.
func nameablePath(segments []fieldpath.Segment) (string, bool) {
	path := fieldpath.New(segments...).String()
	_, err := fieldpath.Parse(path)
	return path, err == nil && !strings.Contains(path, "{{")
}

func appendSegment(at []fieldpath.Segment, s fieldpath.Segment) []fieldpath.Segment {
	return append(at[:len(at):len(at)], s)
}

// identifyingKeys are those by which people tell the items of a list apart.
var identifyingKeys = []string{"name", "env", "environment", "cluster", "stage", "component", "app", "id",
	"envName", "environmentName", "clusterName", "stageName", "appName"}

// identifyingKey is the key that all items of a list have with a value of its own each.
func identifyingKey(list *yaml.Node) string {
	for _, key := range identifyingKeys {
		seen := map[string]bool{}
		for _, item := range list.Content {
			if v := mappingValue(item, key); v != "" {
				seen[v] = true
			}
		}
		if len(seen) == len(list.Content) {
			return key
		}
	}
	return ""
}

// clusterLabels lead from a generator to the labels that pick its clusters.
var clusterLabels = []string{"clusters", "selector", "matchLabels"}

// environmentLabels are what people call the label by which a cluster says its environment.
var environmentLabels = []string{"environment", "env", "stage", "tier"}

// clusterLabel is the label that tells a generator from all others of its list by the clusters that it
// picks, and its value; "" where none does.
func clusterLabel(list, item *yaml.Node) (label, value string) {
	for _, label := range environmentLabels {
		value := mappingValue(mappingAt(item, clusterLabels), label)
		if value == "" {
			continue
		}
		same := 0
		for _, other := range list.Content {
			if mappingValue(mappingAt(other, clusterLabels), label) == value {
				same++
			}
		}
		if same == 1 {
			return label, value
		}
	}
	return "", ""
}

// mappingAt is what is at keys below a mapping; an empty node where nothing is.
func mappingAt(n *yaml.Node, keys []string) *yaml.Node {
	for _, key := range keys {
		next := &yaml.Node{}
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				next = n.Content[i+1]
			}
		}
		n = next
	}
	return n
}

// mappingValue is the text that a mapping has under a key; "" where it has none.
func mappingValue(n *yaml.Node, key string) string {
	if n.Kind != yaml.MappingNode {
		return ""
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key && n.Content[i+1].Kind == yaml.ScalarNode {
			return n.Content[i+1].Value
		}
	}
	return ""
}

// readImages are the images of a kustomization, by name: a tag or a digest is the value.
func readImages(root *yaml.Node) []scalar {
	var out []scalar
	for i := 0; root.Kind == yaml.MappingNode && i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != "images" || root.Content[i+1].Kind != yaml.SequenceNode {
			continue
		}
		for _, item := range root.Content[i+1].Content {
			name, key := mappingValue(item, "name"), "newTag"
			if mappingValue(item, key) == "" {
				key = "digest"
			}
			if value := mappingValue(item, key); name != "" && value != "" {
				out = append(out, scalar{kind: fieldedit.KindImage, path: name, key: key, value: value})
			}
		}
	}
	return out
}

// readRefs are the refs of a kustomization's remote bases, by address.
func readRefs(root *yaml.Node) []scalar {
	var out []scalar
	for _, list := range []string{"resources", "bases", "components"} {
		for _, item := range mappingAt(root, []string{list}).Content {
			address, ref, ok := fieldedit.ParseRemote(item.Value)
			if ok && ref != "" && !slices.ContainsFunc(out, func(s scalar) bool { return s.path == address }) {
				out = append(out, scalar{kind: fieldedit.KindRef, path: address, value: ref})
			}
		}
	}
	return out
}
