package act

import (
	"testing"

	"github.com/liftlock/liftlock/internal/appset"
)

// TestOtherRevision names what keeps a merge from reaching a target, and nothing where it does.
func TestOtherRevision(t *testing.T) {
	here := func(revisions ...string) (out []appset.Source) {
		for _, r := range revisions {
			out = append(out, appset.Source{Here: true, TargetRevision: r})
		}
		return out
	}
	for name, c := range map[string]struct {
		target appset.Target
		want   string
	}{
		"the branch":                  {appset.Target{Sources: here("main")}, ""},
		"its head":                    {appset.Target{Sources: here("HEAD")}, ""},
		"nothing is said":             {appset.Target{Sources: here("")}, ""},
		"the branch's full name":      {appset.Target{Sources: here("refs/heads/main")}, ""},
		"a tag":                       {appset.Target{Sources: here("v1.2")}, "v1.2"},
		"one of two sources":          {appset.Target{Sources: here("v1.2", "main")}, ""},
		"no source of this":           {appset.Target{Sources: []appset.Source{{TargetRevision: "1.0.0", Chart: "web"}}}, ""},
		"it is what is edited":        {appset.Target{Sources: here("v1.2"), GeneratorFiles: []string{"apps/web/config.json"}}, ""},
		"it is in the set's manifest": {appset.Target{Sources: here("v1.2"), ApplicationSetFile: "apps/web/config.json"}, ""},
	} {
		if got := otherRevision(&c.target, "main", []string{"apps/web/config.json"}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
