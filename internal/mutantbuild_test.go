package internal_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/tools/go/packages"

	"github.com/liftlock/liftlock/internal/wording"
)

// All mutants of a package are built into one binary, as mutant schemata: an expression that
// mutations change chooses among them and itself by a number. The number, and the file for the
// evaluated mutants, are put into a copy of the binary. So the programs that a test starts from its
// own binary know them too, whatever their environment.
const (
	chosenMutant  = "liftlock-mutant:000000"
	evaluatedFile = "liftlock-evaluated:"
	evaluatedSize = 512 // how long that file's path may be
)

// zeroFunc is called where a mutation drops a result.
const zeroFunc = "func mutantZero[T any](...any) (zero T) { return zero }\n"

// chooserSource is what is added to a mutated package.
func chooserSource(pkg string, mutants int) string {
	return fmt.Sprintf(`package %s

import (
	mutantos "os"
	mutantatomic "sync/atomic"
)

var (
	mutantNumber    = %q
	mutantPath      = %q
	mutantChosen    = mutantRead()
	mutantOutput    = mutantOpen()
	mutantEvaluated [%d]mutantatomic.Bool
)

func mutantRead() (n int) {
	for _, digit := range mutantNumber[len(mutantNumber)-6:] {
		n = 10*n + int(digit-'0')
	}
	return n
}

func mutantOpen() *mutantos.File {
	end := len(%q)
	for end < len(mutantPath) && mutantPath[end] != ' ' {
		end++
	}
	file, _ := mutantos.OpenFile(mutantPath[len(%q):end], mutantos.O_CREATE|mutantos.O_WRONLY, 0o600)
	return file
}

func mutantAmong(numbers ...int) int {
	if mutantOutput != nil {
		for _, n := range numbers {
			if !mutantEvaluated[n].Swap(true) {
				mutantOutput.WriteAt([]byte{'1'}, int64(n))
			}
		}
	}
	return mutantChosen
}

`+zeroFunc, pkg, chosenMutant, evaluatedFile+strings.Repeat(" ", evaluatedSize), mutants+1, evaluatedFile, evaluatedFile)
}

// mutantSchema is a package's code with all of some mutations, numbered from 1 on in their
// order. It has the changed files by their path, and one more.
type mutantSchema struct {
	pkg   *packages.Package
	files map[string][]byte
}

