//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// unreliableReceiver is a channel's receiver that takes every second request only.
type unreliableReceiver struct {
	*httptest.Server
	s        *scenario
	secret   string
	mu       sync.Mutex
	requests int
	got      map[string]bool // by id
}

func newUnreliableReceiver(s *scenario) *unreliableReceiver {
	r := &unreliableReceiver{s: s, secret: "whsec_" + base64.StdEncoding.EncodeToString([]byte(rand.Text())), got: map[string]bool{}}
	signed, err := standardwebhooks.NewWebhook(r.secret)
	s.must(err)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(io.LimitReader(req.Body, maxAnswer))
		if err == nil {
			err = signed.Verify(body, req.Header)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.requests++; r.requests%2 == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if err != nil {
			s.Errorf("a notification isn't what it should be: %v\n%s", err, body)
		}
		r.got[req.Header.Get("Webhook-Id")] = true
	}))
	s.Cleanup(r.Close)
	return r
}

func (r *unreliableReceiver) channelYAML() string {
	return fmt.Sprintf("channels: [{name: bus, type: webhook, url: %q, secret: %q}]\n", r.URL, r.secret)
}

// checkNothingLost compares what came with what the server's own stream of events has.
func (r *unreliableReceiver) checkNothingLost() {
	r.s.Helper()
	kinds := []event.Kind{event.Opened, event.Merged, event.Verified, event.Degraded, event.RevertOpened, event.Skipped}
	eventually(r.s, "every event has come to the receiver", func() (bool, error) {
		events, err := r.s.server.readEvents(r.s.ctx)
		if err != nil {
			return false, err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		happened := 0
		for i := range events {
			e := &events[i]
			if !slices.Contains(kinds, e.Kind) {
				continue
			}
			happened++
			if id := fmt.Sprintf("liftlock-%d-%d", e.Seq, e.At.UnixMicro()); !r.got[id] {
				return false, fmt.Errorf("%s (%s) has not come, of %d that did", id, e.Message, len(r.got))
			}
		}
		if happened != len(r.got) || happened == 0 {
			return false, fmt.Errorf("%d came, and %d happened", len(r.got), happened)
		}
		return true, nil
	})
}

// readEvents reads what the stream of events has so far.
func (s *server) readEvents(ctx context.Context) (out []api.Event, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/api/v1/events?after=0", http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	lines, happened := bufio.NewScanner(resp.Body), false
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case name == "event":
			happened = value == "happened"
		case name == "data" && happened:
			var e api.Event
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				return nil, fmt.Errorf("the event %s: %w", value, err)
			}
			out = append(out, e)
		}
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil {
		return nil, err
	}
	return out, nil
}

// approvalService is an endpoint that decides about promotions.
type approvalService struct {
	*httptest.Server
	says              atomic.Value // what it answers; empty: it is away
	requests, refused atomic.Int64
}

func newApprovalService(s *scenario) *approvalService {
	b := &approvalService{}
	b.says.Store("wait")
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		b.requests.Add(1)
		says := b.says.Load().(string)
		if says == "" {
			b.refused.Add(1)
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		var question struct {
			ID string `json:"id"`
		}
		if err := json.NewDecoder(io.LimitReader(req.Body, maxAnswer)).Decode(&question); err != nil {
			s.Errorf("the board is asked %v", err)
		}
		if err := json.NewEncoder(w).Encode(map[string]string{"id": question.ID, "outcome": says, "reason": "CHG-7"}); err != nil {
			s.Errorf("the board's answer: %v", err)
		}
	}))
	s.Cleanup(b.Close)
	return b
}

func (b *approvalService) endpointYAML() string {
	return fmt.Sprintf("endpoints: [{name: board, url: %q, secret: \"${E2E_WEBHOOK_SECRET}\"}]\n", b.URL)
}

// prometheus is a real one, which reads one number once a second.
type prometheus struct {
	url    string
	errors atomic.Int64 // the number: errors of prod
}

// startPrometheus starts the machine's own Prometheus until the story's end.
func startPrometheus(s *scenario) *prometheus {
	program, err := exec.LookPath("prometheus")
	if err != nil {
		s.Skip("it takes a Prometheus on the PATH, such as Debian's package of that name")
	}
	p := &prometheus{}
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := fmt.Fprintf(w, "errors{env=\"prod\"} %d\n", p.errors.Load()); err != nil {
			s.Errorf("the metrics: %v", err)
		}
	}))
	s.Cleanup(exporter.Close)
	address, err := emulator.FreeAddress()
	s.must(err)
	dir := filepath.Join(s.server.dir, "prometheus")
	s.must(os.MkdirAll(dir, 0o750))
	file := filepath.Join(dir, "prometheus.yaml")
	s.must(os.WriteFile(file, []byte(fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: shop, static_configs: [{targets: [%q]}]}]\n", strings.TrimPrefix(exporter.URL, "http://"))), 0o600))
	log, err := os.Create(filepath.Join(dir, "log"))
	s.must(err)
	defer log.Close()
	cmd := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	s.must(cmd.Start())
	s.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()
	})
	p.url = "http://" + address
	return p
}

func (p *prometheus) serverYAML() string {
	return fmt.Sprintf("prometheus: [{name: main, url: %q}]\n", p.url)
}
