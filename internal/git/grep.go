package git

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/proc"
)

// Grep lists the files of the tree that have a line which an extended regular
// expression matches, among those whose names match one of git's glob
// pathspecs; sorted. ErrUnknownCommit when the repository lacks the commit.
func (t *Tree) Grep(ctx context.Context, expression string, globs ...string) ([]string, error) {
	if err := t.repo.requireCommits(ctx, t.sha); err != nil {
		return nil, err
	}
	names, err := t.repo.engine.grepFiles(ctx, t.sha, expression, globs)
	if err != nil {
		return nil, fmt.Errorf("search the files of %s: %w", t.repo.name, err)
	}
	return names, nil
}

func (p *programs) grepFiles(ctx context.Context, commit, expression string, globs []string) ([]string, error) {
	names, err := p.runGrep(ctx, p.gitCommand(grepArgs(expression, commit, globs)...))
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], commit+":")
	}
	return names, err
}

func grepArgs(expression, where string, globs []string) []string {
	args := []string{"grep", "--text", "--null", "--files-with-matches", "--no-recurse-submodules", "--no-color", "--extended-regexp",
		"-e", expression}
	return slices.Concat(args, []string{where, "--"}, globs)
}

// runGrep runs git grep, whose globs are ours.
func (p *programs) runGrep(ctx context.Context, c proc.Command) ([]string, error) {
	c.Args = slices.DeleteFunc(c.Args, func(a string) bool { return a == "--literal-pathspecs" })
	out, err := p.runGit(ctx, c)
	if exitCode(err) == 1 {
		return nil, nil // nothing matches
	}
	if err != nil {
		return nil, p.localError("git grep", err)
	}
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	slices.Sort(names)
	return slices.Compact(names), nil
}
