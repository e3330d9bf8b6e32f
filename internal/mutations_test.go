package internal_test

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/liftlock/liftlock/internal/wording"
)

// mutation is a small change of the code that a test should notice: of one expression, or
// of a call that gives all of a function's results.
type mutation struct {
	path         string // of the file
	source       []byte // what it has
	line         int
	from, to     int    // where the expression is, in bytes of the file
	gives        string // its type; of a call with several results theirs, in parentheses
	code         string // what is put there
	was, becomes string // what is said of it
}

// mutationFinder goes through the files of a package.
type mutationFinder struct {
	fset   *token.FileSet
	info   *types.Info
	path   string
	source []byte
	found  []mutation
}

// findMutations lists what can be changed in a package's own files, in their order.
func findMutations(pkg *packages.Package) ([]mutation, error) {
	var found []mutation
	for _, file := range pkg.Syntax {
		path := pkg.Fset.Position(file.Package).Filename
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read what is to be mutated: %w", err)
		}
		f := &mutationFinder{fset: pkg.Fset, info: pkg.TypesInfo, path: path, source: source}
		ast.PreorderStack(file, nil, func(n ast.Node, stack []ast.Node) bool {
			f.visit(n, stack)
			return true
		})
		found = append(found, f.found...)
	}
	return found, nil
}

func (m *mutationFinder) visit(n ast.Node, stack []ast.Node) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if m.info.Types[n].Value == nil { // constants are what they are
			m.mutateBinary(n)
		}
	case *ast.CallExpr:
		m.mutateTimeComparison(n)
	case *ast.IfStmt:
		m.negateCondition(n.Cond)
	case *ast.ForStmt:
		m.negateCondition(n.Cond)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, clause := range n.Body.List {
				for _, cond := range clause.(*ast.CaseClause).List {
					m.negateCondition(cond)
				}
			}
		}
	case *ast.ReturnStmt:
		m.mutateReturn(n, stack)
	}
}

// boundaries and negations are by what an operator is replaced.
var (
	boundaries = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}
	negations  = map[token.Token]token.Token{token.LSS: token.GEQ, token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL}
)

func (m *mutationFinder) mutateBinary(n *ast.BinaryExpr) {
	x, y := m.text(n.X), m.text(n.Y)
	for _, by := range []map[token.Token]token.Token{boundaries, negations} {
		if op, ok := by[n.Op]; ok {
			code := m.textBetween(n.Pos(), n.OpPos) + op.String() + m.textBetween(n.OpPos+token.Pos(len(n.Op.String())), n.End())
			m.add(n, n, "bool", code, x+" "+op.String()+" "+y)
		}
	}
	if n.Op != token.LAND && n.Op != token.LOR {
		return
	}
	ignored := map[token.Token]string{token.LAND: " || true)", token.LOR: " && false)"}[n.Op]
	m.add(n, n.X, "bool", "(("+x+")"+ignored, y)
	m.add(n, n.Y, "bool", "(("+y+")"+ignored, x)
	m.negateCondition(n.X)
	m.negateCondition(n.Y)
}

// mutateTimeComparison changes what becomes of two times that are the same.
func (m *mutationFinder) mutateTimeComparison(n *ast.CallExpr) {
	called, ok := n.Fun.(*ast.SelectorExpr)
	if !ok || len(n.Args) != 1 {
		return
	}
	method, ok := m.info.Uses[called.Sel].(*types.Func)
	if !ok {
		return
	}
	other := map[string]string{"(time.Time).Before": "After", "(time.Time).After": "Before"}[method.FullName()]
	if other != "" {
		code := "!" + m.text(called.X) + "." + other + "(" + m.text(n.Args[0]) + ")"
		m.add(n, n, "bool", code, code)
	}
}

// negateCondition negates a condition that isn't a comparison and has no parts, which are mutated
// by themselves.
func (m *mutationFinder) negateCondition(cond ast.Expr) {
	if cond == nil || m.isCompound(cond) {
		return
	}
	code := "!(" + m.text(cond) + ")"
	m.add(cond, cond, "bool", code, code)
}

func (m *mutationFinder) isCompound(e ast.Expr) bool {
	n, ok := ast.Unparen(e).(*ast.BinaryExpr)
	return ok && (negations[n.Op] != 0 || n.Op == token.LAND || n.Op == token.LOR)
}

