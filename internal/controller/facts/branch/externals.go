package branch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/store/record"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/render"
)

// ReadOnlySource is a repository that renderings may read and nothing else.
type ReadOnlySource struct {
	URL    string
	Mirror *git.Mirror
}

// ExternalFiles opens what targets are made of besides their repository: tracked repositories,
// those that are listed to be read, and charts. It is safe for concurrent use.
type ExternalFiles struct {
	Given   render.OpenExternal // all there is; nil: what follows
	sources []ReadOnlySource
	charts  render.OpenExternal
	now     func() time.Time
	Tracked func() []*Repository
	Pushed  record.Reader // tells of pushes to sources; nil: nothing does

	mu       sync.Mutex
	fetched  map[string]fetchedSource // by its URL
	fetching map[string]*sync.Mutex
	tags     map[render.External]foundTag
	opened   map[render.External]openedExternal
	version  uint64 // of what was opened
}

// fetchedSource is when a source was last fetched, and the last push there that was known by then.
type fetchedSource struct {
	at   time.Time
	push string
}

// PushedSources are the last deliveries that told of a push to a source, by its address.
var PushedSources = record.Declare[record.Named, string](record.Declaration{
	Name: "pushed-source", Owner: "server", Lifetime: record.Lasting,
	Doc: "The last delivery that told of a push to a source of the server's file.",
})

// openedExternal is what an external was when it was opened last.
type openedExternal struct {
	revision string // or why it couldn't be had
	isFixed  bool   // it stays so
}

// foundTag is what a tag named when the remote was asked.
type foundTag struct {
	commit string
	err    error
	at     time.Time
}

const (
	// SourceAge is how long a source's branches are taken for where they were, and tagAge a tag.
	SourceAge = 3 * time.Minute
	tagAge    = 10 * time.Minute
	// failedTagAge is how long a tag that can't be had isn't asked for again.
	failedTagAge = time.Minute
	// maxTags bounds the tags that are remembered, and what else was opened.
	maxTags = 5000
	// fetchTimeout bounds a look at a source's remote.
	fetchTimeout = 30 * time.Second
)

// NewExternalFiles makes it. charts gives charts; nil: there are none.
func NewExternalFiles(sources []ReadOnlySource, charts render.OpenExternal, now func() time.Time) *ExternalFiles {
	return &ExternalFiles{sources: sources, charts: charts, now: now, Tracked: func() []*Repository { return nil },
		fetched: map[string]fetchedSource{}, fetching: map[string]*sync.Mutex{}, tags: map[render.External]foundTag{},
		opened: map[render.External]openedExternal{}}
}

// GivenExternalFiles has renderings read what a function gives, and nothing else.
func GivenExternalFiles(open render.OpenExternal) *ExternalFiles { return &ExternalFiles{Given: open} }

var (
	ErrNotListed = errors.New("it is none of the repositories that this server reads: list it under sources in the server's file")
	ErrNoCharts  = errors.New("its repository isn't listed: list it under charts in the server's file")
)

// Open gives an external's files.
func (ef *ExternalFiles) Open(ctx context.Context, e render.External) (render.Tree, error) {
	if ef.Given != nil {
		return ef.Given(ctx, e)
	}
	tree, isFixed, err := ef.find(ctx, e)
	if ctx.Err() == nil {
		ef.record(e, tree, isFixed, err)
	}
	return tree, err
}

// record remembers what an external was, and counts when it is another.
func (ef *ExternalFiles) record(e render.External, tree render.Tree, isFixed bool, err error) {
	now := openedExternal{revision: tree.Revision, isFixed: isFixed && err == nil}
	if err != nil {
		now.revision = err.Error()
	}
	ef.mu.Lock()
	defer ef.mu.Unlock()
	before, known := ef.opened[e]
	if known && before.revision != now.revision {
		ef.version++
	}
	if len(ef.opened) >= maxTags {
		clear(ef.opened)
	}
	ef.opened[e] = now
}

// CurrentVersion changes when something that was opened would be another one now.
func (ef *ExternalFiles) CurrentVersion(ctx context.Context) uint64 {
	if ef == nil || ef.Given != nil {
		return 0
	}
	ef.mu.Lock()
	var loose []render.External
	for e, was := range ef.opened {
		if !was.isFixed {
			loose = append(loose, e)
		}
	}
	ef.mu.Unlock()
	for _, e := range loose {
		_, _ = ef.Open(ctx, e) // it is recorded, as is that it can't be had
	}
	ef.mu.Lock()
	defer ef.mu.Unlock()
	return ef.version
}

