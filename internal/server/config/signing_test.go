package config

import (
	"crypto/ed25519"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func TestSigning(t *testing.T) {
	block, err := ssh.MarshalPrivateKey(ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize))), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ lines, want string }{
		"none":                    {"", ""},
		"a key":                   {"signing: {sshKeyFile: key}\n", ""},
		"no file":                 {"signing: {sshKeyFile: missing}\n", "11: signing.sshKeyFile: can't read FOLDER/missing: no such file or directory"},
		"something else":          {"signing: {sshKeyFile: other}\n", "11: signing.sshKeyFile: FOLDER/other can't sign commits: it isn't a private key as ssh-keygen writes it; make one: ssh-keygen -t ed25519 -N ''"},
		"nothing":                 {"signing: {}\n", "11: signing: write signing: forge, or signing: {sshKeyFile: FILE} with a private ed25519 key; leave signing out where commits aren't signed"},
		"no such way":             {"signing: gpg\n", `11: signing: it is "gpg"; write forge, or {sshKeyFile: FILE} with a private ed25519 key; leave signing out where commits aren't signed`},
		"two ways":                {"signing: {by: forge, sshKeyFile: key}\n", "11: signing: it is by the forge or by sshKeyFile, not both"},
		"by a forge that doesn't": {"signing: forge\n", "11: signing: the forge hub can't sign what Liftlock commits: only GitHub does, for an App (auth.app); sign by signing.sshKeyFile, or have a server of its own for that forge"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder, "key", string(pem.EncodeToMemory(block)))
			write(t, folder, "other", "hunter2-hunter2")
			file := write(t, folder, "liftlock.yaml", strings.TrimSuffix(small, "\n")+"\n"+c.lines)
			config, err := Load(file, environment)
			if c.want != "" {
				if err == nil || !strings.HasSuffix(strings.ReplaceAll(err.Error(), folder, "FOLDER"), c.want) {
					t.Fatalf("got %v, want %s", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			key, err := config.SigningKey()
			if err != nil || (key != nil) != (c.lines != "") {
				t.Fatalf("got %v, %v", key, err)
			}
			hub := config.ForgeByName("hub")
			if why, cure := config.WhyUnsigned(hub); (why == "") != (key != nil) || (cure == "") != (why == "") {
				t.Errorf("unsigned: %q, %q", why, cure)
			}
			hub.Auth.App = &App{ID: 1}
			if why, cure := config.WhyUnsigned(hub); why == "" || cure == "" {
				t.Errorf("an App's: %q, %q", why, cure)
			}
			if why, _ := config.WhyUnsigned(&Forge{Type: GitLab}); why != "" {
				t.Errorf("GitLab's: %q", why)
			}
			if key == nil {
				return
			}
			// It may go after the start, or be replaced by something else.
			if err := os.Remove(filepath.Join(folder, "key")); err != nil {
				t.Fatal(err)
			}
			if _, err := config.SigningKey(); err == nil {
				t.Error("a key that is gone is read")
			}
		})
	}
}

// TestSigningByForge holds that an App's commits are the forge's to sign.
func TestSigningByForge(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "app.pem", "a key")
	lines := strings.Replace(small, `{token: "${GITHUB_TOKEN}"}`, `{app: {id: 1, privateKeyFile: app.pem}}`, 1)
	if lines == small {
		t.Fatal("the file has no token to replace")
	}
	config, err := Load(write(t, folder, "liftlock.yaml", strings.TrimSuffix(lines, "\n")+"\nsigning: forge\n"), environment)
	if err != nil {
		t.Fatal(err)
	}
	if key, err := config.SigningKey(); err != nil || key != nil || !config.SignsByForge() {
		t.Errorf("got the key %v, %v", key, err)
	}
	if why, cure := config.WhyUnsigned(config.ForgeByName("hub")); why != "" || cure != "" {
		t.Errorf("unsigned: %q, %q", why, cure)
	}
	config.Signing = nil
	if _, cure := config.WhyUnsigned(config.ForgeByName("hub")); !strings.Contains(cure, "signing: forge") {
		t.Errorf("what to do is %q", cure)
	}
}
