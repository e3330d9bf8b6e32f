package emulator

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
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

// parseGitCall recognises Git's own requests; nil is somebody else's.
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

// serveGit authenticates a Git request and hands it to git http-backend. After
// a push everything follows that follows from its new references, before the
// client hears that it is done.
func (f *Forge) serveGit(w http.ResponseWriter, r *http.Request, g *gitCall) {
	repo, user, ok := f.admitGit(w, r, g)
	if !ok {
		return
	}
	r, done, err := spoolBody(w, r)
	if err != nil {
		http.Error(w, "the request can't be read", http.StatusBadRequest)
		return
	}
	defer done()
	program, err := exec.LookPath("git")
	if err != nil {
		f.log.Error("git is needed to serve repositories", zap.Error(err))
		http.Error(w, "git is missing", http.StatusInternalServerError)
		return
	}
	r.URL.Path = "/" + g.tail
	r.Header.Del("Authorization")
	backend := &cgi.Handler{
		Path: program, Args: []string{"http-backend"}, Dir: repo.git.dir,
		Env: append(gitEnv(repo.git.dir),
			"GIT_PROJECT_ROOT="+repo.git.dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER="+user.login,
			"GIT_PROTOCOL="+gitProtocol(r)),
		Logger: zap.NewStdLog(f.log), Stderr: io.Discard,
	}
	if g.tail != "git-receive-pack" {
		backend.ServeHTTP(w, r)
		return
	}
	repo.refsMu.Lock()
	defer repo.refsMu.Unlock()
	backend.ServeHTTP(w, r)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.noticeRefs(repo, user); err != nil {
		f.log.Error("a push wasn't followed", zap.String("repository", g.repo), zap.Error(err))
	}
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
	if user == nil || user.tokenEnded(f.now()) {
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, "remote: Invalid username or token. Password authentication is not supported for Git operations.", http.StatusUnauthorized)
		return nil, nil, false
	}
	repo := f.repos[strings.ToLower(g.repo)]
	if repo == nil {
		repo = f.formerNames[strings.ToLower(g.repo)]
	}
	if repo == nil || repo.permissionOf(user) < Read {
		http.Error(w, "Repository not found.", http.StatusNotFound)
		return nil, nil, false
	}
	if g.service == "git-receive-pack" && (repo.permissionOf(user) < Write || !user.mayPush() || repo.archived) {
		http.Error(w, fmt.Sprintf("Permission to %s.git denied to %s.", repo.fullName(), user.login), http.StatusForbidden)
		return nil, nil, false
	}
	return repo, user, true
}

// spoolBody gives the request with its whole body already read: CGI needs to know
// its length, and a client that is killed in the middle must not hold the
// repository's lock. done frees it.
func spoolBody(w http.ResponseWriter, r *http.Request) (whole *http.Request, done func(), err error) {
	whole = r.Clone(r.Context())
	if r.Method != http.MethodPost {
		return whole, func() {}, nil
	}
	file, err := os.CreateTemp("", "emulator-pack-")
	if err != nil {
		return nil, nil, err
	}
	done = func() {
		_ = file.Close() // it was only read since the last error that was looked at
		_ = os.Remove(file.Name())
	}
	n, err := io.Copy(file, http.MaxBytesReader(w, r.Body, maxPack))
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	whole.Body, whole.ContentLength, whole.TransferEncoding = file, n, nil
	return whole, done, nil
}

// gitProtocol is the Git protocol version that the client asks for. Anything but
// the known ones is left out: it becomes an environment variable.
func gitProtocol(r *http.Request) string {
	if v := r.Header.Get("Git-Protocol"); v == "version=2" || v == "version=1" {
		return v
	}
	return ""
}
