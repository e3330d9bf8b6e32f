package smarthttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	one = "1111111111111111111111111111111111111111"
	two = "2222222222222222222222222222222222222222"
)

// pkt is a line of the protocol.
func pkt(line string) string { return fmt.Sprintf("%04x%s", len(line)+4, line) }

// band is a packet of a sideband's channel.
func band(channel byte, data string) string { return pkt(string(channel) + data) }

// answering is a client of a server that answers every request so.
func answering(t testing.TB, handle http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	c, err := New(Options{URL: s.URL + "/acme/fleet.git", Stalled: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// service answers as a service of Git's does.
func service(name, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-"+name+"-result")
		_, _ = io.WriteString(w, body)
	}
}

func TestRequestBodies(t *testing.T) {
	t.Parallel()
	var got, headers string
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		user, password, _ := r.BasicAuth()
		got = r.Method + " " + r.URL.Path + " " + string(body)
		headers = fmt.Sprint(user, ":", password, " ", r.Header.Get("Git-Protocol"), " ", r.Header.Get("Content-Type"), " ", r.Header.Get("User-Agent"))
		w.WriteHeader(http.StatusTeapot)
	})
	who := Credentials{"ada", "secret"}
	capabilities := "0017agent=git/liftlock\n0017object-format=sha1\n0001"
	for name, call := range map[string]struct {
		do            func() error
		want, headers string
	}{
		"refs": {func() error { _, err := c.Refs(t.Context(), who, "refs/heads/"); return err },
			"POST /acme/fleet.git/git-upload-pack 0014command=ls-refs\n" + capabilities + "001bref-prefix refs/heads/\n0000",
			"ada:secret version=2 application/x-git-upload-pack-request git/liftlock"},
		"a pack": {func() error { return c.Pack(t.Context(), who, []string{one}, []string{two}, nil) },
			"POST /acme/fleet.git/git-upload-pack 0012command=fetch\n" + capabilities + "000ethin-pack\n0010no-progress\n000eofs-delta\n0032want " + one + "\n0032have " + two + "\n0009done\n0000",
			"ada:secret version=2 application/x-git-upload-pack-request git/liftlock"},
		"a push": {func() error {
			return c.Push(t.Context(), Credentials{}, Update{Ref: "refs/heads/x", New: one}, []byte("PACK"))
		},
			"POST /acme/fleet.git/git-receive-pack 00a5" + noID + " " + one + " refs/heads/x\x00 report-status side-band-64k object-format=sha1 agent=git/liftlock0000PACK",
			":  application/x-git-receive-pack-request git/liftlock"},
	} {
		var status *StatusError
		if err := call.do(); !errors.As(err, &status) || status.Status != http.StatusTeapot {
			t.Errorf("%s: %v", name, err)
		}
		if got != call.want || headers != call.headers {
			t.Errorf("%s: sent %q with %q", name, got, headers)
		}
	}
}

