package render

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestFromArgoCD compares what Argo CD rendered as what is rendered here, without its marks.
func TestFromArgoCD(t *testing.T) {
	before, err := FromArgoCD([]string{
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","annotations":{"argocd.argoproj.io/tracking-id":"web-prod:apps/Deployment:web/web"}},"spec":{"replicas":1}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"conf-t7fgm5bb2h","annotations":{"a":"b","argocd.argoproj.io/tracking-id":"web-prod:/ConfigMap:web/conf-t7fgm5bb2h"}},"data":{"a":"1"}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pw"},"data":{"a":"++++++++"}}`, "null", " "})
	if err != nil {
		t.Fatal(err)
	}
	after, err := FromArgoCD([]string{
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":2}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"conf-9k4mm7c8bt","annotations":{"a":"b","argocd.argoproj.io/tracking-id":"web-prod:/ConfigMap:web/conf-9k4mm7c8bt"}},"data":{"a":"2"}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pw"},"data":{"a":"++++++++","b":"++++++++"}}`})
	if err != nil {
		t.Fatal(err)
	}
	got := Diff(before, after).Text(TextLimit{Bytes: 4096, Lines: 100, ObjectLines: 100})
	for _, want := range []string{"conf-t7fgm5bb2h → conf-9k4mm7c8bt", "+ spec.replicas: 2", "+ data.b: (hidden)"} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	for _, not := range []string{"tracking", "++++++++", "data.a: (hidden"} {
		if strings.Contains(got, not) {
			t.Errorf("there is %q in\n%s", not, got)
		}
	}
}

// TestFromArgoCDRefuses refuses what is no object, and more than one rendering may take.
func TestFromArgoCDRefuses(t *testing.T) {
	for name, manifests := range map[string][]string{
		"no JSON":   {`{"kind"`},
		"a list":    {`[]`},
		"no kind":   {`{"metadata":{"name":"x"}}`},
		"a comment": {`# nothing`},
	} {
		if m, err := FromArgoCD(manifests); err == nil {
			t.Errorf("%s: %v", name, m.Objects)
		}
	}
	many := make([]string, maxObjects+1)
	for i := range many {
		many[i] = `{"kind":"X"}`
	}
	if _, err := FromArgoCD(many); !errors.Is(err, ErrLimit) {
		t.Errorf("too many objects: %v", err)
	}
}

// TestHideSecrets takes out of what failed what nobody should read.
func TestHideSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"exit status 1": "exit status 1",
		"helm pull --password hunter2 --version 1.2.3":        "helm pull --password (hidden) --version 1.2.3",
		`{"apiKey": "hunter2", "a": 1}`:                       `{"apiKey": (hidden), "a": 1}`,
		"DB_PASSWORD=hunter2; export A=1":                     "DB_PASSWORD=(hidden); export A=1",
		"can't reach https://me:hunter2@charts.example/x.tgz": "can't reach https://charts.example/x.tgz",
	} {
		if got := HideSecrets(text); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

// FuzzFromArgoCD takes anything for a manifest; what comes out can be compared.
func FuzzFromArgoCD(f *testing.F) {
	f.Add(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","annotations":{"argocd.argoproj.io/tracking-id":"x"}},"data":{"a":"aHVudGVyMg"}}`, `{"kind":"List","items":[]}`)
	f.Add(`{"kind":"ConfigMap","metadata":{"annotations":null}}`, `null`)
	f.Fuzz(func(t *testing.T, a, b string) {
		before, err := FromArgoCD([]string{a})
		if err != nil {
			return
		}
		after, err := FromArgoCD([]string{a, b})
		if err != nil {
			return
		}
		changes := Diff(before, after)
		if _, err := json.Marshal(changes); err != nil {
			t.Errorf("%q, %q: %v", a, b, err)
		}
		changes.Text(TextLimit{Bytes: 1000, Lines: 10, ObjectLines: 10})
	})
}
