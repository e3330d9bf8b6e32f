//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"code.gitea.io/sdk/gitea"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liftlock/liftlock/internal/promotion"
)

// globPipeline carries the tag, which each environment has in a file of its own.
const globPipeline = listPipeline + `  carry:
    - yaml: {files: ['values-{{environment}}.yaml'], paths: [tag]}
  environments:
` + threeSteps

// globFiles are a chart, and a folder that all environments have values of. One file there is called as the
// glob is.
func globFiles() map[string]string {
	chart := strings.NewReplacer("image: registry.example/web", "image: registry.example/web:{{ .Values.tag }}",
		"metadata:\n  name:", "metadata:\n  annotations: {{ .Values.notes | toJson }}\n  name:").Replace(deploymentYAML("web", []string{"web"}))
	files := map[string]string{
		".liftlock.yaml":                     globPipeline,
		"apps/web/Chart.yaml":                "apiVersion: v2\nname: web\nversion: 0.1.0\n",
		"apps/web/templates/deployment.yaml": chart,
		"shared/*.yaml":                      "notes: {a: name, b: name}\n",
		"shared/all.yaml":                    "notes: {a: glob}\n",
	}
	for _, env := range environmentNames(threeSteps) {
		files["apps/web/values-"+env+".yaml"] = "# " + env + "'s own\ntag: " + firstTag + "\n"
	}
	return files
}

// An entry of valueFiles is a glob since Argo CD 3.4, and the name of a file before. The reach of a
// change of the shared folder is told before it is merged. By the Argo CD that runs it is the same
// afterwards.
func TestGlobsOfValuesFiles(t *testing.T) {
	t.Parallel()
	const files = "helm: {ignoreMissingValueFiles: true, valueFiles: ['../../shared/*.yaml', 'values-{{ .env }}.yaml']}"
	set := strings.NewReplacer("DEV", "main", "QA", "main", "path: apps/web}", "path: apps/web, "+files+"}").Replace(byList)
	f := repoFixture{plain: globFiles(), sets: map[string]string{"shop.yaml": set}}
	s := startScenario(t, normalCluster, "globs", f, nil)
	areGlobs := s.cluster.argocd.version >= "v3.4" // versions of one digit, as the lab's are
	notes := map[string]string{"a": "name", "b": "name"}
	if areGlobs {
		notes["a"] = "glob"
	}
	s.awaitNotes(notes)

	// One file that is there, and one that comes.
	p := s.proposeEdits("shared", map[string]edit{
		"shared/all.yaml":  func(string) string { return "notes: {a: changed}\n" },
		"shared/more.yaml": func(string) string { return "notes: {b: new}\n" },
	})
	if areGlobs {
		s.awaitImpact(p, "shared/all.yaml", "shared/more.yaml")
		notes = map[string]string{"a": "changed", "b": "new"}
	} else {
		s.awaitNoImpact(p)
	}
	s.mergeAs(ada, p.Index)
	if !areGlobs {
		// Files that this line reads are reached later, and the others are there by then.
		p = s.proposeEdits("name", map[string]edit{"shared/*.yaml": func(string) string { return "notes: {a: other, b: other}\n" }})
		s.awaitImpact(p, "shared/*.yaml")
		s.mergeAs(ada, p.Index)
		notes = map[string]string{"a": "other", "b": "other"}
	}

	s.pushFileTo("main", "Release web 1.1.0", "apps/web/values-dev.yaml", func(old string) string {
		return strings.Replace(old, firstTag, "1.1.0", 1)
	})
	qa := s.awaitMergedInto("main", "qa", 0)
	s.checkOneLineIn(*qa.MergedCommitID+"^1", *qa.MergedCommitID, "apps/web/values-qa.yaml")
	s.awaitWebState("qa", promotion.Verified)
	s.awaitRunning("web", "qa", "1.1.0")
	s.awaitNotes(notes)
}

// proposeEdits is a person's pull request with edits, from a branch.
func (s *scenario) proposeEdits(branch string, edits map[string]edit) *gitea.PullRequest {
	s.Helper()
	_, err := s.clone.push(s.ctx, s.cluster.accounts[dev], "main", branch, "Change "+branch, edits)
	s.must(err)
	return s.openPullAs(dev, branch)
}

// awaitImpact waits until the comment on a person's pull request says that dev and qa read the files.
func (s *scenario) awaitImpact(p *gitea.PullRequest, files ...string) {
	s.Helper()
	eventually(s, fmt.Sprintf("#%d says that dev and qa read %s", p.Index, strings.Join(files, " and ")), func() (bool, error) {
		forge := s.cluster.accounts[admins].api
		comments, _, err := forge.ListIssueComments(s.cluster.org, s.repo, p.Index, gitea.ListIssueCommentOptions{})
		if err != nil {
			return false, err
		}
		said := ""
		for _, c := range comments {
			if c.Poster.UserName == bot {
				said += c.Body
			}
		}
		for _, want := range append(slices.Clone(files), "`"+s.prefix+"-web-dev`", "`"+s.prefix+"-web-qa`") {
			if !strings.Contains(said, want) {
				return false, fmt.Errorf("nothing of %s is in %q", want, said)
			}
		}
		return true, nil
	})
}

// awaitNoImpact waits until the status of a person's pull request says that it reaches nobody.
func (s *scenario) awaitNoImpact(p *gitea.PullRequest) {
	s.Helper()
	eventually(s, fmt.Sprintf("#%d is said to touch no target", p.Index), func() (bool, error) {
		statuses, _, err := s.cluster.accounts[admins].api.ListStatuses(s.cluster.org, s.repo, p.Head.Sha, gitea.ListStatusesOption{})
		if err != nil {
			return false, err
		}
		err = errors.New("it has no status")
		for _, status := range statuses {
			if status.Creator == nil || status.Creator.UserName != bot {
				continue
			}
			if err = nil; !strings.Contains(status.Description, "touches no target") {
				err = fmt.Errorf("its status says %q", status.Description)
			}
		}
		return true, err
	})
}

// awaitNotes waits until web's Deployments in dev and qa have these values of the shared folder.
func (s *scenario) awaitNotes(want map[string]string) {
	s.Helper()
	for _, env := range []string{"dev", "qa"} {
		eventually(s, fmt.Sprintf("%s has %v of the shared folder", env, want), func() (bool, error) {
			u, err := s.cluster.kube.Resource(deployments).Namespace(s.prefix+"-"+env).Get(s.ctx, "web", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			got := u.GetAnnotations()
			maps.DeleteFunc(got, func(key, _ string) bool { return len(key) > 1 })
			if !maps.Equal(got, want) {
				err = fmt.Errorf("it has %v", got)
			}
			return true, err
		})
	}
}
