package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/emulator"
	"github.com/liftlock/liftlock/internal/promotion"
)

// train stands for a component where several are moved by one pull request.
const train = promotion.BatchName

// gatedQA merges only after ada has approved, so that a test can see it open.
const gatedQA = "name: qa\nafter: [dev]\nmerge: auto\nonDegraded: revert-and-merge\ngates:\n  - approvals: {count: 1, from: {users: [ada]}}\nverify: " + verifyFast

// together is a pipeline file whose components travel together.
func together(environments ...string) string {
	return pipelineOf([]string{"batch: environment"}, environments...)
}

// releases is one build job's commit of several components into dev: a component
// and its tag each.
func (s *scene) releases(pairs ...string) {
	s.t.Helper()
	files := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		files[overlay(pairs[i], "dev")+"/kustomization.yaml"] = strings.NewReplacer("NAME", pairs[i], "TAG", pairs[i+1]).Replace(kustomization)
	}
	s.commit("linus", "main", "Release "+strings.Join(pairs, " "), files)
}

// moving waits for the open pull request of several into an environment whose
// title has all of the texts and whose head is another than before.
func (s *scene) moving(env, before string, texts ...string) emulator.PullRequest {
	s.t.Helper()
	var found emulator.PullRequest
	s.until("a pull request into "+env+" moves "+strings.Join(texts, ", "), func() (bool, string) {
		seen := ""
		for _, p := range s.pulls(train, env) {
			seen += p.Title + "; "
			if p.Open && p.Head != before && !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(p.Title, text) }) {
				found = p
				return true, ""
			}
		}
		_, why := s.env(s.p.components[0], env)
		return false, seen + why
	})
	return found
}

func (s *scene) tree() map[string]string {
	s.t.Helper()
	tree, err := s.Forge.Tree(repoName, "main")
	s.must("list the tree", err)
	return tree
}

// TestTogether moves two components by one pull request an environment, and
// loses the database on the way.
func TestTogether(t *testing.T) {
	s := begin(t, plan{components: []string{"web", "api", "db"}, pipeline: together(dev, gatedQA, prod)})
	s.quiet()
	s.releases("web", "1.1.0", "api", "2.0.0")
	p := s.moving("qa", "", "api 2.0.0", "web 1.1.0")
	for _, want := range []string{"api", "`2.0.0`", "web", "`1.1.0`", "All or nothing"} {
		if !strings.Contains(p.Body, want) {
			t.Errorf("the body lacks %q:\n%s", want, p.Body)
		}
	}
	s.idle()
	s.forget()
	s.start()
	s.quiet()
	s.approve(p.Number, "ada")
	p = s.merged(p.Number)
	s.verified("web", "qa", "1.1.0")
	s.verified("api", "qa", "2.0.0")
	next := s.moving("prod", "", "api 2.0.0", "web 1.1.0")
	s.idle()
	s.forget()
	s.start()
	s.quiet()
	s.approve(next.Number, "ada")
	s.approve(next.Number, "grace")
	s.merged(next.Number)
	s.verified("web", "prod", "1.1.0")
	s.verified("api", "prod", "2.0.0")
	s.idle()
	all, err := s.Forge.Pulls(repoName)
	s.must("list the pull requests", err)
	if len(all) != 2 {
		t.Errorf("%d pull requests were made, want 2", len(all))
	}
	for _, component := range []string{"web", "api"} {
		var rows api.Promotions
		if _, err := s.get("/api/v1/promotions?component="+component, &rows); err != nil || len(rows.Promotions) != 2 {
			t.Errorf("%s has %d promotions (%v), want 2", component, len(rows.Promotions), err)
		}
	}
}

