package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// Checkout is a repository as a person has it on disk: with a working tree or
// bare, full or shallow, a linked work tree or a submodule. It is only read:
// nothing is written, the network is not used, and what its configuration
// names (hooks, filters, drivers, a file system monitor) is not run. It is
// safe for concurrent use.
type Checkout struct {
	repository
	*programs
	top string // the working tree's root; "" when there is none
}

// OpenCheckout opens the repository that dir ("" is the current folder) lies
// in. ErrNoRepository when there is none there or above. Close ends its helper
// processes.
func OpenCheckout(ctx context.Context, dir string) (*Checkout, error) {
	if dir == "" {
		dir = "."
	}
	op := "open the repository in " + shortenForLog(dir)
	if _, err := gitVersion(ctx); err != nil {
		return nil, err
	}
	at, err := filepath.Abs(dir)
	if err == nil {
		at, err = filepath.EvalSymlinks(at)
	}
	if err != nil {
		return nil, &Error{Op: op, Kind: ErrNoRepository, Err: plainPath(err)}
	}
	for {
		gitDir, top, err := repositoryAt(at)
		if err != nil {
			return nil, &Error{Op: op, Kind: ErrNoRepository, Err: err}
		}
		if gitDir != "" {
			return newCheckout(gitDir, top), nil
		}
		up := filepath.Dir(at)
		if up == at {
			return nil, &Error{Op: op, Kind: ErrNoRepository, Hint: "it is in no Git repository: name a checkout or a bare repository"}
		}
		at = up
	}
}

func newCheckout(gitDir, top string) *Checkout {
	p := &programs{
		dir: gitDir,
		// The repository's configuration may be anybody's, so all that it could start or write is
		// off; the user's own says what git ignores.
		settings: []string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false", "-c",
			"core.askPass="},
		inherit: []string{"HOME", "XDG_CONFIG_HOME"},
		env: []string{
			"GIT_CONFIG_NOSYSTEM=1",
			"GIT_TERMINAL_PROMPT=0",
			"GIT_ALLOW_PROTOCOL=", // a partial clone would fetch what is missing
			"GIT_NO_LAZY_FETCH=1",
			"GIT_OPTIONAL_LOCKS=0",
			"GIT_PAGER=cat",
		},
	}
	p.initReader()
	const remedy = "if this is a shallow or partial clone, fetch the rest of it (git fetch --unshallow, or git fetch --refetch); " +
		"otherwise see git fsck"
	return &Checkout{repository: newRepository(p, nil, "the repository in "+gitDir, remedy), programs: p, top: top}
}

// repositoryAt looks for a repository whose root is dir: git's own folder and
// the working tree's root, which a bare one doesn't have. It is looked for here
// and not by git, which would take its word from the repository's own
// configuration for where the working tree is.
func repositoryAt(dir string) (gitDir, top string, err error) {
	dot := filepath.Join(dir, ".git")
	info, err := os.Stat(dot)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", "", plainPath(err)
	case info.IsDir() && isGitDir(dot):
		return dot, dir, nil
	case info.Mode().IsRegular():
		gitDir, err := linkedGitDir(dot)
		return gitDir, dir, err
	}
	if isGitDir(dir) {
		return dir, "", nil
	}
	return "", "", nil
}

// linkedGitDir follows the .git file of a linked work tree or a submodule.
func linkedGitDir(file string) (string, error) {
	const most = 8192
	info, err := os.Stat(file)
	if err != nil || info.Size() > most {
		return "", fmt.Errorf("%s does not say where the repository is", file)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", plainPath(err)
	}
	to, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), "gitdir: ")
	if !ok {
		return "", fmt.Errorf("%s does not say where the repository is", file)
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(file), to)
	}
	if _, err := os.Stat(filepath.Join(to, "HEAD")); err != nil {
		return "", fmt.Errorf("%s names %s, which is no repository", file, to)
	}
	return to, nil
}

// isGitDir is git's own test: HEAD, objects and refs.
func isGitDir(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// plainPath drops the system call's name from an error about a path.
func plainPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", pe.Path, pe.Err)
	}
	return err
}

