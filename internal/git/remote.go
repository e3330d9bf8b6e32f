package git

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/liftlock/liftlock/internal/proc"
)

// remote is where a mirror comes from.
type remote struct {
	url    string // as git gets it; never with credentials
	scheme string // the only protocol that git may use
	origin string // scheme://host[:port]/ for http and https
}

// parseRemote accepts http, https and file URLs and absolute paths.
func parseRemote(raw string) (remote, error) {
	bad := func(why string) (remote, error) {
		// The URL may hold a password: Redact hides it.
		return remote{}, &Error{Op: fmt.Sprintf("repository address %q", shortenForLog(proc.Redact(raw, nil))), Kind: ErrInvalid, Hint: why}
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return bad("it has control characters")
	}
	if filepath.IsAbs(raw) {
		return remote{url: "file://" + raw, scheme: "file"}, nil
	}
	u, err := url.Parse(raw)
	if err != nil {
		return bad("it is not a URL")
	}
	if u.User != nil {
		return bad("credentials don't belong into it; configure them beside it")
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" || !filepath.IsAbs(u.Path) {
			return bad("a file URL has three slashes and an absolute path")
		}
		return remote{url: raw, scheme: "file"}, nil
	case "http", "https":
		if u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return bad("it needs a host, and no query or fragment")
		}
		return remote{url: raw, scheme: u.Scheme, origin: u.Scheme + "://" + u.Host + "/"}, nil
	}
	return bad("http, https and file addresses are supported")
}

// runRemote runs a git command that talks to the remote, with the credentials in its environment.
// They are not in its arguments, which every user of the machine can read, and not in a file. The
// output is returned also with an error. A call with refused credentials did nothing, so where
// there are other credentials by then it runs once more.
func (mp *mirrorPrograms) runRemote(ctx context.Context, op string, args ...string) ([]byte, error) {
	return mp.runRemoteWithin(ctx, proc.Limits{}, op, args...)
}

// runRemoteWithin is runRemote with limits for each of the programs.
func (mp *mirrorPrograms) runRemoteWithin(ctx context.Context, limits proc.Limits, op string, args ...string) ([]byte, error) {
	out, password, err := mp.tryRemote(ctx, limits, op, args)
	if password != "" && errors.Is(err, ErrAuth) && mp.opts.Refused != nil && mp.opts.Refused(password) {
		out, _, err = mp.tryRemote(ctx, limits, op, args)
	}
	return out, err
}

// tryRemote runs it once, and gives the password that it ran with; empty: none.
func (mp *mirrorPrograms) tryRemote(ctx context.Context, limits proc.Limits, op string, args []string) (out []byte, password string,
	err error) {
	c := mp.gitCommand(args...)
	c.Limits = limits
	secrets, err := mp.addCredentials(ctx, &c)
	if err != nil {
		return nil, "", &Error{Op: op, Kind: ErrAuth, Err: fmt.Errorf("get the credentials: %w", err)}
	}
	if c.Secrets = secrets; len(secrets) > 0 {
		password = secrets[0]
	}
	limited, cancel := context.WithTimeout(ctx, mp.opts.Timeout)
	defer cancel()
	r, err := proc.Run(limited, c)
	if err == nil {
		return r.Stdout, password, nil
	}
	if limited.Err() != nil {
		// Killed, it may have left its locks.
		if rerr := mp.removeLeftovers(); rerr != nil {
			err = fmt.Errorf("%w; then removing what it left: %w", err, rerr)
		}
	}
	return r.Stdout, password, remoteError(ctx, op, err)
}

// addCredentials adds the Authorization header for the remote's host, and no
// other, to the command's environment. The first of the secrets is the password.
func (mp *mirrorPrograms) addCredentials(ctx context.Context, c *proc.Command) (secrets []string, err error) {
	user, password, err := mp.credentials(ctx)
	if err != nil || user == "" && password == "" {
		return nil, err
	}
	basic := basicCredentials(user, password)
	key := "http." + mp.remote.origin + ".extraHeader"
	c.Env = append(c.Env, secretConfig(mp.git, key, "Authorization: Basic "+basic)...)
	return []string{password, basic}, nil
}

// basicCredentials are a user name and a password as Basic authentication sends them.
func basicCredentials(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

// credentials are those for the remote now; both empty: none.
func (mp *mirrorPrograms) credentials(ctx context.Context) (user, password string, err error) {
	if mp.opts.Credentials == nil || mp.remote.origin == "" {
		return "", "", nil
	}
	user, password, err = mp.opts.Credentials(ctx)
	if err == nil && strings.Contains(user, ":") {
		err = errors.New("the user name has a colon, which Basic authentication can't carry")
	}
	return user, password, err
}

// secretConfig is a git setting as environment variables. GIT_CONFIG_COUNT
// came with git 2.31; before it, GIT_CONFIG_PARAMETERS is how git itself hands
// the settings of -c to its helpers.
func secretConfig(v version, key, value string) []string {
	if v.isOlderThan(version{2, 31}) {
		quoted := "'" + strings.ReplaceAll(key+"="+value, "'", `'\''`) + "'"
		return []string{"GIT_CONFIG_PARAMETERS=" + quoted}
	}
	return []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=" + key, "GIT_CONFIG_VALUE_0=" + value}
}
