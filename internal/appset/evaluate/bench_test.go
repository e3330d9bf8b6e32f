package evaluate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
)

// committed is shop with n components, of two targets each, as a commit of a
// real repository.
func committed(b *testing.B, n int) fs.FS {
	b.Helper()
	dir := b.TempDir()
	for name, f := range shop() {
		for i := range n {
			at := strings.Replace(name, "apps/web/", fmt.Sprintf("apps/c%04d/", i), 1)
			if at == name && i > 0 || strings.HasPrefix(name, "apps/api/") {
				break
			}
			at = filepath.Join(dir, filepath.FromSlash(at))
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, f.Data, 0o644)); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "All"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			b.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	c, err := git.OpenCheckout(b.Context(), dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.Error(err)
		}
	})
	sha, err := c.Resolve(b.Context(), "HEAD")
	if err != nil {
		b.Fatal(err)
	}
	return c.Tree(sha)
}

// BenchmarkEvaluate compares a tree of 1,000 targets in this process with the same in a worker. The
// difference is the worker's price. Most pushes give a resolver that saw the commit before another
// commit with the same files. A worker that lives long would pay for its reply as well.
func BenchmarkEvaluate(b *testing.B) {
	for name, tree := range map[string]fs.FS{"empty": fstest.MapFS{}, "1000": committed(b, 500)} {
		in := shopInput(b)
		in.Manifests = true
		b.Run("inprocess/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := InProcess(b.Context(), appset.New(appset.Options{}), tree, in); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("again/"+name, func(b *testing.B) {
			resolver, commits := appset.New(appset.Options{CacheSize: 1}), 0
			for b.Loop() {
				commits++
				in := in
				in.Revision, in.Changed = fmt.Sprintf("%040d", commits), nil
				if _, err := InProcess(b.Context(), resolver, tree, in); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("reply/"+name, func(b *testing.B) {
			w, err := InProcess(b.Context(), appset.New(appset.Options{}), tree, in)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				var reply workerReply
				raw, err := json.Marshal(newWorkerReply(w, in.Changed))
				if err == nil {
					err = json.Unmarshal(raw, &reply)
				}
				if err == nil {
					_, err = reply.toResolution(&in)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("worker/"+name, func(b *testing.B) {
			r := runner(b, sandbox.Limits{})
			for b.Loop() {
				if _, err := InWorker(b.Context(), r, tree, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
