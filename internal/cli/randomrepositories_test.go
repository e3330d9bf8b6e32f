package cli

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/plan"
	"github.com/liftlock/liftlock/internal/pipeline"
)

var (
	repositoryCount = flag.Int("repositories", 20, "how many random repositories init is tried on")
	repositorySeed  = flag.Uint64("repositories.seed", 1, "the seed of the first random repository")
)

// TestRandomRepositories has init propose a file for fleets as people lay them out. The file is
// valid and carries versions alone. A version that moves on in one environment opens one promotion
// for it in each of the next. Its edits give, byte for byte, the repository of the fleet with that
// version.
func TestRandomRepositories(t *testing.T) {
	for seed := *repositorySeed; seed < *repositorySeed+uint64(*repositoryCount); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := drawRepository(seed)
			t.Chdir(t.TempDir())
			defer func() {
				if t.Failed() {
					t.Log(f.describe())
				}
			}()
			f.checkProposal(t, rand.New(rand.NewPCG(seed, 40)))
		})
	}
}

func (rr *randomRepository) checkProposal(t *testing.T, r *rand.Rand) {
	runGit(t, "init", "--quiet", "--initial-branch=main")
	runGit(t, "remote", "add", "origin", rr.repoURL)
	rr.commit(t, "First")
	if r.IntN(2) == 0 {
		rr.addHistory(t)
	}
	flags := []string{"init"}
	if rr.facts == factsClusters {
		flags = append(flags, "--clusters", "clusters.yaml")
	}
	proposed, stderr, code := runLiftlock(t, flags...)
	if code != 0 || stderr != "" {
		t.Fatalf("init exits with %d and says\n%s%s", code, proposed, stderr)
	}
	for _, left := range []string{"Not promoted", "Not planned", "In no environment", "TODO"} {
		if strings.Contains(proposed, left) {
			t.Errorf("not all is resolved:\n%s", proposed)
		}
	}
	act := strings.Replace(proposed, "  mode: observe #", "  # ", 1)
	if err := os.WriteFile(pipeline.FileName, []byte(act), 0o600); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, code := runLiftlock(t, "validate"); code != 0 {
		t.Fatalf("validate exits with %d and says\n%s%s%s", code, stdout, stderr, proposed)
	}
	rr.checkCarried(t, proposed)
	rr.checkLeftOut(t, proposed)
	rr.commitStaged(t, "Take Liftlock up")
	i := r.IntN(len(rr.components))
	rr.versions[rr.components[i]][rr.environments()[0]] = rr.version(i, 2)
	rr.commit(t, "A release")
	rr.checkPlan(t, i, proposed)
}

// addHistory moves the first component's next version through all environments.
func (rr *randomRepository) addHistory(t *testing.T) {
	c := rr.components[0]
	for _, e := range rr.environments() {
		rr.versions[c][e] = rr.version(0, 1)
		rr.commit(t, c+" in "+e)
	}
}

