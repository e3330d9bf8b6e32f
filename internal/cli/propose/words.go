package propose

import (
	"slices"
	"strings"
	"unicode"
)

// ranks are the words by which people call environments, in the order in which releases
// usually go through them.
var ranks = map[string]int{
	"local": 0, "sandbox": 1, "sbx": 1, "playground": 1,
	"dev": 2, "develop": 2, "development": 2,
	"ci": 3, "int": 3, "integ": 3, "integration": 3,
	"test": 4, "testing": 4, "tst": 4,
	"qa": 5, "qs": 5,
	"perf": 6, "performance": 6, "load": 6,
	"uat": 7, "acc": 7, "acceptance": 7,
	"stage": 8, "staging": 8, "stg": 8,
	"preprod": 9, "preproduction": 9, "pre": 9,
	"canary": 10,
	"prod":   11, "production": 11, "prd": 11, "pro": 11, "live": 11,
	"dr": 12,
}

// rankOf is an environment's place by its name's words; not ok where none is known. pre-prod
// and non-prod aren't prod.
func rankOf(name string) (rank int, ok bool) {
	words := splitWords(name)
	if i := slices.Index(words, "pre"); i >= 0 && i+1 < len(words) && ranks[words[i+1]] == ranks["prod"] {
		return ranks["preprod"], true
	}
	for i, w := range words {
		w = strings.TrimRightFunc(w, unicode.IsDigit)
		if r, known := ranks[w]; known && (i == 0 || words[i-1] != "non") {
			return r, true
		}
	}
	return 0, false
}

// splitWords splits a name where something else than a letter or a digit stands.
func splitWords(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
