package console

import (
	"encoding/json"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// buildRuns makes the API's shape of what a target was seen to run; nil where nobody told.
func buildRuns(r *promotion.Runs) *api.Runs {
	if r == nil {
		return nil
	}
	out := &api.Runs{At: r.At, Images: make([]api.RunningImage, 0, len(r.Images)), More: r.More, OfPods: r.OfPods}
	for _, i := range r.Images {
		out.Images = append(out.Images, api.RunningImage(i))
	}
	return out
}

// addRan fills in what a promotion's targets were seen to run. While its release is there it goes
// by the targets' present state, and otherwise by its verification's event. A batch's events are of
// all its components.
func addRan(row *store.Promotion, d *api.PromotionDetail) {
	for i := range d.Targets {
		if t := &d.Targets[i]; t.Runs != nil {
			d.Ran = append(d.Ran, api.TargetRuns{Target: t.Name, Runs: *t.Runs})
		}
	}
	if d.Current {
		return
	}
	for i := range d.Events {
		e := &d.Events[i]
		var data promotion.VerifiedRuns
		if e.Kind != event.Verified || e.Component != row.Component || e.Environment != row.Environment ||
			json.Unmarshal(e.Data, &data) != nil {
			continue
		}
		d.Ran = nil // the last time that it was verified counts
		for k := range data.Ran {
			d.Ran = append(d.Ran, api.TargetRuns{Target: data.Ran[k].Target, Runs: *buildRuns(&data.Ran[k].Runs)})
		}
	}
}
