package doctor_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge/github"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/server/doctor"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// fault is one that is planted in a sound installation.
type fault struct {
	name  string
	faces []emulator.Face // where it can be; none: everywhere
	plant func(in *installation)
	want  []doctor.Code // all that is found
	calls int           // how many the forge allows; 0: as many as it does anyway
	// developer says that Liftlock's account doesn't administer the repository any more: GitLab shows
	// such accounts no protected branches.
	developer bool
}

// edit replaces something in the server's file, which must be there.
func edit(old, with string) func(*installation) {
	return func(in *installation) {
		in.t.Helper()
		if !strings.Contains(in.file, old) {
			in.t.Fatalf("the server's file has no %q:\n%s", old, in.file)
		}
		in.file = strings.Replace(in.file, old, with, 1)
	}
}

// withoutAddress leaves the server without an address that a webhook could lead to.
func withoutAddress(in *installation) {
	in.t.Helper()
	edit("externalURL: "+in.receiver.URL+"\n", "")(in)
	edit(", manageWebhooks: true", "")(in)
}

// refuse has calls of the forge fail, until the end.
func refuse(method, path string, f emulator.Fault) func(*installation) {
	return func(in *installation) {
		f.Method, f.Path, f.Times = method, path, -1
		in.do(in.em.InjectFault(f))
	}
}

// replaceHook has a hook of somebody's own instead of the one that was there.
func replaceHook(h emulator.Hook) func(*installation) {
	return func(in *installation) {
		in.do(in.em.RemoveHooks(repoName))
		h.URL = in.hookURL()
		in.do(in.em.AddHook(repoName, adminLogin, h))
	}
}

const onGitHub, onGitLab = emulator.GitHub, emulator.GitLab

var hostFaults = []fault{
	{name: "no git", plant: func(in *installation) { in.host.gitErr = errPlanted }, want: []doctor.Code{"git-unusable"}},
	{name: "little room", plant: func(in *installation) { in.host.free = 1 << 30 }, want: []doctor.Code{"disk-low"}},
	{name: "no room", plant: func(in *installation) { in.host.free = 1 << 20 }, want: []doctor.Code{"disk-full"}},
	{name: "room that can't be read", plant: func(in *installation) { in.host.diskErr = errPlanted }, want: []doctor.Code{"disk-unread"}},
	{name: "a folder of somebody else's", plant: func(in *installation) { in.host.dirErr = errPlanted }, want: []doctor.Code{"data-dir-closed"}},
	{name: "a clock that is behind", plant: func(in *installation) { in.off = -3 * time.Minute }, want: []doctor.Code{"clock-off"}},
	{name: "a clock that is ahead", plant: func(in *installation) { in.off = 3 * time.Minute }, want: []doctor.Code{"clock-off"}},
}

var fileFaults = []fault{
	{name: "a key that doesn't exist", plant: edit("repositories:", "repositoires:"), want: []doctor.Code{"file-invalid"}},
	{name: "a variable that isn't set", plant: func(in *installation) { delete(in.env, "FORGE_TOKEN") }, want: []doctor.Code{"file-invalid"}},
	{name: "nobody can read", plant: edit("dataDir:", "listen: 0.0.0.0:8080\ndataDir:"), want: []doctor.Code{"readers-missing"}},
	{name: "no TLS", plant: func(in *installation) {
		in.file = strings.ReplaceAll(in.file, "http://127.0.0.1", "http://liftlock.invalid")
		edit("url: http://liftlock.invalid", "url: http://127.0.0.1")(in)
	}, want: []doctor.Code{"address-plain", "hook-missing"}},
}

