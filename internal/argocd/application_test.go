package argocd

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

var update = flag.Bool("update", false, "write the golden files")

// Each testdata/*.json is an Application as Argo CD (2.14 where its name has no other) leaves it; beside it is
// what is kept of it.
func TestDecodeApplication(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			app, _, err := decodeApplication("hub", raw)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(app, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			if *update {
				if err := os.WriteFile(file+".golden", got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file + ".golden")
			if err != nil {
				t.Fatalf("%v; write it with -update", err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestComparedToSpec(t *testing.T) {
	const source = `{"repoURL":"r","path":"p","targetRevision":"main"}`
	cases := []struct {
		name, spec, comparedTo string
		want                   bool
	}{
		{"equal", `"source":` + source + `,"destination":{"server":"s","namespace":"n"}`, `"source":` + source + `,"destination":{"server":"s","namespace":"n"}`, true},
		{"never compared", `"source":` + source, ``, false},
		{"another path", `"source":` + source, `"source":{"repoURL":"r","path":"q","targetRevision":"main"}`, false},
		{"another Helm value", `"source":{"repoURL":"r","helm":{"valuesObject":{"tag":"2"}}}`, `"source":{"repoURL":"r","helm":{"valuesObject":{"tag":"1"}}}`, false},
		{"key order and empty values don't matter", `"source":{"path":"p","repoURL":"r","helm":{"values":"","parameters":[]},"directory":{"recurse":false}}`, `"source":{"repoURL":"r","path":"p"}`, true},
		{"a server inferred from the name", `"source":` + source + `,"destination":{"server":"s","name":"c"}`, `"source":` + source + `,"destination":{"name":"c"}`, true},
		{"another server", `"source":` + source + `,"destination":{"server":"s2"}`, `"source":` + source + `,"destination":{"server":"s"}`, false},
		{"another namespace", `"source":` + source + `,"destination":{"server":"s","namespace":"a"}`, `"source":` + source + `,"destination":{"server":"s","namespace":"b"}`, false},
		{"sources added", `"sources":[` + source + `,` + source + `]`, `"sources":[` + source + `]`, false},
		{"sources count before source", `"source":{"repoURL":"old"},"sources":[` + source + `]`, `"sources":[` + source + `]`, true},
		{"other differences ignored", `"source":` + source + `,"ignoreDifferences":[{"kind":"Deployment"}]`, `"source":` + source, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			compared := ""
			if c.comparedTo != "" {
				compared = `"comparedTo":{` + c.comparedTo + `}`
			}
			app, _, err := decodeApplication("hub", []byte(`{"metadata":{"name":"a"},"spec":{`+c.spec+`},"status":{"sync":{`+compared+`}}}`))
			if err != nil || app.ComparedToSpec != c.want {
				t.Errorf("ComparedToSpec = %v, %v", app.ComparedToSpec, err)
			}
		})
	}
}

func TestKeptFieldsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"metadata":{"name":"big"},"status":{"resources":[`)
	for i := range 3000 {
		fmt.Fprintf(&b, `{"kind":"Pod","name":"p%d","health":{"status":"Progressing"}},`, i)
	}
	fmt.Fprintf(&b, `{"kind":"Deployment","name":"bad","health":{"status":"Degraded","message":%q}}],"conditions":[`, strings.Repeat("é", 5000))
	for i := range 500 {
		fmt.Fprintf(&b, `%s{"type":"OrphanedResourceWarning","message":"%d"}`, map[bool]string{true: ","}[i > 0], i)
	}
	b.WriteString(`]}}`)
	app, _, err := decodeApplication("hub", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if len(app.Unhealthy) != maxUnhealthy || app.Unhealthy[0].Name != "bad" || len(app.Conditions) != maxConditions {
		t.Errorf("%d unwell, first %s, %d conditions", len(app.Unhealthy), app.Unhealthy[0].Name, len(app.Conditions))
	}
	if m := app.Unhealthy[0].Message; len(m) > maxMessage+3 || !strings.HasSuffix(m, "é…") {
		t.Errorf("%d bytes", len(m))
	}
}

func TestReadPage(t *testing.T) {
	cases := []struct {
		name, page string
		want       string // resourceVersion/continue/items, or the error
	}{
		{"items before metadata", `{"items":[{"a":1},{"a":2}],"metadata":{"resourceVersion":"5","continue":"c"}}`, `5/c/[{"a":1} {"a":2}]`},
		{"metadata first, more keys", `{"metadata":{"resourceVersion":"5"},"x":[{}],"items":[]}`, `5//[]`},
		{"no items", `{"metadata":{"resourceVersion":"5"},"items":null}`, `5//[]`},
		{"cut in the items", `{"items":[{"a":1},`, "unexpected EOF"},
		{"cut at the end", `{"items":[],"metadata":{"resourceVersion":"5"}`, "unexpected EOF"},
		{"no resourceVersion", `{"items":[]}`, "no resourceVersion"},
		{"not a list", `[]`, "want {"},
		{"items are no list", `{"items":"x"}`, "want a list"},
		{"empty", ``, "EOF"},
		{"a huge object", `{"items":["` + strings.Repeat("x", maxObject+1<<20) + `"]}`, "larger than"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			items := []string{}
			meta, err := readPage(strings.NewReader(c.page), func(raw []byte) { items = append(items, string(raw)) })
			got := fmt.Sprintf("%s/%s/%s", meta.ResourceVersion, meta.Continue, items)
			if err != nil {
				got = err.Error()
			}
			if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
				t.Errorf("got %.200q, want %q", got, c.want)
			}
		})
	}
}

