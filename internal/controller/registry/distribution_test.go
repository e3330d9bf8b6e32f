package registry

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/crypto/bcrypt"
)

// distribution is the reference registry, as Debian's package docker-registry has it, with a login and deletions.
type distribution struct {
	t       *testing.T
	program string
	config  string
	host    string
	running *exec.Cmd
}

// startDistribution starts one, where the program is installed.
func startDistribution(t *testing.T) *distribution {
	t.Helper()
	program, err := exec.LookPath("docker-registry")
	if err != nil {
		t.Skip("docker-registry isn't installed: apt-get install docker-registry")
	}
	dir := t.TempDir()
	password, err := bcrypt.GenerateFromPassword([]byte("hunter2"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &distribution{t: t, program: program, config: filepath.Join(dir, "config.yml"), host: listener.Addr().String()}
	_ = listener.Close() // the registry takes the port
	for file, text := range map[string]string{
		"htpasswd": "ada:" + string(password) + "\n",
		"config.yml": fmt.Sprintf(`version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: %[1]s/data}, delete: {enabled: true}}
http: {addr: '%[2]s', secret: not-a-secret}
auth: {htpasswd: {realm: test, path: %[1]s/htpasswd}}
`, dir, d.host),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.start()
	t.Cleanup(d.stop)
	return d
}

func (d *distribution) start() {
	d.t.Helper()
	d.running = exec.Command(d.program, "serve", d.config)
	if err := d.running.Start(); err != nil {
		d.t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		res, err := http.Get("http://" + d.host + "/v2/")
		if err == nil {
			_ = res.Body.Close()
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("it doesn't answer: %v", err)
		}
	}
}

func (d *distribution) stop() {
	if d.running != nil {
		_ = d.running.Process.Kill()
		_ = d.running.Wait()
		d.running = nil
	}
}

func (d *distribution) options() []remote.Option {
	return []remote.Option{remote.WithAuth(&authn.Basic{Username: "ada", Password: "hunter2"})}
}

// push puts something there, and gives its digest.
func (d *distribution) push(tag string, what remote.Taggable) string {
	d.t.Helper()
	ref, err := name.NewTag(d.host+"/acme/web:"+tag, name.Insecure)
	if err == nil {
		err = remote.Push(ref, what, d.options()...)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	head, err := remote.Head(ref, d.options()...)
	if err != nil {
		d.t.Fatal(err)
	}
	return head.Digest.String()
}

// TestDistribution reads the reference registry: its lists, its images and its login, while tags are pushed, deleted and pushed
// over, and while it is away.
func TestDistribution(t *testing.T) {
	d := startDistribution(t)
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := noon
	images := New([]Host{{Name: d.host, PlainHTTP: true, Username: "ada", Password: "hunter2"}}, func() time.Time { return now }, nil)
	repository := d.host + "/acme/web"
	list := func(want string) {
		t.Helper()
		now = now.Add(2 * time.Hour)
		got, err := images.ListTags(t.Context(), repository, time.Minute)
		slices.Sort(got)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	if _, err := images.ListTags(t.Context(), repository, 0); !errors.Is(err, ErrMissing) {
		t.Errorf("a repository that isn't there: %v", err)
	}
	first := d.push("1.0.0", madeAt(t, noon, "linux", "amd64", ""))
	second := d.push("1.1.0", indexOf(nil, platformImage(madeAt(t, noon.Add(time.Hour), "linux", "arm64", ""), "linux", "arm64")))
	list("1.0.0 1.1.0")
	var many []string
	for n := range 60 {
		tag := fmt.Sprintf("2.0.%02d", n)
		d.push(tag, madeAt(t, noon.Add(time.Duration(n)*time.Minute), "linux", "amd64", ""))
		many = append(many, tag)
	}
	list("1.0.0 1.1.0 " + strings.Join(many, " "))

	found, complete, err := images.ReadDetails(t.Context(), repository, []string{"1.0.0", "1.1.0", "3.0.0"})
	if err != nil || !complete || found["1.0.0"].Digest != first || !found["1.0.0"].Created.Equal(noon) ||
		found["1.1.0"].Digest != second || strings.Join(found["1.1.0"].Platforms, " ") != "linux/arm64" || found["3.0.0"].Err != ErrMissing.Error() {
		t.Errorf("%+v, %t, %v", found, complete, err)
	}
	moved := d.push("1.0.0", madeAt(t, noon.Add(time.Minute), "linux", "amd64", ""))
	if digest, err := images.ReadDigest(t.Context(), repository, "1.0.0"); err != nil || digest != moved || moved == first {
		t.Errorf("what was pushed over it is %s, %v; not %s", digest, err, moved)
	}

	ref, err := name.NewDigest(repository+"@"+second, name.Insecure)
	if err == nil {
		err = remote.Delete(ref, d.options()...)
	}
	if err != nil {
		t.Fatal(err)
	}
	list("1.0.0 " + strings.Join(many, " "))

	d.stop()
	now = now.Add(time.Hour)
	if _, err := images.ListTags(t.Context(), repository, time.Minute); !errors.Is(err, ErrAway) {
		t.Errorf("while it is away: %v", err)
	}
	d.start()
	if _, err := images.ListTags(t.Context(), repository, time.Minute); !errors.Is(err, ErrAway) {
		t.Errorf("right after, it isn't left alone: %v", err)
	}
	list("1.0.0 " + strings.Join(many, " "))

	for what, h := range map[string]Host{"nobody": {}, "a wrong password": {Username: "ada", Password: "guessed"}} {
		h.Name, h.PlainHTTP = d.host, true
		others := New([]Host{h}, func() time.Time { return now }, nil)
		if tags, err := others.ListTags(t.Context(), repository, 0); !errors.Is(err, ErrRefused) || len(tags) > 0 {
			t.Errorf("%s reads %q, %v", what, tags, err)
		}
	}
}
