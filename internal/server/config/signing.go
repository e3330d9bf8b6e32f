package config

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/liftlock/liftlock/internal/git/sshsig"
)

// SigningByForge is the value of signing by which forges make and sign Liftlock's commits.
const SigningByForge = "forge"

// Signing is how Liftlock's commits are signed: by one of the two.
type Signing struct {
	// By is SigningByForge; signing: forge says the same.
	By string `yaml:"by"`
	// SSHKeyFile is a private ed25519 key without a passphrase.
	SSHKeyFile string `yaml:"sshKeyFile"`
}

// ShorthandKey is the key whose value may stand for all of it.
func (*Signing) ShorthandKey() string { return "by" }

// SignsByForge says whether the forges sign what Liftlock commits.
func (c *Config) SignsByForge() bool { return c.Signing != nil && c.Signing.By == SigningByForge }

// SigningKey reads the key that signs commits; nil where none is configured. Its errors name the file
// and never show what is in it.
func (c *Config) SigningKey() (*sshsig.Key, error) {
	if c.Signing == nil || c.Signing.SSHKeyFile == "" {
		return nil, nil
	}
	file := c.Signing.SSHKeyFile
	data, err := readFile(file, maxSecretFile)
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	if err != nil {
		return nil, fmt.Errorf("can't read %s: %w", file, err)
	}
	key, err := sshsig.ParseKey(data)
	if err != nil {
		return nil, fmt.Errorf("%s can't sign commits: %w", file, err)
	}
	return key, nil
}

func (c *checker) checkSigning(config *Config) {
	if !c.Doc.Has("signing") {
		return
	}
	const leave = "leave signing out where commits aren't signed"
	switch s := config.Signing; {
	case s == nil || s.By == "" && s.SSHKeyFile == "":
		c.Errorf("signing", "write signing: forge, or signing: {sshKeyFile: FILE} with a private ed25519 key; %s", leave)
		return
	case s.By != "" && s.SSHKeyFile != "":
		c.Errorf("signing", "it is by the forge or by sshKeyFile, not both")
		return
	case s.By == SigningByForge:
		c.checkForgesSign(config.Forges)
		return
	case s.By != "":
		c.Errorf("signing", "it is %q; write forge, or {sshKeyFile: FILE} with a private ed25519 key; %s", s.By, leave)
		return
	}
	if _, err := config.SigningKey(); err != nil {
		c.Errorf("signing.sshKeyFile", "%s", err)
	}
}

// checkForgesSign refuses forges that sign nothing that Liftlock commits: it would push unsigned there.
func (c *checker) checkForgesSign(forges []Forge) {
	for i := range forges {
		if forges[i].Type != GitHub || forges[i].Auth.App == nil {
			c.Errorf("signing", "the forge %s can't sign what Liftlock commits: only GitHub does, for an App (auth.app); sign by "+
				"signing.sshKeyFile, or have a server of its own for that forge", forges[i].Name)
		}
	}
}

// WhyUnsigned says why a forge that may merge only signed commits takes Liftlock's for unsigned,
// and what to do about it. Both are empty where a key signs them, which its account there has to
// have, and where no merge depends on it. GitLab refuses unsigned commits when they are pushed, and
// Gitea checks none.
func (c *Config) WhyUnsigned(f *Forge) (why, cure string) {
	switch {
	case f.Type != GitHub, c.SignsByForge():
	case c.Signing == nil:
		if f.Auth.App != nil {
			return "Liftlock's aren't signed", "write signing: forge into the server's file, so that GitHub signs them for the App; or " +
				"don't demand signatures of that branch"
		}
		return "Liftlock's aren't signed", "give the server a key in signing.sshKeyFile, and Liftlock's account on the forge its public " +
			"half as a signing key; or don't demand signatures of that branch"
	case f.Auth.App != nil:
		return "GitHub verifies no signature by an App, which can't have a key",
			"write signing: forge into the server's file, so that GitHub signs them for the App; or don't demand signatures of that branch"
	}
	return "", ""
}
