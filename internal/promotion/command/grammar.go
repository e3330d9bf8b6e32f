package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
)

// ParseArgs reads one command from its words: what stands behind /liftlock, or
// behind the program's name on the command line. Without words it is help. The
// error tells the author what to write instead.
func ParseArgs(words []string) (Command, error) {
	if words = strings.Fields(oneLine(strings.Join(words, " "))); len(words) == 0 {
		return Command{Verb: Help}, nil
	}
	c := Command{Verb: Verb(strings.ToLower(words[0]))}
	rest := words[1:]
	var err error
	switch c.Verb.find().form {
	case bare:
		if len(rest) > 0 && slices.Contains(Verbs(), c.Verb) {
			err = fmt.Errorf("/liftlock %s takes nothing behind it; %q was not understood", c.Verb, truncateWord(strings.Join(rest, " ")))
		}
	case withEnvironment:
		if len(rest) > 1 {
			err = fmt.Errorf("/liftlock %s takes at most an environment; %q was not understood", c.Verb,
				truncateWord(strings.Join(rest[1:], " ")))
		} else if len(rest) == 1 {
			c.Environment = rest[0]
		}
	case withScope:
		c.Scope = ScopePR
		if len(rest) > 0 {
			if s := strings.ToLower(strings.TrimRight(rest[0], ":,")); slices.Contains(scopes, s) {
				c.Scope, rest = s, rest[1:]
			}
		}
		if c.Verb == Hold {
			rest, err = parseHold(&c, rest)
		}
		c.Reason = oneLine(strings.Join(rest, " "))
	case withReason:
		c.Reason = oneLine(strings.Join(rest, " "))
	case withGate:
		if len(rest) > 0 {
			c.Gate, c.Reason = rest[0], oneLine(strings.Join(rest[1:], " "))
		}
	}
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		return Command{}, err
	}
	return c, nil
}

// parseHold reads what a hold has behind its scope, in any order, and gives what is left:
// the reason.
func parseHold(c *Command, words []string) (rest []string, err error) {
	for len(words) > 0 {
		switch word := strings.ToLower(strings.TrimRight(words[0], ":,")); {
		case word == "reverts" && !c.Reverts:
			c.Reverts, words = true, words[1:]
		case word == "for" && c.For == 0 && startsWithDigit(words[1:]):
			if c.For, err = parseHoldDuration(strings.TrimRight(words[1], ":,")); err != nil {
				return nil, err
			}
			words = words[2:]
		case word == "until" && c.Until.IsZero() && startsWithDigit(words[1:]):
			if c.Until, err = parseHoldEnd(strings.TrimRight(words[1], ":,")); err != nil {
				return nil, err
			}
			words = words[2:]
		default:
			return words, nil
		}
	}
	return nil, nil
}

// startsWithDigit tells "for 2h" from a reason such as "for the weekend", which holds
// until somebody lifts it.
func startsWithDigit(words []string) bool {
	return len(words) > 0 && words[0][0] >= '0' && words[0][0] <= '9'
}

// ParseHoldEnd reads a hold's end as the API and the command line have it: for how long,
// or until when, or, with neither, no end.
func ParseHoldEnd(lasts, until string) (d time.Duration, t time.Time, err error) {
	if lasts != "" {
		d, err = parseHoldDuration(lasts)
	}
	if until != "" && err == nil {
		t, err = parseHoldEnd(until)
	}
	return d, t, err
}

// parseHoldDuration reads 90m, 2h, 1h30m or 3d.
func parseHoldDuration(s string) (time.Duration, error) {
	var d time.Duration
	var err error
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		d = time.Duration(min(max(n, -1), int(maxHold/day)+1)) * day
	} else {
		d, err = time.ParseDuration(s)
	}
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("hold for %s: that is no time; write it like 90m, 2h or 3d", truncateWord(s))
	}
	return d, nil
}

// parseHoldEnd reads a date, which is its first instant in UTC, or a time with its offset.
func parseHoldEnd(s string) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04Z07:00", time.RFC3339} {
		if t, err := time.Parse(layout, strings.ToUpper(s)); err == nil {
			return t.UTC().Truncate(time.Second), nil
		}
	}
	return time.Time{}, fmt.Errorf("hold until %s: that is no date; write 2027-01-03 (when it begins in UTC) or 2027-01-03T08:00+01:00",
		truncateWord(s))
}

func unknownVerb(verb Verb) error {
	hint, names := "", make([]string, len(declarations))
	for i, d := range declarations {
		names[i] = string(d.verb)
	}
	if near := strictyaml.Nearest(string(verb), names); near != "" {
		hint = "; did you mean " + near + "?"
	}
	return fmt.Errorf("there is no command %q%s (/liftlock help lists them)", truncateWord(string(verb)), hint)
}
