package cli

import (
	"io"
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"strings"
)

// wrappedStream is a stream that stands before another one.
type wrappedStream interface{ unwrap() any }

// onTerminal says that a stream is a terminal: that somebody can answer, or reads along.
func onTerminal(stream any) bool {
	if wrapped, ok := stream.(wrappedStream); ok {
		return onTerminal(wrapped.unwrap())
	}
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&fs.ModeCharDevice == 0 {
		return false
	}
	nowhere, err := os.Stat(os.DevNull) // standard input is that in many jobs, under its own name
	return err != nil || !os.SameFile(info, nowhere)
}

// showsColours says whether a terminal that is or isn't there shows colours, by the variables that
// people set: https://no-color.org, and TERM, which an old Windows console hasn't.
func showsColours(isTerminal bool, lookup func(string) string) bool {
	switch {
	case !isTerminal, lookup("NO_COLOR") != "", lookup("TERM") == "dumb":
		return false
	case runtime.GOOS == "windows":
		return lookup("TERM") != "" || lookup("WT_SESSION") != ""
	}
	return true
}

// hasColours says whether what is written to a stream is shown in colours.
func hasColours(stream any) bool { return showsColours(onTerminal(stream), os.Getenv) }

// painter gives a line its colours.
type painter = func(line string) string

// printPainted writes what write does, painted where the stream shows colours. Tables are aligned by
// then, so that the colours don't count as text.
func printPainted(out io.Writer, colours bool, paint painter, write func(io.Writer) error) error {
	if !colours {
		return write(out)
	}
	var b strings.Builder
	if err := write(&b); err != nil {
		return err
	}
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = paint(lines[i])
	}
	_, err := io.WriteString(out, strings.Join(lines, "\n"))
	return err
}

// The colours, which every terminal has in its own shade.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
	bold   = "\x1b[1m"
	plain  = "\x1b[0m"
)

// stateColours are the colours of words that say how something is, in tables and in sentences.
var stateColours = map[string]string{
	"verified": green, "verifying": cyan,
	"degraded": red, "failed": red, "diverged": red, "mixed": red, "unreadable": red,
	"held": yellow, "reverting": yellow, "reverted": yellow, "refused": yellow,
}

// stateWords finds them where they stand alone: not within a name.
var stateWords = regexp.MustCompile(`(^|[ (])(verified|verifying|degraded|failed|diverged|mixed|unreadable|held|reverting|reverted|refused)($|[ ,:;)])`)

// tableHead is a line of titles alone.
var tableHead = regexp.MustCompile(`^[A-Z][A-Z0-9-]*( +[A-Z0-9_-]+)+ *$`)

// paintStates paints the words of states, the heads of tables and the troubles above them.
func paintStates(line string) string {
	switch {
	case strings.HasPrefix(line, "! "):
		return red + line + plain
	case tableHead.MatchString(line):
		return bold + line + plain
	}
	return stateWords.ReplaceAllStringFunc(line, func(found string) string {
		word := strings.Trim(found, " (),:;")
		return strings.Replace(found, word, stateColours[word]+word+plain, 1)
	})
}

// paintDiff paints what a difference adds and removes.
func paintDiff(line string) string {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff --git "):
		return bold + line + plain
	case strings.HasPrefix(line, "+"):
		return green + line + plain
	case strings.HasPrefix(line, "-"):
		return red + line + plain
	case strings.HasPrefix(line, "@@"):
		return cyan + line + plain
	}
	return line
}

// findingColours are the colours of the words that the lines of doctor begin with.
var findingColours = []struct{ word, colour string }{{"ok ", green}, {"warn ", yellow}, {"FAIL ", red}, {"unknown ", yellow}}

// paintFindings paints those words.
func paintFindings(line string) string {
	for _, f := range findingColours {
		if rest, ok := strings.CutPrefix(line, f.word); ok {
			return f.colour + f.word + plain + rest
		}
	}
	return line
}
