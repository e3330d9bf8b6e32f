package main

import (
	"bytes"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// commandFiles are the shells' completions and a man page for each command.
func commandFiles(root *cobra.Command, r release) ([]file, error) {
	// cobra adds these to the root when it is run.
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var out []file
	for name, write := range map[string]func(io.Writer) error{
		"completions/liftlock.bash": func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"completions/_liftlock":     root.GenZshCompletion,
		"completions/liftlock.fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
		"completions/liftlock.ps1":  root.GenPowerShellCompletionWithDesc,
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return nil, err
		}
		out = append(out, file{name: name, content: b.Bytes()})
	}
	return appendManPages(out, root, r)
}

// appendManPages adds the page of a command and those of all below it.
func appendManPages(out []file, c *cobra.Command, r release) ([]file, error) {
	var b bytes.Buffer
	header := &doc.GenManHeader{Section: "1", Date: &r.date, Source: "Liftlock " + r.version, Manual: "Liftlock"}
	c.DisableAutoGenTag = true // cobra would sign each page with its own name
	if err := doc.GenMan(c, header, &b); err != nil {
		return nil, err
	}
	out = append(out, file{name: "man/man1/" + strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1", content: b.Bytes()})
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		var err error
		if out, err = appendManPages(out, sub, r); err != nil {
			return nil, err
		}
	}
	return out, nil
}
