package strictyaml

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

// boat has a field of every sort that can be decoded.
type boat struct {
	Name     string            `yaml:"name"`
	Length   int               `yaml:"length"`
	Small    int8              `yaml:"small"`
	Draught  float64           `yaml:"draught"`
	Steam    bool              `yaml:"steam"`
	Trip     time.Duration     `yaml:"trip"`
	Crew     []member          `yaml:"crew"`
	Owner    *member           `yaml:"owner"`
	Cargo    map[string]int    `yaml:"cargo"`
	Flags    map[string]member `yaml:"flags"`
	Colour   colour            `yaml:"colour"`
	Shape    shape             `yaml:"shape"`
	Steward  steward           `yaml:"steward"`
	Ports    []string          `yaml:"ports"`
	Keys     []key             `yaml:"keys"`
	Ignored  string            `yaml:"-"`
	Untagged string
}

func (b *boat) SetDefaults() { b.Length = 7 }

type member struct {
	Name string `yaml:"name"`
	Role string `yaml:"role"`
}

func (m *member) SetDefaults() { m.Role = "hand" }

// steward may be written as a name alone.
type steward struct {
	Name  string `yaml:"name"`
	Meals int    `yaml:"meals"`
}

func (*steward) ShorthandKey() string { return "name" }

// colour reads itself from text.
// key is a type of its own, as secrets are.
type key string

type colour string

func (c *colour) UnmarshalText(text []byte) error {
	if string(text) != "red" && string(text) != "blue" {
		return errors.New("not a colour")
	}
	*c = colour(text)
	return nil
}

// shape reads itself from a node.
type shape struct{ kind string }

func (s *shape) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode {
		return errors.New("not a shape")
	}
	s.kind = fmt.Sprintf("%d corners", len(n.Content))
	return nil
}

