//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion/cause"
)

const (
	// pollInterval is between two looks, at first.
	pollInterval = 300 * time.Millisecond
	// maxPollInterval is between two looks at what takes long: each costs the forge, or Kubernetes'
	// API, as much as a look of the server that is tested.
	maxPollInterval = time.Second
	// patience is what one step of a story may take: Argo CD's resync, the sync,
	// the times in verify, and a machine that tells all stories at once.
	patience = 4 * time.Minute
)

// scenario is one test's part of the world.
type scenario struct {
	*testing.T
	ctx     context.Context
	cluster *testCluster
	prefix  string // of everything in the cluster
	repo    string // the repository's name in the organisation
	clone   *gitClone
	server  *server
	sets    []string // names of the ApplicationSets to remove
	apps    []string // names of the Applications, for a failure's report
}

// startScenario makes the repository, applies its ApplicationSets, waits until the first
// release runs everywhere, and starts the server. live, when not nil, makes what
// is applied differ from what the repository says.
func startScenario(t *testing.T, w *testCluster, name string, f repoFixture, live func(set string) string) *scenario {
	t.Helper()
	s := newScenario(t, w, name, f)
	s.applySets(f, live)
	s.awaitSettled()
	s.startServer()
	return s
}

func newScenario(t *testing.T, w *testCluster, name string, f repoFixture) *scenario {
	t.Helper()
	s := newEmptyScenario(t, w, name)
	s.must(os.MkdirAll(s.clone.dir, 0o750))
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"remote", "add", "origin", s.clone.url}, {"checkout", "-q", "--orphan", "start"}} {
		s.runGit(args...)
	}
	s.pushFirstCommit("main", "Overlays, ApplicationSets and a pipeline", f.renderFiles(s.prefix, s.clone.url))
	for _, branch := range slices.Sorted(maps.Keys(f.branches)) {
		s.runGit("checkout", "-q", "--orphan", "start-of-"+branch)
		s.runGit("rm", "-r", "-q", "--cached", ".")
		s.runGit("clean", "-f", "-d", "-q")
		s.pushFirstCommit(branch, "An environment", f.branches[branch])
	}
	s.runGit("checkout", "-q", "--force", "start")
	return s
}

// newEmptyScenario is one whose repository has no commit, and which has no clone yet.
func newEmptyScenario(t *testing.T, w *testCluster, name string) *scenario {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	if deadline, ok := t.Deadline(); ok {
		// Leave time to say what went wrong.
		ctx, cancel = context.WithDeadline(context.Background(), deadline.Add(-time.Minute))
	}
	t.Cleanup(cancel)
	s := &scenario{T: t, ctx: ctx, cluster: w, prefix: name + "-" + runID, repo: name}
	dir := filepath.Join(artifacts, name)
	s.must(os.MkdirAll(dir, 0o750))
	s.must(w.createRepository(s.repo))
	s.clone = &gitClone{dir: filepath.Join(dir, "clone"), url: w.giteaURL + "/" + w.org + "/" + s.repo + ".git"}
	srv, err := newServer(w, dir, w.org+"/"+s.repo)
	s.must(err)
	s.server = srv
	t.Cleanup(s.endScenario)
	return s
}

// pushFirstCommit makes a branch's first commit of what is checked out and these files.
func (s *scenario) pushFirstCommit(branch, message string, files map[string]string) {
	for path, content := range files {
		full := filepath.Join(s.clone.dir, filepath.FromSlash(path))
		s.must(os.MkdirAll(filepath.Dir(full), 0o750))
		s.must(os.WriteFile(full, []byte(content), 0o600))
	}
	s.runGit("add", "-A")
	s.runGit("commit", "-q", "-m", message)
	s.runGit("push", "-q", "origin", "HEAD:refs/heads/"+branch)
}

// applySets gives the cluster what the repository says, or what live makes of it.
func (s *scenario) applySets(f repoFixture, live func(string) string) {
	s.Helper()
	for _, name := range slices.Sorted(maps.Keys(f.sets)) {
		set := fillPlaceholders(f.sets[name], s.prefix, s.clone.url)
		if live != nil {
			set = live(set)
		}
		s.must(s.cluster.applySet(s.ctx, set))
	}
	s.sets = []string{s.prefix, s.prefix + "-prod"}
}

// awaitSettled waits until every Application of the story's sets runs what Git says.
func (s *scenario) awaitSettled() {
	s.Helper()
	eventually(s, "the ApplicationSets' Applications are synced and healthy", func() (bool, error) {
		apps, err := s.listApplications()
		if err != nil {
			return false, err
		}
		if len(apps) == 0 {
			return false, errors.New("no Applications yet")
		}
		s.apps = nil
		for _, a := range apps {
			s.apps = append(s.apps, a.name)
			if a.sync != "Synced" || a.health != "Healthy" {
				return false, errors.New(a.String())
			}
		}
		return true, nil
	})
}

