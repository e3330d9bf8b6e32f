package forge

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNewestReviews(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 5, 1, 12, minute, 0, 0, time.UTC) }
	approval := func(id int64, user string, minute int) GivenReview {
		return GivenReview{Review: Review{ID: id, User: user, Approved: true, At: at(minute)}, Decides: true}
	}
	rejection := func(id int64, user string, minute int) GivenReview {
		return GivenReview{Review: Review{ID: id, User: user, Rejected: true, At: at(minute)}, Decides: true}
	}
	dismissed := func(id int64, user string, minute int) GivenReview {
		return GivenReview{Review: Review{ID: id, User: user, At: at(minute)}, Decides: true}
	}
	comment := func(id int64, user string, minute int) GivenReview {
		return GivenReview{Review: Review{ID: id, User: user, At: at(minute)}}
	}
	for _, c := range []struct {
		name string
		all  []GivenReview
		want []int64
	}{
		{"nobody", nil, []int64{}},
		{"a comment after an approval doesn't take it back", []GivenReview{approval(1, "ada", 1), comment(2, "ada", 2)}, []int64{1}},
		{"the last comment of who decided nothing", []GivenReview{comment(1, "ada", 1), comment(2, "ada", 2)}, []int64{2}},
		{"a decision after a comment", []GivenReview{comment(1, "ada", 1), approval(2, "ada", 2)}, []int64{2}},
		{"the last decision", []GivenReview{approval(1, "ada", 1), rejection(2, "ada", 2)}, []int64{2}},
		{"a dismissed decision stays the last", []GivenReview{approval(1, "ada", 1), dismissed(2, "ada", 2), comment(3, "ada", 3)}, []int64{2}},
		{"oldest first, then by name", []GivenReview{approval(1, "linus", 2), comment(2, "ada", 2), approval(3, "grace", 1)}, []int64{3, 2, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := []int64{}
			for _, r := range NewestReviews(c.all) {
				got = append(got, r.ID)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}
