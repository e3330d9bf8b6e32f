package github

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// emptyTree is the tree without files, which Git has without being given it.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// SignCommit makes a commit by the Git database API. GitHub signs it where the credentials are an
// App's and the call names no author or committer ("About commit signature verification", signature
// verification for bots). It takes two calls, and one more for each file that isn't text.
func (d *Driver) SignCommit(ctx context.Context, r forge.Repo, c forge.NewCommit) (string, error) {
	op := "have a commit to " + r.String() + " signed"
	if err := checkSignedSize(op, c.Changes); err != nil {
		return "", err
	}
	if err := d.createTree(ctx, op, r, c); err != nil {
		return "", err
	}
	ctx, owner, name := inRepo(ctx, r)
	parents := make([]*gh.Commit, len(c.Parents))
	for i := range c.Parents {
		parents[i] = &gh.Commit{SHA: &c.Parents[i]}
	}
	made, _, err := d.api.Git.CreateCommit(ctx, owner, name, &gh.Commit{Message: &c.Message, Tree: &gh.Tree{SHA: &c.Tree},
		Parents: parents}, nil)
	if err != nil {
		return "", wrapError(op, err)
	}
	if v := made.GetVerification(); !v.GetVerified() {
		return "", &forge.Error{
			Op: op, Kind: forge.ErrUnsupported, Message: fmt.Sprintf("GitHub made %s, and doesn't call its signature verified (%s)",
				made.GetSHA(), rest.ClipMessage(v.GetReason())),
			Hint: "signing: forge needs a GitHub App and, on a GitHub Enterprise Server, web commit signing, which its administrator " +
				"sets up",
		}
	}
	return made.GetSHA(), nil
}

// IsSigner says whether an address is GitHub's own.
func (d *Driver) IsSigner(email string) bool { return isForgeAddress(d.base, email) }

// checkSignedSize refuses what a call to GitHub may not carry: it ends each after ten seconds.
func checkSignedSize(op string, changes []forge.FileChange) error {
	size := 0
	for i := range changes {
		size += len(changes[i].Content)
	}
	if len(changes) <= forge.MaxSignedFiles && size <= forge.MaxSignedBytes {
		return nil
	}
	return &forge.Error{
		Op: op, Kind: forge.ErrInvalid, Message: fmt.Sprintf("it changes %d files with %d KiB; GitHub is given at most %d files and %d "+
			"MiB to sign", len(changes), size>>10, forge.MaxSignedFiles, forge.MaxSignedBytes>>20),
		Hint: "carry less in one promotion, or sign by a key of a user's account (signing.sshKeyFile)",
	}
}

// createTree has GitHub make the tree of a commit, which must be the one that Git made.
func (d *Driver) createTree(ctx context.Context, op string, r forge.Repo, c forge.NewCommit) error {
	if c.Tree == c.Base || c.Tree == emptyTree {
		return nil
	}
	ctx, owner, name := inRepo(ctx, r)
	entries := make([]*gh.TreeEntry, len(c.Changes))
	for i := range c.Changes {
		entry, err := d.treeEntry(ctx, op, r, &c.Changes[i])
		if err != nil {
			return err
		}
		entries[i] = entry
	}
	tree, _, err := d.api.Git.CreateTree(ctx, owner, name, c.Base, entries)
	if err != nil {
		return wrapError(op, err)
	}
	if tree.GetSHA() != c.Tree {
		return &forge.Error{Op: op, Kind: forge.ErrUnsupported, Message: fmt.Sprintf("GitHub made the tree %s of its files, and Git %s",
			rest.ClipMessage(tree.GetSHA()), c.Tree)}
	}
	return nil
}

// treeEntry is a changed file as the tree's call has it. Text goes along, anything else is made a
// blob first: JSON has only text.
func (d *Driver) treeEntry(ctx context.Context, op string, r forge.Repo, f *forge.FileChange) (*gh.TreeEntry, error) {
	mode, kind := "100644", "blob"
	if f.Executable {
		mode = "100755"
	}
	entry := &gh.TreeEntry{Path: &f.Path, Mode: &mode, Type: &kind}
	switch {
	case f.Delete: // without content and id
	case len(f.Content) > 0 && utf8.Valid(f.Content) && !bytes.ContainsRune(f.Content, 0):
		content := string(f.Content)
		entry.Content = &content
	default:
		ctx, owner, name := inRepo(ctx, r)
		content, encoding := base64.StdEncoding.EncodeToString(f.Content), "base64"
		blob, _, err := d.api.Git.CreateBlob(ctx, owner, name, &gh.Blob{Content: &content, Encoding: &encoding})
		if err != nil {
			return nil, wrapError(op+": "+strings.ToValidUTF8(f.Path, "?"), err)
		}
		entry.SHA = blob.SHA
	}
	return entry, nil
}
