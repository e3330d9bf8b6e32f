package controller

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
)

// settingsForge is a forge that says of its repository what a test does.
type settingsForge struct {
	forge.Forge
	forge.Inspector // of which only InspectRepository is called

	archived bool
	number   int64
	err      error // instead of either
	reads    int   // how often
	onRead   func()
}

// InspectRepository implements forge.Inspector.
func (s *settingsForge) InspectRepository(context.Context, forge.Repo) (*forge.RepositorySettings, error) {
	if s.reads++; s.onRead != nil {
		s.onRead()
	}
	return &forge.RepositorySettings{Archived: s.archived}, s.err
}

// RepositoryNumber implements forge.RepositoryNumberer.
func (s *settingsForge) RepositoryNumber(context.Context, forge.Repo) (int64, error) {
	s.reads++
	return s.number, s.err
}

// newSettingsFixture is one of whose repository a test says what the forge says.
func newSettingsFixture(t *testing.T) (*fixture, *settingsForge) {
	t.Helper()
	w := newFixture(t, "", manualQA, "api", "web")
	f := &settingsForge{Forge: w.repo.Forge}
	w.repo.Forge = f
	w.dropDue()
	return w, f
}

// rests runs a key, of which nothing may be done, and holds when it is to run again.
func (f *fixture) rests(k wake.Key) {
	f.t.Helper()
	calls := f.calls.Load()
	next, err := f.runKey(f.t.Context(), k.String())
	if err != nil || !next.Equal(f.clock.Now().Add(restingDelay)) || f.calls.Load() != calls {
		f.t.Errorf("%s runs again after %s, with %d calls and the error %v", k, next.Sub(f.clock.Now()), f.calls.Load()-calls, err)
	}
}

// TestAnArchivedRepositoryRests holds that nothing is done in an archived repository, and no run of
// it fails. That ends when a sweep or a push finds that it isn't archived any more. Then all of its
// units are evaluated.
func TestAnArchivedRepositoryRests(t *testing.T) {
	w, f := newSettingsFixture(t)
	sweep, unit := wake.ForSweep(w.repo.ID), wake.ForUnit(w.unit("web"))
	if rest := w.ArchivedRepositories(); len(rest) != 0 {
		t.Errorf("before anything was refused %v rest", rest)
	}
	f.archived = true
	w.fail("", forge.ErrForbidden)
	next, err := w.runKey(t.Context(), sweep.String())
	if err != nil || !next.Equal(w.clock.Now().Add(restingDelay)) {
		t.Errorf("what was refused because of that runs again after %s with %v", next.Sub(w.clock.Now()), err)
	}
	since := map[string]time.Time{w.repo.ID: w.clock.Now()}
	w.clock.Step(time.Minute)
	reads := f.reads
	for _, k := range []wake.Key{unit, wake.ForPull(w.repo.ID, 1), wake.ForMerge(w.repo.ID), wake.ForHook(w.repo.ID)} {
		w.rests(k)
	}
	if f.reads != reads {
		t.Error("every key reads whether it is archived")
	}
	w.rests(sweep)
	w.rests(wake.ForRepository(w.repo.ID))
	f.archived, f.err = false, errors.New("no answer")
	w.rests(sweep)
	if f.reads != reads+3 {
		t.Errorf("it was read %d times", f.reads-reads)
	}
	if diff := cmp.Diff(since, w.ArchivedRepositories()); diff != "" {
		t.Errorf("what rests (-want +got):\n%s", diff)
	}
	if due := w.takeDue(); len(due) != 0 {
		t.Errorf("while it rests it wakes %q", due)
	}
	f.err = nil
	w.failNothing()
	w.injected.Once = map[string]bool{} // whatever fails, the units are woken
	w.must(w.run(sweep))
	if rest := w.ArchivedRepositories(); len(rest) != 0 {
		t.Errorf("when it is no longer archived %v rest", rest)
	}
	if due := w.takeDue(); !slices.Contains(due, unit.String()) || !slices.Contains(due, wake.ForUnit(w.unit("api")).String()) {
		t.Errorf("then it wakes %q", due)
	}
}

// TestOtherRefusalsFailTheRun holds that a run that was refused for another reason fails with that.
// Whether the repository is archived is read once a minute at the most.
func TestOtherRefusalsFailTheRun(t *testing.T) {
	w, f := newSettingsFixture(t)
	w.fail("", forge.ErrForbidden)
	refused := func(after time.Duration, wantReads int) {
		t.Helper()
		w.clock.Step(after)
		if _, err := w.runKey(t.Context(), wake.ForSweep(w.repo.ID).String()); !errors.Is(err, forge.ErrForbidden) {
			t.Errorf("it ended with %v", err)
		}
		if f.reads != wantReads {
			t.Errorf("it was read %d times, not %d", f.reads, wantReads)
		}
	}
	refused(0, 1)
	refused(restCheckInterval-time.Second, 1)
	f.archived, f.err = true, errors.New("no answer")
	refused(time.Second, 2)
	f.err = nil
	w.clock.Step(restCheckInterval)
	f.onRead = func() { t.Error("it is read though another run has met it") }
	rest := func(rests bool) {
		t.Helper()
		_, err := w.setRest(t.Context(), w.repo, archivedSince, rests)
		w.must(err)
	}
	rest(true)
	if found, err := w.findArchived(t.Context(), w.repo); err != nil || !found {
		t.Errorf("another run has met it, and this one doesn't rest: %v", err)
	}
	rest(false)
	w.fail("", forge.ErrRetryable)
	if _, err := w.runKey(t.Context(), wake.ForSweep(w.repo.ID).String()); !errors.Is(err, forge.ErrRetryable) {
		t.Errorf("a forge that is away ended it with %v", err)
	}
	w.fail("", forge.ErrForbidden)
	w.repo.Forge = f.Forge // which can't say
	if _, err := w.runKey(t.Context(), wake.ForSweep(w.repo.ID).String()); !errors.Is(err, forge.ErrForbidden) {
		t.Errorf("where nobody can say it ended with %v", err)
	}
}

