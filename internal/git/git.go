package git

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/proc"
)

const (
	// localTimeout bounds a git command that only works on the mirror.
	localTimeout = 5 * time.Minute
	// killGrace is what git gets to remove its lock files before it is killed.
	killGrace = 3 * time.Second
	// maxList bounds the output of a listing: a million paths.
	maxList = 256 << 20
)

// oldestGit is the first version whose options this package relies on
// (fetch --no-write-fetch-head, 2.29; tested from 2.30 on).
var oldestGit = version{2, 30}

// version is git's, as major and minor.
type version struct{ major, minor int }

func (v version) isOlderThan(o version) bool {
	return v.major < o.major || v.major == o.major && v.minor < o.minor
}

var versionForm = regexp.MustCompile(`^git version (\d+)\.(\d+)`)

// InstalledVersion is the installed git's, such as 2.39; an error where there is none in the PATH,
// or where it is too old for this package.
func InstalledVersion(ctx context.Context) (string, error) {
	v, err := gitVersion(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d.%d", v.major, v.minor), nil
}

// gitVersion asks the installed git.
func gitVersion(ctx context.Context) (version, error) {
	const op = "find git"
	r, err := proc.Run(ctx, proc.Command{Program: "git", Args: []string{"version"}, MaxStdout: 4096})
	if err != nil {
		return version{}, &Error{Op: op, Err: err, Hint: "install git 2.30 or newer and put it in PATH"}
	}
	m := versionForm.FindSubmatch(r.Stdout)
	if m == nil {
		return version{}, &Error{Op: op, Err: fmt.Errorf("it answers %q", shortenForLog(string(r.Stdout)))}
	}
	major, _ := strconv.Atoi(string(m[1])) // digits by the expression above
	minor, _ := strconv.Atoi(string(m[2]))
	v := version{major, minor}
	if v.isOlderThan(oldestGit) {
		return v, &Error{Op: op, Err: fmt.Errorf("version %d.%d is too old", major, minor), Hint: "install git 2.30 or newer"}
	}
	return v, nil
}

// mirrorEnv is the environment of git on a mirror in dir. The remote's certificate is checked by
// the authorities in caFile, or, where that is empty, by the system's.
func mirrorEnv(dir, scheme, caFile string) []string {
	env := []string{
		"GIT_CONFIG_NOSYSTEM=1",
		// Ours alone; before git 2.32 it is found as HOME's. That HOME also
		// keeps curl from somebody's ~/.netrc.
		"GIT_CONFIG_GLOBAL=" + filepath.Join(dir, userConfig),
		"HOME=" + dir,
		"XDG_CONFIG_HOME=" + dir,
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ALLOW_PROTOCOL=" + scheme,
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_LAZY_FETCH=1",
	}
	if caFile != "" {
		env = append(env, "GIT_SSL_CAINFO="+caFile)
	}
	return env
}

// userConfig is the file that git takes for the user's own configuration.
const userConfig = ".gitconfig"

// userConfigText lets git read a repository on this machine that another user owns (a mounted
// volume). The repository was named on purpose, and the upload-pack that runs there takes this
// setting from no other place.
func (r remote) userConfigText() string {
	dir, ok := strings.CutPrefix(r.url, "file://")
	if !ok {
		return ""
	}
	if unescaped, err := url.PathUnescape(dir); err == nil {
		dir = unescaped
	}
	dirs := []string{dir}
	if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
		dirs = append(dirs, real)
	}
	var b strings.Builder
	b.WriteString("[safe]\n")
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	for _, d := range dirs {
		for _, at := range []string{d, filepath.Join(d, ".git")} {
			fmt.Fprintf(&b, "\tdirectory = \"%s\"\n", quote.Replace(at))
		}
	}
	return b.String()
}

// toleratedFaults are what old tools wrote: common, and harmless to read. All are known
// to git 2.30; git fsck ends at a name that it doesn't know.
const toleratedFaults = `	zeroPaddedFilemode = warn
	missingSpaceBeforeDate = warn
	missingSpaceBeforeEmail = warn
	missingNameBeforeEmail = warn
	missingEmail = warn
	badTimezone = warn
	zeroPaddedDate = warn
	gitmodulesParse = warn
`

// mirrorConfig is the mirror's whole configuration; it is written at every Open, so
// that a damaged file and an older version's settings don't matter.
const mirrorConfig = `# Written by Liftlock; changes are lost.
[core]
	repositoryformatversion = 0
	bare = true
	filemode = true
	logAllRefUpdates = false
	hooksPath = /dev/null
	fsmonitor = false
	askPass =
	quotePath = false
	commitGraph = true
[gc]
	auto = 0
	autoDetach = false
[maintenance]
	auto = false
[pack]
	windowMemory = 256m
[credential]
	helper =
[http]
	# Redirects would take the credentials along (git sends them to wherever
	# the first answer points).
	followRedirects = false
	# A server that still counts objects sends a few bytes every five seconds.
	lowSpeedLimit = 1
	lowSpeedTime = 120
[fetch]
	recurseSubmodules = false
	writeCommitGraph = false
[fastimport]
	# A commit that is written is a pack, as what is fetched is, and joined with the others:
	# unpacking takes one more program, and each of its objects a file of its own.
	unpackLimit = 0
[transfer]
	fsckObjects = true
[fetch "fsck"]
` + toleratedFaults + "[fsck]\n" + toleratedFaults