var forgeFaults = []fault{
	{name: "a forge that is down", plant: func(in *installation) { in.do(in.em.Close()) }, want: []doctor.Code{"forge-unreachable"}},
	{name: "a forge that fails", plant: refuse("GET", "/user$", emulator.Fault{Status: http.StatusBadGateway}), want: []doctor.Code{"forge-unreachable"}},
	{name: "a forge that doesn't answer", plant: func(in *installation) { in.timeout = 3 * time.Second; in.em.SetLatency(time.Minute) }, want: []doctor.Code{"forge-unreachable"}},
	{name: "a token that was revoked", plant: func(in *installation) { in.do(in.em.SetToken(botLogin, "")) }, want: []doctor.Code{"credentials-refused"}},
	{name: "a token without repo", faces: []emulator.Face{onGitHub}, plant: func(in *installation) { in.do(in.em.SetToken(botLogin, botToken, "read:org")) }, want: []doctor.Code{"grant-missing"}},
	{name: "a token that only reads", faces: []emulator.Face{onGitLab}, plant: func(in *installation) { in.do(in.em.SetToken(botLogin, botToken, "read_api")) }, want: []doctor.Code{"grant-missing"}},
	{name: "a token that ends soon", plant: func(in *installation) { in.do(in.em.EndToken(botLogin, time.Now().Add(5*24*time.Hour))) }, want: []doctor.Code{"token-ends"}},
	{name: "sweeps that take all calls", faces: []emulator.Face{onGitHub}, plant: edit("dataDir:", "sweepInterval: 1s\ndataDir:"), want: []doctor.Code{"calls-forecast"}, calls: 4000},
	{name: "calls that others have made", plant: func(in *installation) {
		for range 200 {
			_, err := in.driver(in.config()).Me(context.Background())
			in.do(err)
		}
	}, want: []doctor.Code{"calls-low"}, calls: 250},
}

var repositoryFaults = []fault{
	{name: "another name", plant: edit("acme/vessels", "acme/ships"), want: []doctor.Code{"repository-missing"}},
	{name: "no access", plant: func(in *installation) { in.do(in.em.Grant(repoName, botLogin, emulator.NoPermission)) }, want: []doctor.Code{"repository-missing"}},
	{name: "it only reads", developer: true, plant: func(in *installation) { in.do(in.em.Grant(repoName, botLogin, emulator.Read)) }, want: []doctor.Code{"hook-forbidden", "write-missing"}},
	{name: "archived", plant: func(in *installation) { in.do(in.em.ArchiveRepository(repoName, true)) }, want: []doctor.Code{"repository-archived"}},
	{name: "renamed", plant: func(in *installation) { in.do(in.em.MoveRepository(repoName, "acme/ships")) }, want: []doctor.Code{"repository-renamed"}},
	{name: "another branch", plant: func(in *installation) {
		edit("manageWebhooks", "branch: topic, manageWebhooks")(in)
		in.do(in.em.Protect(repoName, "topic", emulator.Protection{Contexts: []string{"liftlock"}}))
	}, want: []doctor.Code{"branch-other"}},
	{name: "a person's own account", plant: func(in *installation) {
		_, err := in.em.CommitAs(repoName, botLogin, "mine", "Change it too", map[string]string{"b.txt": "b\n"})
		in.do(err)
		_, err = in.em.OpenPull(repoName, botLogin, "mine", "main", "Change it too", "")
		in.do(err)
	}, want: []doctor.Code{"account-personal"}},
	{name: "an account with a promotion of its own", plant: func(in *installation) {
		_, err := in.em.CommitAs(repoName, botLogin, promotion.Branch("shop", "qa", "web"), "Promote it", map[string]string{"b.txt": "b\n"})
		in.do(err)
		_, err = in.em.OpenPull(repoName, botLogin, promotion.Branch("shop", "qa", "web"), "main", "Promote it", "")
		in.do(err)
	}},
	{name: "pull requests that can't be read", plant: refuse("GET", "/(pulls|merge_requests)$", emulator.Fault{Status: http.StatusBadGateway}), want: []doctor.Code{"account-unread", "checks-unread"}},
	{name: "a repository that can't be read now", plant: refuse("GET", "^/(repos|projects)/", emulator.Fault{Status: http.StatusBadGateway}), want: []doctor.Code{"repository-unread"}},
}

