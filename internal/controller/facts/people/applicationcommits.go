package people

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline"
)

const (
	// maxApplicationRanges bounds the pairs of revisions of one release that are compared.
	maxApplicationRanges = 3
	// missingAge is how long it is remembered that a repository or a revision isn't there,
	// to which a tag may be pushed late.
	missingAge = 10 * time.Minute
)

// ApplicationCommits are the commits of an application's own repository between the
// revisions that a carried value names before and after.
type ApplicationCommits struct {
	Repository forge.Repo
	From, To   string
	Image      string          // with an error, whose source can't be read; then there is no repository
	Commits    []ReleaseCommit // newest first, at most maxReleaseCommits
	More       bool            // there are more than the forge lists or than these
	Err        error           // why they can't be read; then there are none
}

// rememberedCommits is what the forge said of a range, and when.
type rememberedCommits struct {
	commits []ReleaseCommit
	more    bool
	err     error
	at      time.Time
}

// ApplicationCommits reads the new commits in the application's own repository with a release, as
// it comes to an environment. The pipeline's source names that repository, or else the images do.
// It must have the tracked repository's owner: people who may merge there must not read others'
// repositories with our credentials. Values that name no revision aren't mentioned, unless none
// does.
func (ag *AuthorGatherer) ApplicationCommits(ctx context.Context, c *branch.ComponentBasis, env, release string) []ApplicationCommits {
	source, err := pipeline.ParseSource(c.Pipeline.Spec.Source)
	if err != nil { // there is none
		return ag.imageCommits(ctx, c, env, release)
	}
	component := c.Unit.Unit.Component
	owner, name, ok := source.Repository(component)
	if !ok {
		return nil
	}
	r := c.Snapshot.Repo
	repository := forge.Repo{Owner: owner, Name: name}
	if !strings.EqualFold(owner, r.Name.Owner) {
		return []ApplicationCommits{{Repository: repository, Err: fmt.Errorf("spec.source: only repositories of %s are read, the owner "+
			"of this one", r.Name.Owner)}}
	}
	var out, missing []ApplicationCommits
	for _, values := range changedValues(c, env, release) {
		from, known := source.Revision(component, values[0])
		to, named := source.Revision(component, values[1])
		if !known || !named || from == to {
			continue
		}
		found := ag.compareApplication(ctx, r, repository, from, to)
		if errors.Is(found.Err, forge.ErrNotFound) {
			missing = append(missing, found)
		} else {
			out = append(out, found)
		}
	}
	if len(out) == 0 && len(missing) > 0 {
		return missing[:1]
	}
	return out
}

// changedValues are the values that a release changes in an environment, before and after,
// each pair once, in the order of its fields: of images their tags.
func changedValues(c *branch.ComponentBasis, env, release string) [][2]string {
	to := c.Env(env)
	if to == nil || !to.Release.OK {
		return nil
	}
	old := ValuesOf(c.Contents[to.Release.Value.ID])
	var out [][2]string
	for _, f := range c.Contents[release].Fields {
		was, had := old[f.Key()]
		pair := [2]string{was, f.Value}
		if f.Kind == fieldedit.KindFile || !had || was == f.Value || slices.Contains(out, pair) {
			continue
		}
		if f.Kind == fieldedit.KindImage && !strings.HasSuffix(f.Path, ".newTag") {
			continue
		}
		if out = append(out, pair); len(out) == maxApplicationRanges {
			break
		}
	}
	return out
}

// compareApplication asks the forge for what one revision has and another hasn't. The answer is
// remembered: a tag stays at its commit.
func (ag *AuthorGatherer) compareApplication(ctx context.Context, r *branch.Repository, repository forge.Repo, from,
	to string) ApplicationCommits {
	key := strings.Join([]string{r.ForgeRef, repository.String(), from, to}, "|")
	last, known := ag.applications.Get(key)
	now := ag.now()
	age := unknownAge
	if errors.Is(last.err, forge.ErrNotFound) {
		age = missingAge
	}
	if !known || last.err != nil && now.Sub(last.at) >= age {
		commits, err := r.Forge.Commits(ctx, repository, from, to)
		next := rememberedCommits{err: err, at: now}
		if errors.Is(err, forge.ErrTooMany) {
			next.more, next.err = true, nil
		}
		slices.Reverse(commits)
		for _, k := range commits[:min(len(commits), maxReleaseCommits)] {
			subject, _, _ := strings.Cut(strings.TrimSpace(k.Message), "\n")
			next.commits = append(next.commits, newReleaseCommit(k.SHA, subject, k.Author, k.Message, k.At))
		}
		next.more = next.more || len(commits) > maxReleaseCommits
		if last = next; ctx.Err() == nil {
			ag.applications.Put(key, next)
		}
	}
	return ApplicationCommits{Repository: repository, From: from, To: to, Commits: last.commits, More: last.more, Err: last.err}
}
