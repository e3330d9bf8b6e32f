package stored

import (
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/store/record"
)

const (
	// MaxAvailable bounds the versions of one record.
	MaxAvailable = 12
	// MaxAvailableText bounds each text of it, in characters.
	MaxAvailableText = 300
)

// Available is what registries have and a source environment of a component hasn't, by the last look that found something
// else than the one before.
type Available struct {
	Versions []AvailableVersion `json:"versions"`
	More     int                `json:"more,omitempty"` // how many more there are
}

// AvailableVersion is a version that isn't there, and why.
type AvailableVersion struct {
	Name    string    `json:"name,omitempty"`    // of the image or the chart; empty: of all of them
	Version string    `json:"version,omitempty"` // a tag, a digest or a chart's version; empty: what there is isn't known
	Since   time.Time `json:"since"`             // when it was first seen, or since when nothing is known, by our clock
	Reason  string    `json:"reason"`
}

// AvailableVersions are in no record where nothing is new, or nothing comes in by itself.
var AvailableVersions = record.Declare[record.InUnit, Available](record.Declaration{
	Name: "available", Owner: "controller", Lifetime: record.UntilDropped,
	Doc: "Versions that registries have and a source environment hasn't, each with since when and why.",
})

// FirstSeen is when a version was first seen; zero where it isn't among them.
func (a *Available) FirstSeen(name, version string) time.Time {
	i := slices.IndexFunc(a.Versions, func(v AvailableVersion) bool { return v.Name == name && v.Version == version })
	if i < 0 {
		return time.Time{}
	}
	return a.Versions[i].Since
}

// IsEqual says that both say the same.
func (a *Available) IsEqual(other *Available) bool {
	return a.More == other.More && slices.EqualFunc(a.Versions, other.Versions, func(x, y AvailableVersion) bool {
		return x.Name == y.Name && x.Version == y.Version && x.Reason == y.Reason && x.Since.Equal(y.Since)
	})
}