// listApplications lists those of the story's sets.
func (s *scenario) listApplications() ([]appState, error) {
	list, err := s.cluster.kube.Resource(applications).Namespace("argocd").List(s.ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []appState
	for i := range list.Items {
		for _, o := range list.Items[i].GetOwnerReferences() {
			if slices.Contains(s.sets, o.Name) {
				out = append(out, parseAppState(&list.Items[i]))
			}
		}
	}
	return out, nil
}

func (s *scenario) startServer() {
	s.Helper()
	s.must(s.server.start(s.ctx))
	// The first look is what decides which releases are the baseline.
	for _, c := range s.listComponents() {
		s.awaitWhy(c, "", "was looked at", func(*api.EnvironmentWhy) error { return nil })
	}
}

// listComponents are the folders in apps/.
func (s *scenario) listComponents() (out []string) {
	entries, err := os.ReadDir(filepath.Join(s.clone.dir, "apps"))
	s.must(err)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func (s *scenario) stopServer() {
	s.Helper()
	s.must(s.server.stop())
}

// endScenario stops the server, says what there was when the story failed, and gives Argo
// CD its peace.
func (s *scenario) endScenario() {
	if s.Failed() {
		s.logState()
	}
	if err := s.server.stop(); err != nil {
		s.Error(err)
	}
	ctx, cancel := cleanupContext()
	defer cancel()
	for _, name := range s.sets {
		if err := s.cluster.deleteSet(ctx, name); err != nil {
			s.Errorf("remove the ApplicationSet %s: %v", name, err)
		}
	}
}

// logState prints what a person would look at first.
func (s *scenario) logState() {
	ctx, cancel := cleanupContext()
	defer cancel()
	s.server.printLogTail(s.T)
	for _, name := range s.apps {
		a, err := s.cluster.getApplication(ctx, name)
		s.Logf("application %s (%v)", a, err)
	}
	for _, c := range s.listComponents() {
		w, err := s.server.getWhy(ctx, c)
		if err != nil {
			s.Logf("why %s: %v", c, err)
			continue
		}
		for i := range w.Environments {
			s.Logf("why %s: %s", c, w.Environments[i].Text)
		}
	}
	pulls, err := s.listPulls(gitea.StateAll)
	if err != nil {
		s.Logf("pull requests: %v", err)
	}
	for _, p := range pulls {
		s.Logf("pull request #%d %s by %s, %s (merged %t), head %.10s: %s\n%s", p.Index, p.Head.Ref, p.Poster.UserName, p.State, p.HasMerged, p.Head.Sha, p.Title, p.Body)
		comments, _, err := s.cluster.accounts[admins].api.ListIssueComments(s.cluster.org, s.repo, p.Index, gitea.ListIssueCommentOptions{})
		if err != nil {
			s.Logf("comments of #%d: %v", p.Index, err)
		}
		for _, c := range comments {
			s.Logf("  #%d, %s: %s", p.Index, c.Poster.UserName, c.Body)
		}
	}
	s.Logf("the story's files are in %s", s.server.dir)
}

func (s *scenario) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scenario) runGit(args ...string) string {
	s.Helper()
	out, err := s.clone.runGit(s.ctx, s.cluster.accounts[dev], args...)
	s.must(err)
	return out
}

// eventually looks until the probe gives an answer without an error; the last
// error is what the failure says.
func eventually[T any](s *scenario, what string, probe func() (T, error)) T {
	s.Helper()
	start, last := time.Now(), error(nil)
	for time.Since(start) < patience && s.ctx.Err() == nil {
		var answer T
		if answer, last = probe(); last == nil {
			s.Logf("%5.1fs  %s", time.Since(start).Seconds(), what)
			return answer
		}
		select {
		case <-s.ctx.Done():
		case <-time.After(min(max(pollInterval, time.Since(start)/10), maxPollInterval)):
		}
	}
	s.Fatalf("not within %s: %s: %v", time.Since(start).Round(time.Second), what, last)
	panic("unreachable")
}

// awaitWhy waits until Liftlock's own account of a component in an environment (empty:
// any) is as the check wants it.
func (s *scenario) awaitWhy(component, environment, what string, check func(*api.EnvironmentWhy) error) *api.EnvironmentWhy {
	s.Helper()
	return eventually(s, fmt.Sprintf("%s in %s: %s", component, environment, what), func() (*api.EnvironmentWhy, error) {
		w, err := s.server.getWhy(s.ctx, component)
		if err != nil {
			return nil, err
		}
		for i := range w.Environments {
			e := &w.Environments[i]
			if environment != "" && e.Environment.Environment != environment {
				continue
			}
			if err := check(e); err != nil {
				return nil, fmt.Errorf("%w; it says: %s", err, e.Text)
			}
			return e, nil
		}
		return nil, fmt.Errorf("it has no environment %q", environment)
	})
}

// awaitState waits until the release in an environment is in the state.
func (s *scenario) awaitState(component, environment, tag, state string) {
	s.Helper()
	s.awaitWhy(component, environment, tag+" is "+state, func(e *api.EnvironmentWhy) error {
		if e.State != state {
			return fmt.Errorf("it is %s", e.State)
		}
		if got := s.readTag(component, environment); got != tag {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
}

// awaitGate waits until a gate of the promotion into an environment gives the outcome.
func (s *scenario) awaitGate(component, environment, gate, outcome string) {
	s.Helper()
	s.awaitWhy(component, environment, "the gate "+gate+" says "+outcome, func(e *api.EnvironmentWhy) error {
		if e.Incoming == nil {
			return errors.New("nothing wants to come in")
		}
		for _, g := range e.Incoming.Gates {
			if g.Gate == gate && g.Outcome == outcome {
				return nil
			}
		}
		return fmt.Errorf("the gates say %+v", e.Incoming.Gates)
	})
}

// awaitReason waits until Liftlock gives a reason with the code for an environment.
func (s *scenario) awaitReason(component, environment string, code cause.Code) {
	s.Helper()
	s.awaitWhy(component, environment, "a reason is "+string(code), func(e *api.EnvironmentWhy) error {
		for _, r := range e.Why {
			if r.Code == code {
				return nil
			}
		}
		return fmt.Errorf("the reasons are %+v", e.Why)
	})
}
