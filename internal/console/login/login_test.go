package login_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/liftlock/liftlock/internal/console/login"
	"github.com/liftlock/liftlock/internal/world/logintest"
)

// clock is a time that only the test moves.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)} }

func newProvider(t *testing.T, idp *logintest.Provider, c *clock, change func(*login.Options)) *login.Provider {
	t.Helper()
	o := login.Options{Issuer: idp.URL, ClientID: logintest.ClientID, ClientSecret: logintest.ClientSecret, RedirectURL: "https://liftlock.example.com/login/callback",
		Scopes: []string{"openid", "profile"}, GroupsClaim: "groups", Now: func() time.Time { return c.now }}
	if change != nil {
		change(&o)
	}
	p, err := login.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// answerTo lets the provider answer an attempt, as its page would send the browser back.
func answerTo(t *testing.T, p *login.Provider, a *login.Attempt) login.AuthResponse {
	t.Helper()
	to, err := p.AuthURL(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(to)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || back.Host != "liftlock.example.com" {
		t.Fatalf("the provider answers %d and leads to %q: %v", resp.StatusCode, back, err)
	}
	q := back.Query()
	return login.AuthResponse{Code: q.Get("code"), State: q.Get("state"), Issuer: q.Get("iss")}
}

func TestIdentify(t *testing.T) {
	c := newClock()
	idp := logintest.New(t, func() time.Time { return c.now })
	for name, test := range map[string]struct {
		user    logintest.User
		set     func(*logintest.Provider)
		options func(*login.Options)
		want    login.Identity
	}{
		"a name and groups":     {logintest.User{Subject: "1", Name: "ada", Groups: []string{"sre", "dev", "sre"}}, nil, nil, login.Identity{Subject: "1", Name: "ada", Groups: []string{"dev", "sre"}}},
		"no name":               {logintest.User{Subject: "1"}, nil, nil, login.Identity{Subject: "1", Name: "1"}},
		"groups at userinfo":    {logintest.User{Subject: "1", Name: "ada", Groups: []string{"sre"}}, func(p *logintest.Provider) { p.HidesGroups = true }, nil, login.Identity{Subject: "1", Name: "ada", Groups: []string{"sre"}}},
		"one group as a text":   {logintest.User{Subject: "1", Name: "ada"}, func(p *logintest.Provider) { p.Change = func(m map[string]any) { m["groups"] = "sre" } }, nil, login.Identity{Subject: "1", Name: "ada", Groups: []string{"sre"}}},
		"another groups claim":  {logintest.User{Subject: "1", Name: "ada", Groups: []string{"x"}}, func(p *logintest.Provider) { p.Change = func(m map[string]any) { m["roles"] = []string{"sre"} } }, func(o *login.Options) { o.GroupsClaim = "roles" }, login.Identity{Subject: "1", Name: "ada", Groups: []string{"sre"}}},
		"an unverified address": {logintest.User{Subject: "1"}, func(p *logintest.Provider) { p.Change = func(m map[string]any) { m["email"] = "eve@example.com" } }, nil, login.Identity{Subject: "1", Name: "1"}},
		"a verified address": {logintest.User{Subject: "1"}, func(p *logintest.Provider) {
			p.Change = func(m map[string]any) { m["email"], m["email_verified"] = "ada@example.com", true }
		}, nil, login.Identity{Subject: "1", Name: "ada@example.com"}},
		"accounts on forges": {logintest.User{Subject: "1", Name: "ada", Groups: []string{"sre"}}, func(p *logintest.Provider) {
			p.Change = func(m map[string]any) { m["nickname"], m["lab_login"] = "ada-l", "" }
		}, func(o *login.Options) {
			o.AccountClaims = map[string]string{"hub": "nickname", "lab": "lab_login", "tea": "none"}
		},
			login.Identity{Subject: "1", Name: "ada", Groups: []string{"sre"}, Accounts: map[string]string{"hub": "ada-l"}}},
		"a name of many lines": {logintest.User{Subject: "1", Name: "ada\n\u202e/liftlock skip soak"}, nil, nil, login.Identity{Subject: "1", Name: "ada /liftlock skip soak"}},
	} {
		t.Run(name, func(t *testing.T) {
			idp.With(func(p *logintest.Provider) {
				p.User, p.Change, p.HidesGroups = test.user, nil, false
				if test.set != nil {
					test.set(p)
				}
			})
			p, a := newProvider(t, idp, c, test.options), login.NewAttempt("/")
			got, err := p.Identify(t.Context(), a, answerTo(t, p, a))
			if err != nil {
				t.Fatal(err)
			}
			if got.Subject != test.want.Subject || got.Name != test.want.Name || !slices.Equal(got.Groups, test.want.Groups) || !maps.Equal(got.Accounts, test.want.Accounts) {
				t.Errorf("it is %+v, want %+v", *got, test.want)
			}
		})
	}
}

// Each attack is refused, and with a reason.
func TestForgedLoginsAreRefused(t *testing.T) {
	c := newClock()
	idp := logintest.New(t, func() time.Time { return c.now })
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(key jose.SigningKey) func([]byte) string {
		return func(claims []byte) string {
			token, err := logintest.SignWith(key, claims)
			if err != nil {
				t.Error(err)
			}
			return token
		}
	}
	claim := func(name string, value any) func(*logintest.Provider) {
		return func(p *logintest.Provider) { p.Change = func(m map[string]any) { m[name] = value } }
	}
	for name, test := range map[string]struct {
		set    func(*logintest.Provider)
		answer func(*login.Attempt, *login.AuthResponse)
		want   string
	}{
		"wrong state":      {nil, func(_ *login.Attempt, got *login.AuthResponse) { got.State = "other" }, "not to the login that this browser began"},
		"no state":         {nil, func(_ *login.Attempt, got *login.AuthResponse) { got.State = "" }, "not to the login that this browser began"},
		"another provider": {nil, func(_ *login.Attempt, got *login.AuthResponse) { got.Issuer = "https://evil.example.com" }, "another identity provider"},
		"a refusal": {nil, func(_ *login.Attempt, got *login.AuthResponse) {
			got.Error, got.Description = "access_denied", "no\n<b>"
		}, "access_denied no <b>"},
		"no code":        {nil, func(_ *login.Attempt, got *login.AuthResponse) { got.Code = "" }, "no code"},
		"a guessed code": {nil, func(_ *login.Attempt, got *login.AuthResponse) { got.Code = "guess" }, "used before"},
		"somebody else's code": {nil, func(a *login.Attempt, _ *login.AuthResponse) {
			a.Verifier = "the verifier of another browser, which it doesn't know"
		}, "used before"},
		"wrong nonce":      {claim("nonce", "other"), nil, "for another login"},
		"no nonce":         {claim("nonce", ""), nil, "for another login"},
		"another audience": {claim("aud", "grafana"), nil, "not good"},
		"another party": {func(p *logintest.Provider) {
			p.Change = func(m map[string]any) { m["aud"], m["azp"] = []string{logintest.ClientID, "grafana"}, "grafana" }
		}, nil, "another client"},
		"another issuer":       {claim("iss", "https://evil.example.com"), nil, "not good"},
		"expired":              {claim("exp", c.now.Add(-time.Minute).Unix()), nil, "not good"},
		"no subject":           {claim("sub", ""), nil, "no subject"},
		"groups that are none": {claim("groups", map[string]any{"sre": true}), nil, "no list of groups"},
		"alg none, more groups": {func(p *logintest.Provider) {
			p.Change, p.Forge = func(m map[string]any) { m["groups"] = []string{"oncall"} }, logintest.Unsigned
		}, nil, "not good"},
		"a key of its own": {func(p *logintest.Provider) {
			p.Forge = sign(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: stranger, KeyID: "1"}})
		}, nil, "not good"},
		"the secret as the key": {func(p *logintest.Provider) {
			p.Forge = sign(jose.SigningKey{Algorithm: jose.HS256, Key: []byte(strings.Repeat(logintest.ClientSecret, 3))})
		}, nil, "not good"},
		"the public key as the secret": {func(p *logintest.Provider) {
			p.Forge = sign(jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: p.PublicKey(t), KeyID: "1"}})
		}, nil, "not good"},
		"another key as the provider's own": {func(p *logintest.Provider) {
			p.Forge = sign(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: stranger, KeyID: "2"}})
		}, nil, "not good"},
		"an account that is none": {claim("account", []string{"ada", "root"}), nil, "no login on the forge hub"},
		"an account of two words": {claim("account", "ada root"), nil, "no login on the forge hub"},
		"no token":                {func(p *logintest.Provider) { p.Forge = func([]byte) string { return "" } }, nil, "no ID token"},
		"somebody else's groups": {func(p *logintest.Provider) {
			p.HidesGroups, p.Change = true, func(m map[string]any) {
				if _, isToken := m["aud"]; !isToken {
					m["sub"] = "mallory"
				}
			}
		}, nil, "somebody else"},
	} {
		t.Run(name, func(t *testing.T) {
			idp.With(func(p *logintest.Provider) {
				p.Change, p.Forge, p.HidesGroups = nil, nil, false
				if test.set != nil {
					test.set(p)
				}
			})
			p, a := newProvider(t, idp, c, func(o *login.Options) { o.AccountClaims = map[string]string{"hub": "account"} }), login.NewAttempt("/")
			got := answerTo(t, p, a)
			if test.answer != nil {
				test.answer(a, &got)
			}
			who, err := p.Identify(t.Context(), a, got)
			var refused *login.RefusedError
			if who != nil || !errors.As(err, &refused) || !strings.Contains(refused.Why, test.want) {
				t.Fatalf("%+v, %v; want a refusal with %q", who, err, test.want)
			}
			if strings.Contains(refused.Why, logintest.ClientSecret) || strings.Contains(refused.Why, a.Verifier) {
				t.Errorf("it says a secret: %s", refused.Why)
			}
		})
	}
}

