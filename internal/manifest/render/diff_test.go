package render

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// manifestsOf reads YAML into manifests.
func manifestsOf(t testing.TB, text string) *Manifests {
	t.Helper()
	var c objectCollector
	if err := c.addYAML([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return c.buildManifests(ReadSet{})
}

// TestDiffGolden shows what people read: each archive has before, after and
// the texts.
func TestDiffGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/diff/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			contents := readArchive(t, name)
			c := Diff(manifestsOf(t, contents["before"]), manifestsOf(t, contents["after"]))
			data, err := json.MarshalIndent(c, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{"text": c.Summary() + "\n" + c.Text(TextLimit{Lines: 60, Bytes: 8000, ObjectLines: 25}), "json": string(data) + "\n"}
			if *updateGoldens {
				out := &txtar.Archive{}
				for _, f := range []string{"before", "after"} {
					out.Files = append(out.Files, txtar.File{Name: f, Data: []byte(contents[f])})
				}
				for _, f := range []string{"text", "json"} {
					out.Files = append(out.Files, txtar.File{Name: f, Data: []byte(got[f])})
				}
				if err := os.WriteFile(name, txtar.Format(out), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			for f, text := range got {
				if d := cmp.Diff(contents[f], text); d != "" {
					t.Errorf("%s: %s", f, d)
				}
			}
			for _, text := range got {
				if strings.Contains(text, "geheim") {
					t.Error("a secret is shown")
				}
			}
		})
	}
}

// drawValue draws a JSON value.
func drawValue(t *rapid.T, depth int) any {
	if depth == 0 || rapid.IntRange(0, 2).Draw(t, "leaf") == 0 {
		return rapid.SampledFrom([]any{"a", "b", "", "1.20", "x\ny\nz\n", "x\nq\nz\n", 1, 2.5, true, nil, "yes", "\u202e`@@", map[string]any{}, []any{}}).Draw(t, "scalar")
	}
	n := rapid.IntRange(0, 4).Draw(t, "n")
	if rapid.Bool().Draw(t, "list") {
		list := []any{}
		for range n {
			list = append(list, drawValue(t, depth-1))
		}
		return list
	}
	m := map[string]any{}
	for range n {
		m[rapid.SampledFrom([]string{"name", "key", "a", "b", "example.com/x", "value", "port", "]\"", "ü"}).Draw(t, "key")] = drawValue(t, depth-1)
	}
	return m
}

func drawManifests(t *rapid.T, secret string) *Manifests {
	var c objectCollector
	for range rapid.IntRange(0, 5).Draw(t, "objects") {
		kind := rapid.SampledFrom([]string{"Deployment", "ConfigMap", "Secret", "SealedSecret"}).Draw(t, "kind")
		fields := map[string]any{
			"apiVersion": rapid.SampledFrom([]string{"v1", "apps/v1", "apps/v1beta1"}).Draw(t, "apiVersion"), "kind": kind,
			"metadata": map[string]any{"name": rapid.SampledFrom([]string{"web", "conf-t7fgm5bb2h", "conf-9k4mm7c8bt", "conf"}).Draw(t, "name")},
			"spec":     drawValue(t, 4), "list": drawValue(t, 3),
		}
		hide := func() any {
			return rapid.SampledFrom([]any{secret + "1", secret + "2", map[string]any{"a": secret}, []any{secret, map[string]any{"name": "x", "value": secret}}}).Draw(t, "secret")
		}
		switch kind {
		case "Secret", "SealedSecret":
			fields["data"], fields["stringData"] = map[string]any{"a": hide()}, hide()
			fields["spec"] = map[string]any{"encryptedData": hide(), "template": map[string]any{"data": hide()}}
		case "ConfigMap":
			fields["data"] = map[string]any{"DB_PASSWORD": hide(), "api-key": hide(), "plain": drawValue(t, 1)}
		default:
			fields["spec"] = map[string]any{"env": []any{map[string]any{"name": "AUTH_TOKEN", "value": hide()}, map[string]any{"name": "X", "value": drawValue(t, 1)}}}
		}
		data, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.addJSON(data); err != nil {
			t.Fatal(err)
		}
	}
	return c.buildManifests(ReadSet{})
}

func TestDiffProperties(t *testing.T) {
	const secret = "g3h31m"
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawManifests(t, secret), drawManifests(t, secret)
		forth, back := Diff(a, b), Diff(b, a)
		if forth.Empty() != (a.Digest == b.Digest) {
			t.Fatalf("empty: %v, digests %s and %s", forth.Empty(), a.Digest, b.Digest)
		}
		if !Diff(a, a).Empty() {
			t.Fatal("it differs from itself")
		}
		data, err := json.Marshal(forth)
		if err != nil {
			t.Fatal(err)
		}
		text := forth.Text(TextLimit{})
		if strings.Contains(string(data)+text, secret) {
			t.Fatalf("a secret is shown:\n%s\n%s", data, text)
		}
		for _, c := range forth.Objects {
			if c.Op == Changed && len(c.Fields) == 0 && c.PreviousName == "" {
				t.Fatalf("%s differs in nothing: %s", c.Name, data)
			}
		}
		var again Changes
		if err := json.Unmarshal(data, &again); err != nil {
			t.Fatal(err)
		}
		if got := again.Text(TextLimit{}); got != text {
			t.Fatal(cmp.Diff(text, got))
		}
		if len(forth.Objects) != len(back.Objects) {
			t.Fatalf("%d objects differ one way, %d the other", len(forth.Objects), len(back.Objects))
		}
		for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if text != "" && !strings.HasPrefix(line, "- ") && !strings.HasPrefix(line, "+ ") && !strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "@@ ") {
				t.Fatalf("the line %q", line)
			}
			if escapeLine(line) != line {
				t.Fatalf("the line %q isn't printable", line)
			}
		}
		limit := TextLimit{Lines: rapid.IntRange(1, 20).Draw(t, "lines"), Bytes: rapid.IntRange(100, 2000).Draw(t, "bytes")}
		if short := forth.Text(limit); strings.Count(short, "\n") > limit.Lines || len(short) > limit.Bytes {
			t.Fatalf("%d lines and %d bytes are over %v", strings.Count(short, "\n"), len(short), limit)
		}
	})
}

