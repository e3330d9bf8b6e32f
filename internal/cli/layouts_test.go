package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// layoutsFolder has a small repository for each common layout, with the pipeline file that
// init proposes for it.
const layoutsFolder = "../../testdata/layouts"

// layoutStories are what the layouts are tested by: a release in the first environment, and
// what is planned then.
var layoutStories = map[string]struct {
	set  []string // of liftlock set
	want []string // lines of liftlock plan --short
	// clusters is the file of clusters that init is given; --clusters-example prints it.
	clusters string
	write    map[string]string // files that the release's commit writes besides
}{
	"app-of-apps": {
		set:  []string{"apps/web/dev/kustomization.yaml", "--image", "registry.example/web=1.5.0"},
		want: []string{"web into prod: 1.4.2 → 1.5.0"},
	},
	"argocd-per-environment": {
		set:  []string{"environments/staging/web/kustomization.yaml", "--image", "registry.example/web=1.5.0"},
		want: []string{"web into prod: 1.4.2 → 1.5.0"},
	},
	"chart-of-file-sets": {
		set:  []string{"teams/payments/ledger/dev/release.yaml", "chart.version=5.1.0"},
		want: []string{"ledger into uat: 5.0.1 → 5.1.0"},
	},
	"chart-of-sets": {
		set:  []string{"apps/web/staging/kustomization.yaml", "--image", "registry.example/web=1.5.0"},
		want: []string{"web into prod: 1.4.2 → 1.5.0"},
	},
	"chart-revision": {
		set:  []string{"releases/staging/config.json", "chart=1.5.0"},
		want: []string{"web into prod: 1.4.2 → 1.5.0"},
	},
	"cluster-annotations": {
		set:      []string{"addons/keda.yaml", "spec.generators[0].merge.generators[clusters.selector.matchLabels.environment=staging].clusters.values.version=2.2.0"},
		want:     []string{"keda into prod: 2.1.0 → 2.2.0"},
		clusters: "clusters.yaml",
	},
	"cluster-labels": {
		set:      []string{"apps/web/qa/kustomization.yaml", "--image", "registry.example/web=1.5.0"},
		want:     []string{"web into prod: 1.4.2 → 1.5.0"},
		clusters: "clusters.yaml",
	},
	"environment-bases": {
		set:  []string{"apps/web/staging/base/kustomization.yaml", "--image", "registry.example/web=1.5.0"},
		want: []string{"web into prod: 1.4.2 → 1.5.0"},
	},
	"environment-branches": {
		set:  []string{"deploy/web/kustomization.yaml", "--image", "registry.example/web=1.5.0"},
		want: []string{"web into prod (branch env/prod): 1.4.2 → 1.5.0"},
	},
	"environment-manifests": {
		set:  []string{"argocd/staging/keda.yaml", "spec.source.targetRevision=2.15.0"},
		want: []string{"keda into prod: 2.14.0 → 2.15.0"},
	},
	"generator-config-json": {
		set:  []string{"services/mail/dev/config.json", "chartVersion=1.1.0"},
		want: []string{"mail into qa: 1.0.7 → 1.1.0"},
	},
	"helm-values-layers": {
		set:  []string{"releases/dev/web/values.yaml", "image.tag=1.5.0"},
		want: []string{"web into prod: 1.4.2 → 1.5.0"},
	},
	"helm-values-per-folder": {
		set:  []string{"apps/test/web/values.yaml", "image.tag=1.5.0"},
		want: []string{"web into uat: 1.4.2 → 1.5.0"},
	},
	"helm-values-side-by-side": {
		set:  []string{"charts/web/values-dev.yaml", "image.tag=1.5.0"},
		want: []string{"web into staging: 1.4.2 → 1.5.0"},
	},
	"images-of-environments": {
		set:  []string{"images/dev/kustomization.yaml", "--image", "registry.example/shop/web=1.5.0"},
		want: []string{"web into qa: 1.4.2 → 1.5.0"},
	},
	"kustomize-overlays": {
		set:  []string{"apps/web/overlays/dev/kustomization.yaml", "--image", "registry.example/web=1.5.0"},
		want: []string{"web into qa: 1.4.2 → 1.5.0"},
	},
	"list-generator": {
		set:  []string{"argocd/web.yaml", "spec.generators[0].list.elements[env=dev].tag=1.5.0"},
		want: []string{"web into test: 1.4.2 → 1.5.0"},
	},
	"manifests-by-name": {
		set:  []string{"argocd/staging/storage.yaml", "[metadata.name=redis-staging].spec.source.targetRevision=19.7.0"},
		want: []string{"redis into prod: 19.6.1 → 19.7.0"},
	},
	"matrix": {
		set:  []string{"components/web/dev/kustomization.yaml", "--image", "ghcr.io/acme/web=v1.5.0"},
		want: []string{"web into prod-eu: envoy v1.30.1, web v1.4.2 → envoy v1.30.1, web v1.5.0", "web into prod-us: envoy v1.30.1, web v1.4.2 → envoy v1.30.1, web v1.5.0"},
	},
	"overlays-of-sets": {
		set:  []string{"apps/mail/test/kustomization.yaml", "--image", "registry.example/mail=0.9.1"},
		want: []string{"mail into prod: 0.9.0 → 0.9.1"},
	},
	"plain-manifests": {
		set:  []string{"manifests/dev/web/deployment.yaml", "spec.template.spec.containers[name=web].image=registry.example/web:1.5.0"},
		want: []string{"web into preprod: registry.example/proxy:0.3, registry.example/web:1.4.2 → registry.example/proxy:0.3, registry.example/web:1.5.0"},
	},
	"remote-bases": {
		set:  []string{"apps/build/staging/kustomization.yaml", "resources[0]=https://git.example/acme/build//config/default?ref=v1.5.0", "--image", "registry.example/build=v1.5.0"},
		want: []string{"build into prod: v1.4.2 → v1.5.0"},
	},
	"team-components": {
		set:  []string{"apps/billing/api/staging/kustomization.yaml", "--image", "registry.example/billing/api=5.2.0"},
		want: []string{"billing-api into prod: 5.1.0 → 5.2.0"},
	},
	"values-by-component": {
		set:  []string{"values/dev/eu/web.yaml", "image.tag=1.5.0"},
		want: []string{"web into prod: 1.4.2 → 1.5.0"},
	},
	"versions-by-component": {
		set:  []string{"values/dev/versions.yaml", "web.image.tag=1.5.0"},
		want: []string{"web into qa: 1.4.2 → 1.5.0"},
	},
	"umbrella-charts": {
		set: []string{"environments/dev/checkout/Chart.yaml", "dependencies[name=cart].version=1.9.0"},
		write: map[string]string{"environments/dev/checkout/Chart.lock": "dependencies:\n- name: cart\n  repository: https://charts.example/stable\n  version: 1.9.0\n" +
			"- name: payments\n  repository: https://charts.example/stable\n  version: 4.2.1\n" +
			"digest: sha256:1e18e5d1f70f4072322d0ed0007323bb5925e4f29a557c08ef9ddd73a48353c7\ngenerated: \"2026-01-12T08:00:00.000000000Z\"\n"},
		want: []string{"checkout into stage: cart 1.8.0, payments 4.2.1, 1 file → cart 1.9.0, payments 4.2.1, 1 file"},
	},
}

