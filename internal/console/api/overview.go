package api

import "time"

// Overview answers GET /api/v1/overview: what stands still, what has drifted, what was taken
// back, and how well releases are delivered.
type Overview struct {
	At       time.Time       `json:"at"`
	Held     []HeldRelease   `json:"held"`              // the longest held first, at most 200
	Drifted  []DriftedTarget `json:"drifted"`           // the longest drifted first, at most 200
	Reverts  []Promotion     `json:"reverts"`           // of the last 30 days, newest first, at most 200
	Delivery *Delivery       `json:"delivery"`          // of the last 30 days; null: DeliveryError says why
	LeftOut  int             `json:"leftOut,omitempty"` // how many more there are than the first two lists show

	DeliveryError string `json:"deliveryError,omitempty"`
}

// HeldRelease is what a person's hold is on, or a release that is held in its pull request.
type HeldRelease struct {
	Repository  string `json:"repository"`
	Pipeline    string `json:"pipeline"`
	Component   string `json:"component,omitempty"`   // left out: all of them
	Environment string `json:"environment,omitempty"` // left out: all of them
	Pull        *Pull  `json:"pull,omitempty"`        // the held pull request
	Hold        *Hold  `json:"hold,omitempty"`        // left out where only the pull request says that it is held
	Reason      string `json:"reason,omitempty"`      // then: what its gates say
}

// DriftedTarget is a target that differs from what was synced to it.
type DriftedTarget struct {
	Repository  string `json:"repository"`
	Pipeline    string `json:"pipeline"`
	Component   string `json:"component"`
	Environment string `json:"environment"`
	Target      Target `json:"target"`
}

// Delivery is how well releases were delivered, by what the records of arrivals say: of each
// environment of a component, the newest 50.
type Delivery struct {
	Days []DeliveryDay `json:"days"` // the oldest first, each from midnight in UTC
	// These are over all days; a time is left out where nothing tells it. The median is over
	// verified promotions, and over degraded environments that are verified again.
	Changes       int     `json:"changes"`
	Failures      int     `json:"failures"`
	LeadMedian    float64 `json:"leadMedian,omitempty"`    // in seconds
	RestoreMedian float64 `json:"restoreMedian,omitempty"` // in seconds
}

// DeliveryDay is what came in by promotions on one day.
type DeliveryDay struct {
	Day           time.Time `json:"day"`
	Changes       int       `json:"changes"`  // that have got a verdict
	Failures      int       `json:"failures"` // of these, that were degraded
	LeadMedian    float64   `json:"leadMedian,omitempty"`
	RestoreMedian float64   `json:"restoreMedian,omitempty"`
}
