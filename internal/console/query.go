package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/liftlock/liftlock/internal/promotion"
)

const (
	// maxValue bounds every name that comes from outside, in bytes. The store's
	// own bound on keys is the same.
	maxValue = 512
	// maxLimit and defaultLimit are how much of a list is given at once.
	maxLimit     = 500
	defaultLimit = 50
)

// decodeStrict decodes exactly one JSON object into v and refuses keys that v
// doesn't know.
func decodeStrict(body []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the first JSON value")
	}
	return nil
}

// parseQuery reads a query of which every parameter is known and given once.
func parseQuery(raw string, known ...string) (map[string]string, error) {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return nil, apiErrorf(http.StatusBadRequest, "the query can't be read: %v", err)
	}
	out := make(map[string]string, len(q))
	for k, vs := range q {
		if !slices.Contains(known, k) {
			return nil, apiErrorf(http.StatusBadRequest, "there is no parameter %.80q here; there are %s", k, strings.Join(known, ", "))
		}
		if len(vs) != 1 {
			return nil, apiErrorf(http.StatusBadRequest, "the parameter %s is given %d times", k, len(vs))
		}
		if err := checkText(vs[0], maxValue); err != nil {
			return nil, apiErrorf(http.StatusBadRequest, "the parameter %s %v", k, err)
		}
		out[k] = vs[0]
	}
	return out, nil
}

// checkText refuses what can't be a name or a line of text.
func checkText(s string, limit int) error {
	switch {
	case len(s) > limit:
		return fmt.Errorf("is %d bytes long, at most %d are taken", len(s), limit)
	case !utf8.ValidString(s):
		return errors.New("is not valid UTF-8")
	case strings.ContainsFunc(s, unicode.IsControl):
		return errors.New("has control characters in it")
	}
	return nil
}

// promotionQuery is a query for a part of the promotions.
type promotionQuery struct {
	Repository, Pipeline, Component, Environment, Kind string

	States []string
	Pull   int   // 0: any
	Before int64 // only those with a smaller ID; 0: from the newest
	Limit  int   // 1 to 500
}

// parsePromotionQuery reads the query of GET /api/v1/promotions.
func parsePromotionQuery(raw string) (promotionQuery, error) {
	v, err := parseQuery(raw, "repository", "pipeline", "component", "environment", "kind", "state", "pull", "before", "limit")
	if err != nil {
		return promotionQuery{}, err
	}
	l := promotionQuery{Repository: v["repository"], Pipeline: v["pipeline"], Component: v["component"], Environment: v["environment"],
		Kind: v["kind"], Limit: defaultLimit}
	if !slices.Contains([]string{"", "promotion", "revert"}, l.Kind) {
		return promotionQuery{}, apiErrorf(http.StatusBadRequest, "the parameter kind is promotion or revert, not %.80q", l.Kind)
	}
	for _, s := range strings.Split(v["state"], ",") {
		if s = strings.TrimSpace(s); s != "" && !slices.Contains(l.States, s) {
			l.States = append(l.States, s)
		}
	}
	if len(l.States) > maxStates {
		return promotionQuery{}, apiErrorf(http.StatusBadRequest, "the parameter state names more than %d states", maxStates)
	}
	n, err := parsePositive(v, "pull", 1<<31-1)
	if err != nil {
		return promotionQuery{}, err
	}
	l.Pull = int(n)
	if l.Before, err = parsePositive(v, "before", 1<<62); err != nil {
		return promotionQuery{}, err
	}
	if n, err = parsePositive(v, "limit", maxLimit); err != nil {
		return promotionQuery{}, err
	}
	if n > 0 {
		l.Limit = int(n)
	}
	return l, nil
}

// storedStates are the states to look for in the store, where one on hold is an open one.
func (p *promotionQuery) storedStates() []string {
	out := slices.Clone(p.States)
	if slices.Contains(out, promotion.Held) && !slices.Contains(out, promotion.Opened) {
		out = append(out, promotion.Opened)
	}
	return out
}

// shows says whether a promotion that the store has in one state and that is in another is chosen: the open ones
// are those on hold too.
func (p *promotionQuery) shows(stored, state string) bool {
	return len(p.States) == 0 || slices.Contains(p.States, stored) || slices.Contains(p.States, state)
}

// maxStates bounds the states in one query: there are fewer.
const maxStates = 20

// parsePositive reads a whole number from 1 to most; 0 when it isn't given.
func parsePositive(v map[string]string, key string, most int64) (int64, error) {
	s, ok := v[key]
	if !ok || s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, apiErrorf(http.StatusBadRequest, "the parameter %s is a whole number from 1 to %d, not %.40q", key, most, s)
	}
	return n, nil
}

// parsePromotionID reads the {id} of a promotion's address.
func parsePromotionID(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, apiErrorf(http.StatusNotFound, "there is no promotion %.40q: its name is a number", r.PathValue("id"))
	}
	return id, nil
}
