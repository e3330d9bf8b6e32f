package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/wording"
)

// maxEvents bounds the events on one page.
const maxEvents = 200

// listPromotions reads one page of promotions, newest first.
func (r *reader) listPromotions(ctx context.Context, l promotionQuery) (*api.Promotions, error) {
	rows, next, err := r.store.Promotions(ctx, store.PromotionFilter{Repo: l.Repository, Pipeline: l.Pipeline, Component: l.Component,
		Environment: l.Environment, Kind: l.Kind, States: l.storedStates(), Pull: l.Pull, Before: l.Before, Limit: l.Limit + 1})
	if err != nil {
		return nil, err
	}
	out := &api.Promotions{Promotions: []api.Promotion{}, Next: next}
	for i, p := range rows {
		if i == l.Limit {
			out.Next = rows[i-1].ID
			break
		}
		if err := r.learnReleaseName(ctx, p); err != nil {
			return nil, err
		}
		if built := r.buildPromotion(p); l.shows(p.State, built.State) {
			out.Promotions = append(out.Promotions, built)
		}
	}
	return out, nil
}

// learnReleaseName looks up the name of a promotion's release in its component's history, where no displayed
// component carries the release any more. It keeps all names that it finds on the way.
func (r *reader) learnReleaseName(ctx context.Context, p store.Promotion) error {
	if p.Release == "" || r.releaseName(p.Release) != "" {
		return nil
	}
	rows, err := r.store.Arrivals(ctx, p.Unit)
	if err != nil {
		return err
	}
	names := map[string]string{p.Release: wording.Short(p.Release)} // the short ID stands in, so that it isn't searched again
	for _, row := range rows {
		var a stored.Arrival
		if json.Unmarshal(row.Data, &a) == nil {
			if n := nameRelease(a.Content.Fields); n != "" {
				names[row.Release] = n
			}
		}
	}
	for id, n := range names {
		if r.releaseName(id) == "" {
			r.releaseNames.Put(id, n)
		}
	}
	return nil
}

// nameRelease names a release by its fields, as decisions do; empty where it has none.
func nameRelease(fields []fieldedit.Field) string {
	if len(fields) == 0 {
		return ""
	}
	return fieldedit.Release{Fields: fields}.String()
}

// readPromotion reads one promotion with everything that is known of it; the snapshot has
// what is true of it now, and teaches names and addresses.
func (r *reader) readPromotion(ctx context.Context, s *snapshot, id int64) (*api.Promotion, error) {
	row, ok, err := r.store.Promotion(ctx, id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, apiErrorf(http.StatusNotFound, "there is no promotion %d", id)
	}
	if err := r.learnReleaseName(ctx, row); err != nil {
		return nil, err
	}
	b := r.readPull(ctx, row.Repo, row.Pull)
	if b != nil {
		r.learnPullURL(row.Repo, row.Pull, b.PR.URL)
	}
	p, d := r.buildPromotion(row), &api.PromotionDetail{}
	p.Detail = d
	if b != nil {
		d.Title = b.PR.Title
	}
	if err := r.addEvidence(ctx, row, d); err != nil {
		return nil, err
	}
	if err := r.addRelated(ctx, row, d); err != nil {
		return nil, err
	}
	if err := r.addRevertedEvidence(ctx, row, d); err != nil {
		return nil, err
	}
	if err := r.addCurrentState(ctx, s, row, d); err != nil {
		return nil, err
	}
	f := store.EventFilter{Repo: row.Repo, Pull: row.Pull, Newest: true, Limit: maxEvents}
	if row.Pull == 0 {
		f.Pipeline, f.Component, f.Environment = row.Pipeline, row.Component, row.Environment
	}
	events, _, _, err := r.store.Events(ctx, f)
	if err != nil {
		return nil, err
	}
	sort.Slice(events, func(a, b int) bool { return events[a].Seq < events[b].Seq })
	d.Events = r.buildEvents(events)
	addRan(&row, d)
	if err := r.addAudit(ctx, row, &p); err != nil {
		return nil, err
	}
	d.Cause = describeCause(s.findUnit(row.Unit), &p)
	return &p, nil
}

