package emulator

import (
	"net/http"
	"strings"
)

// answerRecorder keeps what is written as an answer.
type answerRecorder struct {
	http.ResponseWriter
	status int
	answer []byte
}

// WriteHeader keeps the status.
func (a *answerRecorder) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Write keeps the body.
func (a *answerRecorder) Write(b []byte) (int, error) {
	a.answer = append(a.answer, b...)
	return a.ResponseWriter.Write(b)
}

// recordREST gives a call of GitHub's API and its answer to the forge's recorder.
func (f *Forge) recordREST(r *http.Request, rt *route, body []byte, a *answerRecorder) {
	method, path, _ := strings.Cut(rt.pattern, " ")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.record(Exchange{Method: method, Route: path, Query: r.URL.Query(), Body: body, Status: a.status, Answer: a.answer})
}
