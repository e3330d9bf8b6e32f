package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// planWorld is a case that is lived through, with a server in it.
type planWorld struct {
	*harness
	c      *planCase
	batch  bool              // as the pipeline file says by now
	shared map[string]string // the files of layout shared, as they were before they were broken
}

// startPlanCase makes a case's world and starts a server in it.
func startPlanCase(t *testing.T, c *planCase) *planWorld {
	o := harnessOptions{components: c.components, pipeline: c.pipelineText(c.batch), branches: c.branches(), clock: newSteppedClock(), files: map[string]string{}}
	for _, name := range c.components {
		for _, e := range c.environments {
			switch c.layout {
			case "second":
				o.files[secondOverlay(name, e.name)] = strings.NewReplacer("NAME", name, "TAG", "1.0.0").Replace(kustomizationTemplate)
			case "shared":
				o.folder = func(component, _ string) string { return "apps/" + component }
				o.files["apps/"+name+"/kustomization.yaml"] = "resources: [base/deployment.yaml]\n"
				o.files[sharedFile(name)] += e.name + ": {tag: \"1.0.0\"}\n"
			}
		}
	}
	w := &planWorld{harness: newHarness(t, o), c: c, batch: c.batch, shared: map[string]string{}}
	switch c.layout {
	case "second":
		w.addSecondOverlays()
	case "shared":
		w.listEnvironments()
	}
	w.start()
	w.awaitRest()
	return w
}

// secondOverlay is a file with an image's tag, beside that of the usual overlay.
func secondOverlay(component, env string) string {
	return "apps/" + component + "/second/" + env + "/kustomization.yaml"
}

// sharedFile is the file with the tags of all environments of a component.
func sharedFile(component string) string { return "apps/" + component + "/tags.yaml" }

func (pw *planWorld) addSecondOverlays() {
	pw.commitFiles("linus", "main", "Deploy the second overlays", map[string]string{"argocd/shop.yaml": pw.appSetYAML(
		"          - path: apps/*/overlays/*", "          - path: apps/*/overlays/*\n          - path: apps/*/second/*",
		"name: '{{ index .path.segments 1 }}-{{ .path.basename }}'", `name: '{{ index .path.segments 1 }}-{{ .path.basename }}{{ if eq (index .path.segments 2) "second" }}-second{{ end }}'`)})
	for _, name := range pw.c.components {
		for _, e := range pw.c.environments {
			pw.must("add an Application", pw.ArgoCD.AddApplication(argoemulator.AppSpec{Name: name + "-" + e.name + "-second", Repo: repoName, Path: filepath.Dir(secondOverlay(name, e.name)),
				DestinationNamespace: name + "-" + e.name, Cluster: "https://kubernetes.default.svc", ApplicationSet: "shop"}))
		}
	}
}

// listEnvironments has the ApplicationSet name all environments of all components.
func (pw *planWorld) listEnvironments() {
	elements := ""
	for _, name := range pw.c.components {
		for _, e := range pw.c.environments {
			elements += fmt.Sprintf("          - {component: %s, env: %s}\n", name, e.name)
		}
	}
	pw.commitFiles("linus", "main", "List the environments", map[string]string{"argocd/shop.yaml": pw.appSetYAML(
		"    - git:\n        repoURL: REPO\n        revision: main\n        directories:\n          - path: apps/*/overlays/*\n", "    - list:\n        elements:\n"+elements,
		"{{ index .path.segments 1 }}-{{ .path.basename }}", "{{ .component }}-{{ .env }}", "'{{ .path.path }}'", "'apps/{{ .component }}'")})
}

// perform does what an event says.
func (pw *planWorld) perform(e planEvent) {
	pw.t.Helper()
	switch e.kind {
	case planRelease, planEdit, planBreak, planMix, planDrop:
		for _, env := range e.environments {
			for _, name := range e.components {
				pw.writeTag(e, name, env)
			}
		}
	case planOther:
		pw.commitFiles("linus", "main", e.String(), map[string]string{"NOTES.md": e.String() + "\n"})
	case planFlip:
		pw.batch = !pw.batch
		text := pw.c.pipelineText(pw.batch)
		if b := pw.c.branches(); b != nil {
			text = withBranches(text, b)
		}
		pw.commitFiles("linus", "main", e.String(), map[string]string{".liftlock.yaml": text})
	case planHold:
		body := []api.PipelineCommand{{Component: e.components[0]}, {Environment: e.environments[0]}, {Scope: "pipeline"}}[e.pick]
		pw.mustCommand("hold", body)
	case planUnhold:
		pw.unholdAll()
	case planMerge:
		pw.mergePicked(pw.openPulls(""), e.pick)
	case planVeto:
		if open := pw.openPulls(""); len(open) > 0 {
			pw.must("close a pull request", pw.Forge.ClosePull(repoName, open[e.pick%len(open)].Number, "linus"))
		}
	case planLabel:
		if open := pw.openPulls(""); len(open) > 0 {
			pw.must("label a pull request", pw.Forge.AddLabel(repoName, open[e.pick%len(open)].Number, "linus", promotion.LabelHold))
		}
	case planRevert:
		pw.revert(e.components[0], e.environments[0])
	case planPromote:
		// It says no where there is nothing to promote.
		pw.postCommand(operatorToken, "/api/v1/pipelines/shop/promote", api.PipelineCommand{Component: e.components[0], Environment: e.environments[0]})
		pw.awaitRest()
		name := e.components[0]
		if pw.batch {
			name = promotion.BatchName
		}
		pw.mergePicked(pw.openPulls(promotion.Branch("shop", e.environments[0], name)), 0)
	}
}

