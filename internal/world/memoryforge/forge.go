package memoryforge

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/cache/lock"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
)

// host is where the forge would be found, if it could be.
const host = "forge.example"

// Options say how a Forge is made.
type Options struct {
	Now func() time.Time // the clock; it never goes back; required
	// Bot is the login of the account that moves branches without a word, as a mirror does when it
	// pushes. New adds the account; AddUser gives it another number or kind. Without one, such a
	// move counts as the next caller's.
	Bot string
	// SlowMergeable has Mergeable unknown when a pull request is read for the first
	// time after its head or its base moved, as on GitHub.
	SlowMergeable bool
	// Public has everybody see the repositories and talk in them, whatever they may do beside
	// that.
	Public bool
	// BeforeCall is asked before everything that somebody does, in words (comment on
	// acme/fleet#1), without a lock: it may take its time. Its error is the answer. nil:
	// nobody is.
	BeforeCall func(login, op string) error
	// OnEvent is told of every change, by people and by drivers alike, when it is done, by the
	// caller that made it. It is called without a lock: it may call the forge. nil: nobody is.
	OnEvent func(Event)
}

// Forge is a Git hosting service in memory. It is safe for concurrent use.
type Forge struct {
	options Options

	mu       sync.Mutex
	accounts map[string]*account    // by login, in lower case
	byEmail  map[string]*account    // in lower case
	repos    map[string]*repository // by owner/name, in lower case
	teams    map[string]*team       // by organisation/name in lower case
	lastTeam int64                  // the number that was given last
	lastID   int64

	hidesEditors bool // nobody is told who edits comments
}

// New makes a forge without repositories.
func New(o Options) *Forge {
	f := &Forge{options: o, accounts: map[string]*account{}, byEmail: map[string]*account{}, repos: map[string]*repository{},
		teams: map[string]*team{}}
	if o.Bot != "" {
		f.AddUser(o.Bot, 1, true)
	}
	return f
}

// repository is a repository with everything that the forge keeps beside Git.
type repository struct {
	name          forge.Repo
	remote        *git.MemoryRemote
	defaultBranch string
	access        map[string]forge.Permission // by login, in lower case
	protections   map[string]Protection       // by branch
	deleteMerged  bool
	queueMerges   bool
	queue         []queuedMerge                     // in the order in which they joined
	hooks         map[string]string                 // secret by URL
	missed        map[string][]forge.MissedDelivery // by the hook's URL, oldest first

	pulls    []*pull            // by number, from 1
	open     map[int]*pull      // by number
	byBranch map[string][]*pull // of this very repository's branches, oldest first
	byCommit map[string][]*pull // the merged ones that brought a commit or landed as it
	newest   *pull              // the most recently updated; its older goes on

	heads    map[string]string        // branches as they were last seen
	pushes   map[string][]forge.Push  // by branch, oldest first; only ever appended to
	checks   map[string][]forge.Check // by commit: the newest of each name and account
	statuses map[string][]*status     // by commit, newest first, one of each context
	comments map[int64]*comment

	deployments []*deployment // oldest first
}

// AddRepo puts a repository onto the forge. Its branches' present content was pushed by nobody. The
// owner's account, if there is one, administers it.
func (f *Forge) AddRepo(r forge.Repo, remote *git.MemoryRemote, defaultBranch string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.repos[strings.ToLower(r.String())] = &repository{
		name: r, remote: remote, defaultBranch: defaultBranch, access: map[string]forge.Permission{}, protections: map[string]Protection{},
		hooks: map[string]string{}, missed: map[string][]forge.MissedDelivery{}, open: map[int]*pull{}, byBranch: map[string][]*pull{},
		byCommit: map[string][]*pull{},
		heads:    remote.Heads(), pushes: map[string][]forge.Push{}, statuses: map[string][]*status{}, checks: map[string][]forge.Check{},
		comments: map[int64]*comment{},
	}
}

