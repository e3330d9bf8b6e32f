package facts

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/policies"
)

// recordedRequesters are the accounts of those who asked for a promotion, as the commits of its head
// have them: where the head was brought up to date by a merge, which has none, those below it.
func recordedRequesters(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, head string) ([]policies.Account, error) {
	m := c.Snapshot.Repo.Mirror
	info, err := m.Commit(ctx, head)
	if err != nil {
		return nil, err
	}
	brought := []git.CommitInfo{*info}
	if len(info.Parents) > 1 {
		if brought, err = m.Log(ctx, git.LogQuery{From: head, Until: env.Tip, Limit: maxBroughtCommits}); err != nil {
			return nil, err
		}
	}
	var accounts []policies.Account
	for i := range brought {
		accounts = append(accounts, promotion.ParseRequesters(brought[i].Trailers[promotion.TrailerRequesters])...)
	}
	return accounts, nil
}

// RequestersKey is the store's key of who is known from comments to have asked for a pull
// request's promotion.
func RequestersKey(repo string, number int) string {
	return fmt.Sprintf("requesters|%s|%d", repo, number)
}

// ReadRequesters are the accounts of those who are known from comments to have asked for a
// pull request's promotion; none when there are none.
func ReadRequesters(ctx context.Context, s StateReader, repo string, number int) ([]policies.Account, error) {
	raw, ok, err := s.State(ctx, RequestersKey(repo, number))
	if err != nil || !ok {
		return nil, err
	}
	var texts []string
	if err := json.Unmarshal(raw, &texts); err != nil {
		return nil, fmt.Errorf("read from the store who asked for #%d: %w", number, err)
	}
	out := make([]policies.Account, len(texts))
	for i, text := range texts {
		out[i] = promotion.ParseRequester(text)
	}
	return out, nil
}

// EncodeRequesters is what ReadRequesters reads.
func EncodeRequesters(accounts []policies.Account) ([]byte, error) {
	texts := make([]string, len(accounts))
	for i, a := range accounts {
		texts[i] = promotion.FormatRequester(a)
	}
	return json.Marshal(texts)
}
