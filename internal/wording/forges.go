package wording

import (
	"regexp"
	"strconv"
	"strings"
)

// forgeWords are what a type of forge calls what others call otherwise.
type forgeWords struct {
	pullRequest string // in the middle of a sentence
	sigil       string // in front of a pull request's number
}

// wordsOf has the types of forges whose words aren't GitHub's.
var wordsOf = map[string]forgeWords{"gitlab": {pullRequest: "merge request", sigil: "!"}}

var (
	// literal is what stands in a text as it is: code, hidden marks, and where links lead to.
	literal     = regexp.MustCompile("(?s)```.*?(?:```|$)|`[^`\n]*`|<code>.*?</code>|<!--.*?(?:-->|$)|\\]\\([^)\n]*\\)|https?://\\S+")
	pullNumber  = regexp.MustCompile(`(^|[\s(\[*"])#([0-9]+)\b`)
	pullRequest = regexp.MustCompile(`\b([Pp])ull request`)
)

// mergeRequests is what the addresses of GitLab's merge requests have in common, of whatever host
// and project, and no other forge's.
const mergeRequests = "/-/merge_requests"

// forgeOfPage is the type of the forge that has a pull request's page at an address; empty: one
// whose words are the usual ones.
func forgeOfPage(page string) string {
	if strings.Contains(page, mergeRequests) {
		return "gitlab"
	}
	return ""
}

// ForPage is ForForge for callers that know only the address of a pull request's page, or the
// common part of such addresses. Where it isn't known, the text stays as it is.
func ForPage(page, text string) string { return ForForge(forgeOfPage(page), text) }

// PullName is how people write a pull request with its page at an address: #12, on GitLab !12.
func PullName(number int, page string) string { return ForPage(page, "#"+strconv.Itoa(number)) }

// ForForge is one of Liftlock's own texts, in Markdown or plain, in the words of a type of forge:
// on GitLab pull request #12 is merge request !12. The text of an unknown type stays as it is. Text
// quoted of others must be in code, or have its references defused.
func ForForge(forgeType, text string) string {
	w, ok := wordsOf[forgeType]
	if !ok {
		return text
	}
	var b strings.Builder
	end := 0
	for _, at := range literal.FindAllStringIndex(text, -1) {
		b.WriteString(w.apply(text[end:at[0]]))
		b.WriteString(text[at[0]:at[1]])
		end = at[1]
	}
	b.WriteString(w.apply(text[end:]))
	return b.String()
}

// apply words a part without literals.
func (f *forgeWords) apply(part string) string {
	part = pullNumber.ReplaceAllString(part, "${1}"+f.sigil+"${2}")
	return pullRequest.ReplaceAllStringFunc(part, func(m string) string {
		if m[0] == 'P' {
			return strings.ToUpper(f.pullRequest[:1]) + f.pullRequest[1:]
		}
		return f.pullRequest
	})
}
