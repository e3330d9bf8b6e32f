package emulator_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// getRaw reads a REST answer as it is, null and all.
func (f *forgeHarness) getRaw(path string, into any) (next string) {
	f.t.Helper()
	c := f.clientOf("grace")
	req, err := c.NewRequest("GET", path, nil)
	f.must(err)
	resp, err := c.Do(f.ctx, req, into)
	f.must(err)
	return resp.After
}

type object = map[string]any

// wantKeys checks that all keys are there that GitHub's API description requires.
func wantKeys(t *testing.T, what string, got object, keys string) {
	t.Helper()
	for _, k := range strings.Fields(keys) {
		if _, ok := got[k]; !ok {
			t.Errorf("%s lacks %s: it has %v", what, k, slices.Sorted(maps.Keys(got)))
		}
	}
}

// TestHistory_activity tells who moved a branch how ("List repository activities"),
// whatever the commits say.
func TestHistory_activity(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	first := branchHead(t, w, "main")
	pushed, err := w.CommitUnder(repo, "linus", "main", "grace@users.example", "Not by grace", map[string]string{"a": "1\n"})
	w.must(err)
	n := w.openPullRequest("topic")
	landed, err := w.MergePull(repo, n, "ada", "squash")
	w.must(err)
	w.must(w.SetBranch(repo, "grace", "main", pushed))
	w.must(w.SetBranch(repo, "grace", "topic", ""))
	const zero = "0000000000000000000000000000000000000000"
	var got [][4]string
	var list []object
	w.getRaw("repos/acme/fleet/activity?ref=refs/heads/main", &list)
	for _, a := range list {
		wantKeys(t, "an activity", a, "id node_id before after ref timestamp activity_type actor")
		got = append(got, [4]string{a["activity_type"].(string), a["before"].(string), a["after"].(string), a["actor"].(object)["login"].(string)})
	}
	if diff := cmp.Diff([][4]string{{"force_push", landed, pushed, "grace"}, {"pr_merge", pushed, landed, "ada"}, {"push", first, pushed, "linus"}, {"branch_creation", zero, first, "ada"}}, got); diff != "" {
		t.Errorf("main (-want +got):\n%s", diff)
	}
	list = nil
	w.getRaw("repos/acme/fleet/activity?ref=topic&activity_type=branch_deletion", &list)
	if len(list) != 1 || list[0]["after"] != zero {
		t.Errorf("the deletion of topic: %v", list)
	}
	next, all := "", 0
	for range 10 {
		list = nil
		next = w.getRaw("repos/acme/fleet/activity?per_page=2&after="+next, &list)
		if all += len(list); next == "" {
			break
		}
	}
	if all != 6 {
		t.Errorf("%d activities page by page", all)
	}
}

// TestHistory_authors shows an address without account as null, and GitHub itself as an
// account of its own.
func TestHistory_authors(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	before := branchHead(t, w, "main")
	noReply, err := w.NoReply("grace")
	w.must(err)
	for _, email := range []string{"grace@home.example", noReply} {
		_, err := w.CommitUnder(repo, "grace", "topic", email, "From "+email, map[string]string{"a": email + "\n"})
		w.must(err)
	}
	w.must(w.RenameUser("grace", "hopper"))
	n, err := w.OpenPull(repo, "linus", "topic", "main", "Topic", "")
	w.must(err)
	landed, err := w.MergePull(repo, n, "ada", "merge")
	w.must(err)
	var compared object
	c := w.clientOf("linus")
	req, err := c.NewRequest("GET", "repos/acme/fleet/compare/"+before+"..."+landed, nil)
	w.must(err)
	_, err = c.Do(w.ctx, req, &compared)
	w.must(err)
	wantKeys(t, "a comparison", compared, "url html_url permalink_url diff_url patch_url base_commit merge_base_commit status ahead_by behind_by total_commits commits")
	var authors, committers []any
	loginOf := func(v any) any {
		if v == nil {
			return nil
		}
		return v.(object)["login"]
	}
	for _, v := range compared["commits"].([]any) {
		wantKeys(t, "a commit", v.(object), "url sha node_id html_url commit author committer parents")
		authors, committers = append(authors, loginOf(v.(object)["author"])), append(committers, loginOf(v.(object)["committer"]))
	}
	if !cmp.Equal(authors, []any{nil, "hopper", "ada"}) || !cmp.Equal(committers, []any{nil, "hopper", "web-flow"}) {
		t.Errorf("the authors are %v, the committers %v", authors, committers)
	}
	var pulls []object
	req, err = c.NewRequest("GET", "repos/acme/fleet/commits/"+landed+"/pulls", nil)
	w.must(err)
	_, err = c.Do(w.ctx, req, &pulls)
	w.must(err)
	if _, has := pulls[0]["merged_by"]; len(pulls) != 1 || has {
		t.Errorf("a list of pull requests says who merged: %v", pulls)
	}
}
