package emulator

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"

	"go.uber.org/zap"
)

// Fault makes calls fail. Method and Path are regular expressions over the
// whole method and the path without "/api/v3" or "/api/v4" (for example "PUT" and
// "/pulls/[0-9]+/merge$"); an empty one matches all. Git's own requests
// ("/acme/fleet.git/git-receive-pack") can fail like any other.
type Fault struct {
	Method, Path string
	Skip         int  // let so many matching calls pass first
	Times        int  // fail so many; 0: once; negative: until ClearFaults
	After        bool // the call has its effect, and then fails
	Cut          bool // break the connection instead of answering
	Status       int  // the answer: 0 is 502
	Header       http.Header
	Body         string // empty: an error message in the forge's shape
}

type activeFault struct {
	Fault
	method, path *regexp.Regexp
	left         int
}

// InjectFault adds a fault; the first one added that matches a call is used.
func (f *Forge) InjectFault(x Fault) error {
	method, err := regexp.Compile("^(?:" + cmp.Or(x.Method, ".*") + ")$")
	if err != nil {
		return fmt.Errorf("injecting a fault: the method: %w", err)
	}
	path, err := regexp.Compile(x.Path)
	if err != nil {
		return fmt.Errorf("injecting a fault: the path: %w", err)
	}
	left := x.Times
	if left == 0 {
		left = 1
	}
	if x.Status == 0 {
		x.Status = http.StatusBadGateway
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, &activeFault{Fault: x, method: method, path: path, left: left})
	return nil
}

// ClearFaults removes all faults, used or not.
func (f *Forge) ClearFaults() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
}

// takeFault finds the fault for a call and uses it up. Callers hold mu.
func (f *Forge) takeFault(method, path string) *Fault {
	for _, x := range f.faults {
		if x.left == 0 || !x.method.MatchString(method) || !x.path.MatchString(path) {
			continue
		}
		if x.Skip > 0 {
			x.Skip--
			continue
		}
		if x.left > 0 {
			x.left--
		}
		found := x.Fault
		return &found
	}
	return nil
}

// answerFault answers a call as the fault says. With Cut the client sees its
// connection break.
func (f *Forge) answerFault(w http.ResponseWriter, x *Fault) {
	if x.Cut {
		f.cutConnection(w)
		return
	}
	for k, v := range x.Header {
		w.Header()[http.CanonicalHeaderKey(k)] = v
	}
	if x.Body == "" {
		f.writeError(w, newAPIError(x.Status, "%s", cmp.Or(http.StatusText(x.Status), "Injected")))
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	w.WriteHeader(x.Status)
	_, _ = w.Write([]byte(x.Body)) // a client that is gone needs no answer
}

// cutConnection breaks the connection among the first lines of an answer: curl and Go's client
// quietly try again when a kept connection breaks before them.
func (f *Forge) cutConnection(w http.ResponseWriter) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, err = buf.WriteString("HTTP/1.1 200 OK\r\nContent-")
	if err := errors.Join(err, buf.Flush(), conn.Close()); err != nil {
		f.log.Debug("a connection broke before it was cut", zap.Error(err))
	}
}

// Calls counts the requests so far by method and route, such as
// "GET /repos/{owner}/{repo}/pulls", Git's as "POST /{owner}/{repo}.git/git-receive-pack".
// Unknown ones count under their path. Answers of 304 count like others.
func (f *Forge) Calls() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.calls)
}

// ResetCalls sets all counts to zero.
func (f *Forge) ResetCalls() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = map[string]int{}
}

// maxRoutes bounds the counts: paths of unknown routes come from outside.
const maxRoutes = 1000

func (f *Forge) countCall(route string) {
	if _, known := f.calls[route]; known || len(f.calls) < maxRoutes {
		f.calls[route]++
	}
}
