package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/liftlock/liftlock/internal/console/api"
)

// bearer is the header of a token.
func bearer(secret string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + secret}
}

func TestCommandsNeedToken(t *testing.T) {
	const hold = "/api/v1/pipelines/shop/hold"
	for _, c := range []struct {
		name    string
		tokens  bool
		path    string
		headers map[string]string
		status  int
		says    string
	}{
		{"no tokens are configured", false, hold, bearer("do"), 403, "api.tokens"},
		{"no header", true, hold, nil, 401, "Authorization: Bearer"},
		{"an empty token", true, hold, bearer(""), 401, "Authorization: Bearer"},
		{"another scheme", true, hold, map[string]string{"Authorization": "Basic Y2k6ZG8="}, 401, "Authorization: Bearer"},
		{"a wrong token", true, hold, bearer("don't"), 401, "none of this server's API tokens"},
		{"the beginning of a token", true, hold, bearer("d"), 401, "none of this server's API tokens"},
		{"a cookie", true, hold, map[string]string{"Cookie": "token=do"}, 401, "Authorization: Bearer"},
		{"a viewer", true, hold, bearer("see"), 403, "reader has the role viewer; this needs operator"},
		{"an operator", true, hold, bearer("do"), 200, "hold noted"},
		{"a lower-case scheme", true, hold, map[string]string{"Authorization": "bearer do"}, 200, "hold noted"},
		{"breakglass", true, hold, bearer("break"), 200, "hold noted"},
		{"an operator who skips", true, "/api/v1/promotions/2/skip", bearer("do"), 403, "this needs breakglass"},
		{"breakglass who skips", true, "/api/v1/promotions/2/skip", bearer("break"), 400, "unknown field"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestConsole(t, func(o *Options) {
				if !c.tokens {
					o.Tokens = nil
				}
			})
			w.seed()
			status, header, body := w.request("POST", c.path, `{"component":"web"}`, c.headers)
			if status != c.status || !strings.Contains(body, c.says) {
				t.Errorf("%d %s; want %d and %q", status, body, c.status, c.says)
			}
			if (status == 401) != (header.Get("WWW-Authenticate") != "") {
				t.Errorf("%d with WWW-Authenticate %q", status, header.Get("WWW-Authenticate"))
			}
			if status != 200 && len(w.commands) > 0 {
				t.Errorf("refused, but the order %+v was given", w.commands[0])
			}
			if strings.Contains(body, "don't") {
				t.Error("the answer repeats the token")
			}
		})
	}
}

func TestCommandsAreParsed(t *testing.T) {
	for _, c := range []struct {
		name, path, body string
		want             Command
	}{
		{"promote", "/api/v1/pipelines/shop/promote", `{"component":"web","environment":"prod"}`, Command{Component: "web", Environment: "prod", Verb: "promote"}},
		{"hold a component", "/api/v1/pipelines/shop/hold", `{"component":"web","reason":"waits for ada"}`, Command{Component: "web", Verb: "hold", Scope: "component", Reason: "waits for ada"}},
		{"hold an environment", "/api/v1/pipelines/shop/hold", `{"environment":"prod"}`, Command{Environment: "prod", Verb: "hold", Scope: "environment"}},
		{"hold a pipeline", "/api/v1/pipelines/shop/hold", `{"scope":"pipeline"}`, Command{Verb: "hold", Scope: "pipeline"}},
		{"unhold, repository named", "/api/v1/pipelines/shop/unhold", `{"repository":"hub:acme/fleet","scope":"component","component":"mail"}`, Command{Component: "mail", Verb: "unhold", Scope: "component"}},
		{"hold a pull request", "/api/v1/promotions/2/hold", "", Command{Component: "web", Environment: "prod", Pull: 14, Verb: "hold", Scope: "pr"}},
		{"unhold a pull request", "/api/v1/promotions/2/unhold", "{}", Command{Component: "web", Environment: "prod", Pull: 14, Verb: "unhold", Scope: "pr"}},
		{"retry", "/api/v1/promotions/5/retry", "", Command{Component: "mail", Environment: "qa", Pull: 19, Verb: "retry"}},
		{"revert", "/api/v1/promotions/1/revert", `{"reason":"breaks search"}`, Command{Component: "web", Environment: "qa", Pull: 12, Verb: "revert", Reason: "breaks search"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestConsole(t, nil)
			w.seed()
			status, _, body := w.request("POST", c.path, c.body, bearer("do"))
			var a api.CommandReply
			if err := json.Unmarshal([]byte(body), &a); status != 200 || err != nil || a.Text != string(c.want.Verb)+" noted" {
				t.Fatalf("%d %s", status, body)
			}
			c.want.Repo, c.want.Pipeline, c.want.By, c.want.Role, c.want.Via = testRepo, "shop", "ci", "operator", "api"
			if diff := cmp.Diff([]Command{c.want}, w.commands, cmpopts.IgnoreFields(Command{}, "Source")); diff != "" {
				t.Errorf("the orders differ (-want +got):\n%s", diff)
			}
			if !strings.HasPrefix(w.commands[0].Source, "api ci ") || len(w.commands[0].Source) < 20 {
				t.Errorf("the source is %q", w.commands[0].Source)
			}
		})
	}
}

