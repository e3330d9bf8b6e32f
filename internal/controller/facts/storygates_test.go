package facts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/memoryforge"
	"github.com/liftlock/liftlock/policies"
)

// storyServers are a Prometheus and an endpoint that are asked by gates.
type storyServers struct {
	w        *story
	requests []string
	err      error
	again    time.Time
	busy     bool // it isn't anybody's turn
	value    float64
	said     policies.EndpointAnswer
}

func (s *storyServers) Sample(_ context.Context, server, query string, every, maxAge time.Duration) (policies.MetricSample, time.Time, error) {
	s.requests = append(s.requests, fmt.Sprintf("%s %s every %s, of at most %s ago", server, query, every, maxAge))
	if s.err != nil || s.busy {
		return policies.MetricSample{}, s.again, s.err
	}
	return policies.MetricSample{At: s.w.now, Values: []float64{s.value}}, time.Time{}, nil
}

func (s *storyServers) Call(_ context.Context, name, path string, every, timeout time.Duration, r policies.EndpointRequest) (policies.EndpointAnswer, time.Time, error) {
	s.requests = append(s.requests, fmt.Sprintf("%s%s every %s within %s, attempt %d: %s of %s/%s into %s by #%d at %s, %v", name, path, every, timeout, r.Attempt, r.Release.Name, r.Pipeline, r.Component, r.Environment, r.Pull, s.w.replacer().Replace(r.Head), r.Targets))
	if s.err != nil || s.busy {
		return policies.EndpointAnswer{}, s.again, s.err
	}
	a := s.said
	a.ID, a.At = r.ID, s.w.now
	return a, s.again, nil
}

// take is what was asked since the last time.
func (s *storyServers) take() (requests []string) {
	requests, s.requests = s.requests, nil
	return requests
}

const gatedEnvs = `  breakGlass: {users: [grace], teams: [acme/ops]}
  environments:
    - {name: dev}
    - name: qa
      after: [dev]
      gates:
        - approvals: {count: 1, from: {codeowners: true}}
        - checks: {on: release, require: [build]}
        - expression: 'release.commit.message.contains("Release") || diff.added.size() == 0'
        - metric: {prometheus: main, query: 'errors{component={{ .component }}}', when: value < 1, for: 10m}
        - metric: {prometheus: main, query: 'errors{component={{ .component }}}', when: value < 2, for: 10m}
        - http: {endpoint: changes, path: /ask}
        - window: {argocd: true}
`

