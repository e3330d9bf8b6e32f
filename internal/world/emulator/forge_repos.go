package emulator

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// RepoOptions say how a repository is made.
type RepoOptions struct {
	Branch  string                // the default branch; empty: main
	Files   map[string]string     // path → content of the first commit; empty: the repository is empty
	Message string                // of the first commit
	Author  string                // login of its author; required with Files
	Access  map[string]Permission // by login; its owner's account is an administrator anyway
	Methods []string              // merge methods that are allowed: merge, squash, rebase; nil: all
	// DeleteMergedBranches removes a pull request's branch after its merge.
	DeleteMergedBranches bool
	// GitLab is what only a GitLab project has; the zero value follows from Methods.
	GitLab GitLabProject
}

// GitLabProject is what a project of GitLab has beyond what other forges' repositories have.
type GitLabProject struct {
	MergeMethod               string // merge, rebase_merge or ff; empty: ff where Methods has only rebase, otherwise merge
	Squash                    string // never, always, default_on or default_off; empty: what Methods leaves
	PipelineMustSucceed       bool   // also when a protection of the branch names contexts
	DiscussionsMustBeResolved bool
	QueueMerges               bool // merge trains are on
	Free                      bool // no approval rules, no merge trains
}

// Protection is what a branch asks for before a pull request into it merges.
type Protection struct {
	Approvals    int         // approving reviews by people who may write
	Contexts     []string    // commit statuses that must be success on the head
	DismissStale bool        // a push dismisses approvals
	Strict       bool        // the head must contain the base branch's tip
	CodeOwners   []string    // GitHub: logins one of whom must approve
	Signatures   bool        // GitHub: every commit of a pull request is verified (verifyCommit)
	Queue        *MergeQueue // GitHub: it is merged into by the merge queue alone; nil: by anybody
	Ruleset      string      // GitHub: the name of the ruleset that asks for it; empty: it is classic protection
	Bypass       []string    // GitHub: logins that may merge whatever a ruleset asks for; of classic protection: without its reviews
	AdminsExempt bool        // GitHub: administrators may merge whatever classic protection asks for
	id           int64

	MergeRole Permission // GitLab: who may merge; NoPermission: who may write
}

type repository struct {
	id           int64
	owner        *account
	name         string
	branch       string // the default branch
	created      time.Time
	pushed       time.Time
	git          *bareRepo
	parent       *repository // of a fork
	access       map[int64]Permission
	methods      []string
	deleteMerged bool // delete merged branches
	gitlab       GitLabProject
	archived     bool
	pipelines    []*pipeline   // oldest first
	cars         []*mergeCar   // of merge trains, oldest first
	queue        []*queueEntry // of GitHub's merge queues, oldest first
	pullRefs     string        // where heads of pull requests are kept, such as refs/pull/
	labels       map[string]*label
	protections  map[string]Protection
	guards       []*branchGuard
	pulls        map[int]*pull
	lastNumber   int
	hooks        []*hook
	statuses     map[string][]*status // by commit, oldest first
	deployments  []*deployment        // oldest first

	// refsMu serialises what moves references: a push over HTTP holds it while
	// receive-pack runs, without holding the forge's lock.
	refsMu     sync.Mutex
	activities []activity // moves of branches, oldest first

	refs map[string]string // branches and tags as they were last seen; guarded by Forge.mu
}

type label struct {
	ID    int64
	Name  string
	Color string
}

func (r *repository) fullName() string { return r.owner.login + "/" + r.name }

// branchHead is a branch's tip, empty when there is no such branch.
func (r *repository) branchHead(branch string) string { return r.refs["refs/heads/"+branch] }

func (r *repository) permissionOf(a *account) Permission {
	if a == nil {
		return NoPermission
	}
	if a.app != nil {
		return a.app.permissionOf(r)
	}
	if a.id == r.owner.id {
		return Admin
	}
	return r.access[a.id]
}

