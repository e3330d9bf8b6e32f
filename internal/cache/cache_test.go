package cache

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestBounds(t *testing.T) {
	c := New(nil, Options[string, string]{Name: "x", Entries: 3, Bytes: 10, Size: func(_, v string) int64 { return int64(len(v)) }})
	c.Put("a", "1234")
	c.Put("b", "1234")
	if _, ok := c.Get("a"); !ok {
		t.Fatal("a is gone although there is room")
	}
	c.Put("c", "123") // b is the least recently used
	if _, ok := c.Get("b"); ok {
		t.Error("b was kept past the bound in bytes")
	}
	c.Put("d", "")
	c.Put("e", "") // past three entries: a goes
	if _, ok := c.Get("a"); ok {
		t.Error("a was kept past the bound in entries")
	}
	c.Put("huge", "12345678901")
	if _, ok := c.Get("huge"); ok {
		t.Error("what is larger than the cache was kept")
	}
	want := Stats{Name: "x", Hits: 1, Misses: 3, Evictions: 3, Entries: 3, Bytes: 3}
	if diff := cmp.Diff(want, c.Stats()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	c.RemoveFunc(func(key, _ string) bool { return key == "c" })
	c.Remove("d")
	c.Remove("nobody")
	if s := c.Stats(); s.Entries != 1 || s.Bytes != 0 {
		t.Errorf("after removing: %+v", s)
	}
	c.Clear()
	if s := c.Stats(); s.Entries != 0 {
		t.Errorf("after clearing: %+v", s)
	}
}

func TestGetOrLoadKeepsNoErrors(t *testing.T) {
	c := New(nil, Options[int, int]{Name: "x", Entries: 1})
	if _, err := c.GetOrLoad(1, func() (int, error) { return 7, errors.New("away") }); err == nil {
		t.Fatal("the error is lost")
	}
	loads := 0
	for range 2 {
		v, err := c.GetOrLoad(1, func() (int, error) { loads++; return 8, nil })
		if v != 8 || err != nil {
			t.Fatalf("got %d, %v", v, err)
		}
	}
	if loads != 1 {
		t.Errorf("loaded %d times", loads)
	}
}

// TestBytesCountTheEntries: whatever is done, the count of bytes is that of the
// entries, and within the bounds.
func TestBytesCountTheEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g Group
		c := New(&g, Options[int, int]{Name: "x", Entries: rapid.IntRange(1, 6).Draw(t, "entries"), Bytes: 20, Size: func(_, v int) int64 { return int64(v) }})
		t.Repeat(map[string]func(*rapid.T){
			"put":    func(t *rapid.T) { c.Put(rapid.IntRange(0, 9).Draw(t, "key"), rapid.IntRange(0, 25).Draw(t, "size")) },
			"get":    func(t *rapid.T) { c.Get(rapid.IntRange(0, 9).Draw(t, "key")) },
			"remove": func(t *rapid.T) { c.Remove(rapid.IntRange(0, 9).Draw(t, "key")) },
			"": func(t *rapid.T) {
				held := int64(0)
				for _, k := range c.lru.Keys() {
					v, _ := c.lru.Peek(k)
					held += int64(v)
				}
				s := g.Stats()[0]
				if s.Bytes != held || held > 20 || s.Entries > c.o.Entries {
					t.Fatalf("holds %d bytes in %d entries and says %+v", held, c.lru.Len(), s)
				}
			},
		})
	})
}

func TestGroupSumsByName(t *testing.T) {
	var g Group
	for _, name := range []string{"b", "a", "b"} {
		c := New(&g, Options[int, int]{Name: name, Entries: 1})
		c.Put(1, 1)
		c.Get(1)
	}
	want := []Stats{{Name: "a", Hits: 1, Entries: 1}, {Name: "b", Hits: 2, Entries: 2}}
	if diff := cmp.Diff(want, g.Stats()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
