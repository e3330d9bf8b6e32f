package discovery

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/discover"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion/stored"
)

// TestListAvailable holds what is on record of what doesn't come in, and since when.
func TestListAvailable(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	earlier := now.Add(-time.Hour)
	before := &stored.Available{Versions: []stored.AvailableVersion{
		{Name: "r/web", Version: "1.1.0", Since: earlier, Reason: "it was reverted"}, {Name: "r/web", Since: earlier, Reason: "it is away"}, {Name: "r/web", Version: "1.0.0", Since: earlier, Reason: "it was held"}}}
	coming := discover.Choice{Tag: "1.1.0", Digest: "sha256:b"}
	many := Found{}
	for _, name := range strings.Split("abcdefghijklmn", "") {
		many.Versions = append(many.Versions, Version{Name: name, Choice: discover.Choice{Newer: []discover.Newer{{Tag: "2", Why: strings.Repeat("long ", 100)}}, MoreNewer: 1}})
	}
	for name, c := range map[string]struct {
		found   Found
		refused string
		want    []string // NAME VERSION SINCE REASON
		more    int
	}{
		"nothing":       {Found{Versions: []Version{{Name: "r/web", Choice: discover.Choice{Stays: true}}}}, "", nil, 0},
		"what comes in": {Found{Versions: []Version{{Name: "r/web", Choice: coming}}}, "", nil, 0},
		"what a rule and a person keep out": {Found{Versions: []Version{{Name: "r/web", Choice: discover.Choice{MoreNewer: 2, Newer: []discover.Newer{
			{Tag: "2.0.0", Why: "is not in <2", ByRule: true}, {Tag: "1.1.0", Why: "was there before"}}}}}}, "",
			[]string{"r/web 2.0.0 09:00 held by rule: it is not in <2", "r/web 1.1.0 08:00 it was there before"}, 2},
		"what is refused":   {Found{Refused: "component web is on hold by ada", KeptOut: true, Versions: []Version{{Name: "r/web", Choice: coming}}}, "", []string{"r/web 1.1.0 08:00 component web is on hold by ada"}, 0},
		"a digest":          {Found{Refused: "held", Versions: []Version{{Name: "r/web", Choice: coming, Follows: true}}}, "", []string{"r/web sha256:b 09:00 held"}, 0},
		"what isn't pushed": {Found{Versions: []Version{{Name: "r/web", Choice: coming}}}, "the push was refused", []string{"r/web 1.1.0 08:00 the push was refused"}, 0},
		"what is observed":  {Found{DryRun: true, Edits: []fieldedit.Edit{{}}, Versions: []Version{{Name: "r/web", Choice: coming}}}, "", []string{"r/web 1.1.0 08:00 " + onlyObserved}, 0},
		"what isn't known":  {Found{Versions: []Version{{Name: "r/web", Current: "1.0.0", Err: "it answers nonsense"}}}, "", []string{"r/web 1.1.0 08:00 it was reverted", "r/web  08:00 it answers nonsense"}, 0},
		"files":             {Found{Refused: "the files can't be read"}, "", []string{"  09:00 the files can't be read"}, 0},
		"two places":        {Found{Refused: "held", Versions: []Version{{Name: "r/web", Choice: coming}, {Name: "r/web", Choice: coming}}}, "", []string{"r/web 1.1.0 08:00 held"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.found.ListAvailable(before, c.refused, now)
			var said []string
			for _, v := range got.Versions {
				said = append(said, strings.Join([]string{v.Name, v.Version, v.Since.Format("15:04"), v.Reason}, " "))
			}
			if diff := cmp.Diff(c.want, said); diff != "" || got.More != c.more {
				t.Errorf("and %d more (-want +got):\n%s", got.More, diff)
			}
			if again := c.found.ListAvailable(&got, c.refused, now.Add(time.Minute)); !again.IsEqual(&got) {
				t.Errorf("another look finds %+v, not %+v", again, got)
			}
		})
	}
	got := many.ListAvailable(&stored.Available{}, "", now)
	if len(got.Versions) != stored.MaxAvailable || got.More != 14-stored.MaxAvailable+14 || len([]rune(got.Versions[0].Reason)) != stored.MaxAvailableText {
		t.Errorf("%d and %d more, of %d characters", len(got.Versions), got.More, len(got.Versions[0].Reason))
	}
	first := Found{Versions: []Version{{Name: "r/web", Choice: coming}, {Name: "r/api", Choice: coming}}}
	if at := first.FirstSeen(before); !at.Equal(earlier) {
		t.Errorf("it was seen %s", at)
	}
	if at := first.FirstSeen(&stored.Available{}); !at.IsZero() {
		t.Errorf("it was seen %s", at)
	}
}
