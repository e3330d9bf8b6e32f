package git

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/git/sshsig"
)

const (
	// DefaultTimeout bounds one git call that talks to the remote, the first
	// fetch of everything included.
	DefaultTimeout = 10 * time.Minute

	// DefaultMaxRefBytes bounds what anybody who opens a pull request from a fork can put onto our
	// disk with one head. Additions to a repository of overlays are far smaller.
	DefaultMaxRefBytes = 256 << 20

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
	Dir         string      // of the mirror alone; made when it isn't there
	FormerDir   string      // where an earlier version had it: moved to Dir if it is this URL's and Dir isn't there; empty: nowhere
	URL         string      // http(s)://, file:// or an absolute path; without credentials
	Credentials Credentials // nil: none
	// Refused is told the password that the remote has refused, and says whether Credentials has
	// another one now: then the call is made once more. nil: it never has.
	Refused    func(password string) bool
	CAFile     string      // of the authorities of the remote's certificate, in PEM; empty: the system's
	Log        *zap.Logger // nil: silent
	Author     Ident       // of the commits that Write makes
	SigningKey *sshsig.Key // signs them; nil: they aren't signed
	// RemoteSigner is what Sign has commits made by; nil: they are pushed as Write made them.
	RemoteSigner RemoteSigner
	Caches       *cache.Group // where its caches are counted; nil: nowhere

	// BeforePush and AfterPush are called with the full ref name around the
	// moment at which the remote changes: nil in production; a test uses them
	// to die there.
	BeforePush, AfterPush func(ref string)

	// MaxRefBytes is how much one FetchRef may bring, and how much of what others have replaced
	// since may lie there until Maintain drops it; 0: DefaultMaxRefBytes.
	MaxRefBytes int64

	Timeout time.Duration    // of one git call to the remote; 0: DefaultTimeout
	Now     func() time.Time // nil: time.Now; only ages what keeps unpushed commits alive
}

// Mirror is a bare mirror of one remote repository's branches. It is safe for
// concurrent use: reads run side by side, Fetch, Push, Write and Maintain one
// at a time. One process at a time may have a folder open. A damaged one is
// made anew by the next Fetch.
type Mirror struct {
	repository
	engine       mirrorEngine // the repository's own
	url          string
	dir          string       // empty: in memory
	author       Ident        // also who commits
	remoteSigner RemoteSigner // nil: Sign changes nothing
	log          *zap.Logger
	now          func() time.Time

	beforePush, afterPush func(ref string) // nil: nothing

	writing chan struct{} // holds one token while nobody writes

	headsMu sync.Mutex
	heads   map[string]string // by branch; nil: to be read. Replaced, never changed.
	notes   map[string]string // by ref; nil: to be read

	expectedMu sync.Mutex
	expected   map[string]string // what branches are said to be at, for the next Fetch
}

// Open opens the mirror in o.Dir, or makes it. It removes the leftovers of an earlier process that
// was killed. A damaged mirror and one of another URL are made anew, which is logged. A folder that
// has something else in it is an error and is left alone. Open does not talk to the remote: a new
// mirror is empty until the first Fetch.
func Open(ctx context.Context, o Options) (*Mirror, error) {
	p, err := newMirrorPrograms(ctx, o)
	if err != nil {
		return nil, err
	}
	m := newProgramsMirror(p, "the mirror of "+p.remote.url, "the next fetch makes the mirror anew")
	m.line = maxLine // a mirror is never shallow: what a commit names as its parents is there
	if err := p.prepareDir(ctx, m); err != nil {
		p.closePrograms()
		return nil, fmt.Errorf("open the mirror of %s in %s: %w", p.remote.url, p.dir, err)
	}
	return m, nil
}

// newProgramsMirror is a mirror over git's programs, whatever is in their folder.
func newProgramsMirror(p *mirrorPrograms, name, remedy string) *Mirror {
	m := newMirror(p, newRepository(p, p.opts.Caches, name, remedy), p.opts.Now)
	m.url, m.dir, m.author, m.log = p.remote.url, p.dir, p.opts.Author, p.log
	m.remoteSigner = p.opts.RemoteSigner
	m.beforePush, m.afterPush = p.opts.BeforePush, p.opts.AfterPush
	p.forget = func() {
		m.caches.forgetAll()
		m.setHeads(nil)
	}
	return m
}

func newMirror(e mirrorEngine, r repository, now func() time.Time) *Mirror {
	m := &Mirror{repository: r, engine: e, now: now, log: zap.NewNop(), writing: make(chan struct{}, 1)}
	m.writing <- struct{}{}
	return m
}

// URL is the remote's address, without credentials.
func (m *Mirror) URL() string { return m.url }

// lock waits for the right to write.
func (m *Mirror) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case <-m.writing:
		return func() { m.writing <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for another write to %s: %w", m.name, ctx.Err())
	}
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
