package cli

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write what scripts compare standard output with anew")

func TestMain(m *testing.M) {
	if os.Args[0] == "/proc/self/exe" { // a worker of a server's, which goes by no name
		os.Exit(Main(os.Args[1:]))
	}
	testscript.Main(m, map[string]func(){"liftlock": func() { os.Exit(Main(os.Args[1:])) }})
}

// TestScripts runs the command line as a user does, a file a story.
func TestScripts(t *testing.T) {
	address, _ := startConsole(t, movingUnit())
	registry := startRegistry(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, Setup: func(e *testscript.Env) error {
			e.Setenv("CONSOLE", address)   // for stories that speak to a server
			e.Setenv("REGISTRY", registry) // for those that list tags
			return setup(e)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits},
	})
}

// setup makes git's commits the same everywhere, at any time.
func setup(e *testscript.Env) error {
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		e.Setenv("GIT_"+who+"_NAME", "ada")
		e.Setenv("GIT_"+who+"_EMAIL", "ada@example.com")
		e.Setenv("GIT_"+who+"_DATE", "2026-01-02T03:04:05Z")
	}
	e.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	e.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	return nil
}

// exits runs a program that must end with a given code: exits CODE PROGRAM ARG...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if want := args[0]; strconv.Itoa(code) != want {
		ts.Fatalf("it exits with %d, not %s", code, want)
	}
}

// TestDocumentedAnswers holds that a story compares each answer that the documentation shows.
func TestDocumentedAnswers(t *testing.T) {
	doc, err := os.ReadFile("../../docs/command-line.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var stories strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		stories.Write(data)
	}
	blocks := regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(doc), -1)
	if len(blocks) < 5 {
		t.Fatalf("%d answers are documented", len(blocks))
	}
	for _, b := range blocks {
		command, answer := "", b[1]
		if strings.HasPrefix(answer, "$ ") {
			command, answer, _ = strings.Cut(strings.TrimPrefix(answer, "$ "), "\n")
		}
		if !strings.Contains(stories.String(), "exec "+command) || !strings.Contains(stories.String(), answer) {
			t.Errorf("no story has this answer to %q:\n%s", command, answer)
		}
	}
}
