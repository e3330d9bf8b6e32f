package git

import (
	"context"
	"fmt"
	"strings"
)

// fetchedPrefix is where FetchRef keeps what it fetched, outside of the branches
// that Fetch mirrors and prunes.
const fetchedPrefix = "refs/liftlock/fetched/"

// FetchRef brings one commit that is on no branch into the mirror: the head of a
// pull request from a fork, which the remote keeps under ref (a full name such as
// "refs/pull/12/head"). Nothing is fetched when the mirror has want already; when
// the remote's ref has moved past it the error is ErrUnknownCommit.
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

func (p *mirrorPrograms) fetchRef(ctx context.Context, ref string) error {
	_, err := p.runRemote(ctx, "fetch "+ref+" of "+p.remote.url,
		"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
		"--no-recurse-submodules", "--", p.remote.url, "+"+ref+":"+fetchedPrefix+ref)
	return err
}
