package wording

import (
	"strings"
	"testing"
)

func TestCheckGlob(t *testing.T) {
	for name, c := range map[string]struct {
		glob    string
		refused bool
	}{
		"none":              {"apps/*/overlays/**/config.json", false},
		"usual ones":        {"{apps,infra}/*/{dev,qa,prod}/**/*.{yaml,yml,json}", false},
		"a long list":       {"{" + strings.Repeat("a,", 200) + "b}/*.yaml", false},
		"commas alone":      {strings.Repeat("a,", 1000), false},
		"many groups of 1":  {strings.Repeat("{a}", 1000), false},
		"many groups":       {strings.Repeat("{a,aa}", 26) + "x", true},
		"nested groups":     {"{" + strings.Repeat("{a,aa}", 13) + "," + strings.Repeat("{a,aa}", 13) + "}", true},
		"a class with one":  {"{a,[{]b" + strings.Repeat("{a,aa}", 12) + "}", true},
		"a class that ends": {"{a,[}]b" + strings.Repeat("{a,aa}", 12) + "}", true},
	} {
		if err := CheckGlob(c.glob); (err != nil) != c.refused {
			t.Errorf("%s: %v, want it refused: %t", name, err, c.refused)
		}
	}
}
