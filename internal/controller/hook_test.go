package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// hookURL is where the forge of these tests would deliver to.
const hookURL = "https://liftlock.example/webhooks/hub"

const wholeRepository = "repo:hub:acme/fleet sweep:hub:acme/fleet"

// newHookFixture is one whose hook is managed, and was made.
func newHookFixture(t *testing.T) *fixture {
	w := newFixture(t, "", manualQA, "web")
	w.manageHook()
	if got := w.hookWakes(); got != wholeRepository {
		t.Fatalf("after the hook was made, due are %q", got)
	}
	return w
}

func (f *fixture) manageHook() {
	f.repo.ForgeType, f.repo.Hook = "github", &forge.Hook{URL: hookURL, Secret: "s"}
}

// hookWakes runs the hook's key, and gives what it wakes.
func (f *fixture) hookWakes() string {
	f.t.Helper()
	f.dropDue()
	f.must(f.run(wake.ForHook(f.repo.ID)))
	return strings.Join(f.takeDue(), " ")
}

// takeDue takes all that is due out of the queue.
func (f *fixture) takeDue() (keys []string) {
	f.t.Helper()
	for _, c := range f.takeClaims() {
		keys = append(keys, c.Key)
	}
	slices.Sort(keys)
	return keys
}

// takeClaims takes all that is due out of the queue, in the order of its claims.
func (f *fixture) takeClaims() []store.Claim {
	f.t.Helper()
	f.clock.Step(time.Second)
	claims, err := f.opts.Store.Claim(f.t.Context(), "others", 1000)
	f.must(err)
	for _, c := range claims {
		f.must(f.opts.Store.Finish(f.t.Context(), "others", c, store.Outcome{}))
	}
	return claims
}

func (f *fixture) missDelivery(id, event, payload string) {
	f.t.Helper()
	f.must(f.forge.(*memoryForge).forge.RecordMissedDelivery(f.repo.Name, hookURL, forge.MissedDelivery{ID: id, Event: event, Payload: []byte(payload), Answer: "503"}))
}

func commentPayload(repo, login string, number int) string {
	return fmt.Sprintf(`{"action":"created","issue":{"number":%d,"pull_request":{}},"repository":{"full_name":%q},"sender":{"login":%q}}`, number, repo, login)
}

// TestMissedDeliveryWakesItsKeys holds what a missed delivery wakes: what it is about where it says
// so, else the whole repository, and never another one.
func TestMissedDeliveryWakesItsKeys(t *testing.T) {
	w := newHookFixture(t)
	push := `{"ref":"refs/heads/main","after":"` + strings.Repeat("a", 40) + `","repository":{"full_name":"acme/fleet"},"sender":{"login":"ada"}}`
	for i, c := range []struct{ name, event, payload, want string }{
		{"a push", "push", push, "repo:hub:acme/fleet"},
		{"a comment", "issue_comment", commentPayload("acme/fleet", "ada", 7), "pr:hub:acme/fleet#7"},
		{"in the forge's other spelling", "issue_comment", commentPayload("Acme/Fleet", "ada", 7), "pr:hub:acme/fleet#7"},
		{"our own comment", "issue_comment", commentPayload("acme/fleet", bot, 7), ""},
		{"what concerns nobody", "star", `{"action":"created","repository":{"full_name":"acme/fleet"}}`, ""},
		{"no payload", "push", "", wholeRepository},
		{"a cut payload", "push", push[:40], wholeRepository},
		{"something instead of a payload", "push", `{"oversize":true}`, wholeRepository},
		{"another repository's", "issue_comment", commentPayload("acme/other", "ada", 7), wholeRepository},
		{"no commit", "status", `{"sha":"; rm -rf /","repository":{"full_name":"acme/fleet"}}`, wholeRepository},
		{"an event's name that is none", "issue\x00comment", commentPayload("acme/fleet", "ada", 7), wholeRepository},
		{"a very long name", strings.Repeat("e", 10_000), push, wholeRepository},
	} {
		w.missDelivery(fmt.Sprintf("id-%d", i), c.event, c.payload)
		if got := w.hookWakes(); got != c.want {
			t.Errorf("%s: woke %q, want %q", c.name, got, c.want)
		}
	}
	for _, id := range []string{"", strings.Repeat("x", 10_000), "a\x00b"} { // nothing that a forge names one by
		w.missDelivery(id, "push", push)
		if got := w.hookWakes(); got != wholeRepository {
			t.Errorf("as %.10q: woke %q", id, got)
		}
	}
	if got := w.hookWakes(); got != "" {
		t.Errorf("without another: woke %q", got)
	}
}

