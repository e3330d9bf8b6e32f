package branch

import "testing"

func TestWhyEmpty(t *testing.T) {
	for _, c := range []struct {
		name string
		p    ResolvedPipeline
		want string
	}{
		{"with a component", ResolvedPipeline{Units: map[string]*ResolvedUnit{"web": {}}, Problems: []string{"no"}}, ""},
		{"a problem", ResolvedPipeline{Problems: []string{`argocd/shop.yaml: its project "default" does not exist`}},
			`it has no component: argocd/shop.yaml: its project "default" does not exist`},
		{"problems", ResolvedPipeline{Problems: []string{"no", "never", "nowhere"}},
			"it has no component: no; and 2 more problems, which `liftlock resolve` in a checkout names"},
		{"nothing", ResolvedPipeline{},
			"it has no component: what it names generates no Application with an environment of its own; `liftlock resolve` in a checkout says what is generated"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.p.WhyEmpty(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
