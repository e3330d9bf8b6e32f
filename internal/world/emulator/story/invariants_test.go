package story_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/emulator/story"
)

// checkEnd holds what must be so at the end, whatever happened meanwhile: each
// promotion once, and nothing anywhere that shouldn't be.
func (sr *storyRun) checkEnd() {
	sr.t.Helper()
	all, err := sr.fixture.Pulls()
	if err != nil {
		sr.t.Fatal(err)
	}
	count := map[string]int{}
	for _, p := range all {
		tag := story.GoodTag
		if strings.Contains(p.Title, story.BadTag) { // the body of a newer one names what it skips
			tag = story.BadTag
		}
		ref, ok := promotion.ParseBranch(p.Branch)
		if !ok || p.Author != sr.fixture.Server.Login {
			sr.t.Errorf("a pull request that nobody should have opened: #%d %s by %s", p.Number, p.Branch, p.Author)
		}
		count[fmt.Sprintf("%s %s revert=%t", ref.Environment, tag, ref.Revert)]++
		if !p.Merged {
			sr.t.Errorf("#%d %s was not merged (open: %t)", p.Number, p.Title, p.Open)
		}
	}
	want := map[string]int{"qa " + story.GoodTag + " revert=false": 1, "prod " + story.GoodTag + " revert=false": 1, "qa " + story.BadTag + " revert=false": 1, "qa " + story.BadTag + " revert=true": 1}
	if fmt.Sprint(count) != fmt.Sprint(want) {
		sr.t.Errorf("pull requests\n got  %v\n want %v", count, want)
	}
	for _, env := range []string{"qa", "prod"} {
		text, _, err := sr.fixture.Forge.File(story.Repo, story.Branch, story.Kustomization(env))
		if err != nil || !strings.Contains(text, "newTag: "+story.GoodTag+" ") {
			sr.t.Errorf("%s carries\n%s (%v)", env, text, err)
		}
	}
	sr.eventually(sr.checkForgeTidy)
	sr.eventually(sr.checkDeployments)
	sr.eventually(sr.checkRecorded)
	sr.checkInvariants()
}

// checkForgeTidy holds what readers of the forge see: one comment kept up to date, the
// status that its gates passed, one hook, and no branch that nobody needs.
func (sr *storyRun) checkForgeTidy() error {
	all, err := sr.fixture.Pulls()
	if err != nil {
		return err
	}
	wanted := map[string]bool{story.Branch: true}
	var wrong []error
	for _, p := range all {
		wrong = append(wrong, sr.checkOneComment(&p), checkGatesPassed(&p), checkEvidence(&p))
		if p.Open {
			wanted[p.Branch] = true
		}
	}
	dir, err := sr.fixture.Forge.GitDir(story.Repo)
	if err != nil {
		return err
	}
	branches, err := listBranches(dir)
	if err != nil {
		return err
	}
	for b := range branches {
		if !wanted[b] {
			wrong = append(wrong, fmt.Errorf("the branches %s are there, wanted are only %s", joinNames(branches), joinNames(wanted)))
			break
		}
	}
	hooks, err := sr.fixture.Server.CountHooks(sr.fixture.Forge, story.Repo)
	if err != nil {
		return err
	}
	if hooks != 1 {
		wrong = append(wrong, fmt.Errorf("%d hooks", hooks))
	}
	return errors.Join(wrong...)
}

// checkDeployments holds that the forge shows each merge once, and of each environment what is
// there: the last one is a success, what was there before is over.
func (sr *storyRun) checkDeployments() error {
	all, err := sr.fixture.Forge.Deployments(story.Repo)
	if err != nil {
		return err
	}
	merged, shown := map[string]int{}, map[string][]string{}
	for _, d := range all {
		if merged[d.Environment+" "+d.Commit]++; len(d.States) == 0 || merged[d.Environment+" "+d.Commit] > 1 {
			return fmt.Errorf("deployments are %+v", all)
		}
		shown[d.Environment] = append(shown[d.Environment], d.States[len(d.States)-1])
	}
	want := map[string][]string{"qa": {"inactive", "failure", "success"}, "prod": {"success"}}
	if sr.fixture.Forge.Face() != emulator.GitHub {
		want = map[string][]string{} // only GitHub's driver keeps them
	}
	if fmt.Sprint(shown) != fmt.Sprint(want) {
		return fmt.Errorf("the deployments are %v, wanted %v", shown, want)
	}
	return nil
}

func (sr *storyRun) checkOneComment(p *emulator.PullRequest) error {
	status := 0
	for _, c := range p.Comments {
		if c.User != sr.fixture.Server.Login {
			continue
		}
		if !prtext.IsStatusComment(c.Body) {
			return fmt.Errorf("#%d has a comment that nobody asked for: %s", p.Number, c.Body)
		}
		status++
	}
	if status != 1 {
		return fmt.Errorf("#%d has %d status comments", p.Number, status)
	}
	return nil
}

func checkGatesPassed(p *emulator.PullRequest) error {
	for _, s := range p.Statuses {
		if s.Context == "liftlock" && s.State == "success" {
			return nil
		}
	}
	return fmt.Errorf("#%d was merged and its head's statuses are %+v", p.Number, p.Statuses)
}

