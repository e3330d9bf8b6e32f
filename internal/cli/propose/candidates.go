package propose

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
)

// Bounds of what is tried; past them a repository has parameters of another kind than those
// that tell components and environments.
const (
	maxLeaves   = 300
	maxIndex    = 12
	maxDepth    = 6
	maxExpanded = 80 // templates that are weighed against each other
)

// candidate is a template, and what it gives for each target; "" where it gives nothing.
type candidate struct {
	text   string
	cost   int // the more, the harder it is to read
	values []string

	mostKnown bool // most of its values have a word by which people call environments
}

// findKnown fills in what follows from the values.
func (c *candidate) findKnown() {
	all := c.distinct()
	known := slices.DeleteFunc(slices.Clone(all), func(v string) bool { _, ok := rankOf(v); return !ok })
	c.mostKnown = 2*len(known) >= len(all)
}

// distinct are the values that a candidate gives, sorted.
func (c *candidate) distinct() []string {
	seen := map[string]bool{}
	for _, v := range c.values {
		if v != "" {
			seen[v] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// coverage is for how many targets a candidate gives a name.
func (c *candidate) coverage() int {
	n := 0
	for _, v := range c.values {
		if v != "" {
			n++
		}
	}
	return n
}

// leaf is a text among the targets' data, by the expression that gives it.
type leaf struct {
	path       []any
	expression string
	cost       int
	values     []string // by target; "" where it has none
}

// findTotal has the expression give nothing, rather than fail, for targets that haven't the leaf: those of other sets.
func (l *leaf) findTotal() {
	keys := make([]string, 0, len(l.path))
	for _, p := range l.path {
		key, ok := p.(string)
		if !ok {
			return
		}
		keys = append(keys, strconv.Quote(key))
	}
	const moreToRead = 5
	switch {
	case !slices.Contains(l.values, ""):
	case len(keys) == 1:
		l.expression, l.cost = "get . "+keys[0], l.cost+moreToRead
	default:
		l.expression, l.cost = "dig "+strings.Join(keys, " ")+` "" .`, l.cost+moreToRead
	}
}

// findCandidates are the templates over the targets' data that tell targets apart, those that
// tell them apart in the same way once, by the one that reads best. Best first.
func findCandidates(ctx context.Context, data []map[string]any) ([]candidate, error) {
	byValues := map[string]candidate{}
	for _, l := range findLeaves(data) {
		for _, v := range l.variants() {
			e, err := appset.ParseExpression(ctx, "tried", v.text)
			if err != nil {
				return nil, err
			}
			v.values = l.evaluate(e, data)
			if v.coverage() == 0 {
				continue
			}
			key := strings.Join(v.values, "\x00")
			if old, ok := byValues[key]; !ok || compareCandidates(v, old) < 0 {
				byValues[key] = v
			}
		}
	}
	out := slices.SortedFunc(maps.Values(byValues), compareCandidates)
	for i := range out {
		out[i].findKnown()
	}
	slices.SortStableFunc(out, func(a, b candidate) int { return cmp.Compare(b.coverage(), a.coverage()) })
	return out[:min(len(out), maxExpanded)], ctx.Err()
}

// evaluate is what a template over a leaf alone gives for each target: the same where the leaf is the same.
func (l *leaf) evaluate(e *appset.Expression, data []map[string]any) []string {
	out, known := make([]string, len(data)), map[string]string{}
	for i, d := range data {
		value := l.values[i]
		if result, ok := known[value]; ok {
			out[i] = result
			continue
		}
		result, err := e.Evaluate(d)
		if err != nil {
			result = ""
		}
		out[i] = result
		if value != "" { // what is missing, or no text, isn't always so in one way
			known[value] = result
		}
	}
	return out
}

func compareCandidates(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(len(a.text), len(b.text)), cmp.Compare(a.text, b.text))
}

// findLeaves are the texts among the targets' data, by their expressions.
func findLeaves(data []map[string]any) []leaf {
	found := map[string]*leaf{}
	for i, d := range data {
		walkLeaves(d, nil, func(path []any, value string) {
			expression, cost := expressionOf(path)
			l := found[expression]
			if l == nil {
				if len(found) >= maxLeaves {
					return
				}
				l = &leaf{path: slices.Clone(path), expression: expression, cost: cost, values: make([]string, len(data))}
				found[expression] = l
			}
			l.values[i] = value
		})
	}
	for _, l := range found {
		l.findTotal()
	}
	var out []leaf
	for _, l := range slices.SortedFunc(maps.Values(found), func(a, b *leaf) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.expression, b.expression))
	}) {
		out = append(out, *l)
	}
	return out
}

// identifier is a key that a template can name after a dot.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// applicationLeaves are the parts of an Application that people tell environments by; the rest
// of it is the same for all, or says the same in more words.
var applicationLeaves = regexp.MustCompile(
	`^(metadata\.(name|labels\..*)|spec\.(project|destination\..*|source\.(path|targetRevision|helm\.valueFiles\.\d+)|sources\.\d+\.(path|targetRevision|helm\.valueFiles\.\d+)))$`)

