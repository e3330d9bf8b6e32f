package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/liftlock/liftlock/internal/console/client"
)

// maxToken bounds what is read as a token.
const maxToken = 16 << 10

// loginAnswer is what login prints for programs.
type loginAnswer struct {
	Context string `json:"context"`
	Server  string `json:"server"`
	// Commands is why the server takes no commands with this token; left out where it takes them.
	Commands string `json:"commandsRefused,omitempty"`
}

func loginCommand() *cobra.Command {
	var name string
	var format formatFlag
	c := &cobra.Command{
		Use:   "login URL",
		Short: "Keep a server's address and an API token for the other commands",
		Long: "Keeps a server's address and an API token as a context, for the other commands to use. The token\n" +
			"is typed in a terminal, or read from standard input; an empty one is for asking alone. The file is\n" +
			"in the folder of your configuration, and only you can read it. The flags --server and --token-file\n" +
			"and the variables " + serverVariable + " and " + tokenVariable + " go before a context.",
		Example: "  liftlock login https://liftlock.example.com\n" +
			"  liftlock login https://liftlock.example.com --context prod < token",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := format.forPrograms()
			if err != nil {
				return err
			}
			answer, at, err := logIn(cmd, args[0], name)
			if err != nil {
				return err
			}
			if data != nil {
				return data(cmd.OutOrStdout(), answer)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Logged in to %s as the context %s, kept in %s.\n", answer.Server, answer.Context, at)
			if answer.Commands != "" {
				fmt.Fprintln(cmd.ErrOrStderr(), "note: it takes no commands: "+client.Printable(answer.Commands))
			}
			return nil
		},
	}
	c.Flags().StringVar(&name, "context", "", "what the context is called (default: the server's host)")
	format.addFlag(c)
	return c
}

// logIn reads a token, tries it and keeps it. at is the file.
func logIn(cmd *cobra.Command, server, name string) (answer *loginAnswer, at string, err error) {
	if _, err := client.New(server, "", Version()); err != nil { // before a token is typed
		return nil, "", err
	}
	u, err := url.Parse(server)
	if err != nil {
		return nil, "", err
	}
	file, err := readContexts()
	if err != nil {
		return nil, "", err
	}
	token, err := readToken(cmd, server)
	if err != nil {
		return nil, "", err
	}
	cl, err := client.New(server, token, Version())
	if err != nil {
		return nil, "", err
	}
	answer = &loginAnswer{Context: cmp.Or(name, u.Host), Server: server}
	if token == "" {
		answer.Commands = "there is no token"
	} else if answer.Commands, err = cl.CheckToken(cmd.Context()); err != nil {
		return nil, "", err
	}
	if _, err := cl.Pipelines(cmd.Context()); err != nil {
		return nil, "", err
	}
	file.put(serverContext{Name: answer.Context, Server: server, Token: token})
	at, err = file.write()
	return answer, at, err
}

// readToken reads a token: from a terminal without showing it, else from standard input.
func readToken(cmd *cobra.Command, server string) (string, error) {
	in := cmd.InOrStdin()
	var raw []byte
	var err error
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintf(cmd.ErrOrStderr(), "API token for %s: ", server)
		raw, err = term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(cmd.ErrOrStderr())
	} else {
		raw, err = readAll(in, "the token from standard input", maxToken)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the API token: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("the API token has spaces or other characters that no token has")
	}
	return token, nil
}

// shownContext is a context without its token.
type shownContext struct {
	Name    string `json:"name"`
	Server  string `json:"server"`
	Current bool   `json:"current"`
	Token   bool   `json:"token"` // there is one
}

func contextsCommand() *cobra.Command {
	var remove bool
	var format formatFlag
	c := &cobra.Command{
		Use:   "contexts [NAME]",
		Short: "List the servers that you are logged in to, or choose the current one",
		Long: "Lists the servers that you are logged in to; the current one is asked where no flag or variable\n" +
			"names another. With NAME, that one is the current one from now on. --remove forgets it with its\n" +
			"token.",
		Example: "  liftlock contexts\n  liftlock contexts prod\n  liftlock contexts prod --remove",
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeContexts(nil, nil, "")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := format.forPrograms()
			if err != nil {
				return err
			}
			file, err := readContexts()
			if err != nil {
				return err
			}
			switch {
			case len(args) == 1:
				if err := changeContext(file, args[0], remove); err != nil {
					return err
				}
			case remove:
				return errors.New("--remove: name the context to forget")
			}
			return printContexts(cmd.OutOrStdout(), file, data)
		},
	}
	c.Flags().BoolVar(&remove, "remove", false, "forget the context and its token")
	format.addFlag(c)
	return c
}

// changeContext makes a context the current one, or forgets it.
func changeContext(file *contextFile, name string, remove bool) error {
	if _, err := file.named(name); err != nil {
		return err
	}
	if remove {
		file.remove(name)
	} else {
		file.Current = name
	}
	_, err := file.write()
	return err
}

func printContexts(w io.Writer, file *contextFile, data dataWriter) error {
	all := []shownContext{}
	for _, c := range file.Contexts {
		all = append(all, shownContext{c.Name, c.Server, c.Name == file.Current, c.Token != ""})
	}
	if data != nil {
		return data(w, map[string]any{"contexts": all})
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "You are logged in to no server; liftlock login URL does that.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprintln(t, "CURRENT\tNAME\tSERVER\tTOKEN")
	for _, c := range all {
		current, token := "", "no"
		if c.Current {
			current = "*"
		}
		if c.Token {
			token = "yes"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", current, client.Printable(c.Name), client.Printable(c.Server), token)
	}
	return t.Flush()
}

// completeContexts completes a context's name.
func completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	file, err := readContexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return file.names(), cobra.ShellCompDirectiveNoFileComp
}
