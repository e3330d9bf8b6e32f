package prtext

import (
	"fmt"
	"regexp"
	"strings"
)

// mentionable is what a forge takes for a login in a mention.
var mentionable = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func replyMarker(id int64) string { return fmt.Sprintf("<!-- liftlock:answer id=%d -->", id) }

// Reply is the reply to the command that the person to gave in comment id. text
// may have several lines, with blank lines, "- " items and `code`, as HelpText,
// StatusText and WhyText write them; all else in it is taken literally. The
// person is mentioned: the only mention that Liftlock makes.
func Reply(to, command, text string, id int64) string {
	var p page
	p.writeLine("%s", replyMarker(id))
	who := escapeMarkdown(cleanLine(to, maxName))
	if mentionable.MatchString(to) {
		who = "@" + to
	}
	if c := strings.TrimSpace(command); c != "" {
		who += " " + codeSpan(c, maxValue)
	}
	body := renderProse(text)
	if strings.ContainsRune(body, '\n') || strings.HasPrefix(body, "- ") {
		p.writeParagraph("%s:", who)
		p.writeLine("%s", body)
	} else {
		p.writeLine("%s: %s", who, body)
	}
	return truncateBody(p.String())
}

// IsReplyTo says whether a comment is the answer to comment id. Whether it is
// ours, its author says: the caller checks that.
func IsReplyTo(body string, id int64) bool { return strings.HasPrefix(body, replyMarker(id)) }