// TestJoining composes the open pull request anew for whoever becomes ready, but
// not once it is approved: then who comes later waits for the next.
func TestJoining(t *testing.T) {
	s := begin(t, plan{components: []string{"web", "api", "db"}, pipeline: together(dev, strings.Replace(gatedQA, "merge: auto", "merge: manual", 1))})
	s.quiet()
	s.release("web", "1.1.0")
	first := s.moving("qa", "", "web 1.1.0")
	s.release("api", "2.0.0-broken-in-dev") // never ready
	s.release("db", "3.0.0")
	p := s.moving("qa", first.Head, "web 1.1.0", "db 3.0.0")
	if p.Number != first.Number || strings.Contains(p.Title, "api") {
		t.Errorf("#%d %q came after #%d", p.Number, p.Title, first.Number)
	}
	s.release("web", "1.2.0")
	p = s.moving("qa", p.Head, "web 1.2.0", "db 3.0.0")
	s.approve(p.Number, "ada")
	s.release("api", "2.1.0")
	s.verified("api", "dev", "2.1.0")
	s.says("api", "qa", "which is approved without it")
	s.release("db", "3.1.0")
	s.says("db", "qa", "waits its turn")
	s.idle()
	if now := s.pull(p.Number); now.Head != p.Head {
		t.Fatalf("the approved #%d was composed anew: %s", p.Number, now.Title)
	}
	if _, err := s.Forge.MergePull(repoName, p.Number, "linus", "merge"); err != nil {
		t.Fatal(err)
	}
	s.verified("web", "qa", "1.2.0")
	s.verified("db", "qa", "3.0.0")
	if next := s.moving("qa", p.Head, "api 2.1.0", "db 3.1.0"); next.Number == p.Number || strings.Contains(next.Title, "web") {
		t.Errorf("the next one is #%d %q", next.Number, next.Title)
	}
}

// TestTakenBackTogether takes all back when one degrades, byte for byte, whatever
// the merge method; the releases stay away without the database too, and a
// person brings them back.
func TestTakenBackTogether(t *testing.T) {
	for _, method := range []string{"merge", "squash", "rebase"} {
		t.Run(method, func(t *testing.T) {
			s := begin(t, plan{components: []string{"web", "api"}, pipeline: pipelineOf([]string{"batch: environment", "merge: {method: " + method + "}"}, dev, gatedQA, prod)})
			s.quiet()
			const bad = "1.1.0-broken-in-qa"
			s.releases("web", bad, "api", "2.0.0")
			p := s.moving("qa", "", "web "+bad, "api 2.0.0")
			before := s.tree()
			s.approve(p.Number, "ada")
			p = s.merged(p.Number)
			s.until("one revert of both merges", func() (bool, string) {
				rs := s.reverts(train, "qa")
				_, seen := s.env("web", "qa")
				return len(rs) == 1 && rs[0].Merged, seen
			})
			if d := cmp.Diff(before, s.tree()); d != "" {
				t.Errorf("the way back (-want +got):\n%s", d)
			}
			back := s.reverts(train, "qa")[0]
			for _, want := range []string{"#" + itoa(p.Number), "api", "web-qa", "2 components"} {
				if !strings.Contains(back.Title+back.Body, want) {
					t.Errorf("the revert lacks %q:\n%s\n%s", want, back.Title, back.Body)
				}
			}
			for _, component := range []string{"web", "api"} {
				s.says(component, "qa", "was reverted from qa")
			}
			s.idle()
			s.forget()
			s.start()
			for _, component := range []string{"web", "api"} {
				s.says(component, "qa", "was reverted from qa")
			}
			s.idle()
			if n := len(s.pulls(train, "qa")) + len(s.pulls(train, "prod")); n != 1 {
				t.Fatalf("%d promotions of what was taken back", n)
			}
			if method != "merge" {
				return
			}
			// A fix of one moves alone; what was well comes back when somebody says so.
			s.release("web", "1.1.1")
			s.moving("qa", "", "web 1.1.1")
			s.reacted(p.Number, s.comment(p.Number, "ada", "/liftlock promote qa"), "+1")
			s.moving("qa", "", "web 1.1.1", "api 2.0.0")
		})
	}
}