func (rr *randomRepository) commit(t *testing.T, message string) {
	t.Helper()
	for _, branch := range rr.branches() {
		if branch != trackedBranch {
			rr.switchTo(t, branch)
		}
		for name, text := range rr.files(t, branch) {
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		rr.commitStaged(t, message)
	}
	if len(rr.branches()) > 1 {
		rr.switchTo(t, trackedBranch)
	}
}

// commitStaged commits the current folder's differences from the branch, if there are any, a minute
// after the commit before. For branches that have nothing in common the times of commits tell which
// was first.
func (rr *randomRepository) commitStaged(t *testing.T, message string) {
	t.Helper()
	runGit(t, "add", "--all")
	if exec.Command("git", "diff", "--cached", "--quiet").Run() == nil {
		return
	}
	rr.commits++
	runGitAt(t, time.Date(2026, time.January, 2, 3, rr.commits, 0, 0, time.UTC).Format(time.RFC3339), "commit", "--quiet", "--message="+message)
}

// switchTo has the current folder show a branch; one that isn't there begins with nothing.
func (rr *randomRepository) switchTo(t *testing.T, branch string) {
	t.Helper()
	flags := []string{"switch", "--quiet"}
	if exec.Command("git", "rev-parse", "--verify", "--quiet", "refs/heads/"+branch).Run() != nil {
		flags = append(flags, "--orphan")
	}
	runGit(t, append(flags, branch)...)
}

// checkCarried holds that nothing is carried but versions: by the fleet's own list of where it has those.
func (rr *randomRepository) checkCarried(t *testing.T, proposed string) {
	pipes, err := pipeline.Parse(pipeline.FileName, []byte(proposed))
	if err != nil {
		t.Fatal(err)
	}
	isVersion := regexp.MustCompile(`^(image\.tag|chartVersion|dependencies\[[^]]*\]\.version|spec\.template\.spec\.containers\[(\*|name=[a-z-]+)\]\.image` +
		`|\{\{component\}\}\.image\.tag|(\[metadata\.name=\{\{component\}\}-\{\{environment\}\}\]\.)?spec\.(sources\[0\]|source)\.targetRevision` +
		`|spec\.template\.spec\.(sources\[0\]|source)\.targetRevision|spec\.generators\[0\]\.list\.elements\[env=\{\{environment\}\}\]\.version` +
		`|spec\.generators\[0\]\.merge\.generators\[clusters\.selector\.matchLabels\.environment=\{\{environment\}\}\]\.clusters\.values\.version)$`)
	for _, c := range pipes[0].Spec.Carry {
		var paths []string
		if c.YAML != nil {
			paths = append(paths, c.YAML.Paths...)
		}
		if c.JSON != nil {
			paths = append(paths, c.JSON.Paths...)
		}
		for _, p := range paths {
			isOnly := rr.layout == layoutVersions && len(rr.components) == 1 && p == rr.components[0]+".image.tag"
			if !isOnly && !isVersion.MatchString(p) {
				t.Errorf("%s is carried:\n%s", p, proposed)
			}
		}
		if c.Files != nil {
			t.Errorf("whole files are carried:\n%s", proposed)
		}
		for _, glob := range slices.Concat(c.KustomizeImages, c.KustomizeRefs) {
			if !strings.Contains(glob, ".example/") {
				t.Errorf("%s is carried:\n%s", glob, proposed)
			}
		}
	}
	if got := pipes[0].Spec.Environments; len(got) != len(rr.environments()) {
		t.Errorf("%d environments are proposed:\n%s", len(got), proposed)
	}
	for _, e := range pipes[0].Spec.Environments {
		if want := rr.branch(e.Name); rr.layout == layoutBranches && e.Branch != want {
			t.Errorf("%s is proposed on the branch %q and not on %q:\n%s", e.Name, e.Branch, want, proposed)
		}
	}
}

// checkLeftOut holds that what looks like a version that one environment alone has is told, and so not forgotten.
func (rr *randomRepository) checkLeftOut(t *testing.T, proposed string) {
	isInValues := rr.layout == layoutSideBySide || rr.layout == layoutByComponent || rr.usesFolders() && (rr.carrier == carrierValues || rr.carrier == carrierChart)
	isInKustomization := rr.usesFolders() && slices.Contains([]string{carrierTag, carrierDigest, carrierRef}, rr.carrier)
	if isNamed := strings.Contains(proposed, "debugger"); rr.hasBait && (isInValues || isInKustomization) && !isNamed {
		t.Errorf("what one environment alone has isn't told:\n%s", proposed)
	}
}

// checkPlan holds that a release opens a promotion into each environment of the second step, and
// nothing else. Each gives the repository of the fleet with that version.
func (rr *randomRepository) checkPlan(t *testing.T, component int, proposed string) {
	stdout, stderr, code := runLiftlock(t, "plan", "-o", "json")
	if code != 0 || stderr != "" {
		t.Fatalf("plan exits with %d and says\n%s%s", code, stdout, stderr)
	}
	var p plan.Plan
	if err := json.Unmarshal([]byte(stdout), &p); err != nil {
		t.Fatal(err)
	}
	c := rr.components[component]
	var want, got []string
	for _, e := range rr.steps[1] {
		want = append(want, c+" into "+e)
	}
	for _, pr := range p.Pipelines[0].Promotions {
		for _, part := range pr.Parts {
			got = append(got, part.Component+" into "+pr.Environment)
		}
	}
	if slices.Sort(got); !slices.Equal(want, got) {
		text, _, _ := runLiftlock(t, "plan", "--short")
		t.Fatalf("it opens %v and not %v:\n%s%s", got, want, proposed, text)
	}
	for _, pr := range p.Pipelines[0].Promotions {
		if len(pr.Ineffective) > 0 || len(pr.Unreached) > 0 || pr.ReachErr != "" || len(pr.Reached)+len(pr.Applications) == 0 {
			t.Errorf("it doesn't reach whom it is for: %+v", pr)
		}
		rr.checkEdit(t, &pr, c)
	}
}

// checkEdit applies a promotion's diffs, compares the repository with the fleet that has the version, and takes them back.
func (rr *randomRepository) checkEdit(t *testing.T, p *plan.Promotion, component string) {
	var patch strings.Builder
	for _, file := range p.Files {
		patch.WriteString(file.Diff)
	}
	branch := rr.branch(p.Environment)
	if rr.layout == layoutBranches {
		if p.Branch != branch {
			t.Errorf("the promotion into %s is for the branch %q", p.Environment, p.Branch)
		}
		rr.switchTo(t, branch)
		defer rr.switchTo(t, trackedBranch)
	}
	apply := exec.Command("git", "apply", "-")
	apply.Stdin = strings.NewReader(patch.String())
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s%s", err, out, patch.String())
	}
	before := rr.versions[component][p.Environment]
	rr.versions[component][p.Environment] = rr.versions[component][rr.environments()[0]]
	want := rr.files(t, branch)
	rr.versions[component][p.Environment] = before
	if diff := cmp.Diff(want, repositoryFiles(t, slices.Sorted(maps.Keys(want)))); diff != "" {
		t.Errorf("the promotion into %s makes another repository (-want +got):\n%s", p.Environment, diff)
	}
	runGit(t, "checkout", "--quiet", "--", ".")
}

// repositoryFiles are the current folder's files but Git's and the pipeline file: known names them all.
func repositoryFiles(t *testing.T, known []string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".git":
			return fs.SkipDir
		case entry.IsDir() || name == pipeline.FileName:
			return nil
		case !slices.Contains(known, name):
			t.Errorf("%s is new", name)
		}
		data, err := os.ReadFile(name)
		out[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