// TestGates follows what the gates of an environment ask: people, programs, servers and
// Argo CD, while they answer, while they can't be asked, and what is kept of it.
func TestGates(t *testing.T) {
	w := newStory(t, gatedEnvs, []string{"dev", "qa"}, "web")
	servers := &storyServers{w: w, value: 0.5}
	windows := &knownWindows{}
	w.options.Metrics, w.options.Endpoints = servers, servers
	w.options.Floor = func(_ string, g []policies.Gate) []policies.Gate {
		return append(g[:len(g):len(g)], policies.Gate{Soak: &policies.Soak{For: time.Hour}})
	}
	w.startProcess()
	w.o.ArgoCDs.ByName["hub"] = branch.ArgoCD{Apps: storyArgoCD{w}, Windows: windows, Namespace: "argocd"}
	w.forge.SetTeam(forge.Team{Organisation: "acme", Name: "ops"}, "linus")
	w.commit("ada", "Owners", map[string]string{"CODEOWNERS": "apps/web/ @grace @acme/ops\n"})
	w.evaluate("web", false)
	commit := w.release("ada", "dev", "1.1.0", "web")
	w.must(w.forge.As("ada").SetStatus(w.ctx(), storyRepo, commit, forge.Status{Context: "build", State: forge.StatusPending}))
	w.soak("web")
	ev, d := w.evaluate("web", false)
	w.record(ev, d)
	n := w.openPromotion(ev, d)
	expectRequests := func(step string, want ...string) {
		t.Helper()
		if got := servers.take(); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("%s: asked was %q, want %q", step, got, want)
		}
	}
	query := `main errors{component="web"} every 1m0s, of at most 10s ago`
	call := func(attempt int, head string) string {
		return fmt.Sprintf("changes/ask every 1m0s within 10s, attempt %d: 1.1.0 of shop/web into qa by #1 at <%s>, [{web-qa in-cluster shop}]", attempt, head)
	}
	servers.said = policies.EndpointAnswer{Outcome: policies.Wait, Reason: "nobody is there", Until: w.now.Add(90 * time.Second)}
	ev, _ = w.lookAtUnit("everybody is asked")
	expectRequests("at first", query, call(1, "Promote 1.1.0 to qa"))
	w.wait(30 * time.Second)
	w.lookAtUnit("too soon to ask again")
	expectRequests("soon")

	w.must(w.forge.Review(storyRepo, n, "linus", memoryforge.Approve, ""))
	w.must(w.forge.As("ada").SetStatus(w.ctx(), storyRepo, commit, forge.Status{Context: "build", State: forge.StatusSuccess}))
	w.putRecord(people.Skips.Key(record.OfPull(w.repo.ID, n)), []people.StoredSkip{
		{Skip: promotion.Skip{Gate: "soak", By: "grace", Until: w.now.Add(time.Hour)}, Head: w.refreshPull(n).Head, Release: ev.OpenPulls[n].Release},
		{Skip: promotion.Skip{Gate: "metric", By: "linus", Until: w.now.Add(time.Hour)}, Head: w.refreshPull(n).Head, Release: ev.OpenPulls[n].Release},
		{Skip: promotion.Skip{Gate: "checks", By: "ada", Until: w.now.Add(time.Hour)}, Head: w.refreshPull(n).Head, Release: ev.OpenPulls[n].Release},
		{Skip: promotion.Skip{Gate: "http", By: "a token", Via: "api", Until: w.now.Add(time.Hour)}, Head: w.refreshPull(n).Head, Release: ev.OpenPulls[n].Release},
		{Skip: promotion.Skip{Gate: "window", By: "grace", Until: w.now}, Head: w.refreshPull(n).Head, Release: ev.OpenPulls[n].Release},
		{Skip: promotion.Skip{Gate: "approvals", By: "grace", Until: w.now.Add(time.Hour)}, Head: "another", Release: ev.OpenPulls[n].Release},
		{Skip: promotion.Skip{Gate: "expression", By: "grace", Until: w.now.Add(time.Hour)}, Head: w.refreshPull(n).Head, Release: "another"},
	})
	w.must(people.PutReviewRequests(w.ctx(), w.store, w.repo.ID, promotion.RequestReviewers{Environment: "qa", Pull: n, Release: ev.OpenPulls[n].Release, Reviewers: policies.Reviewers{Users: []string{"grace"}, Teams: []string{"acme/ops"}}}, []forge.RefusedReviewer{{Name: "acme/ops", Reason: "no access"}}))
	windows.closed = map[string]time.Time{"web-qa": w.now.Add(time.Hour)}
	w.wait(70 * time.Second)
	servers.value, servers.said = 2, policies.EndpointAnswer{Outcome: policies.Pass, Reason: "well"}
	w.lookAtUnit("they have answered")
	expectRequests("after a minute", query, call(2, "Promote 1.1.0 to qa"))
	w.wait(20 * time.Second)
	fresh, d2 := w.evaluate("web", true)
	expectRequests("before a merge", query, call(3, "Promote 1.1.0 to qa"))
	w.addStep("before a merge", fresh, d2)

	w.wait(2 * time.Minute)
	servers.busy, servers.again = true, w.now.Add(7*time.Second)
	w.lookAtUnit("it isn't our turn")
	servers.take()
	fresh, d2 = w.evaluate("web", true)
	w.addStep("nor before a merge", fresh, d2)
	servers.busy, servers.err = false, errors.New("connection refused")
	forbidden := &forge.Error{Op: "read", Kind: forge.ErrForbidden, Message: "no"}
	w.fails["reviews"], w.fails["checks"], w.fails["permission"] = forbidden, forbidden, forbidden
	windows.err = errors.New("no project")
	w.wait(20 * time.Minute)
	w.refreshPull(n)
	w.lookAtUnit("nobody can be asked")
	servers.take()
	servers.again = time.Time{}
	w.wait(time.Minute)
	w.lookAtUnit("nor will they be")
	servers.take()
	clear(w.fails)
	servers.err, windows.err = nil, nil
	w.fails["team"] = forbidden
	servers.said = policies.EndpointAnswer{Outcome: policies.Fail, Reason: "never"}
	w.wait(11 * time.Minute)
	w.refreshPull(n)
	w.lookAtUnit("the endpoint says never, and teams can't be read")
	servers.take()
	w.wait(11 * time.Minute)
	w.lookAtUnit("which is final")
	expectRequests("after a fail", query)
	w.commitTo("ada", history.StateBranch, "", "Hold", map[string]string{"holds/shop/pipeline.yaml": "by: ada\nreason: load test\nat: \"2026-01-02T03:04:05Z\"\n"})
	w.must(w.store.Tx(w.ctx(), "forget", func(tx *store.Tx) error { return ForgetSettled(w.ctx(), tx, w.repo.ID, n) }))
	w.options.Metrics, w.options.Endpoints = nil, nil
	clear(w.fails)
	w.startProcess()
	w.lookAtUnit("what they said is forgotten, and no server is known")
	for _, retryable := range []string{"reviews", "checks", "permission", "team"} {
		w.fails[retryable] = forge.ErrRetryable
		w.startProcess()
		s, err := w.o.Targets.Snapshot(w.ctx(), w.repo)
		w.must(err)
		if _, _, err := w.o.Evaluate(w.ctx(), s, w.unit("web"), false); !errors.Is(err, forge.ErrRetryable) {
			t.Errorf("%s that may be read another time: %v", retryable, err)
		}
		delete(w.fails, retryable)
	}
	w.end()
}