// now is the forge's time, in whole seconds as GitHub's.
func (f *Forge) now() time.Time { return f.options.Now().UTC().Truncate(time.Second) }

func (f *Forge) nextID() int64 {
	f.lastID++
	return f.lastID
}

// call is one call of somebody to a repository, under the forge's lock.
type call struct {
	*Forge
	ctx    context.Context
	op     string // what is done to what, for errors
	mover  string // the login of who moved the branches that moved without a word
	repo   *repository
	by     *account
	events []Event // what it did
}

// withRepository runs do as an account that may do what it needs.
func (f *Forge) withRepository(ctx context.Context, op, login string, r forge.Repo, need forge.Permission, do func(c *call) error) error {
	c := &call{Forge: f, ctx: ctx, op: op, mover: f.options.Bot}
	return c.runAs(login, r, need, do)
}

// runAs runs do and then, without the lock, tells of what it did.
func (c *call) runAs(login string, r forge.Repo, need forge.Permission, do func(c *call) error) error {
	if err := c.beforeCall(login); err != nil {
		return err
	}
	err := c.runLocked(login, r, need, do)
	if c.options.OnEvent != nil {
		for _, e := range c.events {
			c.options.OnEvent(e)
		}
	}
	return err
}

func (c *call) runLocked(login string, r forge.Repo, need forge.Permission, do func(c *call) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.signIn(login); err != nil {
		return err
	}
	// A begun call is done whole: nothing here waits for anything.
	c.ctx = context.WithoutCancel(c.ctx)
	c.repo = c.repos[strings.ToLower(r.String())]
	if c.repo == nil {
		return c.failure(forge.ErrNotFound, "Not Found")
	}
	// As on GitHub, what somebody may not see isn't there, and hooks are
	// administrators' alone to see.
	switch has := c.repo.permissionOf(c.by); {
	case has >= need, need == forge.PermissionRead && c.options.Public:
	case has < forge.PermissionRead && !c.options.Public, need == forge.PermissionAdmin:
		return c.failure(forge.ErrNotFound, "Not Found")
	default:
		return c.failure(forge.ErrForbidden, "Must have write access to Repository.")
	}
	mover := c.by
	if a := c.findAccount(c.mover); a != nil {
		mover = a
	}
	if err := c.noticeRefs(mover); err != nil {
		return c.wrapError(err)
	}
	return c.wrapError(do(c))
}

func (c *call) beforeCall(login string) error {
	if c.options.BeforeCall == nil {
		return nil
	}
	return c.options.BeforeCall(login, c.op)
}

// signIn finds who calls.
func (c *call) signIn(login string) error {
	if err := errors.Join(c.ctx.Err(), lock.CheckLease(c.ctx)); err != nil {
		return &forge.Error{Op: c.op, Kind: forge.ErrRetryable, Message: "canceled", Err: err}
	}
	if c.by = c.findAccount(login); c.by == nil {
		return &forge.Error{Op: c.op, Kind: forge.ErrUnauthorized, Message: "Bad credentials", Hint: "add the account " + login + " first"}
	}
	return nil
}

// failure is the forge's refusal, in its words.
func (c *call) failure(kind error, message string) error {
	return &forge.Error{Op: c.op, Kind: kind, Message: message}
}

// wrapError gives a failure of the repository its kind.
func (c *call) wrapError(err error) error {
	var refusal *forge.Error
	switch {
	case err == nil, errors.As(err, &refusal):
		return err
	case errors.Is(err, git.ErrUnknownCommit):
		return &forge.Error{Op: c.op, Kind: forge.ErrNotFound, Message: "No commit found", Err: err}
	case errors.Is(err, git.ErrLeaseLost): // somebody pushed in the same moment
		return &forge.Error{Op: c.op, Kind: forge.ErrConflict, Message: "Reference update failed", Err: err}
	}
	return &forge.Error{Op: c.op, Kind: forge.ErrRetryable, Message: err.Error(), Err: err}
}
