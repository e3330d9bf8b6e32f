package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// fetchedPrefix is where FetchRef keeps what it fetched, by the day, outside of the branches
// that Fetch mirrors and prunes.
const fetchedPrefix = "refs/liftlock/fetched/"

// FetchRef brings one commit that is on no branch into the mirror: the head of a pull request from
// a fork. The remote keeps it under ref (a full name such as "refs/pull/12/head"). It fetches
// nothing when the mirror has want already. When the remote's ref has moved past it the error is
// ErrUnknownCommit. It is ErrTooLarge when the ref brings more than Options.MaxRefBytes that is on
// no branch. Maintain forgets the commit after two weeks, and ref's earlier commits sooner. Another
// FetchRef may forget these too, where they take too much room.
func (m *Mirror) FetchRef(ctx context.Context, ref, want string) error {
	name, ok := strings.CutPrefix(ref, "refs/")
	if !ok {
		return &Error{Op: fmt.Sprintf("fetch %q", shortenForLog(ref)), Kind: ErrInvalid, Hint: "a full ref name starts with refs/"}
	}
	if err := checkBranch(name); err != nil {
		return err
	}
	ok, err := m.Has(ctx, want)
	if err != nil {
		return err
	}
	if ok {
		// A ref that is back where it was: what is about to go has to stay.
		if replaced, err := m.engine.isReplaced(ctx, want); err != nil || !replaced {
			return err
		}
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := m.engine.fetchRef(ctx, ref); err != nil {
		return err
	}
	ok, err = m.Has(ctx, want)
	if err == nil && !ok {
		err = fmt.Errorf("%s of %s is no longer at %s: %w", ref, m.url, want, ErrUnknownCommit)
	}
	return err
}

// fetchRef fetches into one pack, so that its size can be measured and it can be dropped as a
// whole. Until its ref is dropped, or at another commit, the pack is joined with no other. It tells
// the remote of our branches alone. If the remote could leave out the objects of another pull
// request's head, or of this one's earlier head, a head could grow without a bound.
func (mp *mirrorPrograms) fetchRef(ctx context.Context, ref string) error {
	if err := mp.dropManyReplacedPacks(ctx); err != nil {
		return fmt.Errorf("make room in the mirror of %s: %w", mp.remote.url, err)
	}
	before, err := mp.listPacks()
	if err != nil {
		return err
	}
	most := mp.opts.MaxRefBytes
	op := "fetch " + ref + " of " + mp.remote.url
	timed, stop := context.WithTimeout(ctx, boundedFetch)
	defer stop()
	fetching, cancel := context.WithCancelCause(timed)
	defer cancel(nil)
	large := &Error{Op: op, Kind: ErrTooLarge, Hint: fmt.Sprintf("it brings more than %d MiB that the repository doesn't have", most>>20)}
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		if mp.awaitLargePack(fetching, most) {
			cancel(large)
		}
	}()
	kept := fetchedPrefix + mp.opts.Now().UTC().Format(keepDay) + "/" + ref
	_, err = mp.runRemoteWithin(fetching, mp.limits(), op,
		"-c", "fetch.unpackLimit=1", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
		"--no-recurse-submodules", "--negotiation-tip="+headsPrefix+"*", "--", mp.remote.url, "+"+ref+":"+kept)
	cancel(nil)
	<-watching
	if errors.Is(context.Cause(fetching), ErrTooLarge) {
		return errors.Join(large, mp.removeLeftovers())
	}
	if why := refusedHead(err); why != nil {
		why.Op = op
		return errors.Join(why, mp.removeLeftovers())
	}
	if err != nil {
		return err
	}
	refs, err := mp.listRefs(ctx, fetchedPrefix)
	if err != nil {
		return err
	}
	packs, err := mp.listPacks()
	if err != nil {
		return err
	}
	for pack, size := range packs {
		if _, old := before[pack]; old {
			continue
		}
		if size > most {
			return errors.Join(large, mp.setRef(ctx, kept, ""), mp.removePack(pack))
		}
		keep := fetchedKeep{file: strings.TrimSuffix(pack, ".pack") + ".keep", ref: kept, head: refs[kept]}
		if err := keep.write(); err != nil {
			return err
		}
	}
	var drop strings.Builder
	for name := range refs {
		if _, of, _ := strings.Cut(strings.TrimPrefix(name, fetchedPrefix), "/"); of == ref && name != kept {
			fmt.Fprintf(&drop, "delete %s\n", name)
		}
	}
	return mp.updateRefs(ctx, drop.String())
}

// refusedHead is why what was to be fetched won't be had by another try either; nil: it may be.
func refusedHead(err error) *Error {
	if errors.Is(err, ErrRejected) {
		return &Error{Kind: ErrRejected, Hint: refusedObject(err)}
	}
	if why := pastLimits(err); why != "" {
		return &Error{Kind: ErrTooLarge, Hint: "fetching it " + why}
	}
	return nil
}

// fetchCommit fetches by the id alone, which GitHub allows of what is on no ref too. Few objects
// stay single files, so that these leave no pack each.
func (mp *mirrorPrograms) fetchCommit(ctx context.Context, sha string) error {
	_, err := mp.runRemote(ctx, "fetch "+sha+" of "+mp.remote.url,
		"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--",
		mp.remote.url, sha)
	return err
}

// listPacks are the sizes of the packs by their files' names.
func (mp *mirrorPrograms) listPacks() (map[string]int64, error) {
	return mp.listObjectFiles("pack-*.pack")
}

func (mp *mirrorPrograms) listObjectFiles(pattern string) (map[string]int64, error) {
	names, err := filepath.Glob(filepath.Join(mp.dir, "objects", "pack", pattern))
	if err != nil {
		return nil, err
	}
	sizes := make(map[string]int64, len(names))
	for _, name := range names {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		sizes[name] = info.Size()
	}
	return sizes, nil
}

// watchPackEvery is how often it is looked how much has come. git has no limit of its own
// for a fetch.
const watchPackEvery = 100 * time.Millisecond

// awaitLargePack waits until a pack that is being written has become too large; false when
// the context ended before.
func (mp *mirrorPrograms) awaitLargePack(ctx context.Context, most int64) bool {
	tick := time.NewTicker(watchPackEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		sizes, err := mp.listObjectFiles("tmp_pack_*")
		for _, size := range sizes {
			if err == nil && size > most {
				return true
			}
		}
	}
}

// removePack removes a pack that nothing refers to, its index first: then nobody finds
// anything in it.
func (mp *mirrorPrograms) removePack(pack string) error {
	for _, suffix := range []string{".idx", ".rev", ".keep", ".pack"} {
		if err := os.Remove(strings.TrimSuffix(pack, ".pack") + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
