package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/strictyaml"
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
		if c.Verb == Hold && len(rest) > 0 && strings.ToLower(strings.TrimRight(rest[0], ":,")) == "reverts" {
			c.Reverts, rest = true, rest[1:]
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
	if near := strictyaml.Nearest(verb, Verbs()); near != "" {
		hint = "; did you mean " + near + "?"
	}
	return fmt.Errorf("there is no command %q%s (/liftlock help lists them)", truncateWord(verb), hint)
}
