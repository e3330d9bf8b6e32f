package migrate

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/liftlock/liftlock/internal/discover"
)

// add takes in manifests.
func add(t *testing.T, manifests string) *Manifests {
	t.Helper()
	m := &Manifests{}
	for text := range strings.SplitSeq(manifests, "\n---\n") {
		data, err := yaml.YAMLToJSON([]byte(text))
		if err == nil {
			err = m.Add(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// write gives what was found in a form that can be read.
func write(found Migration) string {
	var b strings.Builder
	for _, environment := range []string{"dev", "qa", "prod"} {
		for _, r := range found.Rules[environment] {
			choose, err := yaml.Marshal(r.Discovery)
			if err != nil {
				panic(err)
			}
			b.WriteString(environment + " " + strings.Join(strings.Fields(string(choose)), " ") + " from " + r.From + "\n")
		}
	}
	return b.String() + strings.Join(found.Notes, "\n")
}

// annotate gives an Application in dev annotations of Image Updater's.
func annotate(pairs ...string) Application {
	out := Application{Namespace: "argocd", Name: "web-dev", Environment: "dev", Annotations: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		out.Annotations[annotationPrefix+pairs[i]] = pairs[i+1]
	}
	return out
}

const writesItself = "Application web-dev: Image Updater writes there by itself: take its configuration away when this file is in force, or " +
	"both write."

// TestAnnotations holds what annotations of Image Updater mean, as its documentation has them (docs/configuration/images.md and
// docs/basics/update-strategies.md of v0.18).
func TestAnnotations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pairs []string
		want  string // without what is said of writing back
	}{
		"nothing":             {[]string{"image-list", " "}, ""},
		"a range":             {[]string{"image-list", "registry.example:5000/web:~1.26"}, `dev choose: semver: ~1.26 image: registry.example:5000/web from Application web-dev`},
		"any version":         {[]string{"image-list", "nginx"}, `dev choose: semver: '*' image: nginx from Application web-dev`},
		"a range with spaces": {[]string{"image-list", "a=nginx:>=1.0 <2"}, `dev choose: semver: '>=1.0 <2' image: nginx from Application web-dev`},
		"pre-releases":        {[]string{"image-list", "nginx:2.x-0"}, `dev choose: prerelease: true semver: 2.x image: nginx from Application web-dev`},
		"pre-releases in a range": {[]string{"image-list", "n=nginx:>=2.0.0-0"},
			`dev choose: semver: '>=2.0.0-0' image: nginx from Application web-dev`},
		"a range without an alias": {[]string{"image-list", "nginx:>=2"}, `Application web-dev: image-list names no image: "nginx:>=2".`},
		"filters of an alias": {[]string{"image-list", "team/web=registry.example/web:1.x", "team_web.allow-tags", `regexp:^v1\.`,
			"team_web.ignore-tags", "latest, *-debug", "team_web.platforms", "linux/amd64,linux/arm64"},
			`dev choose: ignore: - latest - '*-debug' semver: 1.x tags: ^v1\. image: registry.example/web platforms: - linux/amd64 - linux/arm64 from Application web-dev`},
		"filters of the Application": {[]string{"image-list", "web=registry.example/web", "update-strategy", "alphabetical", "allow-tags", "any"},
			`dev choose: newest: by: alphabet tags: . image: registry.example/web from Application web-dev`},
		"its own go before those": {[]string{"image-list", "web=registry.example/web", "update-strategy", "semver", "web.update-strategy",
			"newest-build", "web.tag-match", "regexp:^main-"},
			`dev choose: newest: by: created tags: ^main- image: registry.example/web from Application web-dev`},
		"old names": {[]string{"image-list", "a=one,b=two", "a.update-strategy", "latest", "b.update-strategy", "name"},
			"dev choose: newest: by: created tags: . image: one from Application web-dev\n" +
				"dev choose: newest: by: alphabet tags: . image: two from Application web-dev"},
		"a digest": {[]string{"image-list", "web=registry.example/web:latest", "web.update-strategy", "digest", "web.ignore-tags", "x"},
			`dev choose: digest: tag: latest image: registry.example/web from Application web-dev`},
		"a digest of no tag": {[]string{"image-list", "web=registry.example/web", "web.update-strategy", "digest"},
			"Application web-dev: what it says of registry.example/web can't be said as it is: update-strategy: digest follows one tag, and " +
				"registry.example/web names none."},
		"an unknown strategy": {[]string{"image-list", "web=registry.example/web", "web.update-strategy", "magic"},
			"Application web-dev: what it says of registry.example/web can't be said as it is: update-strategy: \"magic\" is none that is known: " +
				"semver, newest-build, alphabetical, digest."},
		"a filter that takes nothing": {[]string{"image-list", "web=registry.example/web", "web.allow-tags", "^v1"},
			"Application web-dev: what it says of registry.example/web can't be said as it is: allow-tags: \"^v1\" is neither any nor regexp:…, " +
				"so that Image Updater takes no tag at all."},
		"a range that is none": {[]string{"image-list", "registry.example/web:newest"},
			"Application web-dev: what it says of registry.example/web can't be said as it is: semver: \"newest\" is no range of versions; " +
				"write it like \">=1.0.0 <2.0.0\", ~3.2 or \"*\"."},
		"a pull secret": {[]string{"image-list", "web=registry.example/web", "web.pull-secret", "secret:argocd/pull#key"},
			"dev choose: semver: '*' image: registry.example/web from Application web-dev\n" +
				"Application web-dev: registry.example/web is read with the pull secret secret:argocd/pull#key: the server's credentials are in its " +
				"own file, under registries."},
		"no image": {[]string{"image-list", "web="}, `Application web-dev: image-list names no image: "web=".`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := annotate(append(c.pairs, "write-back-method", "git")...)
			got := write((&Manifests{}).Migrate([]Application{app}, []string{"dev"}, []string{"dev"}))
			got = strings.TrimSuffix(strings.Replace(got+"\n", writesItself+"\n", "", 1), "\n")
			if got != c.want {
				t.Errorf("%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestSources holds which environments get rules, and what becomes of those that contradict one another.
func TestSources(t *testing.T) {
	t.Parallel()
	app := func(name, environment, image string) Application {
		return Application{Name: name, Environment: environment,
			Annotations: map[string]string{annotationPrefix + imageListKey: image}}
	}
	got := write((&Manifests{}).Migrate([]Application{
		app("web-dev", "dev", "web:~1.2"), app("web-dev-2", "dev", "web:~1.2"), app("web-prod", "prod", "web:~1.2"),
		app("api-dev", "dev", "api:~1.2"), app("api-dev-2", "dev", "api:~1.3"), app("tools", "", "tools"),
	}, []string{"dev", "prod"}, []string{"dev"}))
	want := `dev choose: semver: ~1.2 image: web from Application web-dev, Application web-dev-2
Application web-dev, Application web-dev-2, Application web-prod, Application api-dev and 2 more: ` + liveOverrideNote + `.
Application web-prod: brings web into prod past the environments before it; here releases come to prod from those.
Application tools: is in no environment of this pipeline; what it says of tools is left out.
Application api-dev and Application api-dev-2: want different versions of api in dev, where one rule holds for all: write it under discover.`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestImageUpdaters holds what objects of Image Updater mean: what is said of an image goes before what is said of Applications and
// of all (api/v1alpha1 of v1.0).
func TestImageUpdaters(t *testing.T) {
	t.Parallel()
	m := add(t, `
apiVersion: argocd-image-updater.argoproj.io/v1alpha1
kind: ImageUpdater
metadata: {name: all, namespace: argocd}
spec:
  namespace: argocd
  commonUpdateSettings: {updateStrategy: newest-build, ignoreTags: [latest], platforms: [linux/amd64]}
  writeBackConfig: {method: git}
  applicationRefs:
    - namePattern: "web-*"
      labelSelectors: {matchLabels: {team: shop}}
      commonUpdateSettings: {allowTags: "regexp:^main-"}
      images:
        - {alias: web, imageName: "registry.example/web:latest"}
        - alias: api
          imageName: "registry.example/api:~2"
          commonUpdateSettings: {updateStrategy: semver, allowTags: any, ignoreTags: [x]}
    - namePattern: "mail-*"
      images: [{alias: mail, imageName: mail}]
---
apiVersion: argocd-image-updater.argoproj.io/v1alpha1
kind: ImageUpdater
metadata: {name: annotated}
spec: {namespace: argocd, applicationRefs: [{namePattern: "web-dev", useAnnotations: true}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}`)
	shop := map[string]string{"team": "shop"}
	got := write(m.Migrate([]Application{
		{Namespace: "argocd", Name: "web-dev", Environment: "dev", Labels: shop},
		{Namespace: "other", Name: "web-qa", Environment: "dev", Labels: shop},
		{Namespace: "argocd", Name: "web-ops", Environment: "dev"},
	}, []string{"dev"}, []string{"dev"}))
	want := `dev choose: ignore: - x semver: ~2 image: registry.example/api platforms: - linux/amd64 from ImageUpdater argocd/all
dev choose: ignore: - latest newest: by: created tags: ^main- image: registry.example/web platforms: - linux/amd64 from ImageUpdater argocd/all
ImageUpdater argocd/all: ` + ownFieldsNote + `.
ImageUpdater argocd/all: no Application of this repository is named like "mail-*".`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

const kargo = `
apiVersion: kargo.akuity.io/v1alpha1
kind: Project
metadata: {name: web}
---
apiVersion: kargo.akuity.io/v1alpha1
kind: ProjectConfig
metadata: {name: web, namespace: web}
spec:
  promotionPolicies:
    - {stage: dev, autoPromotionEnabled: true}
    - {stageSelector: {name: web-qa}, autoPromotionEnabled: true}
    - {stage: web-prod, autoPromotionEnabled: false}
---
apiVersion: kargo.akuity.io/v1alpha1
kind: Warehouse
metadata: {name: web, namespace: web}
spec:
  interval: 2h0m0s
  freightCreationCriteria: {expression: "imageFrom('a').Tag == chartFrom('b').Version"}
  subscriptions:
    - image: {repoURL: registry.example/web, constraint: ^1.0.0, platform: linux/amd64, ignoreTags: ["a*"]}
    - image: {repoURL: registry.example/api, imageSelectionStrategy: NewestBuild, allowTagsRegexes: ["^main-", "^rc-"]}
    - image: {repoURL: registry.example/job, imageSelectionStrategy: Lexical, allowTags: "^2", insecureSkipTLSVerify: true}
    - image: {repoURL: registry.example/tool, imageSelectionStrategy: Digest, semverConstraint: stable}
    - image: {repoURL: registry.example/loose, strictSemvers: false}
    - image: {repoURL: registry.example/both, allowTagsRegexes: ["^v"]}
    - image: {repoURL: registry.example/not, ignoreTagsRegexes: ["^x"]}
    - image: {repoURL: registry.example/odd, imageSelectionStrategy: Magic}
    - chart: {repoURL: "oci://registry.example/charts/cart", semverConstraint: ~3.2}
    - chart: {repoURL: "https://charts.example/", name: redis}
    - git: {repoURL: "https://git.example/acme/web.git"}
---
apiVersion: kargo.akuity.io/v1alpha1
kind: Warehouse
metadata: {name: by-hand, namespace: web}
spec: {freightCreationPolicy: Manual, subscriptions: [{image: {repoURL: registry.example/hand}}]}
---
apiVersion: kargo.akuity.io/v1alpha1
kind: Warehouse
metadata: {name: nobody, namespace: web}
spec: {subscriptions: [{image: {repoURL: registry.example/nobody}}]}
---
apiVersion: kargo.akuity.io/v1alpha1
kind: Stage
metadata: {name: dev, namespace: web}
spec:
  requestedFreight:
    - {origin: {kind: Warehouse, name: web}, sources: {direct: true}}
    - {origin: {kind: Warehouse, name: by-hand}, sources: {direct: true}}
    - {origin: {kind: Warehouse, name: away}, sources: {direct: true}}
---
apiVersion: kargo.akuity.io/v1alpha1
kind: Stage
metadata: {name: web-qa, namespace: web}
spec:
  requestedFreight: [{origin: {kind: Warehouse, name: web}, sources: {stages: [dev]}}]
  verification: {analysisTemplates: [{name: smoke}]}
---
apiVersion: kargo.akuity.io/v1alpha1
kind: Stage
metadata: {name: fan-out, namespace: web}
spec: {requestedFreight: [{origin: {kind: Warehouse, name: web}, sources: {stages: [web-qa]}}]}
---
apiVersion: kargo.akuity.io/v1alpha1
kind: Stage
metadata: {name: web-prod, namespace: web}
spec: {requestedFreight: [{origin: {kind: Warehouse, name: web}, sources: {stages: [fan-out], requiredSoakTime: 2h}}]}`

// TestKargo holds what Warehouses and Stages mean (Kargo's api/v1alpha1 of v1.11).
func TestKargo(t *testing.T) {
	t.Parallel()
	m := add(t, kargo)
	environments := []string{"dev", "prod", "qa"}
	after, why := m.FindUpstream(environments)
	if why != "" || !slices.Equal(after["qa"], []string{"dev"}) || !slices.Equal(after["prod"], []string{"qa"}) || len(after["dev"]) > 0 {
		t.Errorf("the order is %v %q", after, why)
	}
	got := write(m.Migrate(nil, environments, []string{"dev"}))
	want := `dev chart: https://charts.example#redis choose: semver: '*' from Warehouse web/web
dev chart: oci://registry.example/charts/cart choose: semver: ~3.2 from Warehouse web/web
dev choose: newest: by: created tags: (?:^main-)|(?:^rc-) image: registry.example/api from Warehouse web/web
dev choose: semver: '*' tags: ^v image: registry.example/both from Warehouse web/web
dev choose: newest: by: alphabet tags: ^2 image: registry.example/job from Warehouse web/web
dev choose: semver: '*' image: registry.example/loose from Warehouse web/web
dev choose: digest: tag: stable image: registry.example/tool from Warehouse web/web
dev choose: ignore: - a\* semver: ^1.0.0 tags: ^v?\d+\.\d+\.\d+([-+].*)?$ image: registry.example/web platforms: - linux/amd64 from Warehouse web/web
Warehouse web/web: the condition on what comes in at the same time (imageFrom('a').Tag == chartFrom('b').Version) has no counterpart: what is newest of each comes in by itself.
Warehouse web/web: the certificate of registry.example/job isn't verified: here give the server's file the registry's authority.
Warehouse web/web: registry.example/both: tags with fewer than three numbers count here as versions, too, where they match ^v.
Warehouse web/web: what it says of registry.example/not can't be said as it is: tags are ignored by expressions (^x), and here by globs: write them under choose.ignore.
Warehouse web/web: what it says of registry.example/odd can't be said as it is: imageSelectionStrategy: "Magic" is none that is known: SemVer, NewestBuild, Lexical, Digest.
Warehouse web/web: commits of https://git.example/acme/web.git are no releases by themselves: a build job runs liftlock release, or they change what is carried.
Warehouse web/web: how often is looked (2h0m0s) is the server's discoverInterval, for the whole repository.
Warehouse web/by-hand: nothing comes in from it by itself: build jobs and people bring a version in with liftlock release.
Stage web/dev: the Warehouse away, from which it takes releases, wasn't given.
Stage web/web-qa: what its AnalysisTemplates measure isn't carried over: say it as gates metric or http of the environment after qa.
Stage web/web-qa: it takes releases without a person: give qa merge: auto.
Stage web/web-prod: a release is to be verified for 2h before: give prod the gate soak: {for: 2h}.
Warehouse web/nobody: no Stage that was given takes its releases: give the Stages as well.`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for name, r := range m.Migrate(nil, environments, []string{"dev"}).Rules {
		for _, rule := range r {
			if _, err := discover.Compile(rule.Discovery.Choose); err != nil {
				t.Errorf("%s: %s: %v", name, rule.Discovery.Name(), err)
			}
		}
	}
}

// TestOrderIsNotFollowed holds when Stages say nothing of the order.
func TestOrderIsNotFollowed(t *testing.T) {
	t.Parallel()
	stage := func(name string, before ...string) string {
		return "apiVersion: kargo.akuity.io/v1alpha1\nkind: Stage\nmetadata: {name: " + name + "}\nspec: {requestedFreight: [{sources: {stages: [" +
			strings.Join(before, ", ") + "]}}]}"
	}
	for name, c := range map[string]struct {
		stages []string
		why    string
	}{
		"one is missing":  {[]string{stage("dev")}, "Kargo's Stages don't say where prod comes: no Stage has its name"},
		"a circle":        {[]string{stage("dev", "prod"), stage("prod", "dev")}, "Kargo's Stages have dev before itself"},
		"others' circle":  {[]string{stage("dev"), stage("s1", "s2"), stage("s2", "s1"), stage("prod", "s1")}, ""},
		"a word too many": {[]string{stage("dev"), stage("reproducible")}, "Kargo's Stages don't say where prod comes: no Stage has its name"},
	} {
		after, why := add(t, strings.Join(c.stages, "\n---\n")).FindUpstream([]string{"dev", "prod"})
		if why != c.why || (after == nil) != (c.why != "") {
			t.Errorf("%s: %v %q", name, after, why)
		}
	}
	if after, why := (&Manifests{}).FindUpstream([]string{"dev"}); after != nil || why != "" {
		t.Errorf("without Stages: %v %q", after, why)
	}
	if err := (&Manifests{}).Add([]byte(`{"apiVersion":"kargo.akuity.io/v1alpha1","kind":"Stage","metadata":{"name":"a"},"spec":7}`)); err == nil ||
		!strings.HasPrefix(err.Error(), "Stage a: ") {
		t.Errorf("a Stage that can't be read: %v", err)
	}
}

// FuzzMigrate holds that nothing that is read ends in anything but rules that can be used, and notes.
func FuzzMigrate(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"kargo.akuity.io/v1alpha1","kind":"Warehouse","metadata":{"name":"w"},"spec":{"subscriptions":[{"image":{"repoURL":"a","allowTagsRegexes":["(","b"]}}]}}`), "a=b:~1", "regexp:(", "dev")
	f.Add([]byte(`{"apiVersion":"kargo.akuity.io/v1alpha1","kind":"Stage","metadata":{"name":"dev"},"spec":{"requestedFreight":[{"origin":{"name":"w"},"sources":{"direct":true,"stages":["dev"]}}]}}`), "x:1.x-0", "any", "semver")
	f.Fuzz(func(t *testing.T, object []byte, images, allow, strategy string) {
		m := add(t, kargo)
		_ = m.Add(object)
		app := annotate("image-list", images, "allow-tags", allow, "update-strategy", strategy)
		_, _ = m.FindUpstream([]string{"dev", "qa", "prod"})
		for _, rules := range m.Migrate([]Application{app}, []string{"dev", "qa", "prod"}, []string{"dev"}).Rules {
			for _, r := range rules {
				if _, err := discover.Compile(r.Discovery.Choose); err != nil {
					t.Errorf("%s: %v", r.Discovery.Name(), err)
				}
			}
		}
	})
}
