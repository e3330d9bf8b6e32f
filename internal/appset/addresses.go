package appset

import (
	"context"
	"encoding/json"
	"strings"
)

// Addresses are the repository URLs that the input's ApplicationSets write out, in generators and
// sources, sorted; they may be shown. isOpen says that there may be others: a template makes one, or
// plain Applications have them.
func Addresses(ctx context.Context, in Input) (list []string, isOpen bool) {
	sets, _, _ := findSets(ctx, &in)
	isOpen = len(in.Pipeline.Spec.Applications) > 0
	for i := range sets {
		var spec any
		if raw, err := json.Marshal(sets[i].spec.Spec); err != nil || json.Unmarshal(raw, &spec) != nil {
			isOpen = true // it was decoded from JSON
			continue
		}
		eachAddress(spec, "", func(url string) {
			if strings.Contains(url, "{{") {
				isOpen = true
				return
			}
			list = append(list, withoutCredentials(url))
		})
		if sets[i].spec.Spec.TemplatePatch != nil && strings.Contains(*sets[i].spec.Spec.TemplatePatch, "repoURL") {
			isOpen = true
		}
	}
	return SortedUnique(list), isOpen
}

// eachAddress calls do for every repository URL below a value that stands under a key.
func eachAddress(value any, key string, do func(url string)) {
	switch value := value.(type) {
	case string:
		if key == "repoURL" && value != "" {
			do(value)
		}
	case []any:
		for _, v := range value {
			eachAddress(v, "", do)
		}
	case map[string]any:
		for k, v := range value {
			eachAddress(v, k, do)
		}
	}
}
