package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
)

const (
	// overviewDays is how far back the overview goes.
	overviewDays = 30
	// maxOverviewRows bounds each of its lists.
	maxOverviewRows = 200
	// maxOverviewPromotions bounds the promotions whose components' arrivals are read.
	maxOverviewPromotions = 1000
	// deliveryKept is for how long the numbers are given again: they take a read a component.
	deliveryKept = 5 * time.Minute
	// deliveryTimeout bounds that.
	deliveryTimeout = 30 * time.Second
	// deliveryErrorKept is for how long it isn't tried again where it failed.
	deliveryErrorKept = 30 * time.Second
	// deliveryWait is for how long the rest of the overview waits for the numbers.
	deliveryWait = 3 * time.Second
)

func (se *server) getOverview(w http.ResponseWriter, r *http.Request) {
	_, err := parseQuery(r.URL.RawQuery)
	var s *snapshot
	if err == nil {
		s, err = se.reader.sharedSnapshot(r.Context())
	}
	var o *api.Overview
	if err == nil {
		o, err = se.buildOverview(r.Context(), s)
	}
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, o)
}

// overviewBody is the overview's page.
type overviewBody struct {
	*api.Overview
	Plots []plot
}

func (se *server) overviewPage(w http.ResponseWriter, r *http.Request) {
	s, err := se.reader.sharedSnapshot(r.Context())
	var o *api.Overview
	if err == nil {
		o, err = se.buildOverview(r.Context(), s)
	}
	if err != nil {
		se.renderError(w, r, err)
		return
	}
	se.renderPage(w, r, http.StatusOK, "overview", newPage(s, "Overview", "overview", overviewBody{o, plotDelivery(o.Delivery)}))
}

func (se *server) buildOverview(ctx context.Context, s *snapshot) (*api.Overview, error) {
	o := &api.Overview{At: se.opts.Now(), Held: listHeld(s), Drifted: listDrifted(s), Reverts: []api.Promotion{}}
	o.LeftOut = max(0, len(o.Held)-maxOverviewRows) + max(0, len(o.Drifted)-maxOverviewRows)
	o.Held, o.Drifted = o.Held[:min(len(o.Held), maxOverviewRows)], o.Drifted[:min(len(o.Drifted), maxOverviewRows)]
	since := se.overviewStart()
	reverts, err := se.reader.listPromotions(ctx, promotionQuery{Kind: promotion.KindRevert, Limit: maxOverviewRows})
	if err != nil {
		return nil, err
	}
	for _, p := range reverts.Promotions {
		if !p.CreatedAt.Before(since) {
			o.Reverts = append(o.Reverts, p)
		}
	}
	if o.Delivery, err = se.findDelivery(ctx, s, since); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		o.DeliveryError = err.Error() // what stands still is shown all the same
	}
	return o, nil
}

// findDelivery is what was measured a moment ago, or is now. It doesn't wait long: what is
// being measured is there for who comes next.
func (se *server) findDelivery(ctx context.Context, s *snapshot, since time.Time) (*api.Delivery, error) {
	waiting, cancel := context.WithTimeout(ctx, deliveryWait)
	defer cancel()
	d, err := se.deliveryCache.getOrCompute(waiting, se.access.reading(ctx).key,
		func(ctx context.Context) (*api.Delivery, time.Duration, error) {
			d, err := se.measureDelivery(ctx, s, since)
			if err != nil {
				se.opts.Log.Error("how well releases are delivered could not be measured", zap.Error(err))
				return nil, deliveryErrorKept, apiErrorf(http.StatusServiceUnavailable,
					"how well releases are delivered could not be measured: %v; it is tried again in %d s", err,
					int(deliveryErrorKept.Seconds()))
			}
			return d, deliveryKept, nil
		})
	if waiting.Err() != nil && ctx.Err() == nil {
		return nil, apiErrorf(http.StatusServiceUnavailable, "how well releases are delivered is still being measured; load the page "+
			"again in a moment")
	}
	return d, err
}

// overviewStart is the first instant of the first day that the overview has.
func (se *server) overviewStart() time.Time {
	return se.opts.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-overviewDays)
}

