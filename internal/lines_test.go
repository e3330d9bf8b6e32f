package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	// maxColumns is how wide a line may be, with four columns a tab.
	maxColumns = 140
	// maxWideLines is how many may be wider all the same: SQL, regular expressions, and the one-line
	// comments that pages are generated from.
	maxWideLines = 60
	// maxConditions is how many && and || an expression may have before its parts get names.
	maxConditions = 3
)

// TestLines counts lines that are too wide, expressions with too many conditions, and receivers that
// don't begin as their type does.
func TestLines(t *testing.T) {
	var wide []string
	walkSources(t, false, func(path string, text []byte, fset *token.FileSet, f *ast.File) {
		for i, line := range strings.Split(string(text), "\n") {
			if utf8.RuneCountInString(line)+3*strings.Count(line, "\t") > maxColumns {
				wide = append(wide, fmt.Sprintf("%s:%d", path, i+1))
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if name, typ := receiverOf(n); name != "" && !strings.EqualFold(name[:1], typ[:1]) {
					t.Errorf("%s: the receiver %s of %s doesn't begin as its type does", fset.Position(n.Pos()), name, typ)
				}
			case *ast.BinaryExpr:
				if c := countConditions(n); c > maxConditions {
					t.Errorf("%s: an expression with %d conditions, more than %d; name its parts", fset.Position(n.Pos()), c, maxConditions)
				}
				return !isCondition(n)
			}
			return true
		})
	})
	if len(wide) > maxWideLines {
		t.Errorf("%d lines have more than %d columns, more than %d: %s", len(wide), maxColumns, maxWideLines, strings.Join(wide, " "))
	}
	t.Logf("%d wide lines", len(wide))
}

// walkSources calls visit for each Go file, those of tests too where that is asked for.
func walkSources(t *testing.T, tests bool, visit func(path string, text []byte, fset *token.FileSet, f *ast.File)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{"testdata", ".git", "node_modules", "bin"}, d.Name()) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || !tests && strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		visit(path, text, fset, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// receiverOf returns the names of fn's receiver and its type, both empty where it has no named one.
func receiverOf(fn *ast.FuncDecl) (name, typ string) {
	if fn.Recv == nil || len(fn.Recv.List[0].Names) == 0 || fn.Recv.List[0].Names[0].Name == "_" {
		return "", ""
	}
	of := fn.Recv.List[0].Type
	for {
		switch x := of.(type) {
		case *ast.StarExpr:
			of = x.X
		case *ast.IndexExpr:
			of = x.X
		case *ast.IndexListExpr:
			of = x.X
		case *ast.Ident:
			return fn.Recv.List[0].Names[0].Name, x.Name
		default:
			return "", ""
		}
	}
}

func isCondition(e *ast.BinaryExpr) bool { return e.Op == token.LAND || e.Op == token.LOR }

// countConditions returns how many && and || e is made of, outside of calls and function literals.
func countConditions(e ast.Expr) int {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return countConditions(e.X)
	case *ast.UnaryExpr:
		return countConditions(e.X)
	case *ast.BinaryExpr:
		n := countConditions(e.X) + countConditions(e.Y)
		if isCondition(e) {
			n++
		}
		return n
	default:
		return 0
	}
}
