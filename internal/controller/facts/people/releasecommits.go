package people

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

const (
	// maxReleaseCommits bounds the commits that are read for one release. No person reads more, and
	// the comparison on the forge has them.
	maxReleaseCommits = 100
	// maxSkippedReleases bounds the releases between two that are named.
	maxSkippedReleases = 20
	// maxCommitAuthors bounds those whom one commit names.
	maxCommitAuthors = 5
	// maxSubjectBytes and maxAuthorBytes bound what is kept of what anybody wrote.
	maxSubjectBytes = 200
	maxAuthorBytes  = 100
	// maxCommitBytes bounds the commits that are remembered, and commitBytes is about what
	// one of them takes beside its text.
	maxCommitBytes = 16 << 20
	commitBytes    = 200
)

// ReleaseCommits are what made a release in one source environment, beyond what another
// environment has.
type ReleaseCommits struct {
	Source string // the source environment
	// the newest commit of its branch before Head that holds what the other environment has; empty: none is
	// known
	Base string
	Head string // the commit that brought the release
	// those that changed carried fields, newest first; without a Base those that brought its values, as far
	// as they are known
	Commits []ReleaseCommit
	More    bool                // there are more than were read
	Skipped []promotion.Release // what the source environment had between the two, newest first
}

// ReleaseCommit is one of them, as Git has it: anybody can write its subject and authors.
type ReleaseCommit struct {
	SHA     string
	Subject string
	Authors []string // names, the co-authors' too
	At      time.Time
}

// newCommitsCache makes a cache of lists of commits, which differ much in size.
func newCommitsCache[V any](group *cache.Group, name string, commits func(V) []ReleaseCommit) *cache.Cache[string, V] {
	return cache.New(group, cache.Options[string, V]{Name: name, Entries: 10_000, Bytes: maxCommitBytes, Size: func(key string, v V) int64 {
		n := int64(len(key)) + commitBytes
		for _, k := range commits(v) {
			n += commitBytes + int64(len(k.SHA)+len(k.Subject))
			for _, a := range k.Authors {
				n += int64(len(a))
			}
		}
		return n
	}})
}

// ReleaseCommits says for each source environment upstream which commits made a release,
// since the release that an environment has. A source whose history doesn't know the
// release is left out.
func (ag *AuthorGatherer) ReleaseCommits(ctx context.Context, c *branch.ComponentBasis, env, release string) ([]ReleaseCommits, error) {
	there := ""
	if to := c.Env(env); to != nil && to.Release.OK {
		there = to.Release.Value.ID
	}
	var out []ReleaseCommits
	for _, source := range findUpstreamSources(c.Pipeline, env) {
		at := c.Unit.Envs[source]
		if at == nil {
			continue
		}
		head, err := ag.findHead(ctx, c, at, release)
		if err != nil {
			return nil, fmt.Errorf("read what made it in %s: %w", source, err)
		}
		if head == "" {
			continue
		}
		key := strings.Join([]string{c.Snapshot.Repo.ID, source, env, c.Pipeline.LocationOf(at).Key, head, release, there}, "|")
		made, err := ag.made.GetOrLoad(key, func() (ReleaseCommits, error) {
			return ag.findReleaseCommits(ctx, c, at, env, release, there, head)
		})
		if err != nil {
			return nil, fmt.Errorf("read what made it in %s: %w", source, err)
		}
		out = append(out, made)
	}
	return out, nil
}

// findHead finds the commit that brought a release to a source environment last; "" where
// none is known. It is found once for each commit of the source's branch: a body is written
// far more often than somebody pushes.
func (ag *AuthorGatherer) findHead(ctx context.Context, c *branch.ComponentBasis, at *branch.ResolvedEnv, release string) (string, error) {
	tip := c.Snapshot.BranchFor(c.Pipeline.Pipeline, at.Name).Commit
	key := strings.Join([]string{c.Snapshot.Repo.ID, at.Name, c.Pipeline.LocationOf(at).Key, tip, release}, "|")
	if head, ok := ag.heads.Get(key); ok {
		return head, nil
	}
	arrivals, err := ag.findArrivals(ctx, c, at.Name, at, release)
	if err != nil || len(arrivals) == 0 {
		return "", err
	}
	ag.heads.Put(key, arrivals[0])
	return arrivals[0], nil
}

// findReleaseCommits finds what made the release that head brought to a source
// environment, since that environment had what env has now.
func (ag *AuthorGatherer) findReleaseCommits(ctx context.Context, c *branch.ComponentBasis, at *branch.ResolvedEnv, env, release, there,
	head string) (ReleaseCommits, error) {
	made := ReleaseCommits{Source: at.Name, Head: head}
	line, _, err := ag.sourceLog(ctx, c, at.Name, at, head)
	if err != nil {
		return made, err
	}
	for _, ci := range line {
		rel, err := ag.releases.ReadRelease(c.Snapshot.Repo, ci.SHA, c.Pipeline, at)
		if err != nil {
			continue // what couldn't be read there was no release
		}
		id := rel.ID()
		if id == there {
			made.Base = ci.SHA
			break
		}
		if id != release && !slices.ContainsFunc(made.Skipped, func(r promotion.Release) bool { return r.ID == id }) {
			made.Skipped = append(made.Skipped, promotion.Release{ID: id, Name: rel.String()})
		}
	}
	if made.Base == "" {
		made.Skipped = nil
		err = ag.addBringingCommits(ctx, c, at, env, release, &made)
		return made, err
	}
	made.Skipped = made.Skipped[:min(len(made.Skipped), maxSkippedReleases)]
	err = ag.addCommitsBetween(ctx, c, at, &made)
	return made, err
}

