package appset

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"

	"github.com/argoproj/argo-cd/v2/applicationset/utils"

	"github.com/liftlock/liftlock/internal/wording"
)

// templateFunctions are the controller's template functions.
var templateFunctions = sync.OnceValue(func() template.FuncMap {
	funcs := sprig.GenericFuncMap()
	// These look into the machine, or ask the network.
	maps.DeleteFunc(funcs, func(name string, _ any) bool {
		return name == "env" || name == "expandenv" || name == "getHostByName"
	})
	funcs["normalize"] = utils.SanitizeName
	funcs["slugify"] = slugify
	funcs["toYaml"] = func(v any) (string, error) {
		data, err := yaml.Marshal(v)
		return strings.TrimSuffix(string(data), "\n"), err
	}
	funcs["fromYaml"] = func(text string) (map[string]any, error) {
		out := map[string]any{}
		err := yaml.Unmarshal([]byte(text), &out)
		return out, err
	}
	funcs["fromYamlArray"] = func(text string) ([]any, error) {
		out := []any{}
		err := yaml.Unmarshal([]byte(text), &out)
		return out, err
	}
	return addBuiltinFunctions(funcs)
})

// assignFunctions are those of a pipeline's templates: the same without what
// answers differently each time, since a commit's components stay the same.
var assignFunctions = sync.OnceValue(func() template.FuncMap {
	funcs := sprig.HermeticTxtFuncMap()
	funcs["normalize"] = utils.SanitizeName
	funcs["slugify"] = slugify
	return addBuiltinFunctions(funcs)
})

// addBuiltinFunctions adds the template package's own functions that make something
// bigger of their arguments.
func addBuiltinFunctions(funcs template.FuncMap) template.FuncMap {
	funcs["print"], funcs["printf"], funcs["println"] = fmt.Sprint, fmt.Sprintf, fmt.Sprintln
	funcs["html"], funcs["js"], funcs["urlquery"] = template.HTMLEscaper, template.JSEscaper, template.URLQueryEscaper
	return funcs
}

// slugMutex is held by each user of the slug library, which keeps its settings in globals.
var slugMutex sync.Mutex

func slugify(args ...any) string {
	slugMutex.Lock()
	defer slugMutex.Unlock()
	return utils.SlugifyName(args...)
}

// argumentChecks refuse what would take too much to be tried, by function. The other
// functions' results grow no faster than their arguments, which were results
// within bounds themselves, or come of the files.
var argumentChecks = map[string]func(args []reflect.Value) error{
	"repeat": func(a []reflect.Value) error { return checkBytes(a[0].Int(), a[1].Len()) },

	"until":     func(a []reflect.Value) error { return checkElements(0, max(a[0].Int(), -a[0].Int()), 1) },
	"untilStep": func(a []reflect.Value) error { return checkElements(a[0].Int(), a[1].Int(), a[2].Int()) },
	"seq":       checkSeq,

	"indent": checkIndent, "nindent": checkIndent,
	"wrapWith": func(a []reflect.Value) error { return checkBytes(int64(a[2].Len()), 1+a[1].Len()) },
	"replace": func(a []reflect.Value) error {
		from, to, in := a[0].String(), a[1].String(), a[2].String()
		return checkBytes(int64(strings.Count(in, from)), len(to))
	},
	"regexReplaceAll": checkRegexReplace, "mustRegexReplaceAll": checkRegexReplace,
	"regexReplaceAllLiteral": checkRegexReplace, "mustRegexReplaceAllLiteral": checkRegexReplace,
	"regexMatch": checkRegex, "mustRegexMatch": checkRegex, "regexFind": checkRegex, "mustRegexFind": checkRegex,
	"regexFindAll": checkRegexList, "mustRegexFindAll": checkRegexList, "regexSplit": checkRegexList, "mustRegexSplit": checkRegexList,
	"semverCompare": func(a []reflect.Value) error { return checkBytes(int64(a[0].Len()), maxRendered/maxConstraint) },
	// These compare each element with each of the others.
	"uniq": checkUnique, "mustUniq": checkUnique, "without": checkWithout, "mustWithout": checkWithout,
	"join": func(a []reflect.Value) error {
		return checkBytes(int64(lengthOfList(a[1])), a[0].Len())
	},
	"printf": checkPrintf,

	"split": checkSplit, "splitList": checkSplit, "splitn": checkSplit,

	"randAlphaNum": checkCount, "randAlpha": checkCount, "randAscii": checkCount, "randNumeric": checkCount, "randBytes": checkCount,

	// Their output may be many times their input.
	"toJson": checkTree, "mustToJson": checkTree, "toRawJson": checkTree, "mustToRawJson": checkTree,
	"toPrettyJson": checkTree, "mustToPrettyJson": checkTree, "toYaml": checkTree,
	"fromJson": checkSource, "mustFromJson": checkSource, "fromYaml": checkSource, "fromYamlArray": checkSource,
}