// TestMissedDeliveriesWakeOnce holds that one wakes once, whether it is listed again, was
// delivered after all, or is delivered later; and once more where the store was lost.
func TestMissedDeliveriesWakeOnce(t *testing.T) {
	w := newHookFixture(t)
	comment := commentPayload("acme/fleet", "ada", 7)
	const pull = "pr:hub:acme/fleet#7"
	w.missDelivery("a", "issue_comment", comment)
	if got := w.hookWakes(); got != pull {
		t.Fatalf("woke %q", got)
	}
	w.missDelivery("a", "issue_comment", comment) // another attempt
	_, err := w.opts.Store.Accept(t.Context(), store.Delivery{Forge: "hub", ID: "late", ReceivedAt: w.clock.Now()})
	w.must(err)
	w.missDelivery("late", "issue_comment", comment) // it was taken, and the answer came too late
	w.must(w.opts.Store.DeleteRecord(t.Context(), deliveryCursors.Key(record.Repository(w.repo.ID))))
	if got := w.hookWakes(); got != "" {
		t.Errorf("what was known woke %q", got)
	}
	fresh, err := w.opts.Store.Accept(t.Context(), store.Delivery{Forge: "hub", ID: "a", Keys: []string{pull}, ReceivedAt: w.clock.Now()})
	if err != nil || fresh {
		t.Errorf("delivered again it is fresh: %t, %v", fresh, err)
	}

	st, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "liftlock.db"), store.Options{Now: w.clock.Now})
	w.must(err)
	t.Cleanup(func() { _ = st.Close() })
	w.addProcess(st, "me again")
	w.manageHook()
	if got := w.hookWakes(); got != pull {
		t.Errorf("with a store that is empty: woke %q", got)
	}
}

// TestMissedDeliveryThatPanics holds that a delivery that can't be read without a panic wakes the
// whole repository, once, and keeps none of those after it from being read.
func TestMissedDeliveryThatPanics(t *testing.T) {
	w := newHookFixture(t)
	st, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "liftlock.db"), store.Options{Now: w.clock.Now, Intercept: func(context.Context, string, bool) error {
		if bytes.Contains(debug.Stack(), []byte("keysOfStatus")) {
			panic("a status nobody thought of")
		}
		return nil
	}})
	w.must(err)
	t.Cleanup(func() { _ = st.Close() })
	w.addProcess(st, "me again")
	w.manageHook()
	w.missDelivery("poisoned", "status", `{"sha":"`+strings.Repeat("a", 40)+`","state":"success","repository":{"full_name":"acme/fleet"},"sender":{"login":"ada"}}`)
	w.missDelivery("after", "issue_comment", commentPayload("acme/fleet", "ada", 7))
	if got := w.hookWakes(); got != "pr:hub:acme/fleet#7 "+wholeRepository {
		t.Errorf("woke %q", got)
	}
	if got := w.hookWakes(); got != "" {
		t.Errorf("then woke %q", got)
	}
}

// TestMissedByTheHundred holds that what isn't read is found by looking at everything.
func TestMissedByTheHundred(t *testing.T) {
	w := newHookFixture(t)
	for i := range 101 {
		w.missDelivery(fmt.Sprint("id-", i), "issue_comment", commentPayload("acme/fleet", "ada", 1+i%2))
	}
	if got, want := w.hookWakes(), "pr:hub:acme/fleet#1 pr:hub:acme/fleet#2 "+wholeRepository; got != want {
		t.Errorf("woke %q, want %q", got, want)
	}
	if got := w.hookWakes(); got != "" {
		t.Errorf("again: woke %q", got)
	}
}

