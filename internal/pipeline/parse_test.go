package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/discover"
	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
	"github.com/liftlock/liftlock/policies"
)

func readSample(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("testdata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestParseSample(t *testing.T) {
	got, err := Parse("argo/.liftlock.yaml", []byte(readSample(t)))
	if err != nil {
		t.Fatal(err)
	}
	verify := Verify{
		ArriveWithin: Duration(15 * time.Minute), Timeout: Duration(10 * time.Minute), HealthyFor: Duration(time.Minute),
		Watch: Duration(30 * time.Minute), Debounce: Duration(30 * time.Second), Sync: "wait", Prune: "auto",
		QueueFor: Duration(24 * time.Hour), Suspended: "wait", SuspendedFor: Duration(24 * time.Hour), IgnoreMissingHealth: true, Runs: Runs{Images: "required"},
	}
	want := []*Pipeline{{
		APIVersion: APIVersion, Kind: Kind, Metadata: Metadata{Name: "shop"}, File: "argo/.liftlock.yaml",
		Spec: Spec{
			Mode: ModeAct, Adopt: "baseline", Layout: "directories", Batch: "component",
			ApplicationSets: []ApplicationSetSource{
				{Path: "argocd/*.yaml"},
				{Path: "argocd/legacy-prod.yaml", Environment: "prod", ArgoCD: "prod-hub"},
			},
			Component: "{{ index .path.segments 1 }}", Environment: "{{ .path.basename }}", Source: "acme/{{component}}@v{{value}}",
			Carry: []Carry{
				{KustomizeImages: []string{"registry.example/*"}, WhenAbsent: "refuse"},
				{YAML: &FieldPick{Files: []string{"values*.yaml"}, Paths: []string{"image.tag"}}, WhenAbsent: "refuse"},
				{JSON: &FieldPick{Files: []string{"config.json"}, Paths: []string{"releaseTag"}}, WhenAbsent: "add"},
				{Files: &FilePick{Include: []string{"config/**"}, Exclude: []string{"**/*.env.yaml"}}, WhenAbsent: "add"},
			},
			Merge:  Merge{Method: "merge"},
			Impact: Impact{FailOn: "nothing"},
			Limits: Limits{OpenPerEnvironment: 10, MergesPerHour: 20, RevertsPer10Minutes: 3},
			Environments: []Environment{
				{Name: "dev", Open: "auto", Merge: "manual", OnDegraded: OnDegraded{Action: "hold"}, Effect: EffectRequired, Verify: verify,
					Discover: []Discovery{{Image: "registry.example/*", Choose: discover.Choose{SemVer: ">=1.0.0 <2.0.0"}}}},
				{Name: "qa", After: []string{"dev"}, Open: "auto", Merge: "auto", OnDegraded: OnDegraded{Action: "revert"}, Effect: EffectRequired, Verify: verify},
				{
					Name: "prod", After: []string{"qa"}, Open: "auto", Merge: "auto", OnDegraded: OnDegraded{Action: "revert"}, Effect: EffectRequired, Verify: verify,
					Gates: []policies.Gate{{Approvals: &policies.Approvals{Count: 2, From: policies.From{Users: []string{"ada", "grace"}}}},
						{Window: &policies.Window{Cron: "0 9 * * MON-THU", Duration: 8 * time.Hour, Timezone: "Europe/Berlin"}},
						{Freeze: &policies.Freeze{From: "2026-12-20", To: "2027-01-03", Timezone: "Europe/Berlin", Reason: "holidays"}},
						{Soak: &policies.Soak{Environment: "qa", For: 2 * time.Hour}},
						{Settled: &policies.Settled{Drift: "block"}},
						{Checks: &policies.Checks{Require: []string{"ci/*"}, From: []string{"ci-bot"}}},
						{Metric: &policies.Metric{Prometheus: "main", Query: `sum(rate(errors_total{env="qa", version="{{ .tag }}"}[5m]))`, When: "value < 0.01", For: 10 * time.Minute, Every: time.Minute, OnEmpty: "wait"}},
						{HTTP: &policies.HTTP{Endpoint: "change-board", Every: 2 * time.Minute, Timeout: 10 * time.Second, MaxAge: 10 * time.Minute}},
						{Expression: new(policies.Expression(`size(release.images) > 0 && release.images.all(i, i.tag.matches("^v[0-9.]+$"))`))}},
				},
			},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got[0].Name() != "shop" {
		t.Errorf("the name is %s", got[0].Name())
	}
}

// minimalPipeline is a valid file that the tests below change a part of.
const minimalPipeline = `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  applicationSets:
    - path: argocd/*.yaml
  component: '{{ .name }}'
  environment: '{{ .env }}'
  carry:
    - kustomizeImages: ["*"]
  environments:
    - name: dev
    - name: qa
      after: [dev]
    - name: prod
      after: [qa]
`

func TestDefaults(t *testing.T) {
	got, err := Parse("p", []byte(minimalPipeline))
	if err != nil {
		t.Fatal(err)
	}
	s := got[0].Spec
	if s.Mode != ModeAct || s.Adopt != AdoptBaseline || s.Layout != LayoutDirectories || s.Batch != BatchComponent || s.Merge.Method != MethodMerge || s.Commands != "" {
		t.Errorf("the defaults are %+v", s)
	}
	if s.Limits != (Limits{10, 20, 3}) {
		t.Errorf("the limits are %+v", s.Limits)
	}
	if s.Carry[0].WhenAbsent != WhenAbsentRefuse {
		t.Errorf("what is absent: %s", s.Carry[0].WhenAbsent)
	}
	for _, e := range s.Environments {
		want := OnDegradedRevert
		if e.IsSource() {
			want = OnDegradedHold
		}
		if e.Open != Auto || e.Merge != Manual || e.OnDegraded != (OnDegraded{Action: want}) {
			t.Errorf("the defaults of %s are %+v", e.Name, e)
		}
	}
	changed, err := Parse("p", []byte(strings.Replace(minimalPipeline, "    - name: qa\n", "    - name: qa\n      verify: {watch: 2h}\n", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if v := changed[0].Spec.Environments[1].Verify; v.Watch.AsDuration() != 2*time.Hour || v.Timeout.AsDuration() != 10*time.Minute || v.Sync != SyncWait {
		t.Errorf("one time given changes the others' defaults: %+v", v)
	}
}

func TestLiveTargets(t *testing.T) {
	const live = `  applicationSets:
    - live: {argocd: hub, namespace: teams, name: shop.v2}
    - live: {name: other}
    - {path: argocd/*.yaml, argocd: prod-hub}
  applications:
    - live: {selector: "team=shop,tier notin (test)"}
      component: web
`
	got, err := Parse("p", []byte(strings.Replace(minimalPipeline, "  applicationSets:\n    - path: argocd/*.yaml\n", live, 1)))
	if err != nil {
		t.Fatal(err)
	}
	s := got[0].Spec
	if d := cmp.Diff([]ApplicationSetSource{
		{Live: &LiveApplicationSet{ArgoCD: "hub", Namespace: "teams", Name: "shop.v2"}},
		{Live: &LiveApplicationSet{Namespace: "argocd", Name: "other"}},
		{Path: "argocd/*.yaml", ArgoCD: "prod-hub"},
	}, s.ApplicationSets); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]ApplicationSource{{Live: &LiveApplications{Namespace: "argocd", Selector: "team=shop,tier notin (test)"}, Component: "web"}}, s.Applications); d != "" {
		t.Error(d)
	}
	for i, want := range []string{"hub", "", "prod-hub"} {
		if s.ApplicationSets[i].ArgoCDName() != want {
			t.Errorf("entry %d is run by %q, want %q", i, s.ApplicationSets[i].ArgoCDName(), want)
		}
	}
	alone := strings.Replace(minimalPipeline, "  applicationSets:\n    - path: argocd/*.yaml\n", "  applications: [{live: {selector: a}}]\n", 1)
	if _, err := Parse("p", []byte(alone)); err != nil {
		t.Errorf("Applications alone: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	const dev, qa, prod = "    - name: dev\n", "    - name: qa\n", "    - name: prod\n"
	// Each case replaces old by new in the small file, or adds new at its end.
	tests := map[string]struct {
		old, new string
		want     []string
	}{
		"another apiVersion":         {"v1alpha1", "v1", []string{`1: apiVersion: must be liftlock.dev/v1alpha1`}},
		"another kind":               {"kind: Pipeline\n", "", []string{`1: kind: must be Pipeline`}},
		"no name":                    {"{name: shop}", "{}", []string{`3: metadata.name: a name is missing`}},
		"a bad name":                 {"name: shop", "name: Shop/x", []string{`3: metadata.name: "Shop/x" is not a name; use lower-case letters, digits and hyphens, and no hyphen first`}},
		"a long name":                {"name: shop", "name: " + strings.Repeat("x", 64), []string{`3: metadata.name: the name is 64 characters long; at most 63`}},
		"an unknown key":             {"  carry:", "  merg: {method: squash}\n  carry:", []string{`9: spec: unknown key "merg"; did you mean "merge"?`}},
		"a mode":                     {"spec:\n", "spec:\n  mode: obsrve\n", []string{`5: spec.mode: "obsrve" is not one of act, observe; did you mean "observe"?`}},
		"a merge method":             {"spec:\n", "spec:\n  merge: {method: ff}\n", []string{`5: spec.merge.method: "ff" is not one of merge, squash, rebase`}},
		"limits":                     {"spec:\n", "spec:\n  limits: {openPerEnvironment: 0, mergesPerHour: -1}\n", []string{`5: spec.limits.openPerEnvironment: must be at least 1; it is 0`, `5: spec.limits.mergesPerHour: must be at least 1; it is -1`}},
		"what fails the check":       {"spec:\n", "spec:\n  impact: {failOn: many}\n", []string{`5: spec.impact.failOn: "many" is not one of nothing, several`}},
		"commands":                   {"spec:\n", "spec:\n  commands: \"\"\n", []string{`5: spec.commands: "" is not one of bare`}},
		"a source":                   {"spec:\n", "spec:\n  source: acme/web@main\n", []string{`5: spec.source: the revision "main" is always the same: write {{value}} where the carried value goes`}},
		"an empty source":            {"spec:\n", "spec:\n  source: \"\"\n", []string{`5: spec.source: "" is not a repository; write owner/repository@revision, like acme/{{component}}@v{{value}}`}},
		"adopting what":              {"spec:\n", "spec:\n  adopt: everything\n", []string{`5: spec.adopt: "everything" is not one of baseline, converge`}},
		"branches without any":       {"spec:\n", "spec:\n  layout: branches\n", []string{"13: spec.environments[0]: with layout: branches every environment needs its `branch`, such as env/dev", "14: spec.environments[1]: with layout: branches every environment needs its `branch`, such as env/qa", "16: spec.environments[2]: with layout: branches every environment needs its `branch`, such as env/prod"}},
		"a layout":                   {"spec:\n", "spec:\n  layout: branch\n", []string{`5: spec.layout: "branch" is not one of directories, branches; did you mean "branches"?`}},
		"a batch of nothing known":   {"spec:\n", "spec:\n  batch: envionment\n", []string{`5: spec.batch: "envionment" is not one of component, environment; did you mean "environment"?`}},
		"a nameless live set":        {"- path: argocd/*.yaml", "- live: {argocd: hub}", []string{`6: spec.applicationSets[0].live.name: a name is missing`}},
		"a live set's Argo CD":       {"- path: argocd/*.yaml", "- live: {argocd: Hub, name: shop}", []string{`6: spec.applicationSets[0].live.argocd: "Hub" is not a name; use lower-case letters, digits and hyphens, and no hyphen first`}},
		"a live set's names":         {"- path: argocd/*.yaml", "- live: {namespace: A, name: s_h}", []string{`6: spec.applicationSets[0].live.namespace: "A" is not a Kubernetes object's namespace: lower-case letters, digits, hyphens and dots`, `6: spec.applicationSets[0].live.name: "s_h" is not a Kubernetes object's name: lower-case letters, digits, hyphens and dots`}},
		"two Argo CDs for a set":     {"- path: argocd/*.yaml", "- live: {name: shop}\n      argocd: hub", []string{`7: spec.applicationSets[0].argocd: goes into live here, which says where the object runs`}},
		"two places of a set":        {"- path: argocd/*.yaml", "- {path: a, live: {name: shop}}", []string{`6: spec.applicationSets[0]: path and live are both given; an entry takes one of them`}},
		"an empty live":              {"- path: argocd/*.yaml", "- live:", []string{`6: spec.applicationSets[0].live: no value; give one or remove the key`}},
		"Applications of nothing":    {"  component:", "  applications: [{}]\n  component:", []string{`7: spec.applications[0]: path is missing: a glob of Application manifests in this repository; or kustomize or helm, for a folder or a chart that makes them; or live, for those that a running Argo CD has`}},
		"Applications unselected":    {"  component:", "  applications: [{live: {argocd: hub}}]\n  component:", []string{`7: spec.applications[0].live: selector is missing: which labels the Applications have, like team=shop`}},
		"a selector":                 {"  component:", "  applications: [{live: {selector: 'a in b'}}]\n  component:", []string{`7: spec.applications[0].live.selector: "a in b" is not a selector over labels, like team=shop,tier!=test: unable to parse requirement: found 'b' expected: '('`}},
		"Applications untemplated":   {"  component: '{{ .name }}'\n", "  applications: [{live: {selector: a=b}}]\n", []string{`6: spec.applicationSets[0]: no component template: give spec.component or one here`, `7: spec.applications[0]: no component template: give spec.component or one here`}},
		"files to carry":             {`- kustomizeImages: ["*"]`, `- files: {include: [], exclude: ["../x"]}`, []string{`10: spec.carry[0].files.include: at least one glob of files is needed`, `10: spec.carry[0].files.exclude[0]: "../x" leaves the repository; write it from the root, without a leading / and without ..`}},
		"an environment's branch":    {dev, dev + "      branch: main\n", []string{`13: spec.environments[0].branch: is for layout: branches; remove it, or set spec.layout: branches`}},
		"a window":                   {prod, prod + "      gates:\n      - window:\n          cron: '@daily'\n          duration: 200h\n          timezone: Europe/Berln\n      - windows: []\n", []string{`18: spec.environments[2].gates[0].window.cron: "@daily" is a descriptor, which says no hour; write five fields: minute, hour, day of the month, month, day of the week`, `19: spec.environments[2].gates[0].window.duration: must be at most seven days (168h); it is 200h0m0s`, `20: spec.environments[2].gates[0].window.timezone: there is no time zone "Europe/Berln"; write it as the IANA database has it, like Europe/Berlin or UTC`, `21: spec.environments[2].gates[1].windows: at least one window is needed`}},
		"a window of nothing":        {prod, prod + "      gates: [{window: {}}]\n", []string{`16: spec.environments[2].gates[0].window.cron: is missing; write it like "0 9 * * MON-THU"`, `16: spec.environments[2].gates[0].window.duration: must be longer than 0; it is 0s`, `16: spec.environments[2].gates[0].window.timezone: is missing; write the zone like Europe/Berlin, or UTC`}},
		"a window's duration":        {prod, prod + "      gates: [{window: {cron: '0 9 * * *', duration: 8 hours, timezone: UTC}}]\n", []string{`16: spec.environments[2].gates[0].window.duration: not a duration; write it like 90s, 15m or 1h30m`}},
		"notifications":              {"  environments:\n", "  notify: [{to: Ops, on: [degrade]}, {to: ops}, {to: ops, on: []}]\n  environments:\n", []string{`11: spec.notify[0].to: a channel of the server's file by its name: "Ops" is not a name; use lower-case letters, digits and hyphens, and no hyphen first`, `11: spec.notify[0].on[0]: "degrade" is not one of opened, waiting, merged, verified, degraded, reverted, failed, held, diverged, skipped, unjudged, drifted, limit, discovered, unsigned; did you mean "degraded"?`, `11: spec.notify[1]: on is missing: what is told, like [degraded, reverted]`, `11: spec.notify[2]: on is missing: what is told, like [degraded, reverted]`}},
		"breakGlass of nobody":       {"  environments:\n", "  breakGlass: {allowSelf: true}\n  environments:\n", []string{`11: spec.breakGlass: who may is missing: give teams or users`}},
		"breakGlass by whom":         {"  environments:\n", "  breakGlass: {teams: [sre], users: [\"@ada\"]}\n  environments:\n", []string{`11: spec.breakGlass.teams[0]: "sre" is not a team; write organisation/team, like acme/sre, without @`, `11: spec.breakGlass.users[0]: "@ada" is not a login; write it without @ and spaces`}},
		"a soak":                     {qa, qa + "      gates:\n      - soak: {}\n      - soak: {environment: dve, for: 1h}\n      - soak: {environment: prod, for: 1h}\n      - soak: {environment: qa, for: 1h}\n      - soak: {environment: dev, for: 1h}\n", []string{`15: spec.environments[1].gates[0].soak.for: must be longer than 0; it is 0s`, `16: spec.environments[1].gates[1].soak.environment: there is no environment "dve"; did you mean "dev"?`, `17: spec.environments[1].gates[2].soak.environment: prod doesn't come before qa, so no release was there first`, `18: spec.environments[1].gates[3].soak.environment: qa doesn't come before qa, so no release was there first`}},
		"what drifted":               {prod, prod + "      gates:\n      - settled: {}\n      - settled: {drift: wait}\n      - settled: {drfit: block}\n      - settled: block\n", []string{`17: spec.environments[2].gates[0].settled.drift: is missing: block, to wait while a target differs from Git, or warn`, `18: spec.environments[2].gates[1].settled.drift: must be block or warn; it is "wait"`, `19: spec.environments[2].gates[2].settled: unknown key "drfit"; did you mean "drift"?`, `20: spec.environments[2].gates[3].settled: expected a mapping with the key drift, found text`}},
		"checks":                     {prod, prod + "      gates:\n      - checks: {require: [liftlock, a, a], from: [\"@ci\"]}\n      - checks: {}\n", []string{`17: spec.environments[2].gates[0].checks.require[0]: liftlock is Liftlock's own status, which waits for the gates`, `17: spec.environments[2].gates[0].checks.require[2]: "a" is given twice`, `17: spec.environments[2].gates[0].checks.from[0]: "@ci" is not a login; write it without @ and spaces`, `18: spec.environments[2].gates[1].checks.require: at least one check's name is needed, like ci/*`}},
		"an expression":              {prod, prod + "      gates:\n      - expression: size(release.image) > 0\n      - expression: \"\"\n", []string{`17: spec.environments[2].gates[0].expression: can't be compiled: line 1, column 13: undefined field 'image'`, `18: spec.environments[2].gates[1].expression: is empty; write a condition, like size(release.images) > 0`}},
		"a freeze":                   {prod, prod + "      gates:\n      - freeze: {from: 2027-01-03, to: 2026-12-20, timezone: Local}\n      - freeze:\n          from: soon\n          to: 2026-12-20T00:00:00\n", []string{`17: spec.environments[2].gates[0].freeze.to: 2026-12-20 is not after from, 2027-01-03`, `17: spec.environments[2].gates[0].freeze.timezone: "Local" is another zone on every machine; write the zone like Europe/Berlin, or UTC`, `19: spec.environments[2].gates[1].freeze.from: "soon" is neither a date like 2026-12-20 nor a time with its offset like 2026-12-20T18:00:00+01:00`, `20: spec.environments[2].gates[1].freeze.to: "2026-12-20T00:00:00" is neither a date like 2026-12-20 nor a time with its offset like 2026-12-20T18:00:00+01:00`}},
		"teams":                      {qa, qa + "      gates: [{approvals: {count: 1, from: {teams: [sre]}}}]\n", []string{`14: spec.environments[1].gates[0].approvals.from.teams[0]: "sre" is not a team; write organisation/team, like acme/sre, without @`}},
		"no ApplicationSets":         {"  applicationSets:\n    - path: argocd/*.yaml\n", "", []string{`4: spec.applicationSets: at least one entry with ApplicationSets is needed`}},
		"a file and a folder":        {"- path: argocd/*.yaml", "- {path: a, kustomize: b}", []string{`6: spec.applicationSets[0]: path and kustomize are both given; an entry takes one of them`}},
		"a folder elsewhere":         {"- path: argocd/*.yaml", "- kustomize: https://git.example/acme/fleet", []string{`6: spec.applicationSets[0].kustomize: "https://git.example/acme/fleet" is an address; only a folder of this repository is built`}},
		"a chart outside":            {"- path: argocd/*.yaml", "- helm: {path: ../chart, valueFiles: [/values.yaml, ../../values.yaml]}", []string{`6: spec.applicationSets[0].helm.path: "../chart" leaves the repository; write it from the root, without a leading / and without ..`, `6: spec.applicationSets[0].helm.valueFiles[1]: "../../values.yaml" is no file of this repository, from the chart's folder or, with a leading /, from the root`}},
		"a chart's values":           {"- path: argocd/*.yaml", "- helm: {path: chart, values: [a]}", []string{`6: spec.applicationSets[0].helm.values: values are a mapping`}},
		"a folder outside":           {"- path: argocd/*.yaml", "- kustomize: ../argocd", []string{`6: spec.applicationSets[0].kustomize: "../argocd" leaves the repository; write it from the root, without a leading / and without ..`}},
		"clusters elsewhere":         {"  component:", "  clusters: https://git.example/clusters.yaml\n  component:", []string{`7: spec.clusters: "https://git.example/clusters.yaml" is an address; clusters are read from a file of this repository`}},
		"clusters outside":           {"  component:", "  clusters: ../clusters.yaml\n  component:", []string{`7: spec.clusters: "../clusters.yaml" leaves the repository; write it from the root, without a leading / and without ..`}},
		"clusters nowhere":           {"  component:", "  clusters: ''\n  component:", []string{`7: spec.clusters: a file is missing: one of Argo CD's cluster Secrets, which liftlock init --clusters-example gives an example of`}},
		"clusters in long form":      {"  component:", "  clusters: ./clusters.yaml\n  component:", []string{`7: spec.clusters: "./clusters.yaml" is not in its shortest form; write "clusters.yaml"`}},
		"clusters as a pipeline":     {"  component:", "  clusters: .liftlock/clusters.yaml\n  component:", []string{`7: spec.clusters: ".liftlock/clusters.yaml" has the name of a pipeline file; keep the clusters as clusters.yaml or .liftlock/argocd/clusters.yaml`}},
		"a folder in long form":      {"- path: argocd/*.yaml", "- kustomize: argocd/", []string{`6: spec.applicationSets[0].kustomize: "argocd/" is not in its shortest form; write "argocd"`}},
		"no path":                    {"- path: argocd/*.yaml", "- argocd: hub", []string{`6: spec.applicationSets[0]: path is missing: a glob of ApplicationSet manifests in this repository; or kustomize or helm, for a folder or a chart that makes them; or live, for an object of a running Argo CD`}},
		"a glob":                     {"argocd/*.yaml", "\"argocd/[.yaml\"", []string{`6: spec.applicationSets[0].path: "argocd/[.yaml" is not a valid glob`}},
		"a glob out of here":         {"argocd/*.yaml", "a/../../x", []string{`6: spec.applicationSets[0].path: "a/../../x" leaves the repository; write it from the root, without a leading / and without ..`}},
		"a glob from the disk":       {"argocd/*.yaml", "/etc/*", []string{`6: spec.applicationSets[0].path: "/etc/*" leaves the repository; write it from the root, without a leading / and without ..`}},
		"a glob in a long form":      {"argocd/*.yaml", "./argocd//*.yaml", []string{`6: spec.applicationSets[0].path: "./argocd//*.yaml" is not in its shortest form; write "argocd/*.yaml"`}},
		"an empty glob":              {"argocd/*.yaml", `""`, []string{`6: spec.applicationSets[0].path: a glob is missing`}},
		"an Argo CD's name":          {"argocd/*.yaml", "argocd/*.yaml\n      argocd: Hub", []string{`7: spec.applicationSets[0].argocd: "Hub" is not a name; use lower-case letters, digits and hyphens, and no hyphen first`}},
		"a template":                 {"'{{ .name }}'", "'{{ .name '", []string{`7: spec.component: not a Go template: 1: unclosed action`}},
		"a template's function":      {"'{{ .name }}'", "'{{ env \"HOME\" }}'", []string{`7: spec.component: not a Go template: 1: function "env" not defined`}},
		"an override's template":     {"argocd/*.yaml", "argocd/*.yaml\n      component: '{{ end }}'", []string{`7: spec.applicationSets[0].component: not a Go template: 1: unexpected {{end}}`}},
		"a long template":            {"'{{ .name }}'", strings.Repeat("x", maxTemplateLength+1), []string{`7: spec.component: the template is longer than 4096 characters`}},
		"no component template":      {"  component: '{{ .name }}'\n", "", []string{`6: spec.applicationSets[0]: no component template: give spec.component or one here`}},
		"no environment template":    {"  environment: '{{ .env }}'\n", "", []string{`6: spec.applicationSets[0]: no environment template: give spec.environment or one here`}},
		"a fixed environment":        {"argocd/*.yaml", "argocd/*.yaml\n      environment: prd", []string{`7: spec.applicationSets[0].environment: there is no environment "prd"; did you mean "prod"?`}},
		"nothing to carry":           {`- kustomizeImages: ["*"]`, "[]", []string{`9: spec.carry: at least one entry that says what is promoted is needed`}},
		"two kinds in one entry":     {`["*"]`, "[\"*\"]\n      json: {files: [a], paths: [b]}", []string{`10: spec.carry[0]: exactly one of kustomizeImages, kustomizeRefs, yaml, json and files is needed; this entry has 2`}},
		"no images":                  {`["*"]`, "[]", []string{`10: spec.carry[0].kustomizeImages: at least one glob on image names is needed`}},
		"a glob of many ways":        {"argocd/*.yaml", "\"" + strings.Repeat("{a,aa}", 26) + "\"", []string{`6: spec.applicationSets[0].path: the glob "` + strings.Repeat("{a,aa}", 16) + `{…" has too many alternatives; write several, or a *`}},
		"an image glob of many ways": {`["*"]`, `["` + strings.Repeat("{a,aa}", 26) + `"]`, []string{`10: spec.carry[0].kustomizeImages[0]: the glob "` + strings.Repeat("{a,aa}", 16) + `{…" has too many alternatives; write several, or a *`}},
		"an image glob":              {`["*"]`, `["a[", "a b"]`, []string{`10: spec.carry[0].kustomizeImages[0]: "a[" is not a valid glob on image names`, `10: spec.carry[0].kustomizeImages[1]: "a b" is not a valid glob on image names`}},
		"no remote bases":            {`kustomizeImages: ["*"]`, "kustomizeRefs: []", []string{`10: spec.carry[0].kustomizeRefs: at least one glob on addresses is needed`}},
		"a remote base's glob":       {`kustomizeImages: ["*"]`, `kustomizeRefs: ["https://git.example/[", "https://git.example/{{component}}"]`, []string{`10: spec.carry[0].kustomizeRefs[0]: "https://git.example/[" is not a valid glob on addresses`, `10: spec.carry[0].kustomizeRefs[1]: "https://git.example/{{component}}": placeholders are for yaml, json and files; write a * for what differs`}},
		"a remote base to add":       {`kustomizeImages: ["*"]`, "kustomizeRefs: [\"**\"]\n      whenAbsent: add", []string{`11: spec.carry[0].whenAbsent: add is not for kustomizeRefs: a remote base that an environment lacks is added by hand, with its ref`}},
		"no files and no paths":      {`kustomizeImages: ["*"]`, "yaml: {files: []}", []string{`10: spec.carry[0].yaml.paths: at least one path of a field is needed`, `10: spec.carry[0].yaml.files: at least one glob of files is needed`}},
		"a field's path":             {`kustomizeImages: ["*"]`, `json: {files: ["*.json"], paths: ["", " a"]}`, []string{`10: spec.carry[0].json.paths[0]: "" is not the path of a field; write it like image.tag`, `10: spec.carry[0].json.paths[1]: " a" is not the path of a field; write it like image.tag`}},
		"not a placeholder":          {`kustomizeImages: ["*"]`, `yaml: {files: ["{{env}}.yaml", "*-{{component}}.yaml"], paths: ["{{ .environment }}.tag", "l[{{component}}=x].tag", "a.{{environment"]}`, []string{`10: spec.carry[0].yaml.files[0]: "{{env}}.yaml" has {{env}}: only {{environment}} and {{component}} are known`, `10: spec.carry[0].yaml.files[1]: "*-{{component}}.yaml": the part "*-{{component}}.yaml" has a placeholder and a wildcard: keep wildcards to parts of their own`, `10: spec.carry[0].yaml.paths[0]: path "{{ .environment }}.tag" has {{ .environment }}: only {{environment}} and {{component}} are known`, `10: spec.carry[0].yaml.paths[1]: path "l[{{component}}=x].tag": a placeholder stands for a key or a value, not for the key of a condition`, `10: spec.carry[0].yaml.paths[2]: path "a.{{environment" has {{ without }}: only {{environment}} and {{component}} are known`}},
		"a placeholder in an image":  {`["*"]`, `["registry.example/{{component}}"]`, []string{`10: spec.carry[0].kustomizeImages[0]: "registry.example/{{component}}": placeholders are for yaml, json and files; carry yaml with a path like images[name=registry.example/{{component}}].newTag`}},
		"a path that isn't one":      {`kustomizeImages: ["*"]`, `json: {files: ["*.json"], paths: ["a..b"]}`, []string{`10: spec.carry[0].json.paths[0]: path "a..b": segment 2: it is empty (there is no .. that searches at every depth: write a * for each level)`}},
		"what is absent":             {`["*"]`, "[\"*\"]\n      whenAbsent: ignore", []string{`11: spec.carry[0].whenAbsent: "ignore" is not one of add, refuse`}},
		"skipping what is absent":    {`["*"]`, "[\"*\"]\n      whenAbsent: skip", []string{`11: spec.carry[0].whenAbsent: skip is not supported, because an environment that lacks a field would carry another release than the one it was given; carry the field where all environments have it, or use add or refuse`}},
		"no environments":            {dev + qa + "      after: [dev]\n" + prod + "      after: [qa]\n", "    []\n", []string{`11: spec.environments: at least one environment is needed`}},
		"an environment's name":      {"name: prod", "name: Prod", []string{`15: spec.environments[2].name: "Prod" is not a name; use lower-case letters, digits and hyphens, and no hyphen first`}},
		"an environment twice":       {"name: prod", "name: qa", []string{`15: spec.environments[2].name: the environment "qa" is already spec.environments[1]`}},
		"an unknown environment":     {"[qa]", "[qa2]", []string{`16: spec.environments[2].after[0]: there is no environment "qa2"; did you mean "qa"?`}},
		"after itself":               {"[qa]", "[prod]", []string{`16: spec.environments[2].after: goes round in a circle: prod after prod`}},
		"a circle":                   {"[dev]", "[prod]", []string{`14: spec.environments[1].after: goes round in a circle: qa after prod after qa`}},
		"after the same twice":       {"[qa]", "[qa, dev, qa]", []string{`16: spec.environments[2].after[2]: "qa" is given twice`}},
		"who opens":                  {prod, prod + "      open: always\n", []string{`16: spec.environments[2].open: "always" is not one of auto, manual`}},
		"who merges":                 {prod, prod + "      merge: atuo\n", []string{`16: spec.environments[2].merge: "atuo" is not one of auto, manual; did you mean "auto"?`}},
		"what a degradation does":    {prod, prod + "      onDegraded: rollback\n", []string{`16: spec.environments[2].onDegraded: "rollback" is not one of revert, revert-and-merge, hold`}},
		"another key of it":          {prod, prod + "      onDegraded:\n        action: revert\n        qourum: 2\n", []string{`18: spec.environments[2].onDegraded: unknown key "qourum"; did you mean "quorum"?`}},
		"an action of it":            {prod, prod + "      onDegraded:\n        action: rollback\n", []string{`17: spec.environments[2].onDegraded.action: "rollback" is not one of revert, revert-and-merge, hold`}},
		"a list of it":               {prod, prod + "      onDegraded: [revert]\n", []string{`16: spec.environments[2].onDegraded: expected text or a mapping, found a list`}},
		"a number for it":            {prod, prod + "      onDegraded: 2\n", []string{`16: spec.environments[2].onDegraded: expected text, found a whole number; put it in quotes`}},
		"no quorum":                  {prod, prod + "      onDegraded: {quorum: most}\n", []string{`16: spec.environments[2].onDegraded.quorum: not a quorum; write a share of the targets in whole percent, like 50%, or a number of them, like 2`}},
		"a quorum of half percents":  {prod, prod + "      onDegraded: {quorum: 12.5%}\n", []string{`16: spec.environments[2].onDegraded.quorum: not a quorum; write a share of the targets in whole percent, like 50%, or a number of them, like 2`}},
		"a quorum in octal":          {prod, prod + "      onDegraded: {quorum: 010}\n", []string{`16: spec.environments[2].onDegraded.quorum: not a quorum; write a share of the targets in whole percent, like 50%, or a number of them, like 2`}},
		"a quorum of 0":              {prod, prod + "      onDegraded: {quorum: 0}\n", []string{`16: spec.environments[2].onDegraded.quorum: must be at least 1; it is 0; leave it out for any one target, or write action: hold for no revert by itself`}},
		"a quorum of 0 %":            {prod, prod + "      onDegraded: {quorum: 0%}\n", []string{`16: spec.environments[2].onDegraded.quorum: must be at least 1%; it is 0%`}},
		"a quorum of more than all":  {prod, prod + "      onDegraded: {quorum: 101%}\n", []string{`16: spec.environments[2].onDegraded.quorum: must be at most 100%; it is 101%; write action: hold where no revert is to open by itself`}},
		"a quorum below nothing":     {prod, prod + "      onDegraded: {quorum: -3}\n", []string{`16: spec.environments[2].onDegraded.quorum: must be at least 1; it is -3; leave it out for any one target, or write action: hold for no revert by itself`}},
		"a share below nothing":      {prod, prod + "      onDegraded: {quorum: -3%}\n", []string{`16: spec.environments[2].onDegraded.quorum: must be at least 1%; it is -3%`}},
		"a quorum beyond any":        {prod, prod + "      onDegraded: {quorum: 1000001}\n", []string{`16: spec.environments[2].onDegraded.quorum: must be at most 1000000; it is 1000001`}},
		"a quorum of what is held":   {prod, prod + "      onDegraded: {action: hold, quorum: 2}\n", []string{`16: spec.environments[2].onDegraded.quorum: does nothing with action: hold, where no revert opens by itself; remove it, or write action: revert`}},
		"a quorum in a source":       {dev, dev + "      onDegraded: {quorum: 2}\n", []string{"13: spec.environments[0].onDegraded: is always hold in a source environment, where releases arrive from outside; remove it or give `after`"}},
		"keys idle in a source":      {dev, dev + "      merge: auto\n      gates: []\n      onDegraded: revert\n", []string{"13: spec.environments[0].merge: does nothing in a source environment, which has no pull requests; remove it or give `after`", "14: spec.environments[0].gates: does nothing in a source environment, which has no pull requests; remove it or give `after`", "15: spec.environments[0].onDegraded: is always hold in a source environment, where releases arrive from outside; remove it or give `after`"}},
		"a metric":                   {prod, prod + "      gates:\n      - metric: {prometheus: main, query: up, when: vaule < 1, for: 1m}\n      - metric: {prometheus: main, qurey: up, when: value < 1, for: 10m, onEmpty: fail}\n", []string{`17: spec.environments[2].gates[0].metric.when: can't be compiled: line 1, column 1: undeclared reference to 'vaule' (in container '')`, `17: spec.environments[2].gates[0].metric.for: must be from 2m to 58m, which is 2 to 58 times every; it is 1m. For longer, ask less often, or let the query look back: max_over_time(…[1d])`, `18: spec.environments[2].gates[1].metric: unknown key "qurey"; did you mean "query"?`}},
		"an http gate":               {prod, prod + "      gates:\n      - http: {endpoint: board, path: \"https://x\"}\n      - http: {every: 1s}\n", []string{`17: spec.environments[2].gates[0].http.path: "https://x" is not a path like /change/approve`, `18: spec.environments[2].gates[1].http.endpoint: who is asked is missing: its name in the server's file, under endpoints`, `18: spec.environments[2].gates[1].http.every: must be from 10s to 1h; it is 1s`}},
		"a gate of no kind":          {prod, prod + "      gates:\n        - {}\n", []string{"17: spec.environments[2].gates[0]: " + new(policies.Gate).Validate().Error()}},
		"a gate's settings":          {prod, prod + "      gates:\n        - approvals:\n            count: 0\n            from: {users: [\"@ada\"]}\n", []string{`18: spec.environments[2].gates[0].approvals.count: must be at least 1; it is 0`, `19: spec.environments[2].gates[0].approvals.from.users[0]: "@ada" is not a login; write it without @ and spaces`}},
		"a gate without a value":     {prod, prod + "      gates:\n        - approvals:\n", []string{`17: spec.environments[2].gates[0].approvals: no value; give one or remove the key`}},
		"a time of zero":             {dev, dev + "      verify: {healthyFor: 0s, watch: -1m}\n", []string{`13: spec.environments[0].verify.healthyFor: must be longer than 0; it is 0s`, `13: spec.environments[0].verify.watch: must be longer than 0; it is -1m`}},
		"not a time":                 {dev, dev + "      verify: {timeout: soon}\n", []string{`13: spec.environments[0].verify.timeout: not a duration; write it like 90s, 15m or 1h30m`}},
		"days":                       {dev, dev + "      verify: {timeout: 1d}\n", []string{`13: spec.environments[0].verify.timeout: days and weeks are no unit of a duration; write 24h`}},
		"who syncs":                  {dev, dev + "      verify: {sync: now}\n", []string{`13: spec.environments[0].verify.sync: "now" is not one of wait, trigger`}},
		"what has no health check":   {dev, dev + "      verify: {ignoreMissingHealth: never}\n", []string{`13: spec.environments[0].verify.ignoreMissingHealth: expected true or false, found text`}},
		"not a mapping":              {minimalPipeline, "[1]\n", []string{`1: expected a mapping with keys such as apiVersion, kind, metadata, spec, found a list`}},
		"a Kubernetes object":        {minimalPipeline, "apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n", []string{`1: this ConfigMap of v1 is no pipeline file, which has apiVersion: liftlock.dev/v1alpha1 and kind: Pipeline`}},
		"an ApplicationSet":          {minimalPipeline, "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nspec: {}\n", []string{`1: this is Argo CD's ApplicationSet: name its path in a pipeline file, under applicationSets or applications; it is no pipeline file, which has apiVersion: liftlock.dev/v1alpha1 and kind: Pipeline`}},
		"Argo CD's older templates":  {"'{{ .env }}'", "'{{path.basename}}-{{path[1]}}-{{values.env}}-{{metadata.labels.example.com/env}}'", []string{`8: spec.environment: not a Go template: 1: function "path" not defined; a parameter begins with a dot: '{{ .path.basename }}-{{ index .path.segments 1 }}-{{ .values.env }}-{{ index .metadata.labels "example.com/env" }}'`}},
		"a template without quotes":  {"'{{ .env }}'", "{{ .env }}", []string{`8: spec.environment: expected text, found a mapping; put a template in quotes: '{{ … }}'`}},
		"text for a list":            {dev, dev + "      after: qa\n", []string{`13: spec.environments[0].after: expected a list, found text; begin each item with a dash: - qa`}},
		"a mapping for a list":       {prod, prod + "      gates: {soak: 1h}\n", []string{`16: spec.environments[2].gates: expected a list, found a mapping; begin each item with a dash: - soak: …`}},
		"empty":                      {minimalPipeline, "# nothing\n", []string{` the file is empty; a pipeline file begins with apiVersion: liftlock.dev/v1alpha1`}},
		"not YAML":                   {minimalPipeline, "a: b: c\n", []string{`1: not valid YAML: mapping values are not allowed in this context`}},
		"the same name in one file":  {"", "---\n" + minimalPipeline, []string{`20: metadata.name: the pipeline "shop" is already defined at p.yaml:3`}},
		"several, by line":           {"'{{ .env }}'", "prd\n  mode: x\n  limit: {}", []string{`8: spec.environment: there is no environment "prd"; did you mean "prod"?`, `9: spec.mode: "x" is not one of act, observe`, `10: spec: unknown key "limit"; did you mean "limits"?`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			content := minimalPipeline + test.new
			if test.old != "" {
				if !strings.Contains(minimalPipeline, test.old) {
					t.Fatalf("the small file has no %q", test.old)
				}
				content = strings.Replace(minimalPipeline, test.old, test.new, 1)
			}
			all, err := Parse("p.yaml", []byte(content))
			var errs strictyaml.Errors
			if !errors.As(err, &errs) || all != nil {
				t.Fatalf("%d pipelines and the error %v", len(all), err)
			}
			want := "p.yaml:" + strings.Join(test.want, "\np.yaml:")
			if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("the errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseSeveral(t *testing.T) {
	got, err := Parse("p.yaml", []byte(minimalPipeline+"---\n"+strings.Replace(minimalPipeline, "shop", "depot", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Name() != "shop" || got[1].Name() != "depot" {
		t.Errorf("the pipelines are %v", got)
	}
}

func TestTooMany(t *testing.T) {
	list := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+", ", n), ", ") + "]"
	}
	var environments strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&environments, "    - name: e%d\n", i)
	}
	for name, test := range map[string]struct{ old, new, want string }{
		"environments":     {"", environments.String(), "p.yaml:11: spec.environments: 20003 are too many; at most 100"},
		"after":            {"[dev]", list(40_000, "dev"), "p.yaml:14: spec.environments[1].after: 40000 are too many; at most 100"},
		"gates":            {"[dev]", "[dev]\n      gates: " + list(51, "{}"), "p.yaml:15: spec.environments[1].gates: 51 are too many; at most 50"},
		"expressions":      {"[dev]", "[dev]\n      gates: " + list(50, "{expression: x}") + "\n    - name: two\n      after: [dev]\n      gates: " + list(50, "{expression: x}") + "\n    - name: three\n      after: [dev]\n      gates: [{expression: x}]", "p.yaml:11: spec.environments: 101 gates with an expression or a metric's condition are too many; at most 100"},
		"ApplicationSets":  {"\n    - path: argocd/*.yaml", " " + list(10_000, "{path: a, environment: x}"), "p.yaml:5: spec.applicationSets: 10000 are too many; at most 1000"},
		"entries to carry": {"\n    - kustomizeImages: [\"*\"]", " " + list(1001, "{}"), "p.yaml:9: spec.carry: 1001 are too many; at most 1000"},
		"images":           {`["*"]`, list(1001, "x"), "p.yaml:10: spec.carry[0].kustomizeImages: 1001 are too many; at most 1000"},
		"remote bases":     {`kustomizeImages: ["*"]`, "kustomizeRefs: " + list(1001, "x"), "p.yaml:10: spec.carry[0].kustomizeRefs: 1001 are too many; at most 1000"},
		"files":            {`kustomizeImages: ["*"]`, "yaml: {files: " + list(1001, "x") + ", paths: [a]}", "p.yaml:10: spec.carry[0].yaml.files: 1001 are too many; at most 1000"},
		"paths":            {`kustomizeImages: ["*"]`, "json: {files: [x], paths: " + list(1001, "x") + "}", "p.yaml:10: spec.carry[0].json.paths: 1001 are too many; at most 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			content := minimalPipeline + test.new
			if test.old != "" {
				content = strings.Replace(minimalPipeline, test.old, test.new, 1)
			}
			_, err := Parse("p.yaml", []byte(content))
			if err == nil || err.Error() != test.want {
				t.Errorf("the error is %.200v, want %s", err, test.want)
			}
		})
	}
}

func TestPipelineMarshalsReadably(t *testing.T) {
	all, err := Parse("p", []byte(minimalPipeline))
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(all[0])
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), `"watch":"30m"`) {
		t.Errorf("a duration is not readable: %s", data)
	}
	back := Pipeline{File: "p"}
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(data), string(again)); diff != "" {
		t.Errorf("JSON doesn't bring it back (-want +got):\n%s", diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(minimalPipeline))
	f.Add([]byte(readSample(f)))
	f.Add([]byte(strings.Replace(minimalPipeline, "[dev]", "[prod]", 1)))
	f.Add([]byte("apiVersion: x\nspec: &a {<<: *a}\n"))
	f.Add([]byte("---\n---\nspec: {environments: [{after: [x]}]}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := Parse("f", data)
		if err != nil {
			var errs strictyaml.Errors
			if !errors.As(err, &errs) || len(errs) == 0 || all != nil {
				t.Fatalf("%d pipelines and the error %#v", len(all), err)
			}
			return
		}
		for _, p := range all {
			if ValidName(p.Name()) != nil || len(p.TopologicalOrder()) != len(p.Spec.Environments) || len(p.Spec.Environments) == 0 {
				t.Fatalf("accepted %+v", p)
			}
		}
	})
}
