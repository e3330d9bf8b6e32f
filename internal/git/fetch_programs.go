package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"
)

// fetchBranches makes a damaged mirror anew before, or when git meets it on the way.
func (mp *mirrorPrograms) fetchBranches(ctx context.Context, before, expected map[string]string) (map[string]string, error) {
	heads, left := mp.fetchSmart(ctx, before, expected)
	if !errors.Is(left, errLeaveToPrograms) {
		if left == nil {
			mp.joinManyPacks(ctx)
		}
		return heads, left
	}
	mp.smart.notes = nil
	if err := mp.fetchByProgram(ctx); err != nil {
		return nil, err
	}
	mp.leftToPrograms(left)
	return nil, nil
}

func (mp *mirrorPrograms) fetchByProgram(ctx context.Context) error {
	if mp.damaged.Swap(false) {
		if err := mp.renewIfDamaged(ctx); err != nil {
			return err
		}
	}
	err := mp.runFetch(ctx)
	if err != nil && ctx.Err() == nil && maybeDamaged(err) {
		if err := mp.renewIfDamaged(ctx); err != nil {
			return err
		}
		err = mp.runFetch(ctx)
	}
	if err == nil {
		mp.joinManyPacks(ctx)
	}
	return err
}

func (mp *mirrorPrograms) runFetch(ctx context.Context) error {
	_, err := mp.runRemote(ctx, "fetch "+mp.remote.url,
		"fetch", "--quiet", "--no-tags", "--prune", "--no-write-fetch-head", "--no-auto-maintenance",
		"--no-recurse-submodules", "--", mp.remote.url, "+refs/heads/*:refs/heads/*",
		"+"+hydratorNotes+"*:"+hydratorNotes+"*") // as a pattern it needn't be there
	return err
}

func (mp *mirrorPrograms) restoreBranches(ctx context.Context, heads map[string]string) error {
	return mp.moveRefs(ctx, diffHeads(nil, fullNames(heads)))
}

// fullNames are branches by the names of their refs.
func fullNames(heads map[string]string) map[string]string {
	refs := make(map[string]string, len(heads))
	for branch, sha := range heads {
		refs[headsPrefix+branch] = sha
	}
	return refs
}

// moveRefs moves refs, which are changed by their full names: all or none.
func (mp *mirrorPrograms) moveRefs(ctx context.Context, changes []RefChange) error {
	var script bytes.Buffer
	for _, c := range changes {
		switch {
		case c.New == "":
			fmt.Fprintf(&script, "delete %s %s\n", c.Branch, c.Old)
		case c.Old == "":
			fmt.Fprintf(&script, "create %s %s\n", c.Branch, c.New)
		default:
			fmt.Fprintf(&script, "update %s %s %s\n", c.Branch, c.New, c.Old)
		}
	}
	c := mp.gitCommand("update-ref", "--stdin")
	c.Stdin = script.Bytes()
	_, err := mp.runGit(ctx, c)
	return err
}

// renewIfDamaged throws the mirror away if it really is damaged: a read or a
// fetch can fail like that for want of memory or open files, too.
func (mp *mirrorPrograms) renewIfDamaged(ctx context.Context) error {
	_, err := mp.runGit(ctx, mp.gitCommand("fsck", "--no-dangling", "--no-progress"))
	if err == nil {
		mp.log.Info("something looked like damage, but the mirror is sound")
		return nil
	}
	if ctx.Err() != nil {
		mp.damaged.Store(true) // still to be repaired
		return fmt.Errorf("check the mirror in %s for damage: %w", mp.dir, ctx.Err())
	}
	mp.log.Warn("the mirror is damaged, making it anew", zap.Error(err))
	if err := mp.createEmpty(ctx); err != nil {
		mp.damaged.Store(true)
		return fmt.Errorf("make the damaged mirror in %s anew: %w", mp.dir, err)
	}
	return nil
}

func (mp *mirrorPrograms) listRefs(ctx context.Context, prefix string) (map[string]string, error) {
	out, err := mp.runGit(ctx, mp.gitCommand("for-each-ref", "--format=%(objectname) %(refname)", "--", prefix))
	if err != nil {
		return nil, err
	}
	refs := map[string]string{}
	for line := range bytes.Lines(out) {
		sha, ref, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		if !ok || !isSHA(sha) {
			return nil, fmt.Errorf("git for-each-ref answers %q", shortenForLog(string(line)))
		}
		refs[ref] = sha
	}
	return refs, nil
}
