package facts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
)

// TestClosedPulls follows what is known of pull requests that were closed: replaced,
// refused, taken back, with their commits and without them.
func TestClosedPulls(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	w.promote("1.1.0")
	w.soak("web")
	openNext := func(tag string) int {
		t.Helper()
		w.release("ada", "dev", tag, "web")
		w.soak("web")
		ev, d := w.evaluate("web", false)
		w.record(ev, d)
		ev, d = w.evaluate("web", false)
		return w.openPromotion(ev, d)
	}
	closed := func(number int, login, branch string) {
		t.Helper()
		w.wait(time.Minute)
		w.must(w.forge.Close(storyRepo, number, login))
		w.refreshPull(number)
		if branch != "" {
			w.must(w.forge.Push(storyRepo, "ada", branch, "", true))
			w.fetch()
		}
	}
	branchName := promotion.Branch("shop", "qa", "web")
	replaced := openNext("1.2.0")
	w.must(w.forge.SetLabels(storyRepo, replaced, "ada", promotion.LabelOurs, promotion.LabelSuperseded))
	w.markClosed(replaced)
	closed(replaced, storyBot, branchName)
	refused := openNext("1.3.0")
	w.lookAtUnit("the third is open")
	closed(refused, "grace", branchName)
	w.lookAtUnit("one was replaced, and one refused")
	w.unhealthy["web-qa"] = []verification.Resource{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Degraded"}}
	w.becomes("web-qa", func(app *verification.App) { app.Health = "Degraded" })
	w.command("web", store.PendingCommand{Environment: "qa", Verb: "revert", By: "grace", Source: "comment"})
	ev, d := w.evaluate("web", false)
	revert := w.openRevert(ev, d)
	ev, _ = w.lookAtUnit("a revert is open")
	open := ev.OpenPulls[revert]
	edits, err := w.o.ComposeRevertOnto(w.ctx(), ev, open, w.head("main"))
	w.must(err)
	if len(edits) != 1 || edits[0].File != overlayFile("web", "qa") || string(edits[0].After) != overlayText("web", "1.0.0") {
		t.Errorf("composed anew it is %+v", edits)
	}
	closed(revert, "grace", open.PR.Branch)
	w.lookAtUnit("the revert was refused")
	w.startProcess()
	w.lookAtUnit("another process")
	w.startProcess()
	w.wait(2 * time.Hour)
	w.lookAtUnit("another process, later: nothing more can come")
	w.startProcess()
	w.lookAtUnit("it is settled")

	w.repo.Mirror = git.OpenMemory(w.remote, git.MemoryOptions{Author: w.forge.Ident(storyBot), Now: func() time.Time { return w.now }})
	w.fetch()
	w.must(w.forge.EditBody(storyRepo, refused, storyBot, "Somebody's words. "+branch.Marker{Kind: promotion.KindPromotion, Release: ev.Components[0].Env("dev").Release.Value.ID}.String()))
	w.restart()
	w.lookAtUnit("the store is lost, and the closed heads with the mirror")
	w.end()
}

// markClosed writes into a pull request's body that it is Liftlock that closes it.
func (sto *story) markClosed(number int) {
	sto.t.Helper()
	pr, err := sto.repo.Forge.PullRequest(sto.ctx(), storyRepo, number)
	sto.must(err)
	sto.must(sto.forge.EditBody(storyRepo, number, storyBot, sto.repo.Marks.MarkClosed(sto.repo.ID, pr, sto.now, pr.Body)))
}

// TestStaleMergeability doesn't believe that a head conflicts which was composed on the
// newest commit: it has the repository fetched, and the forge asked again.
func TestStaleMergeability(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	w.evaluate("web", false)
	w.release("ada", "dev", "1.1.0", "web")
	w.soak("web")
	ev, d := w.evaluate("web", false)
	n := w.openPromotion(ev, d)
	behind := w.repo.Mirror
	fetchRequested := func(ev *Evaluation) bool {
		return slices.Contains(ev.Components[0].FetchRequests[w.repo.ID], fmt.Sprintf("what keeps #%d from merging at %s", n, ev.OpenPulls[n].Head))
	}
	w.evaluate("web", false)
	head := w.head("main")
	who := w.forge.Ident("linus")
	sha, err := w.remote.Write(w.ctx(), git.CommitSpec{Message: "By hand", When: w.now, Author: &who, Committer: &who, Parents: []string{head}, Base: head,
		Files: []git.FileWrite{{Path: overlayFile("web", "qa"), Content: []byte(overlayText("web", "1.0.9"))}}})
	w.must(err)
	w.wait(time.Second)
	w.must(w.forge.Push(storyRepo, "linus", "main", sha, false))
	w.repo.Mirror = behind // and no process fetches
	w.refreshPull(n)
	ev, _ = w.evaluate("web", false)
	p := ev.OpenPulls[n]
	if p.Stale || p.Mergeable != promotion.MergeUnknown || !fetchRequested(ev) {
		t.Errorf("it is %+v, and %q is to be fetched", p.Pull, ev.Components[0].FetchRequests)
	}
	if !p.UncomputedSince.Equal(w.now) {
		t.Errorf("the forge computes since %s", p.UncomputedSince)
	}
	since := w.now
	w.wait(time.Second)
	ev, _ = w.evaluate("web", false)
	if p = ev.OpenPulls[n]; p.Mergeable != promotion.MergeUnknown || !p.UncomputedSince.Equal(since) {
		t.Errorf("a second later: %+v", p.Pull)
	}
	w.fetch()
	ev, _ = w.evaluate("web", false)
	if p = ev.OpenPulls[n]; !p.Stale || p.Mergeable != promotion.MergeDirty || !p.UncomputedSince.IsZero() || fetchRequested(ev) {
		t.Errorf("when it was fetched: %+v, %q", p.Pull, ev.Components[0].FetchRequests)
	}
}

// TestHeadIsFetched fetches the head of a pull request of ours that the mirror doesn't have,
// and has the run tried again where it isn't there yet.
func TestHeadIsFetched(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	w.evaluate("web", false)
	w.release("ada", "dev", "1.1.0", "web")
	w.soak("web")
	ev, d := w.evaluate("web", false)
	n := w.openPromotion(ev, d)
	head := w.refreshPull(n).Head
	mirror := git.OpenMemory(w.remote, git.MemoryOptions{Author: w.forge.Ident(storyBot), Now: func() time.Time { return w.now }})
	w.repo.Mirror = mirror
	w.must(w.o.ensureCommit(w.ctx(), w.repo, head))
	if ok, err := mirror.Has(w.ctx(), head); !ok || err != nil {
		t.Errorf("the head is not there: %v", err)
	}
	if err := w.o.ensureCommit(w.ctx(), w.repo, "1111111111111111111111111111111111111111"); !forge.IsRetryable(err) {
		t.Errorf("a commit that nobody knows: %v", err)
	}
}

// TestDetailOfAnothersPull has a run start again where what it takes for an open pull request of
// ours is somebody else's by now.
func TestDetailOfAnothersPull(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	head := w.commitTo("ada", "topic", w.head("main"), "Topic", map[string]string{"x": "x"})
	n, err := w.forge.OpenPull(storyRepo, "ada", "topic", "main", "Topic", "")
	w.must(err)
	known := &stored.Pull{PR: forge.PullRequest{Number: n, State: forge.Open, Head: head}}
	if d, _, err := w.o.PullCache.readDetail(w.ctx(), w.repo, known, false); !errors.Is(err, forge.ErrConflict) || d != nil {
		t.Errorf("it is %+v, %v", d, err)
	}
}

// TestSquashedIsSettled settles at once a squashed pull request, whose head is gone with its
// branch. The landed commit says which release it was, so that no look has to work that out again.
func TestSquashedIsSettled(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	w.evaluate("web", false)
	w.release("ada", "dev", "1.1.0", "web")
	w.soak("web")
	ev, d := w.evaluate("web", false)
	n := w.openPromotion(ev, d)
	w.wait(time.Minute)
	_, err := w.forge.MergeByHand(storyRepo, n, "grace", "squash")
	w.must(err)
	w.must(w.forge.Push(storyRepo, "grace", promotion.Branch("shop", "qa", "web"), "", true))
	w.repo.Mirror = git.OpenMemory(w.remote, git.MemoryOptions{Author: w.forge.Ident(storyBot), Now: func() time.Time { return w.now }})
	w.fetch()
	w.refreshPull(n)
	w.startProcess()
	ev, d = w.evaluate("web", false)
	w.storeComponent(ev.Components[0], &d.Components[0], nil, nil)
	left, err := w.store.UnsettledPulls(w.ctx(), w.repo.ID, "shop", store.PullsByRules{Component: "web", Rules: ev.rulesOf("web")})
	w.must(err)
	if len(left) > 0 {
		t.Errorf("#%d isn't settled", left[0].Number)
	}
	if ev, _ = w.evaluate("web", false); len(ev.Components[0].Env("qa").PastPulls) != 1 || ev.Components[0].Env("qa").PastPulls[0].Release != ev.Components[0].Env("qa").Release.Value.ID {
		t.Errorf("known are %+v", ev.Components[0].Env("qa").PastPulls)
	}
}

// TestPipelinesAreKept keeps the pipelines of the snapshot before until their files change.
func TestPipelinesAreKept(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	pipelines := func() *branch.Snapshot {
		t.Helper()
		s, err := w.o.Targets.Snapshot(w.ctx(), w.repo)
		w.must(err)
		return s
	}
	first := pipelines()
	w.release("ada", "dev", "1.1.0", "web")
	second := pipelines()
	if second.Commit == first.Commit || second.Pipelines[0].Pipeline != first.Pipelines[0].Pipeline {
		t.Errorf("after a release at %s it is another pipeline", second.Commit)
	}
	text, err := w.repo.Mirror.Tree(second.Commit).ReadFile(".liftlock.yaml")
	w.must(err)
	w.commit("ada", "Break it", map[string]string{".liftlock.yaml": string(text) + "  oops: 1\n"})
	if broken := pipelines(); broken.PipelineErr == "" {
		t.Error("a broken file isn't noticed")
	}
	w.commit("ada", "Mend it, and more", map[string]string{".liftlock.yaml": strings.Replace(string(text), "name: shop", "name: store", 1)})
	if mended := pipelines(); mended.PipelineErr != "" || mended.Pipelines[0].Name() != "store" {
		t.Errorf("another file gives %s: %s", mended.Pipelines[0].Name(), mended.PipelineErr)
	}
}

// TestClosedHeadIsFetched fetches another account's push over a pull request of ours that was
// closed since, for a process with a new mirror. Where it can't be had, not every look tries.
func TestClosedHeadIsFetched(t *testing.T) {
	for name, components := range map[string][]string{"a component": {"web"}, "a batch": {"api", "web"}} {
		t.Run(name, func(t *testing.T) {
			batch := map[bool]string{true: "  batch: environment\n"}[len(components) > 1]
			w := newStory(t, batch+threeEnvs, []string{"dev", "qa", "prod"}, components...)
			n, branch, head := openToQA(w)
			pushed := w.commitTo("mallory", "elsewhere", head, "On top", map[string]string{overlayFile("web", "qa"): overlayText("web", "6.6.6")})
			w.must(w.forge.Push(storyRepo, "mallory", "elsewhere", "", true))
			w.pushOver(n, branch, pushed)
			there, _ := w.evaluate("web", false)
			want := w.o.Releases.ReleaseIDAt(w.repo, pushed, there.Pipeline, there.Components[len(components)-1].Unit.Envs["qa"])
			w.must(w.forge.EditBody(storyRepo, n, "mallory", "Somebody's words"))
			w.wait(time.Minute)
			w.must(w.forge.Close(storyRepo, n, "grace"))
			w.must(w.forge.Push(storyRepo, "grace", branch, "", true))
			ref := w.refreshPull(n).Ref
			w.repo.Mirror = w.openMirror()
			w.fetch()
			w.restart()
			refused := func() string {
				t.Helper()
				ev, _ := w.evaluate("web", false)
				for _, p := range ev.Components[len(components)-1].Env("qa").PastPulls {
					if p.Number == n {
						return p.Release
					}
				}
				return ""
			}
			w.remote.SetRef(ref, "")
			if got := refused(); got != "" {
				t.Errorf("where its head can't be had it is of %q", got)
			}
			w.remote.SetRef(ref, pushed)
			if got := refused(); got != "" {
				t.Errorf("right after that it is of %q: it was tried again at once", got)
			}
			w.wait(headTriedAfter)
			if got := refused(); got != want || want == "" {
				t.Errorf("it is of %q, want %q", got, want)
			}
		})
	}
}
