package doctor

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// TestCheckExternals says of sources and charts whether they answer, refuse, or are out of reach.
func TestCheckExternals(t *testing.T) {
	answers := func(refused bool, err error) External {
		return External{URL: "https://liftlock:secret@git.example.com/acme/charts", Reach: func(context.Context) (bool, error) { return refused, err }}
	}
	away := errors.New("away")
	d := &doctor{Options: Options{Timeout: time.Minute}}
	for _, c := range []struct {
		check    func(context.Context, External) findings
		external External
		want     Code
	}{
		{d.checkSource, answers(false, nil), CodeSource},
		{d.checkSource, answers(true, away), "source-refused"},
		{d.checkSource, answers(false, away), "source-unread"},
		{d.checkCharts, answers(false, nil), CodeCharts},
		{d.checkCharts, answers(true, away), "charts-refused"},
		{d.checkCharts, answers(false, away), "charts-unread"},
	} {
		got := c.check(t.Context(), c.external)
		if !slices.ContainsFunc(got, func(f Finding) bool { return f.Code == c.want }) || len(got) != 1 {
			t.Errorf("found %+v, want %s", got, c.want)
		}
	}
}