func TestCodeIsGoodOnce(t *testing.T) {
	c := newClock()
	idp := logintest.New(t, func() time.Time { return c.now })
	p, a := newProvider(t, idp, c, nil), login.NewAttempt("/")
	got := answerTo(t, p, a)
	if _, err := p.Identify(t.Context(), a, got); err != nil {
		t.Fatal(err)
	}
	var refused *login.RefusedError
	if _, err := p.Identify(t.Context(), a, got); !errors.As(err, &refused) {
		t.Fatalf("played again: %v", err)
	}
}

// A provider that changes its key needs no restart here, and what its old key signs is worth
// nothing then.
func TestKeysRotate(t *testing.T) {
	c := newClock()
	idp := logintest.New(t, func() time.Time { return c.now })
	p := newProvider(t, idp, c, nil)
	logIn := func() error {
		a := login.NewAttempt("/")
		_, err := p.Identify(t.Context(), a, answerTo(t, p, a))
		return err
	}
	if err := logIn(); err != nil {
		t.Fatal(err)
	}
	var old func([]byte) (string, error)
	idp.With(func(p *logintest.Provider) { old = p.RotateKey(t, "2") })
	if err := logIn(); err != nil {
		t.Errorf("with the new key: %v", err)
	}
	idp.With(func(p *logintest.Provider) {
		p.Forge = func(claims []byte) string {
			token, err := old(claims)
			if err != nil {
				t.Error(err)
			}
			return token
		}
	})
	var refused *login.RefusedError
	if err := logIn(); !errors.As(err, &refused) || !strings.Contains(refused.Why, "not good") {
		t.Errorf("with the old key: %v", err)
	}
}

