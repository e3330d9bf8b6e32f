package promotion

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBetween(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ earlier, later, common, behind, ahead string }{
		"the same":                       {"v2 v1", "v2 v1", "v2", "", ""},
		"one behind":                     {"v2 v1", "v1", "v1", "v2", ""},
		"several behind, newest first":   {"v4 v3 v2 v1", "v2 v1", "v2", "v4 v3", ""},
		"a hotfix":                       {"v3 v2 v1", "hot v1", "v1", "v3 v2", "hot"},
		"the earlier one went back":      {"v1 v2 v1", "v1", "v1", "", ""},
		"the earlier one went back more": {"v1 v2 v1", "v2 v1", "v2", "v1", ""},
		"the later one was reverted":     {"v2 v1", "v1 v2 v1", "v1", "v2", ""},
		"back and forth counts once":     {"v3 v2 v3 v2 v1", "v1", "v1", "v3 v2", ""},
		"nothing in common":              {"v3 v2", "x y", "", "v3 v2", "x y"},
		"never anything there":           {"v1", "", "", "v1", ""},
		"nothing known":                  {"", "", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := CompareHistories(arrivals(tc.earlier), arrivals(tc.later))
			common := ""
			if d.Common != nil {
				common = d.Common.Release
			}
			got := []string{common, releases(d.Behind), releases(d.Ahead)}
			if diff := cmp.Diff([]string{tc.common, tc.behind, tc.ahead}, got); diff != "" {
				t.Errorf("common, behind, ahead (-want +got):\n%s", diff)
			}
		})
	}
}

func arrivals(names string) []Arrival {
	var out []Arrival
	for _, n := range strings.Fields(names) {
		out = append(out, Arrival{Release: n})
	}
	return out
}

func releases(history []Arrival) string {
	var out []string
	for _, a := range history {
		out = append(out, a.Release)
	}
	return strings.Join(out, " ")
}
