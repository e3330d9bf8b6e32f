package git

import (
	"bytes"
	"context"
	"fmt"
)

// signCommit writes the same commit with a signature and keeps that one; what it is made from is
// left to maintenance. It is a step of its own because git fast-import takes signatures only since
// version 2.50.
func (mp *mirrorPrograms) signCommit(ctx context.Context, unsigned string) (string, error) {
	o, err := mp.readObject(unsigned)
	if err != nil {
		return "", fmt.Errorf("read commit %s to sign it: %w", unsigned, err)
	}
	signed, err := mp.opts.SigningKey.SignCommit(o.data)
	if err != nil {
		return "", err
	}
	c := mp.gitCommand("hash-object", "-t", "commit", "-w", "--stdin")
	c.Stdin = signed
	out, err := mp.runGit(ctx, c)
	if err != nil {
		return "", fmt.Errorf("store commit %s with its signature: %w", unsigned, err)
	}
	sha := string(bytes.TrimSpace(out))
	if err := checkSHA(sha); err != nil {
		return "", err
	}
	return sha, mp.setRef(ctx, mp.keepRef(sha), sha)
}
