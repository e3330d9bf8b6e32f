package git

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/proc"
)

// repository is what a Mirror and a Checkout have in common: the objects and
// the history of one repository on this machine, read through git. All of its
// methods only read, and are safe for concurrent use.
type repository struct {
	dir    string // git's own folder
	name   string // in messages: "the mirror of https://…"
	remedy string // what to do when an object is missing

	// Of every git that runs on it: further arguments before the command, and
	// its environment.
	settings, env, inherit []string

	objects *objectReader
	caches  caches
	damaged atomic.Bool // a read met what can't be
}

// initHelpers readies the struct, whose other fields are filled in.
func (r *repository) initHelpers(group *cache.Group) {
	r.caches = newCaches(group)
	r.objects = newObjectReader(r)
}

// Close ends the repository's helper processes. Later reads start them again,
// so it is only needed at the end of its use.
func (r *repository) Close() error {
	r.objects.closeProcesses()
	return nil
}

// gitCommand is git on the repository. The explicit --git-dir keeps git from
// looking for one, and from refusing one that another user owns (a volume in a
// container): that check is for repositories that were found.
func (r *repository) gitCommand(args ...string) proc.Command {
	return proc.Command{
		Program: "git",
		Args: slices.Concat([]string{
			"--git-dir=" + r.dir, "--no-replace-objects", "--literal-pathspecs",
		}, r.settings, args),
		Dir:       r.dir,
		Env:       r.env,
		Inherit:   r.inherit,
		MaxStdout: maxList,
		Grace:     killGrace,
	}
}

// runGit runs a git command that only works on the repository.
func (r *repository) runGit(ctx context.Context, c proc.Command) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, localTimeout)
	defer cancel()
	result, err := proc.Run(ctx, c)
	return result.Stdout, err
}

// MergeBase is the newest commit that both histories have, what a pull request
// is compared with; ok is false when they have none in common, or when a
// shallow clone is cut off before it. ErrUnknownCommit when the repository
// lacks either.
func (r *repository) MergeBase(ctx context.Context, a, b string) (sha string, ok bool, err error) {
	if err := r.requireCommits(ctx, a, b); err != nil {
		return "", false, err
	}
	out, err := r.runGit(ctx, r.gitCommand("merge-base", a, b))
	if exitCode(err) == 1 {
		return "", false, nil
	}
	if err != nil {
		return "", false, r.localError("find what "+a+" and "+b+" have in common", err)
	}
	sha = strings.TrimSpace(string(out))
	return sha, true, checkSHA(sha)
}
