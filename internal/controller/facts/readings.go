package facts

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
)

const (
	// maxReadings bounds the readings that are remembered in one generation of
	// two, by their fields: some 30 MB each.
	maxReadings = 100_000
	// manyReadings are worth reading their files in one go.
	manyReadings = 8
)

// reading is what an environment's overlays say.
type reading struct {
	release fieldedit.Release // shared: not to be changed
	id      string
	err     error
}

// readings remembers readings by what they were read from: the overlay, and the
// identities of the folders and files that it is read from. The same ones at
// another commit are the same reading, so that after a push only those that it
// touched are read. When the young generation is full it becomes the old one,
// and the old one goes. It is safe for concurrent use.
type readings struct {
	mu         sync.Mutex
	young, old map[string]reading
	size       int
}

func (m *readings) get(key string) (reading, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if g, ok := m.young[key]; ok {
		return g, true
	}
	g, ok := m.old[key]
	if ok {
		m.add(key, g)
	}
	return g, ok
}

func (m *readings) put(key string, g reading) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(key, g)
}

func (m *readings) add(key string, g reading) {
	weight := 1 + len(g.release.Fields)
	if m.young == nil || m.size+weight > maxReadings {
		m.old, m.young, m.size = m.young, map[string]reading{}, 0
	}
	m.young[key] = g
	m.size += weight
}

// read reads the release that an environment's overlay holds at a commit.
func (o *Observer) read(r *Repository, commit string, p *PipelineAt, e *EnvAt) (fieldedit.Release, error) {
	g := o.reading(r, commit, p, e)
	return g.release, g.err
}

// idAt is the identity of the release that an environment's overlay holds at a
// commit; "" when it holds none or can't be read.
func (o *Observer) idAt(r *Repository, commit string, p *PipelineAt, e *EnvAt) string {
	return o.reading(r, commit, p, e).id
}

func (o *Observer) reading(r *Repository, commit string, p *PipelineAt, e *EnvAt) reading {
	tree, at := r.Mirror.Tree(commit), p.place(e)
	key := ""
	// Local Git only, bounded by its own deadline.
	if ids, err := tree.Identities(context.Background(), at.inputs); err == nil {
		key = at.keyAt(ids)
	}
	return o.readAt(tree, key, p, e)
}

// readGuarded is readAt in a goroutine of its own: one file's bad luck is not
// everybody's. The component's own look meets the panic again, and tells of it.
func (o *Observer) readGuarded(tree *git.Tree, key string, p *PipelineAt, e *EnvAt) (g reading) {
	defer func() {
		if r := recover(); r != nil {
			g = reading{err: fmt.Errorf("panic while reading a release: %v", r)}
		}
	}()
	return o.readAt(tree, key, p, e)
}

// readAt gives the reading that is remembered under a key, or reads it. Without
// a key nothing is remembered.
func (o *Observer) readAt(tree *git.Tree, key string, p *PipelineAt, e *EnvAt) reading {
	if key != "" {
		if g, ok := o.readings.get(key); ok {
			return g
		}
	}
	at := e.Overlay(p.Pipeline)
	at.ParseCache = o.parsed
	var g reading
	if g.release, g.err = fieldedit.Read(tree, at); g.err == nil {
		g.id = g.release.ID()
	}
	if key != "" && g.lasts() {
		o.readings.put(key, g)
	}
	return g
}

// lasts says that the same files always give the same reading: it is no failure
// to read them.
func (g *reading) lasts() bool {
	var refused *fieldedit.RefusedError
	var mixed *fieldedit.MixedError
	return g.err == nil || errors.As(g.err, &refused) || errors.As(g.err, &mixed)
}

// readNow gives the release that an environment holds at the snapshot's commit of
// its branch, which is the given one.
func (o *Observer) readNow(r *Repository, commit string, p *PipelineAt, e *EnvAt) (fieldedit.Release, error) {
	if g, ok := p.now[e]; ok {
		return g.release, g.err
	}
	return o.read(r, commit, p, e)
}

// unread is an environment whose reading isn't known.
type unread struct {
	env *EnvAt
	key string
}

// readAhead reads a pipeline's environments at the snapshot's commits, but those
// that are as they were in the snapshot before, which may be nil; the files of
// all in a few goes. What is wrong with one of them shows when it is looked at.
// The error is that of a context that ended.
func (o *Observer) readAhead(ctx context.Context, s *Snapshot, p *PipelineAt, last *Snapshot) error {
	before := &PipelineAt{}
	if last != nil && last.Pipeline(p.Name()) != nil {
		before = last.Pipeline(p.Name())
	}
	if before.places != p.places {
		before = &PipelineAt{}
	}
	p.now = make(map[*EnvAt]reading, len(before.now))
	touched := map[[2]string]map[*EnvAt]bool{} // by commit, from and to; nil: it may be all
	unknown := map[string][]unread{}
	for _, u := range p.Units {
		for name, e := range u.Envs {
			commit := s.Line(p.Pipeline, name).Commit
			if g, ok := before.now[e]; ok {
				at := [2]string{last.Line(before.Pipeline, name).Commit, commit}
				if _, asked := touched[at]; !asked {
					touched[at] = o.touched(ctx, s.Repo, at[0], at[1], p)
				}
				if touched[at] != nil && !touched[at][e] {
					p.now[e] = g
					continue
				}
			}
			if commit != "" { // the branch is there
				unknown[commit] = append(unknown[commit], unread{env: e})
			}
		}
	}
	for commit, all := range unknown {
		if err := o.readMany(ctx, s.Repo.Mirror.Tree(commit), p, all); err != nil {
			return err
		}
	}
	return nil
}

// touched are the environments whose readings may not be the same at two commits;
// nil when that can't be told.
func (o *Observer) touched(ctx context.Context, r *Repository, from, to string, p *PipelineAt) map[*EnvAt]bool {
	if from == "" || to == "" {
		return nil
	}
	changed, err := r.Mirror.Changed(ctx, from, to)
	if err != nil {
		return nil
	}
	return p.places.touched(changed)
}

// readMany reads environments of one commit, and keeps in p what they say.
func (o *Observer) readMany(ctx context.Context, tree *git.Tree, p *PipelineAt, all []unread) error {
	var inputs []string
	for _, u := range all {
		inputs = append(inputs, p.place(u.env).inputs...)
	}
	ids, err := tree.Identities(ctx, inputs)
	if err != nil {
		return ctx.Err() // whoever looks at one of them says what is wrong
	}
	var missing []unread
	for _, u := range all {
		at := p.place(u.env)
		u.key = at.keyAt(ids[:len(at.inputs)])
		ids = ids[len(at.inputs):]
		if g, ok := o.readings.get(u.key); ok {
			p.now[u.env] = g
		} else {
			missing = append(missing, u)
		}
	}
	if len(missing) >= manyReadings {
		if tree, err = filesAhead(ctx, tree, p, missing); err != nil {
			return err
		}
	}
	found := make([]reading, len(missing))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(missing)) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(missing) {
					return
				}
				found[i] = o.readGuarded(tree, missing[i].key, p, missing[i].env)
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for i, u := range missing {
		if found[i].lasts() {
			p.now[u.env] = found[i]
		}
	}
	return nil
}

// filesAhead is the tree with the files read already that environments are read from.
func filesAhead(ctx context.Context, tree *git.Tree, p *PipelineAt, all []unread) (*git.Tree, error) {
	var roots []string
	scopes := map[string][]fieldedit.Scope{}
	for _, u := range all {
		at := p.place(u.env)
		if at.err != nil {
			continue
		}
		for _, root := range slices.Concat(u.env.Roots, u.env.Shared) {
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
