package console

import (
	"net/http"
	"strconv"

	"github.com/liftlock/liftlock/internal/console/api"
)

// promotionsBody is the body of the list of promotions.
type promotionsBody struct {
	api.Promotions
	Older string // the next page's address; empty: there is none
}

func (se *server) promotionsPage(w http.ResponseWriter, r *http.Request) {
	l, err := parsePromotionQuery(r.URL.RawQuery)
	var s *snapshot
	if err == nil {
		s, err = se.reader.sharedSnapshot(r.Context())
	}
	var all *api.Promotions
	if err == nil {
		all, err = se.reader.listPromotions(r.Context(), l)
	}
	if err != nil {
		se.renderError(w, r, err)
		return
	}
	if l.Repository != "" && l.Pull != 0 && len(all.Promotions) == 1 {
		http.Redirect(w, r, se.pages.pageURL("promotions", all.Promotions[0].ID), http.StatusSeeOther)
		return
	}
	b := promotionsBody{Promotions: *all}
	if all.Next > 0 {
		q := r.URL.Query()
		q.Set("before", strconv.FormatInt(all.Next, 10))
		b.Older = se.linkPrefix + "/promotions?" + q.Encode()
	}
	se.renderPage(w, r, http.StatusOK, "promotions", newPage(s, "Promotions", "promotions", b))
}
