//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/forge"
)

func promotionBranch(component, env string) string { return "liftlock/shop/" + env + "/" + component }

func revertPrefix(component, env string) string {
	return "liftlock-revert/shop/" + env + "/" + component + "/"
}

// listPulls lists the repository's pull requests, newest first.
func (s *scenario) listPulls(state gitea.StateType) ([]*gitea.PullRequest, error) {
	pulls, _, err := s.cluster.accounts[admins].api.ListRepoPullRequests(s.cluster.org, s.repo, gitea.ListPullRequestsOptions{
		ListOptions: gitea.ListOptions{PageSize: 50}, State: state, Sort: "recentupdate"})
	return pulls, err
}

// liftlockPulls are Liftlock's pull requests whose branch starts so, newest first.
func (s *scenario) liftlockPulls(branch string) ([]*gitea.PullRequest, error) {
	pulls, err := s.listPulls(gitea.StateAll)
	var out []*gitea.PullRequest
	for _, p := range pulls {
		if strings.HasPrefix(headBranch(p), branch) && p.Poster.UserName == bot {
			at := 0
			for at < len(out) && out[at].Index > p.Index {
				at++
			}
			out = append(out[:at], append([]*gitea.PullRequest{p}, out[at:]...)...)
		}
	}
	return out, err
}

// headBranch is the branch's name also when it was deleted since: Gitea then
// gives refs/pull/N/head in Ref and the name in Name.
func headBranch(p *gitea.PullRequest) string { return p.Head.Name }

// awaitOpen waits for an open pull request of Liftlock's into an environment that
// brings the tag, newer than the one given (0: any).
func (s *scenario) awaitOpen(component, env, tag string, after int64) *gitea.PullRequest {
	s.Helper()
	return s.awaitPull(promotionBranch(component, env), fmt.Sprintf("%s's pull request brings %s %s", env, component, tag), after, func(p *gitea.PullRequest) error {
		if p.State != gitea.StateOpen {
			return fmt.Errorf("#%d is %s", p.Index, p.State)
		}
		return s.checkTag(p, component, env, tag)
	})
}

// awaitMerged waits until a pull request into an environment that brings the tag is merged.
func (s *scenario) awaitMerged(component, env, tag string, after int64) *gitea.PullRequest {
	s.Helper()
	p := s.awaitPull(promotionBranch(component, env), fmt.Sprintf("%s's pull request with %s %s is merged", env, component, tag), after, isMerged)
	s.must(s.checkTag(p, component, env, tag))
	return p
}

func isMerged(p *gitea.PullRequest) error {
	if !p.HasMerged || p.MergedCommitID == nil {
		return fmt.Errorf("#%d is %s, not merged", p.Index, p.State)
	}
	return nil
}

// checkTag checks what tag a pull request carries, or carried when it was merged.
func (s *scenario) checkTag(p *gitea.PullRequest, component, env, tag string) error {
	at := p.Head.Sha
	if p.MergedCommitID != nil && p.HasMerged {
		at = *p.MergedCommitID // the branch may have been used again
	}
	file, err := s.clone.readFile(s.ctx, s.cluster.accounts[dev], at, overlayFile(component, env))
	if err != nil {
		return err
	}
	if got := tagIn(file, component); got != tag {
		return fmt.Errorf("#%d brings %s, wanted %s", p.Index, got, tag)
	}
	return nil
}

// awaitComposedOver waits until an open pull request is composed on a commit in which
// the environment has the tag.
func (s *scenario) awaitComposedOver(number int64, component, env, tag string) *gitea.PullRequest {
	s.Helper()
	return eventually(s, fmt.Sprintf("#%d is composed over %s", number, tag), func() (*gitea.PullRequest, error) {
		p := s.getPull(number)
		file, err := s.clone.readFile(s.ctx, s.cluster.accounts[dev], p.Head.Sha+"^", overlayFile(component, env))
		if err == nil && tagIn(file, component) != tag {
			err = fmt.Errorf("its parent has %s", tagIn(file, component))
		}
		return p, err
	})
}

