package branch

import (
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// Repository is one tracked repository with everything that reaches it.
type Repository struct {
	ID       string // "forge:owner/name"
	Name     forge.Repo
	Forge    forge.Forge
	ForgeRef string // the forge's name in the server's file
	// ForgeType is the forge's type in the server's file, by which its CODEOWNERS is read;
	// empty: github.
	ForgeType string
	Branch    string // the tracked branch
	Mirror    *git.Mirror
	URLs      []string // by which manifests may name it
	BotLogin  string   // our own login there
	BotID     int64    // our own account; it stays when the login is changed
	Former    []FormerAccount
	Number    int64 // its own on the forge, which no other has; 0: not known
	Marks     MarkSigner
	// Unsigned says why the forge takes our commits for unsigned, and what to do; empty: they are
	// signed, or who made this doesn't care.
	Unsigned string
	// SignedByForge says that the forge, a forge.CommitSigner, commits what we push.
	SignedByForge bool
}

// Words is one of Liftlock's texts in the words of the repository's forge.
func (r *Repository) Words(text string) string { return wording.ForForge(r.ForgeType, text) }

// IsOurs says whether an account is our own, also under another login.
func (r *Repository) IsOurs(login string, id int64) bool {
	return r.Bot().Matches(policies.Account{ID: id, Login: login})
}

// IsCommittedByUs says whether a commit names us as who committed it or, where the forge commits for
// us, as its author. Anybody can write that: what doesn't is somebody's and left alone, what does is
// proven by nothing.
func (r *Repository) IsCommittedByUs(c *git.CommitInfo) bool {
	us := r.Mirror.Committer()
	if signer, ok := r.Forge.(forge.CommitSigner); ok && r.SignedByForge && signer.IsSigner(c.Committer.Email) {
		return strings.EqualFold(c.Author.Email, us.Email)
	}
	return c.Committer == us
}

// Bot is our own account.
func (r *Repository) Bot() policies.Account {
	return policies.Account{ID: r.BotID, Login: r.BotLogin}
}
