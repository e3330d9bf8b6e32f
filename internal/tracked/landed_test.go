package tracked

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/gitrepo"
	"github.com/liftlock/liftlock/internal/promotion"
)

func TestWhence(t *testing.T) {
	log := []gitrepo.CommitInfo{{SHA: "c", Parents: []string{"b", "side"}}, {SHA: "b", Parents: []string{"a"}}, {SHA: "a"}}
	for name, c := range map[string]struct {
		now string
		ids map[string]string // identity by commit; "?" can't be read
		log []gitrepo.CommitInfo
		sha string
		is  Origin
	}{
		"the newest commit":           {"v2", map[string]string{"b": "v1", "a": "v1"}, log, "c", Origin{Found: true}},
		"one before":                  {"v2", map[string]string{"b": "v2", "a": "v1"}, log, "b", Origin{Found: true}},
		"there from the first commit": {"v2", map[string]string{"b": "v2", "a": "v2"}, log, "a", Origin{Found: true, First: true}},
		"nothing was there before":    {"v2", map[string]string{"b": "v2"}, log, "b", Origin{Found: true, First: true}},
		"it couldn't be read before":  {"v2", map[string]string{"b": "v2", "a": "?"}, log, "b", Origin{Found: true}},
		"further back":                {"v2", map[string]string{"b": "v2", "a": "v2"}, log[:2], "b", Origin{}},
		"no history":                  {"v2", nil, nil, "", Origin{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Whence(c.log, c.now, func(commit string) string { return strings.Trim(c.ids[commit], "?") }, func(commit string) bool { return c.ids[commit] == "" })
			c.is.Commit.SHA = c.sha
			got.Commit.Parents = nil
			if diff := cmp.Diff(c.is, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReverted(t *testing.T) {
	unit := promotion.Unit{Pipeline: "shop", Component: "web"}
	// "KIND RELEASE [ENVIRONMENT [COMPONENT]]", newest first.
	log := func(lines ...string) []gitrepo.CommitInfo {
		var out []gitrepo.CommitInfo
		for _, l := range lines {
			f := append(strings.Fields(l), "qa", "web")
			if len(strings.Fields(l)) == 3 {
				f[3] = "web"
			}
			out = append(out, gitrepo.CommitInfo{Trailers: map[string]string{
				promotion.TrailerPipeline: "shop", promotion.TrailerKind: f[0], promotion.TrailerRelease: f[1],
				promotion.TrailerEnvironment: f[2], promotion.TrailerComponent: f[3]}})
		}
		return append(out, gitrepo.CommitInfo{Trailers: map[string]string{}})
	}
	const one, two = "111111111111", "222222222222"
	for name, c := range map[string]struct {
		log  []gitrepo.CommitInfo
		want []string
	}{
		"none":                          {log("promotion " + one), nil},
		"reverted":                      {log("revert "+one, "promotion "+one), []string{one}},
		"the long form":                 {log("revert " + one + "abcdef"), []string{one}},
		"promoted again since":          {log("promotion "+one, "revert "+one), nil},
		"two, the newest first":         {log("revert "+two, "revert "+one), []string{two, one}},
		"twice":                         {log("revert "+one, "promotion "+one, "revert "+one), []string{one}},
		"another environment":           {log("revert " + one + " prod"), nil},
		"another component":             {log("revert " + one + " qa api"), nil},
		"a release that can't be meant": {log("revert 1234"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Reverted(c.log, unit, "qa")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
