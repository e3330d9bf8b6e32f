package console

import (
	"errors"
	"testing"
	"unicode/utf8"
)

// FuzzListQuery holds that a query is either refused with a reason for its
// author, or stays within the bounds that the rest relies on.
func FuzzListQuery(f *testing.F) {
	for _, s := range []string{"", "limit=5&before=9", "state=open,held&kind=revert", "pull=14&repository=hub:acme/fleet", "a=b", "state=%00", "limit=-1", "x;y", "component=%ff", "limit=&state=,,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		l, err := parsePromotionQuery(raw)
		if err != nil {
			var known *apiError
			if !errors.As(err, &known) || known.status != 400 || known.text == "" {
				t.Fatalf("%q is refused with %v", raw, err)
			}
			return
		}
		if l.Limit < 1 || l.Limit > maxLimit || l.Before < 0 || l.Pull < 0 || len(l.States) > maxStates {
			t.Fatalf("%q gives %+v", raw, l)
		}
		for _, s := range append(l.States, l.Repository, l.Pipeline, l.Component, l.Environment, l.Kind) {
			if len(s) > maxValue || !utf8.ValidString(s) || checkText(s, maxValue) != nil {
				t.Fatalf("%q gives the value %q", raw, s)
			}
		}
	})
}

// FuzzBody holds the same of bodies: what is taken is exactly one object.
func FuzzBody(f *testing.F) {
	for _, s := range []string{"{}", `{"component":"web"}`, `{"component":1}`, "[]", "null", "{}{}", `{"scope":"pr","x":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var v struct {
			Component string `json:"component"`
		}
		if err := decodeStrict(raw, &v); err == nil && len(v.Component) > len(raw)*3 {
			t.Fatalf("%q gives %d bytes", raw, len(v.Component))
		}
	})
}