func TestDecode(t *testing.T) {
	tests := map[string]struct {
		yaml string
		want boat
	}{
		"scalars": {
			"name: Rosa\nlength: 0x10\nsmall: -128\ndraught: 1.5\nsteam: true\ntrip: 1h30m\ncolour: red\nshape: [1, 2]\n",
			boat{Name: "Rosa", Length: 16, Small: -128, Draught: 1.5, Steam: true, Trip: 90 * time.Minute, Colour: "red", Shape: shape{"2 corners"}},
		},
		"defaults where nothing is given": {
			"crew: [{name: ada}, {role: cook}]\nowner: {}\nflags: {stern: {name: x}}\n",
			boat{
				Length: 7, Crew: []member{{"ada", "hand"}, {"", "cook"}}, Owner: &member{Role: "hand"},
				Flags: map[string]member{"stern": {"x", "hand"}},
			},
		},
		"a whole number where a number is wanted": {"draught: 2\n", boat{Length: 7, Draught: 2}},
		"quoted text of any look":                 {"name: \"1.20\"\n", boat{Length: 7, Name: "1.20"}},
		"block text":                              {"name: |\n  Rosa\n  Luxemburg\n", boat{Length: 7, Name: "Rosa\nLuxemburg\n"}},
		"aliases":                                 {"owner: &a {name: ada}\ncrew: [*a, *a]\n", boat{Length: 7, Owner: &member{"ada", "hand"}, Crew: []member{{"ada", "hand"}, {"ada", "hand"}}}},
		"a merged mapping, own keys first":        {"owner: &a {name: ada, role: captain}\ncrew:\n- <<: *a\n  name: grace\n", boat{Length: 7, Owner: &member{"ada", "captain"}, Crew: []member{{"grace", "captain"}}}},
		"a list of merged mappings, first wins":   {"owner: &a {name: ada}\ncrew:\n- &b {name: bo, role: cook}\n- <<: [*a, *b]\n", boat{Length: 7, Owner: &member{"ada", "hand"}, Crew: []member{{"bo", "cook"}, {"ada", "cook"}}}},
		"a mapping's one value":                   {"steward: ada\n", boat{Length: 7, Steward: steward{Name: "ada"}}},
		"the mapping that it may stand for":       {"steward: {name: ada, meals: 3}\n", boat{Length: 7, Steward: steward{"ada", 3}}},
		"a map":                                   {"cargo: {coal: 3, 7: 1}\n", boat{Length: 7, Cargo: map[string]int{"coal": 3, "7": 1}}},
		"a byte order mark and Windows lines":     {"\ufeffname: Rosa\r\nsteam: true\r\n", boat{Length: 7, Name: "Rosa", Steam: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got boat
			if err := Decode("boat.yaml", []byte(test.yaml), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(shape{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	tests := map[string]struct {
		yaml string
		want []string
	}{
		"an unknown key near a known one": {"nmae: Rosa\n", []string{`1:1 unknown key "nmae"; did you mean "name"?`}},
		"an unknown key far from all":     {"xylophone: 1\n", []string{`1:1 unknown key "xylophone"`}},
		"an unknown key deep inside":      {"crew:\n  - name: ada\n    Roll: x\n", []string{`3:5 crew[0]: unknown key "Roll"; did you mean "role"?`}},
		"fields that aren't in the file":  {"ignored: x\nuntagged: x\nUntagged: x\n", []string{`1:1 unknown key "ignored"`, `2:1 unknown key "untagged"`, `3:1 unknown key "Untagged"`}},
		"a huge unknown key":              {strings.Repeat("k", 500) + ": 1\n", []string{`1:1 unknown key "` + strings.Repeat("k", 80) + `…"`}},
		"a key twice":                     {"name: a\nlength: 1\nname: b\n", []string{`3:1 the key "name" is given twice, first in line 1`}},
		"a key twice in a map":            {"cargo: {coal: 1, coal: 2}\n", []string{`1:18 cargo: the key "coal" is given twice, first in line 1`}},
		"a key that is a list":            {"? [a]\n: 1\n", []string{`1:3 a key must be plain text`}},
		"a number for text":               {"name: 1.20\n", []string{`1:7 name: expected text, found a number; put it in quotes`}},
		"a date for text":                 {"name: 2026-12-20\n", []string{`1:7 name: expected text, found a date; put it in quotes`}},
		"a boolean for text":              {"name: true\n", []string{`1:7 name: expected text, found true or false; put it in quotes`}},
		"text for a number":               {"length: long\n", []string{`1:9 length: expected a whole number, found text`}},
		"a fraction for a whole number":   {"length: 1.5\n", []string{`1:9 length: expected a whole number, found a number`}},
		"a number out of range":           {"small: 128\n", []string{`1:8 small: out of range for a whole number`}},
		"text for a boolean":              {"steam: \"yes\"\n", []string{`1:8 steam: expected true or false, found text`}},
		"a list for text":                 {"name: [a]\n", []string{`1:7 name: expected text, found a list`}},
		"a mapping for a list":            {"crew: {name: ada}\n", []string{`1:7 crew: expected a list, found a mapping; begin each item with a dash: - name: …`}},
		"text for a mapping":              {"owner: ada\n", []string{`1:8 owner: expected a mapping with keys such as name, role, found text`}},
		"a number for a mapping's text":   {"steward: 7\n", []string{`1:10 steward: expected text, found a whole number; put it in quotes`}},
		"a list for text or a mapping":    {"steward: [ada]\n", []string{`1:10 steward: expected text or a mapping, found a list`}},
		"an unknown key of such a one":    {"steward: {nam: ada}\n", []string{`1:11 steward: unknown key "nam"; did you mean "name"?`}},
		"text for the whole":              {"Rosa\n", []string{`1:1 expected a mapping with keys such as cargo, colour, crew, draught, flags, keys, length, name, owner, ports, shape, small and 3 more, found text`}},
		"a list for a map":                {"cargo: [1]\n", []string{`1:8 cargo: expected a mapping, found a list`}},
		"nothing given":                   {"name:\nowner: ~\ncrew: [null]\n", []string{`1:6 name: no value; give one or remove the key`, `2:8 owner: no value; give one or remove the key`, `3:8 crew[0]: no value; give one or remove the key`}},
		"a number for a duration":         {"trip: 5\n", []string{`1:7 trip: expected a duration such as 90s, 15m or 1h30m, found a whole number`}},
		"not a duration":                  {"trip: 2 days\n", []string{`1:7 trip: not a duration; write it like 90s, 15m or 1h30m`}},
		"days for a duration":             {"trip: 2d\n", []string{`1:7 trip: days and weeks are no unit of a duration; write 48h`}},
		"weeks for a duration":            {"trip: 2w\n", []string{`1:7 trip: days and weeks are no unit of a duration; write 336h`}},
		"text for a list":                 {"ports: Oslo\n", []string{`1:8 ports: expected a list, found text; begin each item with a dash: - Oslo`}},
		"a secret for a list of them":     {"keys: hunter2\n", []string{`1:7 keys: expected a list, found text`}},
		"a template without quotes":       {"name: {{ .env }}\n", []string{`1:7 name: expected text, found a mapping; put a template in quotes: '{{ … }}'`}},
		"a template that goes on":         {"length: 3\nname: {{ .env }}-x\n", []string{`1:0 not valid YAML: did not find expected key; in line 2 a template must be in quotes: '{{ … }}'`}},
		"an unknown key among few":        {"owner: {port: x}\n", []string{`1:9 owner: unknown key "port"; there are name, role`}},
		"a text type's own error":         {"crew: []\ncolour: green\n", []string{`2:9 colour: not a colour`}},
		"a list for a text type":          {"colour: [red]\n", []string{`1:9 colour: expected text, found a list`}},
		"a node type's own error":         {"shape: round\n", []string{`1:8 shape: not a shape`}},
		"a tag":                           {"name: !secret x\n", []string{`1:7 name: expected text, found a value with a tag of its own; put it in quotes`}},
		"an alias is where the error is":  {"cargo: {coal: &c x}\nlength: *c\n", []string{`1:15 cargo.coal: expected a whole number, found text`, `2:9 length: expected a whole number, found text`}},
		"a merge of text":                 {"crew:\n- <<: x\n", []string{`2:7 crew[0]: << merges mappings; this is text`}},
		"an error in a merged mapping":    {"owner: &a {nme: ada}\ncrew:\n- <<: *a\n", []string{`1:12 crew[0]: unknown key "nme"; did you mean "name"?`, `1:12 owner: unknown key "nme"; did you mean "name"?`}},
		"not supported yet":               {"sails: 3\ncrew:\n- name: ada\n- cabin: 1\n", []string{`1:1 sails: not supported yet: row`, `4:3 crew[1].cabin: not supported yet: sleep on deck`}},
		"many at once, in their order":    {"steam: 1\nlength: x\nfoo: 1\n", []string{`1:8 steam: expected true or false, found a whole number`, `2:9 length: expected a whole number, found text`, `3:1 unknown key "foo"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var into boat
			err := Decode("boat.yaml", []byte(test.yaml), &into, UnsupportedKeys(map[string]string{"sails": "row", "crew[].cabin": "sleep on deck"}))
			var errs Errors
			if !errors.As(err, &errs) {
				t.Fatalf("the error is %v", err)
			}
			var got []string
			for _, e := range errs {
				got = append(got, fmt.Sprintf("%d:%d %s", e.Line, e.Column, e.Message))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExpand(t *testing.T) {
	lookup := func(name string) (string, bool) {
		value, ok := map[string]string{
			"NAME": "Rosa", "NUMBER": "12345", "DECIMAL": "1.5", "YES": "true", "COLOUR": "blue", "TRIP": "5m",
			"EMPTY": "", "NESTED": "${NAME}", "PRIVATE": "private-0001",
		}[name]
		return value, ok
	}
	tests := map[string]struct {
		yaml string
		want boat
	}{
		"text":                {"name: ${NAME}\n", boat{Length: 7, Name: "Rosa"}},
		"inside text":         {"name: \"<${NAME}-${NUMBER}>\"\n", boat{Length: 7, Name: "<Rosa-12345>"}},
		"a number as text":    {"name: ${NUMBER}\n", boat{Length: 7, Name: "12345"}},
		"empty":               {"name: a${EMPTY}\n", boat{Length: 7, Name: "a"}},
		"nothing at all":      {"name: ${EMPTY}\n", boat{Length: 7}},
		"a number":            {"length: ${NUMBER}\n", boat{Length: 12345}},
		"a boolean in quotes": {"steam: \"${YES}\"\n", boat{Length: 7, Steam: true}},
		"a duration":          {"trip: ${TRIP}\n", boat{Length: 7, Trip: 5 * time.Minute}},
		"a text type":         {"colour: ${COLOUR}\n", boat{Length: 7, Colour: "blue"}},
		"only once":           {"name: ${NESTED}\n", boat{Length: 7, Name: "${NAME}"}},
		"a literal":           {"name: $${NAME} and $NAME\n", boat{Length: 7, Name: "${NAME} and $NAME"}},
		"keys are not values": {"cargo: {\"${NAME}\": 1}\n", boat{Length: 7, Cargo: map[string]int{"${NAME}": 1}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got boat
			if err := Decode("boat.yaml", []byte(test.yaml), &got, Expand(lookup)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(shape{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for name, test := range map[string]struct{ yaml, want string }{
		"a missing variable":    {"length: 1\nname: ${NONE} ${PRIVATE}\n", "boat.yaml:2: name: the environment variable NONE is not set"},
		"no variable's name":    {"name: ${}\n", "boat.yaml:1: name: a ${ without a variable's name and }; write ${NAME}, or $${ for a literal ${"},
		"text for a number":     {"length: ${PRIVATE}\n", "boat.yaml:1: length: expected a whole number, found text"},
		"text for a duration":   {"trip: ${PRIVATE}\n", "boat.yaml:1: trip: not a duration; write it like 90s, 15m or 1h30m"},
		"a fraction for whole":  {"length: ${DECIMAL}\n", "boat.yaml:1: length: expected a whole number, found a number"},
		"a value out of range":  {"small: ${NUMBER}\n", "boat.yaml:1: small: out of range for a whole number"},
		"without a way to look": {"length: $${NAME}\n", "boat.yaml:1: length: expected a whole number, found text"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Decode("boat.yaml", []byte(test.yaml), &boat{}, Expand(lookup))
			if err == nil || err.Error() != test.want {
				t.Errorf("the error is %v, want %s", err, test.want)
			}
		})
	}
	var plain boat
	if err := Decode("boat.yaml", []byte("name: ${NAME}\n"), &plain); err != nil || plain.Name != "${NAME}" {
		t.Errorf("without Expand it is %q, %v", plain.Name, err)
	}
}

func TestDecodeOneDocument(t *testing.T) {
	for name, test := range map[string]struct{ yaml, want string }{
		"none":         {"# nothing\n---\n", "boat.yaml: the file is empty"},
		"two":          {"name: a\n---\nname: b\n", "boat.yaml:3: a second document; this file holds only one"},
		"one and void": {"---\nname: a\n---\n# void\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := Decode("boat.yaml", []byte(test.yaml), &boat{})
			if err == nil && test.want != "" || err != nil && err.Error() != test.want {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
}

func TestMistakesInTheProgram(t *testing.T) {
	for name, into := range map[string]any{
		"not a pointer": boat{},
		"a nil pointer": (*boat)(nil),
		"an unknown sort": &struct {
			A chan int `yaml:"a"`
		}{},
		"a map by a number": &struct {
			A map[int]int `yaml:"a"`
		}{},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			yaml := "a: 1\n"
			if strings.HasPrefix(name, "a map") {
				yaml = "a: {1: 2}\n"
			}
			_ = Decode("x", []byte(yaml), into)
		})
	}
}
