package history

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

func TestFindOrigin(t *testing.T) {
	log := []git.CommitInfo{{SHA: "c", Parents: []string{"b", "side"}}, {SHA: "b", Parents: []string{"a"}}, {SHA: "a"}}
	longer := []git.CommitInfo{log[0], log[1], {SHA: "a", Parents: []string{"z"}}, {SHA: "z"}}
	for name, c := range map[string]struct {
		now string
		ids map[string]string // identity by commit; "?" can't be read
		log []git.CommitInfo
		sha string
		is  Origin
	}{
		"the newest commit":           {"v2", map[string]string{"b": "v1", "a": "v1"}, log, "c", Origin{Found: true}},
		"one before":                  {"v2", map[string]string{"b": "v2", "a": "v1"}, log, "b", Origin{Found: true}},
		"there from the first commit": {"v2", map[string]string{"b": "v2", "a": "v2"}, log, "a", Origin{Found: true, First: true}},
		"nothing was there before":    {"v2", map[string]string{"b": "v2"}, log, "b", Origin{Found: true, First: true}},
		"it couldn't be read before":  {"v2", map[string]string{"b": "v2", "a": "?"}, log, "b", Origin{Found: true}},
		"unreadable in between":       {"v2", map[string]string{"b": "?", "a": "v2", "z": "v2"}, longer, "z", Origin{Found: true, First: true}},
		"unreadable, another before":  {"v2", map[string]string{"b": "?", "a": "?", "z": "v1"}, longer, "c", Origin{Found: true}},
		"unreadable further back":     {"v2", map[string]string{"b": "?", "a": "?"}, longer[:2], "b", Origin{}},
		"unreadable from the first":   {"v2", map[string]string{"b": "v2", "a": "?", "z": "?"}, longer, "b", Origin{Found: true}},
		"further back":                {"v2", map[string]string{"b": "v2", "a": "v2"}, log[:2], "b", Origin{}},
		"no history":                  {"v2", nil, nil, "", Origin{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := FindOrigin(c.log, c.now, func(commit string) string { return strings.Trim(c.ids[commit], "?") }, func(commit string) bool { return c.ids[commit] == "" })
			c.is.Commit.SHA = c.sha
			got.Commit.Parents = nil
			if diff := cmp.Diff(c.is, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// commits are a history for Old: each is its time and its ancestors.
type commits map[string]struct {
	at        int64
	ancestors string
}

func (c commits) IsAncestor(_ context.Context, ancestor, descendant string) (bool, error) {
	if _, ok := c[ancestor]; !ok {
		return false, git.ErrUnknownCommit
	}
	return ancestor == descendant || strings.Contains(c[descendant].ancestors, ancestor), nil
}

func (c commits) Commit(_ context.Context, sha string) (*git.CommitInfo, error) {
	return &git.CommitInfo{SHA: sha, CommitTime: time.Unix(c[sha].at, 0)}, nil
}

func TestPredatesBaseline(t *testing.T) {
	history := commits{
		"a": {10, ""}, "base": {20, "a"}, "z": {30, "a base"},
		"late": {5, "a base"}, // its clock is wrong, and that doesn't matter
		"x":    {19, ""}, "y": {20, ""}, "w": {21, "x"},
	}
	for commit, want := range map[string]bool{"a": true, "base": true, "z": false, "late": false, "x": true, "y": false, "w": false} {
		info, err := history.Commit(t.Context(), commit)
		if err != nil {
			t.Fatal(err)
		}
		if old, err := PredatesBaseline(t.Context(), history, *info, "base"); err != nil || old != want {
			t.Errorf("%s: %t, %v; want %t", commit, old, err, want)
		}
	}
	if _, err := PredatesBaseline(t.Context(), history, git.CommitInfo{SHA: "gone"}, "base"); !errors.Is(err, git.ErrUnknownCommit) || !strings.Contains(err.Error(), "compare gone with the baseline base") {
		t.Errorf("of a commit that isn't there: %v", err)
	}
}

func TestRevertedReleases(t *testing.T) {
	unit := promotion.Unit{Pipeline: "shop", Component: "web"}
	// "KIND RELEASE [ENVIRONMENT [COMPONENT]]", newest first.
	log := func(lines ...string) []git.CommitInfo {
		var out []git.CommitInfo
		for _, l := range lines {
			f := append(strings.Fields(l), "qa", "web")
			if len(strings.Fields(l)) == 3 {
				f[3] = "web"
			}
			out = append(out, git.CommitInfo{Trailers: map[string]string{
				promotion.TrailerPipeline: "shop", promotion.TrailerKind: f[0], promotion.TrailerRelease: f[1],
				promotion.TrailerEnvironment: f[2], promotion.TrailerComponent: f[3]}})
		}
		return append(out, git.CommitInfo{Trailers: map[string]string{}})
	}
	const one, two = "111111111111", "222222222222"
	for name, c := range map[string]struct {
		log  []git.CommitInfo
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
			if diff := cmp.Diff(c.want, RevertedReleases(c.log, unit, "qa")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