// find finds an external's files. isFixed says that they stay what they are: a tag's, a commit's, or
// those of a chart's version.
func (ef *ExternalFiles) find(ctx context.Context, e render.External) (tree render.Tree, isFixed bool, err error) {
	if e.Chart != "" {
		if ef.charts == nil {
			return tree, false, ErrNoCharts
		}
		tree, err = ef.charts(ctx, e)
		return tree, e.Revision == tree.Revision, err
	}
	for _, r := range ef.Tracked() {
		if slices.ContainsFunc(r.URLs, func(u string) bool { return appset.SameRepository(u, e.RepoURL) }) {
			if commit, err := ef.findInRange(ctx, r.Mirror, r.ID, e.Revision); commit != "" || err != nil {
				return treeAt(r.Mirror, commit, false, err)
			}
			commit, err := FindRevision(ctx, r, e.Revision)
			if isTag := commit == "" && err == nil; isTag {
				commit, err = ef.findTag(ctx, r.Mirror, render.External{RepoURL: r.ID, Revision: e.Revision})
				isFixed = true
			}
			return treeAt(r.Mirror, commit, isFixed || commit == e.Revision, err)
		}
	}
	for i := range ef.sources {
		if s := &ef.sources[i]; appset.SameRepository(s.URL, e.RepoURL) {
			commit, isFixed, err := ef.findInSource(ctx, s, e.Revision)
			return treeAt(s.Mirror, commit, isFixed, err)
		}
	}
	return tree, false, ErrNotListed
}

func treeAt(m *git.Mirror, commit string, isFixed bool, err error) (render.Tree, bool, error) {
	if err != nil {
		return render.Tree{}, false, err
	}
	tree := m.Tree(commit)
	return render.Tree{FS: tree, ID: tree.Identity, Revision: commit}, isFixed, nil
}

// findInSource finds a revision of a source, whose branches are fetched when they are old.
func (ef *ExternalFiles) findInSource(ctx context.Context, s *ReadOnlySource, revision string) (commit string, isFixed bool, err error) {
	if known, err := s.Mirror.Has(ctx, revision); err == nil && known {
		return revision, true, nil // a commit stays
	}
	if err := ef.refresh(ctx, s); err != nil {
		return "", false, fmt.Errorf("%s can't be read now: %w", s.URL, err)
	}
	if commit, err := ef.findInRange(ctx, s.Mirror, s.URL, revision); commit != "" || err != nil {
		return commit, false, err
	}
	branch := appset.BranchName(revision)
	if branch == "" {
		heads, err := s.Mirror.Heads(ctx, "")
		if err != nil {
			return "", false, err
		}
		branch = defaultBranch(heads)
	}
	commit, ok, err := s.Mirror.Head(ctx, branch)
	if err != nil || ok {
		return commit, false, err
	}
	if known, err := s.Mirror.Has(ctx, revision); err == nil && known {
		return revision, true, nil
	}
	commit, err = ef.findTag(ctx, s.Mirror, render.External{RepoURL: s.URL, Revision: revision})
	return commit, true, err
}

// defaultBranch is what a source without a revision is read at: a mirror doesn't know the remote's HEAD.
func defaultBranch(heads map[string]string) string {
	for _, name := range []string{"main", "master"} {
		if heads[name] != "" {
			return name
		}
	}
	if len(heads) == 1 {
		for name := range heads {
			return name
		}
	}
	return "HEAD"
}

// refresh fetches a source that wasn't for a while, or to which somebody has pushed since; others wait for it
// meanwhile.
func (ef *ExternalFiles) refresh(ctx context.Context, s *ReadOnlySource) error {
	ef.mu.Lock()
	own := ef.fetching[s.URL]
	if own == nil {
		own = &sync.Mutex{}
		ef.fetching[s.URL] = own
	}
	ef.mu.Unlock()
	own.Lock()
	defer own.Unlock()
	push, err := ef.lastPush(ctx, s)
	if err != nil {
		return err
	}
	ef.mu.Lock()
	last := ef.fetched[s.URL]
	ef.mu.Unlock()
	if last.push == push && ef.now().Before(last.at.Add(SourceAge)) {
		return nil
	}
	heads, err := s.Mirror.Heads(ctx, "")
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	if _, err = s.Mirror.Fetch(limited); err != nil && len(heads) == 0 {
		return err // what it was at last is used otherwise, and a moved branch is seen later
	}
	ef.mu.Lock()
	defer ef.mu.Unlock()
	ef.fetched[s.URL] = fetchedSource{ef.now(), push}
	if last.push != push { // what was pushed may be a tag
		maps.DeleteFunc(ef.tags, func(e render.External, _ foundTag) bool { return e.RepoURL == s.URL })
	}
	return nil
}