// TestMaySkip says who may let a promotion past a gate, and who might.
func TestMaySkip(t *testing.T) {
	w := newStory(t, gatedEnvs, []string{"dev", "qa"}, "web")
	w.forge.SetTeam(forge.Team{Organisation: "acme", Name: "ops"}, "linus")
	w.forge.SetTeam(forge.Team{Organisation: "acme", Name: "more"}, "ada")
	w.commit("ada", "Owners", map[string]string{"CODEOWNERS": "apps/web/ @grace @acme/ops\n"})
	both := []string{"acme/gone", "acme/ops"}
	for name, c := range map[string]struct {
		b     *pipeline.BreakGlass
		login string
		want  bool
		err   bool
	}{
		"nobody":               {nil, "grace", false, false},
		"no name":              {&pipeline.BreakGlass{Users: []string{"grace", ""}}, "", false, false},
		"named":                {&pipeline.BreakGlass{Users: []string{"Grace"}}, "grace", true, false},
		"in a team":            {&pipeline.BreakGlass{Teams: both}, "linus", true, false},
		"not named":            {&pipeline.BreakGlass{Users: []string{"grace"}, Teams: []string{"acme/ops"}}, "ada", false, false},
		"a team that is gone":  {&pipeline.BreakGlass{Teams: both}, "ada", false, true},
		"in none of the teams": {&pipeline.BreakGlass{Teams: []string{"acme/ops", "acme/more"}}, "mallory", false, false},
	} {
		if got, err := w.o.Teams.MaySkip(w.ctx(), w.repo, c.b, c.login, true); got != c.want || (err != nil) != c.err {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for name, c := range map[string]struct {
		from  *policies.From
		login string
		want  bool
		err   bool
	}{
		"anybody":              {&policies.From{}, "mallory", true, false},
		"named":                {&policies.From{Users: []string{"Mallory"}}, "mallory", true, false},
		"in a team":            {&policies.From{Teams: both}, "linus", true, false},
		"in another team":      {&policies.From{Teams: []string{"acme/more"}}, "linus", false, false},
		"a team that is gone":  {&policies.From{Teams: both}, "ada", false, true},
		"an owner":             {&policies.From{Codeowners: true}, "grace", true, false},
		"in a team that owns":  {&policies.From{Codeowners: true}, "linus", true, false},
		"not an owner":         {&policies.From{Codeowners: true}, "ada", false, false},
		"owners don't matter":  {&policies.From{Users: []string{"ada"}}, "grace", false, false},
		"an owner and in none": {&policies.From{Codeowners: true, Teams: []string{"acme/more"}}, "ada", true, false},
	} {
		if got, err := w.o.Teams.MayApprove(w.ctx(), w.repo, c.from, w.head("main"), c.login); got != c.want || (err != nil) != c.err {
			t.Errorf("%s may approve: %v, %v", name, got, err)
		}
	}
	w.commit("ada", "Owners' file is gone", map[string]string{"CODEOWNERS": ""})
	if _, err := w.o.Teams.MayApprove(w.ctx(), w.repo, &policies.From{Codeowners: true}, w.head("main"), "grace"); err == nil {
		t.Error("without a CODEOWNERS it is told who owns what")
	}
}

// TestRememberedTeams asks a forge again about who is in a team after some minutes, and
// before a merge at once.
func TestRememberedTeams(t *testing.T) {
	w := newStory(t, gatedEnvs, []string{"dev", "qa"}, "web")
	ops := forge.Team{Organisation: "acme", Name: "ops"}
	w.forge.SetTeam(ops, "linus")
	isMember := func(fresh bool) bool {
		t.Helper()
		is, err := w.o.Teams.IsInTeam(w.ctx(), w.repo, "acme/ops", "linus", fresh)
		w.must(err)
		return is
	}
	if !isMember(false) {
		t.Error("at first")
	}
	w.forge.SetTeam(ops)
	w.wait(people.MembershipAge - time.Second)
	if !isMember(false) {
		t.Error("it is asked again at once")
	}
	w.wait(time.Second)
	if isMember(false) {
		t.Error("it isn't asked again")
	}
	w.forge.SetTeam(ops, "linus")
	if isMember(false) || !isMember(true) {
		t.Error("before a merge")
	}
	w.wait(people.MembershipAge - time.Minute)
	_, err := w.o.Teams.IsInTeam(w.ctx(), w.repo, "acme/ops", "grace", false)
	w.must(err)
	w.wait(2 * time.Minute)
	w.fails["team"] = &forge.Error{Op: "read", Kind: forge.ErrRetryable}
	if _, err := w.o.Teams.IsInTeam(w.ctx(), w.repo, "acme/ops", "grace", false); err == nil {
		t.Error("that the team is the same was seen too long ago")
	}
	delete(w.fails, "team")
	if _, err := w.o.Teams.IsInTeam(w.ctx(), w.repo, "ops", "linus", true); err == nil {
		t.Error("a team without an organisation")
	}
}

// TestDriftGate has a promotion wait while its target was changed in the cluster, and while it
// can't be told whether it was.
func TestDriftGate(t *testing.T) {
	w := newStory(t, `  environments:
    - {name: dev}
    - {name: qa, after: [dev], merge: auto, gates: [{settled: {drift: block}}]}
`, []string{"dev", "qa"}, "web")
	w.evaluate("web", false)
	w.release("ada", "dev", "1.1.0", "web")
	w.soak("web")
	ev, d := w.evaluate("web", false)
	w.record(ev, d)
	w.openPromotion(ev, d)
	since := w.now
	deployed := func(a *verification.App) {
		a.Deployed = []verification.Deployment{{Revisions: a.Revisions, At: w.now.Add(-time.Hour), OfSpec: true}}
	}
	for _, step := range []struct {
		name   string
		change func(*verification.App)
		want   policies.Outcome
		reason string
	}{
		{"as Git says", deployed, policies.Pass, "as Git says on 1 target"},
		{"changed in the cluster", func(a *verification.App) {
			deployed(a)
			a.SyncStatus, a.Differing, a.Differences = "OutOfSync", 1, []verification.Difference{{Kind: "Deployment", Name: "web", How: verification.IsDifferent}}
		}, policies.Wait, "web-qa differs from Git in 1 resource: Deployment web (different), since " + since.Add(time.Minute).Format("Mon 2006-01-02 15:04") + " UTC; sync what differs, or put into Git what was changed"},
		{"being synced", func(a *verification.App) {
			deployed(a)
			a.SyncStatus, a.Operation = "OutOfSync", &verification.Operation{Phase: "Running"}
		}, policies.Wait, "whether web-qa is as Git says can't be told: a sync is under way"},
		{"synced", deployed, policies.Pass, "as Git says on 1 target"},
	} {
		w.becomes("web-qa", step.change)
		ev, d := w.evaluate("web", true)
		w.record(ev, d)
		g := d.Components[0].Env("qa").Gates
		if len(g) != 1 || g[0].Gate != "settled" || g[0].Outcome != step.want || g[0].Reason != step.reason {
			t.Errorf("%s: %+v, want %s: %s", step.name, g, step.want, step.reason)
		}
		w.wait(time.Minute)
	}
}

// numberless is a forge that says no team's number.
type numberless struct{ forge.Forge }

func (numberless) TeamNumber(context.Context, forge.Team) (int64, error) { return 0, nil }

// TestRenamedTeams believes a name only of the team that had it at first. A later team of that name
// gets none of its rights, until the name is given back.
func TestRenamedTeams(t *testing.T) {
	w := newStory(t, gatedEnvs, []string{"dev", "qa"}, "web")
	ops, former := forge.Team{Organisation: "acme", Name: "ops"}, forge.Team{Organisation: "acme", Name: "former"}
	w.forge.SetTeam(ops, "linus")
	check := func(when, login string, fresh, want bool, words string) {
		t.Helper()
		is, err := w.o.Teams.IsInTeam(w.ctx(), w.repo, "acme/ops", login, fresh)
		if is != want || (err == nil) != (words == "") || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("%s, %s is in it: %v, %v; want %v, %q", when, login, is, err, want, words)
		}
	}
	check("at first", "linus", false, true, "")
	w.forge.RenameTeam(ops, former)
	check("right after it was renamed", "linus", false, true, "")
	check("before a merge", "linus", true, false, "it was there, with the number 1: if it was renamed, write the name that it has now")
	w.forge.SetTeam(ops, "mallory")
	check("where somebody else took the name", "mallory", true, false, "the number of acme/ops was 1, and is 2")
	check("right after that, for another decision", "mallory", false, false, "another team has this name by now")
	check("right after that, who was remembered", "linus", false, false, "another team has this name by now")
	w.wait(people.MembershipAge)
	check("after a while", "mallory", false, false, "another team has this name by now")
	check("after a while", "linus", false, false, "another team has this name by now")
	w.forge.RenameTeam(ops, forge.Team{Organisation: "acme", Name: "theirs"})
	w.forge.RenameTeam(former, ops)
	check("where it was given back", "linus", true, true, "")
	check("where it was given back", "mallory", true, false, "")

	web := forge.Team{Organisation: "acme", Name: "web"}
	w.forge.SetTeam(web, "linus")
	odd := &branch.Repository{ForgeRef: w.repo.ForgeRef, Forge: numberless{w.repo.Forge}}
	if is, err := w.o.Teams.IsInTeam(w.ctx(), odd, web.String(), "linus", true); is || err == nil {
		t.Errorf("of a team without a number: %v, %v", is, err)
	}
	if is, err := w.o.Teams.IsInTeam(w.ctx(), w.repo, web.String(), "linus", true); !is || err != nil {
		t.Errorf("once it has one: %v, %v", is, err)
	}
}
