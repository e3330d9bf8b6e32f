package facts

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// UnitView is a unit as it was last judged: what the console and the API show.
type UnitView struct {
	Unit     promotion.Unit `json:"unit"`
	At       time.Time      `json:"at"`
	Tip      string         `json:"tip"`
	Broken   string         `json:"broken,omitempty"`
	Decision struct {
		Next time.Time            `json:"next,omitzero"`
		Envs []promotion.EnvState `json:"envs"`
	} `json:"decision"`
	Incidents []promotion.ClusterIncident `json:"incidents,omitempty"` // that the next evaluation must know of
}

// PackView makes the store's row of a judged unit. Its digest leaves out when it
// was judged, so that judging again without news writes nothing.
func PackView(c *ComponentEvaluation, d *promotion.ComponentDecision) (store.Unit, error) {
	v := UnitView{Unit: c.Facts.Unit, Tip: c.Facts.Tip, Broken: c.Facts.PipelineErr, Incidents: c.Facts.ClusterIncidents}
	v.Decision.Envs, v.Decision.Next = d.Envs, d.Next
	plain := v
	plain.Tip, plain.Decision.Next = "", time.Time{}
	raw, err := json.Marshal(plain)
	if err != nil {
		return store.Unit{}, fmt.Errorf("pack the view of %s: %w", wake.UnitName(c.Facts.Unit), err)
	}
	sum := sha256.Sum256(raw)
	v.At = c.Facts.Now
	if raw, err = json.Marshal(v); err != nil {
		return store.Unit{}, fmt.Errorf("pack the view of %s: %w", wake.UnitName(c.Facts.Unit), err)
	}
	u := c.Facts.Unit
	return store.Unit{Key: wake.UnitName(u), Repo: u.Repo, Pipeline: u.Pipeline, Component: u.Component, Digest: hex.EncodeToString(sum[:]), UpdatedAt: v.At, Data: raw}, nil
}
