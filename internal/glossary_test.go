package internal_test

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// words stand in no identifier and in no file's name, whole or as a part. For each there is a word
// that people know from Go, Git forges or Argo CD.
var words = map[string]string{
	"together": "batch", "fold": "BatchPlan", "journey": "BatchPlan", "passenger": "member", "passengers": "members",
	"ride": "batch", "rides": "batches", "riding": "member", "rider": "member", "ridden": "batch", "board": "join", "train": "batch pull request", "trains": "batch pull requests",
	"seat": "limit", "newcomer": "joiner", "doomed": "reverting", "yard": "batch",
	"ask": "PendingCommand", "asks": "PendingCommands", "asked": "requestedBy", "asker": "generatorCache", "wish": "MergeQueueEntry", "wishes": "MergeQueue",
	"tell": "reply", "tells": "reply", "told": "replied", "book": "pullRequestCache", "booked": "cached", "touch": "Refresh", "touched": "changed",
	"undo": "Revert", "undoes": "reverts", "whence": "findOrigin", "untouched": "unchanged",
	"weather": "ClusterIncident", "unwell": "Unhealthy", "storm": "revert limit", "storms": "revert limit", "neighbour": "otherTarget", "neighbours": "otherTargets",
	"around": "resolveInputs", "surroundings": "resolveInputs", "elsewhere": "externalRef", "taken": "applicationCache",
	"deaf": "unreachable", "heard": "notified", "hear": "notify", "hears": "notify", "news": "pending", "wakers": "changeNotifier", "waker": "changeNotifier",
	"stray": "WrongKind", "foreign": "Unmanaged", "unsound": "HeadModified", "beyond": "CrossEnvironment", "claimed": "DeclaredRelease", "alien": "Unmanaged",
	"fleet": "appset", "ownership": "isolation", "observe": "facts", "observer": "gatherer",
	"veil": "redactor", "endless": "schemaRecursion", "lend": "fileServer", "lender": "fileServer", "borrower": "fileClient",
	"courier": "webhookSender", "people": "userActions", "sooner": "earliest",
	"stand": "gateSummary", "stands": "gateSummary", "recall": "resultCache",
}

// phrases are the same for several words in a row.
var phrases = map[string]string{
	"takeBack": "Revert", "takenBack": "RevertedBy", "wayBack": "Revert", "goesOn": "extendOrigin", "cameWith": "members", "madeOn": "base",
	"wellBefore": "HealthyBefore", "standIn": "deterministicFuncs",
}

// names are words that say nothing as the whole name of a package, a file, a type,
// a function, a method, a constant or a variable of a package. As variables inside
// a function they may stand.
var names = map[string]string{
	"case": "Evaluation", "judge": "evaluator (Judge is a verdict's)", "look": "FactRequest", "answer": "a name for what is answered", "order": "Command", "orders": "commands", "entry": "what it is an entry of",
	"turn": "Generation", "listen": "notify", "overlay": "fieldedit", "reads": "deps", "conversation": "prtext", "tracked": "history", "local": "checkout",
	"stay": "unaffectedTargets", "replies": "generatorCache", "made": "builtTarget", "maker": "targetBuilder", "keep": "resultCache", "guard": "templateLimits", "quiet": "logging",
	"same": "what is compared", "mark": "what is recorded", "here": "inProcess", "child": "worker", "pace": "timings",
	"line": "branch", "place": "location", "places": "locations", "given": "overlayFS", "world": "resolution", "once": "idempotencyKey", "gone": "removed", "moved": "ErrStale",
	"note": "record", "know": "remember", "have": "ensureCommit", "who": "members", "util": "what it does", "utils": "what it does", "common": "what it does", "helpers": "what it does", "model": "what it does",
}

// good are exported names that are the field's own or the product's.
var good = []string{"Judge", "Overlay", "Line"}

