package branch

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/git"
)

// TestNumberCommits holds that newer commits of a line have larger numbers, also when
// clocks went back, and that lines are told apart by time.
func TestNumberCommits(t *testing.T) {
	at := func(minutes ...int) []git.CommitInfo {
		var out []git.CommitInfo
		for _, m := range minutes {
			out = append(out, git.CommitInfo{CommitTime: time.Unix(int64(1_700_000_000+60*m), 0)})
		}
		return out
	}
	number := func(log []git.CommitInfo) (out []int64) {
		order := map[string]int64{}
		for i := range log {
			log[i].SHA = strconv.Itoa(i)
		}
		numberCommits(log, order)
		for i := range log {
			out = append(out, order[log[i].SHA])
		}
		return out
	}
	one, other := number(at(9, 2, 5, 1)), number(at(7, 7, 3))
	for _, s := range [][]int64{one, other} {
		for i := 1; i < len(s); i++ {
			if s[i] >= s[i-1] {
				t.Errorf("%v", s)
			}
		}
	}
	if diff := cmp.Diff(true, one[0] > other[0] && other[1] > one[1] && one[2] > other[2] && other[2] > one[3]); diff != "" {
		t.Errorf("%v and %v", one, other)
	}
}
