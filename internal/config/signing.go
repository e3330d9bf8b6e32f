package config

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/liftlock/liftlock/internal/git/sshsig"
)

// Signing is how Liftlock's commits are signed.
type Signing struct {
	// SSHKeyFile is a private ed25519 key without a passphrase.
	SSHKeyFile string `yaml:"sshKeyFile"`
}

// SigningKey reads the key that signs commits; nil where none is configured. Its errors name the file
// and never show what is in it.
func (c *Config) SigningKey() (*sshsig.Key, error) {
	if c.Signing == nil {
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
	if config.Signing == nil || config.Signing.SSHKeyFile == "" {
		c.Errorf("signing", "sshKeyFile is missing: the file of a private ed25519 key; leave signing out where commits aren't signed")
		return
	}
	if _, err := config.SigningKey(); err != nil {
		c.Errorf("signing.sshKeyFile", "%s", err)
	}
}

// WhyUnsigned says why a forge that may merge only signed commits takes Liftlock's for unsigned, and
// what to do about it. Both are empty where a key signs them, which its account there has to have, and
// where no merge hangs on it: GitLab refuses unsigned commits when they are pushed, and Gitea looks at
// none.
func (c *Config) WhyUnsigned(f *Forge) (why, cure string) {
	switch {
	case f.Type != GitHub:
	case c.Signing == nil:
		return "Liftlock's aren't signed", "give the server a key in signing.sshKeyFile, and Liftlock's account on the forge its public half as a signing key; or don't demand signatures of that branch"
	case f.Auth.App != nil:
		return "GitHub verifies no signature by an App, which can't have a key", "let Liftlock work with the token of a user's account that has the public half of signing.sshKeyFile as a signing key; or don't demand signatures of that branch"
	}
	return "", ""
}
