package store

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/world/storetest"
)

var long = flag.Bool("long", false, "run the long form of tests that look for rare failures")

// childEnv turns the test binary into the process that is killed; its value is
// the database's address.
const childEnv = "LIFTLOCK_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childEnv); dsn != "" {
		fmt.Fprintln(os.Stderr, beKilled(dsn, os.Stdout))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// beKilled accepts deliveries and works on what they wake until it is killed. It
// says "ok KEY" when a delivery is acknowledged, "run KEY" when its key was
// claimed and "done KEY" when the run was finished.
func beKilled(dsn string, out io.Writer) error {
	s, err := Open(ctx, dsn, Options{})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(what, key string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(out, what, key) // one write each: a kill cuts between lines
	}
	fail := make(chan error, 1)
	for g := range 8 {
		go func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("%d/%d/%d", os.Getpid(), g, i)
				if _, err := s.Accept(ctx, Delivery{Forge: "hub", ID: key, ReceivedAt: time.Now(), Keys: []string{key}}); err != nil {
					fail <- err
					return
				}
				say("ok", key)
			}
		}()
	}
	go func() {
		for {
			claims, err := s.Claim(ctx, "child", 3)
			for _, c := range claims {
				say("run", c.Key)
				if err = s.Finish(ctx, "child", c, Outcome{}); err == nil {
					say("done", c.Key)
				}
			}
			if err != nil {
				fail <- err
				return
			}
		}
	}()
	return <-fail
}

// The process is killed at random moments. Every delivery that it acknowledged
// is there, its key is there unless a run has taken it, and a key whose run was
// cut off can be claimed at once.
func TestKilled(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { testKilled(t, onSQLiteAddress(t), 0) })
	t.Run("postgres", func(t *testing.T) { testKilled(t, storetest.PostgresSchema(t), DefaultLease) })
}

// testKilled tells a database whose claims outlive their process by a lease from one
// whose don't.
func testKilled(t *testing.T, dsn string, lease time.Duration) {
	rounds := 10
	if *long {
		rounds = 200
	}
	total, interrupted := 0, 0
	for round := range rounds {
		ok, run, done := killOnce(t, dsn, 1+rand.IntN(200))
		s := mustOpen(t, dsn, Options{})
		if lease > 0 { // as if it had passed
			mustExec(t, s.backend.(*postgresDB).pool, `UPDATE wakes SET lease_until = 1 WHERE owner <> ''`)
		}
		there := map[string]bool{}
		for {
			claims := value(s.Claim(ctx, "parent", 1000))(t)
			if len(claims) == 0 {
				break
			}
			for _, c := range claims {
				there[c.Key] = true
				must(t, s.Finish(ctx, "parent", c, Outcome{}))
			}
		}
		if lease > 0 {
			// The server may still have been at the child's last claim: then the key
			// is held until the lease ends, and not lost.
			held, err := queryAll(ctx, plainSession{db: s.backend.(*postgresDB).pool}, oneColumn[string], `SELECT key FROM wakes WHERE owner <> '' OR due_at < $1`, int64(neverDue))
			must(t, err)
			for _, key := range held {
				there[key] = true
			}
		}
		for key := range ok {
			if value(s.Accept(ctx, Delivery{Forge: "hub", ID: key}))(t) {
				t.Errorf("round %d: the acknowledged delivery %s is lost", round, key)
			}
			if !there[key] && !run[key] {
				t.Errorf("round %d: the acknowledged wake of %s is lost", round, key)
			}
		}
		for key := range run {
			if !done[key] {
				interrupted++
			}
		}
		for key := range done {
			if there[key] {
				t.Errorf("round %d: %s was finished and is due again", round, key)
			}
		}
		total += len(ok)
		must(t, s.Close())
	}
	t.Logf("killed %d times: %d acknowledged deliveries, %d runs cut off", rounds, total, interrupted)
}

// killOnce starts a child, kills it after a number of acknowledgements, and
// returns the keys that it spoke of.
func killOnce(t *testing.T, dsn string, acks int) (ok, run, done map[string]bool) {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+dsn)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	said := map[string]map[string]bool{"ok": {}, "run": {}, "done": {}}
	lines := bufio.NewScanner(out)
	for lines.Scan() { // to the end: what was said before the kill counts
		what, key, _ := strings.Cut(lines.Text(), " ")
		if said[what] == nil {
			t.Fatalf("the child said %q", lines.Text())
		}
		said[what][key] = true
		if len(said["ok"]) == acks && what == "ok" {
			must(t, cmd.Process.Kill())
		}
	}
	must(t, lines.Err())
	err = cmd.Wait()
	if len(said["ok"]) < acks {
		t.Fatalf("the child ended by itself after %d acknowledgements: %v", len(said["ok"]), err)
	}
	return said["ok"], said["run"], said["done"]
}
