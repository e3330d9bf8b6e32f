package promotion

import (
	"fmt"

	"github.com/liftlock/liftlock/internal/wording"
)

// reachesQuorum says that so many targets are degraded that a revert may open, or be merged,
// by itself.
func (e *Env) reachesQuorum() bool {
	return len(e.degradedTargets()) >= e.Spec.OnDegraded.Quorum.Of(len(e.Targets))
}

// maxNamedTargets is how many targets a sentence names.
const maxNamedTargets = 5

// describeQuorum says which targets are degraded, how many of how many, and how many it takes.
func (e *Env) describeQuorum() string {
	var names []string
	for _, t := range e.degradedTargets() {
		names = append(names, t.Name)
	}
	quorum, are := e.Spec.OnDegraded.Quorum, "are"
	if len(names) == 1 {
		are = "is"
	}
	return fmt.Sprintf("%d of %s %s degraded (%s), and onDegraded.quorum (%s) asks for %d", len(names),
		wording.Count(len(e.Targets), "target"), are,
		wording.JoinFew(names, maxNamedTargets), quorum, quorum.Of(len(e.Targets)))
}
