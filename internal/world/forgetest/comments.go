package forgetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

func testComments(t *testing.T, s *fixture) {
	pr := s.openPull(t, branchA)
	if list, err := s.Forge.Comments(s.ctx, s.Repo, pr.Number, time.Time{}); err != nil || len(list) != 0 {
		t.Errorf("at first: %v, %v", list, err)
	}
	first, err := s.Forge.CreateComment(s.ctx, s.Repo, pr.Number, "first\nof **lines**")
	if err != nil {
		t.Fatal(err)
	}
	isOwn := first.Body == "first\nof **lines**" && first.User == s.ownLogin(t) && first.Bot == s.App
	isFilled := first.ID != 0 && !first.CreatedAt.IsZero() && strings.Contains(first.URL, "://")
	if !isOwn || !isFilled {
		t.Errorf("created %+v", first)
	}
	if _, err := s.Reviewer.CreateComment(s.ctx, s.Repo, pr.Number, "/liftlock status"); err != nil {
		t.Fatal(err)
	}
	list, err := s.Forge.Comments(s.ctx, s.Repo, pr.Number, time.Time{})
	if err != nil || len(list) != 2 || list[0].ID != first.ID {
		t.Fatalf("listed %+v, %v", list, err)
	}
	if list[1].Body != "/liftlock status" || list[1].User == s.ownLogin(t) {
		t.Fatalf("listed %+v", list)
	}
	// Forges count in whole seconds: the first is changed until that shows.
	i := 0
	s.eventually(t, "a later update", func() bool {
		i++
		if err := s.Forge.UpdateComment(s.ctx, s.Repo, pr.Number, first.ID, strings.Repeat("!", i)); err != nil {
			t.Fatal(err)
		}
		list, err = s.Forge.Comments(s.ctx, s.Repo, pr.Number, time.Time{})
		if err != nil || len(list) != 2 {
			t.Fatalf("listed %+v, %v", list, err)
		}
		return list[0].UpdatedAt.After(list[1].UpdatedAt)
	})
	if list[0].ID != first.ID || list[0].Body != strings.Repeat("!", i) || !list[0].CreatedAt.Equal(first.CreatedAt) {
		t.Errorf("updated %+v", list[0])
	}
	recent, err := s.Forge.Comments(s.ctx, s.Repo, pr.Number, list[0].UpdatedAt)
	if err != nil || len(recent) != 1 || recent[0].ID != first.ID {
		t.Errorf("since the update: %+v, %v", recent, err)
	}
	wantKind(t, "updating a comment that isn't there", s.Forge.UpdateComment(s.ctx, s.Repo, pr.Number, 99999999, "x"), forge.ErrNotFound)
}

func testReactions(t *testing.T, s *fixture) {
	pr := s.openPull(t, branchA)
	c, err := s.Reviewer.CreateComment(s.ctx, s.Repo, pr.Number, "/liftlock status")
	if err != nil {
		t.Fatal(err)
	}
	check := func(want bool) {
		t.Helper()
		if got, err := s.Forge.HasReacted(s.ctx, s.Repo, pr.Number, c.ID); err != nil || got != want {
			t.Errorf("Reacted: %v, %v; want %v", got, err, want)
		}
	}
	check(false)
	if err := s.Reviewer.React(s.ctx, s.Repo, pr.Number, c.ID, "+1"); err != nil {
		t.Fatal(err)
	}
	check(false) // another's doesn't count
	for _, r := range []string{"eyes", "eyes", "+1", "-1", "confused"} {
		if err := s.Forge.React(s.ctx, s.Repo, pr.Number, c.ID, r); err != nil {
			t.Errorf("%s: %v", r, err)
		}
		check(true)
	}
}

