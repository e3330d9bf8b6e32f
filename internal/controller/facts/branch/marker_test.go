package branch

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store/record"
)

func newTestSigner(t interface{ Fatal(...any) }, secrets ...string) MarkSigner {
	var raw [][]byte
	for _, s := range secrets {
		raw = append(raw, []byte(s))
	}
	s, err := NewMarkSigner(raw...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMarksAreSigned believes a mark only as it was written, for the head, the branch
// and the repository that it was written for, by any of the server's secrets.
func TestMarksAreSigned(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	k := Marker{Kind: promotion.KindPromotion, Release: a, Members: []promotion.Member{{Component: "web", Release: a}, {Component: "api", Release: b}}}
	old, both, other := newTestSigner(t, "old"), newTestSigner(t, "new", "old"), newTestSigner(t, "another")
	mark := old.Sign("hub:acme/fleet", "liftlock/shop/qa/batch", "head", k)
	body := mark + "\nText\n"
	for name, c := range map[string]struct {
		signer             MarkSigner
		repo, branch, head string
		body               string
		want               bool
	}{
		"as written":            {old, "hub:acme/fleet", "liftlock/shop/qa/batch", "head", body, true},
		"a rotated secret":      {both, "hub:acme/fleet", "liftlock/shop/qa/batch", "head", body, true},
		"another secret":        {other, "hub:acme/fleet", "liftlock/shop/qa/batch", "head", body, false},
		"no secret":             {MarkSigner{}, "hub:acme/fleet", "liftlock/shop/qa/batch", "head", body, false},
		"another repository":    {old, "hub:acme/other", "liftlock/shop/qa/batch", "head", body, false},
		"another branch":        {old, "hub:acme/fleet", "liftlock/shop/prod/batch", "head", body, false},
		"another head":          {old, "hub:acme/fleet", "liftlock/shop/qa/batch", "daeh", body, false},
		"no head":               {old, "hub:acme/fleet", "liftlock/shop/qa/batch", "", body, false},
		"another release":       {old, "hub:acme/fleet", "liftlock/shop/qa/batch", "head", strings.Replace(body, "release="+a, "release="+b, 1), false},
		"another member":        {old, "hub:acme/fleet", "liftlock/shop/qa/batch", "head", strings.Replace(body, "api:", "web:", 1), false},
		"another kind":          {old, "hub:acme/fleet", "liftlock/shop/qa/batch", "head", strings.Replace(body, "promotion", "revert", 1), false},
		"without the signature": {old, "hub:acme/fleet", "liftlock/shop/qa/batch", "head", k.String(), false},
		"a mark before it":      {old, "hub:acme/fleet", "liftlock/shop/qa/batch", "head", k.String() + body, false},
	} {
		got, ok := c.signer.Signed(c.repo, c.branch, []string{"", c.head}, c.body)
		if ok != c.want || ok && (got.String() != k.String()) {
			t.Errorf("%s: %+v %t", name, got, ok)
		}
	}
}

// TestMarksAreReadBack reads every mark as it was written, signed or not.
func TestMarksAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.StringMatching(`[0-9a-f]{64}`)
		k := Marker{Kind: rapid.SampledFrom([]string{promotion.KindPromotion, promotion.KindRevert}).Draw(t, "kind"), Release: id.Draw(t, "release"), Of: rapid.IntRange(0, 1<<20).Draw(t, "of")}
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			k.Members = append(k.Members, promotion.Member{Component: rapid.StringMatching(`[a-z0-9][a-z0-9-]{0,9}`).Draw(t, "component"), Release: id.Draw(t, "its release")})
		}
		for _, body := range []string{k.String(), newTestSigner(t, "s").Sign("r", "b", "h", k)} {
			if got, ok := ReadMarker("before " + body + " after"); !ok || got.String() != k.String() {
				t.Fatalf("%s is read as %+v %t", body, got, ok)
			}
		}
	})
}

// TestPushedIsFound finds what was pushed by the head or what it was brought up to
// date from.
func TestPushedIsFound(t *testing.T) {
	p := Pushed{{Head: "1", Releases: map[string]string{"web": "a"}}, {Head: "2", Releases: map[string]string{"web": "b"}}}
	for head, want := range map[string]string{"1": "a", "2": "b", "3": ""} {
		if got := p.Find([]string{"x", head})["web"]; got != want {
			t.Errorf("%s: %q, want %q", head, got, want)
		}
	}
	records := storedRecords{PushedHeads.Key(record.OfBranch("r", "broken")): "{"}
	if _, _, err := PushedHeads.Get(t.Context(), records, record.OfBranch("r", "broken")); err == nil {
		t.Error("a broken record is read")
	}
	if p, known, err := PushedHeads.Get(t.Context(), records, record.OfBranch("r", "none")); err != nil || p != nil || known {
		t.Errorf("no record: %v %v", p, err)
	}
}
