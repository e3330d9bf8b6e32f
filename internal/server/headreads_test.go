package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

const (
	vaultRepo    = "acme/vault"
	teamsRepo    = "acme/teams"
	vaultWord    = "hunter2"
	hiddenServer = "https://hidden.internal:6443"
)

// strangersSet is an ApplicationSet with a generator, as somebody adds it by a pull request.
func strangersSet(name, generator, application, annotation, destination string) string {
	return strings.NewReplacer("NAME", name, "GENERATOR", generator, "APPLICATION", application, "NOTE", annotation, "DESTINATION", destination).Replace(`apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: NAME, namespace: argocd}
spec:
  goTemplate: true
  generators:
    - GENERATOR
  template:
    metadata: {name: 'APPLICATION', annotations: {note: 'NOTE'}}
    spec:
      project: default
      source: {repoURL: https://elsewhere.example/x.git, path: p}
      destination: {DESTINATION}
`)
}

// TestStrangersReadNoMore holds that a fork's pull request is evaluated with no more than the
// branch's own ApplicationSets read. It tells nothing of other repositories, tracked or not, of
// clusters and of live objects. The answer is the same where there are no such objects.
func TestStrangersReadNoMore(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		s := newHarness(t, harnessOptions{face: face, repositoryLines: "  - {forge: hub, name: " + vaultRepo + "}\n  - {forge: hub, name: " + teamsRepo + "}\n"})
		file := filepath.Join(s.dir, "clusters.yaml")
		s.must("write the clusters", os.WriteFile(file, []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: hidden, labels: {argocd.argoproj.io/secret-type: cluster}}\nstringData: {name: hidden, server: '"+hiddenServer+"'}\n"), 0o600))
		s.opts.argocdLines = "    clusters: {file: " + file + "}\n"
		git := func(repo, files string) string {
			return fmt.Sprintf("git: {repoURL: %s/%s.git, revision: HEAD, files: [{path: %q}]}", s.Forge.URL(), repo, files)
		}
		for name, files := range map[string]map[string]string{
			vaultRepo: {"secrets.yaml": "password: " + vaultWord + "\n"},
			teamsRepo: {"teams/ours.yaml": "team: ours\npassword: " + vaultWord + "\n", "secrets.yaml": "team: " + vaultWord + "\n"},
		} {
			s.must("make "+name, s.Forge.CreateRepo(name, emulator.RepoOptions{Author: "ada", Message: "Files", Files: files,
				Access: map[string]emulator.Permission{s.bot: emulator.Admin, "ada": emulator.Write, "mallory": emulator.NoPermission}}))
		}
		s.commitFiles("linus", "main", "Read the teams", map[string]string{"argocd/teams.yaml": strangersSet("teams", git(teamsRepo, "teams/*.yaml"), "{{ .team }}", "", "server: "+inCluster)})
		s.start()
		s.awaitJudged()
		s.must("let mallory read", s.Forge.Grant(repoName, "mallory", emulator.Read))
		fork, err := s.Forge.Fork(repoName, "mallory")
		s.must("fork", err)
		open := func(name string, files map[string]string) int {
			_, err := s.Forge.CommitAs(fork, "mallory", name, "Change "+name, files)
			s.must("commit to the fork", err)
			n, err := s.Forge.OpenPullFrom(repoName, "mallory", fork, name, "main", "Change "+name)
			s.must("open a pull request from the fork", err)
			return n
		}
		ssh := "git@" + strings.TrimPrefix(s.Forge.URL(), "http://") + ":" + vaultRepo + ".git"
		for _, c := range []struct{ name, set, says string }{
			{"tracked", strangersSet("leak", git(vaultRepo, "*.yaml"), "leak-{{ .password }}", "", "server: "+inCluster), "not evaluated: it reads acme/vault, and no ApplicationSet of the branch does"},
			{"missing", strangersSet("leak", git("acme/nothing", "*.yaml"), "leak-{{ .password }}", "", "server: "+inCluster), "not evaluated: it reads acme/nothing, and no ApplicationSet of the branch does"},
			{"spelt", strangersSet("leak", strings.Replace(git(vaultRepo, "*.yaml"), s.Forge.URL()+"/"+vaultRepo+".git", fmt.Sprintf("%q", ssh), 1), "leak-{{ .password }}", "", "server: "+inCluster), "not evaluated: it reads "},
			{"files", strangersSet("leak", git(teamsRepo, "*.yaml"), "leak-{{ .team }}", "", "server: "+inCluster), "not evaluated: it reads acme/teams"},
			{"words", strangersSet("leak", git(teamsRepo, "teams/*.yaml"), "leak-{{ .password }}", "", "server: "+inCluster), "not evaluated: it reads acme/teams: password"},
			{"clusters", strangersSet("leak", "clusters: {}", "leak-{{ .name }}", "{{ .server }}", "server: "+inCluster), "not evaluated: it reads Argo CD's clusters"},
			{"live", strings.Replace(strangersSet("others", "list: {elements: [{x: y}]}", "leak", "", "server: "+inCluster), "spec:\n", "spec:\n  tomorrow: true\n", 1), "not evaluated: it reads the live Applications of ApplicationSet others"},
		} {
			n := open(c.name, map[string]string{"argocd/leak.yaml": c.set})
			p := s.awaitOwnComment(n, c.says)
			for _, secret := range []string{vaultWord, hiddenServer, "none of the repositories", "has been reached"} {
				if strings.Contains(p.Comments[0].Body, secret) {
					t.Errorf("%s: a stranger is told %s:\n%s", c.name, secret, p.Comments[0].Body)
				}
			}
		}
		// Everybody's change is evaluated with what the branch's own sets read.
		n := open("same", map[string]string{"argocd/teams.yaml": strangersSet("teams", git(teamsRepo, "teams/*.yaml"), "team-{{ .team }}", "", "server: "+inCluster)})
		s.awaitOwnComment(n, "team-ours")
		// A question about a stranger's change is answered with no more.
		n = open("asked", map[string]string{"argocd/leak.yaml": strangersSet("leak", git(vaultRepo, "*.yaml"), "leak-{{ .password }}", "", "server: "+inCluster)})
		answer := s.awaitReaction(n, s.addComment(n, "mallory", "/liftlock diff"), "+1")
		if strings.Contains(answer, vaultWord) {
			t.Errorf("asked for the difference it answers:\n%s", answer)
		}
	})
}

// awaitOwnComment waits until the server says something on a person's pull request.
func (ha *harness) awaitOwnComment(number int, says string) emulator.PullRequest {
	ha.t.Helper()
	return ha.awaitPull(number, "is told: "+says, func(p *emulator.PullRequest) bool {
		return len(p.Comments) > 0 && strings.Contains(strings.ReplaceAll(p.Comments[0].Body, `\`, ""), says)
	})
}
