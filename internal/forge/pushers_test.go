package forge

import (
	"slices"
	"testing"
)

// TestPusherSearch goes from a pull request's head down to what isn't its own.
func TestPusherSearch(t *testing.T) {
	move := func(before, after, login string) Push {
		return Push{Before: before, After: after, By: User{Login: login}}
	}
	for name, c := range map[string]struct {
		moves    []Push
		want     []string // of one, two and three
		complete int      // after so many moves; 0: never
	}{
		"one push":                    {moves: []Push{move("base", "three", "ada")}, want: []string{"", "", "ada"}, complete: 1},
		"one push each":               {moves: []Push{move("two", "three", "ada"), move("one", "two", "bob"), move("base", "one", "cora")}, want: []string{"cora", "bob", "ada"}, complete: 3},
		"a new branch":                {moves: []Push{move("two", "three", "ada"), move("", "two", "bob")}, want: []string{"", "bob", "ada"}, complete: 2},
		"moves after the merge":       {moves: []Push{move("later", "base", "eve"), move("three", "later", "eve"), move("base", "three", "ada")}, want: []string{"", "", "ada"}, complete: 3},
		"moves between":               {moves: []Push{move("one", "three", "ada"), move("base", "one", "eve"), move("x", "base", "eve"), move("one", "x", "eve"), move("base", "one", "mallory")}, want: []string{"mallory", "", "ada"}, complete: 2},
		"what a push brought with it": {moves: []Push{move("two", "three", "ada"), move("three", "two", "bob"), move("base", "three", "cora")}, want: []string{"", "bob", "cora"}, complete: 3},
		"another branch":              {moves: []Push{move("base", "x", "ada")}, want: []string{"", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			all := []CommitAuthors{{Commit: "one"}, {Commit: "two"}, {Commit: "three"}}
			s := NewPusherSearch("three", all)
			complete := 0
			for i, p := range c.moves {
				if s.Add(p); s.IsComplete() && complete == 0 {
					complete = i + 1
				}
			}
			var got []string
			for _, a := range all {
				got = append(got, a.Pusher.Login)
			}
			if !slices.Equal(got, c.want) || complete != c.complete {
				t.Errorf("got %q after %d, want %q after %d", got, complete, c.want, c.complete)
			}
		})
	}
}
