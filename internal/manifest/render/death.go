package render

import (
	"crypto/sha256"
	"fmt"
	"time"
)

// Died is a rendering that the process didn't survive, or was ended for. It is the doing of
// what the source's files say, and would come again.
type Died struct {
	Source string // the source's path
	Cause  string // for people
}

func (d *Died) Error() string { return fmt.Sprintf("rendering %s died: %s", d.Source, d.Cause) }

const (
	// maxDeaths bounds the deaths that are remembered.
	maxDeaths = 10_000
	// firstDeathRetry is how long what a process died of isn't tried again on another
	// commit that has the same source folders, and maxDeathRetry how long at most. It may lie
	// in another folder, which was mended since.
	firstDeathRetry = time.Minute
	maxDeathRetry   = time.Hour
)

// death is what is remembered of one.
type death struct {
	cause   *Died
	tree    string // the identity of the whole tree
	tries   int
	retryAt time.Time // when it is tried again on another tree
}

// again is a death after another one.
func (d death) again(tree string, cause *Died, now time.Time) death {
	wait := maxDeathRetry
	if d.tries < 6 { // 1, 2, 4 … 32 minutes
		wait = firstDeathRetry << d.tries
	}
	return death{cause: cause, tree: tree, tries: d.tries + 1, retryAt: now.Add(wait)}
}

// deathKey is where a death is remembered.
type deathKey struct {
	sources [sha256.Size]byte // what is asked, and what lies at the sources' paths
	tree    string
}

func newDeathKey(input [sha256.Size]byte, j *Job) (deathKey, error) {
	h := sha256.New()
	h.Write(input[:])
	trees := map[string]ContentID{"": j.Tree.ID}
	for branch, t := range j.Input.Branches {
		trees[branch] = t.ID
	}
	for i := range j.Input.Sources {
		s := &j.Input.Sources[i]
		at, ok := cleanTreePath(s.Path)
		id := trees[s.Branch]
		if !s.InTree || !ok || id == nil {
			continue
		}
		what, err := id(at)
		if err != nil {
			return deathKey{}, fmt.Errorf("identifying %s: %w", at, err)
		}
		fmt.Fprintf(h, "%q %q\n", at, what)
	}
	tree, err := j.Tree.ID(".")
	return deathKey{sources: [sha256.Size]byte(h.Sum(nil)), tree: tree}, err
}
