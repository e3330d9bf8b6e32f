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
func (p *mirrorPrograms) fetchBranches(ctx context.Context, before, expected map[string]string) (map[string]string, error) {
	heads, left := p.fetchSmart(ctx, before, expected)
	if !errors.Is(left, errLeaveToPrograms) {
		if left == nil {
			p.joinManyPacks(ctx)
		}
		return heads, left
	}
	p.smart.notes = nil
	if err := p.fetchByProgram(ctx); err != nil {
		return nil, err
	}
	p.leftToPrograms(left)
	return nil, nil
}

func (p *mirrorPrograms) fetchByProgram(ctx context.Context) error {
	if p.damaged.Swap(false) {
		if err := p.renewIfDamaged(ctx); err != nil {
			return err
		}
	}
	err := p.runFetch(ctx)
	if err != nil && ctx.Err() == nil && maybeDamaged(err) {
		if err := p.renewIfDamaged(ctx); err != nil {
			return err
		}
		err = p.runFetch(ctx)
	}
	if err == nil {
		p.joinManyPacks(ctx)
	}
	return err
}

func (p *mirrorPrograms) runFetch(ctx context.Context) error {
	_, err := p.runRemote(ctx, "fetch "+p.remote.url,
		"fetch", "--quiet", "--no-tags", "--prune", "--no-write-fetch-head", "--no-auto-maintenance",
		"--no-recurse-submodules", "--", p.remote.url, "+refs/heads/*:refs/heads/*",
		"+"+hydratorNotes+"*:"+hydratorNotes+"*") // as a pattern it needn't be there
	return err
}

func (p *mirrorPrograms) restoreBranches(ctx context.Context, heads map[string]string) error {
	return p.moveRefs(ctx, diffHeads(nil, fullNames(heads)))
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
func (p *mirrorPrograms) moveRefs(ctx context.Context, changes []RefChange) error {
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
	c := p.gitCommand("update-ref", "--stdin")
	c.Stdin = script.Bytes()
	_, err := p.runGit(ctx, c)
	return err
}

// renewIfDamaged throws the mirror away if it really is damaged: a read or a
// fetch can fail like that for want of memory or open files, too.
func (p *mirrorPrograms) renewIfDamaged(ctx context.Context) error {
	_, err := p.runGit(ctx, p.gitCommand("fsck", "--no-dangling", "--no-progress"))
	if err == nil {
		p.log.Info("something looked like damage, but the mirror is sound")
		return nil
	}
	if ctx.Err() != nil {
		p.damaged.Store(true) // still to be looked at
		return fmt.Errorf("check the mirror in %s for damage: %w", p.dir, ctx.Err())
	}
	p.log.Warn("the mirror is damaged, making it anew", zap.Error(err))
	if err := p.createEmpty(ctx); err != nil {
		p.damaged.Store(true)
		return fmt.Errorf("make the damaged mirror in %s anew: %w", p.dir, err)
	}
	return nil
}

func (p *mirrorPrograms) listRefs(ctx context.Context, prefix string) (map[string]string, error) {
	out, err := p.runGit(ctx, p.gitCommand("for-each-ref", "--format=%(objectname) %(refname)", "--", prefix))
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