// newMutantSchema plants mutations into a package's code.
func newMutantSchema(pkg *packages.Package, planted []mutation) *mutantSchema {
	s := &mutantSchema{pkg: pkg, files: map[string][]byte{
		filepath.Join(filepath.Dir(pkg.GoFiles[0]), "mutantchooser.go"): []byte(chooserSource(pkg.Name, len(planted))),
	}}
	sources, changed := map[string][]byte{}, map[string][]changedExpr{}
	for i, c := range planted {
		sources[c.path] = c.source
		exprs := changed[c.path]
		at := slices.IndexFunc(exprs, func(e changedExpr) bool { return e.from == c.from && e.to == c.to })
		if at < 0 {
			at, exprs = len(exprs), append(exprs, changedExpr{from: c.from, to: c.to, gives: c.gives, by: map[int]string{}})
		}
		exprs[at].by[i+1] = c.code
		changed[c.path] = exprs
	}
	for path, exprs := range changed {
		slices.SortFunc(exprs, func(a, b changedExpr) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
		var out strings.Builder
		writeChanged(&out, sources[path], 0, len(sources[path]), exprs)
		s.files[path] = []byte(out.String())
	}
	return s
}

// changedExpr is an expression that mutations change.
type changedExpr struct {
	from, to int
	gives    string
	by       map[int]string // by the mutation's number: what it makes of it
}

// writeChanged writes the source from one byte to another, and chooses in it among what the
// expressions are changed to. They are sorted; one may be a part of the one before.
func writeChanged(out *strings.Builder, source []byte, from, to int, exprs []changedExpr) {
	for len(exprs) > 0 {
		e, parts := exprs[0], 1
		for parts < len(exprs) && exprs[parts].from < e.to {
			parts++
		}
		var numbers, cases []string
		for _, n := range slices.Sorted(maps.Keys(e.by)) {
			numbers = append(numbers, fmt.Sprint(n))
			cases = append(cases, fmt.Sprintf("case %d: return %s\n", n, e.by[n]))
		}
		opening, closing := "(", ")"
		if strings.HasPrefix(e.gives, "(") {
			opening, closing = "", ""
		}
		fmt.Fprintf(out, "%s%sfunc() %s { switch mutantAmong(%s) {\n%s}\nreturn ", source[from:e.from], opening, e.gives, strings.Join(numbers, ", "), strings.Join(cases, ""))
		writeChanged(out, source, e.from, e.to, exprs[1:parts])
		fmt.Fprintf(out, " }()%s", closing)
		from, exprs = e.to, exprs[parts:]
	}
	out.Write(source[from:to])
}

// check says what the compiler has against the code; nil when it is a program.
func (m *mutantSchema) check() error {
	imports := importerFunc(func(path string) (*types.Package, error) {
		for _, p := range append(m.pkg.Types.Imports(), types.Unsafe) {
			if p.Path() == path {
				return p, nil
			}
		}
		return nil, fmt.Errorf("%s doesn't import %s", m.pkg.PkgPath, path)
	})
	chooser := fmt.Sprintf("package %s\n\nfunc mutantAmong(...int) int { return 0 }\n", m.pkg.Name) + zeroFunc
	parsed, err := parser.ParseFile(m.pkg.Fset, "", chooser, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse what chooses among mutants: %w", err)
	}
	files := []*ast.File{parsed}
	for _, file := range m.pkg.Syntax {
		path := m.pkg.Fset.Position(file.Package).Filename
		if source, changed := m.files[path]; changed {
			if file, err = parser.ParseFile(m.pkg.Fset, path, source, parser.SkipObjectResolution); err != nil {
				return fmt.Errorf("parse a mutated file: %w", err)
			}
		}
		files = append(files, file)
	}
	if _, err := (&types.Config{Importer: imports}).Check(m.pkg.PkgPath, m.pkg.Fset, files, nil); err != nil {
		return fmt.Errorf("check a mutated package: %w", err)
	}
	return nil
}

type importerFunc func(path string) (*types.Package, error)

func (i importerFunc) Import(path string) (*types.Package, error) { return i(path) }

// pickMutations takes the first mutations that compile, and says how many it passed over.
func pickMutations(pkg *packages.Package, all []mutation, wanted int) (picked []mutation, uncompiled int) {
	if first := all[:min(wanted, len(all))]; newMutantSchema(pkg, first).check() == nil {
		return first, 0
	}
	for i := 0; i < len(all) && len(picked) < wanted; i++ {
		if newMutantSchema(pkg, all[i:i+1]).check() != nil {
			uncompiled++
			continue
		}
		picked = append(picked, all[i])
	}
	return picked, uncompiled
}

// build makes the tests of a package into a binary, with the mutated code in it.
func (m *mutantSchema) build(ctx context.Context, folder, tests string) (binary []byte, err error) {
	replaced := map[string]string{}
	for path, source := range m.files {
		planted := filepath.Join(folder, fmt.Sprintf("planted%d.go", len(replaced)))
		if err := os.WriteFile(planted, source, 0o600); err != nil {
			return nil, fmt.Errorf("write the mutants: %w", err)
		}
		replaced[path] = planted
	}
	listed, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return nil, fmt.Errorf("write where the mutants are: %w", err)
	}
	overlay, built := filepath.Join(folder, "overlay.json"), filepath.Join(folder, "mutants.test")
	if err := os.WriteFile(overlay, listed, 0o600); err != nil {
		return nil, fmt.Errorf("write where the mutants are: %w", err)
	}
	if said, err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", built, tests).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the mutants with the tests of %s: %w\n%s", tests, err, wording.Clip(string(said), 2000))
	}
	if binary, err = os.ReadFile(built); err != nil {
		return nil, fmt.Errorf("read the mutants: %w", err)
	}
	for _, needed := range []string{chosenMutant, evaluatedFile} {
		if n := bytes.Count(binary, []byte(needed)); n != 1 {
			return nil, fmt.Errorf("the tests of %s have %d places for %q, and must have one", tests, n, needed)
		}
	}
	return binary, nil
}

// writeMutant writes a binary in which a mutant is chosen; 0 is the code as it is. evaluated says
// where that binary writes which mutants' expressions are evaluated: a byte for each, by its
// number; "" is nowhere.
func writeMutant(path string, binary []byte, number int, evaluated string) error {
	if len(evaluated) > evaluatedSize {
		return fmt.Errorf("the path %s is too long for a mutant", evaluated)
	}
	binary = slices.Clone(binary)
	copy(binary[bytes.Index(binary, []byte(chosenMutant)):], fmt.Sprintf("liftlock-mutant:%06d", number))
	copy(binary[bytes.Index(binary, []byte(evaluatedFile))+len(evaluatedFile):], evaluated)
	// A program that is started meanwhile would inherit the open file, and what is open for
	// writing can't be run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, binary, 0o700); err != nil {
		return fmt.Errorf("write a mutant: %w", err)
	}
	return nil
}