// TestGoesOnTogether keeps everybody from the next environment until all that came
// along are verified, and says who is waited for.
func TestGoesOnTogether(t *testing.T) {
	s := begin(t, plan{components: []string{"web", "api"}, pipeline: together(dev, strings.Replace(gatedQA, "timeout: 4s", "timeout: 10m", 1), prod)})
	s.quiet()
	s.must("keep api-qa from becoming healthy", s.ArgoCD.SetFault("argocd", "api-qa", emulator.AppFault{Health: "Progressing", Message: "one more replica"}))
	s.releases("web", "1.1.0", "api", "2.0.0")
	p := s.moving("qa", "", "web 1.1.0", "api 2.0.0")
	s.approve(p.Number, "ada")
	s.merged(p.Number)
	s.verified("web", "qa", "1.1.0")
	s.says("web", "prod", "api 2.0.0 came with it and is not verified in qa")
	s.idle()
	if n := len(s.pulls(train, "prod")); n != 0 {
		t.Fatalf("%d pull requests into prod before all are verified", n)
	}
	s.must("let api-qa become healthy", s.ArgoCD.SetFault("argocd", "api-qa", emulator.AppFault{}))
	s.moving("prod", "", "web 1.1.0", "api 2.0.0")
}

// TestCommandsTogether gives commands in a pull request of several, and about one
// of its components.
func TestCommandsTogether(t *testing.T) {
	s := begin(t, plan{components: []string{"web", "api"}, pipeline: together(dev, gatedQA)})
	s.quiet()
	s.releases("web", "1.1.0", "api", "2.0.0")
	p := s.moving("qa", "", "web 1.1.0", "api 2.0.0")
	for command, want := range map[string][]string{
		"status": {"web", "api"}, "why": {"web", "api", "approvals"}, "help": {"/liftlock promote"}, "diff": {"`1.1.0`", "`2.0.0`"},
	} {
		answer := s.reacted(p.Number, s.comment(p.Number, "linus", "/liftlock "+command), "+1")
		for _, text := range want {
			if !strings.Contains(answer, text) {
				t.Errorf("/liftlock %s lacks %q: %s", command, text, answer)
			}
		}
	}
	s.reacted(p.Number, s.comment(p.Number, "linus", "/liftlock hold pr the database is moving"), "+1")
	s.approve(p.Number, "ada")
	s.pullIs(p.Number, "is held", func(p *emulator.PullRequest) bool {
		return slices.Contains(p.Labels, promotion.LabelHold) && strings.Contains(statusOf(p.Statuses).Description, "hold")
	})
	s.idle()
	if s.pull(p.Number).Merged {
		t.Fatal("a held pull request was merged")
	}
	before := s.tree()
	s.reacted(p.Number, s.comment(p.Number, "ada", "/liftlock unhold"), "+1")
	s.merged(p.Number)
	s.verified("web", "qa", "1.1.0")
	s.verified("api", "qa", "2.0.0")
	// A revert that is asked for one of them takes all back.
	body := api.OnPipeline{Component: "web", Environment: "qa", Reason: "customers complain"}
	var rows api.Promotions
	if _, err := s.get("/api/v1/promotions?component=web", &rows); err != nil || len(rows.Promotions) != 1 {
		t.Fatalf("%d promotions of web (%v)", len(rows.Promotions), err)
	}
	if status, answer := s.post(operator, "/api/v1/promotions/"+itoa(int(rows.Promotions[0].ID))+"/revert", api.OnPromotion{Reason: body.Reason}); status != http.StatusConflict {
		t.Errorf("a revert by no approver: HTTP %d %s", status, answer)
	}
	s.reacted(p.Number, s.comment(p.Number, "ada", "/liftlock revert customers complain"), "+1")
	s.until("the revert of both merges", func() (bool, string) {
		rs := s.reverts(train, "qa")
		_, seen := s.env("api", "qa")
		return len(rs) == 1 && rs[0].Merged && strings.Contains(rs[0].Body, "customers complain"), seen
	})
	if d := cmp.Diff(before, s.tree()); d != "" {
		t.Errorf("the way back (-want +got):\n%s", d)
	}
	s.idle()
	if n := len(s.pulls(train, "qa")); n != 1 {
		t.Errorf("%d promotions after the revert", n)
	}
}

