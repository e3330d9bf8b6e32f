package console

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/policies"
)

// TestForgesOwnWords says of what is on GitLab what its people say, and of others what theirs do.
func TestForgesOwnWords(t *testing.T) {
	r := newReader(&Options{}, &readableStore{access: newAccessRules(&Options{})})
	r.learnPullURL("hub:acme/fleet", 1, "https://git.example/lab/acme/fleet/-/merge_requests/1")
	r.learnPullURL("hub:acme/web", 1, "https://hub.example/acme/web/pull/1")
	state := &promotion.EnvState{
		Environment: "qa", State: "verified", Name: "1.0", Reason: "since pull request #6", Candidate: "r", CandidateName: "1.1", Pull: 7, Promotion: "open",
		Gates: []policies.Result{{Gate: "mergeable", Outcome: policies.Wait, Reason: "#6 is merged first"}},
		Why:   []promotion.Reason{{Code: "turn", Text: "the pull request #5 comes before"}},
	}
	for repo, want := range map[string][2]string{
		"hub:acme/fleet": {"qa carries 1.0: verified, since merge request !6\n1.1 is in !7: every gate passes; !6 is merged first\n- mergeable: !6 is merged first\n- the merge request !5 comes before", "Revert !7, web to qa\nA merge request is opened that takes web back to what it had in qa before !7."},
		"hub:acme/web":   {"qa carries 1.0: verified, since pull request #6\n1.1 is in #7: every gate passes; #6 is merged first\n- mergeable: #6 is merged first\n- the pull request #5 comes before", "Revert #7, web to qa\nA pull request is opened that takes web back to what it had in qa before #7."},
		"hub:acme/new":   {"qa carries 1.0: verified, since pull request #6\n1.1 is in #7: every gate passes; #6 is merged first\n- mergeable: #6 is merged first\n- the pull request #5 comes before", "Revert #7, web to qa\nA pull request is opened that takes web back to what it had in qa before #7."},
	} {
		e := r.buildEnvironment(repo, state, stored.Environment{})
		if got := e.Explain(); got != want[0] {
			t.Errorf("%s is explained as\n%s\nwant\n%s", repo, got, want[0])
		}
		o := &Command{Repo: repo, Component: "web", Environment: "qa", Pull: 7, Verb: command.Revert}
		said := r.wordsOf(repo)(actionTitle(o)) + "\n" + describePromotionAction(&api.Promotion{Pull: r.buildPull(repo, 7)}, o)[0]
		if said != want[1] {
			t.Errorf("%s: a revert is described as\n%s\nwant\n%s", repo, said, want[1])
		}
		if lines := describeNode(&e); len(lines) < 2 || !strings.Contains(lines[1].Text, " in "+e.Incoming.Pull.String()) {
			t.Errorf("%s: it is drawn as %+v", repo, lines)
		}
	}
}