var hookFaults = []fault{
	{name: "no webhook", plant: func(in *installation) { in.do(in.em.RemoveHooks(repoName)) }, want: []doctor.Code{"hook-missing"}},
	{name: "a webhook that is off", faces: []emulator.Face{onGitHub}, plant: replaceHook(emulator.Hook{Secret: hookSecret}), want: []doctor.Code{"hook-off"}},
	{name: "events that are missing", plant: func(in *installation) { in.do(in.em.SetHookEvents(repoName, in.hookURL(), "push", "push_events")) }, want: []doctor.Code{"hook-events"}},
	{name: "events as they are selected by hand", faces: []emulator.Face{onGitHub}, plant: func(in *installation) {
		in.do(in.em.SetHookEvents(repoName, in.hookURL(), github.DefaultEvents...))
	}, want: []doctor.Code{"hook-events-late"}},
	{name: "another secret", faces: []emulator.Face{onGitLab}, plant: edit("webhookSecrets: [", `webhookSecrets: ["the secret that is new", `), want: []doctor.Code{"hook-secret"}},
	{name: "deliveries that are refused", plant: func(in *installation) { in.answer = http.StatusUnauthorized; in.push() }, want: []doctor.Code{"hook-secret"}},
	{name: "deliveries that fail", plant: func(in *installation) { in.answer = http.StatusBadGateway; in.push() }, want: []doctor.Code{"hook-failing"}},
	{name: "a webhook that GitLab has paused", faces: []emulator.Face{onGitLab}, plant: func(in *installation) {
		in.answer = http.StatusBadGateway
		for range 4 {
			in.push()
		}
	}, want: []doctor.Code{"hook-failing", "hook-paused"}},
	{name: "webhooks that can't be seen", developer: true, plant: func(in *installation) {
		in.do(in.em.Grant(repoName, botLogin, emulator.Write))
		edit(", manageWebhooks: true", "")(in)
	}, want: []doctor.Code{"hook-unread"}},
	{name: "webhooks that can't be made", developer: true, plant: func(in *installation) { in.do(in.em.Grant(repoName, botLogin, emulator.Write)) }, want: []doctor.Code{"hook-forbidden"}},
	{name: "webhooks that can't be read now", plant: refuse("GET", "/hooks", emulator.Fault{Status: http.StatusBadGateway}), want: []doctor.Code{"hook-unread"}},
}

var pipelineFaults = []fault{
	{name: "no pipeline file", plant: func(in *installation) {
		_, err := in.em.CommitAs(repoName, adminLogin, "main", "Remove it", nil, ".liftlock.yaml")
		in.do(err)
	}, want: []doctor.Code{"pipeline-missing"}},
	{name: "no pipeline file where one is proposed", plant: func(in *installation) {
		edit("manageWebhooks", "onboard: true, manageWebhooks")(in)
		_, err := in.em.CommitAs(repoName, adminLogin, "main", "Remove it", nil, ".liftlock.yaml")
		in.do(err)
	}, want: []doctor.Code{"pipeline-proposed"}},
	{name: "a pipeline file that is broken", plant: editPipeline("merge: auto", "mrege: auto"), want: []doctor.Code{"pipeline-invalid"}},
	{name: "a channel that isn't there", plant: editPipeline("  environments:", "  notify: [{to: releases, on: [opened]}]\n  environments:"), want: []doctor.Code{"pipeline-names"}},
	{name: "a gate that is always open", plant: editPipeline("- checks:", "- expression: component == 'a' || size('a') == 1\n        - checks:"), want: []doctor.Code{"pipeline-odd"}},
	{name: "ApplicationSets that aren't there", plant: editPipeline("argocd/*.yaml", "apps/*.yaml"), want: []doctor.Code{"sets-missing"}},
	{name: "an Argo CD that isn't there", plant: editPipeline("{path: argocd/*.yaml}", "{path: argocd/*.yaml, argocd: edge}"), want: []doctor.Code{"argocd-unnamed"}},
	{name: "a branch that isn't there", plant: edit("manageWebhooks", "branch: trunk, manageWebhooks"), want: []doctor.Code{"branch-missing", "branch-other"}},
	{name: "an environment's branch that isn't there", plant: func(in *installation) {
		editPipeline("  carry:", "  layout: branches\n  carry:")(in)
		editPipeline("{name: dev}", "{name: dev, branch: main}")(in)
		editPipeline("name: qa", "name: qa\n      branch: topic")(in)
		editPipeline("name: prod", "name: prod\n      branch: env/prod")(in)
		in.do(in.em.Protect(repoName, "topic", emulator.Protection{Contexts: []string{"liftlock"}}))
	}, want: []doctor.Code{"branch-missing"}},
	{name: "Git that is closed to the token", plant: refuse("GET", `\.git/info/refs`, emulator.Fault{Status: http.StatusForbidden}), want: []doctor.Code{"git-refused"}},
	{name: "Git that fails", plant: refuse("GET", `\.git/info/refs`, emulator.Fault{Status: http.StatusBadGateway}), want: []doctor.Code{"git-unread"}},
}

