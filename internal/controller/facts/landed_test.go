package facts

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// originStory is a repository whose commits set the tags of two components that share
// a file, and one replica's or several's walks back to where web's came from.
type originStory struct {
	*testing.T
	c    *testRepo
	tip  string
	when time.Time
	p    *branch.ResolvedPipeline
	web  *branch.ResolvedEnv
}

func newOriginStory(t *testing.T) *originStory {
	c := newTestRepo(t, "fleet", map[string]string{"list.yaml": "- {component: web, tag: 0}\n- {component: api, tag: 0}\n"})
	tip, _, err := c.Mirror.Head(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	return &originStory{T: t, c: c, tip: tip, when: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC),
		p: &branch.ResolvedPipeline{Pipeline: &pipeline.Pipeline{Metadata: pipeline.Metadata{Name: "shop"}, Spec: pipeline.Spec{Carry: []pipeline.Carry{
			{YAML: &pipeline.FieldPick{Files: []string{"list.yaml"}, Paths: []string{"[component={{component}}].tag"}}}}}}},
		web: &branch.ResolvedEnv{Component: "web", Name: "qa", Files: []string{"list.yaml"}}}
}

// commit sets both tags; a text in place of web's breaks the file.
func (os *originStory) commit(web any, api int) string {
	os.Helper()
	os.when = os.when.Add(time.Minute)
	text := fmt.Sprintf("- {component: web, tag: %v}\n- {component: api, tag: %d}\n", web, api)
	var err error
	os.tip, err = os.c.Mirror.Write(os.Context(), git.CommitSpec{Parents: []string{os.tip}, Base: os.tip, Message: "x", When: os.when,
		Files: []git.FileWrite{{Path: "list.yaml", Mode: 0o100644, Content: []byte(text)}}})
	if err != nil {
		os.Fatal(err)
	}
	return os.tip
}

// expect holds that a replica finds a commit as where web's tag came from.
func (os *originStory) expect(o *Gatherer, what, want string) {
	os.Helper()
	now, err := o.Releases.ReadRelease(os.c.Repository, os.tip, os.p, os.web)
	if err != nil {
		os.Fatal(err)
	}
	m, err := o.History.FindOrigin(os.Context(), os.c.Repository, os.tip, "web in qa", os.p, os.web, now)
	if err != nil || !m.Origin.Found || m.Origin.Commit.SHA != want {
		os.Errorf("%s: got %+v, %v; want %s", what, m.Origin, err, want)
	}
}

// TestFindOriginInSharedFile finds the commit that brought an environment's element behind hundreds
// of commits of others' elements in the same file. It reads only the new ones when there are more.
func TestFindOriginInSharedFile(t *testing.T) {
	s, o := newOriginStory(t), New(Options{})
	brought := s.commit(1, 0)
	for i := range branch.OriginDepth + 20 {
		s.commit(1, i+1)
	}
	s.expect(o, "behind the others'", brought)
	before := o.Releases.Readings.Stats().Entries
	s.commit(1, 0)
	s.commit(1, 1)
	s.expect(o, "with more of the others'", brought)
	if n := o.Releases.Readings.Stats().Entries - before; n > 3 {
		t.Errorf("%d commits were read again for two new ones", n)
	}
	s.commit(2, 1)
	brought = s.commit(1, 1)
	s.commit(1, 2)
	s.expect(o, "there and back since", brought)
	brought = s.commit(3, 2)
	s.expect(o, "anew", brought)
}

// TestReplicasAgreeOnOrigin holds that a replica that missed a commit finds what one that
// looked after each commit finds, and what one finds that starts now.
func TestReplicasAgreeOnOrigin(t *testing.T) {
	s, seldom, often := newOriginStory(t), New(Options{}), New(Options{})
	brought := s.commit(1, 0)
	expect := func(what string) {
		t.Helper()
		for name, o := range map[string]*Gatherer{"a replica that looks seldom": seldom, "one that looks often": often, "one that starts": New(Options{})} {
			s.expect(o, what+", "+name, brought)
		}
	}
	expect("brought")
	s.commit(2, 0)
	s.expect(often, "replaced", s.tip)
	brought = s.commit(1, 0)
	expect("there and back, with the file as it was")
	s.commit("[", 0)
	s.commit(1, 0)
	expect("broken and mended")
	s.commit("[", 0)
	s.commit(2, 0)
	s.expect(often, "broken and replaced", s.tip)
	s.commit("[", 0)
	brought = s.commit(1, 0)
	expect("there and back with breakage on the way")
}

// TestLineSince lists what came since a commit on the line of first parents, as far as a look goes back.
func TestLineSince(t *testing.T) {
	s := newOriginStory(t)
	root := s.tip
	var all []string
	for i := range branch.OriginDepth + 1 {
		all = append(all, s.commit(1, i))
	}
	r := s.c.Repository
	last := len(all) - 1
	for name, c := range map[string]struct {
		from, tip string
		follows   bool
		n         int
	}{
		"itself":                {s.tip, s.tip, true, 0},
		"the one before":        {all[last-1], all[last], true, 1},
		"as far as a look goes": {all[last-branch.OriginDepth], all[last], true, branch.OriginDepth},
		"farther than that":     {root, all[last], false, 0},
		"down to the first":     {root, all[0], true, 1},
		"what came later":       {all[1], all[0], false, 0},
	} {
		line, follows, err := branch.LineSince(t.Context(), r, c.from, c.tip)
		if err != nil || follows != c.follows || len(line) != c.n {
			t.Errorf("%s: %d commits, %t, %v", name, len(line), follows, err)
		}
		for i := 1; i < len(line); i++ {
			if line[i-1].Parents[0] != line[i].SHA {
				t.Errorf("%s: they aren't newest first", name)
			}
		}
	}
	if _, follows, err := branch.LineSince(t.Context(), r, root, landedHash); err == nil || follows {
		t.Errorf("from what isn't there: %t, %v", follows, err)
	}
}

// TestFindPast lists the releases that an environment had before, newest first, each by the commit that
// brought it.
func TestFindPast(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	w.release("ada", "dev", "1.1.0", "web")
	w.commit("ada", "Only words", map[string]string{overlayFile("web", "dev"): overlayText("web", "1.1.0") + "# words\n"})
	w.release("ada", "dev", "1.2.0", "web")
	w.commit("ada", "Nothing", map[string]string{overlayFile("web", "dev"): "resources: [../../../base/web]\n"})
	w.release("ada", "dev", "1.1.0", "web")
	w.release("ada", "dev", "1.3.0", "web")
	ev, _ := w.evaluate("web", false)
	c := ev.Components[0]
	for most, want := range map[int][]string{9: {"1.1.0", "1.2.0", "1.1.0"}, 2: {"1.1.0", "1.2.0"}, 0: nil} {
		past, err := w.o.History.FindPast(w.ctx(), &c.ComponentBasis, c.Env("dev"), most)
		w.must(err)
		var got []string
		for _, p := range past {
			got = append(got, p.Release.Name)
			if name := w.names[p.Commit.SHA]; name != "Release web "+p.Release.Name+" to dev" {
				t.Errorf("%s came by %q", p.Release.Name, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("at most %d: %q, want %q", most, got, want)
		}
	}
}
