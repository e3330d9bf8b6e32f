package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/git/smarthttp"
	"github.com/liftlock/liftlock/internal/proc"
)

const (
	// maxSmartWants bounds the branches of which one smart fetch brings commits: more than that
	// move at once only in a first fetch and after a long rest.
	maxSmartWants = 64
	// maxSmartHaves bounds what the remote is told that the mirror has.
	maxSmartHaves = 256
	// haveAncestors is how many commits before a branch that moved are named besides: one that
	// was pushed over is often built on one of them.
	haveAncestors = 16
	// maxAncestorsOf is of how many that moved.
	maxAncestorsOf = 4
)

// strictCheck is what mirrorConfig has git fetch check.
var strictCheck = "--strict=" + strings.Join(strings.Fields(strings.ReplaceAll(toleratedFaults, " = ", "=")), ",")

// fetchSmart does as runFetch with two requests at most, and gives the branches that there are
// then.
func (mp *mirrorPrograms) fetchSmart(ctx context.Context, before, expected map[string]string) (heads map[string]string, err error) {
	if len(before) == 0 {
		return nil, errLeaveToPrograms // the first fetch, which may be large
	}
	op := "fetch " + mp.remote.url
	expecting, stop := context.WithCancel(ctx)
	defer stop()
	var besides sync.WaitGroup
	var missed error
	besides.Go(func() { missed = mp.bringExpected(expecting, op, before, expected) })
	defer func() {
		if err == nil && missed == nil {
			return
		}
		if rerr := mp.removeLeftovers(); rerr != nil { // of what was killed, or couldn't use what came
			mp.log.Warn("what an interrupted fetch left can't be removed; it is tried again when the mirror is opened", zap.Error(rerr))
		}
	}()
	var remote map[string]string
	err = mp.trySmart(ctx, op, func(ctx context.Context, who smarthttp.Credentials) (err error) {
		remote, err = mp.smart.client.Refs(ctx, who, headsPrefix, hydratorNotes)
		return err
	})
	if err != nil {
		stop()
	}
	besides.Wait()
	if err != nil {
		return nil, err
	}
	heads = map[string]string{}
	notes := map[string]string{}
	for ref, sha := range remote {
		if branch, ok := strings.CutPrefix(ref, headsPrefix); ok {
			heads[branch] = sha
		} else {
			notes[ref] = sha
		}
	}
	if len(heads) == 0 {
		return nil, errLeaveToPrograms // it can't be meant, and the programs' way to tell is the one
	}
	if mp.smart.notes == nil {
		if mp.smart.notes, err = mp.listRefs(ctx, notesPrefix); err != nil {
			return nil, fmt.Errorf("%w: %w", errLeaveToPrograms, err)
		}
	}
	was := fullNames(before)
	maps.Copy(was, mp.smart.notes)
	changes := diffHeads(was, remote) // by full names
	if len(changes) == 0 {
		return heads, nil
	}
	if err := mp.follow(ctx, op, before, changes); err != nil {
		return nil, err
	}
	mp.smart.notes = notes
	return heads, nil
}

// follow brings what some refs are to be moved to, and moves them.
func (mp *mirrorPrograms) follow(ctx context.Context, op string, before map[string]string, changes []RefChange) error {
	var commits, moved []string
	for _, c := range changes {
		commits, moved = append(commits, c.New), append(moved, c.Old)
	}
	wants, err := mp.listMissing(commits)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errLeaveToPrograms, err)
	case len(wants) > maxSmartWants:
		return errLeaveToPrograms
	case len(wants) > 0:
		if err := mp.trySmart(ctx, op, mp.bringing(wants, mp.listHaves(before, moved))); err != nil {
			return err
		}
	}
	if err := mp.checkConnected(ctx, commits); err != nil {
		return fmt.Errorf("%w: %w", errLeaveToPrograms, err)
	}
	if err := mp.moveRefs(ctx, changes); err != nil {
		return fmt.Errorf("%w: %w", errLeaveToPrograms, err)
	}
	return nil
}

