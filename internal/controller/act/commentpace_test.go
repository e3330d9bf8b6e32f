package act

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store/record"
)

// TestNextEdit holds when a comment that was edited ten seconds ago may be edited again.
func TestNextEdit(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	ago := func(s int) time.Time { return now.Add(-time.Duration(s) * time.Second) }
	var eight []facts.PaceNotice
	for i := range maxUrgentNotices {
		eight = append(eight, facts.PaceNotice{Digest: string(rune('a' + i)), At: ago(10)})
	}
	for name, c := range map[string]struct {
		pace   commentPace
		notice string
		wait   time.Duration
	}{
		"never edited":                         {},
		"a while ago":                          {pace: commentPace{At: ago(30)}},
		"just now":                             {pace: commentPace{At: now}, wait: 30 * time.Second},
		"ten seconds ago":                      {pace: commentPace{At: ago(10)}, wait: 20 * time.Second},
		"ten seconds ago, and asks":            {pace: commentPace{At: ago(10)}, notice: "x"},
		"asked the same ten seconds ago":       {pace: commentPace{At: ago(10), Notices: []facts.PaceNotice{{Digest: "x", At: ago(10)}}}, notice: "x", wait: 20 * time.Second},
		"asked another ten seconds ago":        {pace: commentPace{At: ago(10), Notices: []facts.PaceNotice{{Digest: "y", At: ago(10)}}}, notice: "x"},
		"asked the same, then said other":      {pace: commentPace{At: ago(10), Notices: []facts.PaceNotice{{Digest: "x", At: ago(20)}}}, notice: "x", wait: 20 * time.Second},
		"asked the same long ago":              {pace: commentPace{At: ago(10), Notices: []facts.PaceNotice{{Digest: "x", At: ago(30)}}}, notice: "x"},
		"asked too many things":                {pace: commentPace{At: ago(10), Notices: eight}, notice: "x", wait: 20 * time.Second},
		"by a clock that was ahead":            {pace: commentPace{At: ago(-3600)}},
		"asked by a clock that was ahead":      {pace: commentPace{At: ago(10), Notices: []facts.PaceNotice{{Digest: "x", At: ago(-3600)}}}, notice: "x"},
		"asked something, and says no more so": {pace: commentPace{At: ago(10), Notices: []facts.PaceNotice{{Digest: "x", At: ago(10)}}}, wait: 20 * time.Second},
	} {
		if got := c.pace.nextEdit(now, c.notice).Sub(now); got != c.wait {
			t.Errorf("%s: it waits for %s, want %s", name, got, c.wait)
		}
	}
}

// TestCommentPace edits a comment as often as it may, through the store's form. No edit without a
// notice comes within the interval, no notice twice within it, and none waits longer.
func TestCommentPace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type edit struct {
			at     time.Time
			notice string
		}
		var done []edit
		var pace commentPace
		now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 12_000).Draw(t, "milliseconds")) * time.Millisecond)
			notice := rapid.SampledFrom([]string{"", "", "", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}).Draw(t, "notice")
			at := pace.nextEdit(now, notice)
			if at.Before(now) || at.Sub(now) > commentInterval {
				t.Fatalf("at %s the next edit is at %s", now, at)
			}
			if at.After(now) {
				if again := pace.nextEdit(at, notice); again.After(at) {
					t.Fatalf("at %s it may be edited at %s, and then at %s", now, at, again)
				}
				continue
			}
			recent := slices.DeleteFunc(slices.Clone(done), func(e edit) bool { return now.Sub(e.at) >= commentInterval })
			if len(recent) > 0 && (notice == "" || slices.ContainsFunc(recent, func(e edit) bool { return e.notice == notice })) {
				t.Fatalf("at %s %q is an edit after %v", now, notice, recent)
			}
			if len(recent) > maxUrgentNotices {
				t.Fatalf("%d edits within %s of %s", len(recent)+1, commentInterval, now)
			}
			done = append(done, edit{now, notice})
			pace = pace.edited(now, notice)
			raw, err := json.Marshal(pace)
			if err != nil {
				t.Fatal(err)
			}
			pace = commentPace{}
			if err := json.Unmarshal(raw, &pace); err != nil {
				t.Fatal(err)
			}
		}
	})
	var p commentPace
	if diff := cmp.Diff("{}", func() string { raw, _ := json.Marshal(p); return string(raw) }()); diff != "" {
		t.Errorf("nothing is kept as %s", diff)
	}
}

// TestCommentIsPutOff holds that an edit without news for a person waits until the last one is 30
// seconds old. The next look is planned for then, also after the store was lost, and a hold is told
// at once.
func TestCommentIsPutOff(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	w.present()
	present := func() (next time.Time, edited bool) {
		t.Helper()
		ev, d := w.evaluate()
		was := w.forge.comments[n][0].Body
		next, err := w.actor.Present(w.ctx(), ev, d)
		w.must(err)
		return next, w.forge.comments[n][0].Body != was
	}
	hold := func(on bool) {
		pr := w.forge.pulls[n]
		pr.Labels = slices.DeleteFunc(pr.Labels, func(l string) bool { return l == promotion.LabelHold })
		if on {
			pr.Labels = append(pr.Labels, promotion.LabelHold)
		}
	}
	hold(true)
	if next, edited := present(); !edited || !next.IsZero() {
		t.Errorf("a hold: edited %v, next %s", edited, next)
	}
	held := w.forge.comments[n][0].UpdatedAt
	hold(false)
	if next, edited := present(); edited || !next.Equal(held.Add(commentInterval)) {
		t.Errorf("and its end: edited %v, next %s", edited, next)
	}
	w.must(w.store.DeleteRecord(w.ctx(), facts.Shown.Key(record.OfPull(w.repo.ID, n))))
	if next, edited := present(); edited || !next.Equal(held.Add(commentInterval)) {
		t.Errorf("with nothing known: edited %v, next %s", edited, next)
	}
	w.now = held.Add(commentInterval)
	if next, edited := present(); !edited || !next.IsZero() {
		t.Errorf("30 seconds later: edited %v, next %s", edited, next)
	}
	w.now = w.now.Add(time.Second)
	hold(true)
	if next, edited := present(); !edited || !next.IsZero() {
		t.Errorf("another hold: edited %v, next %s", edited, next)
	}
	hold(false)
	w.now = w.now.Add(commentInterval)
	present()
	hold(true)
	if next, edited := present(); !edited || !next.IsZero() {
		t.Errorf("a third hold: edited %v, next %s", edited, next)
	}
	w.now = w.now.Add(time.Second)
	hold(false)
	ev, d := w.evaluate()
	if _, err := w.actor.Present(w.ctx(), ev, d); err != nil {
		t.Fatal(err)
	}
	w.must(w.do(ev, d, promotion.Close{Environment: "qa", Pull: n, Members: ev.OpenPulls[n].Members, Why: "it is over"}))
	if last := w.forge.comments[n][0].Body; !strings.Contains(last, "Closed by Liftlock") {
		t.Errorf("what is closed says %q", last)
	}
}
