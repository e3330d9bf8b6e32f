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

// TestHideSecrets takes secrets out of the text of an error.
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

// TestDiffNames hides whatever may be a secret, wherever a plugin put it, and shows images.
func TestDiffNames(t *testing.T) {
	objects := func(v, image string) []string {
		return []string{
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","annotations":{"name":"S` + v + `"}},"data":{"name":"S` + v + `","image":"S` + v + `"}}`,
			`{"apiVersion":"x.io/v1","kind":"Custom","metadata":{"name":"c"},"spec":{"image":"S` + v + `","list":[{"name":"S` + v + `","v":1}],"hosts":[{"host":"S` + v + `"}],"n":` + v + `}}`,
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":` + v + `,"template":{"spec":{"containers":[{"name":"web","image":"` + image + `","args":["S` + v + `"],"command":["a","S` + v + `"],"env":[{"name":"PLAIN","value":"S` + v + `"}],"httpHeaders":[{"key":"S` + v + `"}]}]}}}}`,
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"only-` + v + `"},"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"web","image":"` + image + `","args":["S` + v + `"],"env":[{"name":"PLAIN","value":"S` + v + `"}]}]}}}}`,
			`{"apiVersion":"x.io/v1","kind":"Custom","metadata":{"name":"only-` + v + `"},"spec":{"list":[{"name":"S` + v + `"}],"text":"S` + v + `"}}`,
		}
	}
	before, err := FromArgoCD(objects("111111", "web:1"))
	if err != nil {
		t.Fatal(err)
	}
	after, err := FromArgoCD(objects("222222", "web:2"))
	if err != nil {
		t.Fatal(err)
	}
	changes := DiffNames(before, after)
	raw, err := json.Marshal(changes)
	if err != nil {
		t.Fatal(err)
	}
	text := changes.Text(TextLimit{})
	for _, secret := range []string{"S111111", "S222222", "spec.n: 1"} {
		if strings.Contains(text, secret) || strings.Contains(string(raw), secret) {
			t.Errorf("%s is shown in\n%s\n%s", secret, text, raw)
		}
	}
	for _, want := range []string{
		"- spec.template.spec.containers[name=web].image: web:1\n+ spec.template.spec.containers[name=web].image: web:2",
		"+ spec.replicas: 222222", "+ data.name: (hidden, changed)", "+ spec.n: (hidden, changed)", "+ spec.image: (hidden, changed)",
		"env[name=PLAIN].value: (hidden, changed)", "args[0]: (hidden, changed)", "@@ x.io/v1 Custom only-222222 added @@", "+ spec.template.spec.containers[name=web].image: web:2",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}
