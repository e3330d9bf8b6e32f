package appset

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// maxQueries bounds how many questions of a set are remembered: a matrix
// may ask for other files for every one of its first child's parameters.
const maxQueries = 50_000

// repoQuery is what a git generator asks a repository.
type repoQuery struct {
	url, revision string
	path          string // of files, or the beginnings of folders, separated by NUL
	folders       bool
}

// queryLog is what a set's generators asked, and a digest of the answers. At another commit that answers the same, the set is the same.
type queryLog struct {
	queries      []repoQuery
	answers      hash.Hash
	incomparable bool // the answers can't be told apart by their digest
}

func newQueryLog() *queryLog { return &queryLog{answers: sha256.New()} }

// cachedOutcome is what became of a set, and what that depended on.
type cachedOutcome struct {
	inputs  string // all but the answers
	queries []repoQuery
	commits []string // that the questions were answered at; empty where that is not known
	answers string
	outcome setOutcome
}

// recordQuery notes a question and its answer.
func (ql *queryLog) recordQuery(q repoQuery, files []fileAt, folders []string, err error) {
	if ql.incomparable = ql.incomparable || err != nil || len(ql.queries) == maxQueries; ql.incomparable {
		return
	}
	ql.queries = append(ql.queries, q)
	line := make([]byte, 0, 128)
	note := func(texts ...string) {
		line = line[:0]
		for _, text := range texts {
			line = append(append(line, text...), 0)
		}
		_, _ = ql.answers.Write(line) // a hash doesn't fail
	}
	note("?") // neither a path nor an id
	for i := range files {
		if files[i].id == "" {
			ql.incomparable = true
			return
		}
		note(files[i].name, files[i].id)
	}
	for _, f := range folders {
		note(f)
	}
}

// toCachedOutcome is what a later commit is compared with; nil: it can't be.
func (ql *queryLog) toCachedOutcome(like string, repos *commitRepos, o setOutcome) *cachedOutcome {
	if ql.incomparable || o.transient {
		return nil
	}
	return &cachedOutcome{inputs: like, queries: ql.queries, commits: repos.commitsOf(ql.queries),
		answers: string(ql.answers.Sum(nil)), outcome: o}
}

// commitsOf are those that questions are answered at.
func (c *commitRepos) commitsOf(questions []repoQuery) []string {
	out := make([]string, len(questions))
	for i, q := range questions {
		if at, err := c.resolveRef(q.url, q.revision); err == nil {
			out[i] = at.revision
		}
	}
	return out
}

// rebasedOn is what was settled as it is at another commit that gives the same
// answers: the next is compared with that one.
func (c *cachedOutcome) rebasedOn(repos *commitRepos) *cachedOutcome {
	out := *c
	out.commits = repos.commitsOf(c.queries)
	return &out
}

const (
	// maxChangedFiles bounds the files that may differ for each to be held against
	// the questions; past it, all files are listed.
	maxChangedFiles = 1000
	// maxComparisons bounds how often a file is held against a question.
	maxComparisons = 1_000_000
)

// treeDiffer is a tree that knows which files differ from those of another
// commit, without listing all of them. both says that the file is there in both.
type treeDiffer interface {
	Differing(ctx context.Context, commit string, do func(path string, both bool) error) error
}

// changedFile is one such file.
type changedFile struct {
	path string
	both bool
}

// answerChanges says what may differ in the answers of another commit.
type answerChanges struct {
	known bool // it can be told
	other bool // more than what some of the resolved commit's files say
	files []string
}

// none says that all answers are the same.
func (a *answerChanges) none() bool { return a.known && !a.other && len(a.files) == 0 }

// isUnchanged says that no file that differs could change an answer. False is
// also that this can't be told.
func (c *cachedOutcome) isUnchanged(repos *commitRepos) bool {
	changes := c.findChanges(repos)
	return changes.none()
}

// findChanges says what of the answers the files that differ could change.
func (c *cachedOutcome) findChanges(repos *commitRepos) (out answerChanges) {
	type pair struct {
		at     *commit
		before string
	}
	known := map[pair][]changedFile{}
	compared := 0
	for i, q := range c.queries {
		at, err := repos.resolveRef(q.url, q.revision)
		if err != nil || c.commits[i] == "" || at.revision == "" {
			return answerChanges{}
		}
		if at.revision == c.commits[i] {
			continue
		}
		key := pair{at, c.commits[i]}
		list, ok := known[key]
		if !ok {
			if list, ok = listChangedFiles(repos.ctx, at.tree, key.before); !ok {
				return answerChanges{}
			}
			known[key] = list
		}
		if compared += len(list); compared > maxComparisons {
			return answerChanges{}
		}
		for _, d := range list {
			if !q.isAffectedBy(d, repos.globbing) {
				continue
			}
			out.other = out.other || q.folders || !d.both || at != repos.commit
			out.files = append(out.files, d.path)
		}
	}
	out.known, out.files = true, SortedUnique(out.files)
	return out
}

func listChangedFiles(ctx context.Context, tree fs.FS, before string) (list []changedFile, ok bool) {
	t, ok := tree.(treeDiffer)
	if !ok {
		return nil, false
	}
	err := t.Differing(ctx, before, func(path string, both bool) error {
		if len(list) == maxChangedFiles {
			return errTooManyChanged
		}
		list = append(list, changedFile{path, both})
		return nil
	})
	return list, err == nil
}

var errTooManyChanged = errors.New("too many files differ")

// isAffectedBy says that the answer may be another one because of a file. A folder's name is in the
// paths of its files.
func (r *repoQuery) isAffectedBy(d changedFile, globbing string) bool {
	if r.folders {
		return !d.both && slices.ContainsFunc(strings.Split(r.path, "\x00"),
			func(prefix string) bool { return strings.HasPrefix(d.path, prefix) })
	}
	if globbing == GlobbingDoublestar {
		pattern := strings.TrimPrefix(r.path, "./")
		prefix, _, _ := strings.Cut(literalPrefix(pattern), "{")
		// A pattern that is written otherwise than its files' paths matches by its clean form.
		// A file where it looks for a folder is an error.
		return path.Clean(pattern) != pattern || strings.HasPrefix(d.path, prefix) || strings.HasPrefix(prefix, d.path+"/")
	}
	spec, err := cleanPathspec(r.path)
	return err != nil || matchPathspec(spec, d.path)
}

// repeatQueries asks all questions once more.
func (c *cachedOutcome) repeatQueries(repos *commitRepos) bool {
	if c.answers == "" { // nobody knows what they were
		return false
	}
	again := newQueryLog()
	for _, q := range c.queries {
		var files []fileAt
		var folders []string
		var err error
		if q.folders {
			folders, err = repos.listFolders(q.url, q.revision, strings.Split(q.path, "\x00"))
		} else {
			files, err = repos.locateFiles(q.url, q.revision, q.path)
		}
		if again.recordQuery(q, files, folders, err); again.incomparable {
			return false
		}
	}
	return string(again.answers.Sum(nil)) == c.answers
}
