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
	"github.com/liftlock/liftlock/internal/emulator"
	"github.com/liftlock/liftlock/internal/promotion"
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

func (w *planWorld) addSecondOverlays() {
	w.commitFiles("linus", "main", "Deploy the second overlays", map[string]string{"argocd/shop.yaml": w.appSetYAML(
		"          - path: apps/*/overlays/*", "          - path: apps/*/overlays/*\n          - path: apps/*/second/*",
		"name: '{{ index .path.segments 1 }}-{{ .path.basename }}'", `name: '{{ index .path.segments 1 }}-{{ .path.basename }}{{ if eq (index .path.segments 2) "second" }}-second{{ end }}'`)})
	for _, name := range w.c.components {
		for _, e := range w.c.environments {
			w.must("add an Application", w.ArgoCD.AddApplication(emulator.AppSpec{Name: name + "-" + e.name + "-second", Repo: repoName, Path: filepath.Dir(secondOverlay(name, e.name)),
				DestinationNamespace: name + "-" + e.name, Cluster: "https://kubernetes.default.svc", ApplicationSet: "shop"}))
		}
	}
}

// listEnvironments has the ApplicationSet name all environments of all components.
func (w *planWorld) listEnvironments() {
	elements := ""
	for _, name := range w.c.components {
		for _, e := range w.c.environments {
			elements += fmt.Sprintf("          - {component: %s, env: %s}\n", name, e.name)
		}
	}
	w.commitFiles("linus", "main", "List the environments", map[string]string{"argocd/shop.yaml": w.appSetYAML(
		"    - git:\n        repoURL: REPO\n        revision: main\n        directories:\n          - path: apps/*/overlays/*\n", "    - list:\n        elements:\n"+elements,
		"{{ index .path.segments 1 }}-{{ .path.basename }}", "{{ .component }}-{{ .env }}", "'{{ .path.path }}'", "'apps/{{ .component }}'")})
}

// perform does what an event says.
func (w *planWorld) perform(e planEvent) {
	w.t.Helper()
	switch e.kind {
	case planRelease, planEdit, planBreak, planMix, planDrop:
		for _, env := range e.environments {
			for _, name := range e.components {
				w.writeTag(e, name, env)
			}
		}
	case planOther:
		w.commitFiles("linus", "main", e.String(), map[string]string{"NOTES.md": e.String() + "\n"})
	case planFlip:
		w.batch = !w.batch
		text := w.c.pipelineText(w.batch)
		if b := w.c.branches(); b != nil {
			text = withBranches(text, b)
		}
		w.commitFiles("linus", "main", e.String(), map[string]string{".liftlock.yaml": text})
	case planHold:
		body := []api.PipelineCommand{{Component: e.components[0]}, {Environment: e.environments[0]}, {Scope: "pipeline"}}[e.pick]
		w.mustCommand("hold", body)
	case planUnhold:
		w.unholdAll()
	case planMerge:
		w.mergePicked(w.openPulls(""), e.pick)
	case planVeto:
		if open := w.openPulls(""); len(open) > 0 {
			w.must("close a pull request", w.Forge.ClosePull(repoName, open[e.pick%len(open)].Number, "linus"))
		}
	case planLabel:
		if open := w.openPulls(""); len(open) > 0 {
			w.must("label a pull request", w.Forge.AddLabel(repoName, open[e.pick%len(open)].Number, "linus", promotion.LabelHold))
		}
	case planRevert:
		w.revert(e.components[0], e.environments[0])
	case planPromote:
		// It says no where there is nothing to promote.
		w.postCommand(operatorToken, "/api/v1/pipelines/shop/promote", api.PipelineCommand{Component: e.components[0], Environment: e.environments[0]})
		w.awaitRest()
		name := e.components[0]
		if w.batch {
			name = promotion.BatchName
		}
		w.mergePicked(w.openPulls(promotion.Branch("shop", e.environments[0], name)), 0)
	}
}

func (w *planWorld) mustCommand(verb string, body api.PipelineCommand) {
	w.t.Helper()
	if status, answer := w.postCommand(operatorToken, "/api/v1/pipelines/shop/"+verb, body); status != http.StatusOK {
		w.t.Fatalf("%s %+v: HTTP %d %s", verb, body, status, answer)
	}
}

