// Command graphql makes the extract of GitHub's GraphQL schema that githubshape embeds: the fields
// that graphql-fields.txt names, with what they take. It is run by regenerate.sh, which says of
// which release of the schema.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/parser"
)

func main() {
	dir := flag.String("package", "", "the folder of the schema's npm package, unpacked")
	list := flag.String("fields", "", "the file that names the fields, one a line: Type.field, or Type where it has none of its own")
	out := flag.String("out", "", "the file to write")
	flag.Parse()
	if err := run(*dir, *list, *out); err != nil {
		fmt.Fprintln(os.Stderr, "graphql:", err)
		os.Exit(1)
	}
}

func run(dir, list, out string) error {
	about, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return err
	}
	var npm struct{ Name, Version string }
	if err := json.Unmarshal(about, &npm); err != nil {
		return fmt.Errorf("package.json of %s: %w", dir, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "schema.graphql"))
	if err != nil {
		return err
	}
	// Read, and not validated: the release 15.26.1 defines a field twice. The reader of the extract
	// validates it.
	schema, err := parser.ParseSchema(&ast.Source{Name: "schema.graphql", Input: string(text)})
	if err != nil {
		return err
	}
	names, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	x := extract{from: schema.Definitions, to: map[string]*ast.Definition{}, fields: map[string][]string{}}
	for _, name := range strings.Fields(string(names)) {
		of, field, has := strings.Cut(name, ".")
		x.fields[of] = slices.Clip(x.fields[of])
		if has {
			x.fields[of] = append(x.fields[of], field)
		}
	}
	for of := range x.fields {
		if err := x.addType(of); err != nil {
			return err
		}
	}
	var written bytes.Buffer
	fmt.Fprintf(&written, "# From %s %s, made by regenerate.sh.\n", npm.Name, npm.Version)
	formatter.NewFormatter(&written, formatter.WithoutDescription()).FormatSchema(&ast.Schema{Types: x.to, Query: x.to["Query"],
		Mutation: x.to["Mutation"]})
	return os.WriteFile(out, written.Bytes(), 0o644)
}

// extract takes a part of a schema.
type extract struct {
	from   ast.DefinitionList
	to     map[string]*ast.Definition
	fields map[string][]string // that are wanted, by type
}

// builtIn are the types that every schema has.
var builtIn = []string{"Boolean", "Float", "ID", "Int", "String"}

// addType takes a type, and what its fields take and answer.
func (e *extract) addType(name string) error {
	if e.to[name] != nil {
		return nil
	}
	if slices.Contains(builtIn, name) {
		return nil
	}
	whole := e.from.ForName(name)
	if whole == nil {
		return fmt.Errorf("there is no type %s", name)
	}
	part := *whole
	part.Directives, part.Fields = nil, nil
	e.to[name] = &part
	if whole.Kind == ast.Scalar || whole.Kind == ast.Enum {
		part.EnumValues = nil
		for _, v := range whole.EnumValues {
			part.EnumValues = append(part.EnumValues, &ast.EnumValueDefinition{Name: v.Name})
		}
		return nil
	}
	wanted, listed := e.fields[name]
	if whole.Kind != ast.InputObject && !listed {
		return fmt.Errorf("%s is answered, and none of its fields is named", name)
	}
	for _, field := range wanted {
		if whole.Fields.ForName(field) == nil {
			return fmt.Errorf("%s has no field %s", name, field)
		}
	}
	for _, f := range whole.Fields {
		if whole.Kind != ast.InputObject && !slices.Contains(wanted, f.Name) {
			continue
		}
		field := *f
		field.Directives = slices.DeleteFunc(slices.Clone(f.Directives), func(d *ast.Directive) bool { return d.Name != "deprecated" })
		field.Arguments = nil
		for _, a := range f.Arguments {
			argument := *a
			argument.Directives = nil
			field.Arguments = append(field.Arguments, &argument)
			if err := e.addType(a.Type.Name()); err != nil {
				return err
			}
		}
		if err := e.addType(f.Type.Name()); err != nil {
			return err
		}
		part.Fields = append(part.Fields, &field)
	}
	isListed := func(other string) bool { _, is := e.fields[other]; return is }
	// A type without all taken fields of an interface isn't one of it, as far as is read.
	isWhole := func(i string) bool {
		return isListed(i) && !slices.ContainsFunc(e.fields[i], func(f string) bool { return !slices.Contains(wanted, f) })
	}
	part.Interfaces = slices.DeleteFunc(slices.Clone(whole.Interfaces), func(i string) bool { return !isWhole(i) })
	part.Types = slices.DeleteFunc(slices.Clone(whole.Types), func(t string) bool { return !isListed(t) })
	return nil
}
