package pipeline

import (
	"fmt"
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
		return nil, fmt.Errorf("not a Go template: %s", strings.TrimPrefix(err.Error(), "template: "+name+":"))
	}
	return t, nil
}

// isConstantTemplate says that a template yields its own text.
func isConstantTemplate(text string) bool { return !strings.Contains(text, "{{") }