func TestManifestsThroughJSON(t *testing.T) {
	m := mustRender(t, readArchive(t, "testdata/chart.txtar"), singleSource("charts/web", ""))
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var again Manifests
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(m, &again); d != "" || !Diff(m, &again).Empty() || DigestObjects(again.Objects) != m.Digest {
		t.Error(d)
	}
}

func FuzzDiff(f *testing.F) {
	f.Add("apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ndata: {a: b}", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ndata: {a: c}")
	f.Add("kind: List\nitems: [{kind: X}]", "kind: X\nspec: [{name: a}, {name: b}]")
	f.Fuzz(func(t *testing.T, before, after string) {
		read := func(text string) *Manifests {
			var c objectCollector
			if c.addYAML([]byte(text)) != nil {
				t.Skip()
			}
			return c.buildManifests(ReadSet{})
		}
		a, b := read(before), read(after)
		c := Diff(a, b)
		if c.Empty() != (a.Digest == b.Digest) {
			t.Fatalf("empty %v", c.Empty())
		}
		if text := c.Text(TextLimit{Lines: 50, Bytes: 1000, ObjectLines: 5}); len(text) > 1000 {
			t.Fatalf("%d bytes", len(text))
		}
	})
}

// FuzzYAML holds that no manifest makes the reader fail otherwise than by an error.
func FuzzYAML(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: List\nitems:\n- {kind: X, metadata: {name: a}}\n---\n{}"))
	f.Add([]byte(aliasBomb(3)))
	f.Add([]byte("&a [*a, *a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c objectCollector
		if c.addYAML(data) != nil {
			return
		}
		m := c.buildManifests(ReadSet{})
		for _, o := range m.Objects {
			var v any
			if err := yaml.Unmarshal(o.JSON, &v); err != nil {
				t.Fatal(fmt.Errorf("%s: %w", o.JSON, err))
			}
		}
	})
}

// TestFirstShared finds what two changes have in common: a field, or one within the other's.
func TestFirstShared(t *testing.T) {
	object := func(spec string) *Manifests {
		return manifestsOf(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: "+spec+"\n---\nkind: Service\napiVersion: v1\nmetadata: {name: web}\n")
	}
	base := object("{image: a, replicas: 1, options: {a: 1, b: 1}}")
	brought := Diff(object("{image: z, replicas: 1, options: {a: 1, b: 1}}"), base)
	options := Diff(object("{image: a, replicas: 1}"), base)
	for _, c := range []struct {
		name    string
		now     *Manifests
		brought *Changes
		want    string
	}{
		{"nothing differs", base, nil, ""},
		{"the field", object("{image: z, replicas: 1, options: {a: 1, b: 1}}"), brought, "Deployment web (spec.image)"},
		{"another field", object("{image: a, replicas: 2, options: {a: 1, b: 1}}"), brought, ""},
		{"another field, and anything may have changed", object("{image: a, replicas: 2, options: {a: 1, b: 1}}"), nil, "Deployment web"},
		{"a field within", object("{image: a, replicas: 1, options: {a: 1, b: 2}}"), options, "Deployment web (spec.options.b)"},
		{"the object isn't there", manifestsOf(t, "kind: Service\napiVersion: v1\nmetadata: {name: web}\n"), brought, "Deployment web"},
		{"another object isn't there", manifestsOf(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {image: a, replicas: 1, options: {a: 1, b: 1}}\n"), brought, ""},
		{"nothing is there", nil, brought, "Deployment web"},
		{"nothing had changed", object("{image: z}"), &Changes{}, ""},
	} {
		if got := Diff(base, c.now).FirstShared(c.brought); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
