package strictyaml

import (
	"encoding"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Defaulter is a type that knows its own defaults. SetDefaults is called on a
// new value (the decoded one itself, an element of a list or a map, what a
// pointer points to) before it is decoded into.
type Defaulter interface{ SetDefaults() }

// Shorthand is a struct that may be written without its mapping too: a value that is none
// is that of the key that ShorthandKey names.
type Shorthand interface{ ShorthandKey() string }

// Option changes how a document is decoded.
type Option func(*decoder)

// UnsupportedKeys says of keys that are known but not supported yet why, by their path with
// [] for any index: "spec.environments[].branch". Giving one is that error.
func UnsupportedKeys(why map[string]string) Option {
	return func(d *decoder) { d.unsupported = why }
}

// Expand replaces ${NAME} in text values by what lookup gives; $${ stays a literal ${. A variable
// that lookup doesn't have is an error that names it. The kind of an expanded plain value (text, a
// number) is decided afterwards.
func Expand(lookup func(name string) (string, bool)) Option {
	return func(d *decoder) { d.lookup = lookup }
}

// Decode reads a file of exactly one document into the struct that into points
// to. The error is an [Errors] with everything that is wrong.
func Decode(file string, data []byte, into any, options ...Option) error {
	docs, err := Parse(file, data)
	if err != nil {
		return err
	}
	switch len(docs) {
	case 0:
		return Errors{{File: file, Message: "the file is empty"}}
	case 1:
		return docs[0].Decode(into, options...)
	}
	return Errors{{File: file, Line: docs[1].Line(), Message: "a second document; this file holds only one"}}
}

// Decode reads the document into the struct that into points to. The error is
// an [Errors] with everything that is wrong; what could be read has been set.
// It panics when into isn't a pointer or holds a type that it can't decode,
// which is a mistake in the program, not in the document.
func (d *Document) Decode(into any, options ...Option) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		panic(fmt.Sprintf("strictyaml: decode into %T, which is not a pointer", into))
	}
	dec := &decoder{doc: d}
	for _, o := range options {
		o(dec)
	}
	setDefaults(v.Elem())
	dec.decodeValue(d.root, v.Elem(), "")
	return dec.errs.Err()
}

type decoder struct {
	doc         *Document
	unsupported map[string]string
	lookup      func(string) (string, bool)
	errs        Errors
}

func (d *decoder) errorf(n *yaml.Node, path, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if path != "" {
		message = path + ": " + message
	}
	d.errs = append(d.errs, Error{File: d.doc.file, Line: n.Line, Column: n.Column, Message: message})
}

func setDefaults(v reflect.Value) {
	if v.CanAddr() {
		if s, ok := v.Addr().Interface().(Defaulter); ok {
			s.SetDefaults()
		}
	}
}

