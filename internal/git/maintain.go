package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"
)

const (
	// keepUnpushedFor is how long a commit that is on no branch stays. A promotion
	// that was composed but not pushed for so long is composed again.
	keepUnpushedFor = 14 * 24 * time.Hour
	// expiry is the same for git's own objects.
	expiry = "2.weeks.ago"
	// maxPacks is how many packs a fetch leaves. With the checks on, git makes one of each fetch,
	// and one of each commit that is written; every look-up searches all of them.
	maxPacks = 50
	// fullRepackEvery is how often everything becomes one pack and what is expired goes.
	fullRepackEvery = 7 * 24 * time.Hour
	// fullRepackFile holds when that was last done.
	fullRepackFile = "liftlock-repacked"
)

// geometricSince is the first git that can join small packs alone.
var geometricSince = version{2, 32}

// Maintain does the work that git would do by itself now and then, at a time that the caller
// chooses (once a day is plenty). It stops keeping commits that Write made and the remote signed
// two weeks ago. It stops keeping heads that FetchRef brought then (those on a branch stay, of
// course), or whose ref has brought another one since. It joins packs, and prunes once a week the
// objects that nothing has referred to for two. It writes the commit graph, which makes ancestry
// and Log with paths fast. Fetch, Push and Write wait for it; reads don't.
func (m *Mirror) Maintain(ctx context.Context) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return m.engine.maintain(ctx)
}

func (mp *mirrorPrograms) maintain(ctx context.Context) error {
	if err := mp.dropExpiredRefs(ctx); err != nil {
		return fmt.Errorf("forget kept commits of the mirror of %s: %w", mp.remote.url, err)
	}
	if err := mp.dropReplacedPacks(ctx); err != nil {
		return fmt.Errorf("let go of what was fetched into the mirror of %s: %w", mp.remote.url, err)
	}
	if err := mp.gitSteps(ctx, []string{"pack-refs", "--all"}); err != nil {
		return err
	}
	name := filepath.Join(mp.dir, fullRepackFile)
	if last, err := os.ReadFile(name); err == nil && mp.opts.Now().Sub(parseTime(last)).Abs() < fullRepackEvery {
		if err := mp.joinPacks(ctx); err != nil {
			return err
		}
		return mp.gitSteps(ctx, []string{"commit-graph", "write", "--reachable", "--changed-paths", "--split", "--no-progress"})
	}
	if err := mp.joinAll(ctx); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(mp.opts.Now().UTC().Format(time.RFC3339)), 0o600)
}

// parseTime reads fullRepackFile; what can't be read is long ago.
func parseTime(b []byte) time.Time {
	t, err := time.Parse(time.RFC3339, string(b))
	if err != nil {
		return time.Time{}
	}
	return t
}

// joinPacks makes few packs of many, cheaply where git can.
func (mp *mirrorPrograms) joinPacks(ctx context.Context) error {
	if mp.git.isOlderThan(geometricSince) {
		return mp.gitSteps(ctx, []string{"repack", "-A", "-d", "-l", "-q"})
	}
	return mp.gitSteps(ctx, []string{"repack", "--geometric=2", "-d", "-l", "-q"})
}

// joinAll makes one pack of everything and drops what is expired.
func (mp *mirrorPrograms) joinAll(ctx context.Context) error {
	return mp.gitSteps(ctx,
		[]string{"repack", "-A", "-d", "-l", "-q", "--unpack-unreachable=" + expiry},
		[]string{"prune", "--expire=" + expiry},
		// The old graph may name commits that are gone now.
		[]string{"commit-graph", "write", "--reachable", "--changed-paths", "--split=replace", "--no-progress"},
	)
}

// joinManyPacks keeps frequent fetches from slowing down every look-up until
// the next maintenance. A failure costs time, not correctness: it is logged.
func (mp *mirrorPrograms) joinManyPacks(ctx context.Context) {
	packs, err := filepath.Glob(filepath.Join(mp.dir, "objects", "pack", "*.pack"))
	kept, kerr := mp.listObjectFiles("pack-*.keep")
	if err = errors.Join(err, kerr); err == nil && len(packs)-len(kept) > maxPacks {
		err = mp.joinPacks(ctx)
	}
	if err != nil {
		mp.log.Warn("joining the mirror's packs", zap.Error(err))
	}
}

func (mp *mirrorPrograms) gitSteps(ctx context.Context, steps ...[]string) error {
	for _, args := range steps {
		if _, err := mp.runGit(ctx, mp.gitCommand(args...)); err != nil {
			if lerr := mp.removeLeftovers(); lerr != nil {
				mp.log.Warn("removing what a failed maintenance left", zap.Error(lerr))
			}
			return mp.localError("maintain the mirror of "+mp.remote.url+": git "+args[0], err)
		}
	}
	return nil
}

// dropExpiredRefs removes the refs that have kept commits for long enough.
func (mp *mirrorPrograms) dropExpiredRefs(ctx context.Context) error {
	fetched, err := mp.listRefs(ctx, fetchedPrefix)
	if err != nil {
		return err
	}
	oldest := mp.opts.Now().UTC().Add(-keepUnpushedFor).Format(keepDay)
	var drop strings.Builder
	for _, prefix := range []string{keepPrefix, signedPrefix} {
		kept, err := mp.listRefs(ctx, prefix)
		if err != nil {
			return err
		}
		for ref := range kept {
			if day, _, _ := strings.Cut(strings.TrimPrefix(ref, prefix), "/"); day < oldest {
				fmt.Fprintf(&drop, "delete %s\n", ref)
			}
		}
	}
	for ref := range fetched {
		// An earlier version's has no day.
		if day, _, _ := strings.Cut(strings.TrimPrefix(ref, fetchedPrefix), "/"); day < oldest || len(day) != len(keepDay) {
			fmt.Fprintf(&drop, "delete %s\n", ref)
		}
	}
	return mp.updateRefs(ctx, drop.String())
}

// updateRefs does what git update-ref reads; nothing where that is nothing.
func (mp *mirrorPrograms) updateRefs(ctx context.Context, script string) error {
	if script == "" {
		return nil
	}
	c := mp.gitCommand("update-ref", "--stdin")
	c.Stdin = []byte(script)
	_, err := mp.runGit(ctx, c)
	return err
}