// listHeld lists what is held, the longest first. A hold on an environment or a pipeline is
// one, however many components stand still.
func listHeld(s *snapshot) []api.HeldRelease {
	out := []api.HeldRelease{}
	seen := map[string]bool{}
	for _, u := range s.units {
		c := &u.component
		for i := range c.Holds {
			h := &c.Holds[i]
			k := api.HeldRelease{Repository: c.Repository, Pipeline: c.Pipeline, Environment: h.Environment, Hold: h}
			if h.Scope == "component" {
				k.Component = c.Component
			}
			if key := fmt.Sprintf("%s|%s|%s|%s|%s|%s|%t", c.Repository, c.Pipeline, k.Component, h.Scope, h.Environment, h.By,
				h.Reverts); !seen[key] {
				seen[key] = true
				out = append(out, k)
			}
		}
		for i := range c.Environments {
			e := &c.Environments[i]
			if e.Incoming == nil || e.Incoming.State != "held" || len(c.Holds) > 0 {
				continue
			}
			out = append(out, api.HeldRelease{Repository: c.Repository, Pipeline: c.Pipeline, Component: c.Component,
				Environment: e.Environment, Pull: e.Incoming.Pull,
				Reason: cmp.Or(e.Incoming.Headline, strings.Join(e.WaitReasons(), "; "))})
		}
	}
	slices.SortStableFunc(out, func(a, b api.HeldRelease) int { return heldSince(&a).Compare(heldSince(&b)) })
	return out
}

func heldSince(h *api.HeldRelease) (t time.Time) {
	if h.Hold != nil {
		return h.Hold.At
	}
	return t
}