// maxPromotionAudit bounds what a promotion shows of the audit trail.
const maxPromotionAudit = 50

// addAudit fills in what people asked for on a promotion, and its merge.
func (r *reader) addAudit(ctx context.Context, row store.Promotion, p *api.Promotion) error {
	d := p.Detail
	for i := range d.Events {
		if d.Events[i].Kind == event.Merged && d.Events[i].Component == row.Component {
			d.MergedAt = d.Events[i].At
		}
	}
	if row.Pull == 0 {
		return nil
	}
	// Commands on a batch's pull request are about the batch.
	number := " #" + strconv.Itoa(row.Pull) + " "
	pipeline := row.Repo + "|" + row.Pipeline + "|"
	rows, _, err := r.store.AuditTrail(ctx, store.AuditFilter{SubjectPrefixes: []string{pipeline + row.Component + number,
		pipeline + promotion.BatchName + number}}, maxPromotionAudit)
	if err != nil {
		return err
	}
	for i := range rows {
		e := r.buildAuditEntry(&rows[i])
		d.Audit = append(d.Audit, e)
		if e.Merge != nil && d.Merge == nil && isMerged(row.State) { // it is written down before it is made
			d.Merge = &e
		}
	}
	if d.Merge != nil {
		if d.MergedAt.IsZero() {
			d.MergedAt = d.Merge.At
		}
		d.Commit = cmp.Or(d.Merge.Merge.Commit, d.Commit)
	}
	if d.Commit != "" {
		d.CommitURL = webAddress(r.commitURL(row.Repo, "", d.Commit))
		if d.Merge != nil && d.Merge.Merge.Tip != "" {
			d.CompareURL = webAddress(r.commitURL(row.Repo, d.Merge.Merge.Tip, d.Commit))
		}
	}
	return nil
}

// isMerged says that a promotion in a state was merged.
func isMerged(state string) bool {
	return !slices.Contains([]string{"waiting", "open", "held", "closed", "superseded"}, state)
}

// describeCause says in one sentence why a promotion is as it is: what degraded first, who
// asked for it to be taken back, what it waits for.
func describeCause(u *shownUnit, p *api.Promotion) string {
	d := p.Detail
	if len(d.Records) > 0 && len(d.Records[0].Targets) > 0 {
		t := &d.Records[0].Targets[0]
		if len(t.Resources) > 0 {
			return t.Target + ": " + describeCulprit(&t.Resources[0])
		}
		return t.Target + ": " + strings.TrimPrefix(t.Reason, t.Target+": ")
	}
	if p.Headline != "" && p.Kind == promotion.KindPromotion {
		return p.Headline
	}
	if d.By != "" || d.Reason != "" {
		return strings.TrimSuffix("asked for by "+cmp.Or(d.By, "somebody")+": "+d.Reason, ": ")
	}
	for i := range d.Gates {
		if d.Gates[i].Outcome != "pass" {
			return d.Gates[i].Sentence()
		}
	}
	if len(d.Why) > 0 {
		return d.Why[0].Text
	}
	if u != nil && d.Current {
		if e, err := environmentOf(&u.component, p.Environment); err == nil {
			return e.Reason
		}
	}
	if p.State == "closed" || p.State == "superseded" {
		for i := len(d.Events) - 1; i >= 0; i-- {
			if d.Events[i].Kind == event.Closed || d.Events[i].Kind == event.Replaced {
				return d.Events[i].Message
			}
		}
	}
	return ""
}

// describeCulprit says how a resource is, by what it brought forth where that says more.
func describeCulprit(r *api.ResourceEvidence) string {
	text := r.Kind + " " + r.Name + " is " + r.Health
	if len(r.Children) > 0 {
		c := &r.Children[0]
		return text + ": " + c.Kind + " " + c.Name + " " + cmp.Or(strings.TrimSuffix(c.Reason+": "+c.Message, ": "), c.Health)
	}
	if r.Message != "" {
		text += ": " + r.Message
	}
	return text
}

