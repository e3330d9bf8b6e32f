package story_test

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/liftlock/liftlock/internal/world/emulator/story"
	"github.com/liftlock/liftlock/internal/world/storetest"
)

// stoppedRun is a repository with two replicas, of which one stands still right before it merges.
type stoppedRun struct {
	*replicaRun
	repository *replicatedRepository
	points     string // the file with what the first replica reached
	pull       int
}

// TestReplicaStoppedBeforeItMerges has a replica stand still between its last look and the merge,
// until its lease is over and another replica has taken a hold. It doesn't merge when it goes on.
func TestReplicaStoppedBeforeItMerges(t *testing.T) {
	skipUnderRace(t)
	all := replicatedRepositories()
	i := slices.IndexFunc(all, func(f *replicatedRepository) bool { return f.name == "acme/automatic" })
	all[i].components = all[i].components[:1]
	r := &stoppedRun{replicaRun: newReplicaRun(t, *seed, all[i:i+1]), repository: all[i], pull: 1}
	r.points = filepath.Join(r.dir, "points")
	merge := fmt.Sprintf("forge merge #%d#1 ", r.pull)
	first := r.start("first", stopAtVariable+"="+merge+"before", pointsVariable+"="+r.points)
	r.await(r.everythingSeen)
	if _, err := r.forge.LandAs(r.repository.name, story.Author, story.Branch, "Release",
		map[string]string{replicatedOverlay(r.repository.components[0].name, "dev"): replicatedKustomization(r.repository.components[0].name, "1.1.0")}); err != nil {
		t.Fatal(err)
	}
	r.await(r.reached(merge + "before"))
	claims := r.mergeClaims()
	hold, err := r.forge.Comment(r.repository.name, r.pull, story.FirstApprover, "/liftlock hold")
	if err != nil {
		t.Fatal(err)
	}
	r.start("second")
	r.await(func() error {
		if r.mergeClaims() == claims {
			return errors.New("nobody else has the merges' key")
		}
		return r.served(hold)
	})
	if err := first.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	r.await(r.reached(merge + "after"))
	if r.isMerged() {
		t.Fatal("it was merged past the lease and a hold")
	}
	unhold, err := r.forge.Comment(r.repository.name, r.pull, story.FirstApprover, "/liftlock unhold")
	if err != nil {
		t.Fatal(err)
	}
	r.await(func() error { return r.served(unhold) })
	r.await(func() error {
		if !r.isMerged() {
			return errors.New("it isn't merged once the hold is lifted")
		}
		return nil
	})
}

// start starts a replica with more in its environment.
func (s *stoppedRun) start(name string, environ ...string) *replica {
	s.t.Helper()
	one, err := s.newReplica(name)
	if err != nil {
		s.t.Fatal(err)
	}
	usual := one.environ
	one.environ = func() []string { return append(usual(), environ...) }
	s.relay.servers = append(s.relay.servers, one.url)
	s.replicas = append(s.replicas, one)
	go one.keepRunning()
	return one
}

// everythingSeen says why the component wasn't evaluated yet.
func (s *stoppedRun) everythingSeen() error {
	answer, err := http.Get(s.replicas[0].url + "/readyz")
	if err != nil {
		return err
	}
	if _ = answer.Body.Close(); answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the first replica isn't ready: %s", answer.Status)
	}
	for _, k := range storetest.PostgresKeys(s.t, s.database.address()) {
		if strings.HasPrefix(k.Name, "unit:") && k.Claims > 0 && !k.Running {
			return nil
		}
	}
	return errors.New("the component wasn't looked at")
}

// reached says why a point wasn't reached yet.
func (s *stoppedRun) reached(point string) func() error {
	return func() error {
		if slices.ContainsFunc(readReachedPoints(s.t, s.points), func(p reachedPoint) bool { return p.name == point }) {
			return nil
		}
		return fmt.Errorf("%q was not reached", point)
	}
}

// mergeClaims is how often the key of the repository's merges was claims.
func (s *stoppedRun) mergeClaims() (claims int64) {
	for _, k := range storetest.PostgresKeys(s.t, s.database.address()) {
		if strings.HasPrefix(k.Name, "merge:") {
			claims = int64(k.Claims)
		}
	}
	return claims
}

// served says why a command isn't acknowledged yet.
func (s *stoppedRun) served(comment int64) error {
	p, err := s.forge.Pull(s.repository.name, s.pull)
	if err != nil {
		return err
	}
	for _, c := range p.Comments {
		if c.ID == comment && len(c.Reactions) > 0 {
			return nil
		}
	}
	return fmt.Errorf("the comment %d is not acknowledged", comment)
}

func (s *stoppedRun) isMerged() bool {
	p, err := s.forge.Pull(s.repository.name, s.pull)
	if err != nil {
		s.t.Error(err)
	}
	return p.Merged
}
