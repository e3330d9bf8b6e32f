package gitea

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/forge"
)

// commitJSON is a commit as Gitea shows it.
func commitJSON(sha, login, message string) jsonObject {
	ident := jsonObject{"name": login, "email": login + "@example.com"}
	account := jsonObject{"id": 3, "login": login}
	return jsonObject{"sha": sha, "author": account, "committer": account, "commit": jsonObject{"author": ident, "committer": ident, "message": message}}
}

// TestCoAuthors are found by the addresses that accounts show.
func TestCoAuthors(t *testing.T) {
	for name, c := range map[string]struct {
		email string
		found response
		want  forge.User
		retry bool
	}{
		"an account's":            {email: "g@home.example", found: okResponse(jsonObject{"data": []jsonObject{{"id": 8, "login": "ghost", "email": "gg@home.example"}, {"id": 9, "login": "grace", "email": "G@home.example"}}}), want: forge.User{ID: 9, Login: "grace"}},
		"nobody's":                {email: "g@home.example", found: okResponse(jsonObject{"data": []jsonObject{}})},
		"of who made the commit":  {email: "ada@example.com", found: errorResponse(500, "not to be asked"), want: forge.User{ID: 3, Login: "ada"}},
		"none":                    {email: "nothing", found: errorResponse(500, "not to be asked")},
		"the token may not look":  {email: "g@home.example", found: errorResponse(403, "token does not have at least one of required scope(s): [read:user]")},
		"can't be told right now": {email: "g@home.example", found: errorResponse(502, "away"), retry: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, d, _ := newReplayServer(t)
			r.on("GET repos/acme/fleet/git/commits/"+head1, okResponse(commitJSON(head1, "ada", "x\n\nCo-authored-by: Other <"+c.email+">")))
			r.on("GET users/search", c.found)
			got, err := d.CommitAuthors(t.Context(), testRepoName, "", head1)
			if c.retry {
				if !forge.IsRetryable(err) {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			want := []forge.Contributor{{Name: "ada", Email: "ada@example.com", User: forge.User{ID: 3, Login: "ada"}}}
			if c.email != "ada@example.com" {
				want = append(want, forge.Contributor{Name: "Other", Email: c.email, User: c.want})
			}
			if err != nil || len(got) != 1 || !cmp.Equal(want, got[0].Contributors) {
				t.Errorf("%v %s", err, cmp.Diff(want, got[0].Contributors))
			}
		})
	}
}

// TestTooManyCommits reads no part of them for all.
func TestTooManyCommits(t *testing.T) {
	r, d, _ := newReplayServer(t)
	var commits []jsonObject
	for i := range forge.MaxCommits {
		commits = append(commits, commitJSON(fmt.Sprintf("%040x", i), "ada", "x"))
	}
	r.on("GET repos/acme/fleet/compare/"+base1+"..."+head1, okResponse(jsonObject{"commits": commits}))
	if _, err := d.CommitAuthors(t.Context(), testRepoName, base1, head1); !errors.Is(err, forge.ErrTooMany) {
		t.Errorf("a push of %d: %v", len(commits), err)
	}
	r.on("GET repos/acme/fleet/pulls/7/commits", okResponse(commits[:50]))
	if _, err := d.PullRequestAuthors(t.Context(), testRepoName, &forge.PullRequest{Number: 7}); !errors.Is(err, forge.ErrTooMany) {
		t.Errorf("a pull request without end: %v", err)
	}
	r.on("GET repos/acme/fleet/git/commits/"+head1, okResponse(jsonObject{"sha": head1}))
	if _, err := d.CommitAuthors(t.Context(), testRepoName, "", head1); !errors.Is(err, forge.ErrInvalid) {
		t.Errorf("a commit without anybody: %v", err)
	}
}

// TestFeed reads pushes out of all that happens in a repository, and no further than so many.
func TestFeed(t *testing.T) {
	r, d, _ := newReplayServer(t)
	push := func(ref, content string) jsonObject {
		return jsonObject{"op_type": "commit_repo", "ref_name": ref, "content": content, "act_user": jsonObject{"id": 3, "login": "ada"}}
	}
	feed := []jsonObject{
		{"op_type": "create_issue", "content": "1|x"},
		push("refs/heads/other", `{"HeadCommit":{"Sha1":"`+head1+`"},"CompareURL":"acme/fleet/compare/`+base1+`...`+head1+`"}`),
		push("refs/heads/main", `{"HeadCommit":{"Sha1":"`+head2+`"},"CompareURL":"acme/fleet/compare/`+head1+`...`+head2+`"}`),
		push("refs/heads/main", `{"HeadCommit":{"Sha1":"`+head1+`"},"CompareURL":"acme/fleet/compare/main...`+head1+`"}`),
		push("refs/heads/main", ""),
		push("refs/heads/main", `{"HeadCommit":{"Sha1":"zz"}}`),
	}
	a := okResponse(feed)
	a.header = map[string]string{"X-Total-Count": "6"}
	r.on("GET repos/acme/fleet/activities/feeds", a)
	var seen []forge.Push
	if err := d.Pushes(t.Context(), testRepoName, "main", func(p forge.Push) bool { seen = append(seen, p); return false }); err != nil {
		t.Fatal(err)
	}
	ada := forge.User{ID: 3, Login: "ada"}
	if diff := cmp.Diff([]forge.Push{{Before: head1, After: head2, By: ada}, {After: head1, By: ada}}, seen); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var page []jsonObject
	for range 50 {
		page = append(page, feed[0])
	}
	r.on("GET repos/acme/fleet/activities/feeds", okResponse(page))
	if err := d.Pushes(t.Context(), testRepoName, "main", func(forge.Push) bool { return false }); !errors.Is(err, forge.ErrTooMany) {
		t.Errorf("without end: %v", err)
	}
}

func FuzzParsePush(f *testing.F) {
	f.Add(`{"HeadCommit":{"Sha1":"` + head1 + `"},"CompareURL":"acme/fleet/compare/` + base1 + `...` + head1 + `"}`)
	f.Fuzz(func(t *testing.T, content string) {
		if p, ok := parsePush(content); ok && (!isCommit(p.After) || p.Before != "" && !isCommit(p.Before)) {
			t.Fatalf("%+v", p)
		}
	})
}