// bringExpected fetches what branches are expected to be at. Nothing comes of it where that isn't
// so, or the remote doesn't give it: what is really missing is fetched afterwards.
func (mp *mirrorPrograms) bringExpected(ctx context.Context, op string, before, expected map[string]string) error {
	if !mp.smart.isUsable(mp.opts.Now()) || mp.damaged.Load() {
		return nil
	}
	var commits, moved []string
	for branch, sha := range expected {
		commits, moved = append(commits, sha), append(moved, before[branch])
	}
	wants, err := mp.listMissing(commits)
	if err == nil && len(wants) > 0 {
		_, err = mp.trySmartOnce(ctx, op, mp.bringing(wants, mp.listHaves(before, moved)))
	}
	if err != nil {
		mp.log.Debug("a commit that was expected didn't come", zap.Error(err))
	}
	return err
}

// listMissing are those of some commits that the mirror doesn't have, each once; empty ones count
// for nothing.
func (mp *mirrorPrograms) listMissing(commits []string) (missing []string, err error) {
	for _, sha := range commits {
		if sha == "" || slices.Contains(missing, sha) {
			continue
		}
		switch _, err := mp.findObject(sha); {
		case errors.Is(err, errMissing):
			missing = append(missing, sha)
		case err != nil:
			return nil, err
		}
	}
	return missing, nil
}

// bringing has commits sent, and stores them.
func (mp *mirrorPrograms) bringing(wants, haves []string) func(context.Context, smarthttp.Credentials) error {
	return func(ctx context.Context, who smarthttp.Credentials) error {
		return mp.smart.client.Pack(ctx, who, wants, haves, func(pack io.Reader) error { return mp.unpack(ctx, pack) })
	}
}

// listHaves names what the mirror has: what moved with what was before it, and other branches.
func (mp *mirrorPrograms) listHaves(heads map[string]string, moved []string) []string {
	seen := map[string]bool{}
	var haves []string
	add := func(sha string) {
		if !seen[sha] && len(haves) < maxSmartHaves {
			seen[sha] = true
			haves = append(haves, sha)
		}
	}
	for i, sha := range slices.DeleteFunc(moved, func(sha string) bool { return sha == "" }) {
		add(sha)
		for n := 0; i < maxAncestorsOf && n < haveAncestors; n++ {
			c, err := mp.readCommit(sha)
			if err != nil || len(c.Parents) == 0 { // a note's, or the first
				break
			}
			sha = c.Parents[0]
			add(sha)
		}
	}
	for _, branch := range slices.Sorted(maps.Keys(heads)) {
		add(heads[branch])
	}
	return haves
}

// unpack stores a pack as git fetch does, after the checks that the mirror is configured to have
// (transfer.fsckObjects).
func (mp *mirrorPrograms) unpack(ctx context.Context, pack io.Reader) error {
	c := mp.gitCommand("index-pack", "--stdin", "--fix-thin", strictCheck)
	c.MaxStdout = 0 // piped
	git, err := proc.Start(ctx, c)
	if err != nil {
		return err
	}
	received := &readError{r: bufio.NewReaderSize(pack, 64<<10)}
	_, err = io.Copy(git.Stdin, received)
	if received.err != nil { // before the program's words about what it then misses
		git.End()
		return received.err
	}
	if werr := git.Wait(); werr != nil {
		return werr
	}
	return err
}

// readError keeps why reading ended.
type readError struct {
	r   io.Reader
	err error
}

func (r *readError) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// checkConnected says whether all objects of commits are there, as git fetch does before it moves a
// ref. After a crash, for example, a commit may be there without them.
func (mp *mirrorPrograms) checkConnected(ctx context.Context, commits []string) error {
	c := mp.gitCommand("rev-list", "--objects", "--stdin", "--not", "--all", "--quiet")
	var wanted bytes.Buffer
	for _, sha := range commits {
		if sha != "" {
			wanted.WriteString(sha + "\n")
		}
	}
	c.Stdin = wanted.Bytes()
	_, err := mp.runGit(ctx, c)
	return err
}
