package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCheckDiscovered says of each registry, and of a pipeline's rules, what keeps versions out, each with what to change.
func TestCheckDiscovered(t *testing.T) {
	t.Parallel()
	failed := errors.New("it doesn't answer")
	list := func(name string, outcome ListOutcome) TriedList {
		l := TriedList{Registry: "registry.example", Name: "registry.example/" + name, Outcome: outcome, Tags: 3}
		if outcome != Listed {
			l.Tags, l.Err = 0, failed
		}
		return l
	}
	d := &doctor{Options: Options{Timeout: time.Minute}}
	for name, c := range map[string]struct {
		tried Discovered
		want  []Code
		says  string
	}{
		"well": {Discovered{Lists: []TriedList{list("web", Listed), list("api", Listed)}, Chosen: 2}, []Code{CodeRegistry, CodeDiscover},
			"it lists 6 tags of 2 repositories"},
		"a limit": {Discovered{Lists: []TriedList{list("web", Listed)}, Chosen: 1, Limits: map[string]RegistryLimit{"registry.example": {76, 100}}}, []Code{CodeRegistry, CodeDiscover},
			"it lists 3 tags of 1 repository; 76 of 100 requests are left"},
		"a limit that is used up": {Discovered{Lists: []TriedList{list("web", Listed)}, Chosen: 1, Limits: map[string]RegistryLimit{"registry.example": {7, 100}}}, []Code{"registry-limited", CodeDiscover},
			"its limit is nearly used up; 7 of 100 requests are left"},
		"not listed":  {Discovered{Lists: []TriedList{list("web", ListUnnamed)}}, []Code{"registry-unlisted", CodeDiscover}, "registry.example/web: it doesn't answer"},
		"refused":     {Discovered{Lists: []TriedList{list("web", ListRefused), list("api", Listed)}}, []Code{"registry-refused", CodeDiscover}, "registry.example/web: "},
		"missing":     {Discovered{Lists: []TriedList{list("web", ListMissing)}}, []Code{"registry-missing", CodeDiscover}, "registry.example/web: "},
		"too many":    {Discovered{Lists: []TriedList{list("web", ListTooLong)}}, []Code{"registry-tags", CodeDiscover}, "registry.example/web: "},
		"without TLS": {Discovered{Lists: []TriedList{list("web", ListPlain)}}, []Code{"registry-plain", CodeDiscover}, "registry.example/web: "},
		"limited":     {Discovered{Lists: []TriedList{list("web", ListLimited)}}, []Code{"registry-limited", CodeDiscover}, "registry.example/web: "},
		"away": {Discovered{Lists: []TriedList{list("d", "away"), list("c", "away"), list("b", "away"), list("a", "away")}}, []Code{"registry-unread", CodeDiscover},
			"registry.example/a, registry.example/b, registry.example/c and 1 more: it doesn't answer"},
		"no place":     {Discovered{Refused: []string{"web in dev: there is no tag"}}, []Code{"discover-refused"}, "web in dev: there is no tag"},
		"nothing fits": {Discovered{Barren: []string{"1", "2", "3", "4"}}, []Code{"discover-nothing"}, "1; 2; 3; and 1 more"},
		"no field":     {Discovered{Unmatched: []string{"discover[0] of dev"}}, []Code{"discover-unmatched"}, "discover[0] of dev"},
		"no files":     {Discovered{Err: failed}, []Code{"discover-unread"}, "it doesn't answer"},
		"many":         {Discovered{Chosen: 200, LeftOut: 3}, []Code{CodeDiscover}, "its rules choose for 200 images and charts; 3 more components weren't tried"},
	} {
		t.Run(name, func(t *testing.T) {
			found := d.checkDiscovered(t.Context(), "discover of shop in acme/fleet", func(context.Context) *Discovered { return &c.tried })
			var codes []Code
			said := ""
			for _, f := range found {
				codes, said = append(codes, f.Code), said+f.Message+"\n"
				if (f.Cure == "") != (f.Level == OK) {
					t.Errorf("%+v", f)
				}
			}
			if !slices.Equal(codes, c.want) || !strings.Contains(said, c.says) {
				t.Errorf("found %q:\n%s", codes, said)
			}
		})
	}
}
