package act

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// maxRecordedRuns bounds the targets whose images a verification has on record.
const maxRecordedRuns = 50

// runsOf is what the targets of an environment were seen to run, for the record; nil where nobody told of any.
func runsOf(env *promotion.Env) json.RawMessage {
	var data verification.VerifiedRuns
	for i := range env.Targets {
		if t := &env.Targets[i]; t.Verdict.Runs != nil && len(data.Ran) < maxRecordedRuns {
			data.Ran = append(data.Ran, verification.TargetRuns{Target: t.Name, Runs: *t.Verdict.Runs})
		}
	}
	if data.Ran == nil {
		return nil
	}
	slices.SortFunc(data.Ran, func(a, b verification.TargetRuns) int { return strings.Compare(a.Target, b.Target) })
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err) // plain data always marshals
	}
	return raw
}
