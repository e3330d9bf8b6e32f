package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/liftlock/liftlock/internal/server"
	"github.com/liftlock/liftlock/internal/world/storetest"
)

// relay passes connections on to a database, from when it is started.
func relay(t *testing.T, address, to string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer out.Close()
				go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
				_, _ = io.Copy(in, out)
			}()
		}
	}()
}

// awaitNotReady waits until a server that has no database says so.
func (ha *harness) awaitNotReady(address string) {
	ha.t.Helper()
	ha.waitFor("/readyz says that the database can't be reached", func() (bool, string) {
		res, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return false, err.Error()
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return res.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(text), "database can't be reached"), string(text)
	})
}

// TestDatabaseIsAwayAtStart serves and says so until the database is there.
func TestDatabaseIsAwayAtStart(t *testing.T) {
	dsn := storetest.PostgresSchema(t)
	u, err := url.Parse(dsn)
	if err != nil || !strings.Contains(u.Host, ":") {
		t.Skipf("no host and port: %v", err)
	}
	database, away := u.Host, freeAddress(t)
	u.Host = away
	s := newHarness(t, harnessOptions{store: u.String()})
	o := s.serverOptions(zapcore.NewNopCore())
	o.Config.Listen = freeAddress(t)
	type built struct {
		server *server.Server
		err    error
	}
	done := make(chan built, 1)
	go func() {
		srv, err := server.New(context.Background(), o)
		done <- built{srv, err}
	}()
	s.awaitNotReady(o.Config.Listen)
	if res, err := http.Get("http://" + o.Config.Listen + "/healthz"); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("/healthz: %v, %v", res, err)
	}
	if res, err := http.Post("http://"+o.Config.Listen+"/webhooks/hub", "application/json", strings.NewReader("{}")); err != nil || res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("a delivery: %v, %v", res, err)
	}
	relay(t, away, database)
	select {
	case b := <-done:
		s.must("build the server", b.err)
		s.url = "http://" + o.Config.Listen
		end := s.run(b.server)
		defer end()
	case <-time.After(patience):
		t.Fatal("the database is back, and the server isn't built")
	}
	s.awaitJudged()
	if status, text := s.getText("/readyz"); status != http.StatusOK {
		t.Errorf("/readyz: HTTP %d: %s", status, text)
	}
}

// TestDatabaseStaysAway ends a server that waits when it is told to.
func TestDatabaseStaysAway(t *testing.T) {
	s := newHarness(t, harnessOptions{store: "postgres://liftlock@" + freeAddress(t) + "/liftlock?sslmode=disable"})
	o := s.serverOptions(zapcore.NewNopCore())
	o.Config.Listen = freeAddress(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := server.New(ctx, o)
		done <- err
	}()
	s.awaitNotReady(o.Config.Listen)
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("it doesn't end")
	}
	// A process that another test was just starting may hold the socket until its exec.
	s.waitFor("its address is free again", func() (bool, string) {
		l, err := net.Listen("tcp", o.Config.Listen)
		if err != nil {
			return false, err.Error()
		}
		return true, fmt.Sprint(l.Close())
	})
}