// Dir is the working tree's root, or a bare repository's folder.
func (c *Checkout) Dir() string {
	if c.top == "" {
		return c.dir
	}
	return c.top
}

// Bare says that there is no working tree.
func (c *Checkout) Bare() bool { return c.top == "" }

// Resolve turns a revision as people write it (a branch, a tag, a short id,
// HEAD~2) into a commit's full id. Where a tag has a branch's name it is the branch,
// as everywhere in Argo CD and on forges; tags/NAME is the tag. ErrUnknownCommit when
// it names none.
func (c *Checkout) Resolve(ctx context.Context, rev string) (string, error) {
	op := fmt.Sprintf("find the revision %q in %s", shortenForLog(rev), c.name)
	if rev == "" || strings.ContainsAny(rev, "\n\x00") {
		return "", &Error{Op: op, Kind: ErrUnknownCommit}
	}
	var out []byte
	var err error
	for _, name := range branchesFirst(rev) {
		if out, err = c.runGit(ctx, c.gitCommand("rev-parse", "--verify", "--end-of-options", name+"^{commit}")); err == nil {
			break
		}
	}
	if exitCode(err) > 0 {
		e := &Error{Op: op, Kind: ErrUnknownCommit}
		switch {
		case strings.Contains(stderrOf(err), "ambiguous"):
			e.Hint = "it is the beginning of several ids: write more of it"
		case rev == "HEAD":
			e.Hint = "nothing has been committed yet"
		default:
			e.Hint = "see git branch --all and git tag; what only the remote has must be fetched first"
		}
		return "", e
	}
	if err != nil {
		return "", c.localError(op, err)
	}
	sha := strings.TrimSpace(string(out))
	if len(sha) == 64 {
		return "", &Error{Op: op, Kind: ErrInvalid, Hint: "repositories with SHA-256 ids are not supported"}
	}
	return sha, checkSHA(sha)
}

// branchesFirst lists the meanings of a revision in the order in which they are tried. git itself
// prefers a tag to a branch of its name, and says so on stderr alone. In a checkout that a build
// made, the branch may be there as the remote's alone.
func branchesFirst(rev string) []string {
	name := rev
	if end := strings.IndexAny(rev, "~^@:"); end >= 0 {
		name = rev[:end]
	}
	isFullRef := slices.Contains([]string{"refs", "heads", "tags", "remotes"}, strings.Split(name, "/")[0]) && strings.Contains(name, "/")
	if name == "" || isFullRef || isSHA(name) || strings.HasSuffix(name, "HEAD") { // FETCH_HEAD and its like are no refs
		return []string{rev}
	}
	return []string{"refs/heads/" + rev, originPrefix + rev, rev}
}

// Branch is the branch that is checked out, also one without a commit yet; ""
// when none is.
func (c *Checkout) Branch(ctx context.Context) (string, error) {
	out, err := c.runGit(ctx, c.gitCommand("symbolic-ref", "--quiet", "HEAD"))
	if exitCode(err) == 1 {
		return "", nil
	}
	if err != nil {
		return "", c.localError("read HEAD of "+c.name, err)
	}
	branch, _ := strings.CutPrefix(strings.TrimSpace(string(out)), "refs/heads/")
	return branch, nil
}

// defaultBranches are looked for in this order.
var defaultBranches = []string{originPrefix + "main", originPrefix + "master", "refs/heads/main", "refs/heads/master"}

const originPrefix = "refs/remotes/origin/"

