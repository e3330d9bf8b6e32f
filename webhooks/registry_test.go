package webhooks

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRegistryDeliveries holds in which ways a registry's delivery may have the secret, and which bodies are taken.
func TestRegistryDeliveries(t *testing.T) {
	t.Parallel()
	r, err := New(Registry, [][]byte{[]byte("first-secret"), []byte("other secret/1")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const push = `{"events":[{"action":"push","target":{"repository":"acme/web"}}]}`
	for name, c := range map[string]struct {
		address, authorization, kind, body string
		images                             string // empty: refused
		status                             int
	}{
		"alone":                   {"/", "first-secret", "application/json", push, "acme/web", 0},
		"as Bearer":               {"/", "Bearer first-secret", "application/vnd.docker.distribution.events.v2+json", push, "acme/web", 0},
		"as a password":           {"/", "Basic dXNlcjpmaXJzdC1zZWNyZXQ=", "application/json", push, "acme/web", 0},
		"in the address":          {"/?token=first-secret", "", "application/json", push, "acme/web", 0},
		"written for addresses":   {"/?token=other%20secret%2F1", "", "application/json", push, "acme/web", 0},
		"none":                    {"/", "", "application/json", push, "", 401},
		"another":                 {"/", "Bearer second", "application/json", push, "", 401},
		"another as a password":   {"/", "Basic Zmlyc3Qtc2VjcmV0OnNlY29uZA==", "application/json", push, "", 401},
		"another in the address":  {"/?token=first-secre", "", "application/json", push, "", 401},
		"both, one of them wrong": {"/?token=first-secret", "second", "application/json", push, "", 401},
		"a form":                  {"/", "first-secret", "application/x-www-form-urlencoded", "payload=" + push, "", 415},
		"no JSON":                 {"/", "first-secret", "application/json", "[", "", 400},
		"many":                    {"/", "first-secret", "application/json", manyPushes(), "", -1},
		"names that are none":     {"/", "first-secret", "application/json", `{"events":[{"action":"push","target":{"repository":"../x y"}},{"action":"push","target":{"repository":"acme/web"}}]}`, "acme/web", 0},
	} {
		req := httptest.NewRequest(http.MethodPost, c.address, strings.NewReader(c.body))
		req.Header.Set("Content-Type", c.kind)
		if c.authorization != "" {
			req.Header.Set("Authorization", c.authorization)
		}
		e, refusal := r.Read(httptest.NewRecorder(), req)
		switch {
		case c.status > 0:
			if refusal == nil || refusal.Status != c.status {
				t.Errorf("%s: %+v, %v", name, e, refusal)
			}
		case refusal != nil:
			t.Errorf("%s: %v", name, refusal)
		case c.status < 0:
			if len(e.Images) != maxImages {
				t.Errorf("%s: %d images", name, len(e.Images))
			}
		case strings.Join(e.Images, " ") != c.images || e.Kind != ImagePush:
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// manyPushes is a delivery of more pushes than are looked at.
func manyPushes() string {
	var b strings.Builder
	b.WriteString(`{"events":[{"action":"pull"}`)
	for n := range 2 * maxImages {
		b.WriteString(`,{"action":"push","target":{"repository":"acme/web-` + strings.Repeat("x", n%90+1) + strings.Repeat("y", n/90+1) + `"}}`)
	}
	return b.String() + "]}"
}
