package branch

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
)

const (
	// maxReadings bounds the readings that are remembered, and MaxReadingBytes what
	// they take with their fields, of which each takes about ReadingBytes.
	maxReadings     = 200_000
	MaxReadingBytes = 64 << 20
	ReadingBytes    = 300
	// prefetchThreshold are worth reading their files in one go.
	prefetchThreshold = 8
)

// ReleaseReader reads which releases environments' overlays hold at commits. The same
// folders and files at another commit are the same reading, so that after a push
// only those that it touched are read.
type ReleaseReader struct {
	parsed   *fieldedit.ParseCache         // files that many environments share
	Readings *cache.Cache[string, Reading] // by overlay and the identities of what it is read from
}

func NewReleaseReader(group *cache.Group) *ReleaseReader {
	return &ReleaseReader{parsed: fieldedit.NewParseCache(group, maxParsed),
		Readings: cache.New(group, cache.Options[string, Reading]{Name: "readings", Entries: maxReadings, Bytes: MaxReadingBytes,
			Size: sizeOfReading})}
}

// sizeOfReading is about how many bytes a reading takes: most of it are its fields.
func sizeOfReading(key string, g Reading) int64 {
	return int64(len(key)) + ReadingBytes*int64(1+len(g.Release.Fields))
}

// Reading is what an environment's overlays say.
type Reading struct {
	Release fieldedit.Release // shared: not to be changed
	Id      string
	Err     error
}

// ReadRelease reads the release that an environment's overlay holds at a commit.
func (rr *ReleaseReader) ReadRelease(r *Repository, commit string, p *ResolvedPipeline, e *ResolvedEnv) (fieldedit.Release, error) {
	g := rr.readOverlay(r, commit, p, e)
	return g.Release, g.Err
}

// ReleaseIDAt is the identity of the release that an environment's overlay holds at a
// commit; "" when it holds none or can't be read.
func (rr *ReleaseReader) ReleaseIDAt(r *Repository, commit string, p *ResolvedPipeline, e *ResolvedEnv) string {
	return rr.readOverlay(r, commit, p, e).Id
}

func (rr *ReleaseReader) readOverlay(r *Repository, commit string, p *ResolvedPipeline, e *ResolvedEnv) Reading {
	tree, at := r.Mirror.Tree(commit), p.LocationOf(e)
	key := ""
	// Local Git only, bounded by its own deadline.
	if ids, err := tree.Identities(context.Background(), at.inputs); err == nil {
		key = at.readingKey(ids)
	}
	return rr.ReadCached(tree, key, p, e)
}

// readRecovering is ReadCached in a goroutine of its own: one file's bad luck is not
// everybody's. The component's own evaluation meets the panic again, and reports it.
func (rr *ReleaseReader) readRecovering(tree *git.Tree, key string, p *ResolvedPipeline, e *ResolvedEnv) (g Reading) {
	defer func() {
		if r := recover(); r != nil {
			g = Reading{Err: fmt.Errorf("panic while reading a release: %v", r)}
		}
	}()
	return rr.ReadCached(tree, key, p, e)
}

// ReadCached gives the reading that is remembered under a key, or reads it. Without
// a key nothing is remembered.
func (rr *ReleaseReader) ReadCached(tree *git.Tree, key string, p *ResolvedPipeline, e *ResolvedEnv) Reading {
	if key != "" {
		if g, ok := rr.Readings.Get(key); ok {
			return g
		}
	}
	at := e.Overlay(p.Pipeline)
	at.ParseCache = rr.parsed
	var g Reading
	if g.Release, g.Err = fieldedit.Read(tree, at); g.Err == nil {
		g.Id = g.Release.ID()
	}
	if key != "" && g.isStable() {
		rr.Readings.Put(key, g)
	}
	return g
}

// isStable says that the same files always give the same reading: it is no failure
// to read them.
func (r *Reading) isStable() bool {
	var refused *fieldedit.RefusedError
	var mixed *fieldedit.MixedError
	return r.Err == nil || errors.As(r.Err, &refused) || errors.As(r.Err, &mixed)
}

// ReadCurrent gives the release that an environment holds at the snapshot's commit of
// its branch, which is the given one.
func (rr *ReleaseReader) ReadCurrent(r *Repository, commit string, p *ResolvedPipeline, e *ResolvedEnv) (fieldedit.Release, error) {
	if g, ok := p.Readings[e]; ok {
		return g.Release, g.Err
	}
	return rr.ReadRelease(r, commit, p, e)
}

