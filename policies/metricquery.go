package policies

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/liftlock/liftlock/internal/wording"
)

// queryNames are what a query may have placeholders for.
var queryNames = map[string]func(p *Promotion) (string, error){
	"pipeline":    func(p *Promotion) (string, error) { return p.Pipeline, nil },
	"environment": func(p *Promotion) (string, error) { return p.Environment, nil },
	"component":   func(p *Promotion) (string, error) { return p.Component, nil },
	"release": func(p *Promotion) (string, error) {
		if p.Release == nil {
			return "", fmt.Errorf("what is promoted can't be read: %s", p.ReleaseErr)
		}
		return p.Release.Short, nil
	},
	"tag": findTag,
}

// queryNameList are the same, for people.
const queryNameList = "{{ .pipeline }}, {{ .environment }}, {{ .component }}, {{ .release }} and {{ .tag }}"

// findTag is the tag of the one image that a release has. An author who commits to the first
// environment writes it, and it may stand in a regular expression, so any character that isn't a
// registry's is refused.
func findTag(p *Promotion) (string, error) {
	if p.Release == nil {
		return "", fmt.Errorf("what is promoted can't be read: %s", p.ReleaseErr)
	}
	tag := ""
	for _, i := range p.Release.Images {
		if tag != "" && i.Tag != tag {
			return "", errors.New("the release has several images with different tags, so that {{ .tag }} is none of them")
		}
		tag = i.Tag
	}
	if tag == "" {
		return "", errors.New("the release has no image with a tag, so that there is no {{ .tag }}")
	}
	if len(tag) > 128 || strings.ContainsFunc(tag, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '.' && r != '-'
	}) {
		return "", fmt.Errorf("%q is not an image's tag", wording.ClipLine(tag, 128))
	}
	return tag, nil
}

// Render is the query with its placeholders replaced by what is known of a promotion. The
// error says which can't be.
func (m *Metric) Render(p *Promotion) (string, error) {
	return renderQuery(m.Query, func(name string) (string, error) {
		if p == nil {
			return "", errors.New("what is promoted isn't known")
		}
		return queryNames[name](p)
	})
}

// renderQuery replaces the placeholders of a PromQL text. Within a string it writes the value,
// escaped as that kind of string needs it, and outside of one a string of its own. So no value can
// end the string that it stands in and go on as PromQL.
func renderQuery(text string, lookup func(name string) (string, error)) (string, error) {
	var out strings.Builder
	var quote byte // of the string that is open, '#' within a comment; 0: neither
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case strings.HasPrefix(text[i:], "{{"):
			length := strings.Index(text[i:], "}}")
			if length < 0 {
				return "", errors.New("a {{ has no }}")
			}
			value, err := queryValue(text[i+2:i+length], quote, lookup)
			if err != nil {
				return "", err
			}
			out.WriteString(value)
			i += length + 1
			continue
		case quote == '#':
			if c == '\n' {
				quote = 0
			}
		case quote == 0 && strings.IndexByte("\"'`#", c) >= 0:
			quote = c
		case c == quote:
			quote = 0
		case c == '\\' && (quote == '"' || quote == '\'') && i+1 < len(text):
			out.WriteByte(c)
			i++
			c = text[i]
		}
		out.WriteByte(c)
	}
	if quote != 0 && quote != '#' {
		return "", fmt.Errorf("a string that begins with %c has no end", quote)
	}
	return out.String(), nil
}

// queryValue is what stands in a placeholder's place.
func queryValue(placeholder string, quote byte, lookup func(name string) (string, error)) (string, error) {
	name, ok := strings.CutPrefix(strings.TrimSpace(placeholder), ".")
	if _, known := queryNames[name]; !ok || !known {
		return "", fmt.Errorf("knows only %s, not {{ %s }}", queryNameList, wording.ClipLine(placeholder, maxMetricText))
	}
	if quote == '#' {
		return "", fmt.Errorf("{{ .%s }} stands in a comment", name)
	}
	value, err := lookup(name)
	if err != nil {
		return "", err
	}
	if value == "" || !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		return "", fmt.Errorf("{{ .%s }} has no value that can stand in a query", name)
	}
	if quote == '`' {
		if strings.Contains(value, "`") {
			return "", fmt.Errorf("{{ .%s }} has a character that can't stand in a string of this kind", name)
		}
		return value, nil
	}
	value = strings.ReplaceAll(value, `\`, `\\`)
	if quote == '\'' {
		return strings.ReplaceAll(value, `'`, `\'`), nil
	}
	value = strings.ReplaceAll(value, `"`, `\"`) // PromQL takes only the escape of the quote that is open
	if quote == 0 {
		value = `"` + value + `"`
	}
	return value, nil
}