// testAuthorship has a comment edited in the moment in which it was written, by another account
// with write access, where the forge lets it. Either the forge tells of the edit, or the comment's
// author stays unknown until the author reacts.
func testAuthorship(t *testing.T, s *fixture) {
	pr := s.openPull(t, branchA)
	read := func(id int64) *forge.Comment {
		t.Helper()
		list, err := s.Forge.Comments(s.ctx, s.Repo, pr.Number, time.Time{})
		i := slices.IndexFunc(list, func(c forge.Comment) bool { return c.ID == id })
		if err != nil || i < 0 {
			t.Fatalf("listed %+v, %v", list, err)
		}
		return &list[i]
	}
	expect := func(what string, id int64, want forge.Authorship, wantEditor string) {
		t.Helper()
		got, editor, err := s.Forge.Authorship(s.ctx, s.Repo, pr.Number, read(id))
		if err != nil || got != want || editor != wantEditor {
			t.Errorf("%s: %d, %q, %v; want %d, %q", what, got, editor, err, want, wantEditor)
		}
	}
	own, edited := forge.AuthorsOwn, forge.EditedLater
	if s.HidesEditors {
		own, edited = forge.AuthorshipUnknown, forge.AuthorshipUnknown
	}
	author, editor, editorLogin := s.Reviewer, s.Forge, strings.TrimSuffix(s.ownLogin(t), "[bot]") // as GraphQL has it
	c, err := author.CreateComment(s.ctx, s.Repo, pr.Number, "looks good")
	if err != nil {
		t.Fatal(err)
	}
	expect("as it was written", c.ID, own, "")
	if err := s.Forge.React(s.ctx, s.Repo, pr.Number, c.ID, forge.Confirmation); err != nil {
		t.Fatal(err)
	}
	expect("with somebody else's reaction", c.ID, own, "")
	if err := editor.UpdateComment(s.ctx, s.Repo, pr.Number, c.ID, "/liftlock promote"); err != nil {
		t.Fatal(err)
	}
	if s.HidesEditors || s.OwnEdits {
		editorLogin = ""
	}
	expect("edited by somebody else", c.ID, edited, editorLogin)
	if !s.HidesEditors {
		return
	}
	if err := author.React(s.ctx, s.Repo, pr.Number, c.ID, "confused"); err != nil {
		t.Fatal(err)
	}
	expect("with another reaction of its author's", c.ID, forge.AuthorshipUnknown, "")
	if err := author.React(s.ctx, s.Repo, pr.Number, c.ID, forge.Confirmation); err != nil {
		t.Fatal(err)
	}
	expect("confirmed by its author", c.ID, forge.ConfirmedByAuthor, "")
}

func testReviews(t *testing.T, s *fixture) {
	pr := s.openPull(t, branchA)
	reviewer, err := s.Reviewer.Me(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	one := func(what string) forge.Review {
		t.Helper()
		list, err := s.Forge.Reviews(s.ctx, s.Repo, pr.Number)
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: reviews %+v, %v", what, list, err)
		}
		if v := list[0]; v.User != reviewer.Login || v.Bot || v.ID == 0 || v.At.IsZero() {
			t.Errorf("%s: %+v", what, v)
		}
		return list[0]
	}
	if list, err := s.Forge.Reviews(s.ctx, s.Repo, pr.Number); err != nil || len(list) != 0 {
		t.Fatalf("at first: %+v, %v", list, err)
	}
	s.Review(t, pr.Number, CommentOnly, pr.Head)
	if v := one("a remark"); v.Approved || v.Rejected {
		t.Errorf("a remark: %+v", v)
	}
	s.Review(t, pr.Number, Reject, pr.Head)
	if v := one("changes asked for"); v.Approved || !v.Rejected || v.Commit != pr.Head {
		t.Errorf("changes asked for: %+v", v)
	}
	s.Review(t, pr.Number, Approve, pr.Head)
	if v := one("approved"); !v.Approved || v.Rejected || v.Commit != pr.Head {
		t.Errorf("approved: %+v", v)
	}
	s.Review(t, pr.Number, CommentOnly, pr.Head)
	if v := one("a remark after the approval"); !v.Approved {
		t.Errorf("a remark after the approval: %+v", v)
	}
	// A push may dismiss the approval or not; it never moves it to another commit.
	moved := s.pushCommit(t, branchA, "", "more.txt", "more\n")
	s.awaitPull(t, pr.Number, "the new head", func(p *forge.PullRequest) bool { return p.Head == moved })
	if v := one("after a push"); v.Commit != pr.Head {
		t.Errorf("after a push: %+v, want commit %s", v, pr.Head)
	}
	s.Review(t, pr.Number, Approve, moved)
	if v := one("approved again"); !v.Approved || v.Commit != moved {
		t.Errorf("approved again: %+v", v)
	}
}

