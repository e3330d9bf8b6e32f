package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
)

// serverContext is a server that a person has logged in to.
type serverContext struct {
	Name   string `json:"name"`
	Server string `json:"server"`
	Token  string `json:"token,omitempty"` // none: only questions are asked
}

// contextFile are a person's servers.
type contextFile struct {
	Current  string          `json:"current,omitempty"` // the one that is used where none is named
	Contexts []serverContext `json:"contexts"`
}

// maxContextFile bounds what is read of the file.
const maxContextFile = 1 << 20

// contextPath is where the file is.
func contextPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the folder of this user's configuration: %w", err)
	}
	return filepath.Join(dir, "liftlock", "contexts.yaml"), nil
}

// readContexts reads the file; one that isn't there has none. A file with tokens that others may read
// is refused.
func readContexts() (*contextFile, error) {
	at, err := contextPath()
	if err != nil {
		return &contextFile{}, nil // a job without a home has none
	}
	info, err := os.Stat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return &contextFile{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the contexts: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s has tokens, and others may read it: chmod 600 it", at)
	}
	raw, err := readBounded(at, maxContextFile)
	if err != nil {
		return nil, fmt.Errorf("read the contexts: %w", err)
	}
	var file contextFile
	if err := yaml.UnmarshalStrict(raw, &file); err != nil {
		return nil, fmt.Errorf("%s is not as liftlock login writes it; delete it and log in again", at) // the error may have a token
	}
	return &file, nil
}

// write replaces the file, which this user alone may read. It returns where that is.
func (c *contextFile) write() (at string, err error) {
	if at, err = contextPath(); err != nil {
		return "", err
	}
	raw, err := yaml.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("write the contexts: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return "", fmt.Errorf("write the contexts: %w", err)
	}
	next, err := os.CreateTemp(filepath.Dir(at), ".contexts-") // only this user may read it
	if err != nil {
		return "", fmt.Errorf("write the contexts: %w", err)
	}
	defer os.Remove(next.Name()) // it has its place by then
	_, err = next.Write(raw)
	if err = errors.Join(err, next.Close()); err == nil {
		err = os.Rename(next.Name(), at)
	}
	if err != nil {
		return "", fmt.Errorf("write the contexts: %w", err)
	}
	return at, nil
}

// find is the context of a name; nil where there is none.
func (c *contextFile) find(name string) *serverContext {
	if i := slices.IndexFunc(c.Contexts, func(k serverContext) bool { return k.Name == name }); i >= 0 {
		return &c.Contexts[i]
	}
	return nil
}

// named is the context of a name, or an error that says which one may have been meant.
func (c *contextFile) named(name string) (*serverContext, error) {
	if found := c.find(name); found != nil {
		return found, nil
	}
	names := c.names()
	if len(names) == 0 {
		return nil, fmt.Errorf("there is no context %q; liftlock login URL makes one", name)
	}
	return nil, fmt.Errorf("there is no context %q%s", name,
		cmp.Or(strictyaml.DidYouMean(name, names), "; there are "+strings.Join(names, ", ")))
}

func (c *contextFile) names() []string {
	var out []string
	for i := range c.Contexts {
		out = append(out, c.Contexts[i].Name)
	}
	return out
}

// forServer is the context of a server; of several the current one, and that too where no server is
// named. It is nil where there is none.
func (c *contextFile) forServer(server string) *serverContext {
	current := c.find(c.Current)
	if server == "" || current != nil && isSameServer(current.Server, server) {
		return current
	}
	if i := slices.IndexFunc(c.Contexts, func(k serverContext) bool { return isSameServer(k.Server, server) }); i >= 0 {
		return &c.Contexts[i]
	}
	return nil
}

// put adds a context, or replaces the one of its name, and makes it the current one.
func (c *contextFile) put(added serverContext) {
	c.remove(added.Name)
	c.Contexts = append(c.Contexts, added)
	slices.SortFunc(c.Contexts, func(a, b serverContext) int { return cmp.Compare(a.Name, b.Name) })
	c.Current = added.Name
}

func (c *contextFile) remove(name string) {
	c.Contexts = slices.DeleteFunc(c.Contexts, func(k serverContext) bool { return k.Name == name })
	if c.Current == name {
		c.Current = ""
	}
}

// defaultServer is where a server listens unless its file says otherwise.
const defaultServer = "http://127.0.0.1:8080"

// serverChoice is which server is asked, and with which token.
type serverChoice struct {
	Server, Token string
	TokenFile     string // instead of Token
}

// chooseServer chooses by flags, then variables, then contexts. A context's token goes to its own
// server alone: where a flag or a variable names the server, only to the same address.
func (s *serverFlags) chooseServer(lookup func(string) string) (serverChoice, error) {
	out := serverChoice{Server: s.server, TokenFile: s.tokenFile}
	if s.context != "" {
		if s.server != "" {
			return out, errors.New("--server and --context both say which server is meant: leave one out")
		}
		file, err := readContexts()
		if err != nil {
			return out, err
		}
		c, err := file.named(s.context)
		if err != nil {
			return out, err
		}
		out.Server, out.Token = c.Server, c.Token
		return out, nil
	}
	out.Server, out.Token = cmp.Or(out.Server, lookup(serverVariable)), lookup(tokenVariable)
	if out.Server != "" && (out.Token != "" || out.TokenFile != "") {
		return out, nil // a broken file of contexts is no obstacle then
	}
	file, err := readContexts()
	if err != nil {
		return out, err
	}
	if c := file.forServer(out.Server); c != nil {
		out.Server, out.Token = cmp.Or(out.Server, c.Server), cmp.Or(out.Token, c.Token)
	}
	out.Server = cmp.Or(out.Server, defaultServer)
	return out, nil
}

// isSameServer says whether two addresses are the same server's.
func isSameServer(a, b string) bool {
	parsed, err := url.Parse(a)
	other, err2 := url.Parse(b)
	if err != nil || err2 != nil {
		return false
	}
	isSameHost := parsed.Scheme == other.Scheme && strings.EqualFold(parsed.Host, other.Host)
	return isSameHost && strings.TrimRight(parsed.Path, "/") == strings.TrimRight(other.Path, "/")
}
