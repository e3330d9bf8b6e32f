package client

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
)

// PromotionQuery chooses promotions and reverts; an empty field chooses all. Limit is how many at
// most; 0: none.
type PromotionQuery struct {
	Repository, Pipeline, Component, Environment string

	Kind   string   // promotion or revert
	States []string // any of these
	Limit  int
}

// States of promotions, by whether something is still to come of them.
var (
	UnfinishedStates = []string{"open", "merged", "verifying", "degraded", "failed", "reverting"}
	FinishedStates   = []string{"verified", "reverted", "superseded", "closed"}
)

// maxPromotionPage is how many promotions the server gives at once.
const maxPromotionPage = 500

// Promotions lists promotions without their detail, newest first, a page after the other.
func (c *Client) Promotions(ctx context.Context, q PromotionQuery) ([]api.Promotion, error) {
	v := url.Values{}
	for key, value := range map[string]string{"repository": q.Repository, "pipeline": q.Pipeline, "component": q.Component,
		"environment": q.Environment, "kind": q.Kind, "state": strings.Join(q.States, ",")} {
		if value != "" {
			v.Set(key, value)
		}
	}
	out := []api.Promotion{}
	for len(out) < q.Limit {
		v.Set("limit", strconv.Itoa(min(q.Limit-len(out), maxPromotionPage)))
		page, err := getJSON[api.Promotions](ctx, c, v, "promotions")
		if err != nil {
			return nil, err
		}
		if out = append(out, page.Promotions...); page.Next == 0 || len(page.Promotions) == 0 {
			break
		}
		v.Set("before", strconv.FormatInt(page.Next, 10))
	}
	return out, nil
}

// PrintPromotions writes promotions as a table; a wide one also says where they stand, in which
// repository, when they were opened, and where.
func PrintPromotions(w io.Writer, all []api.Promotion, wide bool) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "there are no such promotions")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	more := ""
	if wide {
		more = "\tSTANDS\tOPENED\tREPOSITORY\tURL"
	}
	fmt.Fprintln(t, "PULL\tKIND\tPIPELINE\tCOMPONENT\tENVIRONMENT\tRELEASE\tSTATE\tCHANGED"+more)
	for i := range all {
		p := &all[i]
		number, address := "-", "-"
		if p.Pull != nil {
			number, address = p.Pull.String(), orNone(p.Pull.URL)
		}
		if wide {
			more = "\t" + orNone(p.Headline) + "\t" + timeOrNone(p.CreatedAt) + "\t" + replaceUnprintable(p.Repository) + "\t" + address
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s%s\n", number, p.Kind, replaceUnprintable(p.Pipeline),
			replaceUnprintable(p.Component), replaceUnprintable(p.Environment), orNone(p.Name), p.State,
			p.UpdatedAt.UTC().Format(time.RFC3339), more)
	}
	return t.Flush()
}
