package console

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

// promotionBody is the body of a promotion's page.
type promotionBody struct {
	api.Promotion
	Steps   []progressStep
	Bars    []healthBar
	Renders bool      // there is a page with what it changes
	Diff    *diffBody // the beginning of that, while it is open; nil: it isn't there yet, or there is none
}

// IsOpen says that its pull request is open.
func (p *promotionBody) IsOpen() bool {
	return p.State == promotion.Opened || p.State == promotion.Held
}

const (
	// shownDiffWait is how long the page of an open promotion waits for what it changes. What is still being
	// rendered then is there for who comes next.
	shownDiffWait = time.Second
	// shownDiffBytes bounds what the page shows of it; its own page has all.
	shownDiffBytes = 4 << 10
)

// loadDiff adds the beginning of what an open promotion changes in the rendered manifests. That it can't be told keeps
// nobody from reading the rest: its own page says why.
func (se *server) loadDiff(ctx context.Context, b *promotionBody) {
	if !b.Renders || !b.IsOpen() || b.Pull == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, shownDiffWait)
	defer cancel()
	d, err := se.renderDiff(ctx, b.ID)
	if err != nil || d.Pending {
		return
	}
	b.Diff = &diffBody{Promotion: b.Promotion, RenderedDiff: d}
	b.Diff.fillGroups(shownDiffBytes)
}

// FromMerge says when something was from the merge: "+5 min" or "−2 h"; empty where
// there was no merge.
func (p *promotionBody) FromMerge(t time.Time) string {
	at := p.Detail.MergedAt
	switch d := t.Sub(at); {
	case at.IsZero() || t.IsZero():
		return ""
	case d < 0:
		return "−" + formatDuration(-d)
	default:
		return "+" + formatDuration(d)
	}
}

// healthBar is how one target was since the merge.
type healthBar struct {
	Target   string
	Now      string // its state
	Text     string // the same in words
	Segments []barSegment
	Changes  []api.StateChange
}

// barSegment is for how long a target was in a state, in thousandths of the bar.
type barSegment struct {
	State       string
	From, Width int
	Text        string
}

// barLength is a bar's length in its own units.
const barLength = 1000

// buildHealthBars draws the targets' timelines on one scale, which ends some time after the last
// change. The present state lasts, and the same page is the same a minute later.
func buildHealthBars(all []api.Timeline, sinceMerge func(time.Time) string) []healthBar {
	var first, last time.Time
	for _, t := range all {
		for _, k := range t.Changes {
			if first.IsZero() || k.At.Before(first) {
				first = k.At
			}
			if k.At.After(last) {
				last = k.At
			}
		}
	}
	whole := max(last.Sub(first)*5/4, time.Minute)
	var out []healthBar
	for _, t := range all {
		b := healthBar{Target: t.Target, Changes: t.Changes}
		var said []string
		for i, k := range t.Changes {
			s := barSegment{State: k.State, From: int(barLength * k.At.Sub(first) / whole),
				Text: strings.TrimSpace(k.State + " " + sinceMerge(k.At))}
			end := barLength
			if i+1 < len(t.Changes) {
				end = int(barLength * t.Changes[i+1].At.Sub(first) / whole)
			}
			s.Width = max(end-s.From, 4)
			b.Segments = append(b.Segments, s)
			b.Now = k.State
			said = append(said, s.Text)
		}
		b.Text = strings.Join(said, ", ")
		out = append(out, b)
	}
	return out
}

// loadPromotion reads the promotion that a request's address names; nil: the page that says why
// it can't be shown is sent.
func (se *server) loadPromotion(w http.ResponseWriter, r *http.Request) (*snapshot, *api.Promotion) {
	id, err := parsePromotionID(r)
	var s *snapshot
	if err == nil {
		s, err = se.reader.sharedSnapshot(r.Context())
	}
	var p *api.Promotion
	if err == nil {
		p, err = se.reader.readPromotion(r.Context(), s, id)
	}
	if err != nil {
		se.renderError(w, r, err)
		return nil, nil
	}
	return s, p
}

func (se *server) promotionPage(w http.ResponseWriter, r *http.Request) {
	s, p := se.loadPromotion(w, r)
	if p == nil {
		return
	}
	title := p.Component + " to " + p.Environment
	if p.Kind == "revert" {
		title = p.Component + " back in " + p.Environment
	}
	b := &promotionBody{Promotion: *p, Steps: buildSteps(p), Renders: se.opts.Diff != nil}
	b.Bars = buildHealthBars(p.Detail.Timelines, b.FromMerge)
	se.loadDiff(r.Context(), b)
	pg := newPage(s, title, "promotions", b)
	pg.unit = unitKey(promotion.Unit{Repo: p.Repository, Pipeline: p.Pipeline, Component: p.Component})
	se.renderPage(w, r, http.StatusOK, "promotion", pg)
}
