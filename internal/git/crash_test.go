package git

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// crasher makes the test binary a process that works on a mirror until it is killed. It fetches,
// writes, pushes and maintains in a loop, and prints a line for each push that arrived.
const crasher = "LIFTLOCK_GITREPO_CRASHER"

func TestMain(m *testing.M) {
	if spec := os.Getenv(crasher); spec != "" {
		dir, url, _ := strings.Cut(spec, "\n")
		if err := crashLoop(dir, url, os.Getenv("DIE_AT")); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func crashLoop(dir, url, dieAt string) error {
	ctx := context.Background()
	die := func(point string) func(string) {
		return func(string) {
			if dieAt == point {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}
	}
	m, err := Open(ctx, Options{Dir: dir, URL: url, Author: Ident{"liftlock", "liftlock@example.com"}, BeforePush: die("before"), AfterPush: die("after")})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		if _, err := m.Fetch(ctx); err != nil {
			return err
		}
		old, _, err := m.Head(ctx, "work")
		if err != nil {
			return err
		}
		s := CommitSpec{Base: old, When: when, Message: "work", Files: []FileWrite{{Path: fmt.Sprintf("f%d", i%7), Content: fmt.Append(nil, old)}}}
		if old != "" {
			s.Parents = []string{old}
		}
		sha, err := m.Write(ctx, s)
		if err != nil {
			return err
		}
		if err := m.Push(ctx, PushSpec{Branch: "work", New: sha, Old: old}); err != nil {
			return err
		}
		fmt.Println("pushed", sha)
		if i%3 == 2 {
			if err := m.Maintain(ctx); err != nil {
				return err
			}
		}
	}
}

// After the process was killed at any moment, the mirror works, knows every
// push that arrived, and is not fetched anew.
func TestKilledAnywhere(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "Base", map[string]string{"a": "1"})
	dir := filepath.Join(t.TempDir(), "mirror")
	random := rand.New(rand.NewPCG(1, 2))
	kills := 12
	if testing.Short() {
		kills = 3
	}
	points := []string{"before", "after"}
	for i := range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crasher+"="+dir+"\n"+o.url())
		if i < len(points) {
			cmd.Env = append(cmd.Env, "DIE_AT="+points[i])
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if i >= len(points) {
			timer := time.AfterFunc(time.Duration(random.IntN(400))*time.Millisecond, func() { _ = cmd.Process.Kill() })
			defer timer.Stop()
		}
		last := lastPush(t, out)
		_ = cmd.Wait() // it was killed

		log, logs := newObservedLogger()
		m := open(t, Options{Dir: dir, URL: o.url(), Log: log})
		if logged(logs, "anew") && last != "" {
			t.Errorf("round %d: the mirror was thrown away: %v", i, logs.All())
		}
		mustFetch(t, m)
		sha, ok, err := m.Head(t.Context(), "work")
		if err != nil {
			t.Fatal(err)
		}
		if last != "" {
			if is, err := m.IsAncestor(t.Context(), last, sha); !ok || !is || err != nil {
				t.Errorf("round %d: push %s is lost: %v %v", i, last, is, err)
			}
		}
		w, err := m.Write(t.Context(), CommitSpec{When: when, Message: fmt.Sprint("round ", i)})
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		if err := m.Push(t.Context(), PushSpec{Branch: fmt.Sprint("round-", i), New: w}); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		git(t, dir, "fsck", "--connectivity-only", "--no-dangling")
	}
}

func lastPush(t *testing.T, out io.Reader) (sha string) {
	t.Helper()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		switch kind, rest, _ := strings.Cut(lines.Text(), " "); kind {
		case "pushed":
			sha = rest
		default:
			t.Errorf("the process says: %s", lines.Text())
		}
	}
	return sha
}
