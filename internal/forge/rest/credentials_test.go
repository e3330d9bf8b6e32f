package rest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// numbered are credentials of which the forge takes one more than it was shown last.
type numbered struct{ at int }

func (n *numbered) For(context.Context) (Credential, error) {
	return Credential{Value: fmt.Sprintf("Bearer %d", n.at), Answered: func(resp *http.Response, body []byte) bool {
		if resp.StatusCode != http.StatusUnauthorized || string(body) != "no more" {
			return false
		}
		n.at++
		return true
	}}, nil
}

// TestCredentialsAreRenewed: a call whose credentials aren't taken any more is made again with
// the next ones, its body too, and not for ever.
func TestCredentialsAreRenewed(t *testing.T) {
	for _, c := range []struct{ accepted, calls, status int }{{0, 1, 200}, {1, 2, 200}, {2, 3, 200}, {9, 3, 401}} {
		var bodies []string
		base, _, client := startServer(t, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			bodies = append(bodies, string(body))
			if r.Header.Get("Authorization") != fmt.Sprintf("Bearer %d", c.accepted) {
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, "no more")
			}
		})
		resp, err := client(Protocol{Credentials: &numbered{}}).Post(base.String()+"x", "text/plain", bytes.NewReader([]byte("the body")))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.status || strings.Join(bodies, ",") != strings.Repeat(",the body", c.calls)[1:] {
			t.Errorf("the one that is accepted is %d: HTTP %d after %q", c.accepted, resp.StatusCode, bodies)
		}
	}
}

// TestRedirectedWrites: one that keeps the method is followed; one that would make a read of it
// would look like success.
func TestRedirectedWrites(t *testing.T) {
	for status, followed := range map[int]bool{301: false, 302: false, 303: false, 307: true, 308: true} {
		written := ""
		base, _, client := startServer(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/api/v3/old" {
				http.Redirect(w, r, "/api/v3/new", status)
				return
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			written = r.Method + " " + string(body)
		})
		req, err := http.NewRequest(http.MethodPatch, base.String()+"old", strings.NewReader("it"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client(Protocol{}).Do(req)
		if err == nil {
			resp.Body.Close()
		}
		switch {
		case followed && (err != nil || written != "PATCH it"):
			t.Errorf("%d: %q, %v", status, written, err)
		case !followed && (err == nil || written != "" || !strings.Contains(err.Error(), "redirects a PATCH to a GET")):
			t.Errorf("%d: %q was asked for, %v", status, written, err)
		}
	}
}

// TestAnswersAreTheIdentitys: what one identity has seen is another's no reason to ask
// conditionally.
func TestAnswersAreTheIdentitys(t *testing.T) {
	conditional := 0
	base, _, client := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			conditional++
		}
		w.Header().Set("ETag", `"one"`)
	})
	shared := NewAnswerCache(nil, 1<<20)
	ada, grace := client(Protocol{Answers: shared, Identity: "ada"}), client(Protocol{Answers: shared, Identity: "grace"})
	getURL(t, ada, base.String()+"x")
	getURL(t, grace, base.String()+"x")
	if conditional != 0 {
		t.Error("another identity's answer was asked for")
	}
	getURL(t, ada, base.String()+"x")
	if conditional != 1 {
		t.Errorf("one's own was asked for %d times", conditional)
	}
}
