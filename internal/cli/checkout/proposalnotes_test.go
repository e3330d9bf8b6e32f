package checkout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLeftNotes(t *testing.T) {
	const nothing = "no carried field is found below "
	for name, c := range map[string]struct {
		left []leftPlace
		want []string
	}{
		"none": {nil, nil},
		"one place": {[]leftPlace{{"web", "qa", nothing + "[apps/web/qa]"}},
			[]string{"Not promoted, web in qa: no carried field is found below [apps/web/qa]."}},
		"three environments for one reason": {[]leftPlace{{"web", "dev", nothing + "[apps/web/dev]"}, {"web", "qa", nothing + "[apps/web/qa]"}, {"web", "prod", nothing + "[apps/web/prod]"}},
			[]string{"Not promoted, web in dev, qa, prod: no carried field is found below [apps/{{component}}/{{environment}}]."}},
		"components with the same environments, and others": {[]leftPlace{{"api", "qa", "x"}, {"api", "prod", "x"}, {"web", "qa", "x"}, {"web", "prod", "x"}, {"mail", "qa", "x"}},
			[]string{"Not promoted, api, web in qa, prod; mail in qa: x."}},
		"two reasons":                {[]leftPlace{{"web", "qa", "x"}, {"web", "prod", "y"}}, []string{"Not promoted, web in qa: x.", "Not promoted, web in prod: y."}},
		"a name within another word": {[]leftPlace{{"web", "qa", "webs of qat"}, {"web", "prod", "webs of qat"}}, []string{"Not promoted, web in qa, prod: webs of qat."}},
		"a name within the other name": {[]leftPlace{{"test-runner", "test", "in test-runner/test"}, {"test-runner", "qa", "in test-runner/qa"}},
			[]string{"Not promoted, test-runner in test, qa: in {{component}}/{{environment}}."}},
		"many reasons why nothing is found": {[]leftPlace{{"a", "qa", nothing + "[1]"}, {"b", "qa", nothing + "[2]"}, {"c", "qa", nothing + "[3]"}, {"d", "qa", nothing + "[4]"}, {"e", "qa", nothing + "[5]"}},
			[]string{"Not promoted, because nothing that is carried is found for it: a, b, c, d, e in qa. liftlock plan says where it was looked for."}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, leftNotes(c.left)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
