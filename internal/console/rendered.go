package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

const (
	// renderTime bounds one comparison, that of the renderer included: two sides
	// and a snapshot of the branch.
	renderTime = time.Minute
	// What landed stays as it is; an open pull request is composed anew, and what
	// can't be shown may be in a moment.
	keepLanded  = 10 * time.Minute
	keepOpen    = 15 * time.Second
	keepRefused = 30 * time.Second
	// maxRendered bounds the answers that are remembered: each has a few megabytes.
	maxRendered = 16
	// maxShownBytes bounds what a page shows of one; the API has all.
	maxShownBytes = 1 << 20
)

// diffOf is the whole rendered difference of the promotion with an ID.
func (c *console) diffOf(ctx context.Context, id int64) (*api.RenderedDiff, error) {
	row, ok, err := c.o.Store.Promotion(ctx, id)
	if err != nil {
		return nil, err
	}
	switch {
	case !ok:
		return nil, errorf(http.StatusNotFound, "there is no promotion %d", id)
	case c.o.Diff == nil:
		return nil, errorf(http.StatusNotFound, "this server doesn't render manifests")
	case row.Pull == 0:
		return nil, errorf(http.StatusNotFound, "there is no pull request of it, so there is nothing to compare")
	}
	if err := c.read.learnName(ctx, row); err != nil {
		return nil, err
	}
	head := ""
	if b := c.read.booked(ctx, row.Repo, row.Pull); b != nil {
		c.read.learnAddress(row.Repo, row.Pull, b.PR.URL)
		head = b.PR.Head + "|" + row.State // a new head is a new question
	}
	return c.rendered.get(ctx, fmt.Sprintf("%d|%s", id, head), func(ctx context.Context) (*api.RenderedDiff, time.Duration, error) {
		d, err := c.o.Diff(ctx, row)
		if err != nil {
			return nil, keepRefused, asked(err)
		}
		p := c.read.promotionRow(row)
		d.ID, d.Kind, d.Repository, d.Pipeline, d.Component, d.Environment = p.ID, p.Kind, p.Repository, p.Pipeline, p.Component, p.Environment
		d.Release, d.Name, d.Pull, d.At = p.Release, p.Name, p.Pull, c.o.Now()
		if d.Landed {
			return d, keepLanded, nil
		}
		return d, keepOpen, nil
	})
}

func (c *console) getDiff(w http.ResponseWriter, r *http.Request) {
	id, err := idOf(r)
	var v map[string]string
	if err == nil {
		v, err = values(r.URL.RawQuery, "format")
	}
	if err == nil && v["format"] != "" && v["format"] != "json" && v["format"] != "text" {
		err = errorf(http.StatusBadRequest, "the parameter format is json or text, not %.40q", v["format"])
	}
	var d *api.RenderedDiff
	if err == nil {
		d, err = c.diffOf(r.Context(), id)
	}
	if err != nil {
		c.failed(w, r, err)
		return
	}
	w.Header().Add("Vary", "Accept")
	if v["format"] == "text" || v["format"] == "" && wantsText(r) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(diffText(d))) // a reader that left is no failure of ours
		return
	}
	answer(w, http.StatusOK, d)
}

// wantsText says that a request asks for plain text before anything else.
func wantsText(r *http.Request) bool {
	first, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	kind, _, err := mime.ParseMediaType(first)
	return err == nil && kind == "text/plain"
}

// diffText is a difference for terminals.
func diffText(d *api.RenderedDiff) string {
	var b strings.Builder
	name := printable(cmp.Or(d.Name, promotion.Short(d.Release)))
	if d.Kind == promotion.KindRevert {
		fmt.Fprintf(&b, "%s: %s taken back in %s", d.Component, name, d.Environment)
	} else {
		fmt.Fprintf(&b, "%s: %s to %s", d.Component, name, d.Environment)
	}
	if d.Pull != nil {
		fmt.Fprintf(&b, ", #%d", d.Pull.Number)
	}
	fmt.Fprintf(&b, "\n%s..%s\n", d.Before, d.After)
	for _, f := range d.Files {
		fmt.Fprintf(&b, "file %s\n", printable(f))
	}
	for _, p := range d.Problems {
		fmt.Fprintf(&b, "problem: %s\n", printable(p))
	}
	for i := range d.Targets {
		t := &d.Targets[i]
		fmt.Fprintf(&b, "\n=== %s: %s\n", printable(strings.Join(t.Names, ", ")), printable(outcome(t)))
		for j := range t.Objects {
			b.WriteString(t.Objects[j].Text)
		}
	}
	if d.LeftOut > 0 {
		fmt.Fprintf(&b, "\n… and %s that are too much for one answer\n", plural(d.LeftOut, "more object"))
	}
	return b.String()
}

// printable is text that a terminal shows and doesn't obey.
func printable(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	return strconv.Quote(s)
}

// outcome is what happens to targets, in one line.
func outcome(t *api.TargetsDiff) string {
	switch {
	case t.Why != "":
		return "can't be rendered here: " + t.Why
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

func (c *console) diffPage(w http.ResponseWriter, r *http.Request) {
	s, err := c.read.snapshot(r.Context()) // also teaches names and addresses
	var id int64
	if err == nil {
		id, err = idOf(r)
	}
	var row store.Promotion
	if err == nil {
		var ok bool
		if row, ok, err = c.o.Store.Promotion(r.Context(), id); err == nil && !ok {
			err = errorf(http.StatusNotFound, "there is no promotion %d", id)
		}
	}
	if err != nil {
		c.sorry(w, r, err)
		return
	}
	d, err := c.diffOf(r.Context(), id)
	body, status := diffBody{Promotion: c.read.promotionRow(row)}, http.StatusOK
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
		body.fill()
	}
	c.show(w, r, status, "diff", page{Title: "What " + row.Component + " changes in " + row.Environment, Nav: "promotions", Troubles: s.troubles, Still: true, Body: body})
}

// fill makes the page's lines, as many as a browser shows with ease.
func (b *diffBody) fill() {
	left := maxShownBytes
	for i := range b.Targets {
		t := &b.Targets[i]
		g := diffGroup{Names: t.Names, Outcome: outcome(t)}
		for j := range t.Objects {
			text := t.Objects[j].Text
			if left -= len(text); left < 0 {
				b.Cut += len(t.Objects) - j
				break
			}
			g.Objects = append(g.Objects, objectLines(text))
		}
		b.Groups = append(b.Groups, g)
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
func (c *console) findDiff(w http.ResponseWriter, r *http.Request) {
	v, err := values(r.URL.RawQuery, "repository", "pipeline", "component", "environment", "kind", "release")
	if err == nil && (v["repository"] == "" || v["pipeline"] == "" || v["component"] == "" || v["environment"] == "" || v["release"] == "") {
		err = errorf(http.StatusBadRequest, "the parameters repository, pipeline, component, environment and release are needed")
	}
	var all []store.Promotion
	if err == nil {
		all, err = c.o.Store.Promotions(r.Context(), store.PromotionFilter{Repo: v["repository"], Pipeline: v["pipeline"], Component: v["component"],
			Environment: v["environment"], Kind: v["kind"], Release: promotion.Short(v["release"]), Limit: 1})
	}
	if err != nil {
		c.sorry(w, r, err)
		return
	}
	if len(all) > 0 {
		http.Redirect(w, r, c.pages.link("promotions", all[0].ID, "diff"), http.StatusSeeOther)
		return
	}
	c.sorry(w, r, errorf(http.StatusNotFound, "no promotion of that release is on record; one that was just opened is in a moment"))
}