// TestHeldComponentLeaves lets the others go on without one that is on hold.
func TestHeldComponentLeaves(t *testing.T) {
	s := begin(t, plan{components: []string{"web", "api"}, pipeline: together(dev, gatedQA)})
	s.quiet()
	s.releases("web", "1.1.0", "api", "2.0.0")
	p := s.moving("qa", "", "web 1.1.0", "api 2.0.0")
	hold := api.OnPipeline{Scope: "component", Component: "web", Reason: "the schema is moving"}
	if status, answer := s.post(operator, "/api/v1/pipelines/shop/hold", hold); status != http.StatusOK {
		t.Fatalf("hold: HTTP %d %s", status, answer)
	}
	alone := s.moving("qa", p.Head, "1 component to qa: api 2.0.0")
	if alone.Number != p.Number || strings.Contains(alone.Title, "web") {
		t.Errorf("#%d %q came after #%d", alone.Number, alone.Title, p.Number)
	}
	s.until("web's record says that it left", func() (bool, string) {
		var rows api.Promotions
		_, err := s.get("/api/v1/promotions?component=web", &rows)
		return err == nil && len(rows.Promotions) == 1 && rows.Promotions[0].State == "superseded", fmt.Sprintf("%+v %v", rows.Promotions, err)
	})
	s.approve(alone.Number, "ada")
	s.merged(alone.Number)
	s.verified("api", "qa", "2.0.0")
	s.says("web", "qa", "component web is on hold by ops")
}

// TestVetoTogether keeps all closed that a person closed, until retry.
func TestVetoTogether(t *testing.T) {
	s := begin(t, plan{components: []string{"web", "api"}, pipeline: together(dev, gatedQA)})
	s.quiet()
	s.releases("web", "1.1.0", "api", "2.0.0")
	p := s.moving("qa", "", "web 1.1.0", "api 2.0.0")
	s.must("close it", s.Forge.ClosePull(repoName, p.Number, "grace"))
	for range 2 {
		s.says("web", "qa", "was closed by a person")
		s.says("api", "qa", "was closed by a person")
		s.idle()
		if n := len(s.pulls(train, "qa")); n != 1 {
			t.Fatalf("%d pull requests after a person closed the first", n)
		}
		s.forget()
		s.start()
	}
	s.reacted(p.Number, s.comment(p.Number, "linus", "/liftlock retry"), "+1")
	s.moving("qa", "", "web 1.1.0", "api 2.0.0")
}

// TestSomebodyElsesTrain leaves alone what somebody else pushed to the branch of
// several, and composes it anew when a person says so.
func TestSomebodyElsesTrain(t *testing.T) {
	s := begin(t, plan{components: []string{"web", "api"}, pipeline: together(dev, gatedQA)})
	s.quiet()
	s.releases("web", "1.1.0", "api", "2.0.0")
	p := s.moving("qa", "", "web 1.1.0", "api 2.0.0")
	s.commit("linus", p.Branch, "And another thing", map[string]string{"apps/web/base/deployment.yaml": "kind: Secret\n"})
	s.approve(p.Number, "ada")
	s.pullIs(p.Number, "is stopped", func(p *emulator.PullRequest) bool {
		return strings.Contains(statusOf(p.Statuses).Description, "is not what Liftlock composed")
	})
	s.idle()
	if s.pull(p.Number).Merged {
		t.Fatal("somebody else's work was merged")
	}
	spoilt := s.pull(p.Number).Head
	s.reacted(p.Number, s.comment(p.Number, "linus", "/liftlock retry"), "+1")
	s.moving("qa", spoilt, "web 1.1.0", "api 2.0.0")
	s.approve(p.Number, "ada")
	s.merged(p.Number)
	s.verified("web", "qa", "1.1.0")
	s.verified("api", "qa", "2.0.0")
}