// The code is bound to who began the login, by a digest that doesn't tell the secret, whatever
// the provider says that it takes.
func TestCodesAreBound(t *testing.T) {
	c := newClock()
	idp := logintest.New(t, func() time.Time { return c.now })
	p, a := newProvider(t, idp, c, nil), login.NewAttempt("/")
	to, err := p.AuthURL(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	q, sum := u.Query(), sha256.Sum256([]byte(a.Verifier))
	if q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || strings.Contains(to, a.Verifier) || q.Get("state") != a.State || q.Get("nonce") != a.Nonce || q.Get("response_type") != "code" {
		t.Errorf("the login leads to %s", to)
	}
}

func TestProviderThatIsAway(t *testing.T) {
	c := newClock()
	idp := logintest.New(t, func() time.Time { return c.now })
	idp.With(func(p *logintest.Provider) { p.Away = true })
	p, a := newProvider(t, idp, c, nil), login.NewAttempt("/")
	if _, err := p.AuthURL(t.Context(), a); !errors.Is(err, login.ErrUnreachable) {
		t.Fatalf("it is away: %v", err)
	}
	if why, since := p.Failure(); !strings.Contains(why, idp.URL) || !since.Equal(c.now) {
		t.Fatalf("%q since %s", why, since)
	}
	idp.With(func(p *logintest.Provider) { p.Away = false })
	if _, err := p.AuthURL(t.Context(), a); err == nil {
		t.Fatal("it is called again at once")
	}
	c.now = c.now.Add(time.Minute)
	got := answerTo(t, p, a)
	if why, _ := p.Failure(); why != "" {
		t.Fatalf("it is back: %s", why)
	}
	idp.With(func(p *logintest.Provider) { p.Away = true })
	if _, err := p.Identify(t.Context(), a, got); !errors.Is(err, login.ErrUnreachable) {
		t.Fatalf("it went away during the login: %v", err)
	}
	if why, _ := p.Failure(); why == "" {
		t.Fatal("that isn't known afterwards")
	}
	c.now = c.now.Add(10 * time.Minute)
	if why, _ := p.Failure(); why != "" {
		t.Errorf("it is said although nobody has tried since: %s", why)
	}
}

// TestDiscover: what a provider calls itself is read also where it isn't what it is called by.
func TestDiscover(t *testing.T) {
	c := newClock()
	idp := logintest.New(t, func() time.Time { return c.now })
	for _, issuer := range []string{idp.URL, idp.URL + "/"} {
		p := newProvider(t, idp, c, func(o *login.Options) { o.Issuer = issuer })
		if got, err := p.Discover(t.Context()); err != nil || got != idp.URL {
			t.Errorf("at %s: %q, %v", issuer, got, err)
		}
	}
	idp.With(func(p *logintest.Provider) { p.Away = true })
	if got, err := newProvider(t, idp, c, nil).Discover(t.Context()); !errors.Is(err, login.ErrUnreachable) || got != "" {
		t.Errorf("it is away: %q, %v", got, err)
	}
}

// TestErrorsArePutBriefly holds that a fault of the provider is a trouble and no refused login, and
// that its error pages aren't quoted.
func TestErrorsArePutBriefly(t *testing.T) {
	page := strings.Repeat("<p>it is\n broken</p>", 40000)
	for _, path := range []string{"/.well-known/openid-configuration", "/token", "/keys", "/userinfo"} {
		c := newClock()
		idp := logintest.New(t, func() time.Time { return c.now })
		idp.HidesGroups = true
		p, a := newProvider(t, idp, c, nil), login.NewAttempt("/")
		var got login.AuthResponse
		if path != "/.well-known/openid-configuration" {
			got = answerTo(t, p, a)
		}
		idp.With(func(p *logintest.Provider) { p.Broken = map[string]string{path: page} })
		_, err := p.AuthURL(t.Context(), a)
		if err == nil {
			_, err = p.Identify(t.Context(), a, got)
		}
		why, _ := p.Failure()
		if !errors.Is(err, login.ErrUnreachable) || why != err.Error() {
			t.Errorf("%s: %.300v, and the trouble is %.300q", path, err, why)
		}
		if len(why) > 700 || strings.Contains(why, "\n") || !strings.Contains(why, idp.URL) {
			t.Errorf("%s: %d bytes are said, %.300q", path, len(why), why)
		}
	}
}

func TestWrongSecretIsNamed(t *testing.T) {
	c := newClock()
	idp := logintest.New(t, func() time.Time { return c.now })
	p, a := newProvider(t, idp, c, func(o *login.Options) { o.ClientSecret = "mistyped" }), login.NewAttempt("/")
	if _, err := p.Identify(t.Context(), a, answerTo(t, p, a)); err == nil || !strings.Contains(err.Error(), "oidc.clientSecret") || strings.Contains(err.Error(), "mistyped") {
		t.Fatalf("%v", err)
	}
}

func TestAttemptSurvivesItsCookie(t *testing.T) {
	c := newClock()
	idp := logintest.New(t, func() time.Time { return c.now })
	secrets := func(list ...string) func(*login.Options) { return func(o *login.Options) { o.Secrets = list } }
	p, replica := newProvider(t, idp, c, nil), newProvider(t, idp, c, nil)
	a := login.NewAttempt("/pipelines/shop?q=web")
	sealed := p.SealAttempt(a)
	back, err := replica.OpenAttempt(sealed)
	if err != nil || *back != *a {
		t.Fatalf("another replica reads %+v, %v", back, err)
	}
	if other := login.NewAttempt("/"); other.Matches(a.State) || !back.Matches(a.State) || other.Digest() == a.Digest() {
		t.Error("attempts are told apart by their states")
	}
	if (&login.Attempt{}).Matches("") {
		t.Error("an empty state matches")
	}
	// A secret is replaced while logins are under way.
	before, after := newProvider(t, idp, c, secrets("old")), newProvider(t, idp, c, secrets("new", "old"))
	if _, err := after.OpenAttempt(before.SealAttempt(a)); err != nil {
		t.Errorf("after the secret was replaced: %v", err)
	}
	body, signature, _ := strings.Cut(sealed, ".")
	otherBody, _, _ := strings.Cut(p.SealAttempt(login.NewAttempt("/")), ".")
	for name, text := range map[string]string{
		"nothing": "", "no signature": body, "an empty signature": body + ".", "nonsense": "%", "too long": strings.Repeat("A", 4<<10), "another's signature": otherBody + "." + signature,
		"a longer body": body + "A." + signature, "of another secret": newProvider(t, idp, c, secrets("guessed")).SealAttempt(a),
		"of another client":   newProvider(t, idp, c, func(o *login.Options) { o.ClientID = "other" }).SealAttempt(a),
		"of the older secret": newProvider(t, idp, c, secrets("older")).SealAttempt(a),
		"incomplete":          p.SealAttempt(&login.Attempt{State: "s"}),
	} {
		if back, err := p.OpenAttempt(text); err == nil {
			t.Errorf("%s is read: %+v", name, back)
		}
	}
	c.now = c.now.Add(login.AttemptLifetime - time.Second)
	if _, err := p.OpenAttempt(sealed); err != nil {
		t.Errorf("in its last second: %v", err)
	}
	c.now = c.now.Add(time.Second)
	var refused *login.RefusedError
	if _, err := p.OpenAttempt(sealed); !errors.As(err, &refused) {
		t.Errorf("after its time: %v", err)
	}
}

func TestPublicClientNeedsASecretForItsCookies(t *testing.T) {
	o := login.Options{Issuer: "https://idp.example.com", ClientID: "liftlock", RedirectURL: "https://liftlock.example.com/login/callback", GroupsClaim: "groups"}
	if _, err := login.New(o); err == nil {
		t.Error("nothing signs its cookies")
	}
	o.Secrets = []string{"of the webhooks"}
	if _, err := login.New(o); err != nil {
		t.Error(err)
	}
}

func FuzzOpenAttempt(f *testing.F) {
	p, err := login.New(login.Options{Issuer: "https://idp.example.com", ClientID: "liftlock", ClientSecret: "s", RedirectURL: "https://liftlock.example.com/login/callback", GroupsClaim: "groups"})
	if err != nil {
		f.Fatal(err)
	}
	sealed := p.SealAttempt(login.NewAttempt("/"))
	f.Add(sealed)
	f.Add("e30.e30")
	f.Fuzz(func(t *testing.T, text string) {
		if a, err := p.OpenAttempt(text); err == nil && text != sealed {
			t.Errorf("%q is an attempt: %+v", text, a)
		}
	})
}

func TestEndSessionURL(t *testing.T) {
	c := newClock()
	idp := logintest.New(t, func() time.Time { return c.now })
	p := newProvider(t, idp, c, nil)
	if got := p.EndSessionURL("https://liftlock.example.com/"); got != "" {
		t.Fatalf("before it was looked up: %s", got)
	}
	answerTo(t, p, login.NewAttempt("/"))
	if got, want := p.EndSessionURL("https://liftlock.example.com/"), idp.URL+"/logout?client_id=liftlock&post_logout_redirect_uri=https%3A%2F%2Fliftlock.example.com%2F"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
