package argocd

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// setSteps are the turns of a set's Applications in its RollingSync, by name.
type setSteps map[string]verification.SetStep

// wireSetSpec is what is read of an ApplicationSet's specification. Any other field, also in
// another form than today's, is not read.
type wireSetSpec struct {
	Strategy json.RawMessage `json:"strategy"`
}

// wireSetStatus is what an ApplicationSet says of its Applications.
type wireSetStatus struct {
	ApplicationStatus []struct {
		Application        string     `json:"application"`
		Status             string     `json:"status"`
		Step               string     `json:"step"`
		LastTransitionTime *time.Time `json:"lastTransitionTime"`
	} `json:"applicationStatus"`
}

// decodeSteps reads the turns of a set's Applications. It is never nil.
func decodeSteps(spec *wireSetSpec, status *wireSetStatus) setSteps {
	var strategy struct {
		RollingSync struct {
			Steps []struct {
				MaxUpdate json.RawMessage `json:"maxUpdate"`
			} `json:"steps"`
		} `json:"rollingSync"`
	}
	if len(spec.Strategy) > 0 && json.Unmarshal(spec.Strategy, &strategy) != nil {
		strategy.RollingSync.Steps = nil
	}
	out := setSteps{}
	for _, a := range status.ApplicationStatus {
		step := verification.SetStep{Status: a.Status, Step: a.Step, Since: timeOrZero(a.LastTransitionTime)}
		if n, err := strconv.Atoi(a.Step); err == nil && n > 0 && n <= len(strategy.RollingSync.Steps) {
			most := string(strategy.RollingSync.Steps[n-1].MaxUpdate)
			step.NoUpdate = most == "0" || most == `"0%"`
		}
		out[strings.Clone(a.Application)] = step
	}
	return out
}

// findBlocker is the Application that a waiting one of the same set waits for. It is one of the
// lowest step that isn't Healthy, or one of its own step that is being synced; nil where there is
// none. The caller holds mu.
func (as *appStore) findBlocker(app *verification.App) *verification.StepMember {
	own, err := strconv.Atoi(app.SetStep.Step)
	if err != nil {
		return nil
	}
	var first *verification.StepMember
	least := 0
	for name, step := range as.steps[app.Namespace+"/"+app.OwnedBySet] {
		n, err := strconv.Atoi(step.Step)
		if err != nil || n < 1 || n > own || name == app.Name {
			continue
		}
		if step.Status == "Healthy" || n == own && step.Status == "Waiting" {
			continue
		}
		if first != nil && cmp.Or(cmp.Compare(least, n), cmp.Compare(first.Application, name)) < 0 {
			continue
		}
		least, first = n, &verification.StepMember{Application: name, Step: step.Step, Status: step.Status, Since: step.Since}
	}
	if first == nil {
		return nil
	}
	if other := as.apps[app.Namespace+"/"+first.Application]; other != nil {
		first.Health = other.Health
	}
	return first
}
