package pipeline

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// ParseTemplate parses a component or environment template. The functions are
// sprig's repeatable ones: a template can't see the server's environment, its
// network or its clock, so the same commit always gives the same fleet. A
// parameter that doesn't exist is an error when the template is executed, not
// "<no value>" in a name. An execution is safe for concurrent use; it isn't
// bounded in time.
func ParseTemplate(name, text string) (*template.Template, error) {
	t, err := template.New(name).Funcs(sprig.HermeticTxtFuncMap()).Option("missingkey=error").Parse(text)
	if err != nil {
		// text/template begins its errors with "template: NAME:LINE: ".
		return nil, fmt.Errorf("not a Go template: %s%s", strings.TrimPrefix(err.Error(), "template: "+name+":"), hintAtDots(text))
	}
	return t, nil
}

// fastParameter is a parameter as ApplicationSets without goTemplate write it: {{path.basename}}, {{path[1]}}.
var fastParameter = regexp.MustCompile(`\{\{\s*([A-Za-z_][\w-]*(?:\.[\w./-]+)?)(?:\[(\d+)\])?\s*\}\}`)

// hintAtDots says how a template is written whose parameters are spelled as ApplicationSets without goTemplate
// spell them; "" where it has none of these.
func hintAtDots(text string) string {
	written := fastParameter.ReplaceAllStringFunc(text, func(parameter string) string {
		m := fastParameter.FindStringSubmatch(parameter)
		name, index := m[1], m[2]
		switch {
		case slices.Contains([]string{"end", "else", "break", "continue"}, name):
			return parameter
		case name == "path" && index != "":
			return "{{ index .path.segments " + index + " }}"
		case name == "path":
			return "{{ .path.path }}"
		case index != "":
			return "{{ index ." + name + " " + index + " }}"
		}
		return "{{ " + dottedName(name) + " }}"
	})
	if written == text {
		return ""
	}
	return "; a parameter begins with a dot: '" + written + "'"
}

// dottedName is a parameter as a Go template names it: .values.env, or index .metadata.labels "example.com/env"
// where a part of it is no Go name.
func dottedName(name string) string {
	for _, prefix := range []string{"metadata.labels.", "metadata.annotations."} {
		if key, found := strings.CutPrefix(name, prefix); found && strings.ContainsAny(key, ".-/") {
			return "index ." + strings.TrimSuffix(prefix, ".") + ` "` + key + `"`
		}
	}
	if !strings.ContainsAny(name, "-/") {
		return "." + name
	}
	return `index . "` + strings.ReplaceAll(name, ".", `" "`) + `"`
}

// isConstantTemplate says that a template yields its own text.
func isConstantTemplate(text string) bool { return !strings.Contains(text, "{{") }