// TestSwitchingBatch closes what is open of the other kind, and never carries
// anything twice.
func TestSwitchingBatch(t *testing.T) {
	alone := pipelineOf([]string{"batch: component"}, dev, gatedQA)
	s := begin(t, plan{components: []string{"web", "api"}, pipeline: alone})
	s.quiet()
	s.releases("web", "1.1.0", "api", "2.0.0")
	web, other := s.opened("web", "qa", "1.1.0"), s.opened("api", "qa", "2.0.0")
	s.commit("linus", "main", "Let them travel together", map[string]string{".liftlock.yaml": together(dev, gatedQA)})
	p := s.moving("qa", "", "web 1.1.0", "api 2.0.0")
	for _, n := range []int{web.Number, other.Number} {
		if old := s.pull(n); old.Open || !slices.Contains(old.Labels, promotion.LabelSuperseded) {
			t.Errorf("#%d is open: %t, labels %v", n, old.Open, old.Labels)
		}
	}
	s.commit("linus", "main", "Each on its own again", map[string]string{".liftlock.yaml": alone})
	s.opened("web", "qa", "1.1.0")
	web = s.opened("web", "qa", "1.1.0")
	s.opened("api", "qa", "2.0.0")
	if s.pull(p.Number).Open {
		t.Errorf("#%d is still open", p.Number)
	}
	s.approve(web.Number, "ada")
	s.merged(web.Number)
	s.verified("web", "qa", "1.1.0")
}

// TestReservedName refuses a component that has the name of all of them.
func TestReservedName(t *testing.T) {
	s := begin(t, plan{components: []string{"web", train}, pipeline: together(dev, gatedQA)})
	s.until("the server looks at web", func() (bool, string) {
		e, seen := s.env("web", "dev")
		return e != nil, seen
	})
	s.release("web", "1.1.0")
	s.says("web", "qa", "call it something else")
	s.idle()
	if n := len(s.pulls(train, "qa")); n != 0 {
		t.Errorf("%d pull requests", n)
	}
}

// TestTogetherIntoMany opens into more environments at once than a run asks
// questions one after the other.
func TestTogetherIntoMany(t *testing.T) {
	environments := []string{dev}
	var regions []string
	for i := range 10 {
		regions = append(regions, fmt.Sprintf("region-%d", i))
		environments = append(environments, "name: "+regions[i]+"\nafter: [dev]\nverify: "+verifyFast)
	}
	s := begin(t, plan{components: []string{"web", "api"}, pipeline: together(environments...)})
	s.quiet()
	s.releases("web", "1.1.0", "api", "2.0.0")
	for _, region := range regions {
		s.moving(region, "", "api 2.0.0", "web 1.1.0")
	}
}

// TestTogetherWithoutABranch goes on elsewhere when an environment's branch is
// gone while a pull request for it is open.
func TestTogetherWithoutABranch(t *testing.T) {
	branches := map[string]string{"dev": "env/dev", "qa": "env/qa", "other": "env/other"}
	s := begin(t, plan{components: []string{"web", "api"}, branches: branches,
		pipeline: together(dev, gatedQA, "name: other\nafter: [dev]\nmerge: auto\nverify: "+verifyFast)})
	s.quiet()
	s.release("web", "1.1.0")
	s.moving("qa", "", "web 1.1.0")
	s.must("delete qa's branch", s.Forge.SetBranch(repoName, "linus", "env/qa", ""))
	s.release("api", "2.0.0")
	s.verified("web", "other", "1.1.0")
	s.verified("api", "other", "2.0.0")
}
