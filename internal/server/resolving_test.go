package server

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
)

// TestResolvingCommits holds that a commit on which processes die is left alone for longer each
// time, and that one death delays nothing. Another commit, and another repository, goes on.
func TestResolvingCommits(t *testing.T) {
	now := time.Unix(1000, 0)
	c := &resolvingCommits{dir: t.TempDir(), now: func() time.Time { return now }, log: zap.NewNop()}
	begin := func(repo, commit string) (done func()) {
		t.Helper()
		done, err := c.begin(repo, commit)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	begin("hub:a", "1") // and dies
	begin("hub:a", "1") // and dies again
	for range 2 {
		if _, err := c.begin("hub:a", "1"); err == nil || !strings.Contains(err.Error(), "ended 2 times while it resolved hub:a at 1, so it is left alone until 1970-01-01T00:17:40Z") {
			t.Fatalf("got %v", err)
		}
		now = now.Add(time.Second)
	}
	begin("hub:b", "1")()
	now = now.Add(time.Minute)
	begin("hub:a", "1") // and dies a third time
	now = now.Add(2 * time.Minute)
	if _, err := c.begin("hub:a", "1"); err == nil || !strings.Contains(err.Error(), "ended 3 times") {
		t.Fatalf("got %v", err)
	}
	begin("hub:a", "2")()
	begin("hub:a", "1")() // nothing is known of it any more
	if done := begin("hub:a", "1"); done == nil {
		t.Error("it is left alone after a clean end")
	}
}
