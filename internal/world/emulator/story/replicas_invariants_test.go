package story_test

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/emulator/story"
	"github.com/liftlock/liftlock/internal/world/storetest"
)

// awaitEnd lets what is under way come to its end.
func (r *replicaRun) awaitEnd() {
	r.t.Helper()
	r.mu.Lock()
	r.ending = true
	r.mu.Unlock()
	r.await(func() error {
		var wrong []error
		for _, f := range r.repositories {
			wrong = append(wrong, r.checkEnded(f))
		}
		return errors.Join(wrong...)
	})
	r.await(r.checkQueueIdle)
}

// checkEnded holds that each of a repository's releases came to its end and that nothing
// is left over.
func (r *replicaRun) checkEnded(f *replicatedRepository) error {
	pulls := r.listPulls(f.name, "")
	for _, c := range f.components {
		if !isSettled(pulls, c) {
			return fmt.Errorf("%s in %s of %s is neither in prod nor was it taken back", releaseTag(c.released), c.name, f.name)
		}
	}
	for _, p := range pulls {
		if !p.Merged {
			return fmt.Errorf("%s#%d %s was not merged (open: %t, labels %q)", f.name, p.Number, p.Title, p.Open, p.Labels)
		}
		if err := r.checkStatusComment(&p); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if err := r.checkCommandsHandled(f, pulls); err != nil {
		return err
	}
	dir, err := r.forge.GitDir(f.name)
	if err != nil {
		return err
	}
	branches, err := listBranches(dir)
	if err != nil {
		return err
	}
	if len(branches) != 1 {
		return fmt.Errorf("%s has the branches %s", f.name, joinNames(branches))
	}
	hooks, err := r.identity.CountHooks(r.forge, f.name)
	if err == nil && hooks != 1 {
		err = fmt.Errorf("%s has %d hooks", f.name, hooks)
	}
	return err
}

// checkStatusComment holds that a pull request tells its state once.
func (r *replicaRun) checkStatusComment(p *emulator.PullRequest) error {
	n := 0
	for _, c := range p.Comments {
		if c.User == r.identity.Login && prtext.IsStatusComment(c.Body) {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("#%d has %d status comments", p.Number, n)
	}
	return nil
}

// checkCommandsHandled holds that each command has one reaction.
func (r *replicaRun) checkCommandsHandled(f *replicatedRepository, pulls []emulator.PullRequest) error {
	r.mu.Lock()
	given := slices.Clone(r.comments)
	r.mu.Unlock()
	for _, g := range given {
		if g.repository != f.name {
			continue
		}
		i := slices.IndexFunc(pulls, func(p emulator.PullRequest) bool { return p.Number == g.pull })
		if i < 0 {
			return fmt.Errorf("%s#%d is gone", f.name, g.pull)
		}
		k := slices.IndexFunc(pulls[i].Comments, func(c emulator.Comment) bool { return c.ID == g.id })
		if k < 0 || len(pulls[i].Comments[k].Reactions) != 1 {
			return fmt.Errorf("%q on %s#%d was not taken, or more than once: %+v", g.text, f.name, g.pull, pulls[i].Comments)
		}
	}
	return nil
}

// checkQueueIdle holds that nothing is left to do, and nothing that failed.
func (r *replicaRun) checkQueueIdle() error {
	for _, k := range storetest.PostgresKeys(r.t, r.database.address()) {
		if k.Due || k.Running || k.Failed {
			return fmt.Errorf("the key %s is not at its end: %+v", k.Name, k)
		}
	}
	return nil
}

// checkReplicated holds, at any time, that nothing happened twice or where it must not.
func (r *replicaRun) checkReplicated() {
	r.t.Helper()
	for _, f := range r.repositories {
		pulls := r.listPulls(f.name, "")
		checkEachOnce(r.identity.Login, r.t.Errorf, f.name, pulls)
		r.checkReplies(f, pulls)
		if err := r.checkArrivals(f); err != nil {
			r.t.Errorf("%s: %v", f.name, err)
		}
	}
}

// checkEachOnce holds that no release had two pull requests in a place, and that nobody
// opened one where none may be.
func checkEachOnce(bot string, errorf func(string, ...any), repository string, pulls []emulator.PullRequest) {
	first := map[string]int{}
	for _, p := range pulls {
		ref, ours := promotion.ParseBranch(p.Branch)
		tag := releaseTags.FindString(p.Title)
		if !ours || p.Author != bot || tag == "" {
			errorf("%s: a pull request that nobody should have opened: #%d %q %s by %s", repository, p.Number, p.Title, p.Branch, p.Author)
		}
		if ref.Environment == "prod" && isBrokenTag(tag) || ref.Revert && !isBrokenTag(tag) {
			errorf("%s: a pull request for what must not be: #%d %q", repository, p.Number, p.Title)
		}
		what := fmt.Sprintf("%s %s %s revert=%t", ref.Component, ref.Environment, tag, ref.Revert)
		if n, again := first[what]; again {
			errorf("%s: #%d and #%d are both for %s", repository, n, p.Number, what)
		}
		first[what] = p.Number
		if !p.Open && !p.Merged {
			errorf("%s: #%d %q was closed", repository, p.Number, p.Title)
		}
	}
}

// checkReplies holds that the server says nothing twice: a status comment, and an answer
// to each question.
func (r *replicaRun) checkReplies(f *replicatedRepository, pulls []emulator.PullRequest) {
	r.t.Helper()
	r.mu.Lock()
	given := slices.Clone(r.comments)
	r.mu.Unlock()
	for _, p := range pulls {
		said := map[string]int{}
		for _, c := range p.Comments {
			if c.User != r.identity.Login {
				continue
			}
			what := "what nobody asked for: " + c.Body
			if prtext.IsStatusComment(c.Body) {
				what = "its state"
			} else if i := slices.IndexFunc(given, func(g *personalComment) bool { return prtext.IsReplyTo(c.Body, g.id) }); i >= 0 {
				what = fmt.Sprintf("an answer to %d", given[i].id)
			} else {
				r.t.Errorf("%s#%d says %s", f.name, p.Number, what)
			}
			if said[what]++; said[what] > 1 {
				r.t.Errorf("%s#%d says %d times %s", f.name, p.Number, said[what], what)
			}
		}
	}
	if !r.isEnding() {
		return
	}
	for _, g := range given {
		i := slices.IndexFunc(pulls, func(p emulator.PullRequest) bool { return p.Number == g.pull })
		if g.repository == f.name && strings.HasSuffix(g.text, "status") && !slices.ContainsFunc(pulls[i].Comments, func(c emulator.Comment) bool { return prtext.IsReplyTo(c.Body, g.id) }) {
			r.t.Errorf("%q on %s#%d was never answered", g.text, f.name, g.pull)
		}
	}
}

// changedTag finds, in a difference, the file that follows and the tag that it carries now.
var changedTag = regexp.MustCompile(`(?m)^\+\+\+ b/apps/([^/]+)/overlays/([^/]+)/kustomization\.yaml$|^\+ +newTag: (\S+)$`)

// checkArrivals holds what the branch itself shows: each release came once, in order, to qa and
// then to prod. A broken one was reverted to the release before it.
func (r *replicaRun) checkArrivals(f *replicatedRepository) error {
	dir, err := r.forge.GitDir(f.name)
	if err != nil {
		return err
	}
	out, err := exec.Command("git", "-C", dir, "log", "--first-parent", "--reverse", "-m", "-p", "-U0", "--format=", story.Branch, "--", "apps").Output()
	if err != nil {
		return fmt.Errorf("read the branch's history: %w", err)
	}
	ways := map[string][]string{} // by component and environment
	at := ""
	for _, m := range changedTag.FindAllStringSubmatch(string(out), -1) {
		if m[3] == "" {
			at = m[1] + " " + m[2]
		} else {
			ways[at] = append(ways[at], m[3])
		}
	}
	for _, c := range f.components {
		if err := errors.Join(checkWay(ways[c.name+" qa"], c, true, r.isEnding()), checkWay(ways[c.name+" prod"], c, false, r.isEnding())); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// checkWay compares the releases that an environment carried with those that it should
// have: all up to the last that came, or, at the end, all.
func checkWay(got []string, c *releasedComponent, withBroken, ended bool) error {
	want := []string{"1.0.0"}
	for n := 1; n <= c.released; n++ {
		switch tag := releaseTag(n); {
		case !isBrokenTag(tag):
			want = append(want, tag)
		case withBroken:
			want = append(want, tag, releaseTag(n-1))
		}
	}
	if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) || ended && len(got) < len(want) {
		return fmt.Errorf("the releases came as %q, wanted %q", got, want)
	}
	return nil
}

// checkDeliveries holds that every delivery that was acknowledged is in the database.
func (r *replicaRun) checkDeliveries() {
	r.t.Helper()
	there := storetest.PostgresDeliveries(r.t, r.database.address())
	lost := 0
	all := r.relay.listAccepted()
	for _, id := range all {
		if !there[id] {
			lost++
		}
	}
	if lost > 0 || len(all) == 0 {
		r.t.Errorf("%d of %d deliveries that were acknowledged are not in the database", lost, len(all))
	}
}
