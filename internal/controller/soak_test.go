package controller

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
)

// TestSoakIsServed holds that a promotion is merged once its release has soaked upstream, also by
// another process than the one that saw it begin. A look doesn't record a soak that moved by next
// to nothing.
func TestSoakIsServed(t *testing.T) {
	t.Parallel()
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.spec, "    - {name: qa, after: [dev], merge: auto, gates: [{soak: {for: 3h}}], verify: "+quickly+"}\n", c.components...)
			w.openOne(c.key, "2.0.0", c.components...)
			look := func() {
				t.Helper()
				w.must(w.run(wake.ForUnit(w.unit(c.key))))
				if w.pulls()[0].Merged {
					t.Fatal("it is merged too early")
				}
			}
			version := func() int64 {
				t.Helper()
				v, err := w.opts.Store.ArrivalsVersion(t.Context(), wake.UnitName(w.unit(c.components[0])))
				w.must(err)
				return v
			}
			look()
			before := version()
			look()
			if now := version(); now != before {
				t.Errorf("a look a moment later writes: the version was %d and is %d", before, now)
			}
			for range 3 {
				w.clock.Step(50 * time.Minute)
				look()
			}
			if version() == before {
				t.Error("nothing was written down of what soaked")
			}
			w.addProcess(w.opts.Store, "another")
			w.runRepository()
			look()
			w.clock.Step(2 * time.Hour) // nobody looked: that isn't counted
			look()
			w.clock.Step(35 * time.Minute)
			w.settle(c.key, "it is merged", func() bool { return w.pulls()[0].Merged })
		})
	}
}
