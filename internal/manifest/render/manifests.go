package render

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/liftlock/liftlock/internal/wording"
)

// Manifests are the objects that a target asks for. They marshal to JSON and
// back without loss.
type Manifests struct {
	Objects []Object `json:"objects"` // sorted by kind of object, namespace and name; no two of one identity
	Reads   ReadSet  `json:"reads"`
	// Notes say what was assumed, for people; sorted.
	Notes []string `json:"notes,omitempty"`
	// Digest is the same for two renderings exactly when their objects are;
	// reads and notes don't count.
	Digest string `json:"digest"`
}

// Object is one Kubernetes object as its source gives it. Namespace is empty
// where the manifest names none: Argo CD then takes the destination's.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// JSON is the whole object, with its keys sorted: equal objects are equal bytes.
	JSON json.RawMessage `json:"json"`
}

// identity is what makes two objects the same one in a cluster: the version
// of its API doesn't.
type identity struct{ group, kind, namespace, name string }

func (o *Object) toIdentity() identity {
	group, _, ok := strings.Cut(o.APIVersion, "/")
	if !ok {
		group = ""
	}
	return identity{group: group, kind: o.Kind, namespace: o.Namespace, name: o.Name}
}

func (id identity) compare(b identity) int {
	return cmp.Or(cmp.Compare(id.group, b.group), cmp.Compare(id.kind, b.kind), cmp.Compare(id.namespace, b.namespace),
		cmp.Compare(id.name, b.name))
}

// objectCollector gathers a target's objects.
type objectCollector struct {
	objects []Object
	size    int
	notes   map[string]bool
}

func (oc *objectCollector) addNote(text string) {
	if oc.notes == nil {
		oc.notes = map[string]bool{}
	}
	oc.notes[text] = true
}

// addYAML takes every object of a stream of YAML or JSON documents; empty ones
// are skipped and lists are their items, as the repo server does.
func (oc *objectCollector) addYAML(data []byte) error {
	if err := checkAliases(data); err != nil {
		return err
	}
	dec := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var doc runtime.RawExtension
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("a manifest is not valid YAML: %w", err)
		}
		raw := bytes.TrimSpace(doc.Raw)
		if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
			continue
		}
		if err := oc.addJSON(raw); err != nil {
			return err
		}
	}
}

// addJSON takes one object, or the items of a list.
func (oc *objectCollector) addJSON(raw []byte) error {
	fields, err := decodeFields(raw)
	if err != nil {
		return fmt.Errorf("a manifest is no object: %w", err)
	}
	if kind, _ := fields["kind"].(string); kind == "" {
		return fmt.Errorf("a manifest has no kind: %s", clipExcerpt(string(raw)))
	}
	switch items, has := fields["items"]; {
	case has && items == nil && fields["spec"] == nil && fields["status"] == nil:
		return nil // a list of nothing
	case has:
		if list, ok := items.([]any); ok {
			return oc.addItems(list)
		}
	}
	return oc.addObject(fields)
}

func (oc *objectCollector) addItems(list []any) error {
	for _, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			return errors.New("a list has an item that is no object")
		}
		if err := oc.addObject(fields); err != nil {
			return err
		}
	}
	return nil
}

func (oc *objectCollector) addObject(fields map[string]any) error {
	metadata, _ := fields["metadata"].(map[string]any)
	text := func(m map[string]any, key string) string { s, _ := m[key].(string); return s }
	o := Object{APIVersion: text(fields, "apiVersion"), Kind: text(fields, "kind"), Namespace: text(metadata, "namespace"),
		Name: text(metadata, "name")}
	if o.Name == "" { // a hook may have a generateName only
		o.Name = text(metadata, "generateName")
	}
	var err error
	if o.JSON, err = encodeFields(fields); err != nil {
		return fmt.Errorf("%s %s: %w", o.Kind, o.Name, err)
	}
	oc.objects = append(oc.objects, o)
	if len(oc.objects) > maxObjects {
		return fmt.Errorf("%w: more than %d objects", ErrLimit, maxObjects)
	}
	if oc.size += len(o.JSON); oc.size > maxOutputBytes {
		return fmt.Errorf("%w: manifests of more than %d bytes", ErrLimit, maxOutputBytes)
	}
	return nil
}

