package discovery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/wording"
)

// ReleasedVersion is a version that somebody brings into an environment.
type ReleasedVersion struct {
	Image string // by its name, without a tag; empty: a chart
	Chart string // as [pipeline.ChartAddress] has it
	// Tag is the image's tag or the chart's version; Digest is the image's. An empty one stays as it is.
	Tag, Digest string
}

// String is the version as command lines have it.
func (rv ReleasedVersion) String() string {
	if rv.Chart != "" {
		return rv.Chart + "=" + rv.Tag
	}
	out := rv.Image
	if rv.Tag != "" {
		out += ":" + rv.Tag
	}
	if rv.Digest != "" {
		out += "@" + rv.Digest
	}
	return out
}

// maxNamedVersions bounds the versions that a refusal names.
const maxNamedVersions = 5

// SetReleased says what the environment would carry with released versions, and else why they are refused. A version is set
// wherever a carried field names its image or chart.
func (f *Found) SetReleased(q *Query, released []ReleasedVersion) {
	f.Want = fieldedit.Release{Fields: slices.Clone(q.Current.Fields)}
	versions, err := q.At.FindVersions(q.Tree, q.Pipeline)
	if err != nil {
		f.Refused = err.Error()
		return
	}
	for _, rv := range released {
		fields, why := rv.fields(versions)
		if why != "" {
			f.Refused = why
			return
		}
		setFields(&f.Want, fields)
	}
}

// fields are the fields with the version, or why they can't be set.
func (rv ReleasedVersion) fields(versions []fieldedit.NamedVersion) (fields []fieldedit.Field, why string) {
	for i := range versions {
		v := &versions[i]
		if v.Image != rv.Image || v.Chart != rv.Chart {
			continue
		}
		where := strings.Join(v.Where, ", ")
		switch {
		case rv.Digest != "" && !v.CanPin():
			return nil, fmt.Sprintf("%s: no carried field at %s has a digest: add one beside the tag, or give the tag alone", rv, where)
		case rv.Tag != "" && !v.HasTag():
			return nil, fmt.Sprintf("%s: no carried field at %s has a tag, only a digest: give %s@sha256:…", rv, where, rv.Image)
		case rv.Tag != "" && rv.Digest == "" && v.Digest != "":
			return nil, fmt.Sprintf("%s: %s has a digest too, which wins over a tag: give both, %s@sha256:…", rv, where, rv)
		}
		fields = append(fields, v.With(rv.Tag, rv.Digest)...)
	}
	if len(fields) > 0 {
		return fields, ""
	}
	return nil, fmt.Sprintf("no carried field names %s; %s", rv.Image+rv.Chart, nameVersions(versions))
}

// nameVersions says which versions there are.
func nameVersions(versions []fieldedit.NamedVersion) string {
	var names []string
	for i := range versions {
		v := &versions[i]
		names = append(names, fmt.Sprintf("%s (%s)", v.Image+v.Chart, strings.Join(v.Where, ", ")))
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return "none of them names any image or chart: set the field itself, by its path, with liftlock set"
	}
	return "it has " + wording.JoinFew(names, maxNamedVersions)
}
