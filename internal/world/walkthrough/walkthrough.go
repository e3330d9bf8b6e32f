// Package walkthrough reads the pages that a reader follows command by command. So tests can follow
// a page, and hold that everything prints what the page shows. Which blocks are run, and how long
// one is waited for, is the test's to say; [Shell] is what runs them.
package walkthrough

import (
	"fmt"
	"regexp"
	"strings"
)

// Block is one block of a page: commands with what they print, or a file.
type Block struct {
	Line   int    // of the page, where the block's text begins
	Text   string // a shell's commands, or the file's content
	Prints string // … stands for anything in a line and, alone in one, for any lines; empty for a file
	File   string // its name; empty: the block is commands
	// Directive is the text of the comment before the block, which readers don't see; empty: none.
	Directive string
}

// fileDirective begins the comment before a block that is a file.
const fileDirective = "file "

// Parse cuts a page into its blocks: what follows ```sh is run, and prints what the ```text
// after it has, or nothing; what follows ```yaml is the file that the comment before it names.
// Any other block is refused: it would be checked by nobody.
func Parse(page string) ([]Block, error) {
	var out []Block
	lines := strings.Split(page, "\n")
	directive := ""
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case line == "":
		case strings.HasPrefix(line, "<!-- ") && strings.HasSuffix(line, " -->"):
			directive = strings.TrimSuffix(strings.TrimPrefix(line, "<!-- "), " -->")
		case strings.HasPrefix(line, "```"):
			end := i + 1
			for end < len(lines) && lines[end] != "```" {
				end++
			}
			if end == len(lines) {
				return nil, fmt.Errorf("line %d: the block has no end", i+1)
			}
			b := Block{Line: i + 2, Text: strings.Join(lines[i+1:end], "\n") + "\n"}
			name, isFile := strings.CutPrefix(directive, fileDirective)
			switch {
			case line == "```sh" && !isFile:
				b.Directive = directive
				out = append(out, b)
			case line == "```yaml" && isFile:
				b.File = name
				out = append(out, b)
			case line == "```text" && directive == "" && awaitsOutput(out):
				out[len(out)-1].Prints = b.Text
			case line == "```text":
				return nil, fmt.Errorf("line %d: no commands have printed this", i+1)
			default:
				return nil, fmt.Errorf("line %d: a block is sh, text, or yaml after <!-- %sNAME -->, not %q", i+1, fileDirective, line)
			}
			i, directive = end, ""
		default:
			directive = ""
		}
	}
	return out, nil
}

// awaitsOutput says that the last block is of commands whose output hasn't been shown yet.
func awaitsOutput(blocks []Block) bool {
	if len(blocks) == 0 {
		return false
	}
	last := &blocks[len(blocks)-1]
	return last.File == "" && last.Prints == ""
}

// PrintsPattern matches what a block prints.
func PrintsPattern(prints string) *regexp.Regexp {
	var b strings.Builder
	for line := range strings.Lines(prints) {
		if line = strings.TrimRight(line, "\n"); line == "…" {
			b.WriteString(`(?:.*\n)*`)
			continue
		}
		parts := strings.Split(line, "…")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		b.WriteString(strings.Join(parts, ".*") + " *\n")
	}
	return regexp.MustCompile(`^` + b.String() + `$`)
}
