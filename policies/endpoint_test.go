package policies

import (
	"strings"
	"testing"
	"time"
)

func TestEndpointAnswer(t *testing.T) {
	for body, want := range map[string]EndpointAnswer{
		`{"id":"a","outcome":"pass"}`:                                                                             {ID: "a", Outcome: Pass},
		`{"id":"a","outcome":"pass","until":"2000-01-01T00:00:00Z"}`:                                              {ID: "a", Outcome: Pass, Until: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)},
		`{"id":"a","outcome":"pass","until":"9000-12-31T00:00:00Z"}`:                                              {ID: "a", Outcome: Pass, Until: time.Date(9000, 12, 31, 0, 0, 0, 0, time.UTC)},
		`{"id":"a","outcome":"pass"}` + strings.Repeat(" ", MaxEndpointAnswer-len(`{"id":"a","outcome":"pass"}`)): {ID: "a", Outcome: Pass},
		`{"id":"a","outcome":"wait","reason":"the\nboard","until":"2026-11-23T12:00:00+01:00"}`:                   {ID: "a", Outcome: Wait, Reason: "the board", Until: time.Date(2026, 11, 23, 11, 0, 0, 0, time.UTC)},
		`{"id":"a","outcome":"fail","other":{"x":1},"reason":"` + strings.Repeat("x", 500) + `"}`:                 {ID: "a", Outcome: Fail, Reason: strings.Repeat("x", maxHTTPReason-len("…")) + "…"},
	} {
		got, err := ParseEndpointAnswer([]byte(body), "a")
		if err != nil || got.ID != want.ID || got.Outcome != want.Outcome || got.Reason != want.Reason || !got.Until.Equal(want.Until) {
			t.Errorf("%s\ngives %+v, %v\nwant  %+v", body, got, err, want)
		}
	}
	for body, want := range map[string]string{
		`{"id":"b","outcome":"pass"}`:             `the answer is to the request "b", not to this one; it must have the request's id`,
		`{"outcome":"pass"}`:                      `the answer is to the request "", not to this one`,
		`{"id":"a","outcome":"ok"}`:               `the answer has the outcome "ok"; it must be pass, wait or fail`,
		`{"id":"a"}`:                              `the answer has the outcome ""`,
		`{"id":"a","outcome":"pass","until":"x"}`: `the answer's until is "x"`,
		`{"id":"a","outcome":"pass","until":"1999-12-31T23:59:59Z"}`: `the answer's until is "1999-12-31T23:59:59Z"`,
		`{"id":"a","outcome":"pass","until":"9001-01-01T00:00:00Z"}`: `the answer's until is "9001-01-01T00:00:00Z"`,
		`{"id":"a","outcome":true}`:                                  `the answer is not a JSON object`,
		`ok`:                                                         `the answer is not a JSON object`,
		``:                                                           `the answer is not a JSON object`,
		"{\"id\":\"a\",\"outcome\":\"pass\xff\"}":    `the answer is not a JSON object`,
		strings.Repeat(" ", MaxEndpointAnswer) + "x": `the answer is larger than 65536 bytes`,
	} {
		if got, err := ParseEndpointAnswer([]byte(body), "a"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60q gives %+v, %v; want %s", body, got, err, want)
		}
	}
	if _, err := ParseEndpointAnswer([]byte(`{"id":"","outcome":"pass"}`), ""); err == nil {
		t.Error("an answer to nothing is one")
	}
}

