package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
)

// TestRefusals: what each status means, whichever forge it comes from, in the error of the operation.
func TestRefusals(t *testing.T) {
	for status, kind := range map[int]error{
		401: forge.ErrUnauthorized, 403: forge.ErrForbidden, 404: forge.ErrNotFound, 410: forge.ErrNotFound, 409: forge.ErrConflict, 412: forge.ErrConflict,
		304: forge.ErrInvalid, 400: forge.ErrInvalid, 422: forge.ErrInvalid, 429: forge.ErrRateLimited, 500: forge.ErrRetryable, 503: forge.ErrRetryable,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, "no: s3cret\nis refused")
		}))
		base, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		client, _ := NewClient(Protocol{Options: Options{Token: "s3cret"}, Base: base}, Dialect{
			Message: func(_ *http.Response, body []byte) string { return string(body) },
			Refine:  func(e *forge.Error, _ *http.Response) { e.Hint = strings.TrimSpace("refined " + e.Hint) },
		})
		_, err = client.Get(server.URL + "/x")
		server.Close()
		e := ErrorOf(Wrap("look", err))
		if e.Kind != kind || e.Status != status || e.Op != "look" || !strings.HasPrefix(e.Hint, "refined") {
			t.Errorf("%d is %v", status, e)
		}
		if want := "no: (the token) is refused"; status != 304 && e.Message != want {
			t.Errorf("%d says %q", status, e.Message)
		}
	}
}

// TestWrap: an error gets its operation once, and what nobody knows may be right later.
func TestWrap(t *testing.T) {
	known := &forge.Error{Op: "list", Kind: forge.ErrNotFound}
	for _, c := range []struct {
		name, words string
		err         error
		kind        error
	}{
		{"one that has an operation", "list: not found", known, forge.ErrNotFound},
		{"one of a call", "look: not found", &url.Error{Op: "Get", URL: "x", Err: known}, forge.ErrNotFound},
		{"a canceled call", "look: the forge can't answer now: canceled", fmt.Errorf("x: %w", context.Canceled), forge.ErrRetryable},
		{"a call that took too long", "look: the forge can't answer now: no answer in time", context.DeadlineExceeded, forge.ErrRetryable},
		{"anything else", "look: the forge can't answer now: unexpected EOF", io.ErrUnexpectedEOF, forge.ErrRetryable},
	} {
		if got := Wrap("look", c.err); got.Error() != c.words || !errors.Is(got, c.kind) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if Wrap("look", nil) != nil || known.Op != "list" {
		t.Error("an error is made up, or changed")
	}
}

// TestForEach: a list is read to its end, until there is enough, and within its bounds.
func TestForEach(t *testing.T) {
	bounds := Bounds{PerPage: 2, Pages: 3, TooMany: forge.ErrTooMany}
	for _, c := range []struct {
		entries, enough, pages int
		read, err              string
	}{
		{3, 9, 2, "[0 1 2]", ""},
		{6, 9, 3, "[0 1 2 3 4 5]", ""},
		{7, 9, 3, "[0 1 2 3 4 5]", "list: more than can be read: there are more than 6"},
		{7, 2, 1, "[0 1]", ""},
		{0, 9, 1, "[]", ""},
	} {
		read, pages, text := []int{}, 0, ""
		err := ForEach("list", bounds, func(page int) (Page[int], error) {
			pages++
			var p Page[int]
			for i := (page - 1) * 2; i < min(page*2, c.entries); i++ {
				p.Entries = append(p.Entries, i)
			}
			if page*2 < c.entries {
				p.Next = page + 1
			}
			return p, nil
		}, func(n int) bool {
			read = append(read, n)
			return len(read) == c.enough
		})
		if err != nil {
			text = err.Error()
		}
		if fmt.Sprint(read) != c.read || pages != c.pages || text != c.err {
			t.Errorf("%d entries: %v in %d pages, %q", c.entries, read, pages, text)
		}
	}
	if err := ForEach("list", bounds, func(int) (Page[int], error) { return Page[int]{}, io.EOF }, nil); !strings.HasPrefix(err.Error(), "list: ") {
		t.Errorf("a page that can't be read: %v", err)
	}
}
