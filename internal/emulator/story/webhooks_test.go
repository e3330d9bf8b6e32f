package story_test

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/emulator"
	"github.com/liftlock/liftlock/internal/emulator/story"
)

// TestWebhooks tells the story without webhooks, and with each delivered three
// times in shuffled order: the same end.
func TestWebhooks(t *testing.T) {
	polling := story.Fast()
	polling.Poll, polling.Sweep = time.Second, time.Second
	for _, c := range []struct {
		name string
		how  how
	}{
		{"dropped", how{hooks: emulator.Webhooks{Drop: true}, pace: polling}},
		{"three times, shuffled", how{hooks: emulator.Webhooks{Times: 3, Shuffle: true, Seed: 3}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := begin(t, c.how)
			if err := r.story(); err != nil {
				t.Fatal(err)
			}
			r.check()
		})
	}
}
