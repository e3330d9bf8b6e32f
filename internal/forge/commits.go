package forge

import "context"

// MaxSignedFiles and MaxSignedBytes bound what a CommitSigner is given: how many files a commit
// changes, and how much they have together.
const (
	MaxSignedFiles = 500
	MaxSignedBytes = 8 << 20
)

// NewCommit is a commit for a forge to make.
type NewCommit struct {
	Message string
	Parents []string
	Tree    string       // the id that its root tree must have
	Base    string       // the tree that Changes are made to; empty: none
	Changes []FileChange // none: the tree is Base
}

// FileChange is what a commit does to one file.
type FileChange struct {
	Path       string // from the repository's root
	Executable bool
	Content    []byte
	Delete     bool
}

// CommitSigner is a forge that can make commits itself and sign them. So its rules take them for
// signed where Liftlock's account can have no key.
type CommitSigner interface {
	// SignCommit makes a commit on no branch and gives its id; doing it again makes another. The
	// forge chooses the author, the committer and the time. ErrInvalid: past MaxSignedFiles or
	// MaxSignedBytes; ErrUnsupported: the forge made it and doesn't call it verified, or its tree
	// is another; then nothing refers to it.
	SignCommit(ctx context.Context, r Repo, c NewCommit) (sha string, err error)
	// IsSigner says whether an address is that of who commits what SignCommit makes. Anybody can
	// commit by it.
	IsSigner(email string) bool
}
