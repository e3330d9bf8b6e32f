package emulator

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// branchGuard lets only some accounts push to some branches: on GitHub a ruleset that restricts
// creations and updates with a bypass list, on GitLab a wildcard with accounts that may push.
type branchGuard struct {
	id      int64
	pattern string // of GitHub's kind: liftlock/**/*
	pushers []string
}

// wildcard is the pattern as GitLab has it, where a * stands for slashes too.
func (g *branchGuard) wildcard() string {
	return strings.ReplaceAll(strings.ReplaceAll(g.pattern, "**/*", "*"), "**", "*")
}

// matches says whether a branch is guarded.
func (g *branchGuard) matches(branch string) bool {
	before, after, _ := strings.Cut(g.wildcard(), "*")
	return branch == g.pattern || strings.Contains(g.pattern, "*") && len(branch) >= len(before)+len(after) && strings.HasPrefix(branch, before) && strings.HasSuffix(branch, after)
}

func (g *branchGuard) admits(a *account) bool { return slices.Contains(g.pushers, a.login) }

// GuardBranches lets only some accounts push to the branches that a pattern with at most one
// wildcard names, such as liftlock/**/*.
func (f *Forge) GuardBranches(repo, pattern string, logins ...string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findRepository(repo)
	if err != nil {
		return err
	}
	for _, login := range logins {
		if _, err := f.findAccount(login); err != nil {
			return fmt.Errorf("guarding branches of %s: %w", repo, err)
		}
	}
	if err := writeUpdateHook(r.git.dir); err != nil {
		return fmt.Errorf("guarding branches of %s: %w", repo, err)
	}
	r.guards = append(slices.DeleteFunc(r.guards, func(g *branchGuard) bool { return g.pattern == pattern }), &branchGuard{id: f.nextID(), pattern: pattern, pushers: logins})
	return nil
}

// UnguardBranches lets everybody who may write push everywhere again.
func (f *Forge) UnguardBranches(repo string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findRepository(repo)
	if err != nil {
		return err
	}
	r.guards = nil
	return nil
}

// closedRefs are the patterns, as a shell's case has them, of what an account may not push to.
func (f *Forge) closedRefs(r *repository, a *account) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var closed []string
	for _, g := range r.guards {
		if !g.admits(a) {
			closed = append(closed, "refs/heads/"+g.wildcard())
		}
	}
	return strings.Join(closed, " ")
}

// closedVariable tells the hook what may not be pushed to.
const closedVariable = "EMULATOR_CLOSED_REFS"

// updateHook refuses a push to a guarded branch, as the forges' own hooks do.
const updateHook = `#!/bin/sh
set -f
for pattern in $` + closedVariable + `; do
	case "$1" in $pattern) echo "Cannot create or update this protected ref." >&2; exit 1;; esac
done
`

// writeUpdateHook puts it into a bare repository.
func writeUpdateHook(dir string) error {
	hooks := filepath.Join(dir, "hooks")
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(hooks, "update"), []byte(updateHook), 0o755)
}
