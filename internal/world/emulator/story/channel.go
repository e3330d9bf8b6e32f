package story

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	channelSecret = "whsec_ZGVtby1zZWNyZXQtb2YtdGhlLWNoYW5uZWw="
	// maxNotification bounds what the channel takes.
	maxNotification = 64 << 10
)

// channel is where the server's notifications come to: it keeps what each event said.
type channel struct {
	url    string
	server *http.Server

	mu       sync.Mutex
	received map[string]string // the last message, by the event's word
}

func openChannel() (*channel, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a channel for notifications: %w", err)
	}
	c := &channel{url: "http://" + l.Addr().String() + "/in", received: map[string]string{}}
	c.server = &http.Server{Handler: http.HandlerFunc(c.take), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = c.server.Serve(l) }() // ends with close
	return c, nil
}

func (c *channel) close() { _ = c.server.Close() }

func (c *channel) take(w http.ResponseWriter, r *http.Request) {
	var e struct {
		Type string
		Data struct{ Message string }
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, maxNotification)).Decode(&e); err != nil || r.Header.Get("Webhook-Signature") == "" {
		http.Error(w, "this is no notification", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received[strings.TrimSuffix(strings.TrimPrefix(e.Type, "dev.liftlock."), ".v1")] = e.Data.Message
}

// message is what an event of a word said last; empty: none came.
func (c *channel) message(word string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.received[word]
}
