package notify

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestAnswersShowNoAddress holds that no error has any part of the address that a receiver was
// called by, even if the answer does: its holder may write there.
func TestAnswersShowNoAddress(t *testing.T) {
	const address = "/services/T0/B0/Sec%2Fret?sig=a%2Fb-key&code=xyz#fragment"
	for name, c := range map[string]struct {
		answer func(r *http.Request) string
		shown  bool
	}{
		"the path":                  {func(r *http.Request) string { return "Cannot POST " + r.URL.Path }, false},
		"the address":               {func(r *http.Request) string { return r.RequestURI }, false},
		"a part of the path":        {func(*http.Request) string { return `unknown hook "SEC%2FRET"` }, false},
		"a part, decoded":           {func(*http.Request) string { return `unknown hook sec/ret` + strings.Repeat("x", maxAnswer) }, false},
		"with its slashes escaped":  {func(r *http.Request) string { return strings.ReplaceAll(r.URL.EscapedPath(), "/", `\/`) }, false},
		"a value of the query":      {func(r *http.Request) string { return r.URL.Query().Get("sig") }, false},
		"who calls":                 {func(r *http.Request) string { return r.Header.Get("Authorization") }, false},
		"the password":              {func(r *http.Request) string { _, p, _ := r.BasicAuth(); return "bad password " + p }, false},
		"what Slack says of a typo": {func(*http.Request) string { return "invalid_payload" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, c.answer(r), http.StatusNotFound) }))
			defer s.Close()
			snd, err := newSender(Channel{Name: "x", Type: Slack, URL: strings.Replace(s.URL, "//", "//hook:pass@", 1) + address}, newHTTPClient(), time.Now)
			if err != nil {
				t.Fatal(err)
			}
			err = snd.send(t.Context(), message{word: "failed", items: []item{{Text: "x"}}})
			if err == nil || !strings.HasPrefix(err.Error(), "the receiver answered 404: ") || strings.Contains(err.Error(), redacted) == c.shown {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestBrokenAnswersShowNoAddress holds the same of what is no HTTP.
func TestBrokenAnswersShowNoAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(conn).ReadString('\n')
			_, _ = fmt.Fprint(conn, line)
			_ = conn.Close()
		}
	}()
	snd, err := newSender(Channel{Name: "x", Type: Teams, URL: "http://" + l.Addr().String() + "/hook/topsecret"}, newHTTPClient(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if err = snd.send(t.Context(), message{word: "failed", items: []item{{Text: "x"}}}); err == nil || strings.Contains(err.Error(), "topsecret") {
		t.Errorf("%v", err)
	}
}