// listDrifted lists the targets that have drifted, the longest first.
func listDrifted(s *snapshot) []api.DriftedTarget {
	out := []api.DriftedTarget{}
	for _, u := range s.units {
		c := &u.component
		for i := range c.Environments {
			e := &c.Environments[i]
			for _, t := range e.Targets {
				if t.Drift != nil {
					out = append(out, api.DriftedTarget{Repository: c.Repository, Pipeline: c.Pipeline, Component: c.Component,
						Environment: e.Environment, Target: t})
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b api.DriftedTarget) int { return a.Target.Drift.Since.Compare(b.Target.Drift.Since) })
	return out
}

// deliveryDay collects what one day tells.
type deliveryDay struct {
	changes, failures int
	leads, restores   []time.Duration
}

// measureDelivery measures how well releases were delivered since a time: by the arrivals of
// those components that had promotions since.
func (se *server) measureDelivery(ctx context.Context, s *snapshot, since time.Time) (*api.Delivery, error) {
	rows, _, err := se.records.Promotions(ctx, store.PromotionFilter{Kind: promotion.KindPromotion, Limit: maxOverviewPromotions})
	if err != nil {
		return nil, err
	}
	days := make([]deliveryDay, overviewDays)
	seen := map[string]bool{}
	for i := range rows {
		if rows[i].UpdatedAt.Before(since) || seen[rows[i].Unit] {
			continue
		}
		seen[rows[i].Unit] = true
		u := s.findUnit(rows[i].Unit)
		if u == nil {
			continue // the branch has it no more, and nobody knows where its releases began
		}
		arrivals, err := se.records.Arrivals(ctx, rows[i].Unit)
		if err != nil {
			return nil, err
		}
		measureArrivals(days, since, u.record, arrivals)
	}
	out := &api.Delivery{Days: make([]api.DeliveryDay, 0, overviewDays)}
	var all deliveryDay
	for i := range days {
		d := &days[i]
		out.Days = append(out.Days, api.DeliveryDay{Day: since.AddDate(0, 0, i), Changes: d.changes, Failures: d.failures,
			LeadMedian: median(d.leads), RestoreMedian: median(d.restores)})
		all.changes, all.failures = all.changes+d.changes, all.failures+d.failures
		all.leads, all.restores = append(all.leads, d.leads...), append(all.restores, d.restores...)
	}
	out.Changes, out.Failures, out.LeadMedian, out.RestoreMedian = all.changes, all.failures, median(all.leads), median(all.restores)
	return out, nil
}

// measureArrivals adds what a component's arrivals, newest first, tell to the days since a
// time. An arrival keeps when it was last verified and last degraded, so that of one that
// was both several times only the last is counted.
func measureArrivals(days []deliveryDay, since time.Time, u *stored.Unit, arrivals []store.Arrival) {
	began := map[string]time.Time{} // by release: when it first came into a source
	for i := range arrivals {
		if a := &arrivals[i]; len(u.FindEnvironment(a.Environment).After) == 0 {
			began[a.Release] = a.At
		}
	}
	verifiedAfter := map[string]time.Time{} // by environment: when it was verified next
	for i := range arrivals {
		a := &arrivals[i]
		var record stored.Arrival
		if json.Unmarshal(a.Data, &record) != nil {
			continue
		}
		day := func(t time.Time) *deliveryDay {
			n := int(t.Sub(since) / (24 * time.Hour))
			if t.Before(since) || n >= len(days) {
				return &deliveryDay{} // of another time
			}
			return &days[n]
		}
		if record.By == promotion.ByPromotion {
			if verdict := earlier(a.VerifiedAt, a.DegradedAt); !verdict.IsZero() {
				day(verdict).changes++
			}
			if !a.DegradedAt.IsZero() {
				day(a.DegradedAt).failures++
			}
			if from := began[a.Release]; !a.VerifiedAt.IsZero() && !from.IsZero() && a.VerifiedAt.After(from) {
				d := day(a.VerifiedAt)
				d.leads = append(d.leads, a.VerifiedAt.Sub(from))
			}
		}
		if !a.DegradedAt.IsZero() {
			well := verifiedAfter[a.Environment]
			if a.VerifiedAt.After(a.DegradedAt) {
				well = a.VerifiedAt
			}
			if well.After(a.DegradedAt) {
				d := day(well)
				d.restores = append(d.restores, well.Sub(a.DegradedAt))
			}
		}
		if !a.VerifiedAt.IsZero() {
			verifiedAfter[a.Environment] = a.VerifiedAt
		}
	}
}

// earlier is the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// median is the middle of some times in seconds; 0 of none.
func median(all []time.Duration) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	return sorted[len(sorted)/2].Seconds()
}

// plot is a number by days, as bars.
type plot struct {
	Title   string
	Whole   string // the same of all days
	Bars    []plotBar
	Most    string // what the highest bar is
	Half    string // what half of that is; empty where it isn't told, as of counts that have no half
	Nothing bool   // no day has any

	First, Last string // the days at its ends
}

// plotBar is a day's bar, in the plot's own units from its lower edge.
type plotBar struct {
	X, Y, Height int
	Start        int // where the day begins, for what shows it to a pointer
	Day          string
	Text         string
}

// plotDay is how the days at a plot's ends are written.
const plotDay = "2 Jan"

// The size of a plot, and how wide a day's bar and its gap are.
const (
	plotHeight = 100
	plotStep   = 10
)

// plotDelivery draws how well releases are delivered; nil: nothing is drawn.
func plotDelivery(d *api.Delivery) []plot {
	if d == nil {
		return nil
	}
	seconds := func(v float64) string { return formatDuration(time.Duration(v * float64(time.Second))) }
	rate := func(failures, changes int) float64 {
		if changes == 0 {
			return 0
		}
		return 100 * float64(failures) / float64(changes)
	}
	percent := func(v float64) string { return fmt.Sprintf("%.0f %%", v) }
	count := func(v float64) string { return fmt.Sprintf("%.0f", v) }
	return []plot{
		newPlot("Promotions with a verdict", count(float64(d.Changes)), d.Days, count,
			func(k *api.DeliveryDay) float64 { return float64(k.Changes) }),
		newPlot("Failure rate", percent(rate(d.Failures, d.Changes)), d.Days, percent,
			func(k *api.DeliveryDay) float64 { return rate(k.Failures, max(k.Changes, k.Failures)) }),
		newPlot("Lead time, median", seconds(d.LeadMedian), d.Days, seconds, func(k *api.DeliveryDay) float64 { return k.LeadMedian }),
		newPlot("Time to restore, median", seconds(d.RestoreMedian), d.Days, seconds,
			func(k *api.DeliveryDay) float64 { return k.RestoreMedian }),
	}
}

func newPlot(title, whole string, days []api.DeliveryDay, format func(float64) string, of func(*api.DeliveryDay) float64) plot {
	p := plot{Title: title, Whole: whole, Nothing: true}
	most := 0.0
	for i := range days {
		most = max(most, of(&days[i]))
	}
	p.Most = format(most)
	if half := format(most / 2); half != p.Most && half != format(0) && most != 1 {
		p.Half = half
	}
	for i := range days {
		v := of(&days[i])
		b := plotBar{X: i*plotStep + 1, Start: i * plotStep, Day: days[i].Day.Format(time.DateOnly), Text: format(v)}
		if v > 0 {
			p.Nothing = false
			b.Height = max(2, int(v/cmp.Or(most, 1)*plotHeight))
		}
		b.Y = plotHeight - b.Height
		p.Bars = append(p.Bars, b)
	}
	if len(days) > 0 {
		p.First, p.Last = days[0].Day.Format(plotDay), days[len(days)-1].Day.Format(plotDay)
	}
	return p
}
