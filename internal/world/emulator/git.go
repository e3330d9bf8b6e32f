package emulator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/proc"
)

const (
	// gitTimeout ends a git command that hangs; each takes milliseconds.
	gitTimeout = 30 * time.Second
	// zeroCommit is how Git spells the absence of a commit.
	zeroCommit = "0000000000000000000000000000000000000000"
)

// errNoObject says that a revision or path does not exist.
var errNoObject = errors.New("no such object")

// bareRepo is a bare repository on disk. Its methods may be called concurrently;
// changes of references are compare-and-swap.
type bareRepo struct{ dir string }

// gitEnv keeps the machine's own Git configuration out: the emulator must
// behave the same everywhere.
func gitEnv(home string) []string {
	return []string{
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"HOME=" + home, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}
}

// initBareRepo creates an empty bare repository whose HEAD is the branch.
func initBareRepo(dir, branch string) (*bareRepo, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("creating the repository's folder: %w", err)
	}
	b := &bareRepo{dir: dir}
	if _, err := b.runIn(filepath.Dir(dir), nil, nil, "init", "--quiet", "--bare", "--initial-branch="+branch, "--", dir); err != nil {
		return nil, err
	}
	// One write instead of a command a key. Durability is no concern of a
	// world that ends with its process, and fsync is most of a push's time.
	config := "[core]\n\tfsync = none\n[gc]\n\tauto = 0\n[http]\n\treceivepack = true\n" +
		"[receive]\n\tautogc = false\n\thideRefs = refs/pull\n\thideRefs = refs/merge-requests\n" +
		"[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n"
	f, err := os.OpenFile(filepath.Join(dir, "config"), os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("configuring the repository: %w", err)
	}
	_, err = f.WriteString(config)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("configuring the repository: %w", err)
	}
	return b, nil
}

// runGit runs one command in the repository. It does not take a caller's context:
// a client that goes away must not leave half an effect behind.
func (b *bareRepo) runGit(args ...string) (string, error) {
	return b.runIn(b.dir, nil, nil, args...)
}

func (b *bareRepo) runIn(dir string, stdin []byte, env []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), gitTimeout)
	defer cancel()
	res, err := proc.Run(ctx, proc.Command{
		Program: "git", Args: args, Dir: dir, Stdin: stdin,
		Env: append(gitEnv(dir), env...),
	})
	return string(res.Stdout), err
}

// exitCode is the program's own exit code, -1 when it has none.
func exitCode(err error) int {
	var e *proc.Error
	if errors.As(err, &e) && e.Err == nil && e.Signal == "" {
		return e.ExitCode
	}
	return -1
}

// listRefs reads all branches and tags, by full name.
func (b *bareRepo) listRefs() (map[string]string, error) {
	out, err := b.runGit("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags")
	if err != nil {
		return nil, err
	}
	refs := map[string]string{}
	for line := range strings.Lines(out) {
		if name, id, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			refs[name] = id
		}
	}
	return refs, nil
}

// listMergedRefs lists the references below a prefix whose commits are reachable from a tip.
func (b *bareRepo) listMergedRefs(prefix, tip string) (map[string]bool, error) {
	out, err := b.runGit("for-each-ref", "--format=%(refname)", "--merged="+tip, prefix)
	if err != nil {
		return nil, err
	}
	merged := map[string]bool{}
	for _, name := range strings.Fields(out) {
		merged[name] = true
	}
	return merged, nil
}

// resolveRevision gives the commit that a revision names; errNoObject when there is none.
func (b *bareRepo) resolveRevision(rev string) (string, error) {
	out, err := b.runGit("rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		if exitCode(err) > 0 {
			return "", fmt.Errorf("%s: %w", rev, errNoObject)
		}
		return "", err
	}
	return strings.TrimSpace(out), nil
}