// unholdAll lifts every hold that was set.
func (w *planWorld) unholdAll() {
	files, err := w.Forge.Tree(repoName, "liftlock-state")
	w.must("list the holds", err)
	for name := range maps.Keys(files) {
		part := strings.Split(strings.TrimSuffix(name, ".yaml"), "/")
		switch {
		case len(part) == 4 && part[2] == "component":
			w.mustCommand("unhold", api.PipelineCommand{Component: part[3]})
		case len(part) == 4 && part[2] == "environment":
			w.mustCommand("unhold", api.PipelineCommand{Environment: part[3]})
		case len(part) == 3:
			w.mustCommand("unhold", api.PipelineCommand{Scope: "pipeline"})
		}
	}
}

// writeTag changes what a component has in an environment.
func (w *planWorld) writeTag(e planEvent, name, env string) {
	w.t.Helper()
	if w.c.layout == "shared" {
		w.writeSharedTag(e, name, env)
		return
	}
	text := strings.NewReplacer("NAME", name, "TAG", e.tag).Replace(kustomizationTemplate)
	if w.c.layout == "branches" {
		text = "namePrefix: " + env + "-\n" + strings.ReplaceAll(text, "../../base", "deployment.yaml")
	}
	first, files := w.overlayDir(name, env)+"/kustomization.yaml", map[string]string{}
	if w.c.layout == "second" {
		files[secondOverlay(name, env)] = text
		if e.kind == planMix {
			files[secondOverlay(name, env)] = strings.ReplaceAll(text, e.tag, "3.0.0")
		}
	}
	switch e.kind {
	case planBreak:
		text = "images: [\n"
	case planDrop:
		moved := slices.ContainsFunc(w.openPulls(""), func(p emulator.PullRequest) bool {
			ref, _ := promotion.ParseBranch(p.Branch)
			return ref.Component == name || ref.Component == promotion.BatchName
		})
		if _, there, err := w.Forge.File(repoName, "main", first); err == nil && there && !moved {
			_, err := w.Forge.LandAs(repoName, "linus", "main", e.String(), nil, first)
			w.must("commit", err)
		}
		return
	}
	files[first] = text
	w.commitFiles("linus", w.branchOf(env), e.String(), files)
}

// writeSharedTag does so in the file of all environments.
func (w *planWorld) writeSharedTag(e planEvent, name, env string) {
	w.t.Helper()
	file := sharedFile(name)
	text, _, err := w.Forge.File(repoName, "main", file)
	w.must("read the tags", err)
	if before, broken := w.shared[name]; broken {
		text = before
		delete(w.shared, name)
	}
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, env+":") {
			lines[i] = env + ": {tag: \"" + e.tag + "\"}\n"
		}
	}
	if e.kind == planBreak {
		w.shared[name], lines = text, []string{"dev: [\n"}
	}
	w.commitFiles("linus", "main", e.String(), map[string]string{file: strings.Join(lines, "")})
}

// openPulls are the open pull requests whose branch starts so, oldest first.
func (w *planWorld) openPulls(branch string) []emulator.PullRequest {
	w.t.Helper()
	all, err := w.Forge.Pulls(repoName)
	w.must("list the pull requests", err)
	return slices.DeleteFunc(all, func(p emulator.PullRequest) bool { return !p.Open || !strings.HasPrefix(p.Branch, branch) })
}

// mergePicked has a person merge one of the pull requests, or the next that can be merged,
// in either of the two ways that keep our commit's message.
func (w *planWorld) mergePicked(open []emulator.PullRequest, pick int) bool {
	for i := range open {
		p := open[(i+pick)%len(open)]
		if _, err := w.Forge.MergePull(repoName, p.Number, "linus", []string{"merge", "rebase"}[pick%2]); err == nil {
			return true
		}
	}
	return false
}

// revert has what a promotion brought taken back, where one did.
func (w *planWorld) revert(component, env string) {
	w.t.Helper()
	environments, err := w.readEnvironments(component)
	w.must("read the environments", err)
	i := slices.IndexFunc(environments, func(e api.EnvironmentWhy) bool { return e.Environment.Environment == env })
	if landed := environments[i].LandedIn; landed != nil && environments[i].LandedBy == promotion.ByPromotion {
		w.addComment(landed.Number, "linus", "/liftlock revert "+env)
		w.awaitRest()
	}
	for _, p := range w.openPulls(promotion.RevertPrefix) {
		if !w.mergePicked([]emulator.PullRequest{p}, 0) {
			// A revert that is open is known to the server only; one that a person closed is nothing.
			w.must("close a revert", w.Forge.ClosePull(repoName, p.Number, "linus"))
		}
	}
}
