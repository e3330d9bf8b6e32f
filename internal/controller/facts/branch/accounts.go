package branch

import (
	"context"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
)

// A server's token may be replaced by another account's, or by an App's. Pull requests that the
// former account opened and merged while it was the server's stay the server's: the store remembers
// which accounts it had, and until when. Its later actions may be a person's own.

// FormerAccount is an account that the server had on a forge.
type FormerAccount struct {
	Login string    `json:"login"`
	ID    int64     `json:"id,omitempty"`
	Until time.Time `json:"until,omitzero"` // zero: it is the server's
}

func (f FormerAccount) matches(account policies.Account) bool {
	return policies.Account{ID: f.ID, Login: f.Login}.Matches(account)
}

var accounts = record.Declare[record.Repository, []FormerAccount](record.Declaration{
	Name: "accounts", Owner: "controller/facts", Lifetime: record.Lasting,
	Doc: "The accounts that the server had on the forge, with until when.",
})

// maxFormerAccounts bounds how many are remembered.
const maxFormerAccounts = 20

// accountStore is what is read and written for that.
type accountStore interface {
	Tx(ctx context.Context, name string, do func(*store.Tx) error) error
}

// RememberAccount notes which account the server has for a repository now, and gives those that it had before.
func RememberAccount(ctx context.Context, s accountStore, repo string, me policies.Account, now time.Time) (former []FormerAccount,
	err error) {
	err = s.Tx(ctx, "account", func(tx *store.Tx) error {
		known, _, err := accounts.Get(ctx, tx, record.Repository(repo))
		if err != nil {
			return err
		}
		all := slices.Clone(known)
		for i := range all {
			if all[i].Until.IsZero() && !all[i].matches(me) {
				all[i].Until = now
			}
		}
		if !slices.ContainsFunc(all, func(a FormerAccount) bool { return a.Until.IsZero() }) {
			all = append(all, FormerAccount{Login: me.Login, ID: me.ID})
		}
		all = all[max(0, len(all)-maxFormerAccounts):]
		former = slices.DeleteFunc(slices.Clone(all), func(a FormerAccount) bool { return a.Until.IsZero() })
		if slices.Equal(all, known) {
			return nil
		}
		return accounts.Put(ctx, tx, record.Repository(repo), all)
	})
	return former, err
}

// WasOurs says whether an account was the server's at a time.
func (r *Repository) WasOurs(login string, id int64, at time.Time) bool {
	return r.IsOurs(login, id) || slices.ContainsFunc(r.Former, func(a FormerAccount) bool {
		return !at.After(a.Until) && a.matches(policies.Account{ID: id, Login: login})
	})
}

// HasOpened says whether it was the server that opened a pull request.
func (r *Repository) HasOpened(pr *forge.PullRequest) bool {
	return r.WasOurs(pr.Author, pr.AuthorID, pr.CreatedAt)
}

// HasWritten says whether a comment is the server's.
func (r *Repository) HasWritten(k *forge.Comment) bool {
	return r.WasOurs(k.User, k.UserID, k.CreatedAt)
}

// HasMerged says whether it was the server that merged a pull request.
func (r *Repository) HasMerged(pr *forge.PullRequest) bool {
	return pr.MergedBy != "" && r.WasOurs(pr.MergedBy, pr.MergedByID, pr.MergedAt)
}

// Logins are those of the accounts that the server has and had.
func (r *Repository) Logins() []string {
	out := []string{r.BotLogin}
	for _, a := range r.Former {
		if !slices.Contains(out, a.Login) {
			out = append(out, a.Login)
		}
	}
	return out
}
