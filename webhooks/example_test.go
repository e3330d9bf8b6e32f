package webhooks_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/liftlock/liftlock/webhooks"
)

// A server takes deliveries of a forge: each is verified, written down by
// accept, and only then answered.
func ExampleHandler() {
	secret := []byte("s3cret")
	receiver, err := webhooks.New(webhooks.GitHub, [][]byte{secret}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	accept := func(_ context.Context, e *webhooks.Event) error {
		fmt.Printf("%s %s: look at %s#%d\n", e.Kind, e.Action, e.Repo, e.Number)
		return nil
	}
	mux := http.NewServeMux()
	mux.Handle("/webhooks/hub", webhooks.Handler(receiver, accept, nil))

	// What GitHub sends when a pull request is approved.
	body := []byte(`{"action":"submitted","pull_request":{"number":42},"repository":{"full_name":"acme/fleet"}}`)
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	req := httptest.NewRequest(http.MethodPost, "/webhooks/hub", bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", "pull_request_review")
	req.Header.Set("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, req)
	fmt.Println(answer.Code)

	// Output:
	// review submitted: look at acme/fleet#42
	// 200
}
