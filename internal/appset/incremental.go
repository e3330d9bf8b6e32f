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

// maxQuestions bounds how many questions of a set are remembered: a matrix
// may ask for other files for every one of its first child's parameters.
const maxQuestions = 50_000

// question is what a git generator asks a repository.
type question struct {
	url, revision string
	path          string // of files, or the beginnings of folders, separated by NUL
	folders       bool
}

// trail is what a set's generators asked, and a digest of what they were
// told. At another commit that answers the same, the set is the same.
type trail struct {
	questions []question
	told      hash.Hash
	lost      bool // the answers can't be told apart by their digest
}

func newTrail() *trail { return &trail{told: sha256.New()} }

// settled is what became of a set, and what that depended on.
type settled struct {
	like      string // all but the answers
	questions []question
	commits   []string // that the questions were answered at; empty where that is not known
	told      string
	outcome   outcome
}

// asked notes a question and its answer. A recall of nil notes nothing.
func (r *recall) asked(q question, files []fileAt, folders []string, err error) {
	if r != nil {
		r.trail.asked(q, files, folders, err)
	}
}

func (t *trail) asked(q question, files []fileAt, folders []string, err error) {
	if t.lost = t.lost || err != nil || len(t.questions) == maxQuestions; t.lost {
		return
	}
	t.questions = append(t.questions, q)
	line := make([]byte, 0, 128)
	note := func(texts ...string) {
		line = line[:0]
		for _, text := range texts {
			line = append(append(line, text...), 0)
		}
		_, _ = t.told.Write(line) // a hash doesn't fail
	}
	note("?") // neither a path nor an id
	for i := range files {
		if files[i].id == "" {
			t.lost = true
			return
		}
		note(files[i].name, files[i].id)
	}
	for _, f := range folders {
		note(f)
	}
}

// settle is what a later commit is compared with; nil: it can't be.
func (t *trail) settle(like string, repos *commitRepos, o outcome) *settled {
	if t.lost || o.passing {
		return nil
	}
	return &settled{like: like, questions: t.questions, commits: repos.commits(t.questions), told: string(t.told.Sum(nil)), outcome: o}
}

// commits are those that questions are answered at.
func (r *commitRepos) commits(questions []question) []string {
	out := make([]string, len(questions))
	for i, q := range questions {
		if at, err := r.at(q.url, q.revision); err == nil {
			out[i] = at.revision
		}
	}
	return out
}

// moved is what was settled as it is at another commit that gives the same
// answers: the next is compared with that one.
func (s *settled) moved(repos *commitRepos) *settled {
	out := *s
	out.commits = repos.commits(s.questions)
	return &out
}

// still says that a commit gives the same answers: no file that differs from
// the commit before matters to a question, or asked again, all say the same.
func (s *settled) still(repos *commitRepos) bool {
	return s.untouched(repos) || s.again(repos)
}

const (
	// maxDifferent bounds the files that may differ for each to be held against
	// the questions; past it, all files are listed.
	maxDifferent = 1000
	// maxHeld bounds how often a file is held against a question.
	maxHeld = 1_000_000
)

// differing is a tree that knows which files differ from those of another
// commit, without listing all of them. both says that the file is there in both.
type differing interface {
	Differing(ctx context.Context, commit string, do func(path string, both bool) error) error
}

// difference is one such file.
type difference struct {
	path string
	both bool
}

// untouched says that no file that differs could change an answer. False is
// also that this can't be told.
func (s *settled) untouched(repos *commitRepos) bool {
	type pair struct {
		at     *commit
		before string
	}
	known := map[pair][]difference{}
	held := 0
	for i, q := range s.questions {
		at, err := repos.at(q.url, q.revision)
		if err != nil || s.commits[i] == "" || at.revision == "" {
			return false
		}
		if at.revision == s.commits[i] {
			continue
		}
		key := pair{at, s.commits[i]}
		list, ok := known[key]
		if !ok {
			if list, ok = differences(repos.ctx, at.tree, key.before); !ok {
				return false
			}
			known[key] = list
		}
		if held += len(list); held > maxHeld {
			return false
		}
		for _, d := range list {
			if q.concerns(d, repos.globbing) {
				return false
			}
		}
	}
	return true
}

func differences(ctx context.Context, tree fs.FS, before string) (list []difference, ok bool) {
	t, ok := tree.(differing)
	if !ok {
		return nil, false
	}
	err := t.Differing(ctx, before, func(path string, both bool) error {
		if len(list) == maxDifferent {
			return errManyDiffer
		}
		list = append(list, difference{path, both})
		return nil
	})
	return list, err == nil
}

var errManyDiffer = errors.New("too many files differ")

// concerns says that the answer may be another one because of a file. What a
// folder is called is in the paths of its files.
func (q *question) concerns(d difference, globbing string) bool {
	if q.folders {
		return !d.both && slices.ContainsFunc(strings.Split(q.path, "\x00"), func(prefix string) bool { return strings.HasPrefix(d.path, prefix) })
	}
	if globbing == GlobbingDoublestar {
		pattern := strings.TrimPrefix(q.path, "./")
		prefix, _, _ := strings.Cut(literalPrefix(pattern), "{")
		// A pattern that is written otherwise than its files' paths matches by its clean form.
		// A file where it looks for a folder is an error.
		return path.Clean(pattern) != pattern || strings.HasPrefix(d.path, prefix) || strings.HasPrefix(prefix, d.path+"/")
	}
	spec, err := cleanPathspec(q.path)
	return err != nil || matchPathspec(spec, d.path)
}

// again asks all questions once more.
func (s *settled) again(repos *commitRepos) bool {
	again := newTrail()
	for _, q := range s.questions {
		var files []fileAt
		var folders []string
		var err error
		if q.folders {
			folders, err = repos.folders(q.url, q.revision, strings.Split(q.path, "\x00"))
		} else {
			files, err = repos.locate(q.url, q.revision, q.path)
		}
		if again.asked(q, files, folders, err); again.lost {
			return false
		}
	}
	return string(again.told.Sum(nil)) == s.told
}
