package fleet

import (
	"crypto/sha256"
	"hash"
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
func (t *trail) settle(like string, o outcome) *settled {
	if t.lost || o.passing {
		return nil
	}
	return &settled{like: like, questions: t.questions, told: string(t.told.Sum(nil)), outcome: o}
}

// still says that a commit gives the same answers.
func (s *settled) still(repos *commitRepos) bool {
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
