package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
	"github.com/liftlock/liftlock/policies"
)

const (
	githubToken      = "ghp_very-private-0001"
	webhookSecret    = "hook-private-0002"
	ciToken          = "ci-private-0003-long-enough"
	slackURL         = "https://hooks.slack.example/services/private-0004"
	cabSecret        = "cab-private-0007-long-enough"
	promToken        = "prom-private-0006"
	registryPassword = "registry-private-0007"
	oidcSecret       = "oidc-private-0008"
	busSecret        = "whsec_cHJpdmF0ZS1wcml2YXRlLXByaXZhdGUtMDAwNQ=="
)

func environment(name string) (string, bool) {
	value, ok := map[string]string{
		"GITHUB_TOKEN":      githubToken,
		"WEBHOOK_SECRET":    webhookSecret,
		"CI_TOKEN":          ciToken,
		"SLACK_URL":         slackURL,
		"CAB_SECRET":        cabSecret,
		"PROM_TOKEN":        promToken,
		"REGISTRY_PASSWORD": registryPassword,
		"OIDC_SECRET":       oidcSecret,
		"BUS_SECRET":        busSecret,
		"EMPTY":             "",
		"SHORT":             "private",
		"DATABASE":          "postgres://liftlock:pa55word@db.example.com/liftlock",
		"BAD_DATABASE":      "mysql://liftlock:pa55word@db.example.com/liftlock",
	}[name]
	return value, ok
}