// checkBytes refuses times copies of something of a length.
func checkBytes(times int64, length int) error {
	if length > 0 && times > int64(maxRendered/length) {
		return errTooMuch
	}
	return nil
}

// checkElements refuses a sequence of numbers that is too long.
func checkElements(start, stop, step int64) error {
	if step != 0 && (float64(stop)-float64(start))/float64(step) > maxElements {
		return errTooMany
	}
	return nil
}

// checkSeq reads the arguments as seq does: [first [step]] last.
func checkSeq(a []reflect.Value) error {
	n, ok := a[0].Interface().([]int)
	switch {
	case !ok || len(n) == 0 || len(n) > 3:
		return nil
	case len(n) == 3:
		return checkElements(int64(n[0]), int64(n[2]), int64(n[1]))
	}
	first, last := 1, n[len(n)-1]
	if len(n) == 2 {
		first = n[0]
	}
	return checkElements(int64(min(first, last)), int64(max(first, last)), 1)
}

func checkIndent(a []reflect.Value) error {
	return checkBytes(int64(1+strings.Count(a[1].String(), "\n")), int(min(max(a[0].Int(), 0), maxRendered+1)))
}

func checkCount(a []reflect.Value) error { return checkBytes(a[0].Int(), 1) }

func checkTree(a []reflect.Value) error {
	_, err := measureValue(a[0])
	return err
}

func checkSource(a []reflect.Value) error { return checkBytes(int64(a[0].Len()), 1) }

func checkSplit(a []reflect.Value) error {
	if strings.Count(a[len(a)-1].String(), a[0].String()) >= maxElements {
		return errTooMany
	}
	return nil
}

const (
	// maxRegexSize bounds a regular expression, in instructions: compiling it takes memory for each.
	maxRegexSize = 20_000
	// maxRegexSteps bounds the bytes of a text times that: about a second.
	maxRegexSteps = 32 << 20
	// maxElementComparisons bounds how often elements of a list are compared with each other: about a second.
	maxElementComparisons = 10_000_000
	// maxConstraint bounds a constraint on versions, in bytes.
	maxConstraint = 16 << 10
)

// checkRegex refuses what a regular expression would take too long, or too much memory, to be compiled and matched: neither
// can be stopped. A bad expression is the function's to refuse.
func checkRegex(a []reflect.Value) error {
	expression, text := a[0].String(), a[1].String()
	if len(expression) > maxRegexSize {
		return errRegex
	}
	size, err := wording.PatternSize(expression)
	if err == nil && (size > maxRegexSize || len(text) > maxRegexSteps/max(size, 1)) {
		return errRegex
	}
	return nil
}

// checkRegexList is checkRegex for what may give an element for each byte of a text.
func checkRegexList(a []reflect.Value) error {
	if a[1].Len() >= maxElements {
		return errTooMany
	}
	return checkRegex(a)
}

func checkUnique(a []reflect.Value) error {
	n := int64(lengthOfList(a[0]))
	return checkComparisons(n, n)
}

func checkWithout(a []reflect.Value) error {
	return checkComparisons(int64(lengthOfList(a[0])), int64(a[1].Len()))
}

func checkComparisons(each, with int64) error {
	if each*with > maxElementComparisons {
		return errTooSlow
	}
	return nil
}

// lengthOfList is the length of a list in an argument of any type; 0 where it is none.
func lengthOfList(v reflect.Value) int {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return 0
	}
	return v.Len()
}

// checkRegexReplace bounds the size of the text that the function regexReplaceAll makes of its arguments. A bad
// expression is reported by the function itself.
func checkRegexReplace(a []reflect.Value) error {
	if err := checkRegex(a); err != nil {
		return err
	}
	expression, err := regexp.Compile(a[0].String())
	if err != nil {
		return nil
	}
	in, to := a[1].String(), a[2].String()
	references, size := strings.Count(to, "$"), 0
	if len(in) < maxRendered/(1+len(to)+references*len(in)) {
		return nil // even if every byte matches
	}
	expression.ReplaceAllStringFunc(in, func(match string) string {
		if size <= maxRendered {
			size += len(to) + references*len(match)
		}
		return ""
	})
	return checkBytes(int64(size), 1)
}

// numberPattern in a format are widths, which fmt takes up to a million, and
// precisions.
var numberPattern = regexp.MustCompile(`[0-9]+`)

func checkPrintf(a []reflect.Value) error {
	const widest = 1_000_000
	format, rest := a[0].String(), a[1]
	total, longest := 0, 0
	for _, n := range numberPattern.FindAllString(format, maxElements) {
		if width, err := strconv.Atoi(n); err == nil && width <= widest {
			total += width
		}
	}
	if strings.Contains(format, "*") {
		longest = widest // an argument may be a width
	}
	for i := range rest.Len() {
		size, err := measureValue(rest.Index(i))
		if err != nil {
			return err
		}
		longest = max(longest, size)
	}
	return cmp.Or(checkBytes(int64(strings.Count(format, "%")), longest), checkBytes(int64(total), 1))
}