// decodeValue decodes a node. Errors are placed at the alias where one was used,
// because that is what the person who reads the path will look at.
func (d *decoder) decodeValue(n *yaml.Node, v reflect.Value, path string) {
	content := followAlias(n)
	if isNull(content) {
		d.errorf(n, path, "no value; give one or remove the key")
		return
	}
	if v.CanAddr() {
		switch t := v.Addr().Interface().(type) {
		case yaml.Unmarshaler:
			if err := t.UnmarshalYAML(content); err != nil {
				d.errorf(n, path, "%s", err)
			}
			return
		case encoding.TextUnmarshaler:
			d.decodeText(n, t, path)
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		setDefaults(v.Elem())
		d.decodeValue(n, v.Elem(), path)
	case reflect.Struct:
		if field, ok := findShorthand(v); ok && content.Kind == yaml.ScalarNode {
			d.decodeValue(n, field, path)
		} else if ok && content.Kind != yaml.MappingNode {
			d.errorf(n, path, "expected text or a mapping, found %s%s", describeKind(n), hintAtQuotes(content))
		} else if d.expectKind(n, v, yaml.MappingNode, path, "a mapping with "+describeKeys(v.Type())) {
			d.decodeStruct(content, v, path)
		}
	case reflect.Map:
		if d.expectKind(n, v, yaml.MappingNode, path, "a mapping") {
			d.decodeMap(content, v, path)
		}
	case reflect.Slice:
		if d.expectKind(n, v, yaml.SequenceNode, path, "a list") {
			d.decodeList(content, v, path)
		}
	default:
		d.decodeScalar(n, v, path)
	}
}

func (d *decoder) expectKind(n *yaml.Node, v reflect.Value, kind yaml.Kind, path, name string) bool {
	if followAlias(n).Kind == kind {
		return true
	}
	hint := ""
	if kind == yaml.SequenceNode {
		hint = hintAtDash(followAlias(n), v.Type())
	}
	d.errorf(n, path, "expected %s, found %s%s", name, describeKind(n), hint)
	return false
}

func (d *decoder) newReporter(path string) reporter {
	return func(n *yaml.Node, format string, args ...any) { d.errorf(n, path, format, args...) }
}

func (d *decoder) decodeStruct(n *yaml.Node, v reflect.Value, path string) {
	fields, names := structFields(v.Type())
	for _, e := range mappingEntries(n, d.newReporter(path)) {
		key := e.key.Value
		if i, ok := fields[key]; ok {
			d.decodeValue(e.value, v.Field(i), appendKey(path, key))
			continue
		}
		if why := d.unsupported[stripIndexes(appendKey(path, key))]; why != "" {
			d.errorf(e.key, appendKey(path, key), "not supported yet: %s", why)
			continue
		}
		d.errorf(e.key, path, "unknown key %s%s", quoteKey(key), suggestKeys(key, names))
	}
}

// findShorthand is the field of a struct that may stand for all of it.
func findShorthand(v reflect.Value) (reflect.Value, bool) {
	if !v.CanAddr() {
		return reflect.Value{}, false
	}
	s, ok := v.Addr().Interface().(Shorthand)
	if !ok {
		return reflect.Value{}, false
	}
	fields, _ := structFields(v.Type())
	i, known := fields[s.ShorthandKey()]
	if !known {
		panic(fmt.Sprintf("strictyaml: %s has no key %s", v.Type(), s.ShorthandKey()))
	}
	return v.Field(i), true
}

// structFields maps the keys of a struct's yaml tags to field indexes. A field
// without a tag, or with "-", is not part of the file.
func structFields(t reflect.Type) (fields map[string]int, names []string) {
	fields = map[string]int{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if name == "" || name == "-" || !t.Field(i).IsExported() {
			continue
		}
		fields[name] = i
		names = append(names, name)
	}
	slices.Sort(names)
	return fields, names
}

func (d *decoder) decodeMap(n *yaml.Node, v reflect.Value, path string) {
	if v.Type().Key().Kind() != reflect.String {
		panic(fmt.Sprintf("strictyaml: can't decode into %s", v.Type()))
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range mappingEntries(n, d.newReporter(path)) {
		element := reflect.New(v.Type().Elem()).Elem()
		setDefaults(element)
		d.decodeValue(e.value, element, appendKey(path, e.key.Value))
		v.SetMapIndex(reflect.ValueOf(e.key.Value).Convert(v.Type().Key()), element)
	}
}

func (d *decoder) decodeList(n *yaml.Node, v reflect.Value, path string) {
	list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, c := range n.Content {
		setDefaults(list.Index(i))
		d.decodeValue(c, list.Index(i), appendIndex(path, i))
	}
	v.Set(list)
}

var durationType = reflect.TypeFor[time.Duration]()

var indexPattern = regexp.MustCompile(`\[\d+\]`)

// stripIndexes is a path with its indexes taken out: "a[3].b" is "a[].b".
func stripIndexes(path string) string { return indexPattern.ReplaceAllString(path, "[]") }
