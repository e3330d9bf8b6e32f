package record_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

type seen struct {
	Head string    `json:"head"`
	At   time.Time `json:"at"`
}

var (
	seenHeads = record.Declare[record.Pull, seen](record.Declaration{Name: "test-seen", Lifetime: record.UntilSettled})
	notes     = record.Declare[record.InPull, string](record.Declaration{Name: "test-note", Lifetime: record.UntilDropped})
	counts    = record.Declare[record.Unit, int](record.Declaration{Name: "test-count", Lifetime: record.UntilDropped, Strict: true})
	locations = record.Declare[record.InUnit, bool](record.Declaration{Name: "test-place", Lifetime: record.Lasting})
	branches  = record.Declare[record.InRepository, bool](record.Declaration{Name: "test-branch", Lifetime: record.Lasting})
	repos     = record.Declare[record.Repository, bool](record.Declaration{Name: "test-repository", Lifetime: record.Lasting})
	channels  = record.Declare[record.Named, bool](record.Declaration{Name: "test-channel", Lifetime: record.Lasting})
)

func open(t *testing.T) *store.Store {
	t.Helper()
	s := store.OpenMemory(store.Options{})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestKind(t *testing.T) {
	s, ctx := open(t), t.Context()
	want := seen{"abc", time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
	if _, found, err := seenHeads.Get(ctx, s, record.OfPull("r", 7)); found || err != nil {
		t.Fatalf("before: %v, %v", found, err)
	}
	must(t, seenHeads.Put(ctx, s, record.OfPull("r", 7), want))
	if got, found, err := seenHeads.Get(ctx, s, record.OfPull("r", 7)); got != want || !found || err != nil {
		t.Fatalf("got %v, %v, %v", got, found, err)
	}
	must(t, seenHeads.Drop(ctx, s, record.OfPull("r", 7)))
	if has, err := seenHeads.Has(ctx, s, record.OfPull("r", 7)); has || err != nil {
		t.Fatalf("after: %v, %v", has, err)
	}
}

func TestUnreadable(t *testing.T) {
	s, ctx := open(t), t.Context()
	lenient, strict := record.OfPull("r", 7), record.Unit{Repo: "r", Pipeline: "shop", Component: "web"}
	must(t, s.PutRecord(ctx, seenHeads.Key(lenient), []byte(`{"head":"abc","at":7}`)))
	must(t, s.PutRecord(ctx, counts.Key(strict), []byte(`"many"`)))
	if got, found, err := seenHeads.Get(ctx, s, lenient); got != (seen{}) || found || err != nil {
		t.Errorf("got %v, %v, %v", got, found, err)
	}
	if one, found, err := seenHeads.Find(ctx, s, lenient); one.About != lenient || one.Readable || !found || err != nil {
		t.Errorf("found %v, %v, %v", one, found, err)
	}
	if has, err := seenHeads.Has(ctx, s, lenient); !has || err != nil {
		t.Errorf("it isn't there: %v", err)
	}
	if all, err := seenHeads.List(ctx, s, record.Within{}); err != nil || len(all) != 1 || all[0].Readable || all[0].About != lenient {
		t.Errorf("listed %v, %v", all, err)
	}
	wantErr := "read the record test-count of r (shop|web)"
	if _, _, err := counts.Get(ctx, s, strict); err == nil || !strings.Contains(err.Error(), wantErr) {
		t.Errorf("%v, want %s", err, wantErr)
	}
	if _, found, err := counts.Find(ctx, s, strict); found || err == nil {
		t.Errorf("found %v, %v", found, err)
	}
	if _, err := counts.List(ctx, s, record.Within{Repo: "r"}); err == nil || !strings.Contains(err.Error(), wantErr) {
		t.Errorf("%v, want %s", err, wantErr)
	}
}

// subject says that what a record is about is read as it was written.
func subject[S interface {
	comparable
	record.Subject[S]
}, T any](t *testing.T, s *store.Store, k record.Kind[S, T], about S) {
	t.Helper()
	var value T
	must(t, k.Put(t.Context(), s, about, value))
	all, err := k.List(t.Context(), s, record.Within{})
	if err != nil || len(all) != 1 || all[0].About != about {
		t.Errorf("listed %v, %v, want %v", all, err, about)
	}
}

func TestSubjects(t *testing.T) {
	s, unit := open(t), record.Unit{Repo: "hub:acme/fleet", Pipeline: "shop", Component: "web"}
	subject(t, s, seenHeads, record.OfPull("hub:acme/fleet", 7))
	subject(t, s, notes, record.InPull{Pull: record.OfPull("hub:acme/fleet", 7), Name: "11"})
	subject(t, s, counts, unit)
	subject(t, s, locations, record.InUnit{Unit: unit, Name: "prod"})
	subject(t, s, branches, record.OfBranch("hub:acme/fleet", "release/1"))
	subject(t, s, repos, "hub:acme/fleet")
	subject(t, s, channels, "ops")
}

func TestWithin(t *testing.T) {
	s, ctx := open(t), t.Context()
	for _, about := range []record.Unit{{Repo: "r", Pipeline: "shop", Component: "web"}, {Repo: "r", Pipeline: "shops", Component: "web"}, {Repo: "q", Pipeline: "shop", Component: "web"}} {
		must(t, counts.Put(ctx, s, about, 1))
	}
	all, err := counts.List(ctx, s, record.Within{Repo: "r", NamePrefix: record.PipelinePrefix("shop")})
	if err != nil || len(all) != 1 || all[0].About.Pipeline != "shop" || all[0].About.Repo != "r" {
		t.Errorf("got %v, %v", all, err)
	}
}

func TestDropSettled(t *testing.T) {
	s, ctx := open(t), t.Context()
	seven, other := record.OfPull("r", 7), record.OfPull("r", 8)
	for _, p := range []record.Pull{seven, other} {
		must(t, seenHeads.Put(ctx, s, p, seen{}))
		must(t, notes.Put(ctx, s, record.InPull{Pull: p, Name: "11"}, "kept"))
	}
	must(t, s.Tx(ctx, "settled", func(tx *store.Tx) error { return record.DropSettled(ctx, tx, seven) }))
	has := func(k interface {
		Has(context.Context, record.Reader, record.Pull) (bool, error)
	}, p record.Pull) bool {
		is, err := k.Has(ctx, s, p)
		must(t, err)
		return is
	}
	if has(seenHeads, seven) || !has(seenHeads, other) {
		t.Error("the settled pull request's record stayed, or another's went")
	}
	if all, err := notes.List(ctx, s, record.Within{}); err != nil || len(all) != 2 {
		t.Errorf("what its owner drops went too: %v, %v", all, err)
	}
}

func TestDeclareTwice(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("two kinds have one name")
		}
	}()
	record.Declare[record.Pull, string](record.Declaration{Name: "test-seen"})
}

