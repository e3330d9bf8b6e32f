package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/logintest"
)

const externalName = "liftlock.example.com"

// tlsProxy leads requests for the server's name by TLS to where it listens, as a proxy does.
type tlsProxy struct{ to string }

func (t tlsProxy) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != externalName {
		return http.DefaultTransport.RoundTrip(r)
	}
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.Host = "http", strings.TrimPrefix(t.to, "http://"), externalName
	return http.DefaultTransport.RoundTrip(out)
}

// consoleUser is a browser of somebody who has logged in.
type consoleUser struct {
	s      *harness
	client *http.Client
}

func (ha *harness) logIn(idp *logintest.Provider, name string, groups ...string) *consoleUser {
	ha.t.Helper()
	idp.With(func(p *logintest.Provider) {
		p.User = logintest.User{Subject: "sub-" + name, Name: name, Groups: groups}
	})
	jar, err := cookiejar.New(nil)
	ha.must("make a browser", err)
	u := &consoleUser{ha, &http.Client{Jar: jar, Transport: tlsProxy{ha.url}}}
	if status, body := u.do(http.MethodGet, "/login?return=/account", nil); status != http.StatusOK || !strings.Contains(body, "<h1>"+name) {
		ha.t.Fatalf("%s can't log in: %d\n%s", name, status, body)
	}
	return u
}

func (c *consoleUser) do(method, path string, form url.Values) (int, string) {
	c.s.t.Helper()
	req, err := http.NewRequest(method, "https://"+externalName+path, strings.NewReader(form.Encode()))
	c.s.must("make a request", err)
	req.Header.Set("Accept", "text/html")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", "https://"+externalName)
	}
	res, err := c.client.Do(req)
	c.s.must("ask the console", err)
	defer res.Body.Close() // it is read
	body, err := io.ReadAll(res.Body)
	c.s.must("read the console's page", err)
	return res.StatusCode, string(body)
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)">`)

// act does what a page says that will happen.
func (c *consoleUser) act(path, reason string) (int, string) {
	c.s.t.Helper()
	status, body := c.do(http.MethodGet, path, nil)
	if status != http.StatusOK {
		c.s.t.Fatalf("%s is answered with %d\n%s", path, status, body)
	}
	form := url.Values{"reason": {reason}}
	for _, m := range hiddenField.FindAllStringSubmatch(body, -1) {
		form.Set(m[1], m[2])
	}
	return c.do(http.MethodPost, path, form)
}

// promotionID is the number of a pull request's promotion in the console.
func (ha *harness) promotionID(pull int) (id int64) {
	ha.t.Helper()
	ha.waitFor(fmt.Sprintf("the promotion of #%d is known", pull), func() (bool, string) {
		var all api.Promotions
		_, err := ha.getJSON(fmt.Sprintf("/api/v1/promotions?pull=%d", pull), &all)
		if err == nil && len(all.Promotions) == 1 {
			id = all.Promotions[0].ID
		}
		return id > 0, fmt.Sprint(err)
	})
	return id
}

func hasComment(p *emulator.PullRequest, text string) bool {
	return slices.ContainsFunc(p.Comments, func(c emulator.Comment) bool { return strings.Contains(c.Body, text) })
}

// TestConsoleUsersAct holds, over the whole service, that a logged-in user holds and unholds by the
// console. The pull request and the audit trail say who it was, and a viewer is refused, on record
// too.
func TestConsoleUsersAct(t *testing.T) {
	idp := logintest.New(t, time.Now)
	s := startHarness(t, harnessOptions{externalURL: "https://" + externalName, serverLines: fmt.Sprintf(`oidc:
  issuer: %s
  clientID: %s
  clientSecret: "%s"
  roles: {viewer: ["*"], operator: [sre]}
`, idp.URL, logintest.ClientID, logintest.ClientSecret)})
	prodPull := s.releaseToProd("1.1.0")
	ada, eve := s.logIn(idp, "ada", "sre"), s.logIn(idp, "eve", "guests")
	toProd := fmt.Sprintf("/act/promotions/%d/", s.promotionID(prodPull.Number))

	if status, body := eve.act(toProd+"hold", ""); status != http.StatusConflict || !strings.Contains(body, "eve (console) may not give /liftlock hold") {
		t.Errorf("a viewer's hold is answered with %d\n%s", status, body)
	}
	if status, body := ada.act(toProd+"hold", "waits for the certificate"); status != http.StatusOK {
		t.Fatalf("a hold is answered with %d\n%s", status, body)
	}
	s.awaitPull(prodPull.Number, "is held, and says by whom", func(p *emulator.PullRequest) bool {
		return slices.Contains(p.Labels, promotion.LabelHold) && hasComment(p, "`ada (console)` gave `/liftlock hold pr") && hasComment(p, "waits for the certificate")
	})
	if status, body := ada.act(toProd+"unhold", ""); status != http.StatusOK {
		t.Fatalf("lifting it is answered with %d\n%s", status, body)
	}
	s.awaitPull(prodPull.Number, "isn't held", func(p *emulator.PullRequest) bool { return !slices.Contains(p.Labels, promotion.LabelHold) })
	if status, body := ada.act("/act/pipelines/shop/promote?component=web&environment=prod", ""); status != http.StatusConflict || !strings.Contains(body, "approvals gate") {
		t.Errorf("to promote past approvals is answered with %d\n%s", status, body)
	}

	qaPull := s.listPulls("web", "qa")[0]
	if status, body := ada.act(fmt.Sprintf("/act/promotions/%d/revert", s.promotionID(qaPull.Number)), "orders are lost"); status != http.StatusOK {
		t.Fatalf("a revert is answered with %d\n%s", status, body)
	}
	s.waitFor("it is taken back, and says for whom", func() (bool, string) {
		all := s.listReverts("web", "qa")
		return len(all) == 1 && strings.Contains(all[0].Body, "ada (console)") && strings.Contains(all[0].Body, "orders are lost"), fmt.Sprintf("%+v", all)
	})
	s.awaitPull(qaPull.Number, "says who took it back", func(p *emulator.PullRequest) bool {
		return hasComment(p, "`ada (console)` gave `/liftlock revert`: orders are lost")
	})
	if _, body := ada.do(http.MethodGet, "/audit?via=console", nil); !strings.Contains(body, "ada (console)") || !strings.Contains(body, "orders are lost") || !strings.Contains(body, "eve (console)") {
		t.Errorf("the audit trail doesn't say it:\n%s", body)
	}
	idp.With(func(p *logintest.Provider) { p.Away = true })
	s.stop()
	want := []string{"ada (console) console revert taken", "ada (console) console promote refused", "ada (console) console unhold taken", "ada (console) console hold taken", "eve (console) console hold refused",
		"eve (console) console login taken", "ada (console) console login taken"}
	got := slices.DeleteFunc(s.readAudit(), func(line string) bool { return !strings.Contains(line, " console ") })
	if !slices.Equal(got, want) {
		t.Errorf("the audit trail is %q, want %q", got, want)
	}
	s.start() // while the provider is away
	if status, body := ada.do(http.MethodGet, "/account", nil); status != http.StatusOK || !strings.Contains(body, "<h1>ada") {
		t.Errorf("after a restart, with the provider away, ada is answered with %d\n%s", status, body)
	}
}