func TestLoadSample(t *testing.T) {
	got, err := Load("testdata/liftlock.yaml", environment)
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Listen:         "127.0.0.1:8080",
		ExternalURL:    "https://liftlock.example.com",
		Webhooks:       Webhooks{Listen: "0.0.0.0:8081", ExternalURL: "https://liftlock.example.com"},
		Hosts:          []string{"liftlock.liftlock.svc"},
		TrustedProxies: []string{"10.0.0.0/8", "fd00::1"},
		ReadAccess:     ReadOpen,
		Store:          "sqlite:///var/lib/liftlock/liftlock.db",
		DataDir:        "./data",
		SweepInterval:  5 * time.Minute,
		Forges: []Forge{{
			Name: "hub", Type: GitHub, URL: "https://api.github.com",
			Auth: Auth{Token: githubToken}, WebhookSecrets: []Secret{webhookSecret},
		}},
		Repositories: []Repository{{
			Forge: "hub", Name: "acme/fleet", Branch: "main", ManageWebhooks: true, PollInterval: 3 * time.Minute, DiscoverInterval: 5 * time.Minute,
		}},
		ArgoCD: []ArgoCD{{
			Name: "hub", Kubernetes: Kubernetes{Namespaces: []string{"argocd"}},
			Refresh: RefreshAnnotation, Render: RenderLocal, Globbing: GlobbingGit, Version: "v3.5.7",
			ApplicationSetPolicy: "create-only",
			Clusters:             Clusters{File: filepath.Join("testdata", "clusters.yaml"), Alias: map[string][]string{"prod-eu": {"in-cluster", "https://10.0.0.1/"}}},
		}},
		API:    API{Tokens: []Token{{Name: "ci", Role: Operator, Token: ciToken}}},
		Access: []Access{{Repositories: []string{"acme/fleet"}, Groups: []string{"sre"}, Tokens: []string{"ci"}, Forge: true}},
		OIDC: &OIDC{Issuer: "https://dex.example.com", ClientID: "liftlock", ClientSecret: oidcSecret, Scopes: []string{"groups"}, GroupsClaim: "groups", NameClaim: "email", Accounts: map[string]string{"hub": "nickname"},
			Roles:    Roles{Viewer: []string{"*"}, Operator: []string{"sre"}, BreakGlass: []string{"oncall"}},
			Sessions: OIDCSessions{Idle: 30 * time.Minute, Lifetime: 8 * time.Hour}, TLS: CallTLS{CAFile: filepath.Join("testdata", "ca.pem")}},
		Floor:      []Floor{{Environments: []string{"prod*"}, Approvals: &policies.Approvals{Count: 1}}},
		Freezes:    []Freeze{{Environments: []string{"prod*"}, From: "2026-12-20", To: "2027-01-03", Timezone: "UTC", Reason: "holidays"}},
		Endpoints:  []Endpoint{{Name: "change-board", URL: "https://cab.example.com/gate", Secret: cabSecret}},
		Prometheus: []Prometheus{{Name: "main", URL: "http://prometheus:9090", BearerToken: promToken, TLS: CallTLS{CAFile: filepath.Join("testdata", "ca.pem")}}},
		Registries: []Registry{{Host: "ghcr.io", Username: "liftlock", Password: registryPassword}},
		Channels:   []Channel{{Name: "releases", Type: ChannelSlack, URL: slackURL}, {Name: "bus", Type: ChannelWebhook, URL: "https://events.example.com/in", Secret: busSecret}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the sample (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"in-cluster": "prod-eu", "https://10.0.0.1": "prod-eu"}, got.ArgoCD[0].Clusters.Aliases()); diff != "" {
		t.Errorf("what its clusters are called (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(got.Store.Reveal(), "sqlite://") {
		t.Errorf("the store is %s", got.Store.Reveal())
	}
	if owner, name := got.Repositories[0].Split(); owner != "acme" || name != "fleet" {
		t.Errorf("the repository is %s and %s", owner, name)
	}
}

// small is a valid file that the tests below change a part of.
const small = `forges:
  - name: hub
    type: github
    auth: {token: "${GITHUB_TOKEN}"}
    webhookSecrets: ["${WEBHOOK_SECRET}"]
repositories:
  - forge: hub
    name: acme/fleet
argocd:
  - name: hub
`

func write(t *testing.T, folder, name, content string) string {
	t.Helper()
	file := filepath.Join(folder, name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func load(t *testing.T, content string) (*Config, error) {
	t.Helper()
	return Load(write(t, t.TempDir(), "liftlock.yaml", content), environment)
}

func TestDefaults(t *testing.T) {
	got, err := load(t, small)
	if err != nil {
		t.Fatal(err)
	}
	if got.Listen != "127.0.0.1:8080" || got.DataDir != "./data" || got.SweepInterval != 5*time.Minute {
		t.Errorf("the server's defaults are %+v", got)
	}
	if got.Store.Reveal() != "sqlite://data/liftlock.db" {
		t.Errorf("the default store is %s", got.Store.Reveal())
	}
	if r := got.Repositories[0]; r.Branch != "main" || r.PollInterval != 3*time.Minute || r.ManageWebhooks {
		t.Errorf("a repository's defaults are %+v", r)
	}
	if diff := cmp.Diff(ArgoCD{
		Name: "hub", Kubernetes: Kubernetes{Namespaces: []string{"argocd"}}, Refresh: "annotation", Render: "local", Globbing: "git",
	}, got.ArgoCD[0]); diff != "" {
		t.Errorf("an Argo CD's defaults (-want +got):\n%s", diff)
	}
}

// TestReadAccess holds that a server that can be reached from other machines isn't read by
// everybody unless its file says so.
func TestReadAccess(t *testing.T) {
	for lines, want := range map[string]string{
		"":                                       ReadOpen,
		"listen: localhost:80\n":                 ReadOpen,
		"listen: \"[::1]:80\"\n":                 ReadOpen,
		"listen: :8080\n":                        ReadToken,
		"listen: 0.0.0.0:8080\n":                 ReadToken,
		"listen: 192.0.2.1:8080\n":               ReadToken,
		"listen: liftlock.example:8080\n":        ReadToken,
		"listen: :8080\nreadAccess: open\n":      ReadOpen,
		"webhooks: {listen: \"0.0.0.0:8081\"}\n": ReadOpen,
	} {
		got, err := load(t, small+lines)
		if err != nil || got.ReadAccess != want {
			t.Errorf("%q gives %v, %v; want %s", lines, got, err, want)
		}
	}
}

func TestHostsAndProxies(t *testing.T) {
	got, err := load(t, small+"listen: Console.example:80\nexternalURL: https://LIFTLOCK.example/x/\nwebhooks: {externalURL: \"https://hooks.example:8443/\"}\nhosts: [Liftlock.svc]\ntrustedProxies: [10.1.0.0/16, \"fd00::1\"]\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"liftlock.example", "hooks.example", "console.example", "liftlock.svc"}, got.HostNames()); diff != "" {
		t.Errorf("the names (-want +got):\n%s", diff)
	}
	if r := got.ProxyRanges(); len(r) != 2 || r[0].String() != "10.1.0.0/16" || r[1].String() != "fd00::1/128" {
		t.Errorf("the proxies are %v", r)
	}
	if got.Webhooks.ExternalURL != "https://hooks.example:8443" {
		t.Errorf("the webhooks are at %s", got.Webhooks.ExternalURL)
	}
}

func TestFinders(t *testing.T) {
	c := &Config{Forges: []Forge{{Name: "hub"}}, ArgoCD: []ArgoCD{{Name: "one"}, {Name: "two"}}}
	if c.ForgeByName("hub") != &c.Forges[0] || c.ForgeByName("bub") != nil {
		t.Error("the forge was not found by its name")
	}
	if c.ArgoCDByName("two") != &c.ArgoCD[1] || c.ArgoCDByName("") != &c.ArgoCD[0] || c.ArgoCDByName("three") != nil {
		t.Error("the Argo CD was not found by its name, or the first one by none")
	}
}

func TestFloorApprovals(t *testing.T) {
	c := &Config{Floor: []Floor{
		{Environments: []string{"prod*", "stage"}, Approvals: &policies.Approvals{Count: 1}},
		{Environments: []string{"prod-eu"}, Approvals: &policies.Approvals{Count: 3}},
	}}
	for environment, want := range map[string][]int{"dev": nil, "stage": {1}, "prod": {1}, "prod-us": {1}, "prod-eu": {1, 3}} {
		var got []int
		for _, a := range c.FloorApprovals(environment) {
			got = append(got, a.Count)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s needs %d approvals, want %d", environment, got, want)
		}
	}
}

func TestFreezesOf(t *testing.T) {
	c := &Config{Freezes: []Freeze{
		{Environments: []string{"prod*", "stage"}, From: "2026-12-20", To: "2027-01-03", Timezone: "UTC", Reason: "holidays"},
		{Environments: []string{"prod-eu"}, From: "2026-11-01T00:00:00Z", To: "2026-11-02T00:00:00Z"},
	}}
	for environment, want := range map[string]int{"dev": 0, "stage": 1, "prod": 1, "prod-eu": 2} {
		if got := c.FreezesOf(environment); len(got) != want || want > 0 && got[0].Reason != "holidays" {
			t.Errorf("%s has the freezes %v", environment, got)
		}
	}
}

func TestSecretFiles(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "token", githubToken+"\n")
	write(t, folder, "hooks", "first-private\n\n  second-private\r\n")
	write(t, folder, "ci", ciToken)
	store := write(t, folder, "store", "postgres://liftlock:pa55word@db.example.com/liftlock\n")
	file := write(t, folder, "liftlock.yaml", `storeFile: `+store+`
forges:
  - name: hub
    type: gitea
    url: http://gitea.example.com/
    auth: {tokenFile: token}
    webhookSecretsFile: ./hooks
repositories: [{forge: hub, name: acme/fleet}]
argocd: [{name: hub, kubernetes: {kubeconfig: hub.kubeconfig}, api: {url: "https://argocd.example.com", tokenFile: token, caFile: ca.pem}, render: argocd}]
api: {tokens: [{name: ci, role: breakglass, tokenFile: ci}]}
`)
	got, err := Load(file, environment)
	if err != nil {
		t.Fatal(err)
	}
	if got.Forges[0].Auth.Token != githubToken || got.API.Tokens[0].Token != ciToken {
		t.Error("a token is not what its file holds")
	}
	if diff := cmp.Diff([]Secret{"first-private", "second-private"}, got.Forges[0].WebhookSecrets); diff != "" {
		t.Error("the webhook secrets are not the lines of their file")
	}
	if !strings.HasPrefix(got.Store.Reveal(), "postgres") || !strings.Contains(got.Store.Reveal(), "pa55word") {
		t.Error("the store is not what its file holds")
	}
	if want := filepath.Join(folder, "hub.kubeconfig"); got.ArgoCD[0].Kubernetes.Kubeconfig != want {
		t.Errorf("the kubeconfig is %s, want %s", got.ArgoCD[0].Kubernetes.Kubeconfig, want)
	}
	if got.ArgoCD[0].Render != RenderArgoCD {
		t.Errorf("manifests are rendered by %s", got.ArgoCD[0].Render)
	}
	if a := got.ArgoCD[0].API; a.Token != githubToken || a.CAFile != filepath.Join(folder, "ca.pem") {
		t.Errorf("the API's token is not what its file holds, or its authority's file is %s", a.CAFile)
	}
}

// TestGitLab has a project in a group of a group, and no address: that is gitlab.com.
func TestGitLab(t *testing.T) {
	ofGitLab := strings.Replace(small, "type: github", "type: gitlab", 1)
	for name, want := range map[string][2]string{
		"acme/fleet":         {"acme", "fleet"},
		"acme/ops/fleet":     {"acme/ops", "fleet"},
		"acme/ops/eu/a.b-_c": {"acme/ops/eu", "a.b-_c"},
	} {
		got, err := load(t, strings.Replace(ofGitLab, "acme/fleet", name, 1))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if owner, own := got.Repositories[0].Split(); got.Forges[0].Type != GitLab || owner != want[0] || own != want[1] {
			t.Errorf("%s is %s and %s", name, owner, own)
		}
	}
	for _, name := range []string{"fleet", "acme//fleet", "acme/ops/", "/acme/fleet", "acme/../fleet", "acme/ops/..", strings.Repeat("a/", 21) + "fleet"} {
		_, err := load(t, strings.Replace(ofGitLab, "acme/fleet", name, 1))
		if err == nil || !strings.Contains(err.Error(), "write it as group/project or group/subgroup/project") {
			t.Errorf("%s: %v", name, err)
		}
	}
	limited, err := load(t, strings.Replace(ofGitLab, "    auth", "    limits: {newNotesPerMinute: 60, projectReadsPerMinute: 0}\n    auth", 1))
	if err != nil {
		t.Fatal(err)
	}
	if l := limited.Forges[0].Limits; l.NewNotes == nil || *l.NewNotes != 60 || l.ProjectReads == nil || *l.ProjectReads != 0 {
		t.Errorf("the limits are %+v", l)
	}
	_, err = load(t, strings.Replace(ofGitLab, "    auth", "    limits: {newNotesPerMinute: -1}\n    auth", 1))
	if err == nil || !strings.Contains(err.Error(), "forges[0].limits.newNotesPerMinute: is less than 0") {
		t.Errorf("less than none: %v", err)
	}
	_, err = load(t, strings.Replace(small, "acme/fleet", "acme/ops/fleet", 1))
	if err == nil || !strings.Contains(err.Error(), "write it as owner/name") {
		t.Errorf("a group in a group on GitHub: %v", err)
	}
}

func TestRefused(t *testing.T) {
	// Each case changes the small file: old is replaced by new, or new is added
	// at the end. The message is the whole of what must be said, without the
	// folder of the file.
	tests := map[string]struct {
		old, new string
		want     []string
	}{
		"an unknown key":           {"", "listn: 127.0.0.1:80\n", []string{`11: unknown key "listn"; did you mean "listen"?`}},
		"a missing variable":       {"GITHUB_TOKEN", "NO_TOKEN", []string{`4: forges[0].auth.token: the environment variable NO_TOKEN is not set`}},
		"an empty token":           {"GITHUB_TOKEN", "EMPTY", []string{`4: forges[0].auth.token: the token is empty`}},
		"no token":                 {`{token: "${GITHUB_TOKEN}"}`, "{}", []string{`4: forges[0].auth: token or tokenFile is missing`}},
		"a token twice":            {`"}`, `", tokenFile: x}`, []string{`4: forges[0].auth.tokenFile: token is given too; keep one of them`}},
		"an App without a key":     {`{token: "${GITHUB_TOKEN}"}`, `{app: {id: 1}}`, []string{`4: forges[0].auth.app: privateKeyFile is missing: the private key that the App's page gives once`}},
		"an App without a file":    {`{token: "${GITHUB_TOKEN}"}`, `{app: {id: 1, privateKeyFile: key.pem}}`, []string{`4: forges[0].auth.app.privateKeyFile: can't read FOLDER/key.pem: no such file or directory`}},
		"an App without a number":  {`{token: "${GITHUB_TOKEN}"}`, `{app: {privateKeyFile: key.pem}}`, []string{`4: forges[0].auth.app: id or clientID is missing: the App's page has both`, `4: forges[0].auth.app.privateKeyFile: can't read FOLDER/key.pem: no such file or directory`}},
		"an App and a token":       {`"}`, `", app: {id: 1, clientID: Iv1}}`, []string{`4: forges[0].auth.app: a token is given too; keep one of them`, `4: forges[0].auth.app: privateKeyFile is missing: the private key that the App's page gives once`, `4: forges[0].auth.app.clientID: id is given too; keep one of them`}},
		"another owner's App":      {`{token: "${GITHUB_TOKEN}"}`, `{app: {id: 1, installations: [globex]}}`, []string{`4: forges[0].auth.app: privateKeyFile is missing: the private key that the App's page gives once`, `8: repositories[0].name: acme isn't among the installations of the forge's App`}},
		"an unusable token":        {`"${GITHUB_TOKEN}"`, `"pri vate"`, []string{`4: forges[0].auth.token: the token holds a space or a character that can't be sent`}},
		"no webhook secrets":       {"    webhookSecrets: [\"${WEBHOOK_SECRET}\"]\n", "", []string{`2: forges[0].webhookSecrets: at least one secret is needed; what isn't signed can't be believed`}},
		"a short webhook secret":   {"WEBHOOK_SECRET", "SHORT", []string{`5: forges[0].webhookSecrets[0]: the secret is shorter than 8 characters`}},
		"a forge's bad name":       {"- name: hub\n    type", "- name: Hub\n    type", []string{`2: forges[0].name: "Hub" is not a name; use at most 63 lower-case letters, digits and hyphens, and no hyphen first`, `7: repositories[0].forge: there is no forge "hub"; did you mean "Hub"?`}},
		"another type":             {"github", "githb", []string{`3: forges[0].type: "githb" is not one of github, gitea, gitlab; did you mean "github"?`}},
		"gitea without a url":      {"github", "gitea", []string{`2: forges[0]: url is missing: where this Gitea is, like https://gitea.example.com`}},
		"credentials in a url":     {"    type", "    url: https://x:pa55word@example.com\n    type", []string{`3: forges[0].url: holds a user name or password; give credentials under their own keys`}},
		"GitHub's limits":          {"    type", "    limits: {newNotesPerMinute: 1}\n    type", []string{`3: forges[0].limits: only GitLab has limits that have to be written here; the others' are known`}},
		"a forge's no file":        {"    type", "    url: https://example.com\n    caFile: \"\"\n    type", []string{`4: forges[0].caFile: the path of a file is missing`}},
		"a Gitea's public limits":  {"type: github", "type: gitea\n    url: https://example.com\n    publicLimits: true", []string{`5: forges[0].publicLimits: there is no public Gitea whose limits would be known; leave it out`}},
		"a plain forge's file":     {"    type", "    url: http://example.com\n    caFile: ca.pem\n    type", []string{`4: forges[0].caFile: url is http://, which shows no certificate: leave caFile out, or write https://`}},
		"not a url":                {"    type", "    url: pa55word\n    type", []string{`3: forges[0].url: must be an address like https://liftlock.example.com`}},
		"GitHub's pages":           {"    type", "    url: https://github.com\n    type", []string{`3: forges[0].url: these are GitHub's pages; its API is at https://api.github.com, which is the default: leave url out`}},
		"an enterprise's pages":    {"    type", "    url: https://acme.ghe.com\n    type", []string{`3: forges[0].url: these are GitHub's pages; the API is at https://api.acme.ghe.com`}},
		"an unknown forge":         {"forge: hub", "forge: hob", []string{`7: repositories[0].forge: there is no forge "hob"; did you mean "hub"?`}},
		"not a repository":         {"acme/fleet", "fleet", []string{`8: repositories[0].name: "fleet" is not a repository; write it as owner/name`}},
		"a climbing repository":    {"acme/fleet", "acme/..", []string{`8: repositories[0].name: "acme/.." is not a repository; write it as owner/name`}},
		"a repository twice":       {"argocd:", "  - {forge: hub, name: Acme/Fleet}\nargocd:", []string{`9: repositories[1].name: Acme/Fleet is already repositories[0]`}},
		"a strange branch":         {"name: acme/fleet", "name: acme/fleet\n    branch: -f", []string{`9: repositories[0].branch: "-f" is not a branch's name`}},
		"hooks without address":    {"name: acme/fleet", "name: acme/fleet\n    manageWebhooks: true", []string{`9: repositories[0].manageWebhooks: needs externalURL, the address that the forge sends events to`}},
		"polling always":           {"name: acme/fleet", "name: acme/fleet\n    pollInterval: 0s", []string{`9: repositories[0].pollInterval: must be at least 1s; it is 0s`}},
		"an interval's unit":       {"name: acme/fleet", "name: acme/fleet\n    pollInterval: 3", []string{`9: repositories[0].pollInterval: expected a duration such as 90s, 15m or 1h30m, found a whole number`}},
		"no Argo CD":               {"argocd:\n  - name: hub\n", "", []string{`1: argocd: at least one Argo CD is needed`}},
		"an Argo CD twice":         {"", "  - name: hub\n", []string{`11: argocd[1].name: "hub" is already argocd[0]`}},
		"by annotation, no access": {"", "    api: {url: https://argocd.example.com, token: \"${CI_TOKEN}\"}\n    refresh: annotation\n", []string{`12: argocd[0].refresh: needs kubernetes; without it, use api or off`}},
		"a namespace twice":        {"", "    kubernetes: {}\n    api:\n      url: https://argocd.example.com\n      token: \"${CI_TOKEN}\"\n      namespace: argocd\n", []string{`15: argocd[0].api.namespace: kubernetes is given too, whose first namespace is Argo CD's own`}},
		"projects with kubernetes": {"", "    kubernetes: {}\n    api:\n      url: https://argocd.example.com\n      token: \"${CI_TOKEN}\"\n      projects: [shop]\n", []string{`15: argocd[0].api.projects: kubernetes is given too, by which Applications are watched`}},
		"the API's namespace":      {"", "    api: {url: https://argocd.example.com, token: \"${CI_TOKEN}\", namespace: A, projects: [\"\"]}\n", []string{`11: argocd[0].api.namespace: "A" is not a namespace's name`, `11: argocd[0].api.projects[0]: "" is not a project's name`}},
		"Argo CD's API, no token":  {"", "    kubernetes: {}\n    api: {url: https://argocd.example.com}\n", []string{`12: argocd[0].api: token or tokenFile is missing: of an account with apiKey, or of a project's role`}},
		"Argo CD's API, a word":    {"", "    kubernetes: {}\n    api: {url: argocd, token: \"${CI_TOKEN}\"}\n", []string{`12: argocd[0].api.url: must be an address like https://liftlock.example.com`}},
		"Argo CD's API, no text":   {"", "    kubernetes: {}\n    api:\n      url: https://argocd.example.com\n      token: \"\"\n", []string{`14: argocd[0].api.token: the token is empty`}},
		"Argo CD's API, letters":   {"", "    kubernetes: {}\n    api:\n      url: https://argocd.example.com\n      token: \"a b\"\n", []string{`14: argocd[0].api.token: the token holds a space or a character that can't be sent`}},
		"Argo CD's API, no file":   {"", "    kubernetes: {}\n    api:\n      url: https://argocd.example.com\n      token: \"${CI_TOKEN}\"\n      caFile: \"\"\n", []string{`15: argocd[0].api.caFile: the path of a file is missing`}},
		"Argo CD's API, anybody":   {"", "    kubernetes: {}\n    api:\n      url: https://argocd.example.com\n      token: \"${CI_TOKEN}\"\n      caFile: ca.pem\n      insecure: true\n", []string{`16: argocd[0].api.insecure: caFile is given too, which says whose certificates are believed; keep one of them`}},
		"refresh by API":           {"", "    refresh: api\n", []string{`11: argocd[0].refresh: needs api, the address and the token of Argo CD's own`}},
		"rendering without API":    {"", "    render: argocd\n", []string{`11: argocd[0].render: needs api, by which Argo CD is asked for manifests`}},
		"another rendering":        {"", "    render: remote\n", []string{`11: argocd[0].render: "remote" is not one of local, argocd`}},
		"another globbing":         {"", "    globbing: bash\n", []string{`11: argocd[0].globbing: "bash" is not one of git, doublestar`}},
		"another policy":           {"", "    applicationSetPolicy: none\n", []string{`11: argocd[0].applicationSetPolicy: "none" is not one of sync, create-only, create-update, create-delete`}},
		"only an override":         {"", "    applicationSetPolicyOverride: true\n", []string{`11: argocd[0].applicationSetPolicyOverride: needs applicationSetPolicy: without one each ApplicationSet's own policy counts anyway`}},
		"a version":                {"", "    version: newest\n", []string{`11: argocd[0].version: "newest" is no version of Argo CD; v3.5.7 is one, and 3.5 names its line`}},
		"no clusters' file":        {"", "    clusters: {file: \"\"}\n", []string{`11: argocd[0].clusters.file: the path of a file is missing`}},
		"clusters in a word":       {"", "    clusters: live\n", []string{`11: argocd[0].clusters: expected a mapping with keys such as alias, file, live, found text`}},
		"clusters' names": {"", "    clusters:\n      alias:\n        in-cluster: [a]\n        b: []\n        c: [a, in-cluster, \"https://10.0.0.1/\"]\n        d: [\"https://10.0.0.1\", \"https://kubernetes.default.svc\", \"\"]\n        e f: [x]\n        g: h\n", []string{
			`13: argocd[0].clusters.alias.in-cluster: each Argo CD calls the cluster so that it runs in; call it something that is one cluster's among all of them`, `13: argocd[0].clusters.alias.in-cluster[0]: "a" is already called c`, `14: argocd[0].clusters.alias.b: at least one name or address of a cluster is needed`,
			`16: argocd[0].clusters.alias.d[0]: "https://10.0.0.1" is already called c`, `16: argocd[0].clusters.alias.d[1]: "https://kubernetes.default.svc" is already called c`,
			`16: argocd[0].clusters.alias.d[2]: "" is neither the name nor the address of a cluster`, `17: argocd[0].clusters.alias.e f: "e f" can't be what a cluster is called`, `18: argocd[0].clusters.alias.g: expected a list, found text; begin each item with a dash: - h`}},
		"no namespaces":         {"", "    kubernetes: {namespaces: []}\n", []string{`11: argocd[0].kubernetes.namespaces: at least one namespace is needed`}},
		"a namespace's name":    {"", "    kubernetes: {namespaces: [argocd, argocd, Argo]}\n", []string{`11: argocd[0].kubernetes.namespaces[1]: "argocd" is given twice`, `11: argocd[0].kubernetes.namespaces[2]: "Argo" is not a namespace's name`}},
		"a role":                {"", "api: {tokens: [{name: ci, role: admin, token: \"${CI_TOKEN}\"}]}\n", []string{`11: api.tokens[0].role: "admin" is not one of viewer, operator, breakglass`}},
		"a short API token":     {"", "api: {tokens: [{name: ci, role: viewer, token: \"${SHORT}\"}]}\n", []string{`11: api.tokens[0].token: the token is shorter than 16 characters; make one with: openssl rand -hex 32`}},
		"no API token":          {"", "api: {tokens: [{name: ci, role: viewer}]}\n", []string{`11: api.tokens[0]: token or tokenFile is missing`}},
		"one API token for two": {"", "api:\n  tokens:\n  - {name: ci, role: viewer, token: \"${CI_TOKEN}\"}\n  - {name: cd, role: operator, token: \"${CI_TOKEN}\"}\n", []string{`14: api.tokens[1].token: is the same as that of "ci"; whose it is could not be told`}},
		"an API token's file":   {"", "api: {tokens: [{name: ci, role: viewer, tokenFile: none}]}\n", []string{`11: api.tokens[0].tokenFile: can't read FOLDER/none: no such file or directory`}},
		"channels": {"", "channels:\n  - {name: a, type: pager, url: ftp://private}\n  - {name: a, type: slack, url: \"https://x.example\", secret: \"${CI_TOKEN}\"}\n  - {name: b, type: webhook}\n  - {name: c, type: webhook, url: \"https://x.example\", secret: \"${CI_TOKEN}\"}\n",
			[]string{`12: channels[0].type: "pager" is not one of webhook, slack, teams`, `12: channels[0].url: is not an address that begins with https:// (or http://)`, `13: channels[1]: a channel of the type slack has no secret: its address is one`, `13: channels[1].name: "a" is already channels[0]`,
				`14: channels[2]: secret or secretFile is missing: what messages are signed with; make one with: echo whsec_$(openssl rand -base64 32)`, `14: channels[2]: url or urlFile is missing: where messages are posted`, `15: channels[3].secret: is not whsec_ and a key of at least 24 bytes in base64; make one with: echo whsec_$(openssl rand -base64 32)`}},
		"an endpoint": {"", "endpoints:\n  - {name: a, url: x, secret: \"${SHORT}\"}\n  - {name: a, url: \"https://x?y\"}\n  - {name: c, url: \"https://x\", secretFile: none, authorization: \"x\\ny\"}\n",
			[]string{`12: endpoints[0].url: must be an address like https://liftlock.example.com`, `12: endpoints[0].secret: the secret is shorter than 16 characters; make one with: openssl rand -hex 32`, `13: endpoints[1]: secret or secretFile is missing: what requests and callbacks are signed with`, `13: endpoints[1].name: "a" is already endpoints[0]`, `13: endpoints[1].url: must not have a ? or # part`, `14: endpoints[2].secretFile: can't read FOLDER/none: no such file or directory`, `14: endpoints[2].authorization: holds a character that can't be sent`}},
		"a Prometheus": {"", "prometheus:\n  - {name: a, url: \"http://u:private@x\", bearerToken: x, username: y}\n  - {name: a, url: x, username: \"y:z\", tls: {certFile: x, caFile: y, insecure: true}}\n  - {name: c, url: \"https://x\", bearerToken: \"pri vate\"}\n  - {name: d, url: \"https://x\", bearerToken: \"\", tls: {caFile: \"\"}}\n  - {name: e, url: \"https://x\", username: \"y:z\", passwordFile: none}\n",
			[]string{`12: prometheus[0].url: holds a user name or password; give credentials under their own keys`, `12: prometheus[0].username: bearerToken is given too; keep one way to log in`, `13: prometheus[1]: username and password belong to each other; one of them is missing`, `13: prometheus[1].name: "a" is already prometheus[0]`, `13: prometheus[1].url: must be an address like https://liftlock.example.com`,
				`13: prometheus[1].tls: certFile and keyFile belong to each other; one of them is missing`, `13: prometheus[1].tls.insecure: caFile is given too, which says whose certificates are believed; keep one of them`, `14: prometheus[2].bearerToken: the token holds a space or a character that can't be sent`,
				`15: prometheus[3].bearerToken: the token is empty`, `15: prometheus[3].tls.caFile: the path of a file is missing`, `16: prometheus[4].username: must not have a colon`, `16: prometheus[4].passwordFile: can't read FOLDER/none: no such file or directory`}},
		"sources and charts": {"", "sources:\n  - {url: \"ssh://git.example/x\"}\n  - {url: \"https://git.example/x\", username: y}\n  - {url: \"https://git.example/x.git\"}\ncharts:\n  - {url: \"oci://no host/x\"}\n  - {url: \"https://charts.example/x\", hosts: [\"https://y.example\"]}\n",
			[]string{`12: sources[0].url: must be an address like https://liftlock.example.com`, `13: sources[1]: username and password belong to each other; one of them is missing`, `14: sources[2].url: is there twice: sources[1] has it too`,
				`16: charts[0].url: "no host" is no registry's host; write oci:// and the host as image names have it, like oci://ghcr.io/acme/charts`, `17: charts[1].hosts[0]: "https://y.example" is no host; write it like objects.example.com, maybe with a port`}},
		"a registry": {"", "registries:\n  - {host: \"https://ghcr.io\"}\n  - {host: ghcr.io, username: x}\n  - {host: GHCR.io, passwordFile: none}\n  - {username: x, password: y, tls: {keyFile: x}}\n  - {host: quay.io, webhookSecret: short}\n",
			[]string{`12: registries[0].host: "https://ghcr.io" is no registry's host; write it as image names have it, like ghcr.io or registry.example.com:5000`, `13: registries[1]: username and password belong to each other; one of them is missing`, `14: registries[2]: username and password belong to each other; one of them is missing`,
				`14: registries[2].host: is there twice: registries[1] has it too`, `14: registries[2].passwordFile: can't read FOLDER/none: no such file or directory`, `15: registries[3]: host is missing: the registry as image names have it, like ghcr.io`, `15: registries[3].tls: certFile and keyFile belong to each other; one of them is missing`,
				`16: registries[4].webhookSecret: the secret is shorter than 8 characters`}},
		"a freeze":                  {"", "freezes:\n  - {environments: [], from: 2026-12-20, to: 2026-12-20T01:00:00+02:00, timezone: UTC}\n  - {environments: [prod], to: 2026-12-20, reason: \"a\\nb\"}\n", []string{`12: freezes[0].environments: at least one glob on environments' names is needed`, `12: freezes[0].to: 2026-12-20T01:00:00+02:00 is not after from, 2026-12-20`, `13: freezes[1].from: is missing; write a date like 2026-12-20, or a time with its offset like 2026-12-20T18:00:00+01:00`, `13: freezes[1].timezone: is missing; write the zone like Europe/Berlin, or UTC`, `13: freezes[1].reason: must be one line`}},
		"a floor's glob":            {"", "floor: [{environments: [\"prod[\"], approvals: {count: 1}}]\n", []string{`11: floor[0].environments[0]: "prod[" is not a valid glob`}},
		"a floor of nothing":        {"", "floor: [{environments: [prod]}]\n", []string{`11: floor[0]: approvals is missing: what these environments need at least`}},
		"a floor of zero":           {"", "floor: [{environments: [], approvals: {count: 0}}]\n", []string{`11: floor[0].environments: at least one glob on environments' names is needed`, `11: floor[0].approvals.count: must be at least 1; it is 0`}},
		"a floor's people":          {"", "floor: [{environments: [prod], approvals: {count: 2, from: {users: [ada]}, maxAge: -1h}}]\n", []string{`11: floor[0].approvals.count: 2 approvals can't come from 1 person`, `11: floor[0].approvals.maxAge: must not be shorter than 0; it is -1h0m0s`}},
		"a database's file":         {"", "storeFile: none\n", []string{`11: storeFile: can't read FOLDER/none: no such file or directory`}},
		"a database twice":          {"", "store: sqlite://x\nstoreFile: none\n", []string{`12: storeFile: store is given too; keep one of them`}},
		"hook secrets twice":        {"    webhookS", "    webhookSecretsFile: x\n    webhookS", []string{`5: forges[0].webhookSecretsFile: webhookSecrets is given too; keep one of them`}},
		"hook secrets' file":        {`webhookSecrets: ["${WEBHOOK_SECRET}"]`, `webhookSecretsFile: ""`, []string{`5: forges[0].webhookSecretsFile: the path of a file is missing`}},
		"a query in a url":          {"", "externalURL: https://example.com?x=1\n", []string{`11: externalURL: must not have a ? or # part`}},
		"an API token's letters":    {"", "api: {tokens: [{name: ci, role: viewer, token: \"a token with spaces\"}]}\n", []string{`11: api.tokens[0].token: the token holds a space or a character that can't be sent`}},
		"no forge's name":           {"  - name: hub\n    type", "  - type", []string{`2: forges[0].name: a name is missing`, `6: repositories[0].forge: there is no forge "hub"`}},
		"a secret as a name":        {"forge: hub", "forge: ${CI_TOKEN}", []string{`7: repositories[0].forge: there is no forge "${CI_TOKEN}"`}},
		"a listen address":          {"", "listen: localhost\n", []string{`11: listen: "localhost" is not an address; write it like 127.0.0.1:8080`}},
		"a listen port":             {"", "listen: localhost:http\n", []string{`11: listen: "http" is not a port; it is a number up to 65535`}},
		"any port with a URL":       {"", "listen: localhost:0\nexternalURL: https://example.com\n", []string{`11: listen: with port 0 any free port is taken, which externalURL can't lead to; give a port`}},
		"another database":          {"", "store: ${BAD_DATABASE}\n", []string{`11: store: must be sqlite:// with the path of a file, or postgres:// with a host and a database`}},
		"no database file":          {"", "store: sqlite://\n", []string{`11: store: the path of a file is missing after sqlite://`}},
		"options of the database":   {"", "store: sqlite://x?mode=memory\n", []string{`11: store: sqlite:// takes only the path of a file`}},
		"no data folder":            {"", "dataDir: \"\"\n", []string{`11: dataDir: the path of a folder is missing`}},
		"sweeping always":           {"", "sweepInterval: 1ms\n", []string{`11: sweepInterval: must be at least 1s; it is 1ms`}},
		"webhooks at the same":      {"", "listen: 127.0.0.1:80\nwebhooks: {listen: \"127.0.0.1:80\"}\n", []string{`12: webhooks.listen: is the same as listen; without it, webhooks come in there`}},
		"webhooks anywhere":         {"", "webhooks: {listen: everywhere, externalURL: hooks}\n", []string{`11: webhooks.listen: "everywhere" is not an address; write it like 127.0.0.1:8080`, `11: webhooks.externalURL: must be an address like https://liftlock.example.com`}},
		"half a certificate":        {"", "tls: {certFile: x}\n", []string{`11: tls: needs both certFile and keyFile`}},
		"no certificate":            {"", "tls: {certFile: none, keyFile: none}\n", []string{`11: tls.certFile: can't read FOLDER/none: no such file or directory`}},
		"another certificate":       {"", "tls: {certFile: liftlock.yaml, keyFile: liftlock.yaml}\n", []string{`11: tls: the certificate can't be used: tls: failed to find any PEM data in certificate input`}},
		"hosts":                     {"", "hosts: [10.0.0.1, \"https://a.example\", \"a.example:80\", A.example]\n", []string{`11: hosts[0]: "10.0.0.1" is an address; those are always answered`, `11: hosts[1]: "https://a.example" is not a host's name; write it without https:// and port`, `11: hosts[2]: "a.example:80" is not a host's name; write it without https:// and port`}},
		"proxies":                   {"", "trustedProxies: [10.0.0.0/8, proxy, 10.0.0.1]\n", []string{`11: trustedProxies[1]: "proxy" is neither an IP address nor a range like 10.0.0.0/8`}},
		"another read access":       {"", "readAccess: all\n", []string{`11: readAccess: "all" is not one of open, token`}},
		"an unknown key of readers": {"", "access: [{repositories: [acme/*], tokens: [], readers: [ada]}]\n", []string{`11: access[0]: unknown key "readers"; there are forge, groups, repositories, tokens`}},
		"readers who aren't": {"", "access:\n- {repositories: [acme/*], tokens: [ci], groups: [sre], forge: true}\n- {repositories: [acme/flet, \"[\"]}\n- {tokens: []}\n", []string{
			`12: access[0].tokens[0]: there is no token "ci" under api.tokens`, `12: access[0].groups: nobody logs in: oidc is missing`, `12: access[0].forge: nobody's account is known: oidc.accounts is missing`,
			`13: access[1]: names no reader: groups, tokens or forge: true is missing`, `13: access[1].repositories[0]: "acme/flet" names none of the repositories in this file, so that it keeps nobody out; write it like acme/fleet, acme/* or acme/** for groups in groups`, `13: access[1].repositories[1]: "[" is no glob`,
			`14: access[2].repositories: at least one glob on repositories' names is needed`, `14: access[2]: names no reader: groups, tokens or forge: true is missing`}},
		"an empty login": {"", "oidc: {clientSecret: \"\", groupsClaim: \"\"}\n", []string{`11: oidc.issuer: must be an address like https://liftlock.example.com`, `11: oidc: clientID is missing: what the provider calls Liftlock`, `11: oidc: externalURL is missing: the provider sends browsers back to it, at /login/callback`,
			`11: oidc: roles is missing: which groups are viewer, operator or breakglass; without any nobody could log in`, `11: oidc.clientSecret: the secret is empty; leave the key out for a public client`, `11: oidc.groupsClaim: the claim's name is missing`}},
		"a login without TLS": {"", "externalURL: http://liftlock.example.com\noidc: {issuer: \"http://dex.example.com\", clientID: x, roles: {operator: [sre]}}\n", []string{`11: externalURL: must begin with https:// where people log in: browsers keep the session's cookie only then`,
			`12: oidc.issuer: must begin with https:// where people log in: ID tokens are believed as they come from there`}},
		"roles of everybody": {"", "externalURL: http://localhost:8080\noidc: {issuer: \"http://127.0.0.1:5556/dex\", clientID: x, scopes: [\"a b\"], roles: {viewer: [\"*\"], operator: [\"*\", sre, sre], breakglass: [\" \"]}, sessions: {idle: 1s, lifetime: 9999h}}\n", []string{`12: oidc.scopes[0]: "a b" is no scope`,
			`12: oidc.roles.operator[0]: "*" is everybody who can log in; only the role viewer can be everybody's`, `12: oidc.roles.operator[2]: is there twice`, `12: oidc.roles.breakglass[0]: the group's name is missing`,
			`12: oidc.sessions.idle: must be between 5m0s and 720h0m0s`, `12: oidc.sessions.lifetime: must be between 5m0s and 720h0m0s`}},
		"accounts of nobody": {"", "externalURL: http://localhost:8080\noidc: {issuer: \"http://127.0.0.1:5556/dex\", clientID: x, roles: {operator: [sre]}, accounts: {hob: nickname, hub: \" \"}}\n", []string{
			`12: oidc.accounts.hob: there is no forge hob under forges`, `12: oidc.accounts.hub: the claim's name is missing: which one has the login on hub`}},
		"several things": {"github", "svn\n    shell: true", []string{`3: forges[0].type: "svn" is not one of github, gitea, gitlab`, `4: forges[0]: unknown key "shell"; there are auth, caFile, limits, name, publicLimits, type, url, webhookSecrets, webhookSecretsFile`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			content := small + test.new
			if test.old != "" {
				if !strings.Contains(small, test.old) {
					t.Fatalf("the small file has no %q", test.old)
				}
				content = strings.Replace(small, test.old, test.new, 1)
			}
			folder := t.TempDir()
			file := write(t, folder, "liftlock.yaml", content)
			_, err := Load(file, environment)
			if err == nil {
				t.Fatal("no error")
			}
			var want []string
			for _, w := range test.want {
				want = append(want, "FOLDER/liftlock.yaml:"+w)
			}
			got := strings.Split(strings.ReplaceAll(err.Error(), folder, "FOLDER"), "\n")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the errors (-want +got):\n%s", diff)
			}
			if again := ValidateFile(file, environment); again == nil || again.Error() != err.Error() {
				t.Errorf("ValidateFile says %v", again)
			}
			for _, private := range []string{githubToken, webhookSecret, ciToken, "pa55word", "pri vate"} {
				if strings.Contains(err.Error(), private) {
					t.Errorf("the error shows the secret %s", private)
				}
			}
		})
	}
}

func TestSecretFilesRefused(t *testing.T) {
	tests := map[string]struct{ file, content, want string }{
		"empty":     {"token", " \n", "forges[0].auth.tokenFile: FOLDER/token is empty"},
		"two lines": {"token", "private\nprivate", "forges[0].auth.tokenFile: the file holds more than one line"},
		"huge":      {"token", strings.Repeat("x", maxSecretFile+1), "forges[0].auth.tokenFile: FOLDER/token is larger than 65536 bytes; is it the right file?"},
		"missing":   {"other", "private", "forges[0].auth.tokenFile: can't read FOLDER/token: no such file or directory"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder, test.file, test.content)
			file := write(t, folder, "liftlock.yaml", strings.Replace(small, `{token: "${GITHUB_TOKEN}"}`, "{tokenFile: token}", 1))
			_, err := Load(file, environment)
			if err == nil {
				t.Fatal("no error")
			}
			if got, want := strings.ReplaceAll(err.Error(), folder, "FOLDER"), "FOLDER/liftlock.yaml:4: "+test.want; got != want {
				t.Errorf("the error is\n%s, want\n%s", got, want)
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml"), environment); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
	for name, test := range map[string]struct{ content, want string }{
		"empty":         {"# nothing\n", "the file is empty"},
		"two documents": {small + "---\n" + small, "a second document"},
		"not YAML":      {"a: b: c\n", "not valid YAML"},
	} {
		_, err := load(t, test.content)
		var errs strictyaml.Errors
		if !errors.As(err, &errs) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSecretIsNeverShown(t *testing.T) {
	const private = "private-0001"
	s := Secret(private)
	holder := struct {
		Inner *Secret
		All   []Secret
		One   Secret
	}{&s, []Secret{s}, s}
	var seen []string
	for _, verb := range []string{"%s", "%v", "%+v", "%#v", "%q", "%x", "%X", "%d", "%10s", "%t"} {
		seen = append(seen, fmt.Sprintf(verb, s), fmt.Sprintf(verb, &s), fmt.Sprintf(verb, []Secret{s}), fmt.Sprintf(verb, holder))
	}
	asJSON, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zapcore.DebugLevel)
	zap.New(core).Info("secrets", zap.Any("any", s), zap.Any("all", holder), zap.Stringer("stringer", s), zap.Reflect("reflect", holder))
	encoded, err := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()).EncodeEntry(logs.All()[0].Entry, logs.All()[0].Context)
	if err != nil {
		t.Fatal(err)
	}
	seen = append(seen, string(asJSON), string(asYAML), encoded.String(), fmt.Sprint(fmt.Errorf("token %s", s)))
	for _, text := range seen {
		if strings.Contains(text, private) || strings.Contains(text, fmt.Sprintf("%x", private)) {
			t.Errorf("the secret is shown: %s", text)
		}
	}
	if s.Reveal() != private {
		t.Error("Reveal doesn't give the secret")
	}
}

func FuzzParse(f *testing.F) {
	sample, err := os.ReadFile("testdata/liftlock.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sample)
	f.Add([]byte(small))
	f.Add([]byte("store: postgres://u:${DATABASE}@h/d\nforges: [{name: ${CI_TOKEN}, url: \"${DATABASE}\"}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if strings.Contains(string(data), "File") {
			t.Skip("would read files of the machine")
		}
		config, _, err := parseConfig("f", data, environment)
		var errs strictyaml.Errors
		if (config == nil) != (err != nil) || err != nil && !errors.As(err, &errs) {
			t.Fatalf("%v and the error %v", config, err)
		}
		if config != nil && (len(config.Forges) == 0 || len(config.Forges[0].WebhookSecrets) == 0 || config.Forges[0].Auth.Token == "") {
			t.Fatalf("accepted %+v", config)
		}
	})
}

// TestSecretsInClear holds that a secret in the server's file itself is warned of, and not shown.
func TestSecretsInClear(t *testing.T) {
	folder := t.TempDir()
	for name, test := range map[string]struct {
		old, new string
		want     []string
	}{
		"by variables": {},
		"a token":      {"${GITHUB_TOKEN}", "ghp_0123456789abcdef", []string{"4: forges[0].auth.token: "}},
		"two":          {"[\"${WEBHOOK_SECRET}\"]", "[\"${WEBHOOK_SECRET}\", 0123456789abcdef]", []string{"5: forges[0].webhookSecrets[1]: "}},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(small, test.old) {
				t.Fatalf("the small file has no %q", test.old)
			}
			file := filepath.Join(folder, "liftlock.yaml")
			if err := os.WriteFile(file, []byte(strings.Replace(small, test.old, test.new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			found, err := FindWarnings(file, environment)
			if err != nil || len(found) != len(test.want) {
				t.Fatalf("%v, %v", found, err)
			}
			for i, w := range test.want {
				want := file + ":" + w + "the secret stands here in clear: write ${NAME}, and set that variable; or name a file that holds it"
				if found[i].Error() != want {
					t.Errorf("%s\nwant %s", found[i].Error(), want)
				}
			}
		})
	}
}

func TestApp(t *testing.T) {
	folder := t.TempDir()
	key := write(t, folder, "key.pem", "a key")
	text := strings.Replace(small, `{token: "${GITHUB_TOKEN}"}`, `{app: {clientID: Iv1.0123, privateKeyFile: key.pem, installations: [Acme], manageWebhook: true}}`, 1) + "externalURL: https://liftlock.example.com\n"
	got, err := Load(write(t, folder, "liftlock.yaml", text), func(string) (string, bool) { return "a-long-enough-secret", true })
	if err != nil {
		t.Fatal(err)
	}
	app := got.Forges[0].Auth.App
	if app == nil || app.PrivateKeyFile != key || app.Issuer() != "Iv1.0123" || !app.ManageWebhook {
		t.Errorf("%+v", app)
	}
	if n := (&App{ID: 12}).Issuer(); n != "12" {
		t.Errorf("a number's: %s", n)
	}
}
