package cli

import (
	"encoding/base64"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

func TestSplitRemote(t *testing.T) {
	for remote, want := range map[string][2]string{
		"https://github.com/acme/fleet.git":         {"github.com", "acme/fleet"},
		"https://user@GitLab.com/acme/ops/fleet/":   {"gitlab.com", "acme/ops/fleet"},
		"ssh://git@git.example:2222/acme/fleet.git": {"git.example", "acme/fleet"},
		"git@github.com:acme/fleet.git":             {"github.com", "acme/fleet"},
		"github.com:acme/fleet":                     {"github.com", "acme/fleet"},
		"/srv/git/fleet.git":                        {"", "srv/git/fleet"},
		"../fleet":                                  {"", "../fleet"},
		"":                                          {"", ""},
	} {
		if host, path := splitRemote(remote); host != want[0] || host != "" && path != want[1] {
			t.Errorf("%q is %q and %q", remote, host, path)
		}
	}
}

// TestInitPullRequest opens one pull request from a checkout, and no other one while that is open or when it was closed.
func TestInitPullRequest(t *testing.T) {
	for _, face := range []emulator.Face{emulator.GitHub, emulator.GitLab} {
		t.Run(string(face), func(t *testing.T) { testInitPullRequest(t, face) })
	}
}

func testInitPullRequest(t *testing.T, face emulator.Face) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	f, err := emulator.NewForge(emulator.ForgeOptions{Dir: t.TempDir(), Face: face})
	must(err)
	t.Cleanup(func() { _ = f.Close() })
	must(f.AddUser("ada", "token-of-ada", emulator.UserOptions{}))
	files := map[string]string{"argocd/shop.yaml": strings.ReplaceAll(pullRequestSet, "REPO", f.CloneURL("acme/fleet"))}
	for _, env := range []string{"dev", "qa", "prod"} {
		files["apps/web/"+env+"/kustomization.yaml"] = "images:\n  - name: registry.example/web\n    newTag: 1.0.0\n"
	}
	must(f.CreateRepo("acme/fleet", emulator.RepoOptions{Author: "ada", Message: "Overlays", Files: files, Access: map[string]emulator.Permission{"ada": emulator.Admin}}))
	bare, err := f.GitDir("acme/fleet")
	must(err)
	dir := filepath.Join(t.TempDir(), "fleet")
	for _, args := range [][]string{{"clone", "--quiet", bare, dir}, {"-C", dir, "remote", "set-url", "origin", f.CloneURL("acme/fleet")}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	t.Setenv(forgeTokenVariable, "token-of-ada")
	flags := []string{"init", "--repo", dir, "--pull-request", "--forge-type", string(face), "--forge-url", f.APIURL()}
	out, err := run(t, flags...)
	must(err)
	all, err := f.Pulls("acme/fleet")
	must(err)
	if len(all) != 1 || !all[0].Open || all[0].Branch != promotion.OnboardingBranch || all[0].Author != "ada" || !strings.Contains(out, all[0].URL+" is open;") {
		t.Fatalf("there is %+v, and it says %q", all, out)
	}
	if file, ok, err := f.File("acme/fleet", promotion.OnboardingBranch, ".liftlock.yaml"); err != nil || !ok || !strings.Contains(file, "mode: observe") {
		t.Errorf("it has %q, %v", file, err)
	}
	if out, err := run(t, flags...); err != nil || !strings.Contains(out, "is open already") {
		t.Errorf("once more it says %q, %v", out, err)
	}
	must(f.ClosePull("acme/fleet", all[0].Number, "ada"))
	if out, err := run(t, flags...); err == nil || !strings.Contains(err.Error(), "which is a no") {
		t.Errorf("after a no it says %q, %v", out, err)
	}
	if all, err := f.Pulls("acme/fleet"); err != nil || len(all) != 1 {
		t.Errorf("there are %d, %v", len(all), err)
	}
}

const pullRequestSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shop, namespace: argocd}
spec:
  goTemplate: true
  generators: [{git: {repoURL: REPO, revision: main, directories: [{path: apps/*/*}]}}]
  template:
    metadata: {name: '{{ index .path.segments 1 }}-{{ .path.basename }}'}
    spec:
      project: default
      source: {repoURL: REPO, targetRevision: main, path: '{{ .path.path }}'}
      destination: {server: 'https://kubernetes.default.svc', namespace: shop}
`

func TestPullRequestFlags(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "--quiet", dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	for name, c := range map[string]struct{ flags, want string }{
		"without it":       {"--forge-type gitea", "it goes with --pull-request"},
		"with --write":     {"--pull-request --write", "leaves the checkout as it is"},
		"without a remote": {"--pull-request", "no repository of a forge"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := run(t, append([]string{"init", "--repo", dir}, strings.Fields(c.flags)...)...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestReleasePullRequest brings a release in by a pull request: one for a component, brought up to date by the next release, and
// none over what somebody else pushed.
func TestReleasePullRequest(t *testing.T) {
	for _, face := range []emulator.Face{emulator.GitHub, emulator.GitLab} {
		t.Run(string(face), func(t *testing.T) { testReleasePullRequest(t, face) })
	}
}

func testReleasePullRequest(t *testing.T, face emulator.Face) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	f, err := emulator.NewForge(emulator.ForgeOptions{Dir: t.TempDir(), Face: face})
	must(err)
	t.Cleanup(func() { _ = f.Close() })
	must(f.AddUser("builder", "token-of-builder", emulator.UserOptions{Email: "builder@example.com"}))
	must(f.AddUser("ada", "token-of-ada", emulator.UserOptions{}))
	must(f.CreateRepo("acme/fleet", emulator.RepoOptions{Author: "builder", Files: filesForBuilds(f.CloneURL("acme/fleet")),
		Access: map[string]emulator.Permission{"builder": emulator.Write, "ada": emulator.Write}}))
	bare, err := f.GitDir("acme/fleet")
	must(err)
	dir := filepath.Join(t.TempDir(), "fleet")
	for _, args := range [][]string{{"clone", "--quiet", bare, dir}, {"-C", dir, "remote", "set-url", "origin", f.CloneURL("acme/fleet")}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	for name, value := range map[string]string{
		forgeTokenVariable: "token-of-builder", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http." + f.CloneURL("acme/fleet") + ".extraHeader",
		"GIT_CONFIG_VALUE_0": "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("builder:token-of-builder")),
		"GIT_AUTHOR_NAME":    "builder", "GIT_AUTHOR_EMAIL": "builder@example.com", "GIT_COMMITTER_NAME": "builder",
		"GIT_COMMITTER_EMAIL": "builder@example.com",
	} {
		t.Setenv(name, value)
	}
	release := func(version string, more ...string) (string, error) {
		return run(t, append([]string{"release", "web", "--repo", dir, "--into", "dev", "--image", "registry.example/web:" + version,
			"--pull-request", "--forge-type", string(face), "--forge-url", f.APIURL()}, more...)...)
	}
	const head = "release/dev/web"
	onHead := func() string {
		file, _, err := f.File("acme/fleet", head, "apps/web/dev/kustomization.yaml")
		must(err)
		return file
	}
	pulls := func() []emulator.PullRequest {
		all, err := f.Pulls("acme/fleet")
		must(err)
		return all
	}
	main, err := f.Head("acme/fleet", "main")
	must(err)

	out, err := release("1.5.0", "--dry-run")
	must(err)
	if len(pulls()) > 0 || !strings.Contains(out, "nothing was pushed") {
		t.Errorf("a dry run opens %+v: %s", pulls(), out)
	}
	out, err = release("1.5.0")
	must(err)
	all := pulls()
	if len(all) != 1 || all[0].Branch != head || all[0].Base != "main" || all[0].Author != "builder" || all[0].Title != "Release web into dev: side 1.9.0, web 1.5.0" ||
		!strings.Contains(out, "comes into dev when this is merged: "+all[0].URL) || !strings.Contains(onHead(), "1.5.0") {
		t.Fatalf("there is %+v with %s, and it says %q", all, onHead(), out)
	}
	if now, err := f.Head("acme/fleet", "main"); err != nil || now != main {
		t.Errorf("main moved: %v", err)
	}
	first, err := f.Head("acme/fleet", head)
	must(err)
	_, err = release("1.5.0")
	must(err)
	if again, err := f.Head("acme/fleet", head); err != nil || again != first {
		t.Errorf("once more another commit is pushed: %v", err)
	}
	_, err = release("1.6.0")
	must(err)
	if all = pulls(); len(all) != 1 || all[0].Title != "Release web into dev: side 1.9.0, web 1.6.0" || !strings.Contains(onHead(), "1.6.0") {
		t.Errorf("the next release leaves %+v with %s", all, onHead())
	}

	_, err = f.CommitAs("acme/fleet", "ada", head, "Mine too", map[string]string{"docs/a.md": "a"})
	must(err)
	if _, err := release("1.7.0"); err == nil || !strings.Contains(err.Error(), "didn't make in one piece, the last by ada") {
		t.Errorf("it is released over another's commit: %v", err)
	}
	_, err = f.MergePull("acme/fleet", all[0].Number, "ada", "merge")
	must(err)
	out, err = release("1.6.0")
	must(err)
	if !strings.Contains(out, "nothing to do") {
		t.Errorf("merged, it says %q", out)
	}
	_, err = release("1.7.0")
	must(err)
	if all = pulls(); len(all) != 2 || !strings.Contains(onHead(), "1.7.0") || strings.Contains(onHead(), "1.6.0") {
		t.Errorf("after the merge there are %+v with %s", all, onHead())
	}
}
