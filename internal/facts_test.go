package internal_test

import (
	"bytes"
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	factsFolder = "../internal/controller/facts"
	// maxGatherLines is how long the function may be that joins the facts: it is read from top to
	// bottom.
	maxGatherLines = 80
	// maxFactsLines is how many lines of code a package of facts may have.
	maxFactsLines = 6000
)

// factsEmbed is what a struct of facts may embed by reference, as it is data: what an evaluation
// rests on, a pipeline's file, and what differs from what runs.
var factsEmbed = []string{"Basis", "Pipeline", "Differences"}

// TestFactsAreJoined holds that the gatherers of facts are joined in the open. None is a part of
// another without a name, one function has all of them in their order, and no package of them is
// too large to know.
func TestFactsAreJoined(t *testing.T) {
	gather, lines := 0, map[string]int{}
	walkSources(t, false, func(path string, text []byte, fset *token.FileSet, f *ast.File) {
		if !strings.HasPrefix(filepath.ToSlash(path), factsFolder+"/") {
			return
		}
		lines[filepath.Dir(path)] += countCodeLines(text)
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StructType:
				for _, field := range n.Fields.List {
					if name, isPart := embeddedPart(field); isPart {
						t.Errorf("%s: %s is embedded; give the field a name", fset.Position(field.Pos()), name)
					}
				}
			case *ast.FuncDecl:
				if filepath.ToSlash(filepath.Dir(path)) == factsFolder && n.Name.Name == "Gather" {
					gather = fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1
				}
			}
			return true
		})
	})
	if gather == 0 || gather > maxGatherLines {
		t.Errorf("Gather, which joins the facts, has %d lines, more than %d, or none", gather, maxGatherLines)
	}
	for folder, n := range lines {
		if n > maxFactsLines {
			t.Errorf("%s has %d lines of code, more than %d", folder, n, maxFactsLines)
		}
	}
	if len(lines) < 5 {
		t.Fatalf("only %d packages of facts were read", len(lines))
	}
}

// embeddedPart returns the name of an embedded field that may be a gatherer: it is embedded by
// reference, or called one.
func embeddedPart(field *ast.Field) (name string, is bool) {
	if len(field.Names) > 0 {
		return "", false
	}
	of := field.Type
	pointer, isPointer := of.(*ast.StarExpr)
	if isPointer {
		of = pointer.X
	}
	switch x := of.(type) {
	case *ast.SelectorExpr:
		name = x.Sel.Name
	case *ast.Ident:
		name = x.Name
	}
	return name, isPointer && !slices.Contains(factsEmbed, name) || strings.HasSuffix(name, "Gatherer")
}

// countCodeLines counts the lines that are neither empty nor a comment.
func countCodeLines(text []byte) int {
	n := 0
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && !bytes.HasPrefix(line, []byte("//")) {
			n++
		}
	}
	return n
}