// walkLeaves calls do with each text below a value, and the path to it, which is the caller's for that call alone.
func walkLeaves(data any, path []any, do func(path []any, value string)) {
	if len(path) > maxDepth+2 {
		return
	}
	switch v := data.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			walkLeaves(v[key], append(slices.Clip(path), key), do)
		}
	case []any:
		for i := range min(len(v), maxIndex) {
			walkLeaves(v[i], append(slices.Clip(path), i), do)
		}
	case []string:
		for i := range min(len(v), maxIndex) {
			walkLeaves(v[i], append(slices.Clip(path), i), do)
		}
	case string:
		if v == "" {
			return
		}
		if path[0] == "application" && !applicationLeaves.MatchString(dotted(path[1:])) {
			return
		}
		do(path, v)
	}
}

func dotted(path []any) string {
	var parts []string
	for _, p := range path {
		parts = append(parts, fmt.Sprint(p))
	}
	return strings.Join(parts, ".")
}

// expressionOf is how a template names what is at a path, and how hard that is to read.
func expressionOf(path []any) (string, int) {
	cost := 10 * len(path)
	switch path[0] {
	case "application":
		cost += 60
		if len(path) > 2 && path[2] == "destination" {
			cost += 40 // it says where something runs, and only by habit what that is
		}
	case "applicationSet":
		cost += 80
	}
	plain := 0
	for plain < len(path) {
		key, ok := path[plain].(string)
		if !ok || !identifier.MatchString(key) {
			break
		}
		if strings.HasSuffix(key, "Normalized") {
			cost += 15
		}
		plain++
	}
	var b strings.Builder
	for _, p := range path[:plain] {
		b.WriteString("." + p.(string))
	}
	if plain == len(path) {
		return b.String(), cost
	}
	base := cmp.Or(b.String(), ".")
	out := "index " + base
	for _, p := range path[plain:] {
		if key, ok := p.(string); ok {
			out += " " + strconv.Quote(key)
		} else {
			out += fmt.Sprintf(" %d", p)
		}
	}
	return out, cost + 8
}

// variants are the templates over a leaf: it by itself, without what all its values begin or
// end with, and parts of it.
func (l *leaf) variants() []candidate {
	add := func(extra int, format string, args ...any) candidate {
		return candidate{text: "{{ " + fmt.Sprintf(format, args...) + " }}", cost: l.cost + extra}
	}
	out := []candidate{add(0, "%s", l.expression)}
	present := slices.DeleteFunc(slices.Clone(l.values), func(v string) bool { return v == "" })
	slices.Sort(present)
	present = slices.Compact(present)
	if len(present) < 2 {
		return out
	}
	all := func(has func(v string) bool) bool {
		return !slices.ContainsFunc(present, func(v string) bool { return !has(v) })
	}
	if all(func(v string) bool { return strings.Contains(v, "/") }) {
		least := maxIndex
		for _, v := range present {
			least = min(least, strings.Count(v, "/")+1)
		}
		for i := range least {
			out = append(out, add(20+i, `index (%s | splitList "/") %d`, l.expression, i))
		}
		return append(out, add(20, `%s | splitList "/" | last`, l.expression))
	}
	trimmed := l.expression
	if prefix := commonPrefix(present); prefix != "" {
		trimmed += " | trimPrefix " + strconv.Quote(prefix)
	}
	if suffix := commonSuffix(present); suffix != "" {
		trimmed += " | trimSuffix " + strconv.Quote(suffix)
	}
	if trimmed != l.expression {
		out = append(out, add(15, "%s", trimmed))
	}
	if all(func(v string) bool { return strings.Contains(v, "-") }) {
		out = append(out, add(25, `%s | splitList "-" | last`, l.expression), add(32, `%s | splitList "-" | first`, l.expression),
			add(26, `%s | splitList "-" | initial | join "-"`, l.expression), add(31, `%s | splitList "-" | rest | join "-"`, l.expression))
	}
	return append(out, add(40, "%s | normalize", l.expression))
}

// commonPrefix is what all texts begin with, up to the last character that is neither a letter
// nor a digit; "" where that is a whole text.
func commonPrefix(texts []string) string {
	prefix := texts[0]
	for _, t := range texts[1:] {
		for !strings.HasPrefix(t, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	end := strings.LastIndexFunc(prefix, isSeparator) + 1
	if slices.Contains(texts, prefix[:end]) {
		return ""
	}
	return prefix[:end]
}

// commonSuffix is what all texts end with, from the first character on that is neither a
// letter nor a digit; "" where that is a whole text.
func commonSuffix(texts []string) string {
	suffix := texts[0]
	for _, t := range texts[1:] {
		for !strings.HasSuffix(t, suffix) {
			suffix = suffix[1:]
		}
	}
	start := strings.IndexFunc(suffix, isSeparator)
	if start < 0 || slices.Contains(texts, suffix[start:]) {
		return ""
	}
	return suffix[start:]
}

func isSeparator(r rune) bool { return r == '-' || r == '.' || r == '_' || r == '/' }
