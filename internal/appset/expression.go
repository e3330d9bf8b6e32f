package appset

import (
	"context"
	"encoding/json"
	"fmt"
)

// Expression is a template as a pipeline's component and environment are, by itself.
type Expression struct{ assigner *assigner }

// ParseExpression reads a template; errors call it what it is for, as in "the component
// template", and say what is wrong with it. An Expression is used by one goroutine, and its
// loops end with the context.
func ParseExpression(ctx context.Context, what, text string) (*Expression, error) {
	a, err := newAssigner(ctx, what, text)
	if err != nil {
		return nil, err
	}
	return &Expression{a}, nil
}

// Evaluate is the name that the template gives of a target's data; empty where it gives none.
// The error is that of a pipeline's template: a parameter that isn't there, or an answer that
// is no name.
func (e *Expression) Evaluate(data map[string]any) (string, error) {
	return e.assigner.evaluateTemplate(data)
}

// TemplateData is a target as a pipeline's templates see it. It has the generators' parameters in
// the shape of Go templates, the Application where the target has its manifest, and the
// ApplicationSet's name and file.
func (t *Target) TemplateData() (map[string]any, error) {
	data := nestParams(t.Params)
	if len(t.Application) > 0 {
		var application map[string]any
		if err := json.Unmarshal(t.Application, &application); err != nil {
			return nil, fmt.Errorf("reading the Application %s: %w", t.Name, err)
		}
		addFile(application, t.ApplicationSet, t.ApplicationSetFile)
		data["application"] = application
	}
	if t.ApplicationSet != "" {
		data["applicationSet"] = map[string]any{"file": t.ApplicationSetFile, "metadata": map[string]any{"name": t.ApplicationSet}}
	}
	return data, nil
}