// TestAReplacedRepositoryRests holds that nothing is done while another repository has the name of
// a managed one. Sweeps find the end of that, and then the repository is evaluated again.
func TestAReplacedRepositoryRests(t *testing.T) {
	w, f := newSettingsFixture(t)
	sweep, repository, unit := wake.ForSweep(w.repo.ID), wake.ForRepository(w.repo.ID), wake.ForUnit(w.unit("web"))
	reads := func(want int) {
		t.Helper()
		if f.reads != want {
			t.Errorf("its number was read %d times, not %d", f.reads, want)
		}
		f.reads = 0
	}
	w.must(w.run(sweep))
	reads(0) // its own isn't known
	w.repo.Number, f.number = 7, 7
	w.must(w.run(sweep))
	reads(1)
	w.dropDue()
	w.must(w.run(unit))
	w.must(w.run(repository))
	reads(0)
	if rest, due := w.ReplacedRepositories(), w.takeDue(); len(rest) != 0 || len(due) != 0 {
		t.Errorf("with its own number %v rest, and due are %q", rest, due)
	}
	f.number, f.err = 8, errors.New("no answer")
	w.must(w.run(sweep)) // as it was
	reads(1)
	f.err = nil
	w.rests(sweep)
	since := map[string]time.Time{w.repo.ID: w.clock.Now()}
	w.clock.Step(time.Minute)
	reads(1)
	w.rests(unit)
	w.rests(wake.ForPull(w.repo.ID, 1))
	reads(0)
	w.rests(repository)
	f.number, f.err = 7, errors.New("no answer")
	w.rests(repository)
	reads(2)
	if diff := cmp.Diff(since, w.ReplacedRepositories()); diff != "" {
		t.Errorf("what rests (-want +got):\n%s", diff)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.runKey(over, repository.String()); !errors.Is(err, context.Canceled) {
		t.Errorf("with a process that ends it ends with %v", err)
	}
	f.err = nil
	w.dropDue()
	w.injected.Once = map[string]bool{} // whatever fails, the units are woken
	w.must(w.run(repository))
	if rest := w.ReplacedRepositories(); len(rest) != 0 {
		t.Errorf("with its number again %v rest", rest)
	}
	if due := w.takeDue(); !slices.Contains(due, unit.String()) || !slices.Contains(due, wake.ForUnit(w.unit("api")).String()) {
		t.Errorf("then it wakes %q", due)
	}
}

// TestAllProcessesRest holds that one process's finding about a repository holds for all. None
// writes into one that is replaced, and any process runs the keys that are woken when one is no
// longer archived.
func TestAllProcessesRest(t *testing.T) {
	one, f := newSettingsFixture(t)
	one.must(one.run(wake.ForUnit(one.unit("web"))))
	two := &fixture{t: t, forge: one.forge, newProcess: one.newProcess, clock: one.clock, health: map[string]string{}}
	two.addProcess(one.opts.Store, "somebody else")
	two.must(two.run(wake.ForUnit(two.unit("web"))))
	f.number = 7
	for _, w := range []*fixture{one, two} {
		w.repo.Forge, w.repo.Number = f, 7
	}
	unit := wake.ForUnit(one.unit("web"))
	f.number = 8
	one.rests(wake.ForSweep(one.repo.ID))
	two.rests(unit)
	one.release("2.0.0", "web")
	two.rests(unit)
	if n := len(one.pulls()); n != 0 {
		t.Errorf("%d pull requests are open in another repository", n)
	}
	f.number = 7
	two.must(two.run(wake.ForSweep(two.repo.ID)))
	if rest := two.ReplacedRepositories(); len(rest) != 0 {
		t.Errorf("with its number again %v rest", rest)
	}

	_, err := one.setRest(t.Context(), one.repo, archivedSince, true)
	one.must(err)
	two.rests(unit)
	one.dropDue()
	one.must(one.run(wake.ForSweep(one.repo.ID)))
	if due := one.takeDue(); !slices.Contains(due, unit.String()) {
		t.Errorf("when it is no longer archived it wakes %q", due)
	}
	if next, err := two.runKey(t.Context(), unit.String()); err != nil || next.Equal(two.clock.Now().Add(restingDelay)) {
		t.Errorf("and the other process still rests, until %s: %v", next, err)
	}
}
