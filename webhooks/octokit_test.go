package webhooks

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// octokitExamples is how many payloads the archive has.
const octokitExamples = 726

// octokitExample is one of the payloads that Octokit collects.
type octokitExample struct {
	Release, Event string
	Payload        json.RawMessage
}

// forEachOctokitExample reads testdata/webhooks/octokit, whose README says what it is.
func forEachOctokitExample(t *testing.T, f func(octokitExample)) {
	t.Helper()
	file, err := os.Open("../testdata/webhooks/octokit/examples.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 1<<20)
	count := 0
	for lines.Scan() {
		var x octokitExample
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		count++
		f(x)
	}
	if err := lines.Err(); err != nil || count != octokitExamples {
		t.Fatalf("%d examples, %v; want %d", count, err, octokitExamples)
	}
}

// TestOctokitExamples parses every payload. Whatever names a repository is about it, but for
// what is about an owner; and what GitHub sends of pull requests and commits says which.
func TestOctokitExamples(t *testing.T) {
	kinds := map[string]Kind{
		"push": Push, "pull_request": PullRequest, "pull_request_review": Review, "status": Status, "check_run": Status, "check_suite": Status, "ping": Ping,
		"installation": Installation, "installation_repositories": Installation, "branch_protection_rule": Rules, "merge_group": Push, "repository": Repository,
	}
	forEachOctokitExample(t, func(x octokitExample) {
		e, err := Parse(GitHub, "d", x.Event, x.Payload)
		if err != nil {
			t.Errorf("%s of %s: %v", x.Event, x.Release, err)
			return
		}
		var of struct {
			Repository *struct {
				ID       int64
				FullName string `json:"full_name"`
			}
			Sender *struct{ Login string }
		}
		if err := json.Unmarshal(x.Payload, &of); err != nil {
			t.Fatal(err)
		}
		if of.Repository != nil && e.Kind != Installation && (e.Repo != of.Repository.FullName || e.RepoID != of.Repository.ID) {
			t.Errorf("%s of %s is about %q (%d), want %q (%d)", x.Event, x.Release, e.Repo, e.RepoID, of.Repository.FullName, of.Repository.ID)
		}
		if of.Sender != nil && e.Sender != of.Sender.Login {
			t.Errorf("%s of %s is by %q, want %q", x.Event, x.Release, e.Sender, of.Sender.Login)
		}
		want, known := kinds[x.Event]
		switch {
		case known && e.Kind != want, !known && x.Event != "issue_comment" && e.Kind != Other:
			t.Errorf("%s of %s is a %s", x.Event, x.Release, e.Kind)
		case (e.Kind == PullRequest || e.Kind == Review) && (e.Number == 0 || e.HeadBranch == "" || e.Commit == ""):
			t.Errorf("%s of %s doesn't say which: %+v", x.Event, x.Release, e)
		case e.Kind == Status && e.Commit == "", e.Kind == Installation && (e.InstallationID == 0 || e.Owner == ""):
			t.Errorf("%s of %s doesn't say whose: %+v", x.Event, x.Release, e)
		}
	})
}

// TestOctokitOwners says what becomes of what Apps are sent besides: one example of each.
func TestOctokitOwners(t *testing.T) {
	const group, before, after = "gh-readonly-queue/main/pr-104-929f8209d40f77f4abc622a499c93a83babdbe64", "380387fbc80638b734a49e1be1c4dfec1c01b33c", "2ffea6db159f6b6c47a24e778fb9ef40cf6b1c7d"
	const hello = "Octocoders/Hello-World"
	want := map[string]Event{
		"installation.created":                  {Kind: Installation, Owner: "Codertocat", InstallationID: 5},
		"installation.deleted":                  {Kind: Installation, Owner: "octocat", InstallationID: 2},
		"installation.suspend":                  {Kind: Installation, Owner: "Codertocat", InstallationID: 16598467},
		"installation.unsuspend":                {Kind: Installation, Owner: "Codertocat", InstallationID: 16598467},
		"installation.new_permissions_accepted": {Kind: Installation, Owner: "Codertocat", InstallationID: 957387},
		"installation_repositories.added":       {Kind: Installation, Owner: "Codertocat", InstallationID: 5},
		"installation_repositories.removed":     {Kind: Installation, Owner: "octocat", InstallationID: 2},
		"merge_group.checks_requested":          {Kind: Push, Repo: "octo-org/octo-repo", Branch: group, Before: before, After: after},
		"repository.renamed":                    {Kind: Repository, Repo: hello},
		"repository.transferred":                {Kind: Repository, Repo: hello, Former: "octocat/Hello-World"},
		"repository.deleted":                    {Kind: Repository, Repo: hello},
		// Members of a team are read anew before a merge and for every command.
		"membership.added":         {Kind: Other},
		"membership.removed":       {Kind: Other},
		"team.deleted":             {Kind: Other},
		"team.added_to_repository": {Kind: Other, Repo: hello},
	}
	seen := map[string]bool{}
	forEachOctokitExample(t, func(x octokitExample) {
		e, err := Parse(GitHub, "", x.Event, x.Payload)
		if err != nil {
			t.Fatal(err)
		}
		name := x.Event + "." + e.Action
		w, ok := want[name]
		if !ok || seen[name] {
			return
		}
		seen[name] = true
		got := *e
		got.Forge, got.Name, got.Action, got.Sender, got.RepoID = "", "", "", "", 0 // the other test has the number
		if diff := cmp.Diff(w, got); diff != "" {
			t.Errorf("%s: want (-), got (+):\n%s", name, diff)
		}
	})
	for name := range want {
		if !seen[name] {
			t.Errorf("there is no example of %s", name)
		}
	}
}
