package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// errNotConfirmed ends a command that a person didn't confirm.
var errNotConfirmed = errors.New("it was not confirmed, and nothing was done")

// confirmCommand asks a person whether something is meant. Everything but yes is no.
func confirmCommand(in io.Reader, out io.Writer, text string) error {
	fmt.Fprintf(out, "%s? [y/N] ", text)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && line == "" {
		return errNotConfirmed
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return errNotConfirmed
}