// CreateRepo creates "owner/name". An owner that is no user's login becomes an
// organisation. The first commit is no push event: nobody listens yet.
func (f *Forge) CreateRepo(name string, o RepoOptions) error {
	fail := func(err error) error { return fmt.Errorf("creating repository %s: %w", name, err) }
	if o.Branch == "" {
		o.Branch = "main"
	}
	for _, m := range o.Methods {
		if !slices.Contains(mergeMethods, m) {
			return fail(fmt.Errorf("there is no merge method %q", m))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.newRepository(name, o.Branch)
	if err != nil {
		return fail(err)
	}
	r.methods, r.deleteMerged, r.gitlab = o.Methods, o.DeleteMergedBranches, o.GitLab
	if r.methods == nil {
		r.methods = mergeMethods
	}
	for login, p := range o.Access {
		a, err := f.findAccount(login)
		if err != nil {
			return fail(err)
		}
		r.access[a.id] = p
	}
	if len(o.Files) > 0 {
		author, err := f.findAccount(o.Author)
		if err != nil {
			return fail(err)
		}
		if o.Message == "" {
			o.Message = "First commit"
		}
		if _, err := r.git.commitFiles(commitSpec{Branch: o.Branch, Author: f.commitIdent(author), Message: o.Message + "\n",
			Write: o.Files}); err != nil {
			return fail(err)
		}
		if r.refs, err = r.git.listRefs(); err != nil {
			return fail(err)
		}
		f.recordActivity(r, author, "refs/heads/"+o.Branch, "", r.branchHead(o.Branch))
	}
	f.repos[strings.ToLower(name)] = r
	return nil
}

func (f *Forge) newRepository(name, branch string) (*repository, error) {
	owner, short, ok := cutName(name)
	isPath := !strings.ContainsAny(name, " \\\n") && !strings.Contains(name, "//") && !strings.Contains(name, "..")
	isTooDeep := f.face == GitHub && strings.Contains(owner, "/")
	if !ok || !isPath || isTooDeep {
		return nil, errors.New("the name must be owner/name")
	}
	if _, ok := f.repos[strings.ToLower(name)]; ok {
		return nil, errors.New("it exists already")
	}
	folder := filepath.Join(f.dir, owner, short+".git")
	if f.formerNames[strings.ToLower(name)] != nil { // what had the name stays where it was
		folder = filepath.Join(f.dir, owner, fmt.Sprintf("%s.%d.git", short, f.nextID()))
	}
	git, err := initBareRepo(folder, branch)
	if err != nil {
		return nil, err
	}
	return &repository{
		pullRefs: pullRefs[f.face],
		id:       f.nextID(), owner: f.ensureOwner(owner), name: short, branch: branch, created: f.now(), pushed: f.now(),
		git: git, access: map[int64]Permission{}, methods: mergeMethods, labels: map[string]*label{},
		protections: map[string]Protection{}, pulls: map[int]*pull{}, statuses: map[string][]*status{}, refs: map[string]string{},
	}, nil
}

// cutName cuts a repository's full name before its own name: a group of GitLab's can be in
// another.
func cutName(name string) (owner, short string, ok bool) {
	i := strings.LastIndex(name, "/")
	if i <= 0 || i == len(name)-1 {
		return "", "", false
	}
	return name[:i], name[i+1:], true
}

// Fork copies a repository to an account, who owns the copy: pull requests can
// come from its branches.
func (f *Forge) Fork(repo, login string) (string, error) {
	fork := login
	err := f.withRepositoryRefs(repo, login, func(r *repository, u *account) error {
		fork = u.login + "/" + r.name
		c, err := f.newRepository(fork, r.branch)
		if err != nil {
			return err
		}
		if _, err := c.git.runGit("fetch", "--quiet", "--no-tags", "--", r.git.dir, "refs/heads/*:refs/heads/*"); err != nil {
			return err
		}
		if c.refs, err = c.git.listRefs(); err != nil {
			return err
		}
		c.parent = r
		f.repos[strings.ToLower(fork)] = c
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("forking %s for %s: %w", repo, login, err)
	}
	return fork, nil
}

// Grant sets what a user may do in a repository.
func (f *Forge) Grant(repo, login string, p Permission) error {
	return f.withRepository(repo, login, func(r *repository, u *account) error {
		r.access[u.id] = p
		return nil
	})
}

// Protect sets what merging into a branch needs; the zero Protection: nothing.
func (f *Forge) Protect(repo, branch string, p Protection) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findRepository(repo)
	if err != nil {
		return err
	}
	old, existed := r.protections[branch]
	p.id = old.id
	if !existed {
		p.id = f.nextID()
	}
	if empty := (Protection{id: p.id}); reflect.DeepEqual(p, empty) {
		delete(r.protections, branch)
	} else {
		r.protections[branch] = p
	}
	if f.face == GitHub {
		f.emitRules(r, branch, &p, existed)
	}
	return nil
}

// MoveRepository gives a repository another full name, in the same or another group. On
// GitLab the old one leads to it.
func (f *Forge) MoveRepository(repo, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findRepository(repo)
	if err != nil {
		return fmt.Errorf("moving %s to %s: %w", repo, to, err)
	}
	owner, short, ok := cutName(to)
	if _, exists := f.repos[strings.ToLower(to)]; !ok || exists {
		return fmt.Errorf("moving %s to %s: the name must be a free owner/name", repo, to)
	}
	delete(f.repos, strings.ToLower(repo))
	f.formerNames[strings.ToLower(repo)] = r
	was := r.owner
	changes, action := map[string]any{"repository": map[string]any{"name": map[string]any{"from": r.name}}}, "renamed"
	r.owner, r.name = f.ensureOwner(owner), short
	if was != r.owner {
		changes, action = map[string]any{"owner": map[string]any{"from": map[string]any{strings.ToLower(was.kind): f.wireUser(was)}}},
			"transferred"
	}
	f.repos[strings.ToLower(to)] = r
	if f.face == GitHub {
		f.emitEvent(r, r.owner, "repository", map[string]any{"action": action, "changes": changes})
	}
	return nil
}

// SetMethods says anew by which methods a repository merges.
func (f *Forge) SetMethods(repo string, methods ...string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findRepository(repo)
	if err != nil {
		return err
	}
	r.methods = methods
	return nil
}

// ArchiveRepository makes a repository read-only by its API, or writable again.
func (f *Forge) ArchiveRepository(repo string, archived bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findRepository(repo)
	if err != nil {
		return err
	}
	r.archived = archived
	if f.face == GitHub {
		f.emitEvent(r, r.owner, "repository", map[string]any{"action": map[bool]string{true: "archived", false: "unarchived"}[archived]})
	}
	return nil
}

func (f *Forge) findRepository(name string) (*repository, error) {
	r, ok := f.repos[strings.ToLower(name)]
	if !ok {
		return nil, fmt.Errorf("the forge has no repository %q", name)
	}
	return r, nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