func TestEndpointSignature(t *testing.T) {
	at, secret, body := time.Unix(1795435200, 0), []byte("a-secret-of-sixteen"), []byte(`{"id":"a"}`)
	const want = "t=1795435200,v1=7c007beca6568c746ddd8471385352a81e6f5f0ef0d8cac00b288982cc6e77ea"
	header := SignEndpoint(secret, at, body)
	if header != want { // as openssl dgst -sha256 -hmac has it
		t.Fatalf("it is %s, want %s", header, want)
	}
	for name, c := range map[string]struct {
		secret, header, body string
		now                  time.Time
		err                  string
	}{
		"as it was signed":        {string(secret), header, string(body), at, ""},
		"a while ago":             {string(secret), header, string(body), at.Add(5 * time.Minute), ""},
		"by a clock that is late": {string(secret), header, string(body), at.Add(-5 * time.Minute), ""},
		"too long ago":            {string(secret), header, string(body), at.Add(5*time.Minute + time.Second), "it was signed at 2026-11-23T12:00:00Z, more than 5m from now"},
		"too early":               {string(secret), header, string(body), at.Add(-6 * time.Minute), "it was signed at 2026-11-23T12:00:00Z, more than 5m from now"},
		"another secret":          {"another", header, string(body), at, "the signature is not that of the endpoint's secret"},
		"no secret":               {"", SignEndpoint(nil, at, body), string(body), at, "the signature is not that of the endpoint's secret"},
		"another body":            {string(secret), header, string(body) + " ", at, "the signature is not that of the endpoint's secret"},
		"another time":            {string(secret), strings.Replace(header, "t=17", "t=18", 1), string(body), at, "the signature is not that of the endpoint's secret"},
		"another spelling":        {string(secret), strings.Replace(header, "t=17", "t=017", 1), string(body), at, "the header Liftlock-Signature is missing or isn't t=SECONDS,v1=HEX"},
		"nothing":                 {string(secret), "", string(body), at, "the header Liftlock-Signature is missing or isn't t=SECONDS,v1=HEX"},
		"no signature":            {string(secret), "t=1795435200", string(body), at, "the header Liftlock-Signature is missing or isn't t=SECONDS,v1=HEX"},
		"half a signature":        {string(secret), header[:len(header)-2], string(body), at, "the signature is not that of the endpoint's secret"},
		"no time":                 {string(secret), strings.Replace(header, "t=1795435200", "t=noon", 1), string(body), at, "the header Liftlock-Signature is missing or isn't t=SECONDS,v1=HEX"},
		"a time without its name": {string(secret), strings.TrimPrefix(header, "t="), string(body), at, "the header Liftlock-Signature is missing or isn't t=SECONDS,v1=HEX"},
		"what is no hex":          {string(secret), header + "zz", string(body), at, "the header Liftlock-Signature is missing or isn't t=SECONDS,v1=HEX"},
		"another scheme":          {string(secret), strings.Replace(header, "v1=", "v0=", 1), string(body), at, "the header Liftlock-Signature is missing or isn't t=SECONDS,v1=HEX"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := VerifyEndpoint([]byte(c.secret), c.header, []byte(c.body), c.now)
			if c.err == "" && (err != nil || !got.Equal(at)) || c.err != "" && (err == nil || err.Error() != c.err) {
				t.Errorf("%s, %v; want %q", got, err, c.err)
			}
		})
	}
}

// FuzzEndpointAnswer holds that whatever an endpoint sends is an error or a bounded answer
// to the request.
func FuzzEndpointAnswer(f *testing.F) {
	f.Add([]byte(`{"id":"a","outcome":"pass","reason":"x","until":"2026-11-23T12:00:00Z"}`), "t=1,v1=00")
	f.Fuzz(func(t *testing.T, body []byte, header string) {
		if _, err := VerifyEndpoint([]byte("secret"), header, body, time.Unix(0, 0)); err == nil {
			t.Fatal("a made-up signature counts")
		}
		a, err := ParseEndpointAnswer(body, "a")
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x00") || len(err.Error()) > 1000 {
				t.Fatalf("the error can't be shown: %q", err)
			}
			return
		}
		if a.ID != "a" || a.Outcome != Pass && a.Outcome != Wait && a.Outcome != Fail || len(a.Reason) > 4*maxHTTPReason || strings.ContainsAny(a.Reason, "\n\x00") {
			t.Fatalf("the answer is %+v", a)
		}
	})
}
