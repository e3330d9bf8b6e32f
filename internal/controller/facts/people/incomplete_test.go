package people

import (
	"fmt"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion"
)

// TestWhyIncomplete finds what one commit of a source environment changed together with what is carried.
func TestWhyIncomplete(t *testing.T) {
	const base = "https://git.example/acme/build//config"
	file := func(tag string, refs ...string) map[string]string {
		text := "resources:\n- ../../base\n"
		for _, r := range refs {
			text += "- " + r + "\n"
		}
		return map[string]string{"apps/web/kustomization.yaml": text + fmt.Sprintf("images: [{name: x, newTag: '%s'}]\n", tag)}
	}
	below := func(ref string) map[string]string {
		return map[string]string{"apps/web/parts/kustomization.yaml": "resources: ['" + base + "?ref=" + ref + "']\n"}
	}
	both := func(a, b map[string]string) map[string]string {
		out := map[string]string{}
		for _, files := range []map[string]string{a, b} {
			for name, text := range files {
				out[name] = text
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		carry string // instead of images alone
		dev   []map[string]string
		prod  map[string]string
		want  string // a part of it; empty: nothing is left out
	}{
		"both changed": {dev: []map[string]string{file("1", base+"?ref=a"), file("2", base+"?ref=b")}, prod: file("1", base+"?ref=a"),
			want: "changed the ref of " + base + " (b, in prod a) in dev together with what is carried, and that isn't: carry it (kustomizeRefs: [\"" + base + "\"]) or give it to prod by a commit"},
		"both are carried":                       {carry: "kustomizeImages: ['*']}, {kustomizeRefs: ['https://git.example/**']", dev: []map[string]string{file("1", base+"?ref=a"), file("2", base+"?ref=b")}, prod: file("1", base+"?ref=a")},
		"the whole file is carried":              {carry: "files: {include: ['kustomization.yaml']}", dev: []map[string]string{file("1", base+"?ref=a"), file("2", base+"?ref=b")}, prod: file("1", base+"?ref=a")},
		"the item is carried":                    {carry: "kustomizeImages: ['*']}, {yaml: {files: ['kustomization.yaml'], paths: ['resources[1]']}", dev: []map[string]string{file("1", base+"?ref=a"), file("2", base+"?ref=b")}, prod: file("1", base+"?ref=a")},
		"the image alone":                        {dev: []map[string]string{file("1", base+"?ref=b"), file("2", base+"?ref=b")}, prod: file("1", base+"?ref=a")},
		"one commit after the other":             {dev: []map[string]string{file("1", base+"?ref=a"), file("1", base+"?ref=b"), file("2", base+"?ref=b")}, prod: file("1", base+"?ref=a")},
		"the other environment has it":           {dev: []map[string]string{file("1", base+"?ref=a"), file("2", base+"?ref=b")}, prod: file("1", base+"?timeout=9&ref=b")},
		"the other environment has no such base": {dev: []map[string]string{file("1", base+"?ref=a"), file("2", base+"?ref=b")}, prod: file("1", "https://git.example/acme/other?ref=a")},
		"the other environment takes another folder of it": {dev: []map[string]string{file("1", base+"?ref=a"), file("2", base+"?ref=b")}, prod: file("1", "https://git.example/acme/build//prod?ref=a"),
			want: "changed the ref of " + base + " (b, in prod a) in dev together with what is carried, and that isn't: give it to prod by a commit"},
		"an earlier release, which the other environment never had": {dev: []map[string]string{file("1", base+"?ref=a"), file("2", base+"?ref=b"), file("3", base+"?ref=b")}, prod: file("1", base+"?ref=a"), want: "(b, in prod a)"},
		"changed again since":    {dev: []map[string]string{file("1", base+"?ref=a"), file("2", base+"?ref=b"), file("3", base+"?ref=c")}, prod: file("1", base+"?ref=a"), want: "(c, in prod a)"},
		"changed back since":     {dev: []map[string]string{file("1", base+"?ref=a"), file("2", base+"?ref=b"), file("3", base+"?ref=a")}, prod: file("1", base+"?ref=a")},
		"a base that came along": {dev: []map[string]string{file("1"), file("2", base+"?ref=b")}, prod: file("1", base+"?ref=a")},
		"a kustomization below": {dev: []map[string]string{both(file("1"), below("a")), both(file("2"), below("b"))}, prod: both(file("1"), below("a")),
			want: "changed the ref of " + base + " (b, in prod a) in dev together with what is carried, and that isn't: give it to prod by a commit"},
		"what the other environment has can't be read": {dev: []map[string]string{both(file("1"), below("a")), both(file("2"), below("b"))},
			prod: both(file("1"), map[string]string{"apps/web/parts/kustomization.yaml": "resources: {{ x }}\n"}), want: "and what prod has can't be told: apps/web/parts/kustomization.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			pipeline := branchPipeline
			if c.carry != "" {
				pipeline = strings.Replace(pipeline, `{kustomizeImages: ["*"]}`, "{"+c.carry+"}", 1)
			}
			d := &devReleases{testRepo: newBranchRepo(t, map[string]string{".liftlock.yaml": pipeline})}
			d.commit("main", c.prod)
			d.checkoutBranch("env/dev")
			for _, files := range c.dev {
				d.last = d.commit("env/dev", files)
			}
			o := newTestGatherer(d.testRepo)
			e, release := d.evaluate(o)
			prod := e.Env("prod")
			rel, err := o.Releases.ReadRelease(d.Repository, prod.Tip, e.Pipeline, e.Unit.Envs["prod"])
			if err != nil || release == "" {
				t.Fatal(release, err)
			}
			prod.Release = promotion.Sure(promotion.Release{ID: rel.ID(), Name: rel.String()})
			got, err := o.Authors.WhyIncomplete(t.Context(), e, prod, release)
			if err != nil || !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("it says %q, %v; not %q", got, err, c.want)
			}
		})
	}
}
