// Package githubshape holds calls against GitHub's own description of its API, of which
// extract.json and extract.graphql are extracts. The description is that of github.com and of two
// releases of GitHub Enterprise Server, the newest and the oldest that GitHub supports. It is for
// tests of the emulator and of the driver. The emulator must answer nothing that GitHub doesn't.
// The driver must send nothing that GitHub doesn't take. It must need nothing that one of them
// lacks or has announced to remove.
package githubshape

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/liftlock/liftlock/internal/world/emulator/apishape"
)

//go:embed extract.json
var extractJSON []byte

// Releases of GitHub that are described.
const (
	Public = "api.github.com"
	Newest = "ghes-3.19"
	Oldest = "ghes-3.17"
)

// Releases are all of them.
var Releases = []string{Public, Newest, Oldest}

// Announcement is a field of which GitHub says that it is going to take it away.
type Announcement struct {
	Version   string // of the API, from which it isn't there; empty: GitHub only advises against it
	Changeset string // GitHub's name of the change
}

// operation is a call as GitHub describes it.
type operation struct {
	Query     map[string]any
	Body      any            // nil: it has none
	Responses map[string]any // by status; nil: without a body, or of unknown content
}

// Description is GitHub's, of one release.
type Description struct {
	release    string
	operations map[string]operation // by method and path, without the names of its parameters
	shapes     apishape.Shapes
	announced  map[string]Announcement
}

// extract is the file; each name has what it is in some of the releases.
type extract struct {
	Operations map[string][]struct {
		In []string
		Is operation
	}
	Schemas map[string][]struct {
		In []string
		Is any
	}
	Announced map[string]Announcement
}

// labelling is the call whose description says in prose what its types don't.
const labelling = "POST /repos/{}/{}/issues/{}/labels"

// Describe reads the description of a release.
func Describe(release string) (*Description, error) {
	var x extract
	if err := json.Unmarshal(extractJSON, &x); err != nil {
		return nil, fmt.Errorf("read the extract of GitHub's description: %w", err)
	}
	d := &Description{release: release, operations: map[string]operation{}, announced: x.Announced,
		shapes: apishape.Shapes{Forge: release, Named: map[string]any{}}}
	for name, variants := range x.Operations {
		for _, v := range variants {
			if slices.Contains(v.In, release) {
				d.operations[nameless(name)] = v.Is
			}
		}
	}
	for name, variants := range x.Schemas {
		for _, v := range variants {
			if slices.Contains(v.In, release) {
				d.shapes.Named[name] = v.Is
			}
		}
	}
	if o, ok := d.operations[labelling]; ok {
		// "You can also pass an array of labels directly", says the description of the field.
		o.Body = map[string]any{"$any": []any{o.Body, []any{"string"}}}
		d.operations[labelling] = o
	}
	if len(d.operations) == 0 {
		return nil, fmt.Errorf("GitHub's %q isn't described: there are %q", release, Releases)
	}
	return d, nil
}

var parameter = regexp.MustCompile(`\{[^}]*\}`)

// nameless is a call's method and path without the names of its parameters, which everybody
// calls something else.
func nameless(name string) string { return parameter.ReplaceAllString(name, "{}") }

// Has says whether the release has a call.
func (d *Description) Has(name string) bool {
	_, ok := d.operations[nameless(name)]
	return ok
}

// refusals are what any call may be answered with: GitHub's description has them for some only.
var refusals = []int{400, 401, 403, 404, 409, 422, 429}

// Check says what in a call or its answer isn't as the release has it; nothing where all is.
func (d *Description) Check(x apishape.Call) []string {
	name := x.Method + " " + x.Route
	o, ok := d.operations[nameless(name)]
	if !ok {
		return []string{name + " isn't " + d.release + "'s"}
	}
	wrong := d.checkRequest(name, o, x)
	schema, ok := o.Responses[strconv.Itoa(x.Status)]
	switch {
	case x.Status == http.StatusNotModified && x.Method == http.MethodGet:
		return wrong
	case !ok && !slices.Contains(refusals, x.Status):
		return append(wrong, fmt.Sprintf("%s: it never answers %d", name, x.Status))
	case x.Status >= 400 || len(x.Answer) == 0 && schema == nil:
		return wrong
	}
	var answer any
	if err := json.Unmarshal(x.Answer, &answer); err != nil {
		return append(wrong, name+": "+err.Error())
	}
	return append(wrong, d.answerShapes().Check(name, schema, answer)...)
}

// answerShapes check answers. A field that is left out does no harm: code that needs it shows that.
// In a request, all required fields must be there.
func (d *Description) answerShapes() *apishape.Shapes {
	s := d.shapes
	s.Partial = true
	return &s
}

// CheckRequest says what in a call, and not in its answer, isn't as the release has it.
func (d *Description) CheckRequest(x apishape.Call) []string {
	name := x.Method + " " + x.Route
	o, ok := d.operations[nameless(name)]
	if !ok {
		return []string{name + " isn't " + d.release + "'s"}
	}
	return d.checkRequest(name, o, x)
}

func (d *Description) checkRequest(name string, o operation, x apishape.Call) (wrong []string) {
	for _, q := range slices.Sorted(maps.Keys(x.Query)) {
		if _, known := o.Query[q]; !known {
			wrong = append(wrong, name+": it has no parameter "+q)
		}
	}
	if len(x.Body) == 0 {
		return wrong
	}
	var body any
	if err := json.Unmarshal(x.Body, &body); err != nil {
		return append(wrong, name+": the body is no JSON")
	}
	if x.Status >= 400 {
		return wrong // a refusal may be of what is wrong in it
	}
	return append(wrong, d.shapes.Check(name+" body", o.Body, body)...)
}

// Announced are the fields of which GitHub says that it is going to take them away, by the schema
// that they are in and their way there.
func (d *Description) Announced() map[string]Announcement { return maps.Clone(d.announced) }

// Prune is an answer without what this release lacks, and without what is announced to go away.
// An answer of no known call stays as it is.
func (d *Description) Prune(method, path string, status int, answer []byte) ([]byte, error) {
	name := d.route(method, path)
	schema := d.operations[name].Responses[strconv.Itoa(status)]
	if schema == nil || len(answer) == 0 {
		return answer, nil
	}
	var value any
	if err := json.Unmarshal(answer, &value); err != nil {
		return nil, fmt.Errorf("prune the answer of %s: %w", name, err)
	}
	return json.Marshal(d.answerShapes().Prune(name+" "+strconv.Itoa(status), schema, value, func(field string) bool {
		_, goes := d.announced[field]
		return goes
	}))
}

// route is the call that a path belongs to; empty: to none. Among several it is the one with the
// fewest parameters.
func (d *Description) route(method, path string) string {
	best, fewest := "", 0
	for name := range d.operations {
		m, pattern, _ := strings.Cut(name, " ")
		if n := strings.Count(pattern, "{}"); m == method && (best == "" || n < fewest) && isPathOf(pattern, path) {
			best, fewest = name, n
		}
	}
	return best
}

// isPathOf says whether a pattern describes a path. A parameter at its end may have slashes, as
// names of branches and labels do, but only where the path has more than the pattern.
func isPathOf(pattern, path string) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(have) < len(want) || len(have) > len(want) && !manySegments[want[len(want)-2]] {
		return false
	}
	for i, w := range want {
		if w != "{}" && w != have[i] {
			return false
		}
	}
	return true
}

// manySegments are the elements before a parameter that may have slashes.
var manySegments = map[string]bool{"ref": true, "refs": true, "labels": true}
