package emulator

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// branchGuard lets only some accounts push to some branches. On GitHub it is a ruleset that
// restricts creations and updates with a bypass list, on GitLab a wildcard with accounts that may
// push.
type branchGuard struct {
	id      int64
	pattern string         // of GitHub's kind: liftlock/**/*
	matches *regexp.Regexp // what the pattern matches, as a whole; grep -E reads it too
	pushers []string
}

// compilePattern reads a pattern as GitHub does, by Ruby's File.fnmatch with FNM_PATHNAME
// (docs.github.com, "Creating rulesets for a repository"). **/ is any number of folders, none too,
// and any other star stays within one, so that liftlock/** leaves liftlock/shop/qa/web open.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	expression := strings.NewReplacer(`\*\*/`, `([^/]+/)*`, `\*\*`, `[^/]*`, `\*`, `[^/]*`).Replace(regexp.QuoteMeta(pattern))
	return regexp.Compile("^" + expression + "$")
}

// wildcard is the pattern as GitLab has it, where a * stands for slashes too; false where GitLab
// has none that matches the same branches.
func (b *branchGuard) wildcard() (string, bool) {
	wildcard := strings.ReplaceAll(b.pattern, "**/*", "*")
	return wildcard, strings.Count(wildcard, "*") == strings.Count(b.pattern, "**/*")
}

func (b *branchGuard) admits(a *account) bool { return slices.Contains(b.pushers, a.login) }

// GuardBranches lets only some accounts push to the branches that a pattern of GitHub's kind
// names, such as liftlock/**/*.
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
	matches, err := compilePattern(pattern)
	if err != nil {
		return fmt.Errorf("guarding branches of %s: %w", repo, err)
	}
	if err := writeUpdateHook(r.git.dir); err != nil {
		return fmt.Errorf("guarding branches of %s: %w", repo, err)
	}
	r.guards = append(slices.DeleteFunc(r.guards, func(g *branchGuard) bool { return g.pattern == pattern }),
		&branchGuard{id: f.nextID(), pattern: pattern, matches: matches, pushers: logins})
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

// closedRefs are the expressions, a line each, of the branches that an account may not push to.
func (f *Forge) closedRefs(r *repository, a *account) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var closed []string
	for _, g := range r.guards {
		if !g.admits(a) {
			closed = append(closed, g.matches.String())
		}
	}
	return strings.Join(closed, "\n")
}

// closedVariable tells the hook what may not be pushed to.
const closedVariable = "EMULATOR_CLOSED_REFS"

// updateHook refuses a push to a guarded branch, as the forges' own hooks do.
const updateHook = `#!/bin/sh
[ -n "$` + closedVariable + `" ] || exit 0
if printf '%s\n' "${1#refs/heads/}" | grep -Eqe "$` + closedVariable + `"; then
	echo "Cannot create or update this protected ref." >&2
	exit 1
fi
`

// writeUpdateHook puts it into a bare repository.
func writeUpdateHook(dir string) error {
	hooks := filepath.Join(dir, "hooks")
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(hooks, "update"), []byte(updateHook), 0o755)
}
