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

func (f *mutationFinder) visit(n ast.Node, stack []ast.Node) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if f.info.Types[n].Value == nil { // constants are what they are
			f.mutateBinary(n)
		}
	case *ast.CallExpr:
		f.mutateTimeComparison(n)
	case *ast.IfStmt:
		f.negateCondition(n.Cond)
	case *ast.ForStmt:
		f.negateCondition(n.Cond)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, clause := range n.Body.List {
				for _, cond := range clause.(*ast.CaseClause).List {
					f.negateCondition(cond)
				}
			}
		}
	case *ast.ReturnStmt:
		f.mutateReturn(n, stack)
	}
}

// boundaries and negations are by what an operator is replaced.
var (
	boundaries = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}
	negations  = map[token.Token]token.Token{token.LSS: token.GEQ, token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL}
)

func (f *mutationFinder) mutateBinary(n *ast.BinaryExpr) {
	x, y := f.text(n.X), f.text(n.Y)
	for _, by := range []map[token.Token]token.Token{boundaries, negations} {
		if op, ok := by[n.Op]; ok {
			code := f.textBetween(n.Pos(), n.OpPos) + op.String() + f.textBetween(n.OpPos+token.Pos(len(n.Op.String())), n.End())
			f.add(n, n, "bool", code, x+" "+op.String()+" "+y)
		}
	}
	if n.Op != token.LAND && n.Op != token.LOR {
		return
	}
	ignored := map[token.Token]string{token.LAND: " || true)", token.LOR: " && false)"}[n.Op]
	f.add(n, n.X, "bool", "(("+x+")"+ignored, y)
	f.add(n, n.Y, "bool", "(("+y+")"+ignored, x)
	f.negateCondition(n.X)
	f.negateCondition(n.Y)
}

// mutateTimeComparison changes what becomes of two times that are the same.
func (f *mutationFinder) mutateTimeComparison(n *ast.CallExpr) {
	called, ok := n.Fun.(*ast.SelectorExpr)
	if !ok || len(n.Args) != 1 {
		return
	}
	method, ok := f.info.Uses[called.Sel].(*types.Func)
	if !ok {
		return
	}
	other := map[string]string{"(time.Time).Before": "After", "(time.Time).After": "Before"}[method.FullName()]
	if other != "" {
		code := "!" + f.text(called.X) + "." + other + "(" + f.text(n.Args[0]) + ")"
		f.add(n, n, "bool", code, code)
	}
}

// negateCondition negates what isn't a comparison and has no parts, which are looked at
// by themselves.
func (f *mutationFinder) negateCondition(cond ast.Expr) {
	if cond == nil || f.isCompound(cond) {
		return
	}
	code := "!(" + f.text(cond) + ")"
	f.add(cond, cond, "bool", code, code)
}

func (f *mutationFinder) isCompound(e ast.Expr) bool {
	n, ok := ast.Unparen(e).(*ast.BinaryExpr)
	return ok && (negations[n.Op] != 0 || n.Op == token.LAND || n.Op == token.LOR)
}

// mutateReturn negates booleans, and returns nothing instead of something.
func (f *mutationFinder) mutateReturn(n *ast.ReturnStmt, stack []ast.Node) {
	results := f.resultTypes(stack)
	switch {
	case len(n.Results) == len(results):
		for i, e := range n.Results {
			if code, what := f.changeResult(results[i], f.text(e)); f.isBool(results[i]) && !f.isComparison(e) || !f.isBool(results[i]) && !f.isZero(e) {
				f.add(n, e, f.text(results[i]), code, f.textBetween(n.Pos(), e.Pos())+what+f.textBetween(e.End(), n.End()))
			}
		}
	case len(n.Results) == 1: // a call with several results
		var wanted, given []string
		for i, r := range results {
			wanted = append(wanted, f.text(r))
			given = append(given, fmt.Sprintf("mutantResult%d", i))
		}
		all, gives := strings.Join(given, ", "), "("+strings.Join(wanted, ", ")+")"
		for i, r := range results {
			code, what := f.changeResult(r, given[i])
			changed := strings.Replace(all, given[i], code, 1)
			f.add(n, n.Results[0], gives, fmt.Sprintf("func() %s { %s := %s; return %s }()", gives, all, f.text(n.Results[0]), changed),
				f.textBetween(n.Pos(), n.End())+", of which the result "+fmt.Sprint(i+1)+" is "+strings.Replace(what, given[i], "it", 1))
		}
	}
}

// changeResult is another result than an expression: its negation, or the zero value. That
// what is dropped is still computed keeps its variables in use, so that the file compiles.
func (f *mutationFinder) changeResult(result ast.Expr, expr string) (code, becomes string) {
	if f.isBool(result) {
		return "!(" + expr + ")", "!(" + expr + ")"
	}
	return "mutantZero[" + f.text(result) + "](" + expr + ")", "zero"
}

// resultTypes are the types that the innermost function returns, one for each value.
func (f *mutationFinder) resultTypes(stack []ast.Node) []ast.Expr {
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

func (f *mutationFinder) isBool(e ast.Expr) bool {
	basic, ok := f.info.TypeOf(e).Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsBoolean != 0
}

// isComparison is true for what is negated as a comparison already.
func (f *mutationFinder) isComparison(e ast.Expr) bool {
	n, ok := ast.Unparen(e).(*ast.BinaryExpr)
	return ok && negations[n.Op] != 0
}

// isZero is true for an expression that is the zero value already.
func (f *mutationFinder) isZero(e ast.Expr) bool {
	value := f.info.Types[e]
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
func (f *mutationFinder) add(n ast.Node, expr ast.Expr, gives, code, becomes string) {
	f.found = append(f.found, mutation{
		path: f.path, source: f.source, line: f.fset.Position(expr.Pos()).Line, from: f.offset(expr.Pos()), to: f.offset(expr.End()),
		gives: gives, code: code, was: describeCode(f.text(n)), becomes: describeCode(becomes),
	})
}

func (f *mutationFinder) offset(p token.Pos) int { return f.fset.Position(p).Offset }

func (f *mutationFinder) text(n ast.Node) string { return f.textBetween(n.Pos(), n.End()) }

func (f *mutationFinder) textBetween(from, to token.Pos) string {
	return string(f.source[f.offset(from):f.offset(to)])
}

// describeCode is code on one line that isn't too long to read.
func describeCode(code string) string {
	return wording.ClipRunes(strings.Join(strings.Fields(code), " "), 120)
}