// checkoutOfLayout makes a repository of a layout's files but for the pipeline file, with a first
// commit, and makes it the current folder.
func checkoutOfLayout(t *testing.T, name string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(layoutsFolder, name))); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, pipeline.FileName)); err != nil && !*update {
		t.Fatal(err)
	}
	t.Chdir(dir)
	runGit(t, "init", "--quiet", "--initial-branch=main")
	runGit(t, "remote", "add", "origin", "git@git.example:acme/deploy.git")
	commitAll(t, "First")
	runGit(t, "branch", "env/prod")
}

func commitAll(t *testing.T, message string) {
	t.Helper()
	runGit(t, "add", "--all")
	runGit(t, "commit", "--quiet", "--message="+message)
}

func runGit(t *testing.T, args ...string) {
	t.Helper()
	runGitAt(t, "2026-01-02T03:04:05Z", args...)
}

// runGitAt runs git, whose commits are of a time.
func runGitAt(t *testing.T, date string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		cmd.Env = append(cmd.Env, "GIT_"+who+"_NAME=ada", "GIT_"+who+"_EMAIL=ada@example.com", "GIT_"+who+"_DATE="+date)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// runLiftlock runs a command in the current folder.
func runLiftlock(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, wrong bytes.Buffer
	root := Root()
	root.SetArgs(args)
	root.SetIn(strings.NewReader(""))
	root.SetOut(&out)
	root.SetErr(&wrong)
	err := root.ExecuteContext(t.Context())
	var exit exitError
	switch {
	case errors.As(err, &exit):
		code = exit.code
	case err != nil:
		code = 1
		wrong.WriteString(err.Error() + "\n")
	}
	return out.String(), wrong.String(), code
}

// TestLayouts holds for each layout that init proposes the file that lies there and is documented.
// It is valid, resolves every component, and with one line less the next release moves on.
func TestLayouts(t *testing.T) {
	folders, err := os.ReadDir(layoutsFolder)
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) != len(layoutStories) {
		t.Errorf("there are %d layouts and %d stories", len(folders), len(layoutStories))
	}
	for _, f := range folders {
		golden, err := filepath.Abs(filepath.Join(layoutsFolder, f.Name(), pipeline.FileName))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(f.Name(), func(t *testing.T) {
			story := layoutStories[f.Name()]
			checkoutOfLayout(t, f.Name())
			flags := []string{"init"}
			if story.clusters != "" {
				checkExampleClusters(t, filepath.Join(filepath.Dir(golden), story.clusters), story.clusters)
				flags = append(flags, "--clusters", story.clusters)
			}
			proposed, stderr, code := runLiftlock(t, flags...)
			if code != 0 || stderr != "" {
				t.Fatalf("init exits with %d and says\n%s%s", code, proposed, stderr)
			}
			if *update {
				if err := os.WriteFile(golden, []byte(proposed), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), proposed); diff != "" {
				t.Fatalf("init (-want +got):\n%s", diff)
			}
			if strings.Contains(proposed, "Not promoted") || strings.Contains(proposed, "Not planned") || strings.Contains(proposed, "In no environment") {
				t.Errorf("not all is resolved:\n%s", proposed)
			}
			act := regexp.MustCompile("(?m)^  mode: observe.*\n").ReplaceAllString(proposed, "")
			if strings.Count(act, "\n") != strings.Count(proposed, "\n")-1 {
				t.Fatal("mode: observe isn't one line")
			}
			if err := os.WriteFile(pipeline.FileName, []byte(act), 0o600); err != nil {
				t.Fatal(err)
			}
			if stdout, stderr, code := runLiftlock(t, "validate"); code != 0 {
				t.Errorf("validate exits with %d and says\n%s%s", code, stdout, stderr)
			}
			commitAll(t, "Take Liftlock up")
			if _, stderr, code := runLiftlock(t, append([]string{"set"}, story.set...)...); code != 0 {
				t.Fatalf("set exits with %d and says\n%s", code, stderr)
			}
			for name, content := range story.write {
				if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			commitAll(t, "A release")
			stdout, stderr, code := runLiftlock(t, "plan", "--short")
			if strings.Contains(stdout, "reaches no target") {
				t.Errorf("whom a promotion reaches isn't told:\n%s", stdout)
			}
			var opened []string
			for line := range strings.Lines(stdout) {
				if strings.Contains(line, " into ") {
					opened = append(opened, strings.TrimSpace(line))
				}
			}
			if code != 0 || !slices.Equal(opened, story.want) {
				t.Errorf("plan exits with %d and says\n%s%s", code, stdout, stderr)
			}
		})
	}
}

// checkExampleClusters checks that the layout's file of clusters is the one that init prints as an
// example, and writes it into the current folder's.
func checkExampleClusters(t *testing.T, golden, file string) {
	t.Helper()
	example, stderr, code := runLiftlock(t, "init", "--clusters-example")
	if code != 0 || stderr != "" {
		t.Fatalf("init --clusters-example exits with %d and says\n%s%s", code, example, stderr)
	}
	if *update {
		if err := os.WriteFile(golden, []byte(example), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), example); diff != "" {
		t.Fatalf("init --clusters-example (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(file, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Running it again writes nothing, and says what is there.
func TestInitAgain(t *testing.T) {
	checkoutOfLayout(t, "kustomize-overlays")
	if stdout, _, code := runLiftlock(t, "init", "--write"); code != 0 || !strings.Contains(stdout, "is written") {
		t.Fatalf("init exits with %d and says %s", code, stdout)
	}
	before, err := os.ReadFile(pipeline.FileName)
	if err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := runLiftlock(t, "init", "--write"); code != 1 || !strings.Contains(stderr, ".liftlock.yaml is there already") {
		t.Errorf("again it exits with %d and says %s", code, stderr)
	}
	if after, err := os.ReadFile(pipeline.FileName); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file is another one: %v", err)
	}
}

// The page of recipes shows the pipeline files that init proposes, of every layout: the first
// one whole, of the others what differs; environments may be left out.
func TestRecipes(t *testing.T) {
	doc, err := os.ReadFile("../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, b := range regexp.MustCompile("(?s)\\(\\.\\./testdata/layouts/([a-z-]+)\\).*?```yaml\n(.*?)```").FindAllStringSubmatch(string(doc), -1) {
		want, err := os.ReadFile(filepath.Join(layoutsFolder, b[1], pipeline.FileName))
		if err != nil {
			t.Error(err)
			continue
		}
		text := string(want)
		if len(shown) > 0 {
			text = specWithoutComments(t, text)
			if spec, _, found := strings.Cut(text, "  environments:\n"); found && !strings.Contains(b[2], "environments:") {
				text = spec
			}
		}
		if diff := cmp.Diff(text, b[2]); diff != "" {
			t.Errorf("%s (-file +documented):\n%s", b[1], diff)
		}
		shown[b[1]] = true
	}
	for name := range layoutStories {
		if !shown[name] {
			t.Errorf("%s isn't documented", name)
		}
	}
}

// specWithoutComments is what a proposed pipeline file says after its mode.
func specWithoutComments(t *testing.T, file string) string {
	t.Helper()
	_, spec, found := strings.Cut(file, "\n  mode: observe")
	_, spec, _ = strings.Cut(spec, "\n")
	if !found {
		t.Fatalf("it doesn't observe: %s", file)
	}
	return "spec:\n" + regexp.MustCompile(`(?m)^ *#.*\n`).ReplaceAllString(spec, "")
}
