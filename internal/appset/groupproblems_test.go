package appset

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGroupProblems(t *testing.T) {
	var list []Problem
	for i := range 2000 {
		list = append(list, Problem{File: "a.yaml", ApplicationSet: "shop", Application: fmt.Sprintf("web-%04d", i), Message: `the component template "{{ .x }}": <.x>: no key`})
	}
	list = append(list,
		Problem{File: "a.yaml", ApplicationSet: "shop", Application: "one", Message: `it gave "A", which is not a name`},
		Problem{File: "a.yaml", ApplicationSet: "shop", Message: "it can't be read"},
		Problem{File: "a.yaml", ApplicationSet: "shop", Application: "two", Message: `it gave "B", which is not a name`},
		Problem{File: "b.yaml", ApplicationSet: "shop", Application: "one", Message: `it gave "A", which is not a name`},
		Problem{Message: "the same"}, Problem{Message: "the same"},
	)
	want := []Problem{
		{File: "a.yaml", ApplicationSet: "shop", Message: `2000 Applications (web-0000, web-0001, web-0002 and 1997 more): the component template "{{ .x }}": <.x>: no key`},
		{File: "a.yaml", ApplicationSet: "shop", Message: `2 Applications (one, two): of the first: it gave "A", which is not a name`},
		{File: "a.yaml", ApplicationSet: "shop", Message: "it can't be read"},
		{File: "b.yaml", ApplicationSet: "shop", Application: "one", Message: `it gave "A", which is not a name`},
		{Message: "the same"}, {Message: "the same"},
	}
	if diff := cmp.Diff(want, GroupProblems(list, NameFew)); diff != "" {
		t.Error(diff)
	}
}