// buildManifests sorts what was gathered. Where an object is given twice the last counts, as in the
// controller.
func (oc *objectCollector) buildManifests(reads ReadSet) *Manifests {
	last := make(map[identity]int, len(oc.objects))
	for i := range oc.objects {
		id := oc.objects[i].toIdentity()
		if _, twice := last[id]; twice {
			oc.addNote(fmt.Sprintf("%s %s is given more than once; the last one counts", oc.objects[i].Kind, oc.objects[i].Name))
		}
		last[id] = i
	}
	m := &Manifests{Objects: make([]Object, 0, len(last)), Reads: reads}
	for i := range oc.objects {
		if last[oc.objects[i].toIdentity()] == i {
			m.Objects = append(m.Objects, oc.objects[i])
		}
	}
	slices.SortFunc(m.Objects, func(a, b Object) int { return a.toIdentity().compare(b.toIdentity()) })
	m.Notes = slices.Sorted(maps.Keys(oc.notes))
	m.Digest = DigestObjects(m.Objects)
	return m
}

// DigestObjects is a digest over the objects' bytes, which hold their identities.
func DigestObjects(objects []Object) string {
	h := sha256.New()
	for i := range objects {
		h.Write(objects[i].JSON) // a hash never fails
		h.Write([]byte{'\n'})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// decodeFields decodes a JSON object, numbers as they are written.
func decodeFields(raw []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var fields map[string]any
	if err := dec.Decode(&fields); err != nil {
		return nil, err
	}
	if fields == nil {
		return nil, errors.New("it is null")
	}
	return fields, nil
}

// encodeFields writes an object with its keys sorted, and escaped as
// [json.Marshal] does: marshalling the result again doesn't change it.
func encodeFields(fields map[string]any) ([]byte, error) { return json.Marshal(fields) }

// checkAliases refuses YAML whose aliases, written out, make it much larger:
// kustomize writes them out without a limit of its own. Bytes that are no
// YAML pass; their reader complains.
func checkAliases(data []byte) error {
	if bytes.IndexByte(data, '*') < 0 || bytes.IndexByte(data, '&') < 0 {
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		if err := dec.Decode(&doc); err != nil {
			return nil
		}
		c := aliasCounter{sizes: map[*yaml.Node]int{}}
		total, err := c.countNodes(&doc)
		if err != nil {
			return err
		}
		if total-c.written > maxAliasedNodes {
			return fmt.Errorf("%w: YAML whose aliases stand for more than %d nodes", ErrLimit, maxAliasedNodes)
		}
	}
}

// aliasCounter counts the nodes of a document as it is written, and of each
// anchor with its aliases written out.
type aliasCounter struct {
	written int
	sizes   map[*yaml.Node]int
}

// countNodes is how many nodes n is with its aliases written out, at most a number
// that is far too many.
func (a *aliasCounter) countNodes(n *yaml.Node) (int, error) {
	const many = 1 << 40
	if n.Kind == yaml.AliasNode {
		size, known := a.sizes[n.Alias]
		if !known {
			return 0, fmt.Errorf("%w: line %d: the alias *%s is part of what it stands for", ErrLimit, n.Line, n.Value)
		}
		return size, nil
	}
	a.written++
	total := 1
	for _, child := range n.Content {
		size, err := a.countNodes(child)
		if err != nil {
			return 0, err
		}
		total = min(total+size, many)
	}
	if n.Anchor != "" {
		a.sizes[n] = total
	}
	return total, nil
}

func clipExcerpt(s string) string { return wording.Clip(s, 80) }
