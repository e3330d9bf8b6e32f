package verification

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/wording"
)

// describeOutdated says how the Application's sources differ from those that its ApplicationSet
// generates, or its manifest has, and why. It is empty when they don't differ or that isn't known.
func (j *judgement) describeOutdated() string {
	g := j.e.Generated
	if g == nil {
		return ""
	}
	diff := firstDifference(j.app.Sources, g.Sources)
	if diff == "" {
		return ""
	}
	switch {
	case g.Set == "":
		return fmt.Sprintf("the manifest of the Application in %s has not been applied yet: %s; whatever applies that file, an "+
			"Application over it for example, may have to be synced", g.File, diff)
	case g.NoUpdate:
		return fmt.Sprintf("the ApplicationSet %s only creates Applications and never updates them (applicationsSync, or its "+
			"controller's policy), so this one stays as it is: %s; change the policy, or the Application by hand", g.Set, diff)
	case len(g.Ignored) > 0:
		return fmt.Sprintf("the ApplicationSet %s has not brought the Application up to date: %s; its ignoreApplicationDifferences (%s) "+
			"may keep it so", g.Set, diff, clipMessage(strings.Join(g.Ignored, ", ")))
	default:
		return fmt.Sprintf("the ApplicationSet %s has not brought the Application up to date yet: %s", g.Set, diff)
	}
}

// usesRollingSync says that the ApplicationSet's controller asks for the syncs, whether
// or not the Application's step is known; not of one that it leaves out.
func (j *judgement) usesRollingSync() bool {
	return !j.app.SetStep.isLeftOut() && (j.app.SetStep.Status != "" || j.e.Generated != nil && j.e.Generated.Rolling)
}

// firstDifference names the first difference between an Application's sources and those
// that it should have.
func firstDifference(has, want []Source) string {
	if len(has) != len(want) {
		return fmt.Sprintf("it has %s and should have %s", wording.Count(len(has), "source"), wording.Count(len(want), "source"))
	}
	for i, h := range has {
		w, at := want[i], "its"
		if len(has) > 1 {
			at = fmt.Sprintf("its source %d's", i+1)
		}
		for _, f := range []struct{ name, has, want string }{
			{"targetRevision", h.TargetRevision, w.TargetRevision}, {"path", h.Path, w.Path}, {"chart", h.Chart, w.Chart},
			{"repoURL", h.RepoURL, w.RepoURL}, {"ref", h.Ref, w.Ref},
		} {
			if f.has != f.want {
				return fmt.Sprintf("%s %s is %s and should be %s", at, f.name, valueOrUnset(f.has), valueOrUnset(f.want))
			}
		}
		if h.Options != w.Options {
			return at + " options (such as images, patches or Helm's parameters) are not the generated ones"
		}
	}
	return ""
}

func valueOrUnset(s string) string { return clipMessage(cmp.Or(s, "not set")) }