// awaitPull waits for Liftlock's newest pull request on a branch to be as wanted.
func (s *scenario) awaitPull(prefix, what string, after int64, check func(*gitea.PullRequest) error) *gitea.PullRequest {
	s.Helper()
	return eventually(s, what, func() (*gitea.PullRequest, error) {
		pulls, err := s.liftlockPulls(prefix)
		if err != nil {
			return nil, err
		}
		if len(pulls) == 0 || pulls[0].Index <= after {
			return nil, fmt.Errorf("no pull request on %s", prefix)
		}
		return pulls[0], check(pulls[0])
	})
}

// approve is a person's approving review of the head.
func (s *scenario) approve(login string, p *gitea.PullRequest) {
	s.Helper()
	_, _, err := s.cluster.accounts[login].api.CreatePullReview(s.cluster.org, s.repo, p.Index, gitea.CreatePullReviewOptions{State: gitea.ReviewStateApproved, CommitID: p.Head.Sha})
	if err != nil {
		s.Fatalf("%s approves #%d: %v", login, p.Index, err)
	}
	s.Logf("        %s approves #%d", login, p.Index)
}

// addComment is a person's comment, acknowledged by Liftlock's reaction.
func (s *scenario) addComment(login string, number int64, text string) {
	s.Helper()
	// The forge's times are whole seconds, and a command written in the second in which the head
	// came may be about the head before. People take longer to read a page.
	looked := time.Now()
	eventually(s, fmt.Sprintf("%s has read #%d", login, number), func() (struct{}, error) {
		if !time.Now().Truncate(time.Second).After(looked) {
			return struct{}{}, errors.New("still in the same second")
		}
		return struct{}{}, nil
	})
	c, _, err := s.cluster.accounts[login].api.CreateIssueComment(s.cluster.org, s.repo, number, gitea.CreateIssueCommentOption{Body: text})
	if err != nil {
		s.Fatalf("%s comments on #%d: %v", login, number, err)
	}
	// Gitea lets others edit it and tells nobody, so a command that loosens something waits for this.
	if _, _, err := s.cluster.accounts[login].api.PostIssueCommentReaction(s.cluster.org, s.repo, c.ID, forge.Confirmation); err != nil {
		s.Fatalf("%s confirms the comment on #%d: %v", login, number, err)
	}
	reaction := eventually(s, fmt.Sprintf("%q by %s on #%d is acknowledged", text, login, number), func() (string, error) {
		rs, _, err := s.cluster.accounts[admins].api.GetIssueCommentReactions(s.cluster.org, s.repo, c.ID)
		if err != nil {
			return "", err
		}
		for _, r := range rs {
			if r.User.UserName == bot {
				return r.Reaction, nil
			}
		}
		return "", fmt.Errorf("no reaction by %s", bot)
	})
	if reaction != "+1" {
		s.Fatalf("%q by %s on #%d is answered with %q", text, login, number, reaction)
	}
}

// getPull reads one pull request again.
func (s *scenario) getPull(number int64) *gitea.PullRequest {
	s.Helper()
	p, _, err := s.cluster.accounts[admins].api.GetPullRequest(s.cluster.org, s.repo, number)
	s.must(err)
	return p
}

// mergeAs is a person's merge of the head as it is.
func (s *scenario) mergeAs(login string, number int64) {
	s.Helper()
	eventually(s, fmt.Sprintf("%s merges #%d", login, number), func() (bool, error) {
		// Gitea answers 405 while it still looks whether a merge is possible.
		ok, _, err := s.cluster.accounts[login].api.MergePullRequest(s.cluster.org, s.repo, number, gitea.MergePullRequestOption{Style: gitea.MergeStyleMerge, HeadCommitId: s.getPull(number).Head.Sha})
		if err == nil && !ok {
			err = fmt.Errorf("#%d was not merged", number)
		}
		return ok, err
	})
}

// awaitTitle waits until a pull request's title and body speak of a tag.
func (s *scenario) awaitTitle(number int64, tag string) *gitea.PullRequest {
	s.Helper()
	return eventually(s, fmt.Sprintf("#%d speaks of %s", number, tag), func() (*gitea.PullRequest, error) {
		p := s.getPull(number)
		if !strings.Contains(p.Title, tag) || !strings.Contains(p.Body, tag) {
			return nil, fmt.Errorf("its title is %q", p.Title)
		}
		return p, nil
	})
}
