package console

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/fieldedit"
)

func TestComparison(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	status, _, body := w.get("/api/v1/pipelines/shop/compare?component=web&from=dev&to=prod")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	var got api.Comparison
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	names := func(list []api.ArrivedRelease) (out []string) {
		for _, s := range list {
			out = append(out, s.Name+" by "+s.Who)
		}
		return out
	}
	if diff := cmp.Diff([]string{"1.5.0 by grace", "1.4.3 by edsger"}, names(got.Behind)); diff != "" {
		t.Error("behind", diff)
	}
	if len(got.Ahead) != 0 || got.Common == nil || got.Common.Name != "1.4.2" || got.Unknown != "" {
		t.Errorf("%s", body)
	}
	if diff := cmp.Diff([]api.FieldChange{{Kind: "image", File: "kustomization.yaml", Path: "images[registry.example/web].newTag", From: ptr("1.5.0"), To: ptr("1.4.2")}}, got.Fields); diff != "" {
		t.Error("fields", diff)
	}
}

func TestComparisonRefuses(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	for query, want := range map[string]struct {
		status int
		text   string
	}{
		"component=web&from=dev":                   {http.StatusBadRequest, "component, from and to are needed"},
		"component=web&from=dev&to=moon":           {http.StatusNotFound, "moon"},
		"component=none&from=dev&to=prod":          {http.StatusNotFound, "none"},
		"component=web&from=dev&to=prod&colour=1":  {http.StatusBadRequest, "colour"},
		"component=cart&from=dev&to=prod":          {http.StatusOK, "what dev carries isn't known"},
		"component=web&from=prod&to=prod":          {http.StatusOK, `"fields":[]`},
		"component=web&from=dev&to=prod&from=prod": {http.StatusBadRequest, "2 times"},
	} {
		status, _, body := w.get("/api/v1/pipelines/shop/compare?" + query)
		if status != want.status || !strings.Contains(strings.ReplaceAll(body, `": `, `":`), want.text) {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
}

func TestMovedFields(t *testing.T) {
	t.Parallel()
	from := []fieldedit.Field{{Kind: "yaml", File: "b.yaml", Path: "x", Value: "1"}, {Kind: "yaml", File: "a.yaml", Path: "x", Value: "same"}, {Kind: "file", File: "only.txt", Path: "", Value: "abc"}}
	to := []fieldedit.Field{{Kind: "yaml", File: "a.yaml", Path: "x", Value: "same"}, {Kind: "yaml", File: "b.yaml", Path: "x", Value: ""}, {Kind: "yaml", File: "b.yaml", Path: "new", Value: "2"}}
	want := []api.FieldChange{
		{Kind: "yaml", File: "b.yaml", Path: "new", To: ptr("2")},
		{Kind: "yaml", File: "b.yaml", Path: "x", From: ptr("1"), To: ptr("")},
		{Kind: "file", File: "only.txt", From: ptr("abc")},
	}
	if diff := cmp.Diff(want, diffFields(from, to)); diff != "" {
		t.Error(diff)
	}
}

func ptr(s string) *string { return &s }
