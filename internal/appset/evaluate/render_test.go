package evaluate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
)

const repositoryURL = "https://git.example/acme/fleet.git"

// renderedTarget is a target that reads a folder, with options as its Application has them.
func renderedTarget(name, folder, options string) *appset.Target {
	return &appset.Target{Name: name, DestNS: "web", Sources: []appset.Source{{RepoURL: repositoryURL, Path: folder, Here: true, TargetRevision: "main"}},
		Application: json.RawMessage(fmt.Sprintf(`{"spec": {"source": {"repoURL": %q, "path": %q%s}}}`, repositoryURL, folder, options))}
}

func files(content ...string) fstest.MapFS {
	out := fstest.MapFS{}
	for i := 0; i < len(content); i += 2 {
		out[content[i]] = &fstest.MapFile{Data: []byte(content[i+1]), Mode: 0o644}
	}
	return out
}

func configMap(value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: " + value + "}\n"
}

// TestRenderInWorker tells what a change does to the manifests of its targets.
func TestRenderInWorker(t *testing.T) {
	web := renderedTarget("web", "apps/web", "")
	prefixed := func(prefix string) *appset.Target {
		return renderedTarget("kust", "kust", `, "kustomize": {"namePrefix": "`+prefix+`"}`)
	}
	kustomization := "resources: [cm.yaml]\n"
	onBranch := renderedTarget("other", "apps/web", "")
	onBranch.Sources[0].TargetRevision, onBranch.Branch = "env/qa", "env/qa"
	remote := renderedTarget("remote", "kust-remote", "")
	external := func(revision string) *appset.Target {
		out := renderedTarget("external", "apps/web", "")
		out.Sources[0].Here, out.Sources[0].RepoURL, out.Sources[0].TargetRevision = false, "https://git.example/acme/base", revision
		return out
	}
	at := func(revision, value string) ExternalTree {
		return ExternalTree{External: render.External{RepoURL: "https://git.example/acme/base", Revision: revision}, FS: files("apps/web/cm.yaml", configMap(value))}
	}
	in := RenderRequest{
		Revision: strings.Repeat("a", 40), Branch: "main", Tracked: "main", Limit: render.TextLimit{Bytes: 1000, Lines: 40, ObjectLines: 20},
		Before: files("apps/web/cm.yaml", configMap("1"), "apps/web/secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter1}\n",
			"kust/kustomization.yaml", kustomization, "kust/cm.yaml", configMap("1"), "kust-remote/kustomization.yaml", "resources: [https://git.example/x]\n"),
		After: files("apps/web/cm.yaml", configMap("2"), "apps/web/secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}\n",
			"kust/kustomization.yaml", kustomization, "kust/cm.yaml", configMap("1"), "kust-remote/kustomization.yaml", "resources: [https://git.example/x]\n"),
		Others: map[string]fs.FS{"env/qa": files("apps/web/cm.yaml", configMap("of another branch"))},
		Pairs: []RenderPair{{web, web}, {prefixed("a-"), prefixed("b-")}, {prefixed("a-"), prefixed("a-")}, {nil, web}, {web, nil}, {onBranch, onBranch}, {nil, onBranch}, {remote, remote},
			{web, renderedTarget("web", "apps/none", "")}, {web, &appset.Target{Name: "web", Sources: web.Sources}},
			{external("v1"), external("v2")}, {external("v1"), external("v3")}},
		Externals: []ExternalTree{at("v1", "of v1"), at("v2", "of v2")},
	}
	got, err := RenderInWorker(t.Context(), runner(t, sandbox.Limits{}), in)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ summary, diff, why string }{
		{summary: "2 changed", diff: "- data.a: 1\n+ data.a: 2\n"},
		{summary: "1 added, 1 removed", diff: "b-web"},
		{},
		{summary: "2 added", diff: "+ data.a: 2\n"},
		{summary: "2 removed", diff: "- data.a: 1\n"},
		{},
		{summary: "1 added", diff: "of another branch"},
		{why: "https://git.example/x"},
		{why: "after the change: "},
		{why: "after the change: the Application web came without its manifest"},
		{summary: "1 changed", diff: "- data.a: of v1\n+ data.a: of v2\n"},
		{why: "after the change: the source is in another repository or revision (https://git.example/acme/base)"},
	} {
		if got[i].Summary != want.summary || !strings.Contains(got[i].Diff, want.diff) || (want.diff == "") != (got[i].Diff == "") || !strings.Contains(got[i].Why, want.why) || (want.why == "") != (got[i].Why == "") {
			t.Errorf("pair %d: %+v, want %+v", i, got[i], want)
		}
		if strings.Contains(got[i].Diff, "hunter") {
			t.Errorf("pair %d shows a secret: %s", i, got[i].Diff)
		}
	}
}

// TestRenderInWorkerIsBounded holds that what a stranger wrote ends within the limits, and by
// name.
func TestRenderInWorkerIsBounded(t *testing.T) {
	chart := "apiVersion: v2\nname: web\nversion: 1.0.0\n"
	target := renderedTarget("web", "chart", "")
	at := func(template string) RenderRequest {
		return RenderRequest{Branch: "main", Tracked: "main", Limit: render.TextLimit{Bytes: 1000, Lines: 40, ObjectLines: 20}, Before: files("chart/Chart.yaml", chart),
			After: files("chart/Chart.yaml", chart, "chart/templates/x.yaml", template), Pairs: []RenderPair{{target, target}, {renderedTarget("calm", "calm", ""), nil}}}
	}
	unending := at(`{{ define "a" }}{{ range until 1000000 }}{{ range until 1000000 }}{{ end }}{{ end }}{{ end }}{{ include "a" . }}`)
	unending.Before = files("chart/Chart.yaml", chart, "calm/cm.yaml", configMap("1"))
	start := time.Now()
	got, err := RenderInWorker(t.Context(), runner(t, sandbox.Limits{Time: 6 * time.Second, CPU: 20 * time.Second}), unending)
	var limited *sandbox.Error
	switch {
	case errors.As(err, &limited): // the library went on until the process was ended
	case err != nil:
		t.Fatal(err)
	case got[0].Why == "":
		t.Errorf("an endless template gives %+v", got[0])
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	long := at("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata:\n{{ range $i := until 1000 }}  k{{ $i }}: value\n{{ end }}")
	if got, err = RenderInWorker(t.Context(), runner(t, sandbox.Limits{}), long); err != nil || got[0].Summary != "1 added" || len(got[0].Diff) > 1000 {
		t.Errorf("a long difference: %+v, %v", got, err)
	}
	// Applications that are larger together than what is sent are a verdict about the change, which
	// would be tried for ever otherwise.
	large := renderedTarget("large", "calm", "")
	large.Application = json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	if _, err := RenderInWorker(t.Context(), runner(t, sandbox.Limits{}), RenderRequest{Pairs: slices.Repeat([]RenderPair{{large, large}}, 40)}); !errors.Is(err, sandbox.ErrInput) || !errors.As(err, &limited) {
		t.Errorf("much to begin with: %v", err)
	}
	if _, err := RenderInWorker(t.Context(), runner(t, sandbox.Limits{}), RenderRequest{Pairs: slices.Repeat([]RenderPair{{}}, MaxRenderPairs+1)}); err == nil {
		t.Error("too many targets are rendered")
	}
}