// TestReadAll holds that what was read at once says the same as the store does.
func TestReadAll(t *testing.T) {
	s, ctx := open(t), t.Context()
	web := record.Unit{Repo: "r", Pipeline: "shop", Component: "web"}
	must(t, seenHeads.Put(ctx, s, record.OfPull("r", 7), seen{Head: "a"}))
	must(t, seenHeads.Put(ctx, s, record.OfPull("r", 8), seen{Head: "b"}))
	must(t, seenHeads.Put(ctx, s, record.OfPull("other", 7), seen{Head: "c"}))
	must(t, counts.Put(ctx, s, web, 3))
	must(t, repos.Put(ctx, s, record.Repository("r"), true))
	rows, err := record.ReadAll(ctx, s, record.Within{Repo: "r"}, seenHeads, counts)
	must(t, err)
	for _, from := range []interface {
		record.Reader
		record.Lister
	}{s, rows} {
		if got, found, err := seenHeads.Get(ctx, from, record.OfPull("r", 8)); got.Head != "b" || !found || err != nil {
			t.Errorf("%T: the head of #8 is %v, %v, %v", from, got, found, err)
		}
		if got, err := seenHeads.List(ctx, from, record.Within{Repo: "r"}); len(got) != 2 || err != nil || got[0].About.Number != 7 {
			t.Errorf("%T: the heads are %v, %v", from, got, err)
		}
		if got, err := seenHeads.List(ctx, from, record.Within{Repo: "r", Pull: 8}); len(got) != 1 || err != nil {
			t.Errorf("%T: the heads of #8 are %v, %v", from, got, err)
		}
		for prefix, want := range map[string]int{record.PipelinePrefix("shop"): 1, record.PipelinePrefix("sho"): 0} {
			if got, err := counts.List(ctx, from, record.Within{Repo: "r", NamePrefix: prefix}); len(got) != want || err != nil {
				t.Errorf("%T: below %q there are %v, %v", from, prefix, got, err)
			}
		}
	}
	if has, err := repos.Has(ctx, rows, record.Repository("r")); has || err != nil {
		t.Errorf("a kind that wasn't read is there: %v", err)
	}
	if has, err := seenHeads.Has(ctx, rows, record.OfPull("other", 7)); has || err != nil {
		t.Errorf("another repository's is there: %v", err)
	}
}
