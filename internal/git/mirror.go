package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/cache"
)

const (
	// DefaultTimeout bounds one git call that talks to the remote, the first
	// fetch of everything included.
	DefaultTimeout = 10 * time.Minute

	// markerFile is the file that says that a folder is ours to throw away. It
	// holds the remote's URL.
	markerFile = "liftlock-mirror"
)

// Ident is the name and e-mail address on a commit.
type Ident struct {
	Name, Email string
}

// Credentials gives the user name and password (or token) for the remote. It
// is asked before every call to the remote, so it may rotate; two empty
// strings mean none. It must be safe for concurrent use.
type Credentials func(ctx context.Context) (username, password string, err error)

// Options say what to mirror and how.
type Options struct {
	Dir         string       // of the mirror alone; made when it isn't there
	URL         string       // http(s)://, file:// or an absolute path; without credentials
	Credentials Credentials  // nil: none
	Log         *zap.Logger  // nil: silent
	Author      Ident        // of the commits that Write makes
	Caches      *cache.Group // where its caches are counted; nil: nowhere

	// BeforePush and AfterPush are called with the full ref name around the
	// moment at which the remote changes: nil in production; a test uses them
	// to die there.
	BeforePush, AfterPush func(ref string)

	Timeout time.Duration    // of one git call to the remote; 0: DefaultTimeout
	Now     func() time.Time // nil: time.Now; only ages what keeps unpushed commits alive
}

// Mirror is a bare mirror of one remote repository's branches. It is safe for
// concurrent use: reads run side by side, Fetch, Push, Write and Maintain one
// at a time. One process at a time may have a folder open. A damaged one is
// made anew by the next Fetch.
type Mirror struct {
	repository
	remote remote
	opts   Options
	log    *zap.Logger
	git    version

	writing chan struct{} // holds one token while nobody writes

	headsMu sync.Mutex
	heads   map[string]string // by branch; nil: to be read. Replaced, never changed.
}

// Open opens the mirror in o.Dir, or makes it. What an earlier process left
// when it was killed is removed; a damaged mirror and one of another URL are
// made anew, which is logged. A folder that has something else in it is an
// error and is left alone. Open does not talk to the remote: a new mirror is
// empty until the first Fetch.
func Open(ctx context.Context, o Options) (*Mirror, error) {
	m, err := newMirror(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := m.prepareDir(ctx); err != nil {
		m.objects.closeProcesses()
		return nil, fmt.Errorf("open the mirror of %s in %s: %w", m.remote.url, m.dir, err)
	}
	return m, nil
}

func newMirror(ctx context.Context, o Options) (*Mirror, error) {
	r, err := parseRemote(o.URL)
	if err != nil {
		return nil, err
	}
	if err := checkIdent("author", o.Author); err != nil {
		return nil, err
	}
	if o.Dir == "" {
		return nil, &Error{Op: "open a mirror", Kind: ErrInvalid, Hint: "Dir is empty"}
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("open a mirror in %s: %w", o.Dir, err)
	}
	v, err := gitVersion(ctx)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Mirror{
		repository: repository{
			dir: dir, env: mirrorEnv(dir, r.scheme),
			name: "the mirror of " + r.url, remedy: "the next fetch makes the mirror anew",
		},
		remote: r, opts: o, git: v,
		log:     o.Log.With(zap.String("mirror", dir), zap.String("remote", r.url)),
		writing: make(chan struct{}, 1),
	}
	m.initHelpers(o.Caches)
	m.writing <- struct{}{}
	return m, nil
}

// URL is the remote's address, without credentials.
func (m *Mirror) URL() string { return m.remote.url }

// lock waits for the right to write.
func (m *Mirror) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case <-m.writing:
		return func() { m.writing <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for another write to the mirror of %s: %w", m.remote.url, ctx.Err())
	}
}

// prepareDir leaves a usable mirror in m.dir.
func (m *Mirror) prepareDir(ctx context.Context) error {
	for _, leftover := range []string{m.dir + ".new", m.dir + ".old"} {
		if err := os.RemoveAll(leftover); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(m.dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return m.createEmpty(ctx)
	}
	if err != nil {
		return err
	}
	url, err := os.ReadFile(filepath.Join(m.dir, markerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the folder is not empty and is no mirror of Liftlock's; choose another, or remove it")
	}
	if err != nil {
		return err
	}
	if was := strings.TrimSpace(string(url)); was != m.remote.url {
		m.log.Warn("the mirror is of another address, making it anew", zap.String("was", shortenForLog(was)))
		return m.createEmpty(ctx)
	}
	if err := m.repair(); err != nil {
		return err
	}
	if err := m.checkIntegrity(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		m.log.Warn("the mirror is damaged, making it anew", zap.Error(err))
		return m.createEmpty(ctx)
	}
	return nil
}

// createEmpty makes an empty mirror beside m.dir and puts it in its place, so that
// a half-made one is never found there.
func (m *Mirror) createEmpty(ctx context.Context) error {
	m.objects.closeProcesses()
	fresh, old := m.dir+".new", m.dir+".old"
	for _, d := range []string{fresh, old} {
		if err := os.RemoveAll(d); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(fresh, 0o700); err != nil {
		return err
	}
	c := m.gitCommand("init", "--bare", "--quiet", "--template=", "--initial-branch=main", "--", fresh)
	c.Args = c.Args[1:] // there is no --git-dir yet
	c.Dir = fresh
	if _, err := m.runGit(ctx, c); err != nil {
		return err
	}
	if err := m.writeConfig(fresh); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(fresh, markerFile), []byte(m.remote.url+"\n"), 0o600); err != nil {
		return err
	}
	if err := os.Rename(m.dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, m.dir); err != nil {
		return err
	}
	m.objects.closeProcesses() // a read may have started them on the old folder
	m.caches.forgetAll()
	m.setHeads(nil)
	m.damaged.Store(false)
	return os.RemoveAll(old)
}

// checkIntegrity finds the damage that a crash leaves: references to objects that are
// not there or not readable.
func (m *Mirror) checkIntegrity(ctx context.Context) error {
	heads, err := m.readHeads(ctx)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for branch, sha := range heads {
		if seen[sha] {
			continue
		}
		seen[sha] = true
		if _, err := m.Commit(ctx, sha); err != nil {
			return fmt.Errorf("branch %s: %w", branch, err)
		}
		if _, err := m.Tree(sha).rootEntry(); err != nil {
			return fmt.Errorf("branch %s: %w", branch, err)
		}
	}
	m.setHeads(heads)
	return nil
}