// lastPush names the last push to a source of which the forge has told; "" where it told of none.
func (ef *ExternalFiles) lastPush(ctx context.Context, s *ReadOnlySource) (string, error) {
	if ef.Pushed == nil {
		return "", nil
	}
	delivery, _, err := PushedSources.Get(ctx, ef.Pushed, record.Named(s.URL))
	if err != nil {
		return "", fmt.Errorf("read whether somebody pushed to %s: %w", s.URL, err)
	}
	return delivery, nil
}

// findTag asks the remote for a tag, unless that was a moment ago; e says which remote, and which tag.
func (ef *ExternalFiles) findTag(ctx context.Context, m *git.Mirror, e render.External) (string, error) {
	ef.mu.Lock()
	known, is := ef.tags[e]
	ef.mu.Unlock()
	age := tagAge
	if known.err != nil {
		age = failedTagAge
	}
	if is && ef.now().Before(known.at.Add(age)) {
		return known.commit, known.err
	}
	tag := cmp.Or(appset.BranchName(e.Revision), "HEAD")
	limited, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	commit, err := m.FetchTag(limited, TrimTag(tag))
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		if known.commit != "" { // the remote may be away: the tag was there
			commit, err = known.commit, nil
		} else {
			err = fmt.Errorf("it has no branch, tag or fetched commit %q, or can't be asked now", e.Revision)
		}
	}
	ef.keepTag(e, foundTag{commit, err, ef.now()})
	return commit, err
}

// keepTag remembers what came of looking for a tag, or for the newest in a range, bounded.
func (ef *ExternalFiles) keepTag(e render.External, found foundTag) {
	ef.mu.Lock()
	defer ef.mu.Unlock()
	if len(ef.tags) >= maxTags {
		clear(ef.tags)
	}
	ef.tags[e] = found
}

// findInRange finds the newest tag of a remote in a range of versions, and looks for it again once
// it is as old as a source's branches may be. It is "" where a revision is no range, or none is in
// it: then it is a name.
func (ef *ExternalFiles) findInRange(ctx context.Context, m *git.Mirror, remote, revision string) (string, error) {
	allowed, ok := render.ParseTagRange(revision)
	if !ok {
		return "", nil
	}
	key := render.External{RepoURL: remote, Revision: tagRangeMark + revision}
	ef.mu.Lock()
	known, is := ef.tags[key]
	ef.mu.Unlock()
	if is && ef.now().Before(known.at.Add(SourceAge)) {
		return known.commit, known.err
	}
	limited, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	tags, err := m.RemoteTags(limited)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	found := foundTag{at: ef.now()}
	switch newest := render.NewestVersion(allowed, tags); {
	case err != nil && known.commit != "": // the remote may be away: the tag was there
		found.commit = known.commit
	case err != nil:
		found.err = fmt.Errorf("its tags in the range %q can't be looked for now", revision)
	case newest != "":
		found.commit, found.err = ef.findTag(ctx, m, render.External{RepoURL: remote, Revision: tagsPrefix + newest})
	case strings.ContainsAny(revision, "*^~<> "): // no branch or tag has such a name, others may
		found.err = fmt.Errorf("it has no tag in the range %q", revision)
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	ef.keepTag(key, found)
	return found.commit, found.err
}

// tagsPrefix begins a tag's name in full, and tagRangeMark what is remembered of a range of tags: no tag's name has a colon.
const (
	tagsPrefix   = "refs/tags/"
	tagRangeMark = "range:"
)

// TrimTag is a tag's name, which may be written in full.
func TrimTag(name string) string { return strings.TrimPrefix(name, tagsPrefix) }

// OpenExternal is what renderings open externals with; nil where there is none.
func OpenExternal(ef *ExternalFiles) render.OpenExternal {
	if ef == nil {
		return nil
	}
	return ef.Open
}
