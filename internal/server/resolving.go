package server

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/wording"
)

// resolvingCommits puts on record, in the data directory, which commit of a repository is being
// resolved. A commit that kills the process must not do so at each start, and keep all others from
// being served. A process of this directory died on any commit that is left there; a clean end
// leaves nothing.
type resolvingCommits struct {
	dir string
	now func() time.Time
	log *zap.Logger
}

// resolvingRecord is the content of a repository's file.
type resolvingRecord struct {
	Repo, Commit string
	Busy         bool      // it is being resolved
	Deaths       int       // how many processes have ended so
	At           time.Time // when the last of them was found
}

// deathDelays are how long a commit is left alone after so many deaths: a machine that went away
// counts once and delays nothing.
var deathDelays = []time.Duration{0, 0, time.Minute, 5 * time.Minute, 15 * time.Minute}

// begin puts a commit on record until done is called. The error says that it is left alone for now;
// another commit is not.
func (rc *resolvingCommits) begin(repo, commit string) (done func(), err error) {
	sum := sha256.Sum256([]byte(repo))
	file := filepath.Join(rc.dir, "resolving-"+hex.EncodeToString(sum[:8])+".json")
	r := resolvingRecord{Repo: repo, Commit: commit}
	raw, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read which commit of %s was being resolved: %w", repo, err)
	}
	var was resolvingRecord
	if json.Unmarshal(raw, &was) == nil && was.Commit == commit && was.Repo == repo { // else it is of no use
		if r = was; r.Busy {
			r.Deaths, r.At = r.Deaths+1, rc.now()
			rc.log.Error("a process of Liftlock's ended while it resolved this commit", zap.String("repository", repo),
				zap.String("commit", commit), zap.Int("times", r.Deaths))
		}
	}
	until := r.At.Add(deathDelays[min(r.Deaths, len(deathDelays)-1)])
	r.Busy = !rc.now().Before(until)
	if raw, err = json.Marshal(r); err != nil {
		return nil, err
	}
	// No more than the process's death has to be outlived, so nothing is synced.
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return nil, fmt.Errorf("put on record which commit of %s is being resolved: %w", repo, err)
	}
	if !r.Busy {
		return nil, fmt.Errorf("the process ended %d times while it resolved %s at %s, so it is left alone until %s; push a commit that "+
			"mends it",
			r.Deaths, repo, wording.Short(commit), until.UTC().Format(time.RFC3339))
	}
	return func() {
		if err := os.Remove(file); err != nil {
			rc.log.Warn("that a commit was resolved couldn't be put on record", zap.String("repository", repo), zap.Error(err))
		}
	}, nil
}
