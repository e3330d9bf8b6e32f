package story_test

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// webhookRelay gives the forge's deliveries to the servers in turn, as what stands
// before replicas does. Each goes to one of them, once: what isn't acknowledged is lost,
// because forges don't repeat it.
type webhookRelay struct {
	front  *httptest.Server
	client *http.Client

	mu       sync.Mutex
	servers  []string // their addresses
	next     int
	accepted map[string]string // deliveries that were acknowledged, by their identity, with their event
	refused  int
	// onAccepted hears of a delivery that was acknowledged before the forge does. Nil:
	// nobody listens.
	onAccepted func(server int, event string, body []byte)
}

// maxForwarded bounds a delivery's body.
const maxForwarded = 1 << 20

func startWebhookRelay(t *testing.T) *webhookRelay {
	w := &webhookRelay{accepted: map[string]string{}, client: &http.Client{Timeout: 4 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true}}} // the one at the other end dies
	w.front = httptest.NewServer(http.HandlerFunc(w.serveHTTP))
	t.Cleanup(w.front.Close)
	return w
}

func (w *webhookRelay) serveHTTP(out http.ResponseWriter, in *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(out, in.Body, maxForwarded))
	if err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	server, address := w.nextServer()
	status := w.forward(in, address, body)
	out.WriteHeader(w.recordStatus(server, in.Header, body, status))
}

func (w *webhookRelay) nextServer() (server int, address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = (w.next + 1) % len(w.servers)
	return w.next, w.servers[w.next]
}

// forward is what the server says to a delivery; a bad gateway where it says nothing.
func (w *webhookRelay) forward(in *http.Request, address string, body []byte) (status int) {
	req, err := http.NewRequestWithContext(in.Context(), in.Method, address+in.URL.Path, bytes.NewReader(body))
	if err != nil {
		return http.StatusBadGateway
	}
	req.Header = in.Header.Clone()
	res, err := w.client.Do(req)
	if err != nil {
		return http.StatusBadGateway
	}
	defer res.Body.Close() // the status is all that a forge reads
	return res.StatusCode
}

func (w *webhookRelay) recordStatus(server int, delivery http.Header, body []byte, status int) int {
	event, ok := cmp.Or(delivery.Get("X-GitHub-Event"), delivery.Get("X-Gitlab-Event")), status >= 200 && status < 300
	w.mu.Lock()
	onAccepted := w.onAccepted
	if ok {
		w.accepted[cmp.Or(delivery.Get("X-GitHub-Delivery"), delivery.Get("Idempotency-Key"))] = event
	} else {
		w.refused++
	}
	w.mu.Unlock()
	if ok && onAccepted != nil {
		onAccepted(server, event, body)
	}
	return status
}

// counts are how many deliveries were acknowledged, and how many were not.
func (w *webhookRelay) counts() (accepted, refused int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.accepted), w.refused
}

// setOnAccepted says who hears of deliveries that were acknowledged.
func (w *webhookRelay) setOnAccepted(notify func(server int, event string, body []byte)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onAccepted = notify
}

// listAccepted are the identities of the deliveries that were acknowledged.
func (w *webhookRelay) listAccepted() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.accepted))
}