func FuzzDecodeApplication(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.json")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(`{"metadata":{"name":"x"},"status":{"health":[]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		app, _, err := decodeApplication("hub", raw)
		if err == nil && app.Name == "" {
			t.Error("neither a name nor an error")
		}
		if err != nil && app.Name != "" && (len(app.Conditions) != 1 || app.Conditions[0].Type != unreadableCondition) {
			t.Error("an unreadable Application must say so")
		}
		if len(app.Unhealthy) > maxUnhealthy || len(app.Conditions) > maxConditions || len(app.HealthMessage) > maxMessage+3 {
			t.Error("not bounded")
		}
	})
}

func FuzzReadStreams(f *testing.F) {
	f.Add([]byte(`{"items":[{"metadata":{"name":"a"}}],"metadata":{"resourceVersion":"5"}}`))
	f.Add([]byte(`{"type":"ADDED","object":{"metadata":{"name":"a"}}}` + "\n" + `{"type":"ERROR","object":{"code":410}}`))
	f.Add([]byte(`{"type":"DELETED","object":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := newAppStore("hub", zap.NewNop(), nil, &versionCounter{onChange: func() {}})
		for _, sink := range []sink{appSink{s}, setSink{s}} {
			feed := &feed{sink: sink, feedState: feedState{log: zap.NewNop(), now: time.Now, onReadyChange: func(bool) {}}}
			store := reflectedStore{feed: feed}
			var list []any
			_, _ = readPage(bytes.NewReader(raw), func(o []byte) { list = append(list, feed.decodeSlim(o)) })
			_ = store.Replace(list, "")
			events := newEventDecoder(feed, "1", io.NopCloser(bytes.NewReader(raw)), func() {})
			for {
				kind, object, err := events.Decode()
				if err != nil {
					break
				}
				switch kind {
				case watch.Added, watch.Modified:
					_ = store.Update(object)
				case watch.Deleted:
					_ = store.Delete(object)
				}
			}
			events.Close()
		}
	})
}

// BenchmarkList10000 reads a list of 10,000 Applications of about 17 KB each, page by page.
// B/app-kept is the heap that stays, cpu-s/list the processor time of reading without that of
// making the pages, peak-MB the most there was above the start.
func BenchmarkList10000(b *testing.B) {
	head, tail := benchmarkApp(b)
	const pages = 10_000 / pageSize
	b.ReportAllocs()
	for b.Loop() {
		var before, now, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		peak := uint64(0)
		s := newAppStore("hub", zap.NewNop(), func(verification.App, bool) {}, &versionCounter{onChange: func() {}})
		f := &feed{sink: appSink{s}, feedState: feedState{log: zap.NewNop(), now: time.Now, onReadyChange: func(bool) {}}}
		var list []any
		n, took := 0, time.Duration(0)
		for range pages {
			var page strings.Builder
			page.WriteString(`{"items":[`)
			for i := range pageSize {
				if i > 0 {
					page.WriteByte(',')
				}
				n++
				page.WriteString(head + fmt.Sprintf(`"name":"web-%d"`, n) + tail)
			}
			page.WriteString(`],"metadata":{"resourceVersion":"1"}}`)
			began := processorTime(b)
			if _, err := readPage(strings.NewReader(page.String()), func(o []byte) { list = append(list, f.decodeSlim(o)) }); err != nil {
				b.Fatal(err)
			}
			took += processorTime(b) - began
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc-before.HeapAlloc)
		}
		began := processorTime(b)
		_ = reflectedStore{feed: f}.Replace(list, "1")
		took += processorTime(b) - began
		list = nil
		runtime.GC()
		runtime.ReadMemStats(&after)
		if len(s.listApplications()) != 10_000 {
			b.Fatalf("%d applications", len(s.apps))
		}
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/10_000, "B/app-kept")
		b.ReportMetric(took.Seconds(), "cpu-s/list")
		b.ReportMetric(float64(peak)/1e6, "peak-MB")
		b.ReportMetric(float64(len(head)+len(tail)), "B/app-wire")
		runtime.KeepAlive(s)
	}
}

// TestEventWithoutAVersionLeavesThePlace: the Reflector watches on from the version of
// the last event; one that says none must not make it forget where it was.
func TestEventWithoutAVersionLeavesThePlace(t *testing.T) {
	feed := &feed{sink: appSink{newAppStore("hub", zap.NewNop(), nil, &versionCounter{onChange: func() {}})}, feedState: feedState{log: zap.NewNop(), now: time.Now, onReadyChange: func(bool) {}}}
	events := newEventDecoder(feed, "5", io.NopCloser(strings.NewReader(`
		{"type":"ADDED","object":{"metadata":{"namespace":"argocd","name":"a"}}}
		{"type":"MODIFIED","object":{"metadata":{"namespace":"argocd","name":"a","resourceVersion":"7"}}}
		{"type":"BOOKMARK","object":{"metadata":[]}}
		{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}`)), func() {})
	defer events.Close()
	for _, want := range []string{"5", "7", "7", "9"} {
		_, object, err := events.Decode()
		if err != nil {
			t.Fatal(err)
		}
		if got := object.(*slimObject).ResourceVersion; got != want {
			t.Errorf("the watch is at %q, want %q", got, want)
		}
	}
}

// TestChildApplications are those among the resources that are to stay, so many at most.
func TestChildApplications(t *testing.T) {
	decode := func(resources string) []verification.ChildRef {
		app, _, err := decodeApplication("hub", []byte(`{"metadata": {"name": "parent"}, "status": {"resources": [`+resources+`]}}`))
		if err != nil {
			t.Fatal(err)
		}
		return app.Children
	}
	got := decode(`{"group": "argoproj.io", "kind": "Application", "namespace": "argocd", "name": "a"}, {"group": "argoproj.io", "kind": "Application", "name": "b", "status": "OutOfSync"},
		{"group": "argoproj.io", "kind": "Application", "name": "leaving", "requiresPruning": true}, {"group": "argoproj.io", "kind": "Application", "name": "hook", "hook": true},
		{"group": "app.k8s.io", "kind": "Application", "name": "another"}, {"group": "argoproj.io", "kind": "AppProject", "name": "shop"}`)
	if diff := cmp.Diff([]verification.ChildRef{{Namespace: "argocd", Name: "a"}, {Name: "b"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	one := `{"group": "argoproj.io", "kind": "Application", "name": "x"}`
	if n := len(decode(one + strings.Repeat(","+one, 2*maxChildren))); n != maxChildren {
		t.Errorf("%d are kept", n)
	}
}

// TestLabelsAreBounded holds that where there are more labels than are kept, the same ones always
// stay.
func TestLabelsAreBounded(t *testing.T) {
	many := wireMeta{Labels: map[string]string{}}
	for i := range 100 {
		many.Labels[fmt.Sprintf("l%02d", i)] = "x"
	}
	got := many.firstLabels()
	if len(got) != maxLabels || got["l00"] != "x" || got["l31"] != "x" || len(many.Labels) != 100 {
		t.Errorf("%d labels are kept: %v", len(got), got)
	}
	if few := (&wireMeta{Labels: map[string]string{"team": "shop"}}).firstLabels(); len(few) != 1 || few["team"] != "shop" {
		t.Errorf("of one label %v is kept", few)
	}
}
