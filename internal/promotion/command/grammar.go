package command

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// ParseArgs reads one command from its words: what stands behind /liftlock, or
// behind the program's name on the command line. Without words it is help. The
// error tells the author what to write instead.
func ParseArgs(words []string) (Command, error) {
	if len(words) == 0 {
		return Command{Verb: Help}, nil
	}
	c := Command{Verb: strings.ToLower(words[0])}
	rest := words[1:]
	var err error
	switch c.Verb {
	case Help, Status, Diff, Retry:
		if len(rest) > 0 {
			err = fmt.Errorf("/liftlock %s takes nothing behind it; %q was not understood", c.Verb, truncateWord(strings.Join(rest, " ")))
		}
	case Why, Promote:
		if len(rest) > 1 {
			err = fmt.Errorf("/liftlock %s takes at most an environment; %q was not understood", c.Verb, truncateWord(strings.Join(rest[1:], " ")))
		} else if len(rest) == 1 {
			c.Environment = rest[0]
		}
	case Hold, Unhold:
		c.Scope = ScopePR
		if len(rest) > 0 {
			if s := strings.ToLower(strings.TrimRight(rest[0], ":,")); slices.Contains(scopes, s) {
				c.Scope, rest = s, rest[1:]
			}
		}
		c.Reason = oneLine(strings.Join(rest, " "))
	case Revert:
		c.Reason = oneLine(strings.Join(rest, " "))
	}
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		return Command{}, err
	}
	return c, nil
}

func unknownVerb(verb string) error {
	hint := ""
	if near := nearestVerb(verb); near != "" {
		hint = "; did you mean " + near + "?"
	}
	return fmt.Errorf("there is no command %q%s (/liftlock help lists them)", truncateWord(verb), hint)
}

// nearestVerb is the verb that is at most two slips of the keyboard away; empty when
// none is.
func nearestVerb(word string) string {
	word = strings.ToLower(word)
	best, at := "", 3
	if utf8.RuneCountInString(word) > 2*len(Promote) {
		return ""
	}
	for _, v := range Verbs() {
		if d := editDistance(word, v); d < at && d < len(v)-1 {
			best, at = v, d
		}
	}
	return best
}

// editDistance counts the single edits between two short words, a swap of
// neighbours being one.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			change := 1
			if x[i-1] == y[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}