var ruleFaults = []fault{
	{name: "the status isn't required", plant: func(in *installation) { in.do(in.em.Protect(repoName, "main", emulator.Protection{})) }, want: []doctor.Code{"status-optional"}},
	{name: "a merge queue that waits for a server without an address", faces: []emulator.Face{onGitHub}, plant: func(in *installation) {
		withoutAddress(in)
		in.do(in.em.Protect(repoName, "main", emulator.Protection{Contexts: []string{"liftlock"}, Ruleset: "main", Queue: &emulator.MergeQueue{}}))
	}, want: []doctor.Code{"queue-unheard"}},
	{name: "a merge queue that waits for a webhook", faces: []emulator.Face{onGitHub}, plant: func(in *installation) {
		edit(", manageWebhooks: true", "")(in)
		in.do(in.em.RemoveHooks(repoName))
		in.do(in.em.Protect(repoName, "main", emulator.Protection{Contexts: []string{"liftlock"}, Ruleset: "main", Queue: &emulator.MergeQueue{}}))
	}, want: []doctor.Code{"hook-missing", "queue-unheard"}},
	{name: "a method that is off", faces: []emulator.Face{onGitHub}, plant: func(in *installation) { in.do(in.em.SetMethods(repoName, "squash", "rebase")) }, want: []doctor.Code{"method-refused"}},
	{name: "a project that squashes", faces: []emulator.Face{onGitLab}, plant: func(in *installation) { in.do(in.em.SetMethods(repoName, "squash")) }, want: []doctor.Code{"method-refused"}},
	{name: "signed commits", faces: []emulator.Face{onGitHub}, plant: func(in *installation) {
		in.do(in.em.Protect(repoName, "main", emulator.Protection{Contexts: []string{"liftlock"}, Signatures: true}))
	}, want: []doctor.Code{"signatures-required"}},
	{name: "an account that bypasses", faces: []emulator.Face{onGitHub}, plant: func(in *installation) {
		in.do(in.em.Protect(repoName, "main", emulator.Protection{Contexts: []string{"liftlock"}, Ruleset: "main", Bypass: []string{botLogin}}))
	}, want: []doctor.Code{"rules-bypassed", "status-optional"}},
	{name: "a Developer where Maintainers merge", developer: true, faces: []emulator.Face{onGitLab}, plant: func(in *installation) {
		in.do(in.em.Grant(repoName, botLogin, emulator.Write))
		in.do(in.em.Protect(repoName, "main", emulator.Protection{Contexts: []string{"liftlock"}, MergeRole: emulator.Admin}))
	}, want: []doctor.Code{"hook-forbidden", "merge-forbidden"}},
	{name: "rules that can't be read now", faces: []emulator.Face{onGitHub}, plant: refuse("GET", "/rules/branches/main", emulator.Fault{Status: http.StatusBadGateway}), want: []doctor.Code{"rules-unread"}},
}

var guardFaults = []fault{
	{name: "branches guarded one level deep", plant: func(in *installation) {
		in.do(in.em.UnguardBranches(repoName))
		for _, pattern := range []string{"liftlock/**", "liftlock-revert/**"} {
			in.do(in.em.GuardBranches(repoName, pattern, botLogin))
		}
	}, want: []doctor.Code{"branches-open"}},
	{name: "branches that anybody pushes to", plant: func(in *installation) { in.do(in.em.UnguardBranches(repoName)) }, want: []doctor.Code{"branches-open"}},
	{name: "holds that anybody pushes", plant: func(in *installation) {
		in.do(in.em.UnguardBranches(repoName))
		for _, pattern := range []string{"liftlock/**/*", "liftlock-revert/**/*"} {
			in.do(in.em.GuardBranches(repoName, pattern, botLogin))
		}
	}, want: []doctor.Code{"branches-open"}},
	{name: "branches that others push to", plant: func(in *installation) { in.guardBranches("ada") }, want: []doctor.Code{"branches-closed"}},
	{name: "guards that can't be read", plant: refuse("GET", "/rules/branches/liftlock|/protected_branches$", emulator.Fault{Status: http.StatusBadGateway}), want: []doctor.Code{"branches-unread"}},
}

