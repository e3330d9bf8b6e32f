package facts

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
)

// BenchmarkPromotion is one promotion composed, committed and pushed: by
// Liftlock, by git alone with the edit ready made, and by a script with a
// shallow clone.
func BenchmarkPromotion(b *testing.B) {
	w := newBenchRepo(b)
	name, _, file := w.changedComponent()
	want := func(bare, branch string, i int) {
		b.Helper()
		if got := w.git(bare, nil, "show", branch+":"+file) + "\n"; got != benchOverlay(name, "qa", fmt.Sprintf("2.0.%d", i)) {
			b.Fatalf("pushed was\n%s", got)
		}
		if got := w.git(bare, nil, "diff", "--name-only", "main", branch); got != file {
			b.Fatalf("changed was %s", got)
		}
	}
	b.Run("git", func(b *testing.B) {
		w.b = b
		bare := w.cloneOrigin()
		mirror := filepath.Join(b.TempDir(), "mirror.git")
		w.git(b.TempDir(), nil, "clone", "-q", "--bare", "--no-local", "file://"+bare, mirror)
		i, watch := 0, newStopwatch(b)
		for b.Loop() {
			i++
			branch := fmt.Sprintf("promote/%d", i)
			w.git(mirror, w.importStream(branch, w.head, file, benchOverlay(name, "qa", fmt.Sprintf("2.0.%d", i))), "fast-import", "--quiet")
			w.git(mirror, nil, "push", "-q", "file://"+bare, "refs/heads/"+branch+":refs/heads/"+branch)
		}
		watch.report()
		want(bare, fmt.Sprintf("promote/%d", i), i)
	})
	b.Run("liftlock", func(b *testing.B) {
		w.b = b
		bare := w.cloneOrigin()
		r := w.newRepository(bare)
		o := w.newGatherer(r)
		s := w.takeSnapshot(o, r)
		p := s.Pipeline("shop")
		unit := p.Units[name]
		i, watch := 0, newStopwatch(b)
		for b.Loop() {
			i++
			branch := fmt.Sprintf("promote/%d", i)
			rel, err := o.Releases.ReadCurrent(r, s.Commit, p, unit.Envs["dev"])
			if err != nil {
				b.Fatal(err)
			}
			rel = benchRelease(rel, name, fmt.Sprintf("2.0.%d", i))
			edits, err := fieldedit.Compose(r.Mirror.Tree(s.Commit), unit.Envs["qa"].Overlay(p.Pipeline), rel, effects.WholeFileReader(b.Context(), r.Mirror, s.Commit))
			if err != nil {
				b.Fatal(err)
			}
			head, err := effects.CommitEdits(b.Context(), r.Mirror, s.Commit, edits, "Promote\n")
			if err != nil {
				b.Fatal(err)
			}
			if err := r.Mirror.Push(b.Context(), git.PushSpec{Branch: branch, New: head}); err != nil {
				b.Fatal(err)
			}
		}
		_ = r.Mirror.Close() // so that what its helpers used is counted
		watch.report()
		want(bare, fmt.Sprintf("promote/%d", i), i)
	})
	b.Run("clone", func(b *testing.B) {
		w.b = b
		bare := w.cloneOrigin()
		i, watch := 0, newStopwatch(b)
		for b.Loop() {
			i++
			branch := fmt.Sprintf("promote/%d", i)
			work := filepath.Join(b.TempDir(), fmt.Sprint("work", i))
			w.git(b.TempDir(), nil, "clone", "-q", "--depth=1", "--no-tags", "file://"+bare, work)
			if err := os.WriteFile(filepath.Join(work, file), []byte(benchOverlay(name, "qa", fmt.Sprintf("2.0.%d", i))), 0o644); err != nil {
				b.Fatal(err)
			}
			w.git(work, nil, "commit", "-q", "-a", "-m", "Promote")
			w.git(work, nil, "push", "-q", "origin", "HEAD:refs/heads/"+branch)
			watch.stop()
			if err := os.RemoveAll(work); err != nil {
				b.Fatal(err)
			}
			watch.start()
		}
		watch.report()
		want(bare, fmt.Sprintf("promote/%d", i), i)
	})
}

// benchRelease is a release with another tag of the component's image.
func benchRelease(rel fieldedit.Release, component, tag string) fieldedit.Release {
	out := fieldedit.Release{Fields: append([]fieldedit.Field(nil), rel.Fields...)}
	for i := range out.Fields {
		if out.Fields[i].Path == "images[registry.example/"+component+"].newTag" {
			out.Fields[i].Value = tag
		}
	}
	return out
}

// BenchmarkReleases is reading every release of the tracked branch. It reads from a mirror that was
// just opened, as git gives the files' bytes and no more, and after a push that changed one of
// them.
func BenchmarkReleases(b *testing.B) {
	w := newBenchRepo(b)
	first := w.newRepository(w.bare)
	o := w.newGatherer(first)
	s := w.takeSnapshot(o, first)
	p := s.Pipeline("shop")
	b.Run("git", func(b *testing.B) {
		w.b = b
		watch := newStopwatch(b)
		for b.Loop() {
			w.readWithGit()
		}
		watch.report()
	})
	b.Run("liftlock", func(b *testing.B) {
		w.b = b
		dir := filepath.Join(b.TempDir(), "mirror.git")
		r := w.openRepository(w.bare, dir)
		if _, err := r.Mirror.Fetch(b.Context()); err != nil {
			b.Fatal(err)
		}
		watch := newStopwatch(b)
		for b.Loop() {
			watch.stop()
			r := w.openRepository(w.bare, dir)
			o, unread := w.newGatherer(r), *p
			watch.start()
			if err := o.Releases.ReadAhead(b.Context(), &branch.Snapshot{Repo: r, Commit: s.Commit}, &unread, nil); err != nil {
				b.Fatal(err)
			}
			w.readAll(o, r, s, &unread)
			_ = r.Mirror.Close()
		}
		watch.report()
	})
	b.Run("after a push", func(b *testing.B) {
		w.b = b
		last := s
		name, _, _ := w.changedComponent()
		watch := newStopwatch(b)
		for b.Loop() {
			watch.stop()
			tag := fmt.Sprintf("3.0.%d", w.count)
			w.push(tag)
			if _, err := first.Mirror.Fetch(b.Context()); err != nil {
				b.Fatal(err)
			}
			watch.start()
			now := w.takeSnapshot(o, first)
			if now == last {
				b.Fatal("the push was not seen")
			}
			got := w.readAll(o, first, now, now.Pipeline("shop"))
			watch.stop()
			if text := got[name+"|dev"].String(); !strings.Contains(text, tag) {
				b.Fatalf("read was %s, pushed %s", text, tag)
			}
			last = now
			watch.start()
		}
		watch.report()
	})
}

