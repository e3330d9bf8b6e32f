package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// keepContexts gives a test a folder for contexts, and returns the file's path.
func keepContexts(t *testing.T, contexts ...serverContext) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("HOME", dir)
	t.Setenv("AppData", dir)
	t.Setenv(serverVariable, "")
	t.Setenv(tokenVariable, "")
	file := &contextFile{}
	for _, c := range contexts {
		file.put(c)
	}
	at, err := file.write()
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestChosenServers holds which server is asked with which token: a context's token goes to its own
// server alone.
func TestChosenServers(t *testing.T) {
	keepContexts(t, serverContext{"prod", "https://prod.example/liftlock", "p"}, serverContext{"open", "https://open.example", ""},
		serverContext{"lab", "https://lab.example", "l"}) // the last one is the current one
	for name, c := range map[string]struct {
		flags         serverFlags
		server, token string // variables
		want          serverChoice
		says          string
	}{
		"the current one":            {want: serverChoice{Server: "https://lab.example", Token: "l"}},
		"a named one":                {flags: serverFlags{context: "prod"}, want: serverChoice{Server: "https://prod.example/liftlock", Token: "p"}},
		"one without a token":        {flags: serverFlags{context: "open"}, token: "v", want: serverChoice{Server: "https://open.example"}},
		"a flag":                     {flags: serverFlags{server: "https://other.example"}, want: serverChoice{Server: "https://other.example"}},
		"a flag of a known server":   {flags: serverFlags{server: "https://PROD.example/liftlock/"}, want: serverChoice{Server: "https://PROD.example/liftlock/", Token: "p"}},
		"another path":               {flags: serverFlags{server: "https://prod.example"}, want: serverChoice{Server: "https://prod.example"}},
		"another scheme":             {flags: serverFlags{server: "http://lab.example"}, want: serverChoice{Server: "http://lab.example"}},
		"a variable":                 {server: "https://other.example", want: serverChoice{Server: "https://other.example"}},
		"variables":                  {server: "https://lab.example", token: "v", want: serverChoice{Server: "https://lab.example", Token: "v"}},
		"a token's variable":         {token: "v", want: serverChoice{Server: "https://lab.example", Token: "v"}},
		"a token's file":             {flags: serverFlags{tokenFile: "f"}, want: serverChoice{Server: "https://lab.example", Token: "l", TokenFile: "f"}},
		"a flag before a variable":   {flags: serverFlags{server: "https://a.example"}, server: "https://b.example", token: "v", want: serverChoice{Server: "https://a.example", Token: "v"}},
		"a context before variables": {flags: serverFlags{context: "prod"}, server: "https://b.example", token: "v", want: serverChoice{Server: "https://prod.example/liftlock", Token: "p"}},
		"two":                        {flags: serverFlags{context: "prod", server: "https://b.example"}, says: "leave one out"},
		"a typo":                     {flags: serverFlags{context: "prdo"}, says: `there is no context "prdo"; did you mean "prod"?`},
	} {
		t.Run(name, func(t *testing.T) {
			variables := map[string]string{serverVariable: c.server, tokenVariable: c.token}
			got, err := c.flags.chooseServer(func(name string) string { return variables[name] })
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	keepContexts(t)
	if got, err := (&serverFlags{}).chooseServer(func(string) string { return "" }); err != nil || got != (serverChoice{Server: defaultServer}) {
		t.Errorf("without contexts: %+v, %v", got, err)
	}
}

// TestUnreadableContexts holds that a file of tokens that others may read, or that is broken, is
// refused without a word of the tokens, and is no obstacle where it isn't needed.
func TestUnreadableContexts(t *testing.T) {
	at := keepContexts(t, serverContext{"lab", "https://lab.example", "very-secret"})
	if info, err := os.Stat(at); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if left, err := filepath.Glob(filepath.Dir(at) + "/.contexts*"); err != nil || len(left) > 0 {
		t.Errorf("%v are left over, %v", left, err)
	}
	none := func(string) string { return "" }
	if err := os.WriteFile(at, []byte("contexts: [{name: lab, tokn: very-secret}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (&serverFlags{}).chooseServer(none); err == nil || !strings.Contains(err.Error(), "log in again") || strings.Contains(err.Error(), "secret") {
		t.Errorf("a broken file: %v", err)
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(at, 0o640); err != nil {
			t.Fatal(err)
		}
		if _, err := (&serverFlags{}).chooseServer(none); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("a file that others may read: %v", err)
		}
	}
	if _, err := (&serverFlags{server: "https://lab.example", tokenFile: "f"}).chooseServer(none); err != nil {
		t.Errorf("a file that isn't needed: %v", err)
	}
}