// checkEvidence holds that a revert still tells why it was opened: a process that
// died after it had opened it must not write its text anew without.
func checkEvidence(p *emulator.PullRequest) error {
	if ref, _ := promotion.ParseBranch(p.Branch); ref.Revert && !(strings.Contains(p.Body, "web-qa") && strings.Contains(p.Body, "Degraded")) {
		return fmt.Errorf("the revert #%d lost its evidence: %s", p.Number, p.Body)
	}
	return nil
}

// listBranches are those of a bare repository.
func listBranches(dir string) (map[string]bool, error) {
	out, err := exec.Command("git", "-C", dir, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads").Output()
	if err != nil {
		return nil, fmt.Errorf("list the branches: %w", err)
	}
	all := map[string]bool{}
	for b := range strings.Lines(string(out)) {
		all[strings.TrimSpace(b)] = true
	}
	return all, nil
}

// checkRecorded holds that the console knows every promotion and how it ended.
func (sr *storyRun) checkRecorded() error {
	var got api.Promotions
	if err := sr.getJSON("/api/v1/promotions", &got); err != nil {
		return err
	}
	var lines []string
	for _, p := range got.Promotions {
		if p.Pull == nil {
			return fmt.Errorf("the promotion %d has no pull request", p.ID)
		}
		tag := story.GoodTag
		if strings.Contains(p.Name, story.BadTag) {
			tag = story.BadTag
		}
		state := p.State
		if sr.storeLost && state == "merged" {
			state = promotion.Verified // that it was is only seen of what is there now
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s", p.Environment, p.Kind, tag, state))
	}
	slices.Sort(lines)
	want := []string{
		"prod promotion " + story.GoodTag + " verified", "qa promotion " + story.GoodTag + " verified",
		"qa promotion " + story.BadTag + " reverted", "qa revert " + story.BadTag + " verified",
	}
	if !slices.Equal(lines, want) {
		return fmt.Errorf("the console's promotions\n got  %q\n want %q", lines, want)
	}
	return nil
}

func (sr *storyRun) getJSON(path string, into any) error {
	res, err := http.Get(sr.fixture.URL + path)
	if err != nil {
		return err
	}
	defer res.Body.Close() // it was read
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: HTTP %d", path, res.StatusCode)
	}
	return json.NewDecoder(res.Body).Decode(into)
}

// checkInvariants holds the invariants that no loss may break, over everything that
// ever was on the tracked branch and on the forge.
func (sr *storyRun) checkInvariants() {
	sr.t.Helper()
	all, err := sr.fixture.Pulls()
	if err != nil {
		sr.t.Fatal(err)
	}
	for i, p := range all {
		ref, _ := promotion.ParseBranch(p.Branch)
		if ref.Environment == "prod" && (strings.Contains(p.Title, story.BadTag) || strings.Contains(p.Body, "` | `"+story.BadTag+"` |")) {
			sr.t.Errorf("prod had a pull request for %s: #%d", story.BadTag, p.Number)
		}
		for _, q := range all[:i] {
			if p.Branch == q.Branch && (q.Open || q.ClosedAt.After(p.Created)) {
				sr.t.Errorf("#%d and #%d of %s were open at once", q.Number, p.Number, p.Branch)
			}
		}
	}
	ways, err := sr.releaseHistory()
	if err != nil {
		sr.t.Fatal(err)
	}
	if slices.Contains(ways["prod"], story.BadTag) {
		sr.t.Errorf("prod carried %s: %q", story.BadTag, ways["prod"])
	}
	if n := countEqual(ways["qa"], story.BadTag); n > 1 {
		sr.t.Errorf("%s came to qa %d times: %q", story.BadTag, n, ways["qa"])
	}
	for _, tag := range ways["prod"] {
		if !slices.Contains(ways["qa"], tag) {
			sr.t.Errorf("%s came to prod and never was in qa: %q, %q", tag, ways["prod"], ways["qa"])
		}
	}
}

func countEqual(all []string, one string) int {
	n := 0
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// releaseHistory lists the releases that each environment carried one after the other.
func (sr *storyRun) releaseHistory() (map[string][]string, error) {
	dir, err := sr.fixture.Forge.GitDir(story.Repo)
	if err != nil {
		return nil, err
	}
	out, err := exec.Command("git", "-C", dir, "rev-list", "--reverse", "--first-parent", story.Branch).Output()
	if err != nil {
		return nil, fmt.Errorf("list the commits: %w", err)
	}
	ways := map[string][]string{}
	for _, commit := range strings.Fields(string(out)) {
		for _, env := range []string{"dev", "qa", "prod"} {
			text, _, err := sr.fixture.Forge.File(story.Repo, commit, story.Kustomization(env))
			if err != nil {
				return nil, err
			}
			_, rest, _ := strings.Cut(text, "newTag: ")
			tag, _, _ := strings.Cut(rest, " ")
			if way := ways[env]; len(way) == 0 || way[len(way)-1] != tag {
				ways[env] = append(way, tag)
			}
		}
	}
	return ways, nil
}
