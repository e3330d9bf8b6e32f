package server_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// carryCase is a component that has its release in one kind of file. It has the first content for
// dev and qa, dev's content after a release, and qa's after a promotion. An empty text is no file.
type carryCase struct{ dev, qa, released, promoted map[string]string }

// carryRules is every kind of carry, as its lines of the pipeline file. Each
// component's folder has what only one of them finds.
const carryRules = `  - yaml: {files: [values.yaml], paths: [image.tag]}
  - json: {files: [config.json], paths: [releaseTag]}
  - yaml: {files: [Chart.yaml], paths: ["dependencies[*].version"]}
  - yaml: {files: [application.yaml], paths: [spec.source.targetRevision, "spec.source.helm.parameters[name=image.tag].value"]}
  - files: {include: ["config/**"], exclude: ["**/*.local"]}
    whenAbsent: add`

const applicationTemplate = `# TEAM looks after it
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web-ENV}
spec:
  source: {repoURL: 'https://charts.example', chart: web, targetRevision: "VERSION", helm: {parameters: [{name: image.tag, value: TAG}, {name: replicas, value: "REPLICAS"}]}}
`

// carryCases are the components of a scene, by name. Fields that aren't carried differ between dev
// and qa.
func carryCases() map[string]carryCase {
	app := func(env, version, tag, replicas string) string {
		return strings.NewReplacer("ENV", env, "TEAM", env+"'s team", "VERSION", version, "TAG", tag, "REPLICAS", replicas).Replace(applicationTemplate)
	}
	text := func(file, dev, qa, released, promoted string) carryCase {
		one := func(text string) map[string]string { return map[string]string{file: text} }
		return carryCase{one(dev), one(qa), one(released), one(promoted)}
	}
	image := func(prefix, tag string) string {
		return prefix + "images:\n  - name: registry.example/images\n    newTag: " + tag + "\n"
	}
	return map[string]carryCase{
		"images": text("kustomization.yaml", image("", "1.0.0"), image("namePrefix: qa- # qa's own\n", "1.0.0"), image("", "1.1.0"), image("namePrefix: qa- # qa's own\n", "1.1.0")),
		"values": text("values.yaml", "image: {tag: 1.0.0}\nreplicas: 1\n", "replicas: 3\r\nimage:\r\n    tag:   '1.0.0'   # pinned\r\n", "image: {tag: 1.1.0}\nreplicas: 1\n", "replicas: 3\r\nimage:\r\n    tag:   '1.1.0'   # pinned\r\n"),
		"json":   text("config.json", `{"releaseTag":"r1"}`, "{\n\t\"size\": \"big\",\n\t\"releaseTag\": \"r1\"\n}\n", `{"releaseTag":"r2"}`, "{\n\t\"size\": \"big\",\n\t\"releaseTag\": \"r2\"\n}\n"),
		"chart": text("Chart.yaml", "name: dev\ndependencies:\n- {name: redis, version: 17.0.0}\n", "name: qa\ndependencies:\n  - name: redis\n    version: 17.0.0\n",
			"name: dev\ndependencies:\n- {name: redis, version: 17.1.0}\n", "name: qa\ndependencies:\n  - name: redis\n    version: 17.1.0\n"),
		"application": text("application.yaml", app("dev", "2.0.0", "a", "1"), app("qa", "2.0.0", "a", "3"), app("dev", "2.1.0", "b", "1"), app("qa", "2.1.0", "b", "3")),
		"files": {
			dev:      map[string]string{"config/a.properties": "a=1\n", "config/gone.txt": "gone soon\n"},
			qa:       map[string]string{"config/a.properties": "a=1\n", "config/gone.txt": "gone soon\n", "config/qa.local": "qa's own\n"},
			released: map[string]string{"config/a.properties": "a=2\n", "config/deep/new.bin": "\x00\xff new\n", "config/gone.txt": ""},
			promoted: map[string]string{"config/a.properties": "a=2\n", "config/deep/new.bin": "\x00\xff new\n", "config/gone.txt": "", "config/qa.local": "qa's own\n"},
		},
	}
}

