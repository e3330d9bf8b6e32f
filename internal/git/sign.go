package git

import (
	"bytes"
	"context"
	"fmt"
)

// signCommit writes the same commit with a signature and keeps that one; what it is made from is
// left to maintenance. It is a step of its own because git fast-import takes signatures only since
// version 2.50.
func (p *mirrorPrograms) signCommit(ctx context.Context, unsigned string) (string, error) {
	o, err := p.readObject(unsigned)
	if err != nil {
		return "", fmt.Errorf("read commit %s to sign it: %w", unsigned, err)
	}
	signed, err := p.opts.SigningKey.SignCommit(o.data)
	if err != nil {
		return "", err
	}
	c := p.gitCommand("hash-object", "-t", "commit", "-w", "--stdin")
	c.Stdin = signed
	out, err := p.runGit(ctx, c)
	if err != nil {
		return "", fmt.Errorf("store commit %s with its signature: %w", unsigned, err)
	}
	sha := string(bytes.TrimSpace(out))
	if err := checkSHA(sha); err != nil {
		return "", err
	}
	return sha, p.setRef(ctx, p.keepRef(sha), sha)
}
