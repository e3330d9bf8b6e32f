package appset

import (
	"encoding/json"
	"slices"
	"strings"
	"text/template/parse"
)

// everyWord stands for all parameters: a template that hands them on as a whole.
const everyWord = ""

// elements marks a word for a list whose elements are gone through, whatever is used of them.
const elements = ".#"

// isClusterWord says that a word can be about a cluster: what a clusters generator gives is
// known by name.
func isClusterWord(word string) bool {
	name, _, _ := strings.Cut(word, ".")
	return slices.Contains([]string{everyWord, "name", "nameNormalized", "server", "project", "metadata", "clusters"}, name)
}

// templateWords are the names of parameters that a set uses, in its templates and generators
// and in the pipeline's templates over it, sorted. A name without its keys stands for all that
// is under it.
func (as *appSet) templateWords(e *pipelineEntry) []string {
	var out []string
	raw, err := json.Marshal(as.spec.Spec)
	var spec any
	if err == nil {
		err = json.Unmarshal(raw, &spec)
	}
	if err != nil {
		return []string{everyWord} // it was decoded from JSON
	}
	collectWords(spec, "", as.spec.Spec.GoTemplate, &out)
	for _, a := range []*assigner{e.component, e.environment} {
		out = append(out, fieldWords(a.String())...)
	}
	return SortedUnique(out)
}

// collectWords collects the words of a value of a set that is under a key.
func collectWords(value any, key string, goTemplate bool, out *[]string) {
	words := plainWords
	if goTemplate {
		words = fieldWords
	}
	switch value := value.(type) {
	case string:
		*out = append(*out, words(value)...)
		if key == "mergeKeys" || key == "key" { // of a merge, and of a selector's expression
			*out = append(*out, value)
		}
	case []any:
		for _, v := range value {
			collectWords(v, key, goTemplate, out)
		}
	case map[string]any:
		for k, v := range value {
			*out = append(*out, words(k)...)
			if key == "matchLabels" { // a generator's selector goes by the names of parameters
				*out = append(*out, k)
			}
			collectWords(v, k, goTemplate, out)
		}
	}
}

// plainWords are the names that stand in braces where a set has no Go templates.
func plainWords(text string) []string {
	var out []string
	for {
		_, rest, found := strings.Cut(text, "{{")
		if !found {
			return out
		}
		name, after, _ := strings.Cut(rest, "}}")
		out, text = append(out, strings.TrimSpace(name)), after
	}
}

// fieldWords are the fields that a Go template uses, without their first dot. None of one that
// doesn't parse: it gives nothing either.
func fieldWords(text string) []string {
	if !strings.Contains(text, "{{") {
		return nil
	}
	tree := parse.New("words")
	tree.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := tree.Parse(text, "", "", trees); err != nil {
		return nil
	}
	var c wordCollector
	if tree.Root != nil {
		c.walk(tree.Root, "", true)
	}
	for _, defined := range trees {
		if defined != tree && defined.Root != nil {
			c.walk(defined.Root, "", false)
		}
	}
	return c.words
}

// wordCollector walks a template. The dot is known at its top and where a field is gone into;
// elsewhere it came of something that counts as a whole.
type wordCollector struct{ words []string }

func (w *wordCollector) add(dot string, known bool, fields ...string) {
	if !known {
		return
	}
	if dot != "" {
		fields = append([]string{dot}, fields...)
	}
	w.words = append(w.words, strings.Join(fields, "."))
}

func (w *wordCollector) walk(node parse.Node, dot string, known bool) {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, child := range n.Nodes {
			w.walk(child, dot, known)
		}
	case *parse.ActionNode:
		w.walkPipe(n.Pipe, dot, known)
	case *parse.IfNode:
		w.walkPipe(n.Pipe, dot, known)
		w.walk(n.List, dot, known)
		w.walk(n.ElseList, dot, known)
	case *parse.TemplateNode:
		w.walkPipe(n.Pipe, dot, known)
	case *parse.WithNode:
		w.walkBlock(&n.BranchNode, "", dot, known)
	case *parse.RangeNode:
		w.walkBlock(&n.BranchNode, elements, dot, known)
	}
}

// walkBlock walks a block that goes into what its pipe gives.
func (w *wordCollector) walkBlock(n *parse.BranchNode, mark, dot string, known bool) {
	inner, isField := w.singleField(n.Pipe, dot, known)
	if isField && mark != "" {
		w.add(inner+mark, true)
	}
	if !isField {
		w.walkPipe(n.Pipe, dot, known)
	}
	w.walk(n.List, inner, isField)
	w.walk(n.ElseList, dot, known)
}

// singleField is the field that a pipe is, where it is nothing else and no variable keeps it.
func (w *wordCollector) singleField(p *parse.PipeNode, dot string, known bool) (string, bool) {
	if len(p.Decl) > 0 || len(p.Cmds) != 1 || len(p.Cmds[0].Args) != 1 {
		return "", false
	}
	own := wordCollector{}
	switch p.Cmds[0].Args[0].(type) {
	case *parse.FieldNode, *parse.VariableNode:
		own.walkArgument(p.Cmds[0].Args[0], dot, known)
	}
	if len(own.words) != 1 || own.words[0] == everyWord {
		return "", false
	}
	return own.words[0], true
}

func (w *wordCollector) walkPipe(p *parse.PipeNode, dot string, known bool) {
	if p == nil {
		return
	}
	for _, command := range p.Cmds {
		args := command.Args
		if name, is := args[0].(*parse.IdentifierNode); is && slices.Contains(keyFunctions, name.Ident) && len(args) > 2 {
			args = w.walkKeys(args[1:], dot, known)
		}
		for _, a := range args {
			w.walkArgument(a, dot, known)
		}
	}
}

// keyFunctions take a map and then its keys.
var keyFunctions = []string{"index", "get", "hasKey"}

// walkKeys takes a map's name with the keys that are written out after it, and gives the rest.
func (w *wordCollector) walkKeys(args []parse.Node, dot string, known bool) []parse.Node {
	own := wordCollector{}
	own.walkArgument(args[0], dot, known)
	_, isKey := args[1].(*parse.StringNode)
	if len(own.words) != 1 || !isKey {
		return args
	}
	word, rest := own.words[0], args[1:]
	for len(rest) > 0 {
		key, isKey := rest[0].(*parse.StringNode)
		if !isKey {
			break
		}
		word, rest = strings.TrimPrefix(word+"."+key.Text, "."), rest[1:]
	}
	w.add(word, true)
	return rest
}

func (w *wordCollector) walkArgument(node parse.Node, dot string, known bool) {
	switch n := node.(type) {
	case *parse.FieldNode:
		w.add(dot, known, n.Ident...)
	case *parse.DotNode:
		w.add(dot, known)
	case *parse.VariableNode:
		// One of another name was given by a pipe that counts.
		if n.Ident[0] == "$" {
			w.add("", true, n.Ident[1:]...)
		}
	case *parse.ChainNode:
		w.walkArgument(n.Node, dot, known)
	case *parse.PipeNode:
		w.walkPipe(n, dot, known)
	}
}
