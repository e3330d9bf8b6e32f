package cli

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// ciJob is what a build service's runner makes of a template of deploy/ci.
type ciJob struct {
	env    map[string]string
	script string
}

// readCI reads a file of deploy/ci.
func readCI(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../deploy/ci", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// githubExpression is an expression of a workflow that names one value.
var githubExpression = regexp.MustCompile(`\$\{\{ ([a-z_.-]+) \}\}`)

// githubJob is the composite action's only step, with its inputs filled in as a runner of GitHub does.
func githubJob(t *testing.T, inputs map[string]string) ciJob {
	var action struct {
		Inputs map[string]struct {
			Required bool
			Default  string
		}
		Runs struct {
			Using string
			Steps []struct {
				Shell, Run string
				Env        map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(readCI(t, "github/action.yml"), &action); err != nil {
		t.Fatal(err)
	}
	if action.Runs.Using != "composite" || len(action.Runs.Steps) != 1 || action.Runs.Steps[0].Shell != "bash" {
		t.Fatalf("it runs %+v", action.Runs)
	}
	known := map[string]string{"github.actor": "ada", "github.actor_id": "7"}
	fill := func(text string) string {
		return githubExpression.ReplaceAllStringFunc(text, func(m string) string {
			value, ok := known[githubExpression.FindStringSubmatch(m)[1]]
			if !ok {
				t.Errorf("%s is unknown", m)
			}
			return value
		})
	}
	for name, in := range action.Inputs {
		value, given := inputs[name]
		if !given && in.Required {
			t.Errorf("%s is required", name)
		}
		if !given {
			value = fill(in.Default)
		}
		known["inputs."+name] = value
	}
	step := action.Runs.Steps[0]
	if strings.Contains(step.Run, "${{") {
		t.Error("an input becomes part of a command")
	}
	job := ciJob{map[string]string{}, step.Run}
	for name, value := range step.Env {
		job.env[name] = fill(value)
	}
	return job
}

// gitlabJob is the component's job, with its inputs filled in as GitLab does, and its variables as GitLab's runner does.
func gitlabJob(t *testing.T, inputs map[string]string) ciJob {
	var header struct {
		Spec struct {
			Inputs map[string]struct{ Default *string }
		}
	}
	head, body, ok := strings.Cut(string(readCI(t, "gitlab/release.yml")), "\n---\n")
	if !ok {
		t.Fatal("it has no header")
	}
	if err := yaml.Unmarshal([]byte(head), &header); err != nil {
		t.Fatal(err)
	}
	for name, in := range header.Spec.Inputs {
		value, given := inputs[name]
		if !given && in.Default == nil {
			t.Errorf("%s is required", name)
		}
		if !given && in.Default != nil {
			value = *in.Default
		}
		body = strings.ReplaceAll(body, "$[[ inputs."+name+" ]]", value)
	}
	if strings.Contains(body, "$[[") {
		t.Errorf("an input is unknown:\n%s", body)
	}
	var jobs map[string]struct {
		Variables map[string]string
		Script    []string
	}
	if err := yaml.Unmarshal([]byte(body), &jobs); err != nil {
		t.Fatal(err)
	}
	job := ciJob{map[string]string{"LIFTLOCK_FLEET_TOKEN": inputs["token"]}, strings.Join(jobs["release"].Script, "\n")}
	predefined := map[string]string{"GITLAB_USER_NAME": "ada", "GITLAB_USER_EMAIL": "ada@example.com"}
	for name, value := range jobs["release"].Variables {
		job.env[name] = os.Expand(value, func(v string) string { return predefined[v] })
	}
	return job
}

// tektonJob is the task's only step, with its parameters filled in as Tekton does.
func tektonJob(t *testing.T, inputs map[string]string) ciJob {
	var task struct {
		Spec struct {
			Params []struct {
				Name    string
				Default *string
			}
			Steps []struct {
				Script string
				Env    []struct {
					Name, Value string
					ValueFrom   struct {
						SecretKeyRef struct{ Name, Key string } `yaml:"secretKeyRef"`
					} `yaml:"valueFrom"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(readCI(t, "tekton/release.yaml"), &task); err != nil {
		t.Fatal(err)
	}
	step := task.Spec.Steps[0]
	if strings.Contains(step.Script, "$(params.") {
		t.Error("a parameter becomes part of a command")
	}
	job := ciJob{map[string]string{}, step.Script}
	for _, e := range step.Env {
		value := e.Value
		if e.ValueFrom.SecretKeyRef.Key == "token" {
			value = inputs["token"]
		}
		for _, p := range task.Spec.Params {
			given, ok := inputs[p.Name]
			if !ok && p.Default != nil {
				given = *p.Default
			}
			value = strings.ReplaceAll(value, "$(params."+p.Name+")", given)
		}
		job.env[e.Name] = value
	}
	return job
}

// buildForge is a forge with a fleet that only its account builder may read.
func buildForge(t *testing.T) *emulator.Forge {
	t.Helper()
	forge, err := emulator.NewForge(emulator.ForgeOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { forge.Close() })
	if err := forge.AddUser("builder", "hunter2", emulator.UserOptions{Email: "builder@example.com"}); err != nil {
		t.Fatal(err)
	}
	err = forge.CreateRepo("acme/fleet", emulator.RepoOptions{Author: "builder",
		Access: map[string]emulator.Permission{"builder": emulator.Write}, Files: filesForBuilds(forge.CloneURL("acme/fleet"))})
	if err != nil {
		t.Fatal(err)
	}
	return forge
}

// runJob runs a job in an empty folder with nothing but the runner's environment, and gives what it printed.
func runJob(t *testing.T, job ciJob) (string, error) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, work := t.TempDir(), t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "liftlock")); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "bash", "-c", job.script)
	c.Dir = work
	c.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(),
		"GIT_CONFIG_NOSYSTEM=1"}
	for k, v := range job.env {
		c.Env = append(c.Env, k+"="+v)
	}
	out, err := c.CombinedOutput()
	if left, _ := os.ReadDir(work); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
	if strings.Contains(string(out), "hunter2") {
		t.Errorf("the token is in its log:\n%s", out)
	}
	return string(out), err
}

// TestReleaseInBuilds runs the templates of deploy/ci as their services' runners do, against a forge that wants a token.
func TestReleaseInBuilds(t *testing.T) {
	script := afterComments(string(readCI(t, "release.sh")))
	for name, jobOf := range map[string]func(*testing.T, map[string]string) ciJob{
		"github": githubJob, "gitlab": gitlabJob, "tekton": tektonJob} {
		t.Run(name, func(t *testing.T) {
			forge := buildForge(t)
			inputs := map[string]string{"component": "web", "into": "dev", "images": "registry.example/web:1.5.0 registry.example/side:2.0.0",
				"repository": forge.CloneURL("acme/fleet"), "token": "hunter2", "username": "builder", "committer-name": "builder",
				"committer-email": "builder@example.com", "image": "liftlock", "secret": "fleet"}
			job := jobOf(t, inputs)
			if !strings.Contains(job.script, script) {
				t.Errorf("it doesn't run release.sh:\n%s", job.script)
			}
			if out, err := runJob(t, job); err != nil || !strings.Contains(out, "is released into dev: commit ") {
				t.Fatalf("%v\n%s", err, out)
			}
			head, err := forge.Head("acme/fleet", "main")
			if err != nil {
				t.Fatal(err)
			}
			tree, err := forge.Tree("acme/fleet", head)
			if err != nil {
				t.Fatal(err)
			}
			text, err := forge.Blob("acme/fleet", tree["apps/web/dev/kustomization.yaml"])
			if err != nil || !strings.Contains(text, "newTag: 1.5.0") || !strings.Contains(text, "newTag: 2.0.0") {
				t.Errorf("%v\n%s", err, text)
			}
			if out, err := runJob(t, job); err != nil || !strings.Contains(out, "has that already: nothing to do") {
				t.Errorf("again: %v\n%s", err, out)
			}
			for key, value := range map[string]string{"component": "--repo=/", "images": "$(touch${IFS}x):1 `touch` *:3",
				"into": "; touch x #"} {
				hostile := maps.Clone(inputs)
				hostile[key] = value
				out, err := runJob(t, jobOf(t, hostile))
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.ExitCode() != 1 {
					t.Errorf("%s: %v\n%s", value, err, out)
				}
			}
			if now, err := forge.Head("acme/fleet", "main"); err != nil || now != head {
				t.Errorf("something else was pushed: %v, %v", now, err)
			}
		})
	}
}

// afterComments is a script without what it says about itself.
func afterComments(script string) string {
	for strings.HasPrefix(script, "#") {
		_, script, _ = strings.Cut(script, "\n")
	}
	return strings.TrimSpace(script)
}

// filesForBuilds are the files of a small fleet at an address.
func filesForBuilds(url string) map[string]string {
	const kustomization = "images:\n  - {name: registry.example/web, newTag: 1.4.1}\n  - {name: registry.example/side, newTag: 1.9.0}\n"
	return map[string]string{
		"apps/web/dev/kustomization.yaml": kustomization, "apps/web/qa/kustomization.yaml": kustomization,
		".liftlock.yaml": `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  applicationSets: [{path: argocd.yaml}]
  component: '{{ index .path.segments 1 }}'
  environment: '{{ .path.basename }}'
  carry: [{kustomizeImages: ["registry.example/*"]}]
  environments: [{name: dev}, {name: qa, after: [dev]}]
`,
		"argocd.yaml": `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shop, namespace: argocd}
spec:
  goTemplate: true
  generators: [{git: {repoURL: "` + url + `", revision: main, directories: [{path: 'apps/*/*'}]}}]
  template:
    metadata: {name: '{{ index .path.segments 1 }}-{{ .path.basename }}'}
    spec:
      project: default
      source: {repoURL: "` + url + `", targetRevision: main, path: '{{ .path.path }}'}
      destination: {server: https://kubernetes.default.svc, namespace: '{{ .path.basename }}'}
`,
	}
}
