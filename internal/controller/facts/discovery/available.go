package discovery

import (
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/wording"
)

// onlyObserved is why nothing comes in where a pipeline only says what it would do.
const onlyObserved = "it would come in: the pipeline only observes, and mode: act in its file brings it"

// ListAvailable is what the registries have and the environment doesn't get, each with the reason for which it doesn't.
// refused is why what was chosen doesn't come in where that shows only afterwards; empty: it comes in. What was on
// record before says since when; what is seen for the first time was seen now. While a registry says nothing, what it
// said last stays.
func (f *Found) ListAvailable(before *stored.Available, refused string, now time.Time) stored.Available {
	switch {
	case f.Refused != "":
		refused = f.Refused
	case f.DryRun && len(f.Edits) > 0:
		refused = onlyObserved
	}
	var out stored.Available
	add := func(name, version, why string) {
		isKnown := slices.ContainsFunc(out.Versions, func(v stored.AvailableVersion) bool { return v.Name == name && v.Version == version })
		switch {
		case isKnown: // the image is at several places
		case len(out.Versions) == stored.MaxAvailable:
			out.More++
		default:
			since := before.FirstSeen(name, version)
			if since.IsZero() {
				since = now
			}
			out.Versions = append(out.Versions, stored.AvailableVersion{Name: name, Version: version, Since: since,
				Reason: wording.ClipRunes(why, stored.MaxAvailableText)})
		}
	}
	for i := range f.Versions {
		v := &f.Versions[i]
		if v.Err != "" {
			for _, known := range before.Versions {
				if known.Name == v.Name && known.Version != "" && known.Version != v.Current && known.Version != v.Digest {
					add(known.Name, known.Version, known.Reason)
				}
			}
			add(v.Name, "", v.Err)
			continue
		}
		if v.Choice.Tag != "" && refused != "" {
			add(v.Name, v.chosenVersion(), refused)
		}
		for _, n := range v.Choice.Newer {
			why := "it " + n.Why
			if n.ByRule {
				why = "held by rule: " + why
			}
			add(v.Name, n.Tag, why)
		}
		out.More += v.Choice.MoreNewer
	}
	if len(f.Versions) == 0 && f.Refused != "" {
		add("", "", f.Refused)
	}
	return out
}

// chosenVersion is what comes in, as the environment has it.
func (v *Version) chosenVersion() string {
	if v.Follows {
		return v.Choice.Digest
	}
	return v.Choice.Tag
}

// FirstSeen is when the first of the versions that come in was seen; zero where none was on record before.
func (f *Found) FirstSeen(before *stored.Available) (first time.Time) {
	for i := range f.Versions {
		v := &f.Versions[i]
		if v.Err != "" || v.Choice.Tag == "" {
			continue
		}
		if at := before.FirstSeen(v.Name, v.chosenVersion()); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}
