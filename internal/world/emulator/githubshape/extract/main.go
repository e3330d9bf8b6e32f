// Command extract makes the extract of GitHub's description of its API that githubshape embeds. It
// has the calls that operations.txt names, with the types of their input and answers and which of
// it is required. regenerate.sh runs it and names the release of the description.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// releases are those of GitHub that are described, by the names of the description's files.
var releases = []string{"api.github.com", "ghes-3.19", "ghes-3.17"}

func main() {
	dir := flag.String("package", "", "the folder of the description's npm package, unpacked")
	list := flag.String("operations", "", "the file that names the calls, one a line")
	out := flag.String("out", "", "the file to write")
	flag.Parse()
	if err := run(*dir, *list, *out); err != nil {
		fmt.Fprintln(os.Stderr, "extract:", err)
		os.Exit(1)
	}
}

func run(dir, list, out string) error {
	wanted, err := readOperations(list)
	if err != nil {
		return err
	}
	var about struct{ Name, Version string }
	if err := readJSON(filepath.Join(dir, "package.json"), &about); err != nil {
		return err
	}
	operations, schemas := variants{}, variants{}
	announced := map[string]announcement{}
	for _, release := range releases {
		var d document
		if err := readJSON(filepath.Join(dir, "generated", release+".json"), &d); err != nil {
			return err
		}
		r := reader{schemas: d.Components.Schemas, responses: d.Components.Responses, parameters: d.Components.Parameters,
			needed: map[string]any{}, announced: announced}
		for _, name := range wanted {
			o, err := r.operation(d, name)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", release, name, err)
			}
			if o != nil {
				operations.add(name, release, o)
			}
		}
		if err := r.resolve(); err != nil {
			return fmt.Errorf("%s: %w", release, err)
		}
		for name, s := range r.needed {
			schemas.add(name, release, s)
		}
	}
	for _, name := range wanted {
		if operations[name] == nil {
			return fmt.Errorf("%s is in none of the releases", name)
		}
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "{\"source\":%q,\n\"releases\":%s,\n", about.Name+" "+about.Version, compactJSON(releases))
	writeMap(&text, "operations", operations, ",\n")
	writeMap(&text, "schemas", schemas, ",\n")
	writeMap(&text, "announced", announced, "}\n")
	return os.WriteFile(out, text.Bytes(), 0o644)
}

// readOperations reads the names of calls: a method and a path a line.
func readOperations(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for l := range strings.Lines(string(text)) {
		if l = strings.TrimSpace(l); l != "" && l[0] != '#' {
			names = append(names, l)
		}
	}
	return names, nil
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// variants are what something is in each release, by its name: those that are alike are one.
type variants map[string][]variant

type variant struct {
	Releases []string `json:"in"`
	Shape    any      `json:"is"`
}

func (v variants) add(name, release string, shape any) {
	for i, have := range v[name] {
		if compactJSON(have.Shape) == compactJSON(shape) {
			v[name][i].Releases = append(have.Releases, release)
			return
		}
	}
	v[name] = append(v[name], variant{Releases: []string{release}, Shape: shape})
}

// compactJSON is a value as JSON in one line; its keys are sorted.
func compactJSON(value any) string {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(err) // it came from JSON
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// writeMap writes a map as JSON with a line for each name.
func writeMap[T any](text *bytes.Buffer, name string, values map[string]T, end string) {
	fmt.Fprintf(text, "%q:{", name)
	separator := "\n"
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(text, "%s%q:%s", separator, key, compactJSON(values[key]))
		separator = ",\n"
	}
	text.WriteString("}" + end)
}
