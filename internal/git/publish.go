package git

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/proc"
	"github.com/liftlock/liftlock/internal/wording"
)

// publishTimeout bounds one fetch or push of a checkout's branch.
const publishTimeout = 10 * time.Minute

// ownSettings are variables that would lead git to another repository, or change what its answers look like.
var ownSettings = []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY",
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_TRACE", "GIT_CURL_VERBOSE", "LC_ALL", "LANG", "LANGUAGE"}

// asUser is a git command with all that the user's own git has: its credential helpers, SSH agent, proxies and
// certificates. Hooks stay off, and it never asks in the terminal.
func (c *Checkout) asUser(args ...string) proc.Command {
	cmd := c.gitCommand(args...)
	cmd.Env = []string{"GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1"}
	for _, entry := range os.Environ() {
		if name, _, ok := strings.Cut(entry, "="); ok && name != "" && !slices.Contains(ownSettings, name) {
			cmd.Inherit = append(cmd.Inherit, name)
		}
	}
	return cmd
}

// FetchBranch brings a remote's branch into the checkout, as git fetch does, and gives its commit; empty: the remote has
// no such branch. The remote is one by its name. ErrAuth and ErrRemote are of the remote.
func (c *Checkout) FetchBranch(ctx context.Context, remote, branch string) (string, error) {
	op := "fetch " + branch + " from " + remote
	if err := checkRemoteAndBranch(op, remote, branch); err != nil {
		return "", err
	}
	own := "refs/remotes/" + remote + "/" + branch
	_, err := c.runAsUser(ctx, op, c.asUser("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--",
		remote, "+"+headsPrefix+branch+":"+own))
	switch {
	case err == nil:
		return c.Resolve(ctx, own)
	case strings.Contains(stderrOf(err), "couldn't find remote ref "+headsPrefix+branch): // builtin/fetch.c, get_fetch_map
		return "", nil
	}
	return "", err
}

// PushCommit pushes a commit that a scratch repository of the checkout has to a remote's branch, which has to be at
// another commit now; empty: the remote has no such branch yet. ErrLeaseLost: it isn't. ErrRejected: the remote takes no push. ErrAuth and ErrRemote are of the
// remote; after ErrRemote it isn't known whether the push arrived.
func (c *Checkout) PushCommit(ctx context.Context, s *Scratch, remote, branch, commit, old string) error {
	op := fmt.Sprintf("push %s to %s", branch, remote)
	if err := checkRemoteAndBranch(op, remote, branch); err != nil {
		return err
	}
	for _, sha := range []string{commit, old} {
		if err := checkSHA(sha); err != nil && sha != "" {
			return err
		}
	}
	if err := c.keepCommit(ctx, s, commit); err != nil {
		return err
	}
	ref := headsPrefix + branch
	cmd := c.asUser("push", "--porcelain", "--no-verify", "--recurse-submodules=no", "--force-with-lease="+ref+":"+old, "--", remote,
		commit+":"+ref)
	out, err := c.runAsUser(ctx, op, cmd)
	if err == nil {
		return nil
	}
	rejected, reason := parseRejection(out, ref)
	switch {
	case !rejected:
		return err
	case isLostRace(reason):
		return &Error{Op: op, Kind: ErrLeaseLost, Err: fmt.Errorf("the branch isn't at %s any more", cmp.Or(wording.Short(old), "nothing"))}
	}
	hint := "check the branch's protection and the remote's hooks"
	if said := remoteMessages(err); said != "" {
		hint += ": " + said
	}
	return &Error{Op: op, Kind: ErrRejected, Err: fmt.Errorf("%s", shortenForLog(reason)), Hint: hint}
}

// maxKept bounds the objects of a commit that is pushed: one of ours has a few files.
const maxKept = 256 << 20

// keepCommit gives the checkout the objects of a commit of the scratch repository whose parent it has. After the push git has the
// remote's branch at it, and a branch at an object that isn't there keeps every later fetch from working.
func (c *Checkout) keepCommit(ctx context.Context, s *Scratch, commit string) error {
	pack := s.gitCommand("pack-objects", "--revs", "--stdout", "-q")
	pack.Stdin, pack.MaxStdout = []byte(commit+"\n^"+commit+"^1\n"), maxKept
	packed, err := proc.Run(ctx, pack)
	if err == nil {
		unpack := c.gitCommand("unpack-objects", "-q")
		unpack.Stdin = packed.Stdout
		_, err = proc.Run(ctx, unpack)
	}
	if err != nil {
		return &Error{Op: "keep " + wording.Short(commit) + " in " + c.Dir(), Err: err}
	}
	return nil
}

// isLostRace says that a push was refused because somebody else's came before it: git's own check of the lease, a server
// whose branch moved while it took the push, and one that was locking it.
func isLostRace(reason string) bool {
	return slices.ContainsFunc([]string{"stale info", "fetch first", "non-fast-forward", "failed to update ref", "cannot lock ref",
		"reference already exists", "incorrect old value"}, func(part string) bool { return strings.Contains(reason, part) })
}

// checkRemoteAndBranch refuses names that git would take for something else.
func checkRemoteAndBranch(op, remote, branch string) error {
	if err := checkBranch(branch); err != nil {
		return err
	}
	if remote == "" || strings.HasPrefix(remote, "-") || checkBranch(remote) != nil {
		return &Error{Op: op, Kind: ErrInvalid, Hint: fmt.Sprintf("%q is no name of a remote; git remote lists them",
			shortenForLog(remote))}
	}
	return nil
}

// runAsUser runs a command that talks to a remote.
func (c *Checkout) runAsUser(ctx context.Context, op string, cmd proc.Command) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	r, err := proc.Run(limited, cmd)
	if err != nil {
		return r.Stdout, remoteError(ctx, op, err)
	}
	return r.Stdout, nil
}

// Identity is who commits in the checkout are by: as git commit has it, from the environment and the configuration.
// ErrInvalid: git knows nobody.
func (c *Checkout) Identity(ctx context.Context) (Ident, error) {
	const op = "find out who commits"
	cmd := c.asUser("var", "GIT_COMMITTER_IDENT")
	out, err := c.runGit(ctx, cmd)
	if err == nil {
		// name <email> seconds zone
		name, rest, ok := strings.Cut(strings.TrimSpace(string(out)), " <")
		if email, _, closed := strings.Cut(rest, ">"); ok && closed && name != "" && email != "" {
			return Ident{Name: name, Email: email}, nil
		}
	}
	return Ident{}, &Error{Op: op, Kind: ErrInvalid, Err: err,
		Hint: "tell git: git config user.name NAME, and git config user.email ADDRESS"}
}
