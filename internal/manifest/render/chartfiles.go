package render

import (
	"encoding/base64"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gobwas/glob"
	"helm.sh/helm/v3/pkg/chart"
)

// chartFiles is .Files: a chart's files that are no templates, by their names.
type chartFiles map[string][]byte

func newChartFiles(from []*chart.File) chartFiles {
	out := chartFiles{}
	for _, f := range from {
		out[f.Name] = f.Data
	}
	return out
}

// GetBytes gives a file's bytes; none for a file that isn't there.
func (c chartFiles) GetBytes(name string) []byte {
	if data, ok := c[name]; ok {
		return data
	}
	return []byte{}
}

// Get gives a file's text.
func (c chartFiles) Get(name string) string { return string(c.GetBytes(name)) }

// Glob gives the files that match; all of them for what is no pattern.
func (c chartFiles) Glob(pattern string) chartFiles {
	g, err := glob.Compile(pattern, '/')
	out := chartFiles{}
	for name, data := range c {
		if err != nil || g.Match(name) {
			out[name] = data
		}
	}
	return out
}

// AsConfig gives the files as a ConfigMap's data.
func (c chartFiles) AsConfig() string {
	return c.encodeData(func(data []byte) string { return string(data) })
}

// AsSecrets gives the files as a Secret's data.
func (c chartFiles) AsSecrets() string { return c.encodeData(base64.StdEncoding.EncodeToString) }

func (c chartFiles) encodeData(value func([]byte) string) string {
	if c == nil {
		return ""
	}
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c)) { // of two of a name the last counts
		out[path.Base(name)] = value(c[name])
	}
	return toYAML(out)
}

// Lines gives a file's lines; none for a file that isn't there. As in Helm
// 3.16, asking an empty file for its lines is an error.
func (c chartFiles) Lines(name string) ([]string, error) {
	data, ok := c[name]
	switch {
	case !ok || data == nil:
		return []string{}, nil
	case len(data) == 0:
		return nil, fmt.Errorf("%s is empty, and has no lines", name)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"), nil
}
