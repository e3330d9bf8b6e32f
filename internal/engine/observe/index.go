package observe

import (
	"context"
	"io/fs"
	"strings"
	"sync"

	"github.com/liftlock/liftlock/internal/fleet"
	"github.com/liftlock/liftlock/internal/reads"
)

// lazyIndex is a pipeline's index of files and their readers, built when it is
// first needed: most commits need none.
type lazyIndex struct {
	tree    fs.FS
	targets []fleet.Target

	mu   sync.Mutex
	ix   *reads.Index
	byID map[string]*fleet.Target
}

func targetID(t *fleet.Target) string { return t.ArgoCD + "/" + t.Namespace + "/" + t.Name }

// get builds the index once; an error is not remembered.
func (l *lazyIndex) get(ctx context.Context) (*reads.Index, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ix != nil {
		return l.ix, nil
	}
	l.byID = make(map[string]*fleet.Target, len(l.targets))
	readers := make([]reads.Reader, 0, len(l.targets))
	for i := range l.targets {
		t := &l.targets[i]
		id := targetID(t)
		l.byID[id] = t
		readers = append(readers, readerOf(id, t))
	}
	ix, err := reads.Build(ctx, l.tree, readers)
	if err != nil {
		return nil, err
	}
	l.ix = ix
	return ix, nil
}

// readerOf says what a target reads of this repository. A source of a kind that
// isn't known reads everything below its path.
func readerOf(id string, t *fleet.Target) reads.Reader {
	r := reads.Reader{ID: id, Extra: fleet.HereFiles(*t)}
	for _, s := range t.Sources {
		if !s.Here || s.Path == "" {
			continue
		}
		layout := reads.Detected
		if s.Type != "" {
			layout = reads.Layout(strings.ToLower(string(s.Type)))
		}
		r.Sources = append(r.Sources, reads.Source{Path: s.Path, Layout: layout, Recurse: s.Recurse, Include: s.Include, Exclude: s.Exclude})
	}
	return r
}

// idOf finds a target's identity by its name.
func (l *lazyIndex) idOf(name string) string {
	for i := range l.targets {
		if l.targets[i].Name == name {
			return targetID(&l.targets[i])
		}
	}
	return ""
}
