//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// byDecision is a set that can't be resolved: the resource that it generates from isn't there.
const byDecision = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: PREFIX-decided, namespace: argocd}
spec:
  goTemplate: true
  generators:
    - clusterDecisionResource: {configMapRef: PREFIX-none, name: none}
  template:
    metadata: {name: 'PREFIX-decided-{{ .name }}'}
    spec:
      project: default
      source: {repoURL: REPO, targetRevision: main, path: apps/web/overlays/dev}
      destination: {name: '{{ .name }}', namespace: PREFIX-decided}
`

// observes is the one line of a proposal that a person takes out.
var observes = regexp.MustCompile(`(?m)^  mode: observe.*\n`)

// A repository has overlays, and no manifest of the sets that deploy them. init finds the sets where
// they run, gives every Application of theirs a component and an environment, and names the set
// that it can't resolve. With one line less in what it proposes a release moves on.
func TestInitProposesFromSetsThatRun(t *testing.T) {
	t.Parallel()
	f := repoFixture{components: map[string][]string{"web": {"web"}, "api": {"api"}}, environments: threeSteps,
		plain: map[string]string{"README.md": "# What runs, and where\n"}}
	s := newScenario(t, normalCluster, "initlive", f)
	f.sets = map[string]string{"shop.yaml": allButProd, "prod.yaml": regions, "decided.yaml": byDecision}
	s.applySets(f, nil)
	s.sets = append(s.sets, s.prefix+"-decided")
	s.awaitSettled()
	s.runGit("checkout", "-q", "-B", "main", "--track", "origin/main")

	stdout, stderr, err := s.runProgram("init", "--live", "--clusters", "live", "--name", "shop", "-o", "json", "--write")
	s.must(err)
	var proposal struct {
		Text  string
		Notes []struct{ ApplicationSet, Message string }
	}
	if err := json.Unmarshal([]byte(stdout), &proposal); err != nil {
		t.Fatalf("init printed no proposal: %v\n%s%s", err, stdout, stderr)
	}
	t.Logf("init proposes\n%s", proposal.Text)
	if !slices.ContainsFunc(proposal.Notes, func(n struct{ ApplicationSet, Message string }) bool {
		return n.ApplicationSet == "argocd/"+s.prefix+"-decided" && strings.Contains(n.Message, "clusterDecisionResource")
	}) {
		t.Errorf("init doesn't say why a set is left out: %+v", proposal.Notes)
	}
	if stdout, stderr, err := s.runProgram("resolve", "--clusters", "live"); err != nil || !strings.Contains(stdout, "8 Applications of 2 ApplicationSets in the working tree: 2 components in 3 environments.") {
		t.Errorf("the proposed file doesn't give each Application a place: %v\n%s%s", err, stdout, stderr)
	}

	if n := len(observes.FindAllString(proposal.Text, -1)); n != 1 {
		t.Fatalf("%d lines say that it observes", n)
	}
	s.pushEdits(dev, "Have Liftlock promote", map[string]edit{
		".liftlock.yaml": func(string) string { return observes.ReplaceAllString(proposal.Text, "") },
	})
	s.startServer()
	s.pushRelease("web", "dev", "1.1.0")
	qa := s.awaitOpen("web", "qa", "1.1.0", 0)
	s.mergeAs(ada, qa.Index)
	qa = s.awaitMerged("web", "qa", "1.1.0", 0)
	s.checkOneEnvironment(qa, "web", "qa", 1)
	s.awaitRunning("web", "qa", "1.1.0")
	s.awaitOpen("web", "prod", "1.1.0", qa.Index)
}

// runProgram runs liftlock in the story's clone, with the world's kubeconfig. An exit code other
// than 0 is an error that has what was printed to standard error.
func (s *scenario) runProgram(args ...string) (stdout, stderr string, err error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = s.clone.dir
	cmd.Env = append(cmd.Environ(), "KUBECONFIG="+s.cluster.kubeconfig)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), errs.String(), fmt.Errorf("liftlock %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), errs.String(), nil
}
