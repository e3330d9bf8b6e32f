package policies

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/liftlock/liftlock/internal/wording"
)

// EndpointRequest is what an endpoint of the gate http is sent, as JSON.
type EndpointRequest struct {
	Version     int      `json:"version"` // 1
	ID          string   `json:"id"`      // the same for the same release, environment and head, however often it is asked
	Repository  string   `json:"repository"`
	Pipeline    string   `json:"pipeline"`
	Environment string   `json:"environment"`
	Component   string   `json:"component"`
	Release     *Release `json:"release"`
	Pull        int64    `json:"pull"`
	PullURL     string   `json:"pullURL,omitempty"`
	Head        string   `json:"head"`
	Targets     []Target `json:"targets"`
	Attempt     int      `json:"attempt"`            // from 1
	Callback    string   `json:"callback,omitempty"` // where it may send its answer later; empty: nowhere
}

// EndpointAnswer is what an endpoint answers, at once or later to the request's callback.
type EndpointAnswer struct {
	ID      string    // the request's
	Outcome Outcome   // empty: it hasn't decided yet
	Reason  string    // for people, one line
	Until   time.Time // when it may say something else; zero: it doesn't say
	At      time.Time // when it was asked, or signed its callback
}

// Bounds of what endpoints are signed and answer.
const (
	// MaxEndpointAnswer is how long an answer may be, in bytes.
	MaxEndpointAnswer = 64 << 10
	// maxSignatureAge is how far the time of a signature may be from ours.
	maxSignatureAge = 5 * time.Minute
	// EndpointSignature is the header of a signature.
	EndpointSignature = "Liftlock-Signature"
)

// ParseEndpointAnswer reads an answer to the request with an id. Keys that it doesn't know
// are left alone; an answer to another request is an error, because it is of a cache.
func ParseEndpointAnswer(body []byte, id string) (EndpointAnswer, error) {
	var read struct {
		ID      string  `json:"id"`
		Outcome Outcome `json:"outcome"`
		Reason  string  `json:"reason"`
		Until   string  `json:"until"`
	}
	if len(body) > MaxEndpointAnswer {
		return EndpointAnswer{}, fmt.Errorf("the answer is larger than %d bytes", MaxEndpointAnswer)
	}
	if !utf8.Valid(body) || json.Unmarshal(body, &read) != nil {
		return EndpointAnswer{}, errors.New(`the answer is not a JSON object with "id", "outcome" and "reason"`)
	}
	switch read.Outcome {
	case Pass, Wait, Fail:
	default:
		return EndpointAnswer{}, fmt.Errorf("the answer has the outcome %q; it must be pass, wait or fail",
			wording.ClipLine(string(read.Outcome), 40))
	}
	if id == "" || read.ID != id {
		return EndpointAnswer{}, fmt.Errorf("the answer is to the request %q, not to this one; it must have the request's id",
			wording.ClipLine(read.ID, 80))
	}
	a := EndpointAnswer{ID: id, Outcome: read.Outcome, Reason: wording.ClipLine(strings.ReplaceAll(read.Reason, "\x00", ""), maxHTTPReason)}
	if read.Until != "" {
		a.Until, _ = time.Parse(time.RFC3339, read.Until) // what is none is of the year 1
		if a.Until.Year() < 2000 || a.Until.Year() > 9000 {
			return EndpointAnswer{}, fmt.Errorf("the answer's until is %q, not a time like 2026-12-20T18:00:00Z",
				wording.ClipLine(read.Until, 40))
		}
	}
	return a, nil
}

// SignEndpoint is the header [EndpointSignature] of a body that is signed at a time:
// t=SECONDS,v1=HEX, of the HMAC-SHA256 of "SECONDS.body". Both sides sign so, with the one
// secret; a request is no answer, because it has no outcome.
func SignEndpoint(secret []byte, at time.Time, body []byte) string {
	seconds := strconv.FormatInt(at.Unix(), 10)
	return "t=" + seconds + ",v1=" + hex.EncodeToString(signEndpoint(secret, seconds, body))
}

func signEndpoint(secret []byte, seconds string, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(seconds + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// VerifyEndpoint says when a body was signed, by the header that came with it. The error
// is that it wasn't, not by who has the secret, or not within five minutes of now.
func VerifyEndpoint(secret []byte, header string, body []byte, now time.Time) (time.Time, error) {
	seconds, signature, ok := strings.Cut(header, ",v1=")
	seconds, isTime := strings.CutPrefix(seconds, "t=")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	given, hexErr := hex.DecodeString(signature)
	isRead := err == nil && hexErr == nil
	if !ok || !isTime || !isRead || strconv.FormatInt(unix, 10) != seconds {
		return time.Time{}, fmt.Errorf("the header %s is missing or isn't t=SECONDS,v1=HEX", EndpointSignature)
	}
	if len(secret) == 0 || !hmac.Equal(given, signEndpoint(secret, seconds, body)) {
		return time.Time{}, errors.New("the signature is not that of the endpoint's secret")
	}
	at := time.Unix(unix, 0).UTC()
	if age := now.Sub(at); age > maxSignatureAge || age < -maxSignatureAge {
		return time.Time{}, fmt.Errorf("it was signed at %s, more than %s from now", at.Format(time.RFC3339),
			formatDuration(maxSignatureAge))
	}
	return at, nil
}
