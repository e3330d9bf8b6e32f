package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestAffected(t *testing.T) {
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: \"1\"}"
	pod := func(spec string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {" + spec + "}}}"
	}
	for _, c := range []struct {
		name, before, after string
		want                []string
	}{
		{"itself", pod("nodeName: a"), pod("nodeName: b"), []string{"apps/Deployment /web"}},
		{"nothing", config, config, nil},
		{"environment", config + "\n---\n" + pod("containers: [{envFrom: [{configMapRef: {name: settings}}]}]"), "", []string{"/ConfigMap /settings", "apps/Deployment /web"}},
		{"one variable", config + "\n---\n" + pod("containers: [{env: [{name: a, valueFrom: {configMapKeyRef: {name: settings, key: a}}}]}]"), "", []string{"/ConfigMap /settings", "apps/Deployment /web"}},
		{"volume", config + "\n---\n" + pod("volumes: [{configMap: {name: settings}}]"), "", []string{"/ConfigMap /settings", "apps/Deployment /web"}},
		{"projected", config + "\n---\n" + pod("volumes: [{projected: {sources: [{configMap: {name: settings}}]}}]"), "", []string{"/ConfigMap /settings", "apps/Deployment /web"}},
		{"another's name", config + "\n---\n" + pod("volumes: [{configMap: {name: other}}, {name: settings, secret: {secretName: settings}}]"), "", []string{"/ConfigMap /settings"}},
		{"only a value", config + "\n---\n" + pod("containers: [{env: [{name: a, value: settings}]}]"), "", []string{"/ConfigMap /settings"}},
		{"another namespace", config + "\n---\n" + strings.Replace(pod("volumes: [{configMap: {name: settings}}]"), "{name: web}", "{name: web, namespace: far}", 1), "", []string{"/ConfigMap /settings"}},
		{"secret", strings.NewReplacer("ConfigMap", "Secret").Replace(config) + "\n---\n" + pod("volumes: [{secret: {secretName: settings}}]"), "", []string{"/Secret /settings", "apps/Deployment /web"}},
		{"projected secret", strings.NewReplacer("ConfigMap", "Secret").Replace(config) + "\n---\n" + pod("volumes: [{projected: {sources: [{secret: {name: settings}}]}}]"), "", []string{"/Secret /settings", "apps/Deployment /web"}},
		{"account", strings.NewReplacer("ConfigMap", "ServiceAccount").Replace(config) + "\n---\n" + pod("serviceAccountName: settings"), "", []string{"/ServiceAccount /settings", "apps/Deployment /web"}},
		{"claim", strings.NewReplacer("ConfigMap", "PersistentVolumeClaim").Replace(config) + "\n---\n" + pod("volumes: [{persistentVolumeClaim: {claimName: settings}}]"), "", []string{"/PersistentVolumeClaim /settings", "apps/Deployment /web"}},
		{"what scales what reads it", config + "\n---\n" + pod("volumes: [{configMap: {name: settings}}]") +
			"\n---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}" +
			"\n---\napiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: other}\nspec: {workloadRef: {apiVersion: apps.example/v1, kind: Deployment, name: web}}",
			"", []string{"/ConfigMap /settings", "apps/Deployment /web", "autoscaling/HorizontalPodAutoscaler /web"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.after == "" { // the first object changes, the rest stays
				c.after = strings.Replace(c.before, `{a: "1"}`, `{a: "2"}`, 1)
			}
			before, after := manifestsOf(t, c.before), manifestsOf(t, c.after)
			var got []string
			for _, r := range Diff(before, after).Affected(after) {
				got = append(got, fmt.Sprintf("%s/%s %s/%s", r.Group, r.Kind, r.Namespace, r.Name))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("affected are %q, want %q", got, c.want)
			}
		})
	}
	gone := manifestsOf(t, config)
	if got := Diff(gone, nil).Affected(nil); len(got) != 1 || got[0].Name != "settings" {
		t.Errorf("of what is gone: %v", got)
	}
}
