package propose

import (
	"testing"

	"github.com/liftlock/liftlock/internal/appset"
)

// TestAssignComposedComponents puts two parameters together where one set deploys one name several times to a cluster, and
// only there.
func TestAssignComposedComponents(t *testing.T) {
	const folder, both = `{{ index .path.segments 2 }}`, `{{ index .path.segments 1 }}-{{ index .path.segments 2 }}`
	type one struct{ team, app, env, cluster, set string }
	teams := []one{
		{"shop", "api", "staging", "staging", "a"}, {"shop", "api", "prod", "prod", "a"}, {"shop", "web", "staging", "staging", "a"}, {"shop", "web", "prod", "prod", "a"},
		{"billing", "api", "staging", "staging", "a"}, {"billing", "api", "prod", "prod", "a"}, {"billing", "jobs", "staging", "staging", "a"}, {"billing", "jobs", "prod", "prod", "a"},
	}
	changed := func(change func(o *one)) []one {
		out := append([]one(nil), teams...)
		for i := range out {
			change(&out[i])
		}
		return out
	}
	for name, c := range map[string]struct {
		all  []one
		want string
	}{
		"teams on one cluster":    {teams, both},
		"each on its own cluster": {changed(func(o *one) { o.cluster = o.team + "-" + o.env }), folder},
		"each from its own set":   {changed(func(o *one) { o.set = o.team }), folder},
		"names that differ":       {changed(func(o *one) { o.app = map[string]string{"billing api": "invoices"}[o.team+" "+o.app] + o.app }), folder},
		"repeated in prod alone": {changed(func(o *one) {
			if o.team == "billing" && o.env == "staging" {
				o.cluster = "another"
			}
		}), folder},
	} {
		t.Run(name, func(t *testing.T) {
			var targets []appset.Target
			for _, o := range c.all {
				at := "apps/" + o.team + "/" + o.app + "/" + o.env
				targets = append(targets, appset.Target{Name: o.app + "-" + o.env + "-" + o.team, ApplicationSet: o.set, ApplicationSetFile: "argocd/" + o.set + ".yaml", Cluster: o.cluster,
					Sources: []appset.Source{{Path: at, RepoURL: "https://git.example/acme/deploy.git"}},
					Params:  map[string]any{"path": map[string]any{"path": at, "basename": o.env, "segments": []any{"apps", o.team, o.app, o.env}}}})
			}
			got, err := Assign(t.Context(), targets, Templates{})
			if err != nil {
				t.Fatal(err)
			}
			if got.Component != c.want || got.Environment != "{{ .path.basename }}" {
				t.Errorf("components by %s, environments by %s; want components by %s", got.Component, got.Environment, c.want)
			}
		})
	}
}
