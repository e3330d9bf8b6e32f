package internal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// listedTypes are the types whose values are declared once, as constants, with all that the rooms
// need of each in a table beside them. They name the files with these.
var listedTypes = map[string][]string{
	"internal/pipeline/event.Kind":    {"internal/pipeline/event/event.go"},
	"internal/promotion/cause.Code":   {"internal/promotion/cause/cause.go"},
	"internal/promotion/command.Verb": {"internal/promotion/command/verbs.go"},
	"policies.GateName":               {"policies/gate.go", "internal/promotion/conditions.go"},
}

// TestLiterals holds that no room spells a value of a listed type by itself. So a person who adds
// one, or looks for its uses, finds it by its constant. Tests may, as they pin what is stored.
func TestLiterals(t *testing.T) {
	all := listCompiled(t)
	export := func(path string) (io.ReadCloser, error) { return os.Open(all[path].Export) }
	fset, seen := token.NewFileSet(), map[string]int{}
	imports := importer.ForCompiler(fset, "gc", export)
	for _, p := range all {
		if !strings.HasPrefix(p.ImportPath, module) {
			continue
		}
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
		files := parseFiles(t, fset, p)
		if _, err := (&types.Config{Importer: imports}).Check(p.ImportPath, fset, files, info); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			for literal, of := range findSpelled(f, info) {
				at := fset.Position(literal.Pos())
				seen[of]++
				isDeclaration := func(file string) bool { return strings.HasSuffix(filepath.ToSlash(at.Filename), "/"+file) }
				if !slices.ContainsFunc(listedTypes[of], isDeclaration) {
					t.Errorf("%s: a %s is spelled here; use its constant in %s", at, of, strings.Join(listedTypes[of], " or "))
				}
			}
		}
	}
	for of, files := range listedTypes {
		if seen[of] < 5 {
			t.Errorf("%v declare %d of %s, so this test reads something else", files, seen[of], of)
		}
	}
}

// findSpelled are the literals of a file, and its constants without a type, that are values of
// listed types; an empty one says that there is none.
func findSpelled(f *ast.File, info *types.Info) map[ast.Expr]string {
	found := map[ast.Expr]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		var e ast.Expr
		switch n := n.(type) {
		case *ast.BasicLit:
			e = n
		case *ast.Ident:
			if c, is := info.Uses[n].(*types.Const); is && types.Identical(c.Type(), types.Typ[types.UntypedString]) {
				e = n
			}
		}
		if e == nil {
			return true
		}
		if v := info.Types[e]; v.Value != nil && v.Value.ExactString() != `""` {
			of := strings.TrimPrefix(types.TypeString(v.Type, nil), module)
			if _, is := listedTypes[of]; is {
				found[e] = of
			}
		}
		return true
	})
	return found
}

type compiled struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// listCompiled are our packages and what they are made with, each with what the compiler exports of it.
func listCompiled(t *testing.T) map[string]compiled {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./cmd/...",
		"./internal/...", "./policies/...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]compiled{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p compiled
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
}

func parseFiles(t *testing.T, fset *token.FileSet, p compiled) []*ast.File {
	t.Helper()
	var files []*ast.File
	for _, name := range slices.Sorted(slices.Values(p.GoFiles)) {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}
