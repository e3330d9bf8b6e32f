package argocd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// decodeList reads a list by the standard library, as a whole.
func decodeList(raw []byte) (meta listMeta, items []string, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return meta, nil, errors.Join(err, errors.New("no object"))
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return meta, nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return meta, nil, err
		}
		switch key {
		case "metadata":
			err = json.Unmarshal(value, &meta)
		case "items":
			var list []json.RawMessage
			err = json.Unmarshal(value, &list)
			for _, item := range list {
				items = append(items, string(item))
			}
		}
		if err != nil {
			return meta, nil, err
		}
	}
	_, err = dec.Token()
	return meta, items, err
}

// checkList holds the reading of a list against the standard library's, whatever pieces it
// comes in.
func checkList(t *testing.T, raw []byte) {
	t.Helper()
	wantMeta, want, wantErr := decodeList(raw)
	for name, r := range map[string]func() (listMeta, []string, error){
		"whole":    func() (listMeta, []string, error) { return collectList(readerOf(raw, false)) },
		"by bytes": func() (listMeta, []string, error) { return collectList(readerOf(raw, true)) },
	} {
		meta, got, err := r()
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%s: %.200q: %v, by the standard library %v", name, raw, err, wantErr)
		}
		if err == nil && (meta != wantMeta || !slices.Equal(got, want)) {
			t.Fatalf("%s: %.200q: %+v %q, by the standard library %+v %q", name, raw, meta, got, wantMeta, want)
		}
	}
}

func readerOf(raw []byte, slow bool) *valueReader {
	if slow {
		v := newValueReader(iotest.OneByteReader(bytes.NewReader(raw)))
		v.buf = make([]byte, 1)
		return v
	}
	return newValueReader(bytes.NewReader(raw))
}

func collectList(v *valueReader) (meta listMeta, items []string, err error) {
	meta, err = v.readList(func(raw []byte) { items = append(items, string(raw)) })
	return meta, items, err
}

func TestReadListAsTheStandardLibraryDoes(t *testing.T) {
	for _, text := range []string{
		`{}`, ` { "items" : [ ] } `, `{"items":[1,-2.5e3,"a\\",true,null,{},[[]],{"a":[{"b":"]}\""}]}]}`, `{"metadata":{"resourceVersion":"1"},"x":7}`,
		`{"items":[1 ]}`, `{"items":[1,]}`, `{"items":[,1]}`, `{"items":[1 2]}`, `{"items":[[}]]}`, `{"items":["\ud83d"]}`, `{"items":[tru]}`, `{"items":[01]}`,
		`{"items":"x"}`, `{"items":{}}`, `{"items":[1]`, `{"items":["`, `{"items":["\`, `{"items"}`, `{"items":}`, `{:1}`, `{1:1}`, `{"a":1,,"b":2}`, `{"a":1 "b":2}`,
		`[`, ``, ` `, `{"items":[1]}}`, `{"metadata":[]}`, `{"items":[1],"items":[2]}`, "{\"items\":[\"\x00\"]}", `{"\u0069tems":[1]}`,
	} {
		checkList(t, []byte(text))
	}
	big := strings.Repeat(`{"a":"`+strings.Repeat("x", 40_000)+`"},`, 5)
	checkList(t, []byte(`{"items":[`+strings.TrimSuffix(big, ",")+`]}`))
}

func FuzzReadList(f *testing.F) {
	f.Add([]byte(`{"metadata":{"resourceVersion":"5"},"items":[{"a":"\"]"},null,[1,2]],"x":{}}`))
	f.Add([]byte(fmt.Sprintf(`{"items":[%q]}`, strings.Repeat("x", 100))))
	f.Fuzz(checkList)
}

// TestListWithSomethingThatIsNoJSON holds that an Application that can't be told what it is
// fails the list, and isn't taken for gone.
func TestListWithSomethingThatIsNoJSON(t *testing.T) {
	for name, text := range map[string]string{
		"no name to be found": `{"items":[{"metadata":{"name":"a","namespace":"argocd"}},{"metadata":{x}}]}`,
		"cut":                 `{"items":[{"metadata":{"name":"a","namespace":"argocd"}},{"metadata":{`,
		"not an object":       `{"items":[tru]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newAppStore("hub", zap.NewNop(), nil, &versionCounter{onChange: func() {}})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
			defer server.Close()
			client, err := api.New(api.Options{URL: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			s.apps["argocd/b"] = &verification.App{Namespace: "argocd", Name: "b"}
			f := &apiStream{feedState: feedState{log: zap.NewNop(), now: time.Now, onReadyChange: func(bool) {}}, client: client, sink: appSink{s}, apps: s, versions: map[string]seenVersion{}}
			if err := f.listAll(t.Context()); err == nil || s.apps["argocd/b"] == nil {
				t.Errorf("%v; there are %v", err, s.apps)
			}
		})
	}
}
