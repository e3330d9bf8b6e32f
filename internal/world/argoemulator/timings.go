package argoemulator

import "time"

// Timings is how long everything in the simulated Argo CD takes. A zero duration
// takes no time at all, except where it says otherwise.
type Timings struct {
	Notice      time.Duration // from a push until Argo CD notices it by itself; its revision cache and polling in one
	Compare     time.Duration // of a comparison
	Sync        time.Duration // of a sync operation
	Rollout     time.Duration // from the end of a sync until its pods are ready
	Degrade     time.Duration // from the end of a sync until a broken image's Deployment passes its progress deadline
	LateFailure time.Duration // from ready until an image that fails late fails
	HealthLag   time.Duration // from the end of a sync until its effect on health is seen without a comparison
	Resync      time.Duration // between comparisons when nothing happens; zero: none
	Bookmark    time.Duration // between bookmarks of a watch, in real time; zero: none
	Tick        time.Duration // how often the controller looks, in real time; zero: 10 ms
	KeepEvents  int           // how many changes a watch can be resumed over; zero: 5,000

	// WholeSeconds cuts the fractions off all times that are shown, as
	// Kubernetes does. Then two comparisons within a second look like one.
	WholeSeconds bool
}

// DemoTimings lets people follow the story.
func DemoTimings() Timings {
	return Timings{
		Notice: time.Second, Compare: 200 * time.Millisecond, Sync: time.Second, Rollout: 2 * time.Second,
		Degrade: 3 * time.Second, LateFailure: 6 * time.Second, HealthLag: 300 * time.Millisecond, Resync: 20 * time.Second,
		Bookmark: 10 * time.Second, Tick: 50 * time.Millisecond,
	}
}

// FastTimings is for machines: a promotion takes a fraction of a second.
func FastTimings() Timings {
	return Timings{
		Notice: 30 * time.Millisecond, Compare: 10 * time.Millisecond, Sync: 40 * time.Millisecond, Rollout: 60 * time.Millisecond,
		Degrade: 120 * time.Millisecond, LateFailure: 400 * time.Millisecond, HealthLag: 15 * time.Millisecond, Resync: 2 * time.Second,
		Bookmark: time.Second, Tick: 5 * time.Millisecond,
	}
}

func (ti Timings) tickInterval() time.Duration {
	if ti.Tick <= 0 {
		return 10 * time.Millisecond
	}
	return ti.Tick
}

func (ti Timings) maxEvents() int {
	if ti.KeepEvents <= 0 {
		return 5000
	}
	return ti.KeepEvents
}

// formatTime is how a time is written into an object.
func (ti Timings) formatTime(t time.Time) string {
	if ti.WholeSeconds {
		return t.UTC().Format(time.RFC3339)
	}
	return t.UTC().Format(time.RFC3339Nano)
}
