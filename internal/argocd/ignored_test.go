package argocd

import (
	"strings"
	"testing"
)

// TestIgnoredDifferences holds what is read of Argo CD's settings and of Applications that ignores differences.
func TestIgnoredDifferences(t *testing.T) {
	for name, c := range map[string]struct{ raw, want, err string }{
		"nothing":         {`{"data":{"url":"https://argocd.example"}}`, "", ""},
		"two kinds":       {`{"data":{"resource.customizations.ignoreDifferences.all":"a","resource.customizations.ignoreDifferences.apps_Deployment":"b","resource.customizations.health.x":"c"}}`, `{"all":"a","apps_Deployment":"b"}`, ""},
		"too much":        {`{"data":{"resource.customizations.ignoreDifferences.all":"` + strings.Repeat("x", maxIgnored) + `"}}`, "", "more than the 16384"},
		"no ConfigMap":    {`[]`, "", "read the ConfigMap argocd-cm"},
		"without entries": {`{}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseIgnored([]byte(c.raw))
			if got != c.want || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("it is %q: %v", got, err)
			}
		})
	}
	spec := func(rest string) string { return `{"metadata":{"name":"web"},"spec":{` + rest + `}}` }
	for name, c := range map[string]struct {
		raw, ignored string
		respects     bool
	}{
		"nothing":  {spec(`"project":"p"`), "", false},
		"some":     {spec(`"ignoreDifferences":[{"kind":"x"}],"syncPolicy":{"syncOptions":["CreateNamespace=true"]}`), `[{"kind":"x"}]`, false},
		"respects": {spec(`"ignoreDifferences":[],"syncPolicy":{"syncOptions":["RespectIgnoreDifferences=true"]}`), "[]", true},
		"too much": {spec(`"ignoreDifferences":["` + strings.Repeat("x", maxIgnored) + `"]`), "", false},
	} {
		t.Run("an Application: "+name, func(t *testing.T) {
			app, _, err := decodeApplication("main", []byte(c.raw))
			if err != nil || app.Ignored != c.ignored || app.RespectsIgnored != c.respects {
				t.Errorf("it is %q, %t: %v", app.Ignored, app.RespectsIgnored, err)
			}
		})
	}
}
