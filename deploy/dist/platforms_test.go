package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestPlatforms holds that our code fits each system that we build for: compiling all that it is
// linked from would take minutes for each. Of other people's packages the declarations are read.
func TestPlatforms(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	for _, platform := range []string{"windows-amd64", "darwin-arm64"} {
		t.Run(platform, func(t *testing.T) {
			system, architecture, _ := strings.Cut(platform, "-")
			all, err := packages.Load(&packages.Config{
				Context: t.Context(), Fset: token.NewFileSet(),
				Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
					packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax,
				Env:       append(os.Environ(), "GOOS="+system, "GOARCH="+architecture, "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false"),
				ParseFile: parseFile,
			}, mainPackage)
			if err != nil {
				t.Fatal(err)
			}
			ours := 0
			packages.Visit(all, nil, func(p *packages.Package) {
				if !strings.HasPrefix(p.PkgPath, "github.com/liftlock/liftlock/") {
					return
				}
				ours++
				for _, err := range p.Errors {
					t.Error(err)
				}
			})
			if ours < 50 {
				t.Errorf("only %d packages of ours were read", ours)
			}
		})
	}
}

// parseFile leaves the bodies of other people's functions out.
func parseFile(set *token.FileSet, name string, content []byte) (*ast.File, error) {
	f, err := parser.ParseFile(set, name, content, parser.SkipObjectResolution)
	if err != nil || isOurs(name) {
		return f, err
	}
	for _, d := range f.Decls {
		if function, ok := d.(*ast.FuncDecl); ok {
			function.Body = nil
		}
	}
	return f, nil
}

// isOurs says whether a file is one of this repository.
func isOurs(name string) bool {
	root, err := filepath.Abs("../..")
	return err == nil && strings.HasPrefix(name, root+string(filepath.Separator))
}
