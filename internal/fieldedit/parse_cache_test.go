package fieldedit

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"
)

// treeWithIDs is a tree that knows git's ids.
type treeWithIDs struct{ fstest.MapFS }

func (t *treeWithIDs) ObjectID(name string) (string, error) { return objectID(t.MapFS[name].Data), nil }

// TestParseCache reads a file that a thousand environments share. It is read once a version, for
// all readers, and others don't see edits in between.
func TestParseCache(t *testing.T) {
	text := func(tag string) string {
		var b strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&b, "- {component: c%d, env: qa, tag: %s}\n", i, tag)
		}
		return b.String()
	}
	carry := yamlCarry("", "list.yaml", "[component={{component}},env={{environment}}].tag")
	memory := NewParseCache(nil, 1<<20)
	read := func(commit *treeWithIDs, i int) string {
		o := sharedOverlay(fmt.Sprintf("c%d", i), "qa", carry)
		o.ParseCache = memory
		r, err := Read(commit, o)
		if err != nil {
			t.Error(err)
		}
		return r.String()
	}
	old, now := &treeWithIDs{MapFS: newTree(map[string]string{"list.yaml": text("v1")})}, &treeWithIDs{MapFS: newTree(map[string]string{"list.yaml": text("v2")})}
	began := time.Now()
	read(old, 0)
	first := time.Since(began)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if got := read(old, i); got != "v1" {
				t.Errorf("c%d has %s", i, got)
			}
			if got := read(now, i); got != "v2" {
				t.Errorf("c%d has %s now", i, got)
			}
		})
	}
	wg.Wait()
	if n := memory.docs.Stats().Entries; n != 2 {
		t.Errorf("%d versions are remembered", n)
	}
	began = time.Now()
	read(now, 999)
	t.Logf("the first reading took %s, one from memory %s", first, time.Since(began))
	if d, ok := memory.docs.Get(parseCacheKey{objectID(now.MapFS["list.yaml"].Data), formatYAML}); !ok || d.starts == nil {
		t.Error("lines are counted by whoever needs them first")
	}
	edited := sharedOverlay("c1", "qa", carry)
	edited.ParseCache = memory
	edits, err := Compose(now, edited, Release{Fields: []Field{{Kind: KindYAML, File: "list.yaml", Path: "[component={{component}},env={{environment}}].tag", Value: "v3"}}}, nil)
	if err != nil || len(edits) != 1 || read(now, 1) != "v2" {
		t.Errorf("after an edit: %v, %v, %s", edits, err, read(now, 1))
	}
	small := NewParseCache(nil, 40<<10)
	for i := range 5 {
		small.put(parseCacheKey{id: fmt.Sprint(i)}, &document{data: make([]byte, 15<<10)})
	}
	small.put(parseCacheKey{id: "tiny"}, &document{data: make([]byte, 100)})
	small.put(parseCacheKey{id: "huge"}, &document{data: make([]byte, 50<<10)})
	_, third := small.docs.Get(parseCacheKey{id: "3"})
	_, fourth := small.docs.Get(parseCacheKey{id: "4"})
	if kept := small.docs.Stats(); kept.Bytes != 30<<10 || kept.Entries != 2 || !third || !fourth {
		t.Errorf("%+v: the last two files are to be remembered", kept)
	}
	var none *ParseCache
	none.put(parseCacheKey{}, &document{})
}
