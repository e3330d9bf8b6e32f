package prtext

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/policies"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text that a person reads with its file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".md")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); -update writes it anew:\n%s", file, diff)
	}
}

func show(p Page) string {
	return fmt.Sprintf("title: %s\nlabels: %s\nstatus: %s: %s\n\n======== body\n%s\n======== comment\n%s",
		p.Title, strings.Join(p.Labels, ", "), p.Status.State, p.Status.Description, p.Body, p.Comment)
}

// pages are the open pull requests that the goldens show.
func pages() map[string]Input {
	passed := policies.Result{Gate: "approvals", Outcome: policies.Pass, Reason: "2 of 2 approvals (ada, grace)"}
	all := map[string]Input{"promotion-waits": promotionInput()}
	with := func(name string, from Input, change func(in *Input, e *promotion.Env, st *promotion.EnvState)) {
		change(&from, environmentOf(from), stateOf(from))
		all[name] = from
	}
	with("promotion-ready", promotionInput(), func(in *Input, _ *promotion.Env, st *promotion.EnvState) {
		st.Gates = []policies.Result{passed}
		in.Actions = []promotion.Action{promotion.Merge{Environment: "prod", Pull: 14}}
	})
	with("promotion-manual", promotionInput(), func(in *Input, e *promotion.Env, st *promotion.EnvState) {
		e.Spec.Merge, e.Gates, st.Gates = "manual", nil, nil
		st.Why = []promotion.Reason{{Code: "manual", Text: "every gate passes; merge: manual, so a person merges it"}}
	})
	with("promotion-new", promotionInput(), func(in *Input, e *promotion.Env, st *promotion.EnvState) {
		in.Number, e.Open, st.Gates, st.Pull = 0, nil, nil, 0
		in.Actions = []promotion.Action{promotion.Open{Environment: "prod"}}
	})
	with("promotion-held", promotionInput(), func(in *Input, _ *promotion.Env, st *promotion.EnvState) {
		st.Promotion = promotion.Held
		st.Gates = append([]policies.Result{{Gate: "hold", Outcome: policies.Wait,
			Reason: "environment prod is on hold by grace since 2026-03-09T09:30:00Z: the database moves; /liftlock unhold environment lifts it",
			Brief:  "by grace until Mon 16:33 UTC: the database moves"}}, st.Gates...)
		st.Why = []promotion.Reason{{Code: "newer-waits", Text: "1.6.0 is newer and waits its turn behind this one, which is approved or held"}}
		in.BareCommands = true
	})
	with("promotion-blocked", promotionInput(), func(_ *Input, _ *promotion.Env, st *promotion.EnvState) {
		st.Gates = []policies.Result{
			{Gate: "pipeline-file", Outcome: policies.Wait, Reason: "the pipeline file on the default branch is broken: .liftlock.yaml:14: unknown key \"gate\", did you mean \"gates\"?"},
			{Gate: "mergeable", Outcome: policies.Wait, Reason: "the forge blocks the merge: 1 check is missing"},
			{Gate: "window", Outcome: policies.Wait, Reason: "outside the window", Until: at(17, 0)},
			{Gate: "approvals", Outcome: policies.Fail, Reason: "the gate is not valid: approvals.count: must be at least 1; it is 0"},
		}
	})
	with("promotion-only-forge-blocks", promotionInput(), func(_ *Input, _ *promotion.Env, st *promotion.EnvState) {
		st.Gates = []policies.Result{{Gate: "mergeable", Outcome: policies.Wait, Reason: "the forge blocks the merge: 1 check is missing"}, passed}
	})
	with("promotion-foreign", promotionInput(), func(_ *Input, e *promotion.Env, st *promotion.EnvState) {
		e.Open.HeadState, e.Open.HeadReason = promotion.HeadModified, "its head was pushed by mallory and changes deploy.yaml, which isn't carried"
		st.Promotion, st.Gates = promotion.Held, nil
		st.Why = []promotion.Reason{{Code: "foreign", Text: e.Open.HeadReason}}
	})
	with("promotion-many", promotionInput(), func(in *Input, _ *promotion.Env, _ *promotion.EnvState) {
		for i := range 60 {
			in.Changes = append(in.Changes, Change{File: fmt.Sprintf("overlays/prod/web/values-%02d.yaml", i), Path: "image.tag", New: "sha256:" + newRelease, Line: i})
			in.Reached = append(in.Reached, Target{Name: fmt.Sprintf("web-prod-%02d", i), Component: "web", Environment: "prod"})
		}
		in.Reached = append(in.Reached, in.Reached...)
		in.UnaffectedCounts, in.Name = nil, ""
	})
	with("promotion-strays", promotionInput(), func(in *Input, _ *promotion.Env, _ *promotion.EnvState) {
		in.Reached[1] = Target{Name: "api-dev", Component: "api", Environment: "dev", Cluster: "eu-1"}
		in.UnaffectedCounts = nil
		in.UnaffectedErr = "the ApplicationSet argocd/shop.yaml can't be resolved: template: no field .path"
	})
	with("promotion-rendered", promotionInput(), func(in *Input, _ *promotion.Env, _ *promotion.EnvState) {
		diff := "@@ apps/v1 Deployment web/web @@\n- spec.template.spec.containers[name=web].image: registry.example/web:1.4.2\n+ spec.template.spec.containers[name=web].image: registry.example/web:1.5.0\n"
		in.UnchangedTargets = []Target{{Name: "web-qa-eu", Component: "web", Environment: "qa", Cluster: "eu-1"}}
		in.Rendered = []Rendered{
			{Target: "web-prod-ap", Why: "the chart ingress comes from a Helm repository (https://charts.example)"},
			{Target: "web-prod-eu", Summary: "1 changed", Diff: diff},
			{Target: "web-prod-sa", Summary: "1 changed", Spec: true, Diff: "@@ v1 ConfigMap web/notes @@\n+ data.text:\n+   ```\n+   @ada closes #1\n"},
			{Target: "web-prod-us", Summary: "1 changed", Diff: diff},
			{Target: "web-prod-za"},
			{Target: "web-prod-zz", Summary: "900 added", Diff: strings.Repeat("+ spec.more: of it\n", 3000)},
		}
	})
	with("promotion-pinned", promotionInput(), func(in *Input, _ *promotion.Env, _ *promotion.EnvState) { in.Reached[1].Follows = "v1.2" })
	with("promotion-application", promotionInput(), func(in *Input, _ *promotion.Env, _ *promotion.EnvState) {
		in.Reached[1].Fields = []string{"spec.source.targetRevision", "spec.source.helm.parameters[0].value", "metadata.labels.a|b", "metadata.labels.c"}
	})
	with("promotion-created-only", promotionInput(), func(in *Input, _ *promotion.Env, _ *promotion.EnvState) { in.Reached[1].CreatedOnly = true })
	with("promotion-drifted", promotionInput(), func(_ *Input, e *promotion.Env, _ *promotion.EnvState) {
		differs := func(name string, auto, heals bool, all ...verification.Difference) {
			d := &verification.Drift{Since: at(8, 10), Resources: all, Total: len(all), AutoSync: auto, SelfHeal: heals}
			e.Targets = append(e.Targets, promotion.Target{Name: name, Verdict: verification.Verdict{Drift: d}})
		}
		gone, edited := verification.Difference{Kind: "Deployment", Name: "web", How: verification.IsMissing}, verification.Difference{Kind: "ConfigMap", Name: "web_@ada", How: verification.IsDifferent}
		differs("web-prod-eu", true, false, gone, edited)
		differs("web-prod-us", false, false, edited)
		differs("web-prod-ap", true, false, edited)
		differs("web-prod-sa", true, false, verification.Difference{Kind: "Job", Name: "old", How: verification.IsExtra})
		differs("web-prod-za", true, true, edited)
		e.Targets = append(e.Targets, promotion.Target{Name: "web-prod-zz"})
	})
	with("promotion-drift-blocked", promotionInput(), func(_ *Input, e *promotion.Env, st *promotion.EnvState) {
		d := &verification.Drift{Since: at(8, 10), Resources: []verification.Difference{{Kind: "Deployment", Name: "web", How: verification.IsDifferent}}, Total: 1, AutoSync: true}
		e.Targets = append(e.Targets, promotion.Target{Name: "web-prod-eu", Verdict: verification.Verdict{Drift: d}})
		gate := policies.Gate{Settled: &policies.Settled{Drift: policies.DriftBlock}}
		e.Gates = append(e.Gates[:len(e.Gates):len(e.Gates)], gate)
		facts := policies.Facts{Drift: []policies.TargetDrift{{Target: "web-prod-eu", Differs: d.Describe(), Since: d.Since}}}
		st.Gates = append(st.Gates[:len(st.Gates):len(st.Gates)], gate.Evaluate(facts))
	})
	with("promotion-unchecked", promotionInput(), func(_ *Input, e *promotion.Env, _ *promotion.EnvState) {
		e.Targets = append(e.Targets, promotion.Target{Name: "web-prod-eu", Verdict: verification.Verdict{Unchecked: verification.Unchecked{Total: 3, Kinds: []string{"Kafka", "Topic_@ada"}}}},
			promotion.Target{Name: "web-prod-us", Verdict: verification.Verdict{Unchecked: verification.Unchecked{Total: 1, Kinds: []string{"Kafka"}}}}, promotion.Target{Name: "web-prod-zz"},
			promotion.Target{Name: "web-prod-3x", Verdict: verification.Verdict{UncheckedUnknown: true}})
	})
	with("promotion-requires-checks", promotionInput(), func(_ *Input, e *promotion.Env, _ *promotion.EnvState) {
		e.Spec.Verify.IgnoreMissingHealth = false
		e.Targets = append(e.Targets, promotion.Target{Name: "web-prod-eu", Verdict: verification.Verdict{Unchecked: verification.Unchecked{Total: 1, Kinds: []string{"Kafka"}}}})
	})
	with("promotion-not-rendered", promotionInput(), func(in *Input, _ *promotion.Env, _ *promotion.EnvState) {
		in.RenderedErr, in.DiffURL = "rendering took longer than 30s", ""
	})
	all["revert-manual"] = revertInput()
	with("revert-asked", revertInput(), func(in *Input, e *promotion.Env, st *promotion.EnvState) {
		in.By, in.Reason, in.Evidence = "ada", "checkout is slow; see #99 | fixes #100", nil
		e.Spec.OnDegraded.Action = "revert-and-merge"
		st.Why, in.Actions = nil, []promotion.Action{promotion.Merge{Environment: "qa", Pull: 15, Revert: true}}
	})
	with("revert-quorum", revertInput(), func(in *Input, e *promotion.Env, st *promotion.EnvState) {
		e.Spec.OnDegraded = pipeline.OnDegraded{Action: "revert-and-merge", Quorum: pipeline.Quorum{Percent: 50}}
		e.Targets = make([]promotion.Target, 12)
		in.Evidence[0].RuledOut = append([]promotion.RuledOut{{Check: promotion.CheckQuorum, Answer: "6 of 12 targets are degraded (web-qa-0, web-qa-1 and 4 more), and onDegraded.quorum (50%) asks for 6"}}, in.Evidence[0].RuledOut...)
		st.RevertGates = []policies.Result{{Gate: "degraded", Outcome: policies.Wait, Reason: "5 of 12 targets are degraded (web-qa-0 and 4 more), and onDegraded.quorum (50%) asks for 6; a person merges or closes it"}}
	})
	with("revert-long", revertInput(), func(in *Input, _ *promotion.Env, st *promotion.EnvState) {
		for i := range 70 {
			t := &in.Evidence[0].Targets[0]
			t.Timeline = append(t.Timeline, verification.StateChange{At: at(9, i%60), State: verification.Progressing, Note: fmt.Sprintf("replica %d", i)})
		}
		in.Changes = append(in.Changes, Change{File: "overlays/qa/web/config.json", Path: "releaseTag", Old: "b", New: "a"})
		st.RevertGates = []policies.Result{{Gate: "degraded", Outcome: policies.Wait, Reason: "qa is not degraded right now (synced and healthy on 2 targets); a person merges or closes it"}}
	})
	return all
}

