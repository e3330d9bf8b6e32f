package pipeline

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
)

// discovering is the minimal pipeline with lines in its environment dev, which is at line 12 of the file.
func discovering(lines string) string {
	return strings.Replace(minimalPipeline, "    - name: dev\n", "    - name: dev\n"+lines, 1)
}

// TestDiscoverIsRefused holds what is said of entries of which isn't sure what they do, with the line.
func TestDiscoverIsRefused(t *testing.T) {
	t.Parallel()
	entry := func(text string) string { return "      discover:\n        - " + text + "\n" }
	for name, c := range map[string]struct{ text, want string }{
		"behind another environment": {strings.Replace(minimalPipeline, "after: [dev]\n", "after: [dev]\n      discover: [{image: a, choose: {semver: '*'}}]\n      deliver: commit\n", 1),
			"p:15: spec.environments[1].discover: is for source environments; releases come to qa from dev: remove it, or remove `after`\n" +
				"p:16: spec.environments[1].deliver: is for source environments; releases come to qa from dev: remove it, or remove `after`"},
		"nothing":              {discovering("      discover: []\n"), "p:13: spec.environments[0].discover: at least one entry that says what comes in is needed"},
		"what to deliver":      {discovering("      deliver: commit\n"), "p:13: spec.environments[0].deliver: does nothing without discover, which says what comes in: remove it"},
		"another delivery":     {discovering(entry("{image: a, choose: {semver: '*'}}") + "      deliver: mail\n"), `p:15: spec.environments[0].deliver: "mail" is not one of commit, pull-request`},
		"neither":              {discovering(entry("{choose: {semver: '*'}}")), "p:14: spec.environments[0].discover[0]: exactly one of image and chart is needed; this entry has neither"},
		"both":                 {discovering(entry("{image: a, chart: oci://b/c, choose: {semver: '*'}}")), "p:14: spec.environments[0].discover[0]: exactly one of image and chart is needed; this entry has both"},
		"no rule":              {discovering(entry("{image: a}")), `p:14: spec.environments[0].discover[0]: choose is missing: which tag comes in, like choose: {semver: ">=1.0.0"}`},
		"a rule without order": {discovering(entry("{image: a, choose: {newest: {tags: '^main-'}}}")), "p:14: spec.environments[0].discover[0].choose.newest: by is missing: number, alphabet or created; without it nothing orders the tags"},
		"a key of a rule":      {discovering(entry("{image: a, choose: {semver: '*', prereleases: true}}")), `p:14: spec.environments[0].discover[0].choose: unknown key "prereleases"; did you mean "prerelease"?`},
		"a tag":                {discovering(entry("{image: 'a:1', choose: {semver: '*'}}")), `p:14: spec.environments[0].discover[0].image: "a:1" has a tag or a digest; write the name alone, and which tags come in under choose`},
		"an address":           {discovering(entry("{image: 'https://a/b', choose: {semver: '*'}}")), `p:14: spec.environments[0].discover[0].image: "https://a/b" is an address; write the image's name as a carried field has it, like registry.example/web`},
		"no name":              {discovering(entry("{image: '', choose: {semver: '*'}}")), `p:14: spec.environments[0].discover[0].image: "" is no image's name; write it like registry.example/web, or a glob like registry.example/*`},
		"no glob":              {discovering(entry("{image: 'a[', choose: {semver: '*'}}")), `p:14: spec.environments[0].discover[0].image: "a[" is not a valid glob on image names`},
		"no chart":             {discovering(entry("{chart: charts.example/web, choose: {semver: '*'}}")), `p:14: spec.environments[0].discover[0].chart: "charts.example/web" is no chart; write it like oci://registry.example/charts/web or https://charts.example#web`},
		"a chart's digest":     {discovering(entry("{chart: 'oci://a.example/b/c', choose: {digest: {tag: main}}}")), "p:14: spec.environments[0].discover[0].chart: choose: {digest: …} is for images; charts are carried by their version: use semver, or newest by number or alphabet"},
		"a chart by its time":  {discovering(entry("{chart: 'oci://a.example/b/c', choose: {newest: {tags: ., by: created}}}")), "p:14: spec.environments[0].discover[0].chart: choose: {newest: {by: created}} is for images; charts are carried by their version: use semver, or newest by number or alphabet"},
		"a chart's platform":   {discovering(entry("{chart: 'oci://a.example/b/c', platforms: [linux/amd64], choose: {semver: '*'}}")), "p:14: spec.environments[0].discover[0].platforms: charts have no platforms: remove it"},
		"no platform":          {discovering(entry("{image: a, platforms: [amd64], choose: {semver: '*'}}")), `p:14: spec.environments[0].discover[0].platforms[0]: "amd64" is no platform; write it like linux/amd64 or linux/arm/v7`},
		"twice": {discovering("      discover:\n        - {image: a/b, choose: {semver: '*'}}\n        - {image: 'a/*', choose: {semver: '1'}}\n"),
			"p:15: spec.environments[0].discover[1]: a/* and discover[0] (a/b) are about the same, and each could choose another tag: keep one of them, or write globs that don't overlap"},
		"a chart twice": {discovering("      discover:\n        - {chart: 'https://a.example#b', choose: {semver: '*'}}\n        - {chart: 'https://a.example#b', choose: {semver: '1'}}\n"),
			"p:15: spec.environments[0].discover[1]: https://a.example#b and discover[0] (https://a.example#b) are about the same, and each could choose another tag: keep one of them, or write globs that don't overlap"},
		"no signer":           {discovering(entry("{image: a, verify: {}, choose: {semver: '*'}}")), "p:14: spec.environments[0].discover[0].verify: cosign is missing: whose signatures count, like cosign: {key: keys/web.pub}"},
		"no key":              {discovering(entry("{image: a, verify: {cosign: {signedAs: [b]}}, choose: {semver: '*'}}")), "p:14: spec.environments[0].discover[0].verify.cosign: key is missing: a public key in PEM, or the path of a file with one, like keys/web.pub"},
		"a key elsewhere":     {discovering(entry("{image: a, verify: {cosign: {key: ../web.pub}}, choose: {semver: '*'}}")), `p:14: spec.environments[0].discover[0].verify.cosign.key: "../web.pub" is neither a public key in PEM nor the path of a file in this repository, like keys/web.pub`},
		"a key of a cloud":    {discovering(entry("{image: a, verify: {cosign: {key: 'awskms:///alias/web'}}, choose: {semver: '*'}}")), `p:14: spec.environments[0].discover[0].verify.cosign.key: "awskms:///alias/web" is neither a public key in PEM nor the path of a file in this repository, like keys/web.pub`},
		"a broken key":        {discovering(entry("{image: a, verify: {cosign: {key: '-----BEGIN PUBLIC KEY-----'}}, choose: {semver: '*'}}")), "p:14: spec.environments[0].discover[0].verify.cosign.key: it is no public key in PEM, which begins with -----BEGIN PUBLIC KEY-----"},
		"another name's glob": {discovering(entry("{image: a, verify: {cosign: {key: k, signedAs: ['b:1']}}, choose: {semver: '*'}}")), `p:14: spec.environments[0].discover[0].verify.cosign.signedAs[0]: "b:1" has a tag or a digest; write the name alone, and which tags come in under choose`},
		"keyless":             {discovering(entry("{image: a, verify: {keyless: {identity: i, issuer: s, roots: r}}, choose: {semver: '*'}}")), "p:14: spec.environments[0].discover[0].verify.keyless: not supported yet: it takes certificates and a transparency log, and half of that proves nothing; sign with a key, as cosign sign --key does, and write cosign: {key: …}"},
		"a signed chart":      {discovering(entry("{chart: 'https://a.example#b', verify: {cosign: {key: k}}, choose: {semver: '*'}}")), "p:14: spec.environments[0].discover[0].verify: charts of https://a.example#b have no signatures that are looked at; take one in a registry, oci://…"},
		"another pin":         {discovering(entry("{image: a, pin: tag, choose: {semver: '*'}}")), `p:14: spec.environments[0].discover[0].pin: "tag" is not one of digest`},
		"a chart's pin":       {discovering(entry("{chart: 'oci://a.example/b/c', pin: digest, choose: {semver: '*'}}")), "p:14: spec.environments[0].discover[0].pin: charts are carried by their version, which has no digest: remove it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("p", []byte(c.text))
			var found strictyaml.Errors
			if !errors.As(err, &found) {
				t.Fatalf("it is taken, or %v", err)
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDiscoverIsRead holds which entries are about which images and charts.
func TestDiscoverIsRead(t *testing.T) {
	t.Parallel()
	all, err := Parse("p", []byte(discovering(`      discover:
        - {image: "registry.example/*", choose: {semver: "~1.2", prerelease: true}, platforms: [linux/amd64]}
        - {image: "docker.io/library/nginx", choose: {digest: {tag: stable}}, verify: {cosign: {key: keys/nginx.pub, signedAs: ["ci.example/*"]}}, pin: digest}
        - {chart: "oci://registry.example/charts/web/", choose: {semver: "~3.2"}}
        - {chart: "https://charts.example/stable#redis", choose: {newest: {tags: ".", by: alphabet}}}
      deliver: commit
`)))
	if err != nil {
		t.Fatal(err)
	}
	entries := all[0].Spec.Environments[0].Discover
	if v := entries[1].Verify; v == nil || v.Cosign.Key != "keys/nginx.pub" || v.Cosign.SignedAs[0] != "ci.example/*" || !entries[1].Pins() || entries[0].Pins() {
		t.Errorf("%+v", entries[1])
	}
	for name, want := range map[string]string{
		"registry.example/web": "0", "registry.example/a/b": "", "registry.example": "", "docker.io/library/nginx": "1", "nginx": "",
		ChartAddress("registry.example/charts", "web"): "2", ChartAddress("oci://registry.example/charts/", "web"): "2", ChartAddress("https://charts.example/stable/", "redis"): "3",
		ChartAddress("https://charts.example/stable", "mysql"): "",
	} {
		got := ""
		for i := range entries {
			if entries[i].MatchesImage(name) || entries[i].MatchesChart(name) {
				got += fmt.Sprint(i)
			}
		}
		if got != want {
			t.Errorf("%s: entry %q, not %q", name, got, want)
		}
	}
	for address, want := range map[string]string{
		"oci://registry.example/charts/web": "registry.example/charts web true", "https://charts.example/stable/#redis": "https://charts.example/stable redis false", "http://charts.example#redis": "http://charts.example redis false",
		"oci://registry.example": "", "oci://registry.example/": "", "oci://registry.example//": "", "oci:///web": "", "https://charts.example": "", "https://charts.example#": "", "ftp://charts.example#web": "", "charts.example#web": "", "": "", "oci://a/b@c": "", "https://a#b/c": "",
	} {
		repository, chart, isOCI, ok := SplitChart(address)
		got := ""
		if ok {
			got = fmt.Sprint(repository, " ", chart, " ", isOCI)
		}
		if got != want {
			t.Errorf("%s: %q, not %q", address, got, want)
		}
	}
}

// TestDocumentedDiscover reads the entries that docs/releases.md shows.
func TestDocumentedDiscover(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/releases.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "<!-- discover -->\n```yaml\n")
	block, _, ok := strings.Cut(block, "```")
	if !ok {
		t.Fatal("the page shows none")
	}
	shown := "    " + strings.ReplaceAll(strings.TrimSuffix(block, "\n"), "\n", "\n    ") + "\n"
	all, err := Parse("p", []byte(strings.Replace(minimalPipeline, "    - name: dev\n", shown, 1)))
	if err != nil || len(all[0].Spec.Environments[0].Discover) != 4 {
		t.Errorf("%v in\n%s", err, shown)
	}
}
