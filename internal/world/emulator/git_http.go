package emulator

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"go.uber.org/zap"
)

// maxPack bounds what one Git request may send.
const maxPack = 512 << 20

// gitCall is one request of the smart HTTP protocol.
type gitCall struct {
	repo    string // owner/name
	tail    string // info/refs, git-upload-pack or git-receive-pack
	service string // git-upload-pack or git-receive-pack
}

var gitPath = regexp.MustCompile(`^/([^/]+/[^/]+?)(?:\.git)?/(info/refs|git-upload-pack|git-receive-pack)$`)

// parseGitCall recognises Git's own requests; nil is another request.
func (f *Forge) parseGitCall(r *http.Request) *gitCall {
	if f.face == GitLab {
		return parseGitPath(gitlabGitPath, r)
	}
	return parseGitPath(gitPath, r)
}

func parseGitPath(pattern *regexp.Regexp, r *http.Request) *gitCall {
	m := pattern.FindStringSubmatch(r.URL.Path)
	if m == nil {
		return nil
	}
	g := &gitCall{repo: m[1], tail: m[2], service: m[2]}
	if g.tail == "info/refs" {
		g.service = r.URL.Query().Get("service")
	}
	if g.service != "git-upload-pack" && g.service != "git-receive-pack" {
		return nil
	}
	if (r.Method == http.MethodGet) != (g.tail == "info/refs") {
		return nil
	}
	return g
}

// routeName is how the request is counted.
func (g *gitCall) routeName() string {
	if g.tail == "info/refs" {
		return "GET /{owner}/{repo}.git/info/refs?service=" + g.service
	}
	return "POST /{owner}/{repo}.git/" + g.tail
}

// serveGit authenticates a Git request and hands it to Git's own program for it, as
// git http-backend would with three programs a request. After a push everything follows
// that follows from its new references, before the client hears that it is done.
func (f *Forge) serveGit(w http.ResponseWriter, r *http.Request, g *gitCall) {
	if !f.awaitLatency(r.Context(), true) {
		return
	}
	repo, user, ok := f.admitGit(w, r, g)
	if !ok {
		return
	}
	body, done, err := spoolBody(w, r)
	if err != nil {
		http.Error(w, "the request can't be read", http.StatusBadRequest)
		return
	}
	defer done()
	f.serving.RLock()
	defer f.serving.RUnlock()
	w.Header().Set("Cache-Control", "no-cache")
	switch {
	case g.tail == "info/refs":
		err = f.advertise(w, r, repo, g.service)
	case g.service == "git-receive-pack":
		repo.refsMu.Lock()
		defer repo.refsMu.Unlock()
		err = runGitService(w, r, repo, g.service, body, closedVariable+"="+f.closedRefs(repo, user))
		f.followPush(repo, user)
	default:
		err = runGitService(w, r, repo, g.service, body)
	}
	if err != nil && r.Context().Err() == nil {
		f.log.Error("a Git request wasn't served", zap.String("repository", g.repo), zap.String("service", g.service), zap.Error(err))
	}
}

func (f *Forge) followPush(repo *repository, user *account) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.noticeRefs(repo, user); err != nil {
		f.log.Error("a push wasn't followed", zap.String("repository", repo.fullName()), zap.Error(err))
	}
}

// advertise answers with what a service can do and, before protocol version 2, with the
// references. Version 2's answer is the same for every repository of the emulator's.
func (f *Forge) advertise(w http.ResponseWriter, r *http.Request, repo *repository, service string) error {
	w.Header().Set("Content-Type", "application/x-"+service+"-advertisement")
	if service != "git-upload-pack" || gitProtocol(r) != "version=2" {
		first := "# service=" + service + "\n"
		if _, err := fmt.Fprintf(w, "%04x%s0000", len(first)+4, first); err != nil {
			return err
		}
		return gitService(r, repo, service, w, nil, "--advertise-refs")
	}
	f.advertisedMu.Lock()
	defer f.advertisedMu.Unlock()
	if f.advertised == nil {
		var out bytes.Buffer
		if err := gitService(r, repo, service, &out, nil, "--advertise-refs"); err != nil {
			return err
		}
		f.advertised = out.Bytes()
	}
	_, err := w.Write(f.advertised)
	return err
}