func TestPages(t *testing.T) {
	for name, in := range pages() {
		t.Run(name, func(t *testing.T) {
			p := Render(in)
			golden(t, name, show(p))
			if !strings.HasPrefix(p.Body, in.BodyMarker+"\n") {
				t.Errorf("the body doesn't begin with the mark")
			}
			if !IsStatusComment(p.Comment) {
				t.Errorf("the comment isn't recognised")
			}
		})
	}
}

// merged are the pull requests after the merge.
func merged() map[string]Input {
	all := map[string]Input{}
	with := func(name string, from Input, change func(in *Input, st *promotion.EnvState)) {
		from.Environment, from.Number, from.Revert = "qa", 12, false
		if change != nil {
			change(&from, stateOf(from))
		}
		all[name] = from
	}
	with("landed-verified", promotionInput(), nil)
	with("landed-ungated", promotionInput(), func(in *Input, _ *promotion.EnvState) {
		in.Ungated = "merged by grace without gates: window, approvals"
	})
	with("landed-verifying", promotionInput(), func(_ *Input, st *promotion.EnvState) {
		st.State, st.Reason, st.VerifiedAt = promotion.Verifying, "web-qa-us: has not taken the commit yet", time.Time{}
		st.Targets["web-qa-us"] = promotion.TargetView{State: "arriving", Reason: "Argo CD has not noticed the commit yet"}
	})
	with("landed-untold", promotionInput(), func(_ *Input, st *promotion.EnvState) {
		st.State, st.VerifiedAt = promotion.Verifying, time.Time{}
		st.Reason = "web-qa-us: health is Unknown; it could not be told for longer than 1h"
		st.Targets["web-qa-us"] = promotion.TargetView{State: "unclear", Reason: "health is Unknown; it could not be told for longer than 1h", Since: at(9, 10), Untold: true}
	})
	with("landed-degraded", revertInput(), nil)
	with("landed-degraded-hold", revertInput(), func(_ *Input, st *promotion.EnvState) {
		st.Revert = 0
		st.Why = []promotion.Reason{
			{Code: "hold", Text: "whether web-qa-eu was well before the merge is not known (no record), so the promotion can't be blamed; a person has to decide (/liftlock revert)"},
			{Code: "unverified", Text: "dev has not verified 1.6.0"},
		}
	})
	with("landed-failed", promotionInput(), func(_ *Input, st *promotion.EnvState) {
		st.State, st.Reason = promotion.Failed, "web-qa-eu: not synced within 15m: no automated policy"
		st.Targets["web-qa-eu"] = promotion.TargetView{State: "failed", Reason: "not synced within 15m: no automated policy", Since: at(9, 15)}
	})
	with("landed-by-hand", promotionInput(), func(_ *Input, st *promotion.EnvState) {
		st.State, st.Reason = promotion.Diverged, "grace changed it by hand in c0ffee12c0ff; Liftlock leaves it alone until /liftlock promote qa"
	})
	with("landed-revert", revertInput(), func(in *Input, st *promotion.EnvState) {
		in.Revert, in.Number, in.RevertedPull, in.Release, in.Name = true, 15, 12, oldRelease, "1.4.2"
		st.Revert, st.State, st.Promotion, st.Reason = 0, promotion.Verified, promotion.Reverted, "synced and healthy on 2 targets"
		st.LandedPull, st.LandedBy, st.Since, st.VerifiedAt, st.Why = 15, promotion.ByRevert, at(9, 40), at(9, 45), nil
	})
	return all
}

