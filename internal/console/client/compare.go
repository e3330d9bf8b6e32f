package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
)

// Compare says what one environment of a component has that another hasn't. The repository may
// be empty where the pipeline's name says enough.
func (c *Client) Compare(ctx context.Context, repository, pipeline, component, from, to string) (*api.Comparison, error) {
	return getJSON[api.Comparison](ctx, c, url.Values{"repository": {repository}, "component": {component}, "from": {from}, "to": {to}},
		"pipelines", pipeline, "compare")
}

// Diff is what a promotion's pull request changes of rendered manifests.
func (c *Client) Diff(ctx context.Context, id int64) (*api.RenderedDiff, error) {
	return getJSON[api.RenderedDiff](ctx, c, nil, "promotions", strconv.FormatInt(id, 10), "diff")
}

// DiffText is the same as text, in the manner of a diff, in which long values are cut.
func (c *Client) DiffText(ctx context.Context, id int64) (string, error) {
	req, err := c.newRequest(ctx, http.MethodGet, url.Values{"format": {"text"}}, nil, "promotions", strconv.FormatInt(id, 10), "diff")
	if err != nil {
		return "", err
	}
	raw, err := c.doRaw(req)
	return string(raw), err
}

// PrintComparison writes a comparison for people.
func PrintComparison(w io.Writer, c *api.Comparison) error {
	if c.Unknown != "" {
		_, err := fmt.Fprintln(w, replaceUnprintable(c.Unknown))
		return err
	}
	from, to := replaceUnprintable(c.From), replaceUnprintable(c.To)
	if len(c.Behind)+len(c.Ahead)+len(c.Fields) == 0 {
		_, err := fmt.Fprintf(w, "%s and %s carry the same.\n", from, to)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	printArrivals(t, fmt.Sprintf("Only %s had:", from), c.Behind)
	printArrivals(t, fmt.Sprintf("Only %s had:", to), c.Ahead)
	if c.Common != nil {
		fmt.Fprintf(t, "Both had, last:\t%s\n", replaceUnprintable(c.Common.Name))
	}
	if len(c.Fields) > 0 {
		fmt.Fprintf(t, "FIELD\t%s\t%s\n", from, to)
	}
	for _, f := range c.Fields {
		name := f.File
		if f.Path != "" {
			name += ": " + f.Path
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", replaceUnprintable(name), valueOrNone(f.From), valueOrNone(f.To))
	}
	return t.Flush()
}

func printArrivals(w io.Writer, title string, list []api.ArrivedRelease) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(w, title)
	for i := range list {
		a := &list[i]
		by := a.By
		if a.Pull != nil {
			by += fmt.Sprintf(" %s", a.Pull)
		}
		if a.Who != "" {
			by += " " + a.Who
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", replaceUnprintable(a.Name), a.At.UTC().Format(time.RFC3339), replaceUnprintable(by))
	}
}

func valueOrNone(v *string) string {
	if v == nil {
		return "-"
	}
	return replaceUnprintable(*v)
}
