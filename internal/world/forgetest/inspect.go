package forgetest

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// inspectorOf is the driver as one that reads how all is set up; the memory twin isn't.
func inspectorOf(t *testing.T, d forge.Forge) forge.Inspector {
	t.Helper()
	in, ok := d.(forge.Inspector)
	if !ok {
		t.Skip("this driver inspects nothing")
	}
	return in
}

func testInspectCredentials(t *testing.T, s *fixture) {
	c, err := inspectorOf(t, s.Forge).InspectCredentials(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Missing) > 0 || !c.Expires.IsZero() {
		t.Errorf("good credentials without an end are %+v", c)
	}
	if off := time.Since(c.ServerTime); off > time.Minute || off < -time.Minute {
		t.Errorf("the forge's clock is at %v", c.ServerTime)
	}
	if l := c.Limit; l.Left > l.Calls || l.Calls > 0 && l.Every == 0 {
		t.Errorf("the limit is %+v", l)
	}
}

func testInspectRepository(t *testing.T, s *fixture) {
	own, number := forge.PermissionAdmin, int64(0)
	if s.App {
		own = forge.PermissionWrite
	}
	for _, of := range []struct {
		whose string
		forge forge.Forge
		may   forge.Permission
	}{{"the driver's account", s.Forge, own}, {"the second account", s.Reviewer, forge.PermissionWrite}} {
		got, err := inspectorOf(t, of.forge).InspectRepository(s.ctx, s.Repo)
		if err != nil {
			t.Fatal(of.whose, err)
		}
		isUsable := !got.Archived && !got.NoPulls && len(got.Missing) == 0 && slices.Contains(got.Methods, "merge")
		if !isUsable || got.Name != s.Repo.String() || got.DefaultBranch != "main" || got.Permission != of.may {
			t.Errorf("as %s: %+v", of.whose, got)
		}
	}
	numbers, ok := s.Forge.(forge.RepositoryNumberer)
	if !ok {
		t.Fatal("the driver tells no repository's number")
	}
	for range 2 {
		if n, err := numbers.RepositoryNumber(s.ctx, s.Repo); err != nil || n <= 0 || number != 0 && n != number {
			t.Errorf("its number is %d, after %d (%v)", n, number, err)
		} else {
			number = n
		}
	}
	_, err := numbers.RepositoryNumber(s.ctx, forge.Repo{Owner: s.Repo.Owner, Name: "not-there"})
	wantKind(t, "the number of a repository that isn't there", err, forge.ErrNotFound)
	_, err = inspectorOf(t, s.Forge).InspectRepository(s.ctx, forge.Repo{Owner: s.Repo.Owner, Name: "not-there"})
	wantKind(t, "a repository that isn't there", err, forge.ErrNotFound)
}

func testInspectHooks(t *testing.T, s *fixture) {
	if s.AddHook == nil {
		t.Skip("this world has no webhooks over HTTP")
	}
	if s.App {
		t.Skip("the one that it has is no repository's")
	}
	in := inspectorOf(t, s.Forge)
	inspect := func(h forge.Hook) []forge.HookSettings {
		t.Helper()
		found, err := in.InspectHooks(s.ctx, s.Repo, h)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	byHand := forge.Hook{URL: "http://127.0.0.1:9/webhooks/hub", Secret: "the secret"}
	if found := inspect(byHand); len(found) > 0 {
		t.Errorf("before there was a webhook: %+v", found)
	}
	s.AddHook(t, Hook{URL: byHand.URL, Events: []string{"push"}, Active: true})
	found := inspect(byHand)
	isThere := len(found) == 1 && found[0].URL == byHand.URL && found[0].Active
	if !isThere || len(found[0].MissingEvents) < 2 || found[0].OtherSecret {
		t.Errorf("made by hand, for pushes alone: %+v", found)
	}
	_, err := inspectorOf(t, s.Reviewer).InspectHooks(s.ctx, s.Repo, byHand)
	if err == nil {
		t.Error("who doesn't administer the repository sees its webhooks")
	}

	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(receiver.Close)
	ours := forge.Hook{URL: receiver.URL + "/webhooks/hub", Secret: "the secret"}
	if _, err := s.Forge.EnsureHook(s.ctx, s.Repo, ours); err != nil {
		t.Fatal(err)
	}
	found = inspect(ours)
	isActive := len(found) == 1 && found[0].Active && found[0].Paused == ""
	if !isActive || len(found[0].MissingEvents)+len(found[0].LateEvents) > 0 || found[0].WrongFormat != "" || found[0].OtherSecret {
		t.Errorf("made by the driver: %+v", found)
	}
	if s.NoDeliveries {
		return
	}
	s.pushCommit(t, branchA, "main", "a.txt", "a\n")
	s.eventually(t, "the answer to a delivery", func() bool {
		found := inspect(ours)
		return len(found) == 1 && found[0].IsFailing() && found[0].LastStatus == http.StatusUnauthorized
	})
}

func testInspectTeam(t *testing.T, s *fixture) {
	if s.Team == (forge.Team{}) {
		t.Skip("this world has no teams")
	}
	in := inspectorOf(t, s.Forge)
	reviewer, err := s.Reviewer.Me(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	logins, complete, err := in.InspectTeam(s.ctx, s.Team)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(logins, []string{reviewer.Login}) || !complete {
		t.Errorf("%s has %q, complete %v", s.Team, logins, complete)
	}
	_, _, err = in.InspectTeam(s.ctx, forge.Team{Organisation: s.Team.Organisation, Name: "no-such-team"})
	wantKind(t, "a team that isn't there", err, forge.ErrNotFound)
}

func testInspectGuard(t *testing.T, s *fixture) {
	in := inspectorOf(t, s.Forge)
	if s.GuardBranches == nil {
		t.Skip("this world guards no branches")
	}
	reviewer, err := s.Reviewer.Me(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	inspect := func(branch string, want forge.BranchGuard) {
		t.Helper()
		got, err := in.InspectGuard(s.ctx, s.Repo, branch)
		if err != nil || got != want {
			t.Errorf("%s is %+v, %v; want %+v", branch, got, err, want)
		}
	}
	inspect("ours/shop/qa/web", forge.BranchGuard{})
	s.GuardBranches(t, "ours/**/*", s.ownLogin(t))
	s.GuardBranches(t, "others/**/*", reviewer.Login)
	inspect("ours/shop/qa/web", forge.BranchGuard{Guarded: true})
	inspect("others/shop/qa/web", forge.BranchGuard{Guarded: true, Excluded: true})
	inspect("main", forge.BranchGuard{})
	// Without **/* a pattern is of one level alone.
	s.GuardBranches(t, "flat/**", reviewer.Login)
	inspect("flat/shop/qa/web", forge.BranchGuard{})
	if tip := s.pushCommit(t, "flat/shop/qa/web", "main", "a.txt", "a\n"); s.branchTip(t, "flat/shop/qa/web") != tip {
		t.Error("a pattern of one level closes a branch below it")
	}
	if tip := s.pushCommit(t, "ours/shop/qa/web", "main", "a.txt", "a\n"); s.branchTip(t, "ours/shop/qa/web") != tip {
		t.Error("who is named can't push")
	}
}