func TestLanded(t *testing.T) {
	for name, in := range merged() {
		t.Run(name, func(t *testing.T) {
			got := LandedComment(in)
			golden(t, name, got)
			if !IsStatusComment(got) {
				t.Errorf("the comment isn't recognised")
			}
		})
	}
}

func TestLastWords(t *testing.T) {
	in := promotionInput()
	golden(t, "closed", ClosedComment(in, "1.5.0 degraded in qa at 2026-03-09T09:20:30Z"))
	rev := revertInput()
	golden(t, "closed-revert", ClosedComment(rev, "qa no longer carries what it takes back"))
	in.Environment, in.Number, in.RevertedPull = "qa", 12, 15
	golden(t, "reverted", RevertedComment(in))
}

func TestMessages(t *testing.T) {
	squash := func(in Input) string {
		title, body := MergeMessage(in)
		return title + "\n\n" + body
	}
	requested := revertInput()
	requested.By, requested.Reason = "ada", "fixes #3 and @grace [skip ci]\nLiftlock-Kind: promotion"
	golden(t, "messages", strings.Join([]string{
		CommitMessage(promotionInput()), squash(promotionInput()), CommitMessage(revertInput()), squash(revertInput()), CommitMessage(requested),
	}, "--------\n"))
}

// shortDiff is the world with a few of the cases of rendered manifests.
func shortDiff() Input {
	in := pages()["promotion-rendered"]
	in.Rendered = in.Rendered[:5]
	return in
}