// objectID gives the id of what a commit has at a path (a blob's or a tree's);
// errNoObject when there is nothing.
func (b *bareRepo) objectID(commit, path string) (string, error) {
	out, err := b.runGit("rev-parse", "--verify", "--quiet", "--end-of-options", commit+":"+path)
	if err != nil {
		if exitCode(err) > 0 {
			return "", fmt.Errorf("%s:%s: %w", commit, path, errNoObject)
		}
		return "", err
	}
	return strings.TrimSpace(out), nil
}

// listTree lists a commit's files and folders: path → object id.
func (b *bareRepo) listTree(rev string) (map[string]string, error) {
	out, err := b.runGit("ls-tree", "-r", "-t", "-z", "--full-tree", "--end-of-options", rev)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(out))
	tree := map[string]string{".": hex.EncodeToString(sum[:])}
	for entry := range strings.SplitSeq(out, "\x00") {
		head, path, _ := strings.Cut(entry, "\t")
		if f := strings.Fields(head); len(f) == 3 {
			tree[path] = f[2]
		}
	}
	return tree, nil
}

// readFile reads a blob at a commit; errNoObject when there is none.
func (b *bareRepo) readFile(commit, path string) ([]byte, error) {
	out, err := b.runGit("cat-file", "blob", commit+":"+path)
	if err != nil {
		if exitCode(err) > 0 {
			return nil, fmt.Errorf("%s:%s: %w", commit, path, errNoObject)
		}
		return nil, err
	}
	return []byte(out), nil
}

// isAncestor says whether b is reachable from a descendant, or is it.
func (b *bareRepo) isAncestor(ancestor, descendant string) (bool, error) {
	if ancestor == descendant {
		return true, nil
	}
	_, err := b.runGit("merge-base", "--is-ancestor", ancestor, descendant)
	if err == nil {
		return true, nil
	}
	if exitCode(err) == 1 {
		return false, nil
	}
	return false, err
}

// mergeBase is the newest commit that two have in common.
func (b *bareRepo) mergeBase(x, y string) (string, error) {
	out, err := b.runGit("merge-base", "--end-of-options", x, y)
	return strings.TrimSpace(out), err
}

// revList is what head has and base has not, oldest first.
func (b *bareRepo) revList(base, head string) ([]string, error) {
	out, err := b.runGit("rev-list", "--reverse", "--topo-order", "--end-of-options", head, "^"+base)
	if err != nil {
		return nil, err
	}
	return strings.Fields(out), nil
}

// updateRef moves a reference from old to commit; old is zeroCommit for one
// that must not exist, empty for any.
func (b *bareRepo) updateRef(ref, commit, old string) error {
	args := []string{"update-ref", "--end-of-options", ref, commit}
	if old != "" {
		args = append(args, old)
	}
	_, err := b.runGit(args...)
	return err
}

func (b *bareRepo) deleteRef(ref, old string) error {
	_, err := b.runGit("update-ref", "-d", "--end-of-options", ref, old)
	return err
}

// gitIdent is an author or committer.
type gitIdent struct {
	Name, Email string
	When        time.Time
}

func (g gitIdent) envVars(role string) []string {
	return []string{
		"GIT_" + role + "_NAME=" + g.Name, "GIT_" + role + "_EMAIL=" + g.Email,
		"GIT_" + role + "_DATE=@" + strconv.FormatInt(g.When.Unix(), 10) + " +0000",
	}
}

// commitTree makes a commit object and gives its id; no reference moves.
func (b *bareRepo) commitTree(tree string, parents []string, author, committer gitIdent, message string) (string, error) {
	args := []string{"commit-tree", tree}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	env := append(author.envVars("AUTHOR"), committer.envVars("COMMITTER")...)
	out, err := b.runIn(b.dir, []byte(message), env, args...)
	return strings.TrimSpace(out), err
}

// mergeTree merges two commits and gives the tree; clean is false when they
// conflict, and then there is none.
func (b *bareRepo) mergeTree(ours, theirs string) (tree string, clean bool, err error) {
	out, err := b.runGit("merge-tree", "--write-tree", "--no-messages", ours, theirs)
	if err != nil {
		if exitCode(err) == 1 {
			return "", false, nil
		}
		return "", false, err
	}
	return strings.TrimSpace(out), true, nil
}