// runGitService answers with what a service says to the body.
func runGitService(w http.ResponseWriter, r *http.Request, repo *repository, service string, body io.Reader, env ...string) error {
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			http.Error(w, "the request can't be read", http.StatusBadRequest)
			return fmt.Errorf("the request's body: %w", err)
		}
		body = unzipped
	}
	w.Header().Set("Content-Type", "application/x-"+service+"-result")
	return gitServiceIn(r, repo, service, w, body, env)
}

func gitService(r *http.Request, repo *repository, service string, out io.Writer, body io.Reader, args ...string) error {
	return gitServiceIn(r, repo, service, out, body, nil, args...)
}

// gitServiceIn is gitService with more in its environment.
func gitServiceIn(r *http.Request, repo *repository, service string, out io.Writer, body io.Reader, env []string, args ...string) error {
	cmd := exec.CommandContext(r.Context(), "git", append(append([]string{strings.TrimPrefix(service, "git-"), "--stateless-rpc"},
		args...), ".")...)
	cmd.Dir, cmd.Env = repo.git.dir, append(append(gitEnv(repo.git.dir), "PATH="+os.Getenv("PATH")), "GIT_PROTOCOL="+gitProtocol(r))
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdin, cmd.Stdout = body, out
	return cmd.Run()
}

// admitGit finds the repository and the user, or answers why not.
func (f *Forge) admitGit(w http.ResponseWriter, r *http.Request, g *gitCall) (*repository, *account, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name, password, _ := r.BasicAuth()
	user := f.accountByToken(password)
	if user == nil {
		user = f.accountByToken(name) // a token alone, as the user name
	}
	token := f.installationTokens[password]
	if token != nil && f.now().Before(token.expires) && token.installation.suspended.IsZero() {
		user = token.installation.app.bot
	}
	if user == nil || user.tokenEnded(f.now()) {
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, "remote: Invalid username or token. Password authentication is not supported for Git operations.",
			http.StatusUnauthorized)
		return nil, nil, false
	}
	repo := f.repos[strings.ToLower(g.repo)]
	if repo == nil {
		repo = f.formerNames[strings.ToLower(g.repo)]
	}
	if repo == nil || repo.permissionOf(user) < Read || token != nil && !token.mayRead(repo) {
		http.Error(w, "Repository not found.", http.StatusNotFound)
		return nil, nil, false
	}
	mayPush := repo.permissionOf(user) >= Write && user.mayPush()
	isReadOnly := token != nil && token.permissions["contents"] != "write"
	if g.service == "git-receive-pack" && (!mayPush || isReadOnly) {
		http.Error(w, fmt.Sprintf("Permission to %s.git denied to %s.", repo.fullName(), user.login), http.StatusForbidden)
		return nil, nil, false
	}
	if g.service == "git-receive-pack" && repo.archived {
		http.Error(w, "This repository was archived so it is read-only.", http.StatusForbidden)
		return nil, nil, false
	}
	return repo, user, true
}

// spoolBody is the request's whole body, already read: a client that is killed in the
// middle must not hold the repository's lock. done frees it.
func spoolBody(w http.ResponseWriter, r *http.Request) (body io.Reader, done func(), err error) {
	if r.Method != http.MethodPost {
		return nil, func() {}, nil
	}
	file, err := os.CreateTemp("", "emulator-pack-")
	if err != nil {
		return nil, nil, err
	}
	done = func() {
		_ = file.Close() // it was only read since the last error that was checked
		_ = os.Remove(file.Name())
	}
	_, err = io.Copy(file, http.MaxBytesReader(w, r.Body, maxPack))
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return file, done, nil
}

// gitProtocol is the Git protocol version that the client asks for. Anything but
// the known ones is left out: it becomes an environment variable.
func gitProtocol(r *http.Request) string {
	if v := r.Header.Get("Git-Protocol"); v == "version=2" || v == "version=1" {
		return v
	}
	return ""
}
