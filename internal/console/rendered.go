package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/wording"
)

const (
	// renderTimeout bounds one comparison, that of the renderer included: two sides
	// and a snapshot of the branch.
	renderTimeout = time.Minute
	// A landed promotion's rendering stays as it is. An open pull request is composed anew, and one
	// that can't be shown may be in a moment.
	landedCacheTime  = 10 * time.Minute
	openCacheTime    = 15 * time.Second
	refusedCacheTime = 30 * time.Second
	pendingCacheTime = 5 * time.Second
	// maxRenderedDiffs bounds the answers that are remembered: each has a few megabytes.
	maxRenderedDiffs = 16
	// maxShownBytes bounds what a page shows of one; the API has all.
	maxShownBytes = 1 << 20
)

// renderDiff is the whole rendered difference of the promotion with an ID.
func (se *server) renderDiff(ctx context.Context, id int64) (*api.RenderedDiff, error) {
	row, ok, err := se.records.Promotion(ctx, id)
	if err != nil {
		return nil, err
	}
	switch {
	case !ok:
		return nil, apiErrorf(http.StatusNotFound, "there is no promotion %d", id)
	case se.opts.Diff == nil:
		return nil, apiErrorf(http.StatusNotFound, "this server doesn't render manifests")
	case row.Pull == 0:
		return nil, apiErrorf(http.StatusNotFound, "there is no pull request of it, so there is nothing to compare")
	}
	if err := se.reader.learnReleaseName(ctx, row); err != nil {
		return nil, err
	}
	head := ""
	if b := se.reader.readPull(ctx, row.Repo, row.Pull); b != nil {
		se.reader.learnPullURL(row.Repo, row.Pull, b.PR.URL)
		head = b.PR.Head + "|" + row.State // a new head is a new question
	}
	return se.diffCache.getOrCompute(ctx, fmt.Sprintf("%d|%s", id, head),
		func(ctx context.Context) (*api.RenderedDiff, time.Duration, error) {
			d, err := se.opts.Diff(ctx, row)
			if err != nil {
				return nil, refusedCacheTime, toAPIError(err)
			}
			p := se.reader.buildPromotion(row)
			d.ID, d.Kind, d.Repository, d.Pipeline, d.Component, d.Environment = p.ID, p.Kind, p.Repository, p.Pipeline, p.Component,
				p.Environment
			d.Release, d.Name, d.Pull, d.At = p.Release, p.Name, p.Pull, se.opts.Now()
			if d.Pending {
				return d, pendingCacheTime, nil
			}
			if d.Landed {
				return d, landedCacheTime, nil
			}
			return d, openCacheTime, nil
		})
}

func (se *server) getDiff(w http.ResponseWriter, r *http.Request) {
	id, err := parsePromotionID(r)
	var v map[string]string
	if err == nil {
		v, err = parseQuery(r.URL.RawQuery, "format")
	}
	if err == nil && v["format"] != "" && v["format"] != "json" && v["format"] != "text" {
		err = apiErrorf(http.StatusBadRequest, "the parameter format is json or text, not %.40q", v["format"])
	}
	var d *api.RenderedDiff
	if err == nil {
		d, err = se.renderDiff(r.Context(), id)
	}
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	w.Header().Add("Vary", "Accept")
	if v["format"] == "text" || v["format"] == "" && prefersType(r, "text/plain") {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(diffText(d))) // a reader that left is no failure of ours
		return
	}
	writeJSON(w, http.StatusOK, d)
}

// diffText is a difference for terminals.
func diffText(d *api.RenderedDiff) string {
	var b strings.Builder
	name := quoteUnprintable(cmp.Or(d.Name, wording.Short(d.Release)))
	if d.Kind == promotion.KindRevert {
		fmt.Fprintf(&b, "%s: %s taken back in %s", d.Component, name, d.Environment)
	} else {
		fmt.Fprintf(&b, "%s: %s to %s", d.Component, name, d.Environment)
	}
	if d.Pull != nil {
		fmt.Fprintf(&b, ", %s", d.Pull)
	}
	fmt.Fprintf(&b, "\n%s..%s\n", d.Before, d.After)
	for _, f := range d.Files {
		fmt.Fprintf(&b, "file %s\n", quoteUnprintable(f))
	}
	for _, p := range d.Problems {
		fmt.Fprintf(&b, "problem: %s\n", quoteUnprintable(p))
	}
	for i := range d.Targets {
		t := &d.Targets[i]
		fmt.Fprintf(&b, "\n=== %s: %s\n", quoteUnprintable(strings.Join(t.Names, ", ")), quoteUnprintable(describeOutcome(t)))
		for j := range t.Objects {
			b.WriteString(t.Objects[j].Text)
		}
	}
	if d.LeftOut > 0 {
		fmt.Fprintf(&b, "\n… and %s that are too much for one answer\n", wording.Count(d.LeftOut, "more object"))
	}
	return b.String()
}