// unreadEnv is an environment whose reading isn't known.
type unreadEnv struct {
	env *ResolvedEnv
	key string
}

// ReadAhead reads a pipeline's environments at the snapshot's commits, the files of all in a few
// goes. It leaves out those that are as they were in the snapshot before, which may be nil. A fault
// in one of them shows when that one is evaluated. The error is that of a context that ended.
func (rr *ReleaseReader) ReadAhead(ctx context.Context, s *Snapshot, p *ResolvedPipeline, last *Snapshot) error {
	before := last.pipelineBefore(p.Name())
	if before.locations != p.locations {
		before = &ResolvedPipeline{}
	}
	p.Readings = make(map[*ResolvedEnv]Reading, len(before.Readings))
	changed := map[[2]string]map[*ResolvedEnv]bool{} // by commit, from and to; nil: it may be all
	unknown := map[string][]unreadEnv{}
	for _, u := range p.Units {
		for name, e := range u.Envs {
			commit := s.BranchFor(p.Pipeline, name).Commit
			if g, ok := before.Readings[e]; ok {
				at := [2]string{last.BranchFor(before.Pipeline, name).Commit, commit}
				if _, seen := changed[at]; !seen {
					changed[at] = rr.changedEnvs(ctx, s.Repo, at[0], at[1], p)
				}
				if changed[at] != nil && !changed[at][e] {
					p.Readings[e] = g
					continue
				}
			}
			if commit != "" { // the branch is there
				unknown[commit] = append(unknown[commit], unreadEnv{env: e})
			}
		}
	}
	for commit, all := range unknown {
		if err := rr.readMany(ctx, s.Repo.Mirror.Tree(commit), p, all); err != nil {
			return err
		}
	}
	return nil
}

// changedEnvs are the environments whose readings may not be the same at two commits;
// nil when that isn't known.
func (rr *ReleaseReader) changedEnvs(ctx context.Context, r *Repository, from, to string, p *ResolvedPipeline) map[*ResolvedEnv]bool {
	if from == "" || to == "" {
		return nil
	}
	changed, err := r.Mirror.Changed(ctx, from, to)
	if err != nil {
		return nil
	}
	return p.locations.changedEnvs(changed)
}

// readMany reads environments of one commit, and keeps in p what they say.
func (rr *ReleaseReader) readMany(ctx context.Context, tree *git.Tree, p *ResolvedPipeline, all []unreadEnv) error {
	var inputs []string
	for _, u := range all {
		inputs = append(inputs, p.LocationOf(u.env).inputs...)
	}
	ids, err := tree.Identities(ctx, inputs)
	if err != nil {
		return ctx.Err() // the reader of one of them says what is wrong
	}
	var missing []unreadEnv
	for _, u := range all {
		at := p.LocationOf(u.env)
		u.key = at.readingKey(ids[:len(at.inputs)])
		ids = ids[len(at.inputs):]
		if g, ok := rr.Readings.Get(u.key); ok {
			p.Readings[u.env] = g
		} else {
			missing = append(missing, u)
		}
	}
	if len(missing) >= prefetchThreshold {
		if tree, err = prefetchFiles(ctx, tree, p, missing); err != nil {
			return err
		}
	}
	found := make([]Reading, len(missing))
	var readers errgroup.Group
	readers.SetLimit(runtime.GOMAXPROCS(0))
	for i, u := range missing {
		readers.Go(func() error {
			if ctx.Err() == nil {
				found[i] = rr.readRecovering(tree, u.key, p, u.env)
			}
			return ctx.Err()
		})
	}
	if err := readers.Wait(); err != nil {
		return err
	}
	for i, u := range missing {
		if found[i].isStable() {
			p.Readings[u.env] = found[i]
		}
	}
	return nil
}

// prefetchFiles is the tree with the files read already that environments are read from.
func prefetchFiles(ctx context.Context, tree *git.Tree, p *ResolvedPipeline, all []unreadEnv) (*git.Tree, error) {
	var roots []string
	scopes := map[string][]fieldedit.Scope{}
	for _, u := range all {
		at := p.LocationOf(u.env)
		if at.err != nil {
			continue
		}
		for _, root := range slices.Concat(u.env.Roots, u.env.Bases, u.env.Shared) {
			if scopes[root] == nil {
				roots = append(roots, root)
			}
			scopes[root] = append(scopes[root], at.scope)
		}
	}
	return tree.ReadAhead(ctx, roots, func(file string) bool {
		return slices.ContainsFunc(scopes[path.Dir(file)], func(s fieldedit.Scope) bool { return s.MayRead(file) })
	})
}