// DefaultBranch is the branch that the remote has checked out, as of the clone. That is the target
// of origin/HEAD, else the branch main or master that origin or this repository has. In a bare
// repository it is the one that HEAD names. It is "" when there is none of these.
func (c *Checkout) DefaultBranch(ctx context.Context) (string, error) {
	if c.Bare() {
		return c.Branch(ctx)
	}
	out, err := c.runGit(ctx, c.gitCommand(append([]string{"for-each-ref", "--format=%(refname) %(symref)", originPrefix + "HEAD"},
		defaultBranches...)...))
	if err != nil {
		return "", c.localError("find the default branch of "+c.name, err)
	}
	there := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		name, to, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if branch, ok := strings.CutPrefix(to, originPrefix); ok && name == originPrefix+"HEAD" {
			return branch, nil
		}
		there[name] = true
	}
	for _, name := range defaultBranches {
		if there[name] {
			return name[strings.LastIndexByte(name, '/')+1:], nil
		}
	}
	return "", nil
}

// Branches are the branches and their commits: as the remote has them, as far as
// was fetched, and those that are only here.
func (c *Checkout) Branches(ctx context.Context) (map[string]string, error) {
	// sorted: the remote's come last
	out, err := c.runGit(ctx, c.gitCommand("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/", originPrefix))
	if err != nil {
		return nil, c.localError("list the branches of "+c.name, err)
	}
	heads := map[string]string{}
	for line := range strings.Lines(string(out)) {
		sha, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		heads[strings.TrimPrefix(strings.TrimPrefix(ref, headsPrefix), originPrefix)] = sha
	}
	return heads, nil
}

// Tags are the names of the tags, sorted.
func (c *Checkout) Tags(ctx context.Context) ([]string, error) {
	out, err := c.runGit(ctx, c.gitCommand("for-each-ref", "--format=%(refname)", tagsPrefix))
	if err != nil {
		return nil, c.localError("list the tags of "+c.name, err)
	}
	var tags []string
	for line := range strings.Lines(string(out)) {
		tags = append(tags, strings.TrimPrefix(strings.TrimSuffix(line, "\n"), tagsPrefix))
	}
	return tags, nil
}

// RemoteURLs are the addresses of the repository's remotes as they are
// configured, and as git's url.….insteadOf settings rewrite them, sorted. They
// may hold credentials.
func (c *Checkout) RemoteURLs(ctx context.Context) ([]string, error) {
	out, err := c.runGit(ctx, c.gitCommand("config", "--null", "--get-regexp", `^(remote\..*\.(url|pushurl)|url\..*\.insteadof)$`))
	if exitCode(err) == 1 {
		return nil, nil // none
	}
	if err != nil {
		return nil, c.localError("read the remotes of "+c.name, err)
	}
	var written []string
	instead := map[string]string{} // what an address begins with → what git takes for it
	for entry := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		key, value, ok := strings.Cut(string(entry), "\n")
		switch {
		case !ok || value == "":
		case strings.HasPrefix(key, "remote."):
			written = append(written, value)
		default:
			instead[value] = strings.TrimSuffix(strings.TrimPrefix(key, "url."), ".insteadof")
		}
	}
	urls := map[string]bool{}
	for _, u := range written {
		urls[u] = true
		longest := ""
		for from := range instead {
			if strings.HasPrefix(u, from) && len(from) > len(longest) {
				longest = from
			}
		}
		if longest != "" {
			urls[instead[longest]+u[len(longest):]] = true
		}
	}
	all := make([]string, 0, len(urls))
	for u := range urls {
		all = append(all, u)
	}
	sort.Strings(all)
	return all, nil
}

// RemoteURL is the address of a remote as it is configured; empty where there is no such remote.
func (c *Checkout) RemoteURL(ctx context.Context, remote string) (string, error) {
	out, err := c.runGit(ctx, c.gitCommand("config", "--get", "remote."+remote+".url"))
	if exitCode(err) == 1 {
		return "", nil
	}
	if err != nil {
		return "", c.localError("read the remote "+remote+" of "+c.name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Shallow says that the clone's history is cut off: what came before isn't here.
func (c *Checkout) Shallow(ctx context.Context) (bool, error) {
	out, err := c.runGit(ctx, c.gitCommand("rev-parse", "--is-shallow-repository"))
	if err != nil {
		return false, c.localError("find out how much history "+c.name+" has", err)
	}
	return strings.TrimSpace(string(out)) == "true", nil
}
