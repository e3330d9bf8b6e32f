//go:build e2e

package e2e

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"code.gitea.io/sdk/gitea"
)

// leakingSet is an ApplicationSet that names its Applications by what another repository's file
// says.
const leakingSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: leak}
spec:
  goTemplate: true
  generators:
    - git: {repoURL: VAULT, revision: HEAD, files: [{path: secrets.yaml}]}
  template:
    metadata: {name: 'leak-{{ .password }}'}
    spec:
      project: default
      source: {repoURL: https://elsewhere.example/x.git, path: p}
      destination: {server: https://kubernetes.default.svc}
`

// The server reads a second repository, which is none of the stranger's business. A fork's pull
// request asks for a file of it, and is told that it isn't evaluated, in its own words alone.
func TestStrangersReadNoOtherRepository(t *testing.T) {
	t.Parallel()
	s := newScenario(t, normalCluster, "vault", singleComponent())
	vault, password := s.repo+"-vault", strings.ToLower(rand.Text())
	s.must(s.cluster.createRepository(vault))
	url := s.cluster.giteaURL + "/" + s.cluster.org + "/" + vault + ".git"
	// Nothing of the fleet is in it: a second pipeline of the same name would make each question
	// for one ambiguous.
	s.runGit("checkout", "-q", "--detach", strings.TrimSpace(s.runGit("commit-tree", "-m", "Nothing yet", strings.TrimSpace(s.runGit("mktree")))))
	_, err := s.clone.commitAndPush(s.ctx, s.cluster.accounts[dev], url, "main", "A secret", map[string]edit{"secrets.yaml": func(string) string { return "password: " + password + "\n" }})
	s.must(err)
	s.runGit("checkout", "-q", "--detach", "origin/main")
	s.server.manifests = s.cluster.org + "/" + vault
	s.applySets(singleComponent(), nil)
	s.awaitSettled()
	s.startServer()

	m, name := s.cluster.accounts[stranger], s.prefix
	_, _, err = m.api.CreateFork(s.cluster.org, s.repo, gitea.CreateForkOption{Name: &name})
	s.must(err)
	_, err = s.clone.commitAndPush(s.ctx, m, s.cluster.giteaURL+"/"+m.login+"/"+name+".git", "leak", "Read what isn't mine",
		map[string]edit{"argocd/leak.yaml": func(string) string { return strings.ReplaceAll(leakingSet, "VAULT", url) }})
	s.must(err)
	p := s.openPullAs(stranger, stranger+":leak")
	eventually(s, "the stranger is told that it isn't evaluated", func() (bool, error) {
		comments, _, err := m.api.ListIssueComments(s.cluster.org, s.repo, p.Index, gitea.ListIssueCommentOptions{})
		if err != nil || len(comments) == 0 {
			return false, errors.Join(err, errors.New("there is no comment"))
		}
		body := comments[0].Body
		if strings.Contains(body, password) {
			t.Fatalf("a stranger is told the password:\n%s", body)
		}
		if !strings.Contains(strings.ReplaceAll(body, `\`, ""), "not evaluated: it reads "+s.cluster.org+"/"+vault) {
			return false, errors.New(body)
		}
		return true, nil
	})
}
