package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/world/walkthrough"
)

// repositoryHeading is where the page of the first promotion makes its repository.
const repositoryHeading = "\n### The repository\n"

var (
	shownCommand = regexp.MustCompile("(?m)(?:^ *|`|[$] |[|] |&& |-- )liftlock ([a-z][a-z-]*)([^`|>#&;\n]*)")
	shownFlag    = regexp.MustCompile(`(?:^| )--([a-z][a-z-]*)`)
)

// TestCommandsInPages holds that the program has the commands and flags that the documentation shows.
func TestCommandsInPages(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	root, checked := Root(), 0
	root.InitDefaultCompletionCmd()
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, shown := range shownCommand.FindAllStringSubmatch(string(text), -1) {
			checked++
			command, _, err := root.Find([]string{shown[1]})
			if err != nil || command == root {
				t.Errorf("%s shows liftlock %s, which is no command", page, shown[1])
				continue
			}
			command.InitDefaultHelpFlag()
			for _, flag := range shownFlag.FindAllStringSubmatch(shown[2], -1) {
				if command.Flags().Lookup(flag[1]) == nil && command.InheritedFlags().Lookup(flag[1]) == nil {
					t.Errorf("%s shows liftlock %s --%s, which it hasn't", page, shown[1], flag[1])
				}
			}
		}
	}
	if checked < 100 {
		t.Fatalf("only %d commands were looked at", checked)
	}
}

// TestReleaseScript runs the script of docs/releases.md: a build's release arrives on the branch, and the same again changes
// nothing.
func TestReleaseScript(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skipf("the script is run by bash: %v", err)
	}
	page, err := os.ReadFile("../../docs/releases.md")
	if err != nil {
		t.Fatal(err)
	}
	script := regexp.MustCompile("(?s)```sh\n(.*?)```").FindSubmatch(page)
	if script == nil {
		t.Fatal("docs/releases.md has no script")
	}
	home := t.TempDir()
	shell, err := walkthrough.NewShell(home)
	if err != nil {
		t.Fatal(err)
	}
	run := func(commands string) string {
		t.Helper()
		printed, err := shell.Run(t.Context(), commands)
		if err != nil {
			t.Fatalf("%v in\n%s\n%s", err, commands, printed)
		}
		return printed
	}
	remote := "file://" + filepath.ToSlash(home) + "/fleet.git"
	for name, text := range filesForBuilds(remote) {
		name = filepath.Join(home, "seed", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o750), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	run(`cd "$HOME"
git init --quiet --bare --initial-branch main fleet.git
export FLEET="` + remote + `" AUTHOR="Ada <ada@users.example>" TAG=1.5.0
export GIT_AUTHOR_NAME=build GIT_AUTHOR_EMAIL=build@users.example GIT_COMMITTER_NAME=build GIT_COMMITTER_EMAIL=build@users.example
git -C seed init --quiet --initial-branch main
git -C seed add .
git -C seed commit --quiet --message Begin
git -C seed push --quiet "$FLEET" main`)
	release := func() string { return run("rm -rf fleet\n(" + string(script[1]) + ")") }
	first, again := release(), release()
	if !strings.Contains(first, "newTag 1.4.1 → 1.5.0") || !strings.Contains(again, "nothing to do") {
		t.Errorf("the script prints %q, then %q", first, again)
	}
	if log := run("git -C fleet.git log --format=%s main"); log != "Release web into dev: side 1.9.0, web 1.5.0\nBegin\n" {
		t.Errorf("the branch has %q", log)
	}
	if body := run("git -C fleet.git log -1 --format=%b main"); !strings.Contains(body, "Co-authored-by: Ada <ada@users.example>") {
		t.Errorf("the release's commit says %q", body)
	}
}

// TestFirstPromotionWithoutCluster runs what docs/first-promotion.md does in the repository, and holds
// that it prints what the page shows. The stories in the real world run the whole page.
func TestFirstPromotionWithoutCluster(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skipf("a reader of the page has bash: %v", err)
	}
	page, err := os.ReadFile("../../docs/first-promotion.md")
	if err != nil {
		t.Fatal(err)
	}
	promotion, repository, found := strings.Cut(string(page), repositoryHeading)
	if !found {
		t.Fatalf("docs/first-promotion.md has no part %q", repositoryHeading)
	}
	home := t.TempDir()
	shell, err := walkthrough.NewShell(home, "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@users.example",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@users.example")
	if err != nil {
		t.Fatal(err)
	}
	if printed, err := shell.Run(t.Context(), `git init --quiet --bare --initial-branch main "$HOME/fleet.git"`); err != nil {
		t.Fatalf("%v: %s", err, printed)
	}
	withoutCluster := strings.NewReplacer("https://github.com/acme/fleet.git", "file://"+filepath.ToSlash(home)+"/fleet.git",
		"kubectl apply --filename argocd/shop.yaml", "echo applicationset.argoproj.io/shop created")
	ran := 0
	for _, part := range []string{repository, promotion} {
		blocks, err := walkthrough.Parse(withoutCluster.Replace(part))
		if err != nil {
			t.Fatalf("docs/first-promotion.md: %v", err)
		}
		for _, b := range blocks {
			if b.File != "" || b.Directive != "" || strings.Contains(b.Text, "kubectl ") {
				continue
			}
			ran++
			if printed, err := shell.Run(t.Context(), b.Text); err != nil || !walkthrough.PrintsPattern(b.Prints).MatchString(printed) {
				t.Fatalf("docs/first-promotion.md: these commands\n%s\nend with %v and print\n%s\nnot\n%s", b.Text, err, printed, b.Prints)
			}
		}
	}
	if ran != 3 {
		t.Errorf("%d blocks of commands ran, not those of the repository, the pipeline file and the release", ran)
	}
}
