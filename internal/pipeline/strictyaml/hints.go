package strictyaml

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/wording"
)

const (
	// maxNamedKeys bounds how many keys a message names: of more, nobody reads on.
	maxNamedKeys = 12
	// maxHintedText bounds what a message repeats of the file.
	maxHintedText = 60
)

// describeKeys names the keys of a struct, for a message.
func describeKeys(t reflect.Type) string {
	_, names := structFields(t)
	if len(names) == 1 {
		return "the key " + names[0]
	}
	return "keys such as " + wording.JoinFew(names, maxNamedKeys)
}

// suggestKeys is [DidYouMean], and where nothing is near the candidates, as long as they are few.
func suggestKeys(word string, candidates []string) string {
	if hint := DidYouMean(word, candidates); hint != "" || len(candidates) == 0 || len(candidates) > maxNamedKeys {
		return hint
	}
	return "; there are " + strings.Join(candidates, ", ")
}

// hintAtDash says how a value becomes the only item of a list of some type. Only plain text is repeated: a type
// of its own may be that of secrets.
func hintAtDash(n *yaml.Node, list reflect.Type) string {
	switch {
	case n.Kind == yaml.ScalarNode && list.Elem() == reflect.TypeFor[string]():
		return "; begin each item with a dash: - " + wording.ClipLine(n.Value, maxHintedText)
	case n.Kind == yaml.MappingNode && len(n.Content) > 0 && n.Content[0].Kind == yaml.ScalarNode:
		return "; begin each item with a dash: - " + wording.ClipLine(n.Content[0].Value, maxHintedText) + ": …"
	}
	return ""
}

// hintAtQuotes says what to do with a template without quotes, which YAML reads as a mapping within a
// mapping: {{ .env }}.
func hintAtQuotes(n *yaml.Node) string {
	if n.Kind != yaml.MappingNode || n.Style&yaml.FlowStyle == 0 || len(n.Content) != 2 {
		return ""
	}
	if n.Content[0].Kind != yaml.MappingNode {
		return ""
	}
	return "; put a template in quotes: '{{ … }}'"
}

// bareTemplate is a line whose value begins with a template that isn't in quotes.
var bareTemplate = regexp.MustCompile(`^\s*(?:- )?[\w-]+:\s+\{\{`)

// hintAtBareTemplate names the first line with such a template; "" where there is none. What YAML's parser says of
// it is about a place after it.
func hintAtBareTemplate(data []byte) string {
	for i, line := range bytes.Split(data, []byte("\n")) {
		if bareTemplate.Match(line) {
			return fmt.Sprintf("; in line %d a template must be in quotes: '{{ … }}'", i+1)
		}
	}
	return ""
}
