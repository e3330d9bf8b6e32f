package promotion

import "time"

// Delivery is what one verdict on an arrival tells of how well releases are delivered.
type Delivery struct {
	// Change says that it is the first verdict on what a promotion brought.
	Change bool
	// Failure says that what a promotion brought is degraded for the first time.
	Failure bool
	// Lead is how long ago the release came into the environment in which it began. It is 0 where
	// this isn't the first verification of a promotion's release, or that time isn't known.
	Lead time.Duration
	// Restore is for how long the environment had been degraded that is verified now; 0: it
	// wasn't.
	Restore time.Duration
}

// MeasureDelivery says what a verdict that is about to be recorded tells. Clocks that
// differ may make a time shorter, never negative.
func (c *ComponentFacts) MeasureDelivery(r Record) Delivery {
	e, i := c.findArrival(r)
	if e == nil {
		return Delivery{}
	}
	a := &e.History[i]
	promoted, first := a.By == ByPromotion, a.VerifiedAt.IsZero() && a.DegradedAt.IsZero()
	d := Delivery{Change: promoted && first, Failure: promoted && r.Degraded && a.DegradedAt.IsZero()}
	if !r.Verified {
		return d
	}
	if began := c.releaseBegan(a.Release, a.At); promoted && a.VerifiedAt.IsZero() && !began.IsZero() {
		d.Lead = max(c.Now.Sub(began), 0)
	}
	if since := degradedSince(e.History[i:]); !since.IsZero() {
		d.Restore = max(c.Now.Sub(since), 0)
	}
	return d
}

// findArrival finds the arrival that a record is about; nil where there is none any more.
func (c *ComponentFacts) findArrival(r Record) (e *Env, index int) {
	for k := range c.Envs {
		if e = &c.Envs[k]; e.Name != r.Environment {
			continue
		}
		for i := range e.History {
			if e.History[i].Release == r.Release && e.History[i].Commit == r.Commit {
				return e, i
			}
		}
	}
	return nil, 0
}

// releaseBegan is when a release last came into an environment without any before it,
// until then; zero: that isn't known.
func (c *ComponentFacts) releaseBegan(release string, until time.Time) (began time.Time) {
	for k := range c.Envs {
		if !c.Envs[k].Source() {
			continue
		}
		for _, a := range c.Envs[k].History { // newest first
			if a.Release == release && !a.At.After(until) {
				if began.IsZero() || a.At.Before(began) {
					began = a.At
				}
				break
			}
		}
	}
	return began
}

// degradedSince is since when an environment has been degraded without a verification,
// given its arrivals, newest first; zero: it isn't.
func degradedSince(arrivals []Arrival) (since time.Time) {
	for i := range arrivals {
		a := &arrivals[i]
		switch {
		case a.IsDegraded():
			since = a.DegradedAt
		case !a.VerifiedAt.IsZero():
			return since
		}
	}
	return since
}
