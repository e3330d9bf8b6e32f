package branch

import (
	"context"
	"crypto/hmac"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store/record"
)

// TrailerOnboarding is the trailer of a commit with a proposed pipeline file that proves that
// Liftlock made it.
const TrailerOnboarding = "Liftlock-Onboarding"

// onboardingPattern is the mark of a pull request that proposes a pipeline file. It only restrains:
// whoever closes a marked one has said no, also when the account that opened it isn't known any more.
var onboardingPattern = regexp.MustCompile(`<!-- liftlock:onboarding(?: sig=([0-9a-f]{64}))? -->`)

const onboardingText = "liftlock:onboarding"

// SignOnboarding is the value of TrailerOnboarding of a commit, by its parent and its tree; empty
// where the server has no secret.
func (ms MarkSigner) SignOnboarding(repo, parent, tree string) string {
	if len(ms.keys) == 0 {
		return ""
	}
	return hex.EncodeToString(signText(ms.keys[0], repo, promotion.OnboardingBranch, parent, onboardingText+" tree="+tree))
}

// MarkOnboarding is the mark of a pull request that proposes a pipeline file.
func (ms MarkSigner) MarkOnboarding(repo string) string {
	if len(ms.keys) == 0 {
		return "<!-- " + onboardingText + " -->"
	}
	return fmt.Sprintf("<!-- %s sig=%s -->", onboardingText,
		hex.EncodeToString(signText(ms.keys[0], repo, promotion.OnboardingBranch, "", onboardingText)))
}

// isSignedBy says that one of the server's secrets signed a text, by its signature in hexadecimal.
func (ms MarkSigner) isSignedBy(sig, repo, head, text string) bool {
	got, err := hex.DecodeString(sig)
	return err == nil && len(got) > 0 && slices.ContainsFunc(ms.keys, func(key []byte) bool {
		return hmac.Equal(got, signText(key, repo, promotion.OnboardingBranch, head, text))
	})
}

// HasProposed says whether Liftlock opened a pull request from the branch of proposals. An open one
// is by its account, a closed one by that or by its mark.
func (r *Repository) HasProposed(pr *forge.PullRequest) bool {
	if pr.Fork || pr.Branch != promotion.OnboardingBranch {
		return false
	}
	if r.HasOpened(pr) {
		return true
	}
	m := onboardingPattern.FindStringSubmatch(pr.Body)
	return pr.State != forge.Open && m != nil && r.Marks.isSignedBy(m[1], r.ID, "", onboardingText)
}

// IsPushed says that the store knows that Liftlock pushed a head of a branch.
func IsPushed(ctx context.Context, states record.Reader, repo, branchName, head string) (bool, error) {
	pushed, _, err := PushedHeads.Get(ctx, states, record.OfBranch(repo, branchName))
	return slices.ContainsFunc(pushed, func(p PushedHead) bool { return p.Head == head }), err
}

// IsOwnProposal says that a head of the branch of proposals is a commit that Liftlock made: the store
// knows that it pushed it, or the commit's own signature says so.
func (g *GitGatherer) IsOwnProposal(ctx context.Context, r *Repository, head string) (bool, error) {
	if is, err := IsPushed(ctx, g.store, r.ID, promotion.OnboardingBranch, head); err != nil || is {
		return is, err
	}
	commit, err := r.Mirror.Commit(ctx, head)
	if err != nil {
		return false, fmt.Errorf("read the head of %s: %w", promotion.OnboardingBranch, err)
	}
	return r.Marks.isProposalSigned(r.ID, commit), nil
}

// isProposalSigned says that Liftlock made a commit with a proposed pipeline file.
func (ms MarkSigner) isProposalSigned(repo string, c *git.CommitInfo) bool {
	return len(c.Parents) == 1 && ms.isSignedBy(c.Trailers[TrailerOnboarding], repo, strings.Join(c.Parents, ""),
		onboardingText+" tree="+c.Tree)
}

// ProposalInput is what is known of the Argo CD of targets that name none: its clusters (nil: not
// known), and what else a resolver reads; and the ApplicationSets that it runs. While it can't be
// asked it is an error: less would be proposed than what there is.
func (tg *TargetGatherer) ProposalInput(ctx context.Context, r *Repository) (appset.ArgoCD, []appset.LiveSet, error) {
	in := appset.Input{ArgoCDs: map[string]appset.ArgoCD{}, Live: &appset.Live{Unknown: map[string]string{}}}
	main := tg.Argocds.Main
	if err := tg.NewInputCollector(r).AddArgoCD(ctx, main, &in); err != nil {
		return appset.ArgoCD{}, nil, err
	}
	if why := in.Live.Unknown[main]; why != "" && tg.Argocds.ByName[main].Live != nil {
		return appset.ArgoCD{}, nil, fmt.Errorf("the Argo CD %s: %s", main, why)
	}
	return in.ArgoCDs[main], in.Live.Sets, nil
}

// IsProposal says that a body has the mark of a pull request that proposes a pipeline file, whoever
// wrote it.
func IsProposal(body string) bool { return onboardingPattern.MatchString(body) }
