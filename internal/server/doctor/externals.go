package doctor

import "context"

// External is a place besides the tracked repositories from which renderings may read.
type External struct {
	URL string
	// Reach reaches it as the server would, and changes nothing. refused says that the error is its answer: it isn't
	// there, or not for the account.
	Reach func(ctx context.Context) (refused bool, err error)
}

// checkSource checks that a repository of `sources` can be read over Git with the credentials that the server's file
// has for it.
func (d *doctor) checkSource(ctx context.Context, e External) (found findings) {
	where := "source " + redactURL(e.URL)
	ctx, cancel := d.limit(ctx)
	defer cancel()
	switch refused, err := e.Reach(ctx); {
	case refused:
		found.add("source-refused", where, err.Error(), "check sources[].url, and that its username and password may read it by Git; "+
			"what is made of it isn't rendered until then")
	case err != nil:
		found.add("source-unread", where, err.Error(), "check that this machine reaches it by Git over HTTPS, and sources[].caFile; what "+
			"is made of it isn't rendered until then")
	default:
		found.add(CodeSource, where, "it answers, and may be read", "")
	}
	return found
}

// checkCharts checks that a listed chart repository answers.
func (d *doctor) checkCharts(ctx context.Context, e External) (found findings) {
	where := "charts of " + redactURL(e.URL)
	ctx, cancel := d.limit(ctx)
	defer cancel()
	switch refused, err := e.Reach(ctx); {
	case refused:
		found.add("charts-refused", where, err.Error(), "check charts[].url, and that its username and password may read it; what is "+
			"made of its charts isn't rendered until then")
	case err != nil:
		found.add("charts-unread", where, err.Error(), "check that this machine reaches it, charts[].tls, and charts[].hosts for where "+
			"it sends to; what is made of its charts isn't rendered until then")
	default:
		found.add(CodeCharts, where, "it answers", "")
	}
	return found
}
