package facts

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
	// maxReadings bounds the readings that are remembered, and maxReadingBytes what
	// they take with their fields, of which each takes about readingBytes.
	maxReadings     = 200_000
	maxReadingBytes = 64 << 20
	readingBytes    = 300
	// prefetchThreshold are worth reading their files in one go.
	prefetchThreshold = 8
)

// releaseReader reads which releases environments' overlays hold at commits. The same
// folders and files at another commit are the same reading, so that after a push
// only those that it touched are read.
type releaseReader struct {
	parsed   *fieldedit.ParseCache         // files that many environments share
	readings *cache.Cache[string, reading] // by overlay and the identities of what it is read from
}

func newReleaseReader(group *cache.Group) *releaseReader {
	return &releaseReader{parsed: fieldedit.NewParseCache(group, maxParsed),
		readings: cache.New(group, cache.Options[string, reading]{Name: "readings", Entries: maxReadings, Bytes: maxReadingBytes,
			Size: sizeOfReading})}
}

// sizeOfReading is about how many bytes a reading takes: most of it are its fields.
func sizeOfReading(key string, g reading) int64 {
	return int64(len(key)) + readingBytes*int64(1+len(g.release.Fields))
}

// reading is what an environment's overlays say.
type reading struct {
	release fieldedit.Release // shared: not to be changed
	id      string
	err     error
}

// readRelease reads the release that an environment's overlay holds at a commit.
func (rr *releaseReader) readRelease(r *Repository, commit string, p *ResolvedPipeline, e *ResolvedEnv) (fieldedit.Release, error) {
	g := rr.readOverlay(r, commit, p, e)
	return g.release, g.err
}

// releaseIDAt is the identity of the release that an environment's overlay holds at a
// commit; "" when it holds none or can't be read.
func (rr *releaseReader) releaseIDAt(r *Repository, commit string, p *ResolvedPipeline, e *ResolvedEnv) string {
	return rr.readOverlay(r, commit, p, e).id
}

func (rr *releaseReader) readOverlay(r *Repository, commit string, p *ResolvedPipeline, e *ResolvedEnv) reading {
	tree, at := r.Mirror.Tree(commit), p.locationOf(e)
	key := ""
	// Local Git only, bounded by its own deadline.
	if ids, err := tree.Identities(context.Background(), at.inputs); err == nil {
		key = at.readingKey(ids)
	}
	return rr.readCached(tree, key, p, e)
}

// readRecovering is readCached in a goroutine of its own: one file's bad luck is not
// everybody's. The component's own evaluation meets the panic again, and reports it.
func (rr *releaseReader) readRecovering(tree *git.Tree, key string, p *ResolvedPipeline, e *ResolvedEnv) (g reading) {
	defer func() {
		if r := recover(); r != nil {
			g = reading{err: fmt.Errorf("panic while reading a release: %v", r)}
		}
	}()
	return rr.readCached(tree, key, p, e)
}

// readCached gives the reading that is remembered under a key, or reads it. Without
// a key nothing is remembered.
func (rr *releaseReader) readCached(tree *git.Tree, key string, p *ResolvedPipeline, e *ResolvedEnv) reading {
	if key != "" {
		if g, ok := rr.readings.Get(key); ok {
			return g
		}
	}
	at := e.Overlay(p.Pipeline)
	at.ParseCache = rr.parsed
	var g reading
	if g.release, g.err = fieldedit.Read(tree, at); g.err == nil {
		g.id = g.release.ID()
	}
	if key != "" && g.isStable() {
		rr.readings.Put(key, g)
	}
	return g
}

// isStable says that the same files always give the same reading: it is no failure
// to read them.
func (r *reading) isStable() bool {
	var refused *fieldedit.RefusedError
	var mixed *fieldedit.MixedError
	return r.err == nil || errors.As(r.err, &refused) || errors.As(r.err, &mixed)
}

// readCurrent gives the release that an environment holds at the snapshot's commit of
// its branch, which is the given one.
func (rr *releaseReader) readCurrent(r *Repository, commit string, p *ResolvedPipeline, e *ResolvedEnv) (fieldedit.Release, error) {
	if g, ok := p.readings[e]; ok {
		return g.release, g.err
	}
	return rr.readRelease(r, commit, p, e)
}

// unreadEnv is an environment whose reading isn't known.
type unreadEnv struct {
	env *ResolvedEnv
	key string
}

// readAhead reads a pipeline's environments at the snapshot's commits, but those
// that are as they were in the snapshot before, which may be nil; the files of
// all in a few goes. What is wrong with one of them shows when it is looked at.
// The error is that of a context that ended.
func (rr *releaseReader) readAhead(ctx context.Context, s *Snapshot, p *ResolvedPipeline, last *Snapshot) error {
	before := last.pipelineBefore(p.Name())
	if before.locations != p.locations {
		before = &ResolvedPipeline{}
	}
	p.readings = make(map[*ResolvedEnv]reading, len(before.readings))
	changed := map[[2]string]map[*ResolvedEnv]bool{} // by commit, from and to; nil: it may be all
	unknown := map[string][]unreadEnv{}
	for _, u := range p.Units {
		for name, e := range u.Envs {
			commit := s.BranchFor(p.Pipeline, name).Commit
			if g, ok := before.readings[e]; ok {
				at := [2]string{last.BranchFor(before.Pipeline, name).Commit, commit}
				if _, seen := changed[at]; !seen {
					changed[at] = rr.changedEnvs(ctx, s.Repo, at[0], at[1], p)
				}
				if changed[at] != nil && !changed[at][e] {
					p.readings[e] = g
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
func (rr *releaseReader) changedEnvs(ctx context.Context, r *Repository, from, to string, p *ResolvedPipeline) map[*ResolvedEnv]bool {
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
func (rr *releaseReader) readMany(ctx context.Context, tree *git.Tree, p *ResolvedPipeline, all []unreadEnv) error {
	var inputs []string
	for _, u := range all {
		inputs = append(inputs, p.locationOf(u.env).inputs...)
	}
	ids, err := tree.Identities(ctx, inputs)
	if err != nil {
		return ctx.Err() // whoever looks at one of them says what is wrong
	}
	var missing []unreadEnv
	for _, u := range all {
		at := p.locationOf(u.env)
		u.key = at.readingKey(ids[:len(at.inputs)])
		ids = ids[len(at.inputs):]
		if g, ok := rr.readings.Get(u.key); ok {
			p.readings[u.env] = g
		} else {
			missing = append(missing, u)
		}
	}
	if len(missing) >= prefetchThreshold {
		if tree, err = prefetchFiles(ctx, tree, p, missing); err != nil {
			return err
		}
	}
	found := make([]reading, len(missing))
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
			p.readings[u.env] = found[i]
		}
	}
	return nil
}

// prefetchFiles is the tree with the files read already that environments are read from.
func prefetchFiles(ctx context.Context, tree *git.Tree, p *ResolvedPipeline, all []unreadEnv) (*git.Tree, error) {
	var roots []string
	scopes := map[string][]fieldedit.Scope{}
	for _, u := range all {
		at := p.locationOf(u.env)
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
