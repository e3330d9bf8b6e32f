package provenance

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/discover/signature"
)

var update = flag.Bool("update", false, "write the goldens anew")

var (
	day     = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	digestA = "sha256:" + strings.Repeat("a", 64)
	commitA = strings.Repeat("1", 40)
)

// newKey makes a key of a kind; the text is its PEM.
func newKey(t testing.TB, kind string) (*SigningKey, []byte) {
	t.Helper()
	var private crypto.Signer
	var err error
	switch kind {
	case "ed25519":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	case "p384":
		private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "rsa":
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	text := &pem.Block{Type: "PRIVATE KEY"}
	if kind == "sec1" {
		text.Type = "EC PRIVATE KEY"
		text.Bytes, err = x509.MarshalECPrivateKey(private.(*ecdsa.PrivateKey))
	} else {
		text.Bytes, err = x509.MarshalPKCS8PrivateKey(private)
	}
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParseSigningKey(pem.EncodeToMemory(text))
	if err != nil && kind != "rsa" && kind != "p384" {
		t.Fatal(err)
	}
	return key, pem.EncodeToMemory(text)
}

// record is of one environment of a chain of dev, qa and prod, an hour after the one before.
func record(environment string, previous ...Previous) Record {
	hour := map[string]time.Duration{"dev": 0, "qa": time.Hour, "prod": 2 * time.Hour}[environment]
	after := map[string][]string{"qa": {"dev"}, "prod": {"qa"}}[environment]
	return Record{
		Verifier: "https://liftlock.example.com", Kind: Verified, Repository: "acme/deploy", Pipeline: "web", Component: "shop",
		Environment: environment, After: after, Release: Release{ID: "r1", Name: "1.2.0"}, Commit: commitA, MergedAt: day.Add(hour),
		PipelineFile: PipelineFile{Path: ".liftlock/web.yaml", SHA256: strings.Repeat("f", 64), Commit: commitA},
		PullRequest: &PullRequest{
			Number: 7, URL: "https://git.example/acme/deploy/pulls/7", MadeBy: []Person{{Login: "ann", Account: 1}},
			ApprovedBy: []Person{{Login: "bob", Account: 2}}, MergedBy: &Person{Login: "liftlock"},
		},
		Gates: []Gate{{Name: "approvals", Outcome: "pass", Reason: "1 of 1", At: day.Add(hour)}},
		Targets: []Target{{
			Name: "shop-" + environment, Cluster: "https://k8s.example", State: "verified", Since: day.Add(hour + 5*time.Minute + time.Millisecond),
			Images: []Image{{Image: "registry.example:5000/shop:1.2.0", Digest: digestA, Pods: 2}, {Image: "sidecar:1"}},
		}},
		Previous: previous, Since: day.Add(hour + 10*time.Minute), IssuedAt: day.Add(hour + 11*time.Minute),
	}
}

func seal(t testing.TB, key *SigningKey, r Record) []byte {
	t.Helper()
	statement, err := r.Statement()
	if err != nil {
		t.Fatal(err)
	}
	out, err := key.Sign(statement)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func prove(t testing.TB, key *SigningKey, r Record) *Proven {
	t.Helper()
	e, err := ParseEnvelope(seal(t, key, r))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Verify(e, []*signature.Key{key.Public()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestStatements pins the schema: both statements with every field.
func TestStatements(t *testing.T) {
	r := record("qa", Previous{Environment: "dev", Digest: strings.Repeat("d", 64)})
	r.MoreTargets, r.Rebuilt = 3, true
	r.Kind, r.Reverted = Reverted, &Release{ID: "r2", Name: "1.3.0"}
	promotion, err := r.Statement()
	if err != nil {
		t.Fatal(err)
	}
	summary, err := r.Summary()
	if err != nil {
		t.Fatal(err)
	}
	for name, statement := range map[string][]byte{"promotion": promotion, "summary": summary} {
		var shown bytes.Buffer
		if err := json.Indent(&shown, statement, "", "  "); err != nil {
			t.Fatal(err)
		}
		file := "testdata/" + name + ".json"
		if *update {
			if err := os.WriteFile(file, append(shown.Bytes(), '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), shown.String()+"\n"); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

// TestSummaryOfQuarantine holds that a quarantine is a summary that failed.
func TestSummaryOfQuarantine(t *testing.T) {
	r := record("dev")
	r.Kind = Quarantined
	statement, err := r.Summary()
	if err != nil {
		t.Fatal(err)
	}
	if text := string(statement); !strings.Contains(text, `"verificationResult":"FAILED","verifiedLevels":["FAILED"]`) {
		t.Error(text)
	}
}

// TestIncompleteRecords holds that a statement that says too little isn't made.
func TestIncompleteRecords(t *testing.T) {
	for name, spoil := range map[string]func(*Record){
		"no verifier": func(r *Record) { r.Verifier = "" }, "no repository": func(r *Record) { r.Repository = "" },
		"no pipeline": func(r *Record) { r.Pipeline = "" }, "no component": func(r *Record) { r.Component = "" },
		"no environment": func(r *Record) { r.Environment = "" }, "no release.id": func(r *Record) { r.Release.ID = "" },
		"no commit": func(r *Record) { r.Commit = "" }, "no time": func(r *Record) { r.Since = time.Time{} },
		`the kind "merged"`:     func(r *Record) { r.Kind = "merged" },
		"before what it states": func(r *Record) { r.IssuedAt = r.Since.Add(-time.Hour) },
		"more than 585728":      func(r *Record) { r.Gates[0].Reason = strings.Repeat("x", maxPayload) },
	} {
		t.Run(name, func(t *testing.T) {
			r := record("dev")
			spoil(&r)
			if _, err := r.Statement(); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestSigningKeys holds which private keys sign, and that no error has any of a key.
func TestSigningKeys(t *testing.T) {
	for _, kind := range []string{"ed25519", "p256", "sec1"} {
		key, text := newKey(t, kind)
		got := prove(t, key, record("dev"))
		if got.Key.ID() != key.Public().ID() || got.Record.Environment != "dev" {
			t.Errorf("%s: %+v", kind, got)
		}
		if !bytes.Equal(seal(t, key, record("dev")), seal(t, key, record("dev"))) {
			t.Errorf("%s: two envelopes of one statement differ", kind)
		}
		if shown := fmt.Sprintf("%v %+v %#v", key, key, key); strings.Contains(shown, string(text[40:60])) || len(shown) > 100 {
			t.Errorf("%s: the key is shown as %s", kind, shown)
		}
	}
	_, good := newKey(t, "p256")
	_, p384 := newKey(t, "p384")
	_, weak := newKey(t, "rsa")
	key, _ := newKey(t, "ed25519")
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"nothing":       {nil, "no private key in PEM"},
		"a public key":  {key.Public().PEM(), "a public one"},
		"two":           {append(bytes.Clone(good), good...), "more behind the first key"},
		"P-384":         {p384, "of another kind"},
		"RSA":           {weak, "of another kind"},
		"a password":    {bytes.ReplaceAll(good, []byte("PRIVATE"), []byte("ENCRYPTED PRIVATE")), "with a password"},
		"other content": {pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}), "can be read"},
		"too much":      {bytes.Repeat([]byte("x"), signature.MaxKey+1), "more than"},
	} {
		_, err := ParseSigningKey(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v", name, err)
		}
		if len(c.text) > 60 && err != nil && strings.Contains(err.Error(), string(c.text[40:60])) {
			t.Errorf("%s: the error has a part of the key", name)
		}
	}
}

// TestRefusedEnvelopes holds why an envelope proves nothing.
func TestRefusedEnvelopes(t *testing.T) {
	key, _ := newKey(t, "p256")
	other, _ := newKey(t, "ed25519")
	whole := string(seal(t, key, record("dev")))
	signed := func(statement string) string {
		out, err := key.Sign([]byte(statement))
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	wrongCommit := record("dev")
	statement, err := wrongCommit.Statement()
	if err != nil {
		t.Fatal(err)
	}
	wrong := strings.Replace(string(statement), `"gitCommit":"1`, `"gitCommit":"2`, 1)
	for name, c := range map[string]struct {
		text string
		keys []*signature.Key
		want string
	}{
		"another key":                {whole, []*signature.Key{other.Public()}, "none of the keys"},
		"no key":                     {whole, nil, "no key by which"},
		"no JSON":                    {"x", nil, "no DSSE envelope"},
		"another type":               {strings.Replace(whole, PayloadType, "text/plain", 1), nil, "has text/plain and not"},
		"no payload":                 {`{"payloadType":"` + PayloadType + `"}`, nil, "payloadType and payload are needed"},
		"no signature":               {`{"payloadType":"` + PayloadType + `","payload":"e30="}`, nil, "no signature"},
		"no base64":                  {`{"payloadType":"` + PayloadType + `","payload":"%","signatures":[{"sig":""}]}`, nil, "no base64"},
		"another key's name":         {strings.Replace(whole, key.Public().ID(), other.Public().ID(), 1), []*signature.Key{other.Public()}, "was changed"},
		"no statement":               {signed("{}"), []*signature.Key{key.Public()}, "no statement of the type"},
		"another statement's commit": {signed(wrong), []*signature.Key{key.Public()}, "isn't about the commit"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := ParseEnvelope([]byte(c.text))
			if err == nil {
				_, err = Verify(e, c.keys)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestChangedEnvelopes holds that no byte of an envelope can be changed so that another statement counts.
func TestChangedEnvelopes(t *testing.T) {
	key, _ := newKey(t, "ed25519")
	whole := seal(t, key, record("prod", Previous{Environment: "qa", Digest: strings.Repeat("d", 64)}))
	sound, err := ParseEnvelope(whole)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		changed := bytes.Clone(whole)
		changed[rapid.IntRange(0, len(whole)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		e, err := ParseEnvelope(changed)
		if err != nil {
			return
		}
		if p, err := Verify(e, []*signature.Key{key.Public()}); err == nil && p.Digest != sound.Digest() {
			t.Fatalf("a changed statement counts: %s", e.payload)
		}
	})
}

// chainOf is dev, qa and prod, each naming the one before; change makes each record another one.
func chainOf(t testing.TB, key *SigningKey, change func(*Record)) []*Proven {
	t.Helper()
	var out []*Proven
	for _, environment := range []string{"dev", "qa", "prod"} {
		r := record(environment)
		if len(out) > 0 {
			last := out[len(out)-1]
			r.Previous = []Previous{{Environment: last.Record.Environment, Digest: last.Digest}}
		}
		change(&r)
		out = append(out, prove(t, key, r))
	}
	return out
}

// TestChain holds what a chain needs, and what is said of one that doesn't hold.
func TestChain(t *testing.T) {
	key, _ := newKey(t, "p256")
	in := func(environment string, change func(*Record)) func(*Record) {
		return func(r *Record) {
			if r.Environment == environment {
				change(r)
			}
		}
	}
	none := func(*Record) {}
	quarantine := func(environment string, after time.Duration) *Proven {
		r := record(environment)
		r.Kind, r.Since, r.IssuedAt = Quarantined, r.Since.Add(after), r.IssuedAt.Add(after)
		return prove(t, key, r)
	}
	again := record("qa")
	again.Since, again.IssuedAt = again.Since.Add(time.Hour), again.IssuedAt.Add(time.Hour)
	for name, c := range map[string]struct {
		change func(*Record)
		more   []*Proven
		skip   string // the environment whose statement isn't there
		at     time.Time
		want   string // of the one problem; "": there is none
	}{
		"it holds":               {change: none},
		"one is missing":         {change: none, skip: "qa", want: "prod: the statement of qa with the digest"},
		"the first is missing":   {change: none, skip: "dev", want: "qa: the statement of dev with the digest"},
		"another release":        {change: in("dev", func(r *Record) { r.Release.ID = "r0" }), want: "about the release r0 and not r1"},
		"another component":      {change: in("dev", func(r *Record) { r.Component = "api" }), want: "about the component api and not shop"},
		"another pipeline":       {change: in("dev", func(r *Record) { r.Pipeline = "db" }), want: "about the pipeline db and not web"},
		"another environment":    {change: in("dev", func(r *Record) { r.Environment = "test" }), want: "names no statement of dev"},
		"a copied environment":   {change: in("qa", func(r *Record) { r.Previous[0].Environment = "int"; r.After = nil }), want: "about the environment dev and not int"},
		"none was there":         {change: in("qa", func(r *Record) { r.Previous[0].Digest = "" }), want: "qa: there was no statement of dev"},
		"another time":           {change: in("qa", func(r *Record) { r.Since, r.IssuedAt = day.Add(-time.Hour), day.Add(-time.Hour) }), want: "after the one that names it"},
		"a later verification":   {change: in("dev", func(r *Record) { r.IssuedAt = r.IssuedAt.Add(30 * time.Minute); r.Since = r.IssuedAt }), more: nil},
		"issued after at":        {change: none, at: day.Add(90 * time.Minute), want: "prod: the statement was issued at"},
		"at its time":            {change: none, at: day.Add(3 * time.Hour)},
		"quarantined later":      {change: none, more: []*Proven{quarantine("qa", time.Minute)}, want: "qa: the release 1.2.0 was quarantined later"},
		"quarantined before":     {change: none, more: []*Proven{quarantine("qa", -5*time.Minute)}},
		"quarantined after at":   {change: none, more: []*Proven{quarantine("prod", 2*time.Hour)}, at: day.Add(3 * time.Hour)},
		"verified after it":      {change: none, more: []*Proven{quarantine("qa", time.Minute), prove(t, key, again)}},
		"quarantined itself":     {change: in("prod", func(r *Record) { r.Kind = Quarantined }), want: "is quarantined in prod"},
		"a quarantine before it": {change: in("dev", func(r *Record) { r.Kind = Quarantined }), want: "refused: the release 1.2.0 is quarantined in dev"},
	} {
		t.Run(name, func(t *testing.T) {
			var all []*Proven
			var last *Proven
			for _, p := range chainOf(t, key, c.change) {
				if last = p; p.Record.Environment != c.skip {
					all = append(all, p)
				}
			}
			got := VerifyChain(last, append(all, c.more...), c.at)
			switch {
			case c.want == "" && len(got.Problems) > 0:
				t.Errorf("problems: %q", got.Problems)
			case c.want == "" && len(got.Links) != 3:
				t.Errorf("%d links", len(got.Links))
			case c.want != "" && (len(got.Problems) == 0 || !strings.Contains(strings.Join(got.Problems, "\n"), c.want)):
				t.Errorf("problems: %q", got.Problems)
			}
		})
	}
}

// TestChecks holds that a statement counts for nothing else than it says.
func TestChecks(t *testing.T) {
	key, _ := newKey(t, "p256")
	r := record("qa")
	p := prove(t, key, r)
	for name, want := range map[string]Want{
		"":                          {Repository: "acme/deploy", Pipeline: "web", Component: "shop", Environment: "qa", Release: "r1", Image: digestA, At: day.Add(2 * time.Hour)},
		"about the repository":      {Repository: "acme/other"},
		"about the environment":     {Environment: "prod"},
		"about the release":         {Release: "r2"},
		"isn't about the image":     {Image: "sha256:" + strings.Repeat("b", 64)},
		"issued at 2026-05-04T11:1": {At: day},
	} {
		if err := p.Check(want); name == "" && err != nil || name != "" && (err == nil || !strings.Contains(err.Error(), name)) {
			t.Errorf("%q: %v", name, err)
		}
	}
	statement, err := r.Summary()
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := key.Sign(statement)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ParseEnvelope(sealed)
	if err != nil {
		t.Fatal(err)
	}
	if p, err = Verify(e, []*signature.Key{key.Public()}); err != nil {
		t.Fatal(err)
	}
	if err := p.Check(Want{}); err == nil || !strings.Contains(err.Error(), SummaryPredicate) {
		t.Error(err)
	}
	if got := VerifyChain(p, nil, time.Time{}); len(got.Problems) != 1 {
		t.Errorf("%+v", got)
	}
}

// FuzzEnvelope reads any bytes: what is signed by nobody never counts.
func FuzzEnvelope(f *testing.F) {
	key, _ := newKey(f, "ed25519")
	stranger, _ := newKey(f, "ed25519")
	f.Add(seal(f, stranger, record("dev")))
	f.Add([]byte(`{"payloadType":"` + PayloadType + `","payload":"e30=","signatures":[{"keyid":"","sig":"AA=="}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := ParseEnvelope(text)
		if err != nil {
			return
		}
		if p, err := Verify(e, []*signature.Key{key.Public()}); err == nil {
			t.Fatalf("it counts: %+v", p)
		}
	})
}

// FuzzStatement signs any bytes: a statement that counts is one in all its parts.
func FuzzStatement(f *testing.F) {
	key, _ := newKey(f, "ed25519")
	r := record("qa", Previous{Environment: "dev"})
	for _, make := range []func() ([]byte, error){r.Statement, r.Summary} {
		statement, err := make()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(statement)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		sealed, err := key.Sign(text)
		if err != nil {
			t.Fatal(err)
		}
		e, err := ParseEnvelope(sealed)
		if err != nil {
			return
		}
		p, err := Verify(e, []*signature.Key{key.Public()})
		if err != nil {
			return
		}
		if p.Record != nil && (p.Record.check() != nil || !p.isAbout("gitCommit", p.Record.Commit)) {
			t.Fatalf("it counts: %+v", p.Record)
		}
		VerifyChain(p, []*Proven{p}, time.Time{})
	})
}

// FuzzSigningKey reads any bytes as a key.
func FuzzSigningKey(f *testing.F) {
	_, text := newKey(f, "sec1")
	f.Add(text)
	f.Add(append([]byte("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"), text...))
	f.Fuzz(func(t *testing.T, text []byte) {
		key, err := ParseSigningKey(text)
		if err == nil && key.Public() == nil {
			t.Fatal("a key without its public part")
		}
	})
}
