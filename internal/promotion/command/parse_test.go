package command

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func describe(cmds []Command, errs []error) string {
	var out []string
	for _, c := range cmds {
		s := Describe(c)
		if c.Reason != "" {
			s += ": " + c.Reason
		}
		out = append(out, s)
	}
	for _, err := range errs {
		out = append(out, "! "+err.Error())
	}
	return strings.Join(out, "\n")
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, in string
		bare     bool
		want     string
	}{
		{"nothing", "", false, ""},
		{"no command", "Looks good to me.", false, ""},
		{"each verb", "/liftlock help\n/liftlock status\n/liftlock why\n/liftlock hold\n/liftlock unhold\n/liftlock promote\n/liftlock revert\n/liftlock retry", false,
			"help\nstatus\nwhy\nhold pr\nunhold pr\npromote\nrevert\nretry"},
		{"alone it is help", "/liftlock", false, "help"},
		{"amid a comment", "I don't trust this yet.\n\n/liftlock hold the database moves tonight\n\nThanks!", false, "hold pr: the database moves tonight"},
		{"right behind a line", "Please:\n/liftlock retry", false, "retry"},
		{"CRLF", "hello\r\n/liftlock hold  two   words \r\n/liftlock retry\r\n", false, "hold pr: two words\nretry"},
		{"old line ends", "hello\r/liftlock retry\rbye", false, "retry"},
		{"capitals", "/Liftlock HOLD Component Busy", false, "hold component: Busy"},
		{"tabs", "/liftlock\tpromote\tqa", false, "promote qa"},
		{"scopes", "/liftlock hold environment: it burns\n/liftlock unhold pipeline\n/liftlock hold pr\n/liftlock hold component", false,
			"hold environment: it burns\nunhold pipeline\nhold pr\nhold component"},
		{"a hold of reverts", "/liftlock hold pipeline reverts: a long weekend\n/liftlock hold reverts\n/liftlock hold component reverts", false,
			"hold pipeline reverts: a long weekend\nhold pr reverts\nhold component reverts"},
		{"holds with an end", "/liftlock hold for 2h\n/liftlock hold component for 3d: the audit\n/liftlock hold pipeline reverts for 1h30m\n/liftlock hold environment until 2027-01-03: reverts, holidays\n/liftlock hold until 2027-01-03T08:00+01:00 x\n/liftlock hold until 2027-01-03t08:00:30z", false,
			"hold pr for 2h0m0s\nhold component for 72h0m0s: the audit\nhold pipeline for 1h30m0s reverts\nhold environment until 2027-01-03T00:00:00Z reverts: holidays\nhold pr until 2027-01-03T07:00:00Z: x\nhold pr until 2027-01-03T08:00:30Z"},
		{"reasons that begin like an end", "/liftlock hold for the weekend\n/liftlock hold until ada is back\n/liftlock hold for\n/liftlock hold for 1h for 2h more\n/liftlock hold until 2027-01-03 until 2027-01-04 maybe\n/liftlock hold reverts reverts went wrong\n/liftlock hold until (maybe) friday", false,
			"hold pr: for the weekend\nhold pr: until ada is back\nhold pr: for\nhold pr for 1h0m0s: for 2h more\nhold pr until 2027-01-03T00:00:00Z: until 2027-01-04 maybe\nhold pr reverts: reverts went wrong\nhold pr: until (maybe) friday"},
		{"ends that are none", "/liftlock hold for 2\n/liftlock hold for 0h\n/liftlock hold for 400d\n/liftlock hold for 99999999999999999999d\n/liftlock hold until 2027-13-01\n/liftlock hold for 1h until 2027-01-03", false,
			"! hold for 2: that is no time; write it like 90m, 2h or 3d\n! hold for 0h: that is no time; write it like 90m, 2h or 3d\n! a hold lasts up to 366 days; without for and until it lasts until somebody lifts it\n" +
				"! hold for 99999999999999999999d: that is no time; write it like 90m, 2h or 3d\n! hold until 2027-13-01: that is no date; write 2027-01-03 (when it begins in UTC) or 2027-01-03T08:00+01:00\n! a hold has one end: say for or until, not both"},
		{"a reason that begins like no scope", "/liftlock hold components are late", false, "hold pr: components are late"},
		{"an environment", "/liftlock promote prod-us\n/liftlock why qa", false, "promote prod-us\nwhy qa"},
		{"a revert's reason", "/liftlock revert checkout is slow", false, "revert: checkout is slow"},
		{"invisible characters", "/liftlock hold a\u202eb\u200bc \x00d", false, "hold pr: abc d"},

		{"not in the first column", " /liftlock hold\n  /liftlock hold\n\t/liftlock hold\n    /liftlock hold", false, ""},
		{"not first in the line", "please /liftlock hold\n- /liftlock hold\n**/liftlock hold**\n`/liftlock hold`", false, ""},
		{"another bot's", "/liftlocked hold\n/promote\n/hold\n//liftlock hold\n/ liftlock", false, ""},
		{"a quote", "> /liftlock promote\n>/liftlock promote\n   > /liftlock promote", false, ""},
		{"a quote that goes on", "> somebody said\n/liftlock promote\nmore\n/liftlock promote\n\n/liftlock retry", false, "retry"},
		{"a fence", "```\n/liftlock promote\n```\n/liftlock retry", false, "retry"},
		{"a fence with a word", "```sh\n/liftlock promote\n```", false, ""},
		{"a fence in tildes", "~~~ a `b`\n/liftlock promote\n```\n/liftlock promote\n~~~\n/liftlock retry", false, "retry"},
		{"a longer fence", "````\n```\n/liftlock promote\n```\n````\n/liftlock retry", false, "retry"},
		{"a fence that isn't closed", "```\n/liftlock promote", false, ""},
		{"a fence that isn't closed by a word", "```\n``` no\n/liftlock promote", false, ""},
		{"an indented fence", "  ```\n/liftlock promote\n  ```\n/liftlock retry", false, "retry"},
		{"a fence that isn't closed by an indented one", "```\n    ```\n/liftlock promote", false, ""},
		{"an indented line opens no fence", "    ```\n/liftlock retry", false, "retry"},
		{"an indented line is no quote", "    > code\n/liftlock retry", false, "retry"},
		{"a plain fence in tildes", "~~~\n/liftlock promote\n~~~\n/liftlock retry", false, "retry"},
		{"two tildes open no fence", "~~never~~\n/liftlock retry", false, "retry"},
		{"no fence", "```a`b\n/liftlock retry", false, "retry"},
		{"an HTML comment", "<!-- /liftlock promote -->\n<!--\n/liftlock promote\n\n/liftlock promote\n-->\n/liftlock retry", false, "retry"},
		{"an HTML comment that isn't closed", "hello <!--\n/liftlock promote", false, ""},
		{"an HTML comment in a command", "/liftlock hold wait <!-- hidden\n/liftlock promote\n--> more", false, "hold pr: wait"},
		{"behind an HTML comment", "<!-- x --> /liftlock promote\n<!-- x\n--> /liftlock promote", false, ""},
		{"two HTML comments", "<!-- a --><!-- b\n/liftlock promote\n-->\n/liftlock retry", false, "retry"},
		{"an HTML comment that names HTML", "<!-- <pre -->\n/liftlock retry", false, "retry"},
		{"HTML's code behind an HTML comment", "<!--\n--> <pre>\n/liftlock promote\n</pre>\n/liftlock retry", false, "retry"},
		{"HTML's code", "<pre>\n/liftlock promote\n</pre>\n<PRE class=x>\n/liftlock promote\n</Pre>\n<code>\n/liftlock promote\n</code>\n/liftlock retry", false, "retry"},
		{"HTML's quote", "<blockquote>\n\n/liftlock promote\n\n</blockquote>\n\n/liftlock retry", false, "retry"},
		{"code that names HTML", "Use `<!--` or ``a ` <pre>``.\n/liftlock retry", false, "retry"},
		{"code with a backtick that names HTML", "``a ` <pre>``\n/liftlock retry", false, "retry"},
		{"an open backtick and HTML", "It's ` and <!--\n/liftlock promote\n-->\n/liftlock retry", false, "retry"},

		{"bare", "/promote qa\n/hold\n/Retry\n/liftlock why", true, "promote qa\nhold pr\nretry\nwhy"},
		{"bare, another bot's", "/assign ada\n/lgtm\n/holds\n/", true, ""},

		{"unknown", "/liftlock promot qa", false, `! there is no command "promot"; did you mean promote? (/liftlock help lists them)`},
		{"swapped", "/liftlock sttaus", false, `! there is no command "sttaus"; did you mean status? (/liftlock help lists them)`},
		{"unknown, nothing near", "/liftlock deploy", false, `! there is no command "deploy" (/liftlock help lists them)`},
		{"unknown and long", "/liftlock " + strings.Repeat("x", 100), false, `! there is no command "` + strings.Repeat("x", 40) + `…" (/liftlock help lists them)`},
		{"skip", "/liftlock skip approvals production burns", false, "skip approvals: production burns"},
		{"skip, bare", "/skip approvals production burns", true, "skip approvals: production burns"},
		{"skip for no good reason", "/liftlock skip approvals it burns", false, "! /liftlock skip takes a reason of at least 10 characters behind the gate's name, for those who ask why later"},
		{"skip nothing", "/liftlock skip", false, `! /liftlock skip takes a gate's name, as in /liftlock skip soak the fix can't wait; "" is none`},
		{"skip what is no name", "/liftlock skip soak: production burns", false, `! /liftlock skip takes a gate's name, as in /liftlock skip soak the fix can't wait; "soak:" is none`},
		{"too many words", "/liftlock promote qa now\n/liftlock why qa prod\n/liftlock retry qa\n/liftlock status please", false,
			`! /liftlock promote takes at most an environment; "now" was not understood` + "\n" +
				`! /liftlock why takes at most an environment; "prod" was not understood` + "\n" +
				`! /liftlock retry takes nothing behind it; "qa" was not understood` + "\n" +
				`! /liftlock status takes nothing behind it; "please" was not understood`},
		{"no environment", "/liftlock promote QA\n/liftlock promote ../prod", false,
			`! "QA" can't be an environment: names have lower-case letters, digits and dashes` + "\n" +
				`! "../prod" can't be an environment: names have lower-case letters, digits and dashes`},
		{"a reason that is too long", "/liftlock hold " + strings.Repeat("ä", 301), false, "! the reason of /liftlock hold is too long; it takes 300 characters"},
		{"a reason that just fits", "/liftlock hold " + strings.Repeat("ä", 300), false, "hold pr: " + strings.Repeat("ä", 300)},
		{"a line that just fits", "/liftlock retry" + strings.Repeat(" ", maxLine-len("/liftlock retry")), false, "retry"},
		{"a line that is too long", "/liftlock hold " + strings.Repeat("x", 2000), false, "! a line with a command takes 2000 bytes; this one has 2015"},
		{"some good, some not", "/liftlock retry\n/liftlock nope\n/liftlock hold", false, "retry\nhold pr\n" + `! there is no command "nope" (/liftlock help lists them)`},
		{"as many as go", strings.Repeat("/liftlock retry\n", 11), false, strings.Repeat("retry\n", 10) + "! a comment takes 10 commands; the rest was not taken"},
		{"a comment that just fits", "/liftlock retry\n\n" + strings.Repeat("x", maxComment-len("/liftlock retry\n\n")), false, "retry"},
		{"a comment that is too long", "/liftlock retry\n" + strings.Repeat("x", maxComment), false, fmt.Sprintf("! the comment is too long for commands; put them into one of their own, of at most %d bytes", maxComment)},
		{"a paragraph that just fits", "/liftlock retry\n" + strings.Repeat("x", maxParagraphs-len("/liftlock retry\n")), false, "retry"},
		{"a paragraph that is too long", "/liftlock hold\n\n/liftlock retry\n" + strings.Repeat("x", maxParagraphs), false, fmt.Sprintf("hold pr\n! a command stands in a paragraph of at most %d bytes, and so do all of a comment together; put a blank line before it, or it into a comment of its own", maxParagraphs)},
		{"a long comment without commands", strings.Repeat("x\n", maxComment), false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, describe(Parse(c.in, c.bare))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestParseReadsVisibleText holds that only a line that a reader of the rendered comment sees as
// its author's is a command.
func TestParseReadsVisibleText(t *testing.T) {
	const order = "/liftlock promote prod"
	for _, c := range []struct {
		name, in string
		read     bool
	}{
		{"a quote", "> " + order, false},
		{"a quote's next line", "> somebody said\n" + order, false},
		{"behind a quote", "> x\n\n" + order, true},
		{"a quote of several paragraphs, as GitLab has it", ">>>\nshe said\n\n" + order + "\n>>>", false},
		{"behind such a quote", ">>>\nshe said\n>>>\n" + order, true},
		{"a fence", "```\n" + order + "\n```", false},
		{"a fence with a blank line", "```\na\n\n" + order + "\n```", false},
		{"behind a fence with a blank line", "```\na\n\nb\n```\n" + order, true},
		{"a fence in tildes", "~~~\n" + order + "\n~~~", false},
		{"a longer fence", "````\n```\n" + order + "\n````", false},
		{"a fence in a list", "- a\n  ```\n" + order + "\n  ```", false},
		{"a fence in a quote", "> ```\n" + order + "\n> ```", false},
		{"a fence that isn't closed", "```\nx\n" + order, false},
		{"indented by a tab", "\t" + order, false},
		{"indented by four", "    " + order, false},
		{"behind an item of a list", "- the database moves\n- so wait\n" + order, true},
		{"an item of a list", "- " + order, false},
		{"an HTML comment", "<!-- \n" + order + "\n-->", false},
		{"behind an HTML comment on its line", "<!-- x -->" + order, false},
		{"a fold", "<details>\n\n" + order + "\n</details>", false},
		{"a fold in a fold", "<details>\n<details>\n</details>\n\n" + order + "\n\n</details>", false},
		{"behind a fold", "<details>\nlog\n</details>\n\n" + order, true},
		{"HTML's code", "<pre>\n" + order + "\n</pre>", false},
		{"HTML's code in capitals", "<PRE class=x>\n" + order + "\n</PRE>", false},
		{"a template", "<template>\n\n" + order + "\n</template>", false},
		{"a drawing", "<svg>\n\n" + order + "\n</svg>", false},
		{"a picture's words", "![\n" + order + "\n](x)", false},
		{"a picture's words in HTML", "<img alt=\"\n" + order + "\n\">", false},
		{"a link's text", "[a\n" + order + "\n](x)", false},
		{"a link's text in HTML", "<a href=x>\n\n" + order + "\n</a>", false},
		{"a link's title", "[x](y '\n" + order + "\n')", false},
		{"code over lines", "`a\n" + order + "\n`", false},
		{"code over lines by two", "``a\n" + order + "\n``", false},
		{"an open backtick", "it's ` here\n" + order, true},
		{"a formula", "$$\n" + order + "\n$$", false},
		{"a formula with a blank line", "$$\na\n\n" + order + "\n$$", false},
		{"a processing instruction", "<?x\n" + order + "\n?>", false},
		{"a section of characters", "<![CDATA[\n" + order + "\n]]>", false},
		{"an attribute over lines", "<a title=\"\n" + order + "\n\">x</a>", false},
		{"a reference's title", "[x]: y '\n" + order + "\n'", false},
		{"behind a footnote", "[^1]: a\n    b\n\n" + order, true},
		{"struck out", "~~no\n" + order + "~~", false},
		{"struck out by lines", "~~\n" + order + "\n~~", false},
		{"struck out by HTML", "<del>\n\n" + order + "\n\n</del>", false},
		{"struck out by HTML in short", "<s>\n\n" + order + "\n\n</s>", false},
		{"a table", "|a|\n|-|\n" + order, false},
		{"a heading", order + "\n---", false},
		{"emphasis over lines", "*no\n" + order + "*", false},
		{"an invisible character first", "\u200b" + order, false},
		{"from right to left", "\u202e" + order, false},
		{"a name in angle brackets before", "back to <version>\n\n" + order, true},
		{"below a mail's signature", "hi\n-- \n" + order, true},
		{"below a mail's first line", "On Monday bob wrote:\n" + order, true},
	} {
		want := ""
		if c.read {
			want = "promote prod"
		}
		if got := describe(Parse(c.in, false)); got != want {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
	}
}

func TestParseArgs(t *testing.T) {
	for in, want := range map[string]Command{
		"":                       {Verb: Help},
		"hold pipeline at night": {Verb: Hold, Scope: ScopePipeline, Reason: "at night"},
		"promote prod":           {Verb: Promote, Environment: "prod"},
		"unhold":                 {Verb: Unhold, Scope: ScopePR},
		"unhold reverts again":   {Verb: Unhold, Scope: ScopePR, Reason: "reverts again"},
	} {
		got, err := ParseArgs(strings.Fields(in))
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", in, got, err, want)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		in   Command
		want string // "" is fine
	}{
		{Command{Verb: Revert, Environment: "qa", Reason: "slow"}, ""},
		{Command{Verb: Hold, Scope: ScopeEnvironment, Environment: "qa"}, ""},
		{Command{Verb: Skip, Gate: "approvals", Reason: "production burns"}, ""},
		{Command{Verb: Skip, Gate: "approvals", Reason: "123456789"}, "at least 10 characters"},
		{Command{Verb: Skip, Gate: "so\nak", Reason: "production burns"}, "is none"},
		{Command{Verb: Skip, Gate: "approvals", Reason: "production burns", Scope: ScopePR}, "takes no scope"},
		{Command{Verb: ""}, "no command"},
		{Command{Verb: "PROMOTE"}, "did you mean promote"},
		{Command{Verb: Promote, Gate: "approvals"}, "takes no gate"},
		{Command{Verb: Promote, Scope: ScopePR}, "takes no scope"},
		{Command{Verb: Unhold, Reverts: true}, "takes no reverts"},
		{Command{Verb: Retry, For: time.Hour}, "takes no end"},
		{Command{Verb: Unhold, Until: time.Unix(1, 0)}, "takes no end"},
		{Command{Verb: Hold, For: maxHold}, ""},
		{Command{Verb: Hold, For: maxHold + 1}, "up to 366 days"},
		{Command{Verb: Skip, Gate: "soak", Reason: strings.Repeat("x", minSkipReason)}, ""},
		{Command{Verb: Skip, Gate: "soak", Reason: strings.Repeat("x", minSkipReason-1)}, "at least 10 characters"},
		{Command{Verb: Hold, For: -1}, "up to 366 days"},
		{Command{Verb: Hold, Scope: "world"}, "pr, component, environment, pipeline"},
		{Command{Verb: Promote, Environment: strings.Repeat("x", 64)}, "can't be an environment"},
		{Command{Verb: Hold, Reason: "two\nlines"}, "one line"},
		{Command{Verb: Hold, Reason: "a\u202eb"}, "one line"},
		{Command{Verb: Hold, Reason: strings.Repeat("x", 301)}, "too long"},
	} {
		err := c.in.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.in, err, c.want)
		}
	}
}

func TestHoldEnd(t *testing.T) {
	given := time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		in   Command
		want time.Time
		err  string
	}{
		"none":         {Command{}, time.Time{}, ""},
		"for a while":  {Command{For: 2 * time.Hour}, given.Add(2 * time.Hour), ""},
		"until a time": {Command{Until: given.Add(time.Hour)}, given.Add(time.Hour), ""},
		"over":         {Command{Until: given}, time.Time{}, "2026-12-31T23:00:00Z is over; nothing is held"},
		"at the last":  {Command{Until: given.Add(maxHold)}, given.Add(maxHold), ""},
		"after that":   {Command{Until: given.Add(maxHold + 1)}, time.Time{}, "up to 366 days"},
		"too far":      {Command{Until: given.Add(400 * day)}, time.Time{}, "up to 366 days"},
	} {
		got, err := c.in.End(given)
		if !got.Equal(c.want) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestParseHoldEnd holds that the API and the command line have a hold's end in the same
// words as a comment.
func TestParseHoldEnd(t *testing.T) {
	third := time.Date(2027, 1, 3, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		lasts, until string
		d            time.Duration
		t            time.Time
		err          string
	}{
		"no end":           {},
		"for a while":      {lasts: "3d", d: 3 * day},
		"until a day":      {until: "2027-01-03", t: third},
		"both":             {lasts: "1h", until: "2027-01-03", d: time.Hour, t: third}, // Check refuses it
		"no time":          {lasts: "long", err: "hold for long: that is no time"},
		"no date":          {until: "friday", err: "hold until friday: that is no date"},
		"neither is right": {lasts: "long", until: "2027-01-03", err: "hold for long: that is no time"},
	} {
		d, end, err := ParseHoldEnd(c.lasts, c.until)
		if d != c.d || !end.Equal(c.t) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %s, %s, %v", name, d, end, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	for want, c := range map[string]Command{
		"hold environment qa": {Verb: Hold, Scope: ScopeEnvironment, Environment: "qa", Reason: "x"},
		"promote prod":        {Verb: Promote, Environment: "prod"},
		"skip soak":           {Verb: Skip, Gate: "so\nak "},
	} {
		if want == "skip soak" {
			want = "skip so ak"
		}
		if got := Describe(c); got != want {
			t.Errorf("%+v is %q, want %q", c, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "/liftlock promote qa", "> /liftlock hold\n/liftlock hold\n\n/promote", "```\n/liftlock retry\n```", "<!--\n/liftlock retry\n-->", "`<pre>` ``\n/liftlock hold environment: x <!-- y", "/liftlock hold for 2h reverts x\n/liftlock hold component until 2027-01-03", "\r/liftlock\r\n/hold \u202e"} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, s string, bare bool) {
		cmds, errs := Parse(s, bare)
		if len(cmds)+len(errs) > maxCommands+1 {
			t.Fatalf("%d commands, %d errors", len(cmds), len(errs))
		}
		for _, c := range cmds {
			if err := c.Check(); err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			// A command that was understood can be written again.
			again, err := ParseArgs(strings.Fields(Describe(c) + " " + c.Reason))
			if err != nil || again != c {
				t.Fatalf("%+v became %+v: %v", c, again, err)
			}
		}
		for _, err := range errs {
			if m := err.Error(); len(m) > 400 || !utf8.ValidString(m) || strings.ContainsAny(m, "\r\n") {
				t.Fatalf("the error is %q", m)
			}
		}
		// Quoted whole, a comment commands nothing.
		var quoted strings.Builder
		for line := range strings.Lines(strings.ReplaceAll(s, "\r", "\n")) {
			quoted.WriteString("> " + line)
		}
		if cmds, errs := Parse(quoted.String(), bare); len(cmds)+len(errs) > 0 {
			t.Fatalf("quoted, it commands %s", describe(cmds, errs))
		}
	})
}

// A line that never ends what it opens must not cost more than its length.
func TestParseIsLinear(t *testing.T) {
	for name, s := range map[string]string{
		"comments": strings.Repeat("<!---->", maxComment/7), "opens": strings.Repeat("<!-- <pre ", maxComment/10), "backticks": strings.Repeat("` `` ", maxComment/5),
		"angles": strings.Repeat("<", maxComment), "slashes": strings.Repeat("/liftlock x\n", maxComment/12),
		"tags": strings.Repeat("<a><pre>", maxComment/8), "links": "/liftlock retry\n" + strings.Repeat("[a](", maxParagraphs/5), "quotes": "/liftlock retry\n" + strings.Repeat(">", maxComment/2),
		"lists": "/liftlock retry\n" + strings.Repeat("1. ", maxParagraphs/4), "emphasis": "/liftlock retry\n" + strings.Repeat("_a*b", maxParagraphs/5),
	} {
		if cmds, errs := Parse(s, true); len(cmds)+len(errs) > maxCommands+1 {
			t.Errorf("%s: %d", name, len(cmds)+len(errs))
		}
	}
}