var gateFaults = []fault{
	{name: "a window that opens next year", faces: []emulator.Face{onGitHub}, plant: func(in *installation) {
		editPipeline("0 9 * * MON-THU", fmt.Sprintf("0 9 1 %d *", time.Now().AddDate(0, 5, 0).Month()))(in)
	}, want: []doctor.Code{"closed-long"}},
	{name: "a freeze without an end in sight", faces: []emulator.Face{onGitHub}, plant: edit("dataDir:", "freezes: [{environments: [prod], from: 2020-01-01, to: 2120-01-01, timezone: UTC, reason: rebuilding}]\ndataDir:"), want: []doctor.Code{"closed-long"}},
	{name: "a check that never ran", plant: editPipeline("ci/*", "e2e/*"), want: []doctor.Code{"check-never-ran"}},
	{name: "checks that can't be read", plant: refuse("GET", "/statuses", emulator.Fault{Status: http.StatusBadGateway}), want: []doctor.Code{"checks-unread"}},
	{name: "no CODEOWNERS", faces: []emulator.Face{onGitHub}, plant: editPipeline("users: [ada]", "codeowners: true"), want: []doctor.Code{"codeowners-unusable"}},
	{name: "bare commands", faces: []emulator.Face{onGitLab}, plant: editPipeline("  breakGlass:", "  commands: bare\n  breakGlass:"), want: []doctor.Code{"commands-bare"}},
	{name: "bare commands that nobody takes", faces: []emulator.Face{onGitHub}, plant: editPipeline("  breakGlass:", "  commands: bare\n  breakGlass:")},
	{name: "CODEOWNERS of GitLab's", faces: []emulator.Face{onGitLab}, plant: editPipeline("users: [ada]", "codeowners: true"), want: []doctor.Code{"codeowners-unusable"}},
	{name: "more approvals than people", faces: []emulator.Face{onGitHub}, plant: editPipeline("count: 1", "count: 4"), want: []doctor.Code{"approvers-few"}},
	{name: "everybody's approval", faces: []emulator.Face{onGitHub}, plant: editPipeline("count: 1", "count: 3"), want: []doctor.Code{"approvers-scarce"}},
	{name: "Liftlock's own approval", faces: []emulator.Face{onGitHub}, plant: editPipeline("users: [ada]", "users: [ada, liftlock-bot]"), want: []doctor.Code{"approver-own"}},
	{name: "an approver whom nobody knows", plant: editPipeline("users: [ada]", "users: [ada, nobody]"), want: []doctor.Code{"approver-unknown"}},
	{name: "an approver without access", plant: editPipeline("users: [ada]", "users: [ada, mallory]"), want: []doctor.Code{"approver-unknown"}},
	{name: "an approver who only reads", plant: func(in *installation) { in.do(in.em.Grant(repoName, "ada", emulator.Read)) }, want: []doctor.Code{"approver-reader"}},
	{name: "a team that isn't there", plant: editPipeline("teams: [acme/sre], users", "teams: [acme/sre, acme/ops], users"), want: []doctor.Code{"team-unseen"}},
	{name: "a team with nobody in it", plant: func(in *installation) { in.do(in.em.SetTeam("acme/sre", "")) }, want: []doctor.Code{"approvers-scarce", "team-empty"}},
	{name: "teams that can't be read", plant: refuse("GET", "/(teams|groups)/.*/members", emulator.Fault{Status: http.StatusForbidden}), want: []doctor.Code{"people-unread"}},
	{name: "the floor's approvals", faces: []emulator.Face{onGitHub}, plant: edit("dataDir:", "floor: [{environments: [prod], approvals: {count: 1, from: {users: [ada]}}}]\ndataDir:"), want: []doctor.Code{"approvers-scarce"}},
}