// quoteUnprintable is text that a terminal shows and doesn't obey.
func quoteUnprintable(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	return strconv.Quote(s)
}

// describeOutcome is what happens to targets, in one line.
func describeOutcome(t *api.TargetsDiff) string {
	switch {
	case t.Why != "":
		return "not rendered: " + t.Why
	case t.Summary == "" && t.Spec:
		return "the Application changes, its manifests stay as they are"
	case t.Summary == "":
		return "nothing changes"
	case t.Spec:
		return t.Summary + "; the Application itself changes too"
	}
	return t.Summary
}

// diffBody is the body of the page of a rendered difference: one, or why there is none.
type diffBody struct {
	Promotion api.Promotion
	*api.RenderedDiff
	Why    string
	Groups []diffGroup
	Cut    int // objects that the page leaves to the API
}

// diffGroup is what changes for some targets.
type diffGroup struct {
	Names   []string
	Outcome string
	Objects []diffObject
}

type diffObject struct {
	Title string
	Lines []diffLine
}

// diffLine is a line with what it says: add, del or empty.
type diffLine struct{ Kind, Text string }

func (se *server) diffPage(w http.ResponseWriter, r *http.Request) {
	s, err := se.reader.sharedSnapshot(r.Context()) // also teaches names and addresses
	var id int64
	if err == nil {
		id, err = parsePromotionID(r)
	}
	var row store.Promotion
	if err == nil {
		var ok bool
		if row, ok, err = se.records.Promotion(r.Context(), id); err == nil && !ok {
			err = apiErrorf(http.StatusNotFound, "there is no promotion %d", id)
		}
	}
	if err != nil {
		se.renderError(w, r, err)
		return
	}
	d, err := se.renderDiff(r.Context(), id)
	body, status := diffBody{Promotion: se.reader.buildPromotion(row)}, http.StatusOK
	var known *apiError
	switch {
	case r.Context().Err() != nil:
		return // nobody is there any more
	case errors.As(err, &known):
		body.Why, status = known.text, known.status
	case err != nil:
		body.Why, status = err.Error(), http.StatusServiceUnavailable
	default:
		body.RenderedDiff = d
		body.fillGroups(maxShownBytes)
	}
	se.renderPage(w, r, status, "diff", stillPage(s, "What "+row.Component+" changes in "+row.Environment, "promotions", body))
}

// fillGroups makes the page's lines, of at most so many bytes.
func (d *diffBody) fillGroups(left int) {
	for i := range d.Targets {
		t := &d.Targets[i]
		g := diffGroup{Names: t.Names, Outcome: describeOutcome(t)}
		for j := range t.Objects {
			text := t.Objects[j].Text
			if left -= len(text); left < 0 {
				d.Cut += len(t.Objects) - j
				break
			}
			g.Objects = append(g.Objects, objectLines(text))
		}
		d.Groups = append(d.Groups, g)
	}
}

// objectLines takes a text of one object apart: its title, then a line a field.
func objectLines(text string) diffObject {
	title, rest, _ := strings.Cut(text, "\n")
	o := diffObject{Title: strings.TrimSuffix(strings.TrimPrefix(title, "@@ "), " @@")}
	for l := range strings.SplitSeq(strings.TrimSuffix(rest, "\n"), "\n") {
		kind := ""
		switch {
		case strings.HasPrefix(l, "+"):
			kind = "add"
		case strings.HasPrefix(l, "-"):
			kind = "del"
		}
		o.Lines = append(o.Lines, diffLine{kind, l})
	}
	return o
}

// findDiff leads from what a pull request's body knows of itself before it has a
// number to its difference.
func (se *server) findDiff(w http.ResponseWriter, r *http.Request) {
	v, err := parseQuery(r.URL.RawQuery, "repository", "pipeline", "component", "environment", "kind", "release")
	needed := []string{"repository", "pipeline", "component", "environment", "release"}
	if err == nil && slices.ContainsFunc(needed, func(name string) bool { return v[name] == "" }) {
		err = apiErrorf(http.StatusBadRequest, "the parameters repository, pipeline, component, environment and release are needed")
	}
	var all []store.Promotion
	if err == nil {
		all, _, err = se.records.Promotions(r.Context(), store.PromotionFilter{Repo: v["repository"], Pipeline: v["pipeline"],
			Component:   v["component"],
			Environment: v["environment"], Kind: v["kind"], Release: wording.Short(v["release"]), Limit: 1})
	}
	if err != nil {
		se.renderError(w, r, err)
		return
	}
	if len(all) > 0 {
		http.Redirect(w, r, se.pages.pageURL("promotions", all[0].ID, "diff"), http.StatusSeeOther)
		return
	}
	se.renderError(w, r, apiErrorf(http.StatusNotFound, "no promotion of that release is on record; one that was just opened is in a "+
		"moment"))
}
