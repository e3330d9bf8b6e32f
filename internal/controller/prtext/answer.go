package prtext

import (
	"fmt"
	"regexp"
	"strings"
)

// mentionable is what a forge takes for a login in a mention.
var mentionable = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func answerMark(id int64) string { return fmt.Sprintf("<!-- liftlock:answer id=%d -->", id) }

// Answer is the reply to the command that the person to gave in comment id. text
// may have several lines, with blank lines, "- " items and `code`, as HelpText,
// StatusText and WhyText write them; all else in it is taken literally. The
// person is mentioned: the only mention that Liftlock makes.
func Answer(to, command, text string, id int64) string {
	var p page
	p.line("%s", answerMark(id))
	who := escape(clean(to, maxName))
	if mentionable.MatchString(to) {
		who = "@" + to
	}
	if c := strings.TrimSpace(command); c != "" {
		who += " " + code(c, maxValue)
	}
	body := prose(text)
	if strings.ContainsRune(body, '\n') || strings.HasPrefix(body, "- ") {
		p.line("%s:", who)
		p.gap()
		p.line("%s", body)
	} else {
		p.line("%s: %s", who, body)
	}
	return bound(p.String())
}

// HasAnswer says whether a comment is the answer to comment id. Whether it is
// ours, its author says: the caller checks that.
func HasAnswer(body string, id int64) bool { return strings.HasPrefix(body, answerMark(id)) }