func TestReplies(t *testing.T) {
	envs := append(promotionInput().Members[0].Decision.Envs, promotion.EnvState{Environment: "eu", State: promotion.Unreadable, Reason: "the overlay can't be read: a`b @ada", Promotion: promotion.Waiting, CandidateName: "1.5.0", Candidate: newRelease,
		Why: []promotion.Reason{{Code: "limit", Text: "10 of 10 pull requests are open", Who: "anybody", When: at(13, 0)}}})
	envs = append(envs, revertInput().Members[0].Decision.Envs[1])
	for name, text := range map[string]string{
		"help":       HelpText(false),
		"help-bare":  HelpText(true),
		"help-user":  UserHelpText(),
		"diff-user":  changes()["impact-rendered"].DiffText(),
		"diff-none":  changes()["impact-nothing"].DiffText(),
		"status":     StatusText(envs),
		"why":        WhyText(envs, ""),
		"why-prod":   WhyText(envs, "prod"),
		"why-nobody": WhyText(envs, "nowhere"),
		"diff":       DiffText(shortDiff()),
		"diff-fails": DiffText(pages()["promotion-not-rendered"]),
		"refused":    "there is nothing to promote to qa: 1.5.0 was reverted from qa by #15; /liftlock promote qa brings it back",
	} {
		t.Run(name, func(t *testing.T) {
			got := Reply("ada", "/liftlock "+name, text, 42)
			golden(t, "answer-"+name, got)
			if !IsReplyTo(got, 42) || IsReplyTo(got, 4) || IsReplyTo(got, 420) || IsStatusComment(got) {
				t.Errorf("the answer's mark isn't read back")
			}
		})
	}
}