// readWithGit reads the overlays' bytes with git alone.
func (b *benchRepo) readWithGit() {
	b.b.Helper()
	var ids bytes.Buffer
	n := 0
	for line := range strings.SplitSeq(strings.TrimSuffix(b.git(b.bare, nil, "ls-tree", "-r", "-z", b.head), "\x00"), "\x00") {
		meta, name, _ := strings.Cut(line, "\t")
		if strings.HasPrefix(name, "apps/") && strings.Contains(name, "/overlays/") {
			ids.WriteString(strings.Fields(meta)[2] + "\n")
			n++
		}
	}
	if n != *benchComponents*len(benchEnvs) {
		b.b.Fatalf("%d overlays were listed", n)
	}
	cmd := exec.Command("git", "cat-file", "--batch", "--buffer")
	cmd.Dir, cmd.Stdin = b.bare, &ids
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.b.Fatal(err)
	}
	in := bufio.NewReaderSize(out, 256<<10)
	for range n {
		head, err := in.ReadString('\n')
		if err != nil {
			b.b.Fatal(err)
		}
		var id, kind string
		var size int
		if _, err := fmt.Sscan(head, &id, &kind, &size); err != nil || kind != "blob" {
			b.b.Fatal(head, err)
		}
		if _, err := io.ReadFull(in, make([]byte, size+1)); err != nil {
			b.b.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		b.b.Fatal(err)
	}
}

// readAll reads every release, by component and environment.
func (b *benchRepo) readAll(o *Gatherer, r *branch.Repository, s *branch.Snapshot, p *branch.ResolvedPipeline) map[string]fieldedit.Release {
	b.b.Helper()
	out := make(map[string]fieldedit.Release, len(p.Units)*len(benchEnvs))
	for component, u := range p.Units {
		for env, at := range u.Envs {
			rel, err := o.Releases.ReadCurrent(r, s.Commit, p, at)
			if err != nil || len(rel.Fields) != 2 {
				b.b.Fatal(component, env, rel, err)
			}
			out[component+"|"+env] = rel
		}
	}
	return out
}

// emptyForge has no pull requests.
type emptyForge struct{ forge.Forge }

func (emptyForge) PullRequests(context.Context, forge.Repo, time.Time) ([]forge.PullRequest, error) {
	return nil, nil
}

// healthyArgoCD is an Argo CD in which all Applications are well.
type healthyArgoCD struct {
	fakeArgoCD
	apps map[string]verification.App
}

func (h *healthyArgoCD) Get(_, name string) (*verification.App, bool) {
	a, ok := h.apps[name]
	return &a, ok
}

// BenchmarkEvaluations is the work after a push that changed one file: every component is evaluated
// and judged.
func BenchmarkEvaluations(b *testing.B) {
	w := newBenchRepo(b)
	r := w.newRepository(w.bare)
	r.Forge, r.BotLogin = emptyForge{}, "liftlock"
	st, err := store.Open(b.Context(), "sqlite://"+filepath.Join(b.TempDir(), "liftlock.db"), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	hub := &healthyArgoCD{fakeArgoCD: fakeArgoCD{clustersErr: argocd.ErrClustersOff}, apps: map[string]verification.App{}}
	o := New(Options{Store: st, Resolver: appset.New(appset.Options{}), MainArgoCD: "hub", Repos: []*branch.Repository{r}, Now: time.Now, MaxAge: time.Hour,
		ArgoCDs: map[string]branch.ArgoCD{"hub": {Apps: hub, Live: &hub.fakeArgoCD, Namespace: "argocd"}}})
	for _, t := range w.takeSnapshot(o, r).Pipeline("shop").TargetSet.Targets {
		hub.apps[t.Name] = verification.App{ArgoCD: "hub", Name: t.Name, Namespace: "argocd", Health: "Healthy", Revisions: []string{w.head},
			Destination: verification.Destination{Server: t.Server, Namespace: t.DestNS}}
	}
	evaluateAll := func() {
		b.Helper()
		s := w.takeSnapshot(o, r)
		for _, u := range s.AllUnits() {
			c, err := o.Gather(b.Context(), s, u, false)
			if err != nil {
				b.Fatal(err)
			}
			if d := promotion.Decide(c.Facts()).Components[0]; len(d.Envs) != len(benchEnvs) {
				b.Fatal(d)
			}
		}
	}
	evaluateAll() // what landed is found and written down
	watch := newStopwatch(b)
	for b.Loop() {
		watch.stop()
		w.push(fmt.Sprintf("4.0.%d", w.count))
		if _, err := r.Mirror.Fetch(b.Context()); err != nil {
			b.Fatal(err)
		}
		watch.start()
		evaluateAll()
	}
	watch.report()
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(*benchComponents), "µs/component")
}
