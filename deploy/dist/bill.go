package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
	"golang.org/x/mod/module"
)

// billWriter writes bills of materials: what Go noted in a program of the modules that it was
// linked from, and their licenses.
type billWriter struct {
	release    release
	classifier *classifier.Classifier
	licenses   map[module.Version]*cyclonedx.Licenses // that were looked up
}

func newBillWriter(r release) (*billWriter, error) {
	c, err := assets.DefaultClassifier()
	return &billWriter{release: r, classifier: c, licenses: map[module.Version]*cyclonedx.Licenses{}}, err
}

// write writes the bill of a program, as CycloneDX's JSON.
func (b *billWriter) write(p program) (file, error) {
	out := file{name: "liftlock-" + p.platform + ".cdx.json"}
	main := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeApplication, Name: p.info.Main.Path, Version: b.release.version,
		Licenses: licensesOf("Apache-2.0"), Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: checksum(p.content)}},
		PackageURL: packageURL(p.info.Main.Path, b.release.version),
	}
	main.BOMRef = main.PackageURL
	std := strings.TrimPrefix(p.info.GoVersion, "go")
	components := []cyclonedx.Component{{
		BOMRef: packageURL("std", std), Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: std,
		Licenses: licensesOf("BSD-3-Clause"), PackageURL: packageURL("std", std),
	}}
	for _, m := range p.info.Deps {
		c, err := b.describeModule(m)
		if err != nil {
			return file{}, err
		}
		components = append(components, c)
	}
	slices.SortFunc(components, func(a, b cyclonedx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	var refs []string
	for i := range components {
		refs = append(refs, components[i].BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: b.release.date.UTC().Format(time.RFC3339), Component: &main}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	var content bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&content, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	err := encoder.EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	out.content = content.Bytes()
	return out, err
}

func (b *billWriter) describeModule(m *debug.Module) (cyclonedx.Component, error) {
	if m.Replace != nil {
		m = m.Replace
	}
	c := cyclonedx.Component{
		BOMRef: packageURL(m.Path, m.Version), Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
		PackageURL: packageURL(m.Path, m.Version),
	}
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil || len(sum) == 0 {
		return c, fmt.Errorf("%s %s has no checksum in go.sum: %q", m.Path, m.Version, m.Sum)
	}
	c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	c.Licenses, err = b.findLicenses(module.Version{Path: m.Path, Version: m.Version})
	return c, err
}

// packageURL is a module's name in all languages, as the purl specification has it.
func packageURL(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// licenseFile is how files with the text of a license are called.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)`)

// findLicenses says under which licenses a module is; nil where no text of it is one that is known.
func (b *billWriter) findLicenses(m module.Version) (*cyclonedx.Licenses, error) {
	if known, ok := b.licenses[m]; ok {
		return known, nil
	}
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return nil, err
	}
	version, err := module.EscapeVersion(m.Version)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.release.modules, filepath.FromSlash(path)+"@"+version)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s isn't in the module cache: %w", m, err)
	} else if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !licenseFile.MatchString(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		for _, match := range b.classifier.Match(text).Matches {
			if match.MatchType == "License" {
				names = append(names, match.Name)
			}
		}
	}
	slices.Sort(names)
	b.licenses[m] = licensesOf(slices.Compact(names)...)
	return b.licenses[m], nil
}

func licensesOf(names ...string) *cyclonedx.Licenses {
	if len(names) == 0 {
		return nil
	}
	var out cyclonedx.Licenses
	for _, name := range names {
		out = append(out, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: name}})
	}
	return &out
}