// TestListThatFails holds that a forge which doesn't answer changes nothing: the key comes again
// at its time, and what was missed is found then.
func TestListThatFails(t *testing.T) {
	w := newHookFixture(t)
	w.missDelivery("a", "issue_comment", commentPayload("acme/fleet", "ada", 7))
	for _, kind := range []error{forge.ErrRetryable, forge.ErrRateLimited, forge.ErrForbidden, forge.ErrNotFound} {
		for _, words := range []string{"list the deliveries", "webhook"} {
			w.fail(words, kind)
			w.dropDue()
			next, err := w.runHook(t.Context(), w.repo)
			if due := w.takeDue(); err != nil || len(due) > 0 || next.Sub(w.clock.Now()) > hookInterval || next.Sub(w.clock.Now()) < hookInterval/2 {
				t.Errorf("%s fails with %v: next %v, woke %q, %v", words, kind, next, due, err)
			}
			w.failNothing()
		}
	}
	w.fail("create the webhook", forge.ErrInvalid) // such as a test of it that wasn't taken
	if got := w.hookWakes(); got != "pr:hub:acme/fleet#7" {
		t.Errorf("afterwards: woke %q", got)
	}
}

// hookForge is a forge that says how soon its hooks' calls were wanted, and may have no list.
type hookForge struct {
	forge.Forge
	priorities map[forge.Priority]bool
	noList     bool
}

func (hf *hookForge) EnsureHook(ctx context.Context, r forge.Repo, h forge.Hook) (bool, error) {
	hf.priorities[forge.PriorityOf(ctx)] = true
	return hf.Forge.EnsureHook(ctx, r, h)
}

func (hf *hookForge) MissedDeliveries(ctx context.Context, r forge.Repo, q forge.DeliveryQuery) (forge.MissedDeliveries, error) {
	hf.priorities[forge.PriorityOf(ctx)] = true
	if hf.noList {
		return forge.MissedDeliveries{}, &forge.Error{Op: "list", Kind: forge.ErrUnsupported}
	}
	return hf.Forge.MissedDeliveries(ctx, r, q)
}

// TestHookRunsInTime holds when the hook's key comes again, and that its calls are the
// least urgent ones.
func TestHookRunsInTime(t *testing.T) {
	w := newHookFixture(t)
	f := &hookForge{Forge: w.repo.Forge, priorities: map[forge.Priority]bool{}}
	w.repo.Forge = f
	for _, f.noList = range []bool{false, true} {
		next, err := w.runHook(t.Context(), w.repo)
		if got := next.Sub(w.clock.Now()); err != nil || got != hookInterval {
			t.Errorf("without a list %t: again in %s, %v", f.noList, got, err)
		}
	}
	if len(f.priorities) != 1 || !f.priorities[forge.PriorityBackground] {
		t.Errorf("its calls were as urgent as %v", f.priorities)
	}
	cutOff, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.runHook(cutOff, w.repo); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was cut off counts as a look: %v", err)
	}
	w.repo.Hook = nil
	if next, err := w.runHook(t.Context(), w.repo); err != nil || !next.IsZero() {
		t.Errorf("not managed any more: again at %v, %v", next, err)
	}
}

// TestRefusedDelivery holds that after a delivery which couldn't be taken the list is read soon,
// and only of who manages the hook.
func TestRefusedDelivery(t *testing.T) {
	w := newHookFixture(t)
	w.dropDue()
	w.DeliveryRefused("hub:acme/other")
	if w.HasPendingWakes() {
		t.Error("somebody else's repository is noted")
	}
	w.DeliveryRefused(w.repo.ID)
	if !w.HasPendingWakes() || !w.storePending(t.Context(), w.wakePending) {
		t.Fatal("nothing is noted")
	}
	if due := w.takeDue(); len(due) != 0 {
		t.Errorf("at once due are %q", due)
	}
	w.clock.Step(refusalDelay)
	if due := w.takeDue(); !slices.Equal(due, []string{"hook:hub:acme/fleet"}) {
		t.Errorf("then due are %q", due)
	}
	w.repo.Hook = nil
	w.DeliveryRefused(w.repo.ID)
	if w.HasPendingWakes() {
		t.Error("a hook that isn't managed is noted")
	}
}

// TestStartEnsuresHooks holds that a fresh process looks at what was missed while none ran.
func TestStartEnsuresHooks(t *testing.T) {
	w := newHookFixture(t)
	w.dropDue()
	w.must(w.Start(t.Context()))
	if due := strings.Join(w.takeDue(), " "); due != "hook:hub:acme/fleet "+wholeRepository {
		t.Errorf("due are %q", due)
	}
}