func (pw *planWorld) mustCommand(verb string, body api.PipelineCommand) {
	pw.t.Helper()
	if status, answer := pw.postCommand(operatorToken, "/api/v1/pipelines/shop/"+verb, body); status != http.StatusOK {
		pw.t.Fatalf("%s %+v: HTTP %d %s", verb, body, status, answer)
	}
}

// unholdAll lifts every hold that was set.
func (pw *planWorld) unholdAll() {
	files, err := pw.Forge.Tree(repoName, "liftlock-state")
	pw.must("list the holds", err)
	for name := range maps.Keys(files) {
		part := strings.Split(strings.TrimSuffix(name, ".yaml"), "/")
		switch {
		case len(part) == 4 && part[2] == "component":
			pw.mustCommand("unhold", api.PipelineCommand{Component: part[3]})
		case len(part) == 4 && part[2] == "environment":
			pw.mustCommand("unhold", api.PipelineCommand{Environment: part[3]})
		case len(part) == 3:
			pw.mustCommand("unhold", api.PipelineCommand{Scope: "pipeline"})
		}
	}
}

// writeTag changes what a component has in an environment.
func (pw *planWorld) writeTag(e planEvent, name, env string) {
	pw.t.Helper()
	if pw.c.layout == "shared" {
		pw.writeSharedTag(e, name, env)
		return
	}
	text := strings.NewReplacer("NAME", name, "TAG", e.tag).Replace(kustomizationTemplate)
	if pw.c.layout == "branches" {
		text = "namePrefix: " + env + "-\n" + strings.ReplaceAll(text, "../../base", "deployment.yaml")
	}
	first, files := pw.overlayDir(name, env)+"/kustomization.yaml", map[string]string{}
	if pw.c.layout == "second" {
		files[secondOverlay(name, env)] = text
		if e.kind == planMix {
			files[secondOverlay(name, env)] = strings.ReplaceAll(text, e.tag, "3.0.0")
		}
	}
	switch e.kind {
	case planBreak:
		text = "images: [\n"
	case planDrop:
		moved := slices.ContainsFunc(pw.openPulls(""), func(p emulator.PullRequest) bool {
			ref, _ := promotion.ParseBranch(p.Branch)
			return ref.Component == name || ref.Component == promotion.BatchName
		})
		if _, there, err := pw.Forge.File(repoName, "main", first); err == nil && there && !moved {
			_, err := pw.Forge.LandAs(repoName, "linus", "main", e.String(), nil, first)
			pw.must("commit", err)
		}
		return
	}
	files[first] = text
	pw.commitFiles("linus", pw.branchOf(env), e.String(), files)
}

// writeSharedTag does so in the file of all environments.
func (pw *planWorld) writeSharedTag(e planEvent, name, env string) {
	pw.t.Helper()
	file := sharedFile(name)
	text, _, err := pw.Forge.File(repoName, "main", file)
	pw.must("read the tags", err)
	if before, broken := pw.shared[name]; broken {
		text = before
		delete(pw.shared, name)
	}
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, env+":") {
			lines[i] = env + ": {tag: \"" + e.tag + "\"}\n"
		}
	}
	if e.kind == planBreak {
		pw.shared[name], lines = text, []string{"dev: [\n"}
	}
	pw.commitFiles("linus", "main", e.String(), map[string]string{file: strings.Join(lines, "")})
}

// openPulls are the open pull requests whose branch starts so, oldest first.
func (pw *planWorld) openPulls(branch string) []emulator.PullRequest {
	pw.t.Helper()
	all, err := pw.Forge.Pulls(repoName)
	pw.must("list the pull requests", err)
	return slices.DeleteFunc(all, func(p emulator.PullRequest) bool { return !p.Open || !strings.HasPrefix(p.Branch, branch) })
}

// mergePicked has a person merge one of the pull requests, or the next that can be merged,
// in either of the two ways that keep our commit's message.
func (pw *planWorld) mergePicked(open []emulator.PullRequest, pick int) bool {
	for i := range open {
		p := open[(i+pick)%len(open)]
		if _, err := pw.Forge.MergePull(repoName, p.Number, "linus", []string{"merge", "rebase"}[pick%2]); err == nil {
			return true
		}
	}
	return false
}

// revert has what a promotion brought taken back, where one did.
func (pw *planWorld) revert(component, env string) {
	pw.t.Helper()
	environments, err := pw.readEnvironments(component)
	pw.must("read the environments", err)
	i := slices.IndexFunc(environments, func(e api.EnvironmentWhy) bool { return e.Environment.Environment == env })
	if landed := environments[i].LandedIn; landed != nil && environments[i].LandedBy == promotion.ByPromotion {
		pw.addComment(landed.Number, "linus", "/liftlock revert "+env)
		pw.awaitRest()
	}
	for _, p := range pw.openPulls(promotion.RevertPrefix) {
		if !pw.mergePicked([]emulator.PullRequest{p}, 0) {
			// A revert that is open is known to the server only; one that a person closed is nothing.
			pw.must("close a revert", pw.Forge.ClosePull(repoName, p.Number, "linus"))
		}
	}
}
