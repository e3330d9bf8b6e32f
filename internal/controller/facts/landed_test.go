package facts

import (
	"fmt"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// TestFindOriginInSharedFile finds the commit that brought an environment's element
// behind hundreds of commits of others' elements in the same file, and looks at
// no more than the new ones when there are more.
func TestFindOriginInSharedFile(t *testing.T) {
	c := newTestRepo(t, "fleet", map[string]string{"list.yaml": "- {component: web, tag: 0}\n- {component: api, tag: 0}\n"})
	tip, _, err := c.Mirror.Head(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	when := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	commit := func(web, api int) string {
		t.Helper()
		when = when.Add(time.Minute)
		text := fmt.Sprintf("- {component: web, tag: %d}\n- {component: api, tag: %d}\n", web, api)
		tip, err = c.Mirror.Write(t.Context(), git.CommitSpec{Parents: []string{tip}, Base: tip, Message: "x", When: when,
			Files: []git.FileWrite{{Path: "list.yaml", Mode: 0o100644, Content: []byte(text)}}})
		if err != nil {
			t.Fatal(err)
		}
		return tip
	}
	p := &ResolvedPipeline{Pipeline: &pipeline.Pipeline{Metadata: pipeline.Metadata{Name: "shop"}, Spec: pipeline.Spec{Carry: []pipeline.Carry{
		{YAML: &pipeline.FieldPick{Files: []string{"list.yaml"}, Paths: []string{"[component={{component}}].tag"}}}}}}}
	web := &ResolvedEnv{Component: "web", Name: "qa", Files: []string{"list.yaml"}}
	o := New(Options{})
	expectOrigin := func(what, want string) {
		t.Helper()
		now, err := o.readRelease(c.Repository, tip, p, web)
		if err != nil {
			t.Fatal(err)
		}
		m, err := o.findOrigin(t.Context(), c.Repository, tip, "web in qa", p, web, now)
		if err != nil || !m.origin.Found || m.origin.Commit.SHA != want {
			t.Errorf("%s: got %+v, %v; want %s", what, m.origin, err, want)
		}
	}
	brought := commit(1, 0)
	for i := range originDepth + 20 {
		commit(1, i+1)
	}
	expectOrigin("behind the others'", brought)
	before := o.readings.Stats().Entries
	commit(1, 0)
	commit(1, 1)
	expectOrigin("with more of the others'", brought)
	if n := o.readings.Stats().Entries - before; n > 3 {
		t.Errorf("%d commits were read again for two new ones", n)
	}
	commit(2, 1)
	brought = commit(1, 1)
	commit(1, 2)
	expectOrigin("there and back since", brought)
	brought = commit(3, 2)
	expectOrigin("anew", brought)
}
