package backtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/policies"
)

// BenchmarkBacktest replays 90 days of 1,000 components with a release a day through three environments
// under a longer soak: 90,000 arrivals and 180,000 promotions.
func BenchmarkBacktest(b *testing.B) {
	const days, components = 90, 1000
	one := scenarioComponent{name: "web"}
	for day := range days {
		at := noon.Add(time.Duration(day) * 24 * time.Hour)
		r := oneRelease(fmt.Sprintf("r%d", day+1), at)
		r.approved = map[string][]time.Time{"prod": {at.Add(2 * time.Hour)}}
		if day%10 == 3 {
			r.degraded = map[string]time.Duration{"qa": 5 * time.Hour}
		}
		one.releases = append(one.releases, r)
	}
	s := scenario{rules: threeEnvironments(prodWith(approvals(1))), delays: usualDelays, until: noon.Add(days * 24 * time.Hour),
		components: []scenarioComponent{one}}
	record := s.record(b)
	in := Input{Rules: record.Rules, Until: record.Until, Read: func(_ context.Context, u promotion.Unit) (*Trace, error) {
		return &Trace{Unit: u, Changes: record.Traces[0].Changes}, nil
	}}
	size := 0
	for _, c := range record.Traces[0].Changes {
		size += len(c.Patch)
	}
	for i := range components {
		in.Units = append(in.Units, promotion.Unit{Repo: "hub:acme/shop", Pipeline: "shop", Component: fmt.Sprintf("c%d", i)})
	}
	longer := threeEnvironments(func(p *pipeline.Pipeline) {
		p.Spec.Environments[2].Gates = []policies.Gate{{Approvals: &policies.Approvals{Count: 1}}, {Soak: &policies.Soak{For: 6 * time.Hour}}}
	})
	b.ReportAllocs()
	for b.Loop() {
		report, err := Run(context.Background(), in, longer)
		if err != nil {
			b.Fatal(err)
		}
		if len(report.Stopped) != components*days/10 {
			b.Fatalf("%d degradations stopped: %+v", len(report.Stopped), report.Counts)
		}
	}
	b.ReportMetric(float64(size)/(2*days), "bytes/promotion")
	b.ReportMetric(float64(len(record.Traces[0].Changes))/(2*days), "changes/promotion")
}