// addCommitsBetween adds the commits of both lines of a merge that changed carried fields
// since the base.
func (ag *AuthorGatherer) addCommitsBetween(ctx context.Context, c *branch.ComponentBasis, at *branch.ResolvedEnv,
	made *ReleaseCommits) error {
	r := c.Snapshot.Repo
	scope, err := fieldedit.NewScope(at.Overlay(c.Pipeline.Pipeline))
	if err != nil {
		return err
	}
	tip := c.Snapshot.BranchFor(c.Pipeline.Pipeline, at.Name).Commit
	log, err := ag.git.TouchingBetween(ctx, r, tip, c.Pipeline.Baseline, made.Head, made.Base, scope, maxReleaseCommits+1)
	if err != nil {
		return err
	}
	if made.More = len(log) > maxReleaseCommits; made.More {
		log = log[:maxReleaseCommits]
	}
	for i := range log {
		ci := &log[i]
		if len(ci.Parents) > 0 {
			now := ag.releases.ReleaseIDAt(r, ci.SHA, c.Pipeline, at)
			if now != "" && now == ag.releases.ReleaseIDAt(r, ci.Parents[0], c.Pipeline, at) {
				continue // it changed something else of these files
			}
		}
		made.Commits = append(made.Commits, newReleaseCommit(ci.SHA, ci.Subject, ci.Author.Name, ci.Message, ci.CommitTime))
	}
	return nil
}

// addBringingCommits adds the commits that brought the release's values, where the environment's
// release is not known to have been in the source. Where even that can't be told, it adds the one
// that completed the release.
func (ag *AuthorGatherer) addBringingCommits(ctx context.Context, c *branch.ComponentBasis, at *branch.ResolvedEnv, env, release string,
	made *ReleaseCommits) error {
	commits, err := ag.findBringingCommits(ctx, c, at.Name, env, release)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil || len(commits) == 0 {
		commits, made.More = []string{made.Head}, true
	}
	for _, sha := range commits {
		ci, err := c.Snapshot.Repo.Mirror.Commit(ctx, sha)
		if err != nil {
			return err
		}
		made.Commits = append(made.Commits, newReleaseCommit(ci.SHA, ci.Subject, ci.Author.Name, ci.Message, ci.CommitTime))
	}
	slices.SortStableFunc(made.Commits, func(a, b ReleaseCommit) int { return b.At.Compare(a.At) })
	return nil
}

func newReleaseCommit(sha, subject, author, message string, at time.Time) ReleaseCommit {
	out := ReleaseCommit{SHA: sha, Subject: wording.Clip(subject, maxSubjectBytes), At: at}
	named := []string{author}
	contributors, _ := forge.CoAuthors(message)
	for _, p := range contributors {
		named = append(named, p.Name)
	}
	for _, name := range named {
		name = wording.Clip(strings.TrimSpace(name), maxAuthorBytes)
		if name != "" && !slices.Contains(out.Authors, name) && len(out.Authors) < maxCommitAuthors {
			out.Authors = append(out.Authors, name)
		}
	}
	return out
}

// maxCommitMessage bounds the text of a commit that expressions get; anybody who may push writes
// it.
const maxCommitMessage = 64 << 10

// FindReleaseCommit is the commit that brought a release to a source environment before
// env: the newest, where it came to several or several times.
func (ag *AuthorGatherer) FindReleaseCommit(ctx context.Context, c *branch.ComponentBasis, env, release string) (*policies.Commit, error) {
	var newest *git.CommitInfo
	for _, source := range findUpstreamSources(c.Pipeline, env) {
		at := c.Unit.Envs[source]
		if at == nil {
			continue
		}
		head, err := ag.findHead(ctx, c, at, release)
		if err != nil {
			return nil, fmt.Errorf("which commit brought the release to %s can't be told: %w", source, err)
		}
		if head == "" {
			continue
		}
		info, err := c.Snapshot.Repo.Mirror.Commit(ctx, head)
		if err != nil {
			return nil, fmt.Errorf("the commit that brought the release to %s can't be read: %w", source, err)
		}
		if newest == nil || info.CommitTime.After(newest.CommitTime) {
			newest = info
		}
	}
	switch {
	case newest == nil:
		return nil, errors.New("no history tells which commit brought the release")
	case len(newest.Message) > maxCommitMessage:
		return nil, fmt.Errorf("the message of %s, which brought the release, is longer than %d KiB", wording.Short(newest.SHA),
			maxCommitMessage>>10)
	}
	return &policies.Commit{SHA: newest.SHA, Message: newest.Message, Trailers: newest.Trailers, Time: newest.CommitTime.UTC()}, nil
}
