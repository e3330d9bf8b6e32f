package main

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"
)

// templates are what package managers read of a release.
//
//go:embed templates
var templates embed.FS

// archiveOf is an archive, as a manifest names it.
type archiveOf struct{ System, Architecture, URL, Checksum, Program string }

// packageManifests writes the Homebrew formula and the krew manifest for the archives with
// these checksums, by platform.
func packageManifests(version string, sums map[string]string) ([]file, error) {
	data := struct {
		Version, Number string // v1.2.3, 1.2.3
		Archives        []archiveOf
	}{Version: version, Number: strings.TrimPrefix(version, "v")}
	for platform, sum := range sums {
		p := program{platform: platform}
		_, architecture, _ := strings.Cut(platform, "-")
		data.Archives = append(data.Archives, archiveOf{
			System: p.system(), Architecture: architecture, Checksum: sum, Program: p.fileName(),
			URL: "https://github.com/liftlock/liftlock/releases/download/" + version + "/" + archiveName(platform),
		})
	}
	slices.SortFunc(data.Archives, func(a, b archiveOf) int { return strings.Compare(a.URL, b.URL) })
	all, err := template.New("").Funcs(template.FuncMap{"of": archivesOf}).ParseFS(templates, "templates/*")
	if err != nil {
		return nil, err
	}
	var out []file
	for _, t := range all.Templates() {
		name, whole := strings.CutSuffix(t.Name(), ".tmpl")
		if !whole {
			continue // a part
		}
		var b bytes.Buffer
		if err := t.Execute(&b, data); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name(), err)
		}
		out = append(out, file{name: name, content: b.Bytes()})
	}
	slices.SortFunc(out, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// archivesOf are those of a system.
func archivesOf(system string, all []archiveOf) []archiveOf {
	return slices.DeleteFunc(slices.Clone(all), func(a archiveOf) bool { return a.System != system })
}
