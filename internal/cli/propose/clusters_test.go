package propose

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/appset"
)

func requirement(word string, operator appset.ClusterOperator, values ...string) appset.ClusterRequirement {
	return appset.ClusterRequirement{Word: word, Operator: operator, Values: values}
}

func selectorOf(set string, list ...appset.ClusterRequirement) appset.ClusterSelector {
	return appset.ClusterSelector{Set: set, Requirements: list}
}

// readOf is a text of literals and, as those that begin with @, words.
func readOf(set, field string, parts ...string) appset.ClusterRead {
	out := appset.ClusterRead{Set: set, Field: field}
	for _, p := range parts {
		word, isWord := strings.CutPrefix(p, "@")
		switch {
		case isWord:
			out.Parts, out.Words = append(out.Parts, appset.TextPart{Word: word}), append(out.Words, word)
		default:
			out.Parts = append(out.Parts, appset.TextPart{Literal: p})
		}
	}
	return out
}

func TestExampleClusters(t *testing.T) {
	const environment, region, role = "metadata.labels.environment", "metadata.labels.region", "metadata.labels.role"
	for _, c := range []struct {
		name      string
		selectors []appset.ClusterSelector
		reads     []appset.ClusterRead
		tree      []string
		names     []string
		servers   []string
		want      []string // name: fields
	}{
		{
			name: "one for each value that is selected, in the environments' order",
			selectors: []appset.ClusterSelector{
				selectorOf("a", requirement(environment, appset.ClusterIn, "prod", "staging")), selectorOf("b", requirement(environment, appset.ClusterIn, "dev")),
			},
			want: []string{"dev: environment=dev", "staging: environment=staging", "prod: environment=prod"},
		},
		{
			name:      "nothing is known of the value",
			selectors: []appset.ClusterSelector{selectorOf("a", requirement(environment, appset.ClusterHas))},
			want:      []string{"cluster-1: environment=CHANGE-ME"},
		},
		{
			name:      "a switch is every cluster's, and what is excluded is another cluster's",
			selectors: []appset.ClusterSelector{selectorOf("hub", requirement(role, appset.ClusterIn, "hub")), selectorOf("a", requirement(environment, appset.ClusterIn, "dev", "prod"), requirement(role, appset.ClusterNotIn, "hub"), requirement("metadata.labels.on", appset.ClusterIn, "true"))},
			want:      []string{"dev: environment=dev on=true", "prod: environment=prod on=true", "hub: role=hub"},
		},
		{
			name: "a cluster that no environment's may be is in one of them, where that is read",
			selectors: []appset.ClusterSelector{
				selectorOf("a", requirement(environment, appset.ClusterIn, "dev", "prod"), requirement(role, appset.ClusterHasNot)), selectorOf("b", requirement(role, appset.ClusterHas)),
			},
			reads: []appset.ClusterRead{readOf("b", "label", "@"+environment)},
			want:  []string{"dev: environment=dev", "prod: environment=prod", "dev-2: environment=dev role=CHANGE-ME"},
		},
		{
			name: "two labels",
			selectors: []appset.ClusterSelector{
				selectorOf("a", requirement(environment, appset.ClusterIn, "dev", "prod")), selectorOf("b", requirement(region, appset.ClusterIn, "eu", "us")),
				selectorOf("c", requirement(environment, appset.ClusterIn, "prod"), requirement(region, appset.ClusterIn, "eu")),
			},
			want: []string{"dev: environment=dev region=eu", "prod: environment=prod region=us", "prod-eu: environment=prod region=eu"},
		},
		{
			name:  "folders for environments, and a file for each",
			reads: []appset.ClusterRead{readOf("a", "path", "envs/", "@"+environment, "/apps"), readOf("a", "valueFiles", "$values/regions/values-", "@"+region, ".yaml")},
			tree:  []string{"envs/dev/apps/x", "envs/prod/apps/x", "envs/base/apps/x", "envs/clusters/apps/x", "envs/old/x", "regions/values-eu.yaml", "regions/values.yaml"},
			want:  []string{"dev: environment=dev region=eu", "prod: environment=prod region=eu"},
		},
		{
			name:      "below a folder that a git generator gives are no values",
			selectors: []appset.ClusterSelector{selectorOf("a", requirement(environment, appset.ClusterIn, "qa", "prod"))},
			reads:     []appset.ClusterRead{readOf("a", "path", "@path.path", "/", "@"+environment), readOf("a", "path", "@path", "/", "@"+environment)},
			tree:      []string{"apps/web/qa/x", "apps/web/prod/x"},
			want:      []string{"qa: environment=qa", "prod: environment=prod"},
		},
		{
			name:  "names of clusters tell their environments",
			reads: []appset.ClusterRead{readOf("a", "path", "clusters/", "@name", "/apps"), readOf("a", "tier", "@"+environment)},
			selectors: []appset.ClusterSelector{
				selectorOf("a", requirement(environment, appset.ClusterIn, "dev", "prod")),
			},
			tree:  []string{"clusters/eu-dev-1/apps/x", "clusters/eu-prod-1/apps/x", "clusters/us-prod-1/apps/x"},
			names: []string{"us-prod-2"},
			want:  []string{"eu-dev-1: environment=dev", "eu-prod-1: environment=prod", "us-prod-1: environment=prod", "us-prod-2: environment=prod"},
		},
		{
			name: "the repository's own address, branch and folder",
			reads: []appset.ClusterRead{
				readOf("a", "repoURL", "@metadata.annotations.url"), readOf("a", "targetRevision", "@metadata.annotations.revision"),
				readOf("a", "path", "@metadata.annotations.base", "charts/web"), readOf("a", "repoURL", "https://", "@metadata.annotations.host", "/x"),
			},
			tree:    []string{"gitops/charts/web/Chart.yaml"},
			servers: []string{"https://10.0.0.1:6443"},
			want:    []string{"cluster-1: base=gitops/ host=CHANGE-ME revision=main url=https://git.example/acme/fleet", "10.0.0.1:6443:"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := fstest.MapFS{}
			for _, name := range c.tree {
				tree[name] = &fstest.MapFile{}
			}
			f := &ClusterFacts{Use: &appset.ClusterUse{Selectors: c.selectors, Reads: c.reads}, Tree: tree, RepoURL: "https://git.example/acme/fleet", Branch: "main", Names: c.names, Servers: c.servers}
			var got []string
			for _, e := range ExampleClusters(f) {
				text := e.Name + ":"
				for _, field := range slices.Concat(e.Annotations, e.Labels) {
					text += " " + field.Key + "=" + field.Value
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestExampleClustersSatisfySelectors holds, for any selectors that don't contradict themselves, that
// each selects a cluster of the file as it is written and read again.
func TestExampleClustersSatisfySelectors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var selectors []appset.ClusterSelector
		for range rapid.IntRange(1, 6).Draw(t, "selectors") {
			var s appset.ClusterSelector
			for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"environment", "region", "role", "true"}), 1, 3, rapid.ID).Draw(t, "keys") {
				operator := rapid.SampledFrom([]appset.ClusterOperator{appset.ClusterIn, appset.ClusterNotIn, appset.ClusterHas, appset.ClusterHasNot}).Draw(t, "operator")
				r := requirement(labelWord+key, operator)
				if operator == appset.ClusterIn || operator == appset.ClusterNotIn {
					r.Values = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"dev", "prod", "true", "1", "x: y", "- z"}), 1, 3, rapid.ID).Draw(t, "values")
				}
				s.Requirements = append(s.Requirements, r)
			}
			selectors = append(selectors, s)
		}
		text := WriteClusters(ExampleClusters(&ClusterFacts{Use: &appset.ClusterUse{Selectors: selectors}, Tree: fstest.MapFS{}}))
		clusters, err := appset.ParseClusters(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for _, s := range selectors {
			if !slices.ContainsFunc(clusters, func(c appset.Cluster) bool { return selects(s, c) }) {
				t.Fatalf("%+v selects none of\n%s", s, text)
			}
		}
	})
}

func selects(s appset.ClusterSelector, c appset.Cluster) bool {
	for _, r := range s.Requirements {
		value, has := c.Labels[strings.TrimPrefix(r.Word, labelWord)]
		ok := map[appset.ClusterOperator]bool{
			appset.ClusterIn: has && slices.Contains(r.Values, value), appset.ClusterNotIn: !has || !slices.Contains(r.Values, value),
			appset.ClusterHas: has, appset.ClusterHasNot: !has,
		}[r.Operator]
		if !ok {
			return false
		}
	}
	return true
}

func TestQuoteScalar(t *testing.T) {
	for text, want := range map[string]string{"prod": "prod", "true": `"true"`, "": `""`, "1": `"1"`, "a: b": `"a: b"`, "a:": `"a:"`, "https://x:6443": "https://x:6443", "a #b": `"a #b"`} {
		if got := quoteScalar(text); got != want {
			t.Errorf("%q is written as %s, want %s", text, got, want)
		}
	}
}
