package appset

import (
	"encoding/json"
	"testing"
)

// TestAsLeft has an Application changed whose live one somebody overrode: what stays there.
func TestAsLeft(t *testing.T) {
	const git = `{"repoURL": "https://git.example/acme/fleet", "path": "web"`
	app := func(source string) json.RawMessage {
		return json.RawMessage(`{"metadata": {"name": "web", "namespace": "argocd"}, "spec": {"project": "default", "destination": {}, "source": ` + git + source + `}}}`)
	}
	images := func(tag string) string { return `, "kustomize": {"images": ["web:` + tag + `"]}` }
	ignores := Policy{IgnoreDifferences: []IgnoreDifference{{JSONPointers: []string{"/spec/source/kustomize/images"}}}}
	byPath := Policy{IgnoreDifferences: []IgnoreDifference{{JQPaths: []string{`.spec.source.helm.parameters[] | select(.name == "size")`}}}}
	for name, c := range map[string]struct {
		set                 string
		policy              Policy
		before, after, live string
		want                string // the options that it will have; empty: those of Git
	}{
		"a set that ignores it":             {set: "shop", policy: ignores, before: images("1.0"), after: images("1.1"), live: images("0.9"), want: `{"kustomize":{"images":["web:0.9"]}}`},
		"a set that ignores something else": {set: "shop", policy: Policy{IgnoreDifferences: []IgnoreDifference{{JSONPointers: []string{"/spec/source/targetRevision"}}}}, before: images("1.0"), after: images("1.1"), live: images("0.9")},
		"a set that ignores nothing":        {set: "shop", before: images("1.0"), after: images("1.1"), live: images("0.9")},
		"a set that never updates":          {set: "shop", policy: Policy{NoUpdate: true, IgnoreDifferences: ignores.IgnoreDifferences}, before: images("1.0"), after: images("1.1"), live: images("0.9")},
		"another Application's rule":        {set: "shop", policy: Policy{IgnoreDifferences: []IgnoreDifference{{Name: "other", JSONPointers: []string{"/spec/source/kustomize/images"}}}}, before: images("1.0"), after: images("1.1"), live: images("0.9")},
		"a list of which one item is ignored": {set: "shop", policy: byPath, before: `, "helm": {"parameters": [{"name": "tag", "value": "1.0"}]}`, after: `, "helm": {"parameters": [{"name": "tag", "value": "1.1"}]}`,
			live: `, "helm": {"parameters": [{"name": "tag", "value": "1.0"}, {"name": "size", "value": "5"}]}`, want: `{"helm":{"parameters":[{"name":"tag","value":"1.0"},{"name":"size","value":"5"}]}}`},
		"a plain one, over what Git has": {before: images("1.0"), after: images("1.1"), live: images("0.9")},
		"a plain one, beside what Git has": {before: `, "helm": {"values": "tag: 1.0"}`, after: `, "helm": {"values": "tag: 1.1"}`, live: `, "helm": {"values": "tag: 1.0", "parameters": [{"name": "tag", "value": "0.9"}]}`,
			want: `{"helm":{"parameters":[{"name":"tag","value":"0.9"}],"values":"tag: 1.1"}}`},
		"a plain one, what Git takes away": {before: images("1.0"), after: "", live: images("0.9")},
		"nothing is overridden":            {set: "shop", policy: ignores, before: images("1.0"), after: images("1.0"), live: images("1.0")},
	} {
		t.Run(name, func(t *testing.T) {
			target := func(source string) *Target {
				out := &Target{Name: "web", Namespace: "argocd", ApplicationSet: c.set, Policy: c.policy, Application: app(source),
					Sources: []Source{{RepoURL: "https://git.example/acme/fleet", Path: "web", Here: true}}}
				if err := RestoreOptions(out); err != nil {
					t.Fatal(err)
				}
				return out
			}
			left, err := target(c.after).AsLeft(target(c.before), app(c.live))
			got := ""
			if left != nil {
				got = string(left.Sources[0].Options)
				if !left.Live || !left.Sources[0].Here {
					t.Errorf("it is %+v", left)
				}
			}
			var is, want any
			if got != "" {
				_ = json.Unmarshal([]byte(got), &is)
			}
			if c.want != "" {
				_ = json.Unmarshal([]byte(c.want), &want)
			}
			if err != nil || asJSON(is) != asJSON(want) {
				t.Errorf("it will have %q, %v; want %q", got, err, c.want)
			}
		})
	}
	if _, err := (&Target{Name: "web", Application: json.RawMessage("{")}).AsLeft(&Target{Application: app("")}, app("")); err == nil {
		t.Error("one that can't be read can be told")
	}
}

func asJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