// mutateReturn negates booleans, and returns nothing instead of something.
func (m *mutationFinder) mutateReturn(n *ast.ReturnStmt, stack []ast.Node) {
	results := m.resultTypes(stack)
	switch {
	case len(n.Results) == len(results):
		for i, e := range n.Results {
			if code, what := m.changeResult(results[i], m.text(e)); m.isBool(results[i]) && !m.isComparison(e) || !m.isBool(results[i]) && !m.isZero(e) {
				m.add(n, e, m.text(results[i]), code, m.textBetween(n.Pos(), e.Pos())+what+m.textBetween(e.End(), n.End()))
			}
		}
	case len(n.Results) == 1: // a call with several results
		var wanted, given []string
		for i, r := range results {
			wanted = append(wanted, m.text(r))
			given = append(given, fmt.Sprintf("mutantResult%d", i))
		}
		all, gives := strings.Join(given, ", "), "("+strings.Join(wanted, ", ")+")"
		for i, r := range results {
			code, what := m.changeResult(r, given[i])
			changed := strings.Replace(all, given[i], code, 1)
			m.add(n, n.Results[0], gives, fmt.Sprintf("func() %s { %s := %s; return %s }()", gives, all, m.text(n.Results[0]), changed),
				m.textBetween(n.Pos(), n.End())+", of which the result "+fmt.Sprint(i+1)+" is "+strings.Replace(what, given[i], "it", 1))
		}
	}
}

// changeResult is another result than an expression: its negation, or the zero value. That
// what is dropped is still computed keeps its variables in use, so that the file compiles.
func (m *mutationFinder) changeResult(result ast.Expr, expr string) (code, becomes string) {
	if m.isBool(result) {
		return "!(" + expr + ")", "!(" + expr + ")"
	}
	return "mutantZero[" + m.text(result) + "](" + expr + ")", "zero"
}

// resultTypes are the types that the innermost function returns, one for each value.
func (m *mutationFinder) resultTypes(stack []ast.Node) []ast.Expr {
	var signature *ast.FuncType
	for _, n := range stack {
		switch n := n.(type) {
		case *ast.FuncDecl:
			signature = n.Type
		case *ast.FuncLit:
			signature = n.Type
		}
	}
	var out []ast.Expr
	if signature == nil || signature.Results == nil {
		return nil
	}
	for _, field := range signature.Results.List {
		for range max(1, len(field.Names)) {
			out = append(out, field.Type)
		}
	}
	return out
}

func (m *mutationFinder) isBool(e ast.Expr) bool {
	basic, ok := m.info.TypeOf(e).Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsBoolean != 0
}

// isComparison is true for what is negated as a comparison already.
func (m *mutationFinder) isComparison(e ast.Expr) bool {
	n, ok := ast.Unparen(e).(*ast.BinaryExpr)
	return ok && negations[n.Op] != 0
}

// isZero is true for an expression that is the zero value already.
func (m *mutationFinder) isZero(e ast.Expr) bool {
	value := m.info.Types[e]
	if value.IsNil() {
		return true
	}
	if value.Value != nil {
		switch value.Value.Kind() {
		case constant.String:
			return constant.StringVal(value.Value) == ""
		case constant.Int, constant.Float:
			return constant.Sign(value.Value) == 0
		}
		return false
	}
	literal, ok := e.(*ast.CompositeLit)
	if !ok || len(literal.Elts) > 0 {
		return false
	}
	_, isStruct := value.Type.Underlying().(*types.Struct)
	return isStruct
}

// add notes a mutation of an expression in a node.
func (m *mutationFinder) add(n ast.Node, expr ast.Expr, gives, code, becomes string) {
	m.found = append(m.found, mutation{
		path: m.path, source: m.source, line: m.fset.Position(expr.Pos()).Line, from: m.offset(expr.Pos()), to: m.offset(expr.End()),
		gives: gives, code: code, was: describeCode(m.text(n)), becomes: describeCode(becomes),
	})
}

func (m *mutationFinder) offset(p token.Pos) int { return m.fset.Position(p).Offset }

func (m *mutationFinder) text(n ast.Node) string { return m.textBetween(n.Pos(), n.End()) }

func (m *mutationFinder) textBetween(from, to token.Pos) string {
	return string(m.source[m.offset(from):m.offset(to)])
}

// describeCode is code on one line that isn't too long to read.
func describeCode(code string) string {
	return wording.ClipRunes(strings.Join(strings.Fields(code), " "), 120)
}
