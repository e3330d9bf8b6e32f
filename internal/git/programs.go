package git

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/liftlock/liftlock/internal/proc"
)

// programs is the engine over a repository's folder: every answer is a git
// program's.
type programs struct {
	dir string // git's own folder

	// These are for every git that runs on it: further arguments before the command, and its
	// environment.
	settings, env, inherit []string

	bounded bool // what strangers wrote is read: programs that read it have limits

	objects *objectReader
	damaged atomic.Bool // a read met what can't be
}

var _ engine = (*programs)(nil)

// initReader readies the struct, whose other fields are filled in.
func (p *programs) initReader() { p.objects = newObjectReader(p) }

func (p *programs) closePrograms() { p.objects.closeProcesses() }

func (p *programs) markDamaged() { p.damaged.Store(true) }

// gitCommand is git on the repository. The explicit --git-dir keeps git from looking for one, and
// from refusing one that another user owns (a volume in a container). That check is for
// repositories that were found.
func (p *programs) gitCommand(args ...string) proc.Command {
	return proc.Command{
		Program: "git",
		Args: slices.Concat([]string{
			"--git-dir=" + p.dir, "--no-replace-objects", "--literal-pathspecs",
		}, p.settings, args),
		Dir:       p.dir,
		Env:       p.env,
		Inherit:   p.inherit,
		MaxStdout: maxList,
		Grace:     killGrace,
	}
}

// runGit runs a git command that only works on the repository.
func (p *programs) runGit(ctx context.Context, c proc.Command) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, localTimeout)
	defer cancel()
	result, err := proc.Run(ctx, c)
	return result.Stdout, err
}

// localError wraps the failure of a command that only works on the repository.
func (p *programs) localError(op string, err error) error {
	e := &Error{Op: op, Err: err}
	if maybeDamaged(err) {
		e.Kind = ErrCorrupt
		p.markDamaged()
	}
	return e
}

func (p *programs) readObject(spec string) (object, error) {
	o, err := p.objects.readObject(spec)
	if errors.Is(err, ErrCorrupt) {
		p.markDamaged()
	}
	return o, err
}

func (p *programs) findObject(spec string) (object, error) {
	o, err := p.objects.findObject(spec)
	if errors.Is(err, ErrCorrupt) {
		p.markDamaged()
	}
	return o, err
}

func (p *programs) readCommit(sha string) (*CommitInfo, error) {
	o, err := p.readObject(sha)
	if err == nil && o.kind != "commit" {
		err = errMissing
	}
	if err != nil {
		return nil, err
	}
	c, err := parseCommit(o.data)
	if err != nil {
		return nil, &Error{Op: "read commit " + sha, Kind: ErrCorrupt, Err: err}
	}
	c.SHA = sha
	return c, nil
}

func (p *programs) findMergeBase(ctx context.Context, a, b string) (sha string, ok bool, err error) {
	c := p.gitCommand("merge-base", a, b)
	c.Limits = p.limits()
	out, err := p.runGit(ctx, c)
	if exitCode(err) == 1 {
		return "", false, nil
	}
	if why := pastLimits(err); why != "" {
		return "", false, &Error{Op: "find what " + a + " and " + b + " have in common", Kind: ErrTooLarge,
			Hint: "finding what it is based on " + why}
	}
	if err != nil {
		return "", false, p.localError("find what "+a+" and "+b+" have in common", err)
	}
	sha = strings.TrimSpace(string(out))
	return sha, true, checkSHA(sha)
}

func (p *programs) isAncestor(ctx context.Context, ancestor, descendant string) (bool, error) {
	switch {
	case p.isNearAncestor(ancestor, descendant):
		return true, nil
	case p.isNearAncestor(descendant, ancestor): // no commit comes before its own ancestor
		return false, nil
	}
	_, err := p.runGit(ctx, p.gitCommand("merge-base", "--is-ancestor", ancestor, descendant))
	if err != nil && exitCode(err) != 1 {
		return false, p.localError("compare "+ancestor+" with "+descendant, err)
	}
	return err == nil, nil
}

// nearCommits is how many commits are read before git is asked for the rest.
const nearCommits = 16

// isNearAncestor says that a commit is among the nearest ancestors of another: after a push
// it mostly is, and finding that takes no program to be started. False is also
// that this can't be told.
func (p *programs) isNearAncestor(ancestor, descendant string) bool {
	seen := map[string]bool{descendant: true}
	queue := []string{descendant}
	for i := 0; i < len(queue) && i < nearCommits; i++ {
		c, err := p.readCommit(queue[i])
		if err != nil {
			return false
		}
		for _, parent := range c.Parents {
			if parent == ancestor {
				return true
			}
			if !seen[parent] {
				seen[parent] = true
				queue = append(queue, parent)
			}
		}
	}
	return false
}
