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

// FetchRef brings one commit that is on no branch into the mirror: the head of a
// pull request from a fork, which the remote keeps under ref (a full name such as
// "refs/pull/12/head"). Nothing is fetched when the mirror has want already; when
// the remote's ref has moved past it the error is ErrUnknownCommit, and ErrTooLarge when
// it brings more than Options.MaxRefBytes. Maintain forgets it after two weeks.
func (m *Mirror) FetchRef(ctx context.Context, ref, want string) error {
	name, ok := strings.CutPrefix(ref, "refs/")
	if !ok {
		return &Error{Op: fmt.Sprintf("fetch %q", shortenForLog(ref)), Kind: ErrInvalid, Hint: "a full ref name starts with refs/"}
	}
	if err := checkBranch(name); err != nil {
		return err
	}
	if ok, err := m.Has(ctx, want); err != nil || ok {
		return err
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

// fetchRef fetches into one pack, so that what it brings can be measured, and so that it
// can go again as a whole: until its ref is dropped the pack is joined with no other.
func (p *mirrorPrograms) fetchRef(ctx context.Context, ref string) error {
	before, err := p.listPacks()
	if err != nil {
		return err
	}
	most := p.opts.MaxRefBytes
	op := "fetch " + ref + " of " + p.remote.url
	fetching, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	large := &Error{Op: op, Kind: ErrTooLarge, Hint: fmt.Sprintf("it brings more than %d MiB that the repository doesn't have", most>>20)}
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		if p.awaitLargePack(fetching, most) {
			cancel(large)
		}
	}()
	kept := fetchedPrefix + p.opts.Now().UTC().Format(keepDay) + "/" + ref
	_, err = p.runRemote(fetching, op,
		"-c", "fetch.unpackLimit=1", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
		"--no-recurse-submodules", "--", p.remote.url, "+"+ref+":"+kept)
	cancel(nil)
	<-watching
	if errors.Is(context.Cause(fetching), ErrTooLarge) {
		return errors.Join(large, p.removeLeftovers())
	}
	if err != nil {
		return err
	}
	packs, err := p.listPacks()
	if err != nil {
		return err
	}
	for pack, size := range packs {
		if _, old := before[pack]; old {
			continue
		}
		if size > most {
			return errors.Join(large, p.setRef(ctx, kept, ""), p.removePack(pack))
		}
		if err := os.WriteFile(strings.TrimSuffix(pack, ".pack")+".keep", []byte(kept+"\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// fetchCommit fetches by the id alone, which GitHub allows of what is on no ref too. Few objects
// stay single files, so that these leave no pack each.
func (p *mirrorPrograms) fetchCommit(ctx context.Context, sha string) error {
	_, err := p.runRemote(ctx, "fetch "+sha+" of "+p.remote.url,
		"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--", p.remote.url, sha)
	return err
}

// listPacks are the sizes of the packs by their files' names.
func (p *mirrorPrograms) listPacks() (map[string]int64, error) {
	return p.listObjectFiles("pack-*.pack")
}

func (p *mirrorPrograms) listObjectFiles(pattern string) (map[string]int64, error) {
	names, err := filepath.Glob(filepath.Join(p.dir, "objects", "pack", pattern))
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
func (p *mirrorPrograms) awaitLargePack(ctx context.Context, most int64) bool {
	tick := time.NewTicker(watchPackEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		sizes, err := p.listObjectFiles("tmp_pack_*")
		for _, size := range sizes {
			if err == nil && size > most {
				return true
			}
		}
	}
}

// removePack removes a pack that nothing refers to, its index first: then nobody finds
// anything in it.
func (p *mirrorPrograms) removePack(pack string) error {
	for _, suffix := range []string{".idx", ".rev", ".keep", ".pack"} {
		if err := os.Remove(strings.TrimSuffix(pack, ".pack") + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// isFetchedKeep says that a file keeps a pack that FetchRef brought, as long as its ref is
// there; git's own are left by fetches that were killed.
func isFetchedKeep(name string) bool {
	if !strings.HasSuffix(name, ".keep") {
		return false
	}
	ref, err := os.ReadFile(name)
	return err == nil && strings.HasPrefix(string(ref), fetchedPrefix)
}

// releaseFetchedPacks lets the packs go of which no ref is left that was fetched.
func (p *mirrorPrograms) releaseFetchedPacks(ctx context.Context) error {
	refs, err := p.listRefs(ctx, fetchedPrefix)
	if err != nil {
		return err
	}
	keeps, err := p.listObjectFiles("pack-*.keep")
	if err != nil {
		return err
	}
	for keep := range keeps {
		ref, err := os.ReadFile(keep)
		if err != nil {
			return err
		}
		if name := strings.TrimSpace(string(ref)); strings.HasPrefix(name, fetchedPrefix) && refs[name] == "" {
			if err := os.Remove(keep); err != nil {
				return err
			}
		}
	}
	return nil
}