// byAPI has the Argo CD reached by its own API alone, with a token.
func byAPI(token string, plant func(in *installation)) func(*installation) {
	return func(in *installation) {
		in.t.Helper()
		authority := filepath.Join(in.t.TempDir(), "ca.pem")
		in.do(in.argocd.WriteAuthority(authority))
		own := cmp.Or(token, in.argocd.APIToken())
		i := strings.Index(in.file, "    kubernetes:")
		in.file = in.file[:i] + fmt.Sprintf("    api: {url: %q, token: %q, caFile: %q}\n", in.argocd.APIURL(), own, authority)
		plant(in)
	}
}

var nothing = func(*installation) {}

var argocdFaults = []fault{
	{name: "an Argo CD by its API", plant: byAPI("", nothing)},
	{name: "an Argo CD that is down", plant: func(in *installation) { in.do(in.argocd.Close()) }, want: []doctor.Code{"argocd-unreachable"}},
	{name: "no kubeconfig", plant: edit("kubeconfig: /", "kubeconfig: /not-there/"), want: []doctor.Code{"argocd-kubeconfig"}},
	{name: "another's token", plant: func(in *installation) {
		path := regexp.MustCompile(`kubeconfig: (\S+),`).FindStringSubmatch(in.file)[1]
		text, err := os.ReadFile(path)
		in.do(err)
		in.do(os.WriteFile(path, regexp.MustCompile(`token: "[^"]*"`).ReplaceAll(text, []byte(`token: "another"`)), 0o600))
	}, want: []doctor.Code{"argocd-refused"}},
	{name: "an API that doesn't know the token", plant: byAPI("another", nothing), want: []doctor.Code{"argocd-refused"}},
	{name: "Applications that can't be watched", plant: func(in *installation) { in.argocd.Deny("watch", "applications") }, want: []doctor.Code{"argocd-forbidden"}},
	{name: "Applications that can't be patched", plant: func(in *installation) { in.argocd.Deny("patch", "applications") }, want: []doctor.Code{"argocd-limited"}},
	{name: "projects that can't be seen", plant: func(in *installation) { in.argocd.Deny("list", "appprojects") }, want: []doctor.Code{"argocd-limited"}},
	{name: "cluster Secrets that can't be seen", plant: func(in *installation) {
		edit("version: v2.14.21", "version: v2.14.21\n    clusters: {live: true}")(in)
		in.argocd.Deny("list", "secrets")
	}, want: []doctor.Code{"argocd-limited"}},
	{name: "Applications that the API hides", plant: byAPI("", func(in *installation) { in.argocd.Deny("get", "applications") }), want: []doctor.Code{"argocd-forbidden"}},
	{name: "an Argo CD of an unknown line", plant: edit("    version: v2.14.21\n", ""), want: []doctor.Code{"argocd-version-unknown"}},
	{name: "an Argo CD of another line", plant: byAPI("", edit("v2.14.21", "v3.1.0")), want: []doctor.Code{"argocd-version-other"}},
	{name: "windows that never open", plant: func(in *installation) {
		in.argocd.RemoveObject("appprojects", "argocd", "default")
		in.do(in.argocd.AddObject("appprojects", map[string]any{"metadata": map[string]any{"name": "default", "namespace": "argocd"}, "spec": map[string]any{
			"syncWindows": []any{map[string]any{"kind": "deny", "schedule": "* * * * *", "duration": "24h", "applications": []string{"*"}}}}}))
	}, want: []doctor.Code{"argocd-windows-closed"}},
	{name: "no Applications", plant: func(in *installation) { in.do(in.argocd.RemoveApplication("argocd", "web-dev")) }, want: []doctor.Code{"argocd-empty"}},
}

// asApp has Liftlock work as a GitHub App, and then a fault.
func asApp(plant func(in *installation)) func(*installation) {
	return func(in *installation) {
		in.t.Helper()
		permissions := map[string]string{}
		for _, p := range github.Permissions() {
			permissions[p.Name] = p.Level
		}
		app, err := in.em.RegisterApp(emulator.App{Slug: "liftlock", Permissions: permissions, Events: github.DefaultEvents, HookURL: in.hookURL(), HookSecret: hookSecret})
		in.do(err)
		in.do(in.em.InstallApp("liftlock", "acme"))
		in.guardBranches("liftlock[bot]")
		in.do(in.em.RemoveHooks(repoName))
		in.key = filepath.Join(in.t.TempDir(), "key.pem")
		in.do(os.WriteFile(in.key, app.PrivateKey, 0o600))
		edit(`{token: "${FORGE_TOKEN}"}`, fmt.Sprintf("{app: {id: %d, privateKeyFile: %s, manageWebhook: true}}", app.ID, in.key))(in)
		edit(", manageWebhooks: true", "")(in)
		plant(in)
	}
}

