package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/webhooks"
)

// gatedQA takes grace's approval.
var gatedQA = strings.Replace(manualQA, "merge: manual", "merge: manual, gates: [{approvals: {count: 1, from: {users: [grace]}}}]", 1)

// scripts are what happens in a repository from its beginning to a state of rest.
var scripts = map[string]struct {
	spec, after string
	components  []string
	happens     func(w *fixture)
}{
	"a promotion that degrades and is reverted": {"", autoQA, []string{"web"}, func(w *fixture) {
		w.openOne("web", "2.0.0", "web")
		w.settle("web", "it is merged", func() bool { return w.pulls()[0].Merged })
		w.setHealth("Degraded", "web")
		w.settle("web", "its revert is open", func() bool { return len(w.pulls()) > 1 })
		w.setHealth("", "web")
		w.sweepAll("web")
	}},
	"a batch that a person merges": {"  batch: environment\n", manualQA, []string{"api", "web"}, func(w *fixture) {
		p := w.openOne("batch", "2.0.0", "web")
		w.release("2.0.0", "api")
		w.settle("batch", "api joins", func() bool { return w.pulls()[0].Head != p.Head })
		w.sweepAll("batch")
		_, err := w.forge.MergePull(repoName, p.Number, "grace", "merge")
		w.must(err)
		w.runRepository()
		w.sweepAll("batch")
	}},
	"commands in comments": {"", manualQA, []string{"web"}, func(w *fixture) {
		w.must(w.run(wake.ForUnit(w.unit("web"))))
		p := w.openOne("web", "2.0.0", "web")
		w.sweepAll("web")
		for _, text := range []string{"/liftlock hold pr waits for the certificate", "/liftlock unhold pr", "/liftlock nonsense"} {
			_, err := w.forge.Comment(repoName, p.Number, "ada", text)
			w.must(err)
			w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
			w.must(w.run(wake.ForUnit(w.unit("web"))))
		}
		_, err := w.forge.MergePull(repoName, p.Number, "grace", "merge")
		w.must(err)
		w.runRepository()
		w.sweepAll("web")
	}},
	"a person closes it, and has it tried again": {"", manualQA, []string{"web"}, func(w *fixture) {
		p := w.openOne("web", "2.0.0", "web")
		w.sweepAll("web")
		w.must(w.forge.ClosePull(repoName, p.Number, "ada"))
		w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
		w.must(w.run(wake.ForUnit(w.unit("web"))))
		_, err := w.command("ada", p.Number, "web", command.Command{Verb: command.Retry, Environment: "qa"})
		w.must(err)
		w.settle("web", "it is open again", func() bool { return len(w.pulls()) > 1 || w.pulls()[0].Open })
		w.sweepAll("web")
	}},
	"a person's change shows what it does": {"", manualQA, []string{"web"}, func(w *fixture) {
		w.retryDelay = time.Minute // questions are answered only so fast
		number := w.openChange("theirs", map[string]string{"docs/x.md": "x\n"})
		pr, err := w.repo.Forge.PullRequest(w.t.Context(), w.repo.Name, number)
		w.must(err)
		w.must(w.failCalls("report", func() error { return w.reportImpactOn(pr) }))
		w.must(w.opts.Store.PutRecord(w.t.Context(), checkedHeads.Key(record.OfPull(w.repo.ID, number)), []byte(`{"head":"`+pr.Head+`","refused":"`+"x"+`"}`))) // nothing is evaluated
		w.question("ada", number, "/liftlock help\n/liftlock promote qa\n/liftlock diff")
		w.must(w.forge.ClosePull(repoName, number, "linus"))
		w.must(w.run(wake.ForPull(w.repo.ID, number)))
		w.rest("web")
	}},
	"a gate is skipped": {"  breakGlass: {users: [ada]}\n", soakedQA, []string{"web"}, func(w *fixture) {
		p := w.openOne("web", "2.0.0", "web")
		w.clock.Step(time.Minute)
		_, err := w.command("ada", p.Number, "web", command.Command{Verb: command.Skip, Gate: "soak", Reason: "the outage of today"})
		w.must(err)
		w.settle("web", "it is merged", func() bool { return w.pulls()[0].Merged })
		w.rest("web")
	}},
	"holds that end, are lifted and are taken off by hand": {"  batch: environment\n", gatedQA, []string{"api", "web"}, func(w *fixture) {
		p := w.openOne("batch", "2.0.0", "api", "web")
		pull := wake.ForPull(w.repo.ID, p.Number)
		w.rest("batch")
		give := func(by string, verb command.Verb, scope string, lasting time.Duration) {
			w.clock.Step(time.Minute)
			_, err := w.command(by, p.Number, "batch", command.Command{Verb: verb, Scope: scope, Environment: "qa", For: lasting})
			w.must(err)
			w.runRepository()
			w.must(w.run(pull))
			w.must(w.run(wake.ForUnit(w.unit("batch"))))
		}
		give("ada", command.Hold, command.ScopePR, time.Hour)
		w.must(w.forge.RemoveLabel(repoName, p.Number, "linus", promotion.LabelHold))
		w.must(w.run(pull))
		w.clock.Step(time.Hour)
		w.must(w.run(pull))
		for _, scope := range []string{command.ScopePR, command.ScopeComponent, command.ScopeEnvironment, command.ScopePipeline} {
			give("ada", command.Hold, scope, 0)
			give("grace", command.Unhold, scope, 0)
		}
		give("ada", command.Hold, command.ScopePR, 2*time.Hour)
		w.must(w.forge.ClosePull(repoName, p.Number, "linus"))
		w.must(w.run(pull))
		w.rest("batch")
	}},
	"what was merged together is taken back": {"  batch: environment\n", autoQA, []string{"api", "web"}, func(w *fixture) {
		p := w.openOne("batch", "2.0.0", "api", "web")
		w.settle("batch", "it is merged", func() bool { return w.pulls()[0].Merged })
		w.retryDelay = time.Minute
		for _, verb := range []command.Verb{command.Status, command.Why, command.Diff} {
			_, err := w.command("ada", p.Number, "batch", command.Command{Verb: verb})
			if err != nil && !isRefused(err) { // nothing of it is open any more
				w.t.Errorf("%s: %v", verb, err)
			}
		}
		_, err := w.command("ada", p.Number, "batch", command.Command{Verb: command.Revert, Environment: "qa"})
		w.must(err)
		w.settle("batch", "its revert is open", func() bool { return len(w.pulls()) > 1 })
		w.rest("batch")
	}},
	"one of the forge's merge groups": {"", autoQA, []string{"web"}, func(w *fixture) {
		const branch = groupPrefix + "main/pr-1-x"
		group := wake.ForMergeGroup(w.repo.ID, branch)
		w.repo.ForgeType = webhooks.GitHub
		hosted := w.forge.(*memoryForge).forge
		w.must(hosted.QueueMerges(w.repo.Name))
		p := w.openOne("web", "2.0.0", "web")
		w.settle("web", "it is in the queue", func() bool {
			queued, err := hosted.QueuedPulls(w.repo.Name)
			w.must(err)
			return len(queued) == 1
		})
		w.must(w.forge.SetBranch(repoName, "linus", branch, p.Head))
		head, err := w.forge.CommitAs(repoName, "linus", branch, "Merge", map[string]string{"merged.txt": "x"})
		w.must(err)
		state := func() string {
			w.must(w.run(group))
			all, err := hosted.As("acme").Statuses(w.t.Context(), w.repo.Name, head)
			w.must(err)
			return fmt.Sprint(all[0].State, " ", all[0].Description)
		}
		if got := state(); got != "success every gate of #1 passes" {
			w.t.Errorf("with all gates passed the group is %q", got)
		}
		w.must(w.forge.AddLabel(repoName, p.Number, "linus", promotion.LabelHold))
		if got := state(); got != "pending not every gate of #1 passes" {
			w.t.Errorf("with the promotion on hold the group is %q", got)
		}
		w.sweepAll("web")
		if got := state(); got != "pending #1 is in this group and not in the merge queue" {
			w.t.Errorf("with the promotion out of the queue the group is %q", got)
		}
		w.must(w.forge.SetBranch(repoName, "linus", branch, ""))
		w.must(w.run(group))
		w.runRepository()
		w.sweepAll("web")
		if _, kept, err := w.opts.Store.Record(w.t.Context(), servedGroups.Key(record.OfBranch(w.repo.ID, branch))); err != nil || kept {
			w.t.Errorf("of a group that is over something is kept: %t, %v", kept, err)
		}
	}},
	"the forge refuses a merge": {"", autoQA, []string{"web"}, func(w *fixture) {
		w.openOne("web", "2.0.0", "web")
		w.fail("merge acme", forge.ErrNotMergeable)
		for range 4 {
			w.must(w.run(wake.ForUnit(w.unit("web"))))
			w.must(w.run(wake.ForMerge(w.repo.ID)))
		}
		w.failNothing()
		w.rest("web")
	}},
	"a pipeline breaks, is mended, and moves its components together": {"", manualQA, []string{"api", "web"}, func(w *fixture) {
		w.openOne("web", "2.0.0", "web")
		rules, _, err := w.forge.File(repoName, "main", ".liftlock.yaml")
		w.must(err)
		change := func(text string) {
			_, err := w.forge.CommitAs(repoName, "linus", "main", "Rules", map[string]string{".liftlock.yaml": text})
			w.must(err)
			w.runRepository()
			for _, component := range slices.Repeat([]string{"web", "api", promotion.BatchName}, 6) {
				if err := w.run(wake.ForUnit(w.unit(component))); err != nil && !isStale(err) {
					w.t.Error(err)
				}
			}
			w.sweepAll("web")
		}
		state := func() forge.StatusState {
			head, err := w.forge.Head(repoName, "main")
			w.must(err)
			all, err := w.forge.(*memoryForge).forge.As("acme").Statuses(w.t.Context(), w.repo.Name, head)
			w.must(err)
			for _, s := range all {
				if s.Context == act.StatusContext {
					return s.State
				}
			}
			return ""
		}
		change("nonsense: true\n")
		if got := state(); got != forge.StatusFailure {
			w.t.Errorf("a broken pipeline file has the status %q", got)
		}
		change(rules)
		if got := state(); got != forge.StatusSuccess {
			w.t.Errorf("a mended pipeline file has the status %q", got)
		}
		change(strings.Replace(rules, "  environments:\n", "  batch: environment\n  environments:\n", 1))
		change(rules)
		change(strings.Replace(rules, "name: shop", "name: store", 1))
	}},
	"another repository has the name for a while": {"", manualQA, []string{"web"}, func(w *fixture) {
		f := &settingsForge{Forge: w.repo.Forge, number: 8}
		w.repo.Forge, w.repo.Number = f, 7
		w.sweepAll("web")
		f.number = 7
		w.sweepAll("web")
		w.openOne("web", "2.0.0", "web")
		w.rest("web")
	}},
	"webhooks are missed": {"", manualQA, []string{"web"}, func(w *fixture) {
		w.manageHook()
		w.must(w.run(wake.ForHook(w.repo.ID)))
		p := w.openOne("web", "2.0.0", "web")
		w.rest("web")
		_, err := w.forge.Comment(repoName, p.Number, "ada", "/liftlock hold")
		w.must(err)
		w.missDelivery("1", "issue_comment", commentPayload(repoName, "ada", p.Number))
		w.missDelivery("2", "push", "")
		w.must(w.run(wake.ForHook(w.repo.ID)))
		w.rest("web")
	}},
	"commands of the console": {"", manualQA, []string{"web"}, func(w *fixture) {
		p := w.openOne("web", "2.0.0", "web")
		w.rest("web")
		give := func(pull int, key string, c command.Command) {
			c.Reason, w.retryDelay = "the outage of today", claimLease
			w.must(w.failCalls(string(c.Verb), func() error { return w.consoleCommand("oncall", command.RoleOperator, pull, key, c) }))
			w.retryDelay = 0
			w.runRepository()
		}
		give(0, "1", command.Command{Verb: command.Hold, Scope: command.ScopeEnvironment, Environment: "dev"})
		give(0, "2", command.Command{Verb: command.Retry, Environment: "qa"})
		give(p.Number, "3", command.Command{Verb: command.Hold, Scope: command.ScopePR, Environment: "qa"})
		w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
		w.rest("web")
		if n := w.commentsWith("gave `/liftlock hold pr`: the outage of today"); n != 1 {
			w.t.Errorf("%d comments say who holds it", n)
		}
	}},
}
