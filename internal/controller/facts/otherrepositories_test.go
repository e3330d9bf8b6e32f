package facts

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
)

// TestDependents lists the other repositories whose targets were resolved from one, by any of its revisions.
func TestDependents(t *testing.T) {
	o := &branch.TargetGatherer{Snapshots: branch.NewCache[string, *branch.Snapshot](nil, "snapshots", 10)}
	reads := func(repo string, from ...string) {
		s := &branch.Snapshot{}
		s.Inputs.ExternalCommits = map[branch.ExternalRef]string{}
		for i, other := range from {
			s.Inputs.ExternalCommits[branch.ExternalRef{Repo: other, Revision: strings.Repeat("x", i)}] = landedHash
		}
		o.Repos.List = append(o.Repos.List, &branch.Repository{ID: repo})
		o.Snapshots.Put(repo, s)
	}
	reads("hub:acme/values", "hub:acme/values")
	reads("hub:acme/shop", "hub:acme/values", "hub:acme/values", "hub:acme/charts")
	reads("hub:acme/fleet", "hub:acme/charts", "hub:acme/values")
	reads("hub:acme/charts")
	o.Repos.List = append(o.Repos.List, &branch.Repository{ID: "hub:acme/unread"})
	for repo, want := range map[string][]string{"hub:acme/values": {"hub:acme/fleet", "hub:acme/shop"}, "hub:acme/charts": {"hub:acme/fleet", "hub:acme/shop"}, "hub:acme/fleet": nil} {
		if got := o.Dependents(repo); !slices.Equal(got, want) {
			t.Errorf("from %s are resolved %q, want %q", repo, got, want)
		}
	}
}

// TestFindRevision finds what a source may be at: a branch by any of its names, the tracked one, or a commit
// that was fetched.
func TestFindRevision(t *testing.T) {
	c := newBranchRepo(t, nil)
	c.checkoutBranch("env/qa")
	qa := c.commit("env/qa", map[string]string{"x": "x"})
	main, _ := c.remote.Head("main")
	for revision, want := range map[string]string{"": main, "HEAD": main, "main": main, "env/qa": qa, "refs/heads/env/qa": qa, qa: qa, landedHash: "", "v1.0": ""} {
		if got, err := branch.FindRevision(t.Context(), c.Repository, revision); err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", revision, got, err, want)
		}
	}
}

// TestKnownInputs resolves targets by what is known beside Git where there is no Argo CD to ask.
func TestKnownInputs(t *testing.T) {
	c := newBranchRepo(t, nil)
	var pipelines, revisions []string
	o := New(Options{Resolver: appset.New(appset.Options{}), Repos: []*branch.Repository{c.Repository}, Now: time.Now, KnownInputs: func(in *appset.Input) {
		pipelines, revisions = append(pipelines, in.Pipeline.Name()), append(revisions, in.Revision)
		if in.Branch != "main" || !slices.Equal(in.RepoURLs, c.URLs) || in.ArgoCDs != nil {
			t.Errorf("it is given %+v", in)
		}
	}})
	s := takeSnapshot(t, o, c)
	if len(s.Pipelines[0].Problems) > 0 || len(s.Pipelines[0].TargetSet.Targets) != 6 || !slices.Equal(pipelines, []string{"shop"}) || !slices.Equal(revisions, []string{s.Commit}) {
		t.Errorf("%q, %d targets of %q at %q", s.Pipelines[0].Problems, len(s.Pipelines[0].TargetSet.Targets), pipelines, revisions)
	}
}