// TestGlossary holds that code is named by the words of docs/glossary.md.
func TestGlossary(t *testing.T) {
	seen := 0
	walkSources(t, true, func(path string, _ []byte, fset *token.FileSet, f *ast.File) {
		seen++
		base := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".go"), "_test")
		for _, why := range unknownWords(base, true) {
			t.Errorf("%s: the file's name %s", path, why)
		}
		for id, whole := range declared(f) {
			if id == f.Name && id.Name == "people" { // has the facts about people
				continue
			}
			for _, why := range unknownWords(id.Name, whole) {
				t.Errorf("%s: %s", fset.Position(id.Pos()), why)
			}
		}
	})
	if seen < 400 {
		t.Fatalf("only %d files were read", seen)
	}
}

// unknownWords says what is wrong with a name; whole says that it stands by itself
// on a package's level.
func unknownWords(name string, whole bool) []string {
	var out []string
	parts := camelWords(name)
	for _, w := range parts {
		if say, not := words[w]; not {
			out = append(out, name+" has the word "+w+"; say "+say)
		}
	}
	joined := strings.Join(parts, "")
	for p, say := range phrases {
		if strings.Contains(joined, strings.ToLower(p)) {
			out = append(out, name+" has "+p+"; say "+say)
		}
	}
	if say, not := names[strings.ToLower(name)]; whole && not && !slices.Contains(good, name) {
		out = append(out, name+" says nothing by itself; say "+say)
	}
	return out
}

var wordPattern = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)

// camelWords splits a name into its words, in lower case.
func camelWords(name string) []string {
	var out []string
	start := 0
	runes := []rune(name)
	flush := func(end int) {
		if end > start {
			out = append(out, wordPattern.FindAllString(strings.ToLower(string(runes[start:end])), -1)...)
		}
		start = end
	}
	for i := 1; i < len(runes); i++ {
		switch {
		case unicode.IsUpper(runes[i]) && !unicode.IsUpper(runes[i-1]),
			unicode.IsUpper(runes[i]) && i+1 < len(runes) && unicode.IsLower(runes[i+1]),
			runes[i] == '_':
			flush(i)
		}
	}
	flush(len(runes))
	return out
}

// declared lists the names that a file declares; true for those that are seen
// outside of a function. Fields are told as names within.
func declared(f *ast.File) map[*ast.Ident]bool {
	out := map[*ast.Ident]bool{f.Name: true}
	top := map[ast.Node]bool{}
	for _, d := range f.Decls {
		top[d] = true
		if g, ok := d.(*ast.GenDecl); ok {
			for _, s := range g.Specs {
				top[s] = true
			}
		}
	}
	add := func(ids []*ast.Ident, whole bool) {
		for _, id := range ids {
			out[id] = whole
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			out[n.Name] = true
		case *ast.TypeSpec:
			out[n.Name] = top[n]
		case *ast.ValueSpec:
			add(n.Names, top[n])
		case *ast.Field:
			add(n.Names, false)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					if id, ok := e.(*ast.Ident); ok {
						out[id] = false
					}
				}
			}
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{n.Key, n.Value} {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					out[id] = false
				}
			}
		}
		return true
	})
	return out
}

const (
	// maxOneWord is how many of a hundred unexported functions may have a name of one word. A name
	// is a verb with its object, but where receiver and verb read as English.
	maxOneWord = 20
	// maxFunctionLines bounds a function outside of tests, whose tables may be long.
	maxFunctionLines = 100
)

// TestFunctions counts the one-word names, and finds functions that are too long.
func TestFunctions(t *testing.T) {
	all, one := 0, 0
	byRoom := map[string]int{}
	walkSources(t, false, func(path string, _ []byte, fset *token.FileSet, f *ast.File) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > maxFunctionLines {
				t.Errorf("%s: %s has %d lines, more than %d", fset.Position(fn.Pos()), fn.Name.Name, n, maxFunctionLines)
			}
			if fn.Name.IsExported() {
				continue
			}
			all++
			if oneWord.MatchString(fn.Name.Name) {
				one++
				byRoom[filepath.Dir(path)]++
			}
		}
	})
	if one*100 > all*maxOneWord {
		t.Errorf("%d of %d unexported functions and methods have names of one word, more than %d %%: %v", one, all, maxOneWord, byRoom)
	}
	t.Logf("%d of %d unexported functions and methods have names of one word", one, all)
}

var oneWord = regexp.MustCompile(`^[a-z0-9]+$`)
