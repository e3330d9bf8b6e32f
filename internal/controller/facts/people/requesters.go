package people

import (
	"context"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/store/record"

	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/policies"
)

// RecordedRequesters are the accounts of those who asked for a promotion, as the commits of its
// head have them. Where the head was brought up to date by a merge, which has none, they are those
// of the commits below it.
func RecordedRequesters(ctx context.Context, c *branch.ComponentBasis, env *promotion.Env, head string) ([]policies.Account, error) {
	m := c.Snapshot.Repo.Mirror
	info, err := m.Commit(ctx, head)
	if err != nil {
		return nil, err
	}
	brought := []git.CommitInfo{*info}
	if len(info.Parents) > 1 {
		if brought, err = m.Log(ctx, git.LogQuery{From: head, Until: env.Tip, Limit: branch.MaxBroughtCommits}); err != nil {
			return nil, err
		}
	}
	var accounts []policies.Account
	for i := range brought {
		accounts = append(accounts, promotion.ParseRequesters(brought[i].Trailers[promotion.TrailerRequesters])...)
	}
	return accounts, nil
}

// RequesterRecords are kept as the trailers of commits have them.
var RequesterRecords = record.Declare[record.Pull, []string](record.Declaration{
	Name: "requesters", Owner: "controller", Lifetime: record.UntilDropped, Strict: true,
	Doc: "The accounts of those who requested the pull request's promotion by a comment.",
})

// ReadRequesters are the accounts of those who are known from comments to have asked for a
// pull request's promotion; none when there are none.
func ReadRequesters(ctx context.Context, s record.Reader, repo string, number int) ([]policies.Account, error) {
	texts, ok, err := RequesterRecords.Get(ctx, s, record.OfPull(repo, number))
	if err != nil || !ok {
		return nil, err
	}
	out := make([]policies.Account, len(texts))
	for i, text := range texts {
		out[i] = promotion.ParseRequester(text)
	}
	return out, nil
}

// PutRequesters stores what ReadRequesters reads.
func PutRequesters(ctx context.Context, w record.Writer, repo string, number int, accounts []policies.Account) error {
	texts := make([]string, len(accounts))
	for i, a := range accounts {
		texts[i] = promotion.FormatRequester(a)
	}
	return RequesterRecords.Put(ctx, w, record.OfPull(repo, number), texts)
}