// TestSkipIsParsed holds what a skip by the API takes, and from whom.
func TestSkipIsParsed(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	for body, says := range map[string]string{`{"reason":"production burns"}`: "takes a gate's name", `{"gate":"soak"}`: "at least 10 characters",
		`{"gate":"soak","reason":"production burns","head":"main"}`: "is not a commit", `{"gate":"soak","reason":"production burns","head":"0123456789abcdefg"}`: "is not a commit"} {
		if status, _, answer := w.request("POST", "/api/v1/promotions/2/skip", body, bearer("break")); status != 400 || !strings.Contains(answer, says) {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	if status, _, answer := w.request("POST", "/api/v1/promotions/2/skip", `{"gate":"soak","reason":"production burns","head":"0123456789AB"}`, bearer("break")); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	if c := w.commands; len(c) != 1 || c[0].Verb != "skip" || c[0].Gate != "soak" || c[0].Reason != "production burns" || c[0].Pull != 14 || c[0].Head != "0123456789AB" || c[0].Role != "breakglass" {
		t.Errorf("the commands are %+v", c)
	}
}

func TestSentAgainIsTheSameCommand(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	for i, key := range []string{"a", "a", "", ""} {
		h := bearer("do")
		if key != "" {
			h["Idempotency-Key"] = key
		}
		if status, _, body := w.request("POST", "/api/v1/promotions/5/retry", "", h); status != 200 {
			t.Fatalf("%d: %d %s", i, status, body)
		}
	}
	o := w.commands
	if o[0].Source != o[1].Source || o[1].Source == o[2].Source || o[2].Source == o[3].Source {
		t.Errorf("the sources are %q, %q, %q and %q", o[0].Source, o[1].Source, o[2].Source, o[3].Source)
	}
	h := bearer("do")
	h["Idempotency-Key"] = strings.Repeat("k", 129)
	if status, _, _ := w.request("POST", "/api/v1/promotions/5/retry", "", h); status != 400 {
		t.Errorf("an overlong key is answered with %d", status)
	}
}

func TestCommandsThatMakeNoSense(t *testing.T) {
	const hold, promote = "/api/v1/pipelines/shop/hold", "/api/v1/pipelines/shop/promote"
	for _, c := range []struct {
		name, path, body, kind string
		status                 int
		says                   string
	}{
		{"no body", hold, "", "application/json", 400, "a body is needed"},
		{"a form", hold, "component=web", "application/x-www-form-urlencoded", 415, "application/json"},
		{"plain text", hold, `{"component":"web"}`, "text/plain", 415, "application/json"},
		{"half a body", hold, `{"component":`, "application/json", 400, "unexpected EOF"},
		{"two bodies", hold, `{"component":"web"}{}`, "application/json", 400, "more after"},
		{"an unknown key", hold, `{"componnent":"web"}`, "application/json", 400, "componnent"},
		{"a wrong type", hold, `{"component":3}`, "application/json", 400, "component"},
		{"a list", hold, `[]`, "application/json", 400, "not what is expected"},
		{"too large a body", hold, `{"reason":"` + strings.Repeat("x", 20_000) + `"}`, "application/json", 413, "larger than 16384"},
		{"an overlong reason", hold, `{"component":"web","reason":"` + strings.Repeat("x", 1001) + `"}`, "application/json", 400, "too long"},
		{"a reason of two lines", hold, `{"component":"web","reason":"a\nb"}`, "application/json", 400, "one line"},
		{"control characters", hold, `{"component":"we\u0000b"}`, "application/json", 400, "control characters"},
		{"nothing named", hold, `{}`, "application/json", 400, "say what it is about"},
		{"both named", hold, `{"component":"web","environment":"qa"}`, "application/json", 400, "name one of them"},
		{"a scope that is none", hold, `{"scope":"world"}`, "application/json", 400, `\"world\"`},
		{"a scope that contradicts", hold, `{"scope":"pipeline","component":"web"}`, "application/json", 400, "neither"},
		{"a component's hold without one", hold, `{"scope":"component"}`, "application/json", 400, "needs a component"},
		{"an environment's hold without one", hold, `{"scope":"environment"}`, "application/json", 400, "needs an environment"},
		{"promote without an environment", promote, `{"component":"web"}`, "application/json", 400, "needs a component and an environment"},
		{"promote with a scope", promote, `{"component":"web","environment":"qa","scope":"pr"}`, "application/json", 400, "takes no scope"},
		{"an unknown component", promote, `{"component":"w","environment":"qa"}`, "application/json", 404, `no component \"w\"`},
		{"an unknown environment", promote, `{"component":"web","environment":"q"}`, "application/json", 404, `did you mean \"qa\"?`},
		{"an unknown pipeline", "/api/v1/pipelines/none/hold", `{"component":"web"}`, "application/json", 404, "no pipeline"},
		{"another repository", hold, `{"component":"web","repository":"hub:acme/data"}`, "application/json", 404, "no pipeline"},
		{"an unknown promotion", "/api/v1/promotions/77/retry", ``, "application/json", 404, "no promotion 77"},
		{"a gate for what takes none", "/api/v1/promotions/2/retry", `{"gate":"soak"}`, "application/json", 400, "takes no gate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestConsole(t, nil)
			w.seed()
			h := bearer("do")
			h["Content-Type"] = c.kind
			status, _, body := w.request("POST", c.path, c.body, h)
			if status != c.status || !strings.Contains(body, c.says) {
				t.Errorf("%d %s; want %d and %q", status, body, c.status, c.says)
			}
			if len(w.commands) > 0 {
				t.Errorf("the order %+v was given", w.commands[0])
			}
		})
	}
}

func TestCommandsThatAreNotCarriedOut(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		none   bool
		status int
		says   string
	}{
		{"refused", fmt.Errorf("promote: %w", &Refusal{"ci may not approve in prod"}), false, 409, `{"error":"ci may not approve in prod"}`},
		{"too early", ErrNotReady, false, 503, "try again"},
		{"failed", errors.New("push the hold: the remote hung up"), false, 500, "it isn't known whether promote was carried out: push the hold"},
		{"nobody takes commands", nil, true, 503, "not reached its repositories"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestConsole(t, func(o *Options) {
				if c.none {
					o.Command = nil
				}
			})
			w.seed()
			w.refuse = c.err
			status, header, body := w.request("POST", "/api/v1/pipelines/shop/promote", `{"component":"web","environment":"prod"}`, bearer("do"))
			if status != c.status || !strings.Contains(body, c.says) {
				t.Errorf("%d %s; want %d and %q", status, body, c.status, c.says)
			}
			if status == http.StatusServiceUnavailable && header.Get("Retry-After") == "" {
				t.Error("503 without Retry-After")
			}
		})
	}
}

func TestUnusableOptionsAreRefused(t *testing.T) {
	w := newTestConsole(t, nil)
	for name, o := range map[string]Options{
		"a store is required": {},
		"has the role":        {Store: w.store, Tokens: []Token{{Name: "x", Role: "admin", Secret: "y"}}},
		"has no name":         {Store: w.store, Tokens: []Token{{Name: "", Role: "viewer", Secret: "y"}}},
		"x is empty":          {Store: w.store, Tokens: []Token{{Name: "x", Role: "viewer", Secret: ""}}},
		"externalURL":         {Store: w.store, ExternalURL: "http://a b"},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the error is %v, want one with %q", err, name)
		}
	}
}
