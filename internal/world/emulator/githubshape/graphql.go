package githubshape

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

//go:embed extract.graphql
var extractGraphQL string

// GraphQL holds calls against GitHub's GraphQL schema, of which extract.graphql has the fields that
// Liftlock reads. It is github.com's, which a GitHub Enterprise Server has a year or so later.
type GraphQL struct{ schema *ast.Schema }

// DescribeGraphQL reads the schema.
func DescribeGraphQL() (*GraphQL, error) {
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "extract.graphql", Input: extractGraphQL})
	if err != nil {
		return nil, fmt.Errorf("read the extract of GitHub's GraphQL schema: %w", err)
	}
	return &GraphQL{schema}, nil
}

// Check says where a call's document, its variables or its answer don't fit GitHub's schema. It
// also reports fields that are announced to go away, and an answer with more or less than is read.
// Where there is no answer (nil), it checks the call alone.
func (g *GraphQL) Check(body, answer []byte) []string {
	var call struct {
		Query     string
		Variables map[string]any
	}
	if err := json.Unmarshal(body, &call); err != nil {
		return []string{"GraphQL: the body is no call: " + err.Error()}
	}
	document, errs := gqlparser.LoadQueryWithRules(g.schema, call.Query, rules.NewDefaultRules())
	if len(errs) > 0 {
		return []string{fmt.Sprintf("GraphQL: %s: %s", call.Query, errs)}
	}
	c := graphQLCheck{schema: g.schema, document: document}
	for _, o := range document.Operations {
		if _, err := validator.VariableValues(g.schema, o, call.Variables); err != nil {
			c.addf("", "%v", err)
		}
		for _, v := range slices.Sorted(maps.Keys(call.Variables)) {
			if o.VariableDefinitions.ForName(v) == nil {
				c.addf("", "it has no variable %s", v)
			}
		}
		c.findDeprecated(o.SelectionSet)
	}
	for _, f := range document.Fragments {
		c.findDeprecated(f.SelectionSet)
	}
	if answer == nil {
		return c.wrong
	}
	var answered struct {
		Data   map[string]any
		Errors []any
	}
	if err := json.Unmarshal(answer, &answered); err != nil {
		c.addf("", "the answer is none of GraphQL's: %v", err)
	}
	switch {
	case answered.Data != nil:
		c.checkObject("", document.Operations[0].SelectionSet, "", answered.Data)
	case len(answered.Errors) == 0:
		c.addf("", "it is answered with neither data nor errors")
	}
	return c.wrong
}

// graphQLCheck collects what is wrong with a call.
type graphQLCheck struct {
	schema   *ast.Schema
	document *ast.QueryDocument
	wrong    []string
}

func (g *graphQLCheck) addf(path, format string, args ...any) {
	g.wrong = append(g.wrong, "GraphQL"+path+": "+fmt.Sprintf(format, args...))
}

// findDeprecated finds the fields of a document that GitHub takes away.
func (g *graphQLCheck) findDeprecated(set ast.SelectionSet) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			if d := s.Definition.Directives.ForName("deprecated"); d != nil {
				reason := ""
				if a := d.Arguments.ForName("reason"); a != nil {
					reason = a.Value.Raw
				}
				g.addf("", "%s.%s goes away: %s", s.ObjectDefinition.Name, s.Name, reason)
			}
			g.findDeprecated(s.SelectionSet)
		case *ast.InlineFragment:
			g.findDeprecated(s.SelectionSet)
		}
	}
}

// selected are the fields that are read of an object, by the names that they have in the answer.
// Those that only objects of another type have are left out; where its type isn't told, optional
// are those that depend on it.
func (g *graphQLCheck) selected(set ast.SelectionSet, typename string, fields map[string]*ast.Field, optional map[string]bool, mayBe bool) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			if have := fields[s.Alias]; have != nil {
				of := *s
				of.SelectionSet = slices.Concat(have.SelectionSet, s.SelectionSet)
				s = &of
			}
			fields[s.Alias], optional[s.Alias] = s, mayBe
		case *ast.InlineFragment:
			g.selectedIf(s.TypeCondition, s.SelectionSet, typename, fields, optional, mayBe)
		case *ast.FragmentSpread:
			f := g.document.Fragments.ForName(s.Name)
			g.selectedIf(f.TypeCondition, f.SelectionSet, typename, fields, optional, mayBe)
		}
	}
}

// selectedIf is selected for what is read of objects of a type alone.
func (g *graphQLCheck) selectedIf(condition string, set ast.SelectionSet, typename string, fields map[string]*ast.Field,
	optional map[string]bool, mayBe bool) {
	is := slices.ContainsFunc(g.schema.PossibleTypes[condition], func(d *ast.Definition) bool { return d.Name == typename })
	if typename == "" || is {
		abstract := g.schema.Types[condition].IsAbstractType()
		g.selected(set, typename, fields, optional, mayBe || typename == "" && !abstract)
	}
}

// checkObject holds an object against what is read of it.
func (g *graphQLCheck) checkObject(path string, set ast.SelectionSet, of string, value map[string]any) {
	typename, _ := value["__typename"].(string)
	if typename == "" && of != "" && !g.schema.Types[of].IsAbstractType() {
		typename = of
	}
	fields, optional := map[string]*ast.Field{}, map[string]bool{}
	g.selected(set, typename, fields, optional, false)
	for _, name := range slices.Sorted(maps.Keys(value)) {
		if fields[name] == nil {
			g.addf(path+"."+name, "it is answered, and nobody reads it")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		v, answered := value[name]
		if !answered && optional[name] {
			continue
		}
		if !answered {
			g.addf(path+"."+name, "it is read, and not answered")
			continue
		}
		g.checkValue(path+"."+name, fields[name].Definition.Type, fields[name].SelectionSet, v)
	}
}

func (g *graphQLCheck) checkValue(path string, is *ast.Type, set ast.SelectionSet, value any) {
	if value == nil {
		if is.NonNull {
			g.addf(path, "it is null, and never is")
		}
		return
	}
	if is.Elem != nil {
		all, ok := value.([]any)
		if !ok {
			g.addf(path, "it is %v, want a list", value)
		}
		for i := range all {
			g.checkValue(fmt.Sprintf("%s[%d]", path, i), is.Elem, set, all[i])
		}
		return
	}
	if len(set) > 0 {
		object, ok := value.(map[string]any)
		if !ok {
			g.addf(path, "it is %v, want an object", value)
			return
		}
		g.checkObject(path, set, is.NamedType, object)
		return
	}
	d := g.schema.Types[is.NamedType]
	text, _ := value.(string)
	if d.Kind == ast.Enum && d.EnumValues.ForName(text) == nil || d.Kind == ast.Scalar && !isScalar(d.Name, value) {
		g.addf(path, "it is %v, want %s", value, d.Name)
	}
}

var (
	bigInt = regexp.MustCompile(`^-?[0-9]+$`)
	gitID  = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// isScalar says whether a value is one of a scalar type of GitHub's.
func isScalar(name string, value any) bool {
	switch v := value.(type) {
	case float64:
		return name == "Int" && v == math.Trunc(v) && math.Abs(v) <= math.MaxInt32 || name == "Float"
	case bool:
		return name == "Boolean"
	case string:
		switch name {
		case "BigInt":
			return bigInt.MatchString(v)
		case "DateTime":
			_, err := time.Parse(time.RFC3339, v)
			return err == nil
		case "GitObjectID":
			return gitID.MatchString(v)
		}
		return !slices.Contains([]string{"Int", "Float", "Boolean"}, name)
	}
	return false
}
