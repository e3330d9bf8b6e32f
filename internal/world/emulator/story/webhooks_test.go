package story_test

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/emulator/story"
)

// TestWebhooks tells the story without webhooks, and with each delivered three
// times in shuffled order: the same end.
func TestWebhooks(t *testing.T) {
	polling := story.FastTimings()
	polling.Poll, polling.Sweep = time.Second, time.Second
	for _, c := range []struct {
		name string
		how  runOptions
	}{
		{"dropped", runOptions{deliveries: emulator.DeliveryOptions{Drop: true}, timings: polling}},
		{"three times, shuffled", runOptions{deliveries: emulator.DeliveryOptions{Times: 3, Shuffle: true, Seed: 3}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := startRun(t, c.how)
			if err := r.runStory(); err != nil {
				t.Fatal(err)
			}
			r.checkEnd()
		})
	}
}