var appFaults = []fault{
	{name: "an App as it is wanted", plant: asApp(func(in *installation) { in.push() })},
	{name: "an App that isn't installed", plant: asApp(func(in *installation) { in.do(in.em.UninstallApp("liftlock", "acme")) }), want: []doctor.Code{"app-unusable"}},
	{name: "an App that is suspended", plant: asApp(func(in *installation) { in.do(in.em.SuspendApp("liftlock", "acme", true)) }), want: []doctor.Code{"app-unusable"}},
	{name: "a permission that wasn't accepted", plant: asApp(func(in *installation) {
		in.do(in.em.SetAppPermissions("liftlock", "acme", map[string]string{"contents": "write", "metadata": "read", "pull_requests": "write", "issues": "read", "checks": "read", "members": "read"}))
	}), want: []doctor.Code{"checks-unread", "grant-missing"}},
	{name: "a key of another App", plant: asApp(func(in *installation) {
		other, err := in.em.RegisterApp(emulator.App{Slug: "other"})
		in.do(err)
		in.do(os.WriteFile(in.key, other.PrivateKey, 0o600))
	}), want: []doctor.Code{"credentials-refused"}},
	{name: "an App whose webhook leads to another server", plant: asApp(func(in *installation) { edit("externalURL: http://127.0.0.1", "externalURL: http://localhost")(in) }), want: []doctor.Code{"hook-address"}},
	{name: "an App whose deliveries fail", plant: asApp(func(in *installation) { in.answer = http.StatusBadGateway; in.push() }), want: []doctor.Code{"hook-failing"}},
}

// TestFaults plants one fault after the other in a sound installation: each is found by its code,
// and nothing else is.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, f := range slices.Concat(onGitHubOnly(hostFaults), onGitHubOnly(fileFaults), forgeFaults, repositoryFaults, hookFaults, onGitHubOnly(pipelineFaults), ruleFaults, guardFaults, gateFaults, onGitHubOnly(argocdFaults), onGitHubOnly(appFaults)) {
		for _, face := range faces(f.faces...) {
			t.Run(f.name+" on "+string(face), func(t *testing.T) {
				t.Parallel()
				in := newInstallation(t, face, f.calls)
				f.plant(in)
				report := in.examine(context.Background())
				want := slices.Clone(f.want)
				if f.developer && face == onGitLab {
					want = slices.Sorted(slices.Values(append(want, "branches-unread")))
				}
				if got := report.Codes(); !slices.Equal(got, want) {
					t.Errorf("found %q, want %q:\n%s", got, want, text(t, report))
				}
				for _, x := range report.Findings {
					if x.Level != doctor.OK && x.Cure == "" {
						t.Errorf("%s doesn't say what to change", x.Code)
					}
				}
				if said := text(t, report); strings.Contains(said, botToken) || strings.Contains(said, hookSecret) {
					t.Errorf("it shows a secret:\n%s", said)
				}
			})
		}
	}
}

// TestNoFaultsGiveNoFindings finds nothing where nothing is wrong.
func TestNoFaultsGiveNoFindings(t *testing.T) {
	t.Parallel()
	for _, face := range faces() {
		t.Run(string(face), func(t *testing.T) {
			t.Parallel()
			in := newInstallation(t, face, 0)
			in.push()
			report := in.examine(context.Background())
			if len(report.Codes()) > 0 || report.ExitCode() != doctor.ExitWell {
				t.Errorf("it isn't well:\n%s", text(t, report))
			}
		})
	}
}

func onGitHubOnly(faults []fault) []fault {
	for i := range faults {
		faults[i].faces = []emulator.Face{onGitHub}
	}
	return faults
}

func text(t *testing.T, r *doctor.Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