// addRelated fills in the two ends of a way back: a revert carries the release that
// it takes back.
func (r *reader) addRelated(ctx context.Context, row store.Promotion, d *api.PromotionDetail) error {
	if row.Release == "" {
		return nil
	}
	all, _, err := r.store.Promotions(ctx, store.PromotionFilter{Unit: row.Unit, Environment: row.Environment, Release: row.Release})
	if err != nil {
		return err
	}
	for _, p := range all { // newest first
		if p.Kind == row.Kind {
			continue
		}
		o := &api.Related{ID: p.ID, Pull: r.buildPull(p.Repo, p.Pull)}
		switch {
		case row.Kind == promotion.KindRevert && p.ID < row.ID && d.Reverts == nil:
			d.Reverts = o
		case row.Kind == promotion.KindPromotion && p.ID > row.ID:
			d.RevertedBy = o // the last one that is set is the first that came
		}
	}
	return nil
}

// addCurrentState fills in what is true of the promotion at this moment: its gates while it
// is open, its targets while what it brought is there.
func (r *reader) addCurrentState(ctx context.Context, s *snapshot, row store.Promotion, d *api.PromotionDetail) error {
	u := s.findUnit(row.Unit)
	if row.Pull == 0 || u == nil {
		return nil
	}
	e, err := environmentOf(&u.component, row.Environment)
	if err != nil {
		return nil // the pipeline has no such environment any more
	}
	switch {
	case e.Incoming != nil && e.Incoming.Pull != nil && e.Incoming.Pull.Number == row.Pull:
		d.Gates, d.Why, d.From, d.Reaches = e.Incoming.Gates, e.Why, e.Name, e.Targets
		return r.addOrigin(ctx, u, row, d)
	case e.Revert != nil && e.Revert.Pull.Number == row.Pull:
		d.Gates, d.Why, d.Reaches = e.Revert.Gates, e.Why, e.Targets
	case e.LandedIn != nil && e.LandedIn.Number == row.Pull:
		d.Current, d.Targets, d.Commit = true, e.Targets, e.Commit
		if held := findHeldEvidence(u, row.Environment); held != nil {
			d.Records = r.buildEvidence(row.Repo, []promotion.Evidence{*held})
		}
		return r.addTimelines(ctx, row, e.Commit, d)
	}
	return nil
}

// addOrigin fills in where a promotion's release began.
func (r *reader) addOrigin(ctx context.Context, u *shownUnit, row store.Promotion, d *api.PromotionDetail) error {
	rows, err := r.store.Arrivals(ctx, row.Unit)
	if err != nil {
		return err
	}
	for i := range rows { // newest first: the last one that is found is the first that came
		a := &rows[i]
		if a.Release != row.Release || len(u.record.FindEnvironment(a.Environment).After) > 0 {
			continue
		}
		d.Origin = &api.ReleaseOrigin{Environment: a.Environment, Commit: a.Commit, At: a.At,
			CommitURL: webAddress(r.commitURL(row.Repo, "", a.Commit))}
		var arrival stored.Arrival
		if json.Unmarshal(a.Data, &arrival) == nil {
			d.Origin.By = arrival.Author
		}
	}
	return nil
}

// addTimelines fills in what happened to the targets since the commit reached them.
func (r *reader) addTimelines(ctx context.Context, row store.Promotion, commit string, d *api.PromotionDetail) error {
	all, err := r.store.Observations(ctx, row.Unit)
	if err != nil {
		return err
	}
	for _, o := range all {
		var m verification.Memory
		if o.Environment != row.Environment || json.Unmarshal(o.Data, &m) != nil || m.Commit != commit || len(m.Timeline) == 0 {
			continue
		}
		t := api.Timeline{Target: o.Target}
		for _, k := range m.Timeline {
			t.Changes = append(t.Changes, api.StateChange{At: k.At, State: string(k.State), Note: k.Note})
		}
		d.Timelines = append(d.Timelines, t)
	}
	return nil
}
