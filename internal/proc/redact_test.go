package proc

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRedact(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://me:proxypass@proxy.example:3128")
	for name, tc := range map[string]struct {
		in, want string
		secrets  []string
	}{
		"nothing to hide":        {in: "fatal: repository not found", want: "fatal: repository not found"},
		"a secret":               {in: "token hunter22 is bad", secrets: []string{"hunter22"}, want: "token *** is bad"},
		"one inside another":     {in: "hunter22 hunter22x", secrets: []string{"hunter22", "hunter22x"}, want: "*** ***"},
		"too short to hide":      {in: "a cat", secrets: []string{"a", ""}, want: "a cat"},
		"a URL's user":           {in: "https://me:pw@git.example/x", want: "https://***@git.example/x"},
		"an Authorization line":  {in: "Authorization: Basic Zm9v and more", want: "Authorization: *** and more"},
		"a header without sorts": {in: "> authorization: token123", want: "> authorization: ***"},
		"our proxy's password":   {in: "proxy says proxypass", want: "proxy says ***"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Redact(tc.in, tc.secrets); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSecretsAreInNoError(t *testing.T) {
	const secret = "correct-horse-battery-staple"
	for name, c := range map[string]Command{
		"an argument":        {Program: "false", Args: []string{"--token=" + secret}},
		"a cut argument":     {Program: "false", Args: []string{strings.Repeat("x", shownArg-5) + secret}},
		"standard error":     shellCommand("echo it is " + secret + " >&2; exit 1"),
		"much of it":         shellCommand("yes " + secret + " | head -n 10000 >&2; exit 1"),
		"one line much":      shellCommand("yes " + secret + " | head -n 10000 | tr -d '\\n' >&2; exit 1"),
		"program not found":  {Program: "liftlock-no-such-program", Args: []string{secret}},
		"ended by its group": shellCommand("echo " + secret + " >&2; kill -9 $$"),
	} {
		t.Run(name, func(t *testing.T) {
			c.Secrets = []string{secret}
			r, err := Run(t.Context(), c)
			var pe *Error
			if !errors.As(err, &pe) {
				t.Fatalf("got %v", err)
			}
			for _, s := range append(pe.Args, err.Error(), pe.Stderr, pe.StderrHead, r.Stderr) {
				for i := 0; i+8 <= len(secret); i++ {
					if strings.Contains(s, secret[i:i+8]) {
						t.Fatalf("%.300q holds %q", s, secret[i:i+8])
					}
				}
			}
		})
	}
}

// Whatever is written in whatever pieces, a tail holds its end, and what is
// shown of it holds no secret, whole or cut.
func TestTail(t *testing.T) {
	const secret = "0123456789abcdef"
	rapid.Check(t, func(t *rapid.T) {
		tail := &tailBuffer{max: rapid.IntRange(1, 64).Draw(t, "max")}
		pieces := rapid.SliceOf(rapid.SampledFrom([]string{secret, secret[:5], "\n", "word ", "x", ""})).Draw(t, "pieces")
		// Only whole secrets are secrets: join and see what the end must be.
		all := ""
		for _, p := range pieces {
			if n, err := tail.Write([]byte(p)); n != len(p) || err != nil {
				t.Fatalf("Write: %d, %v", n, err)
			}
			all += p
		}
		got, dropped := tail.lastText()
		if want := all[max(0, len(all)-tail.max):]; got != want || dropped != (len(all) > tail.max) {
			t.Fatalf("holds %q, %v; want the end of %q", got, dropped, all)
		}
		shown := redactTail(tail, []string{secret})
		if strings.Contains(shown, secret) || dropped && strings.Contains(shown, secret[6:]) {
			t.Fatalf("shows %q", shown)
		}
	})
}

func TestTheBeginningIsKept(t *testing.T) {
	const secret = "correct-horse-battery-staple"
	for name, tc := range map[string]struct{ written, want string }{
		"little":           {"fatal: no\n", "fatal: no"},
		"nothing":          {"", ""},
		"much":             {"fatal: no\n" + strings.Repeat("trace\n", 1000), "fatal: no\n" + strings.TrimSpace(strings.Repeat("trace\n", (maxStderrHead-len("fatal: no\n"))/6))},
		"one endless line": {strings.Repeat("x", 3*maxStderrHead), strings.Repeat("x", maxStderrHead)},
		"a secret":         {"it is " + secret, "it is ***"},
		"a cut secret":     {strings.Repeat("x", maxStderrHead-5) + secret, strings.Repeat("x", maxStderrHead-5)},
	} {
		t.Run(name, func(t *testing.T) {
			tail := &tailBuffer{max: 10}
			for _, piece := range strings.SplitAfter(tc.written, "\n") {
				if _, err := tail.Write([]byte(piece)); err != nil {
					t.Fatal(err)
				}
			}
			if got := tail.firstText([]string{secret}); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("https://user:hunter2!@host/ Authorization: Basic aHVudGVyMg==", "hunter2!")
	f.Add("Authorization:", "")
	f.Fuzz(func(t *testing.T, text, secret string) {
		got := Redact(text, []string{secret})
		if len(secret) >= minSecret && strings.Contains(got, secret) && !strings.Contains("***@", secret) && !strings.Contains(secret, "*") {
			t.Errorf("%q still holds %q", got, secret)
		}
	})
}
