package fieldedit

import (
	"errors"
	"strings"
	"testing"
)

func TestSetJSON(t *testing.T) {
	tests := []struct {
		name, in, path, value, want string
	}{
		{"string", "{\n  \"tag\" : \"v1\",\n  \"x\": 1\n}\n", "tag", "v2", "{\n  \"tag\" : \"v2\",\n  \"x\": 1\n}\n"},
		{"a string of digits stays a string", `{"tag":"5"}`, "tag", "6", `{"tag":"6"}`},
		{"number", `{"n": 1.50}`, "n", "2e3", `{"n": 2e3}`},
		{"boolean", `{"b":true}`, "b", "false", `{"b":false}`},
		{"null becomes a string", `{"a": null}`, "a", "5", `{"a": "5"}`},
		{"escapes", `{"a": "x"}`, "a", "<\"é\n\\>", `{"a": "<\"é\n\\>"}`},
		{"escaped before", `{"a\u0041": "\ud83d\ude00\"", "tag": "v1"}`, "tag", "v2", `{"a\u0041": "\ud83d\ude00\"", "tag": "v2"}`},
		{"escaped key", `{"a\u0041": "x"}`, "aA", "y", `{"a\u0041": "y"}`},
		{"BOM, CRLF and tabs", "\ufeff{\r\n\t\"tag\":\t\"v1\"\r\n}\r\n", "tag", "v2", "\ufeff{\r\n\t\"tag\":\t\"v2\"\r\n}\r\n"},
		{"line separators don't break lines", "{\"a\": \"\u2028\", \"tag\": \"v1\"}", "tag", "v2", "{\"a\": \"\u2028\", \"tag\": \"v2\"}"},
		{"nested", `{"l":[{"n":"a","t":"1"},{"n":"b","t":"2"}]}`, "l[n=b].t", "3", `{"l":[{"n":"a","t":"1"},{"n":"b","t":"3"}]}`},
		{"pointer", `{"a/b":[["x","y"]]}`, "/a~1b/0/1", "z", `{"a/b":[["x","z"]]}`},
		{"a key is added", "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n", "a.tag", "1", "{\n  \"a\": {\n    \"b\": 1,\n    \"tag\": \"1\"\n  }\n}\n"},
		{"a key is added in compact JSON", `{"a":{"b":1}}`, "a.c.d", "x", `{"a":{"b":1,"c":{"d":"x"}}}`},
		{"a key is added behind a list", `{"a": [1, {"b": []}], "c": {}}`, "tag", "x", `{"a": [1, {"b": []}], "c": {}, "tag": "x"}`},
		{"a key is added in an empty object", `{"a": {}}`, "a.tag", "x", `{"a": {"tag": "x"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := mustPath(t, tt.path)
			got, c, err := SetJSON([]byte(tt.in), p, tt.value)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Fatalf("got\n%q\nwant\n%q", got, tt.want)
			}
			if v, ok, err := GetJSON(got, p); err != nil || !ok || v != tt.value {
				t.Errorf("reads back as %q, %v, %v", v, ok, err)
			}
			if c.New != tt.value || c.Line < 1 {
				t.Errorf("change %+v", c)
			}
		})
	}
}

func TestSetJSONRefuses(t *testing.T) {
	tests := []struct {
		name, in, path, value string
		line                  int
		reason                string
	}{
		{"number from text", "{\n\"n\": 1}", "n", "x", 2, "is a number"},
		{"number with a leading zero", `{"n": 1}`, "n", "01", 1, "is a number"},
		{"boolean from text", `{"n": true}`, "n", "yes", 1, "true or false"},
		{"duplicate key", `{"a": "x", "a": "y"}`, "a", "z", 1, "twice"},
		{"comment", "{\n// no\n\"a\": \"x\"}", "a", "z", 2, "not JSON"},
		{"trailing comma", `{"a": "x",}`, "a", "z", 1, "not JSON"},
		{"two values", "{}\n{}", "a", "z", 2, "not JSON"},
		{"empty", "", "a", "z", 1, "not JSON"},
		{"object", `{"a": {}}`, "a", "z", 1, "a mapping"},
		{"template", `{"a": {{ .x }}}`, "a", "z", 1, "template"},
		{"template value", `{"a": "{{ .x }}"}`, "a", "z", 1, "template"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := SetJSON([]byte(tt.in), mustPath(t, tt.path), tt.value)
			var r *RefusedError
			if !errors.As(err, &r) {
				t.Fatalf("got %q, %v", got, err)
			}
			if r.Line != tt.line || !strings.Contains(r.Reason, tt.reason) {
				t.Errorf("refused with %q", err)
			}
		})
	}
}