// testApprovalHead asks only for approvals, which every forge takes by its API.
func testApprovalHead(t *testing.T, s *fixture) {
	pr := s.openPull(t, branchA)
	reviewer, err := s.Reviewer.Me(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	approvedOn := func(what, head string, dismissible bool) {
		t.Helper()
		list, err := s.Forge.Reviews(s.ctx, s.Repo, pr.Number)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		count := 0
		for _, v := range list {
			if !v.Approved {
				continue
			}
			count++
			if v.User != reviewer.Login || v.Commit != head {
				t.Errorf("%s: %+v, want %s's approval of %s", what, v, reviewer.Login, head)
			}
		}
		if count > 1 || count == 0 && !dismissible {
			t.Errorf("%s: %d approvals stand: %+v", what, count, list)
		}
	}
	s.Review(t, pr.Number, Approve, pr.Head)
	approvedOn("approved", pr.Head, false)
	moved := s.pushCommit(t, branchA, "", "more.txt", "more\n")
	s.awaitPull(t, pr.Number, "the new head", func(p *forge.PullRequest) bool { return p.Head == moved })
	approvedOn("after a push, which may dismiss it", pr.Head, true)
	s.Review(t, pr.Number, Approve, moved)
	approvedOn("approved again", moved, false)
}

func testPermissions(t *testing.T, s *fixture) {
	reviewer, err := s.Reviewer.Me(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	own := forge.PermissionAdmin
	if s.App {
		own = forge.PermissionWrite
	}
	for _, c := range []struct {
		who, login string
		want       forge.Permission
	}{
		{"the account itself", s.ownLogin(t), own},
		{"a collaborator", reviewer.Login, forge.PermissionWrite},
		{"a stranger", s.Stranger, forge.PermissionNone},
		{"nobody", s.Nobody, forge.PermissionNone},
		{"no login", "", forge.PermissionNone},
		{"a path", "..", forge.PermissionNone},
	} {
		if got, err := s.Forge.Permission(s.ctx, s.Repo, c.login); err != nil || got != c.want {
			t.Errorf("%s: %v, %v; want %v", c.who, got, err, c.want)
		}
	}
}

func testTeams(t *testing.T, s *fixture) {
	missing := forge.Team{Organisation: "nobody-at-all", Name: "nobody"}
	if _, err := s.Forge.IsTeamMember(s.ctx, missing, s.ownLogin(t)); err == nil {
		t.Error("a team that isn't there has been read")
	} else {
		wantKind(t, "a team that isn't there", err, forge.ErrNotFound)
	}
	if s.Team == (forge.Team{}) {
		t.Skip("this world has no teams")
	}
	reviewer, err := s.Reviewer.Me(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		who, login string
		want       bool
	}{
		{"a member", reviewer.Login, true},
		{"a member in other letters", strings.ToUpper(reviewer.Login), true},
		{"the administrator", s.ownLogin(t), false},
		{"a stranger", s.Stranger, false},
		{"nobody", s.Nobody, false},
		{"no login", "", false},
		{"a path", "..", false},
	} {
		if got, err := s.Forge.IsTeamMember(s.ctx, s.Team, c.login); err != nil || got != c.want {
			t.Errorf("%s: %v, %v; want %v", c.who, got, err, c.want)
		}
	}
	wrong := s.Team
	wrong.Name += "-that-is-not-there"
	_, err = s.Forge.IsTeamMember(s.ctx, wrong, reviewer.Login)
	wantKind(t, "another team of the organisation", err, forge.ErrNotFound)
	for _, n := range []forge.Team{missing, wrong} {
		_, err := s.Forge.TeamNumber(s.ctx, n)
		wantKind(t, "the number of "+n.String(), err, forge.ErrNotFound)
	}
	if number := s.teamNumber(t, s.Team); number != s.teamNumber(t, s.Team) {
		t.Error("the team's number is another one when it is read again")
	}
	if s.MakeTeam == nil {
		return
	}
	// A team keeps its number under another name, and whose name it was gets another.
	interim := forge.Team{Organisation: s.Team.Organisation, Name: "interim"}
	renamed := forge.Team{Organisation: s.Team.Organisation, Name: "renamed"}
	s.MakeTeam(t, interim)
	number := s.teamNumber(t, interim)
	s.RenameTeam(t, interim, renamed.Name)
	_, err = s.Forge.TeamNumber(s.ctx, interim)
	wantKind(t, "a name that was given up", err, forge.ErrNotFound)
	s.MakeTeam(t, interim)
	if other := s.teamNumber(t, interim); s.teamNumber(t, renamed) != number || other == number || number == s.teamNumber(t, s.Team) {
		t.Errorf("%s had the number %d and has %d as %s, and another one under its name has %d", interim, number, s.teamNumber(t, renamed),
			renamed, other)
	}
}

func (f *fixture) teamNumber(t *testing.T, team forge.Team) int64 {
	t.Helper()
	number, err := f.Forge.TeamNumber(f.ctx, team)
	if err != nil || number == 0 {
		t.Fatalf("the number of %s is %d: %v", team, number, err)
	}
	return number
}

func testStatuses(t *testing.T, s *fixture) {
	head := s.pushCommit(t, branchA, "main", "a.txt", "a\n")
	if list, err := s.Forge.Statuses(s.ctx, s.Repo, head); err != nil || len(list) != 0 {
		t.Fatalf("at first: %+v, %v", list, err)
	}
	set := func(f forge.Forge, st forge.Status) {
		t.Helper()
		if err := f.SetStatus(s.ctx, s.Repo, head, st); err != nil {
			t.Fatal(err)
		}
	}
	set(s.Forge, forge.Status{Context: "liftlock", State: forge.StatusPending, Description: "waits"})
	set(s.Reviewer, forge.Status{Context: "ci/test", State: forge.StatusFailure, Description: "failed"})
	set(s.Reviewer, forge.Status{Context: "ci/test", State: forge.StatusError, Description: "broke"})
	set(s.Forge, forge.Status{Context: "liftlock", State: forge.StatusSuccess, Description: strings.Repeat("long ", 200),
		TargetURL: "https://liftlock.example.com/p/1"})
	list, err := s.Forge.Statuses(s.ctx, s.Repo, head)
	if err != nil || len(list) != 2 {
		t.Fatalf("got %+v, %v", list, err)
	}
	byContext := map[string]forge.Status{}
	for _, st := range list {
		byContext[st.Context] = st
	}
	own := byContext["liftlock"]
	isClipped := strings.HasPrefix(own.Description, "long long") && strings.HasSuffix(own.Description, "…")
	isOwn := own.TargetURL == "https://liftlock.example.com/p/1" && own.Creator == s.ownLogin(t)
	if own.State != forge.StatusSuccess || !isClipped || !isOwn {
		t.Errorf("ours: %+v", own)
	}
	failed, word := forge.StatusError, "error"
	if s.FailedWord != "" {
		failed, word = forge.StatusFailure, s.FailedWord
	}
	if st := byContext["ci/test"]; st.State != failed || st.Description != "broke" || st.Creator == s.ownLogin(t) {
		t.Errorf("the other: %+v", st)
	}
	s.checkChecks(t, head, word, set)
}

// checkChecks holds that of checks the newest of each name and app is told: what somebody
// else says by the same name replaces nothing.
func (f *fixture) checkChecks(t *testing.T, head, failed string, set func(forge.Forge, forge.Status)) {
	t.Helper()
	set(f.Forge, forge.Status{Context: "ci/test", State: forge.StatusPending})
	set(f.Forge, forge.Status{Context: "ci/test", State: forge.StatusSuccess})
	reviewer, err := f.Reviewer.Me(f.ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := []forge.Check{
		{Name: "ci/test", App: f.ownLogin(t), State: forge.CheckPassed, Word: "success"},
		{Name: "ci/test", App: reviewer.Login, State: forge.CheckFailed, Word: failed},
		{Name: "liftlock", App: f.ownLogin(t), State: forge.CheckPassed, Word: "success"},
	}
	if want[0].App > want[1].App {
		want[0], want[1] = want[1], want[0]
	}
	if got, err := f.Forge.Checks(f.ctx, f.Repo, head); err != nil || !slices.Equal(got, want) {
		t.Errorf("the checks are %+v, %v; want %+v", got, err, want)
	}
	other := f.pushCommit(t, "other-checks", "main", "b.txt", "b\n")
	if got, err := f.Forge.Checks(f.ctx, f.Repo, other); err != nil || len(got) != 0 {
		t.Errorf("the checks of another commit are %+v, %v", got, err)
	}
}
