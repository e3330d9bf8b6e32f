package argocd

import (
	"net/http"
	"testing"
)

// The policy of the ApplicationSet controller is read from its settings, which needn't be
// there, nor be readable.
func TestDetectSetPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		data   string // of the ConfigMap; empty: there is none
		status int    // of the answer; 0: it is given
		all    bool   // of all namespaces, so that Argo CD's own isn't known
		want   SetPolicy
		failed bool
	}{
		"one that never updates":       {data: `{"applicationsetcontroller.policy":"create-only"}`, want: SetPolicy{Sync: "create-only"}},
		"that sets may override":       {data: `{"applicationsetcontroller.policy":"create-delete","applicationsetcontroller.enable.policy.override":"true"}`, want: SetPolicy{Sync: "create-delete", Override: true}},
		"an override that is none":     {data: `{"applicationsetcontroller.policy":"sync","applicationsetcontroller.enable.policy.override":"please"}`, want: SetPolicy{Sync: "sync"}},
		"an override of nothing":       {data: `{"applicationsetcontroller.enable.policy.override":"true"}`},
		"none that the controller has": {data: `{"applicationsetcontroller.policy":"create"}`},
		"other settings":               {data: `{"server.insecure":"true"}`},
		"no settings":                  {},
		"settings without anything":    {data: `null`},
		"may not be read":              {data: `{"applicationsetcontroller.policy":"create-only"}`, status: http.StatusForbidden},
		"can't be read":                {data: `{"applicationsetcontroller.policy":"create-only"}`, status: http.StatusInternalServerError, failed: true},
		"no settings at all":           {data: `[]`, failed: true},
		"nobody knows where":           {data: `{"applicationsetcontroller.policy":"create-only"}`, all: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t)
			if c.data != "" {
				s.set("configmaps", "argocd", settingsName, `{"data":`+c.data+`}`)
			}
			if c.status != 0 {
				s.failWith("configmaps", c.status)
			}
			o := Options{Name: "hub", Config: s.config(), Namespaces: []string{"argocd", "shop"}}
			if c.all {
				o.Namespaces = nil
			}
			w, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			got, err := w.detectSetPolicy(t.Context())
			if got != c.want || (err != nil) != c.failed {
				t.Errorf("%+v, %v; wanted %+v", got, err, c.want)
			}
		})
	}
}

// A policy that is set while Liftlock runs counts as a change.
func TestSetPolicyChanges(t *testing.T) {
	changes := 0
	n := &versionCounter{onChange: func() { changes++ }}
	n.setSetPolicy(SetPolicy{})
	n.setSetPolicy(SetPolicy{Sync: "create-only"})
	n.setSetPolicy(SetPolicy{Sync: "create-only"})
	if got := n.currentVersion().SetPolicy; changes != 1 || got.Sync != "create-only" {
		t.Errorf("%d changes, %+v", changes, got)
	}
}