func TestRefs(t *testing.T) {
	t.Parallel()
	main, tag := pkt(one+" refs/heads/main\n"), pkt(two+" refs/tags/v1\n")
	for name, c := range map[string]struct {
		body string
		want string // refs, or what the error says
		kind error
	}{
		"those with the prefix":  {main + tag + "0000", "map[refs/heads/main:" + one + "]", nil},
		"attributes":             {pkt(one+" refs/heads/main peeled:"+two+"\n") + "0000", "map[refs/heads/main:" + one + "]", nil},
		"none":                   {"0000", "map[]", nil},
		"a branch yet to come":   {pkt("unborn HEAD symref-target:refs/heads/main\n") + "0000", "map[]", nil},
		"an end that is missing": {main, "unexpected EOF", io.ErrUnexpectedEOF},
		"half a line":            {main[:20], "unexpected EOF", io.ErrUnexpectedEOF},
		"the server's own words": {pkt("ERR no such thing\n"), "the server refuses: no such thing", nil},
		"another id":             {pkt("xyz refs/heads/main\n") + "0000", "isn't of Git's protocol", ErrNotSpoken},
		"a line in a name":       {pkt(one+" refs/heads/a\nb\n") + "0000", "isn't of Git's protocol", ErrNotSpoken},
		"no ref":                 {pkt(one+" main\n") + "0000", "isn't of Git's protocol", ErrNotSpoken},
		"no line":                {"what?", "isn't of Git's protocol", ErrNotSpoken},
	} {
		client := answering(t, service(uploadPack, c.body))
		refs, err := client.Refs(t.Context(), Credentials{}, "refs/heads/")
		got := fmt.Sprint(refs)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestPack(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60_000)
	for name, c := range map[string]struct{ body, want string }{
		"in two packets":          {pkt("packfile\n") + band(2, "counting") + band(1, "PA") + band(1, "CK") + "0000", "PACK"},
		"in large packets":        {pkt("packfile\n") + band(1, long) + band(1, long) + "0000", long + long},
		"the server gives up":     {pkt("packfile\n") + band(1, "PA") + band(3, "out of memory"), "PA: unexpected error: out of memory"},
		"it breaks off":           {pkt("packfile\n") + "0009\x01PA", ": unexpected EOF"},
		"it doesn't have it":      {pkt("ERR upload-pack: not our ref " + one + "\n"), ": the server refuses: upload-pack: not our ref " + one},
		"something else at first": {pkt("shallow-info\n") + "0000", `: the answer isn't of Git's protocol: it begins with "shallow-info\n"`},
		"nothing":                 {"", ": unexpected EOF"},
	} {
		client := answering(t, service(uploadPack, c.body))
		var got string
		err := client.Pack(t.Context(), Credentials{}, []string{one}, nil, func(pack io.Reader) error {
			data, err := io.ReadAll(pack)
			got = string(data)
			return err
		})
		if err != nil {
			got += ": " + err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %.200q", name, got)
		}
	}
}

func TestPush(t *testing.T) {
	t.Parallel()
	report := func(lines ...string) string {
		var b strings.Builder
		for _, l := range lines {
			b.WriteString(pkt(l + "\n"))
		}
		return band(1, b.String()+"0000") + "0000"
	}
	for name, c := range map[string]struct {
		body, want string
	}{
		"done":                   {report("unpack ok", "ok refs/heads/x"), ""},
		"done, after words":      {band(2, "hello\n") + report("unpack ok", "ok refs/heads/x"), ""},
		"refused by a hook":      {band(2, "not on a Friday\n") + report("unpack ok", "ng refs/heads/x pre-receive hook declined"), "&{Unpack:false Reason:pre-receive hook declined Messages:not on a Friday}"},
		"its pack lacks a base":  {report("unpack index-pack failed", "ng refs/heads/x unpacker error"), "&{Unpack:true Reason:index-pack failed Messages:}"},
		"nothing of the ref":     {report("unpack ok", "ok refs/heads/y"), "the answer isn't of Git's protocol: it says nothing of refs/heads/x"},
		"no report":              {band(2, "bye") + "0000", "read how the push ended: unexpected EOF"},
		"half a report":          {band(1, pkt("unpack ok\n")) + "0000", "read how the push ended: missing flush"},
		"something else":         {band(1, pkt("hello\n")) + "0000", "read how the push ended: malformed unpack status: hello"},
		"words without an end":   {band(2, strings.Repeat("w", 60_000)) + report("unpack ok", "ng refs/heads/x no"), "&{Unpack:false Reason:no Messages:" + strings.Repeat("w", 200) + "…}"},
		"the server's own words": {pkt("ERR go away\n"), "read how the push ended: the server refuses: go away"},
	} {
		client := answering(t, service(receivePack, c.body))
		err := client.Push(t.Context(), Credentials{}, Update{Ref: "refs/heads/x", Old: one, New: two}, []byte("PACK"))
		got := ""
		if rejected := new(RejectedError); errors.As(err, &rejected) {
			got = fmt.Sprintf("%+v", &struct {
				Unpack           bool
				Reason, Messages string
			}{rejected.Unpack, rejected.Reason, rejected.Messages})
		} else if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %.300q", name, got)
		}
	}
}

func TestAnotherAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		want   string
	}{
		"a page":     {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, `the answer isn't of Git's protocol: it is "text/html; charset=utf-8"`},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, "the server answers 302 Found"},
		"an error":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "the server answers 502 Bad Gateway"},
	} {
		if _, err := answering(t, c.handle).Refs(t.Context(), Credentials{}, "refs/"); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStalled ends calls whose answer doesn't come, or stops to.
func TestStalled(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(w http.ResponseWriter){
		"no answer": func(http.ResponseWriter) {},
		"half of one": func(w http.ResponseWriter) {
			service(uploadPack, pkt(one+" refs/heads/main\n"))(w, nil)
			w.(http.Flusher).Flush()
		},
	} {
		ended := make(chan struct{})
		c := answering(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // from then on the server hears of the connection's end
			begin(w)
			select {
			case <-r.Context().Done():
			case <-ended:
			}
		})
		c.stalled = 10 * time.Millisecond
		_, err := c.Refs(t.Context(), Credentials{}, "refs/")
		close(ended)
		if err == nil || err.Error() != "the server stopped answering: nothing came for 10ms" {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := answering(t, service(uploadPack, "0000")).Refs(ctx, Credentials{}, "refs/"); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller's own end: %v", err)
	}
}

func TestTooMuch(t *testing.T) {
	t.Parallel()
	line := []byte(pkt(one + " refs/heads/" + strings.Repeat("x", 60_000) + "\n"))
	c := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		for range maxAnswer/len(line) + 1 {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	})
	if _, err := c.Refs(t.Context(), Credentials{}, "refs/heads/"); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestAuthorities(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if _, err := New(Options{URL: "https://x.test", CAFile: file}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{URL: "https://x.test", CAFile: file}); err == nil || !strings.HasSuffix(err.Error(), "ca.pem has no certificate") {
		t.Errorf("no certificate: %v", err)
	}
}

// cannedAnswer is a transport that answers by itself.
type cannedAnswer struct {
	kind string
	body []byte
}

func (c cannedAnswer) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/x-" + c.kind + "-result"}}, Body: io.NopCloser(bytes.NewReader(c.body))}, nil
}

// FuzzAnswers reads whatever a server may send: nothing but refs that can be refs comes of it.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(pkt(one+" refs/heads/main\n") + "0000"))
	f.Add([]byte(pkt("packfile\n") + band(1, "PACK") + "0000"))
	f.Add([]byte(band(1, pkt("unpack ok\n")+pkt("ok refs/heads/x\n")+"0000") + "0000"))
	f.Add([]byte(pkt("ERR no\n")))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, kind := range []string{uploadPack, receivePack} {
			c := &Client{url: "http://x.test", stalled: time.Minute, http: &http.Client{Transport: cannedAnswer{kind, body}}}
			refs, err := c.Refs(t.Context(), Credentials{}, "refs/heads/")
			for name, id := range refs {
				if err != nil || !isID(id) || strings.ContainsAny(name, " \n\x00") || !strings.HasPrefix(name, "refs/heads/") {
					t.Errorf("%q at %q: %v", name, id, err)
				}
			}
			_ = c.Pack(t.Context(), Credentials{}, []string{one}, nil, func(pack io.Reader) error {
				_, err := io.Copy(io.Discard, pack)
				return err
			})
			if err := c.Push(t.Context(), Credentials{}, Update{Ref: "refs/heads/x", New: one}, nil); err == nil && !bytes.Contains(body, []byte("ok refs/heads/x")) {
				t.Error("a push that nobody confirmed counts as done")
			}
		}
	})
}