// TestPromoteAndRevertEveryCarry promotes a release of every kind of carry and reverts it, in both
// layouts and with every merge method. A person merges the promotion, and Liftlock the revert.
// Fields that aren't carried stay as they are, and in the end the tree is, byte for byte, the same
// as before.
func TestPromoteAndRevertEveryCarry(t *testing.T) {
	t.Parallel()
	for layout, branches := range map[string]map[string]string{"directories": nil, "branches": {"dev": "env/dev", "qa": "env/qa"}} {
		for _, method := range []string{"merge", "squash", "rebase"} {
			t.Run(layout+"/"+method, func(t *testing.T) {
				if method == "rebase" {
					skipOnGitLab(t, "by fast-forward a person merges one only of several that are open: the others are behind then")
				}
				kinds := carryCases()
				components := slices.Sorted(maps.Keys(kinds))
				p := harnessOptions{components: components, branches: branches, files: map[string]string{},
					pipeline: pipelineYAML(append(strings.Split(carryRules, "\n"), "merge: {method: "+method+"}", "limits: {revertsPer10Minutes: 20}"), dev, manualQA)}
				at := (&harness{opts: p}).overlayDir
				for _, c := range components {
					for env, files := range map[string]map[string]string{"dev": kinds[c].dev, "qa": kinds[c].qa} {
						prefix := "" // of the branch that a file is for
						if branches != nil {
							prefix = env + ":"
						}
						p.files[prefix+at(c, env)+"/kustomization.yaml"] = "resources: []\n"
						for name, text := range files {
							p.files[prefix+at(c, env)+"/"+name] = text
						}
					}
				}
				s := startHarness(t, p)
				s.awaitJudged()
				s.promoteAndRevert(kinds, method)
			})
		}
	}
}

func (ha *harness) promoteAndRevert(kinds map[string]carryCase, method string) {
	ha.t.Helper()
	write, remove := map[string]string{}, []string{}
	for c, k := range kinds {
		for name, text := range k.released {
			file := ha.overlayDir(c, "dev") + "/" + name
			if text == "" {
				remove = append(remove, file)
			} else {
				write[file] = text
			}
		}
	}
	_, err := ha.Forge.LandAs(repoName, "linus", ha.branchOf("dev"), "A release of everything", write, remove...)
	ha.must("release", err)
	promotions := map[string]emulator.PullRequest{}
	for _, c := range ha.opts.components {
		ha.waitFor(c+" opens in qa", func() (bool, string) {
			all := ha.listPulls(c, "qa")
			if len(all) == 1 {
				promotions[c] = all[0]
			}
			_, why := ha.readEnvironment(c, "qa")
			return len(all) == 1, why
		})
	}
	before, err := ha.Forge.Tree(repoName, ha.branchOf("qa"))
	ha.must("list the tree", err)
	for _, c := range ha.opts.components {
		_, err := ha.Forge.MergePull(repoName, promotions[c].Number, "linus", method)
		ha.must("merge the promotion of "+c, err)
	}
	ha.checkQA(kinds, before)
	for _, c := range ha.opts.components {
		n := promotions[c].Number
		ha.awaitReaction(n, ha.addComment(n, "linus", "/liftlock revert wrong"), "+1")
	}
	for _, c := range ha.opts.components {
		ha.waitFor("the revert of "+c+" is merged", func() (bool, string) {
			_, why := ha.readEnvironment(c, "qa")
			all := ha.listReverts(c, "qa")
			return len(all) == 1 && all[0].Merged, why
		})
	}
	after, err := ha.Forge.Tree(repoName, ha.branchOf("qa"))
	ha.must("list the tree", err)
	if d := cmp.Diff(before, after); d != "" {
		ha.t.Errorf("the way back (-want +got):\n%s", d)
	}
}

// checkQA holds that each component in qa is as a promotion has to make it, and that
// nothing else of the branch has changed.
func (ha *harness) checkQA(kinds map[string]carryCase, before map[string]string) {
	ha.t.Helper()
	now, err := ha.Forge.Tree(repoName, ha.branchOf("qa"))
	ha.must("list the tree", err)
	promoted := map[string]bool{}
	for c, k := range kinds {
		for name, want := range k.promoted {
			file := ha.overlayDir(c, "qa") + "/" + name
			promoted[file] = true
			text, there, err := ha.Forge.File(repoName, ha.branchOf("qa"), file)
			ha.must("read "+file, err)
			if text != want || there != (want != "") {
				ha.t.Errorf("%s is %q after the promotion, want %q", file, text, want)
			}
		}
	}
	folder := func(file string) bool {
		return file == "." || slices.ContainsFunc(slices.Collect(maps.Keys(promoted)), func(p string) bool { return strings.HasPrefix(p, file+"/") })
	}
	for file := range before {
		if now[file] != before[file] && !promoted[file] && !folder(file) {
			ha.t.Errorf("%s changed with the promotion", file)
		}
	}
}
