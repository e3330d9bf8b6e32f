package registry

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/liftlock/liftlock/internal/discover"
)

// madeAt is an image of a platform that was made at a time.
func madeAt(t *testing.T, at time.Time, os, architecture, variant string) v1.Image {
	t.Helper()
	image := labelled(t, nil)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Created, config.OS, config.Architecture, config.Variant = v1.Time{Time: at}, os, architecture, variant
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	return image
}

// TestDetails holds what is read of images and of indexes, that each is read once, and that what is pushed over a tag
// counts for the digest at once.
func TestDetails(t *testing.T) {
	t.Parallel()
	r := newTestRegistry(t)
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	amd, arm := madeAt(t, noon, "linux", "amd64", ""), madeAt(t, noon.Add(time.Hour), "linux", "arm", "v7")
	created := map[string]string{"org.opencontainers.image.created": noon.Add(2 * time.Hour).Format(time.RFC3339)}
	want := map[string]discover.Details{}
	for tag, c := range map[string]struct {
		what      remote.Taggable
		created   time.Time
		platforms string
	}{
		"image":     {amd, noon, "linux/amd64"},
		"annotated": {annotated(amd, created), noon.Add(2 * time.Hour), "linux/amd64"},
		"variant":   {arm, noon.Add(time.Hour), "linux/arm/v7"},
		"index":     {indexOf(nil, platformImage(amd, "linux", "amd64"), platformImage(annotated(amd, nil), "unknown", "unknown"), platformImage(arm, "linux", "arm64")), noon, "linux/amd64 linux/arm64"},
		"dated":     {indexOf(created, platformImage(amd, "linux", "amd64")), noon.Add(2 * time.Hour), "linux/amd64"},
		"empty":     {indexOf(nil), time.Time{}, ""},
		"silent":    {labelled(t, nil), time.Time{}, "linux"},
	} {
		name := r.push(tag, c.what)
		want[tag] = discover.Details{Created: c.created, Digest: name[strings.Index(name, "@")+1:], Platforms: strings.Fields(c.platforms)}
	}
	i := r.images("", "")
	tags := []string{"image", "annotated", "variant", "index", "dated", "empty", "silent", "gone"}
	got, complete, err := i.ReadDetails(t.Context(), r.host+"/acme/web", tags)
	if err != nil || !complete || got["gone"].Err != ErrMissing.Error() {
		t.Fatalf("%+v, %v, %v", got["gone"], complete, err)
	}
	for tag, w := range want {
		g := got[tag]
		if !g.Created.Equal(w.Created) || g.Digest != w.Digest || fmt.Sprint(g.Platforms) != fmt.Sprint(w.Platforms) || g.Err != "" {
			t.Errorf("%s: %+v, not %+v", tag, g, w)
		}
	}
	calls := r.calls.Load()
	if _, _, err := i.ReadDetails(t.Context(), r.host+"/acme/web", tags); err != nil || r.calls.Load() != calls {
		t.Errorf("%d more calls, %v", r.calls.Load()-calls, err)
	}
	if byDigest, _, err := i.ReadDetails(t.Context(), r.host+"/acme/web", []string{want["variant"].Digest}); err != nil || fmt.Sprint(byDigest[want["variant"].Digest].Platforms) != "[linux/arm/v7]" {
		t.Errorf("%+v, %v", byDigest, err)
	}
	for _, what := range []v1.Image{amd, arm} {
		name := r.push("moving", what)
		if digest, err := i.ReadDigest(t.Context(), r.host+"/acme/web", "moving"); err != nil || !strings.HasSuffix(name, digest) {
			t.Errorf("%s, %v", digest, err)
		}
	}
	if _, err := i.ReadDigest(t.Context(), r.host+"/acme/web", "gone"); !errors.Is(err, ErrMissing) {
		t.Errorf("%v", err)
	}
	r.now = r.now.Add(failedAge)
	r.push("gone", amd)
	if found, _, err := i.ReadDetails(t.Context(), r.host+"/acme/web", []string{"gone"}); err != nil || !found["gone"].Created.Equal(noon) {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestManyDetails holds that a call looks into so many tags, and the next ones go on.
func TestManyDetails(t *testing.T) {
	t.Parallel()
	r := newTestRegistry(t)
	image := labelled(t, nil)
	var tags []string
	r.push("0", image)
	for n := range maxReads + 10 {
		tags = append(tags, fmt.Sprint(n))
	}
	i := r.images("", "")
	got, complete, err := i.ReadDetails(t.Context(), r.host+"/acme/web", tags)
	if err != nil || complete || len(got) != maxReads {
		t.Errorf("%d, %v, %v", len(got), complete, err)
	}
	if got, complete, err = i.ReadDetails(t.Context(), r.host+"/acme/web", tags); err != nil || !complete || len(got) != len(tags) {
		t.Errorf("%d, %v, %v", len(got), complete, err)
	}
	r.setFault(func(w http.ResponseWriter, req *http.Request) bool {
		w.WriteHeader(http.StatusInternalServerError)
		return true
	})
	if _, _, err := i.ReadDetails(t.Context(), r.host+"/acme/web", []string{"another"}); !errors.Is(err, ErrAway) {
		t.Errorf("%v", err)
	}
	if _, _, err := i.ReadDetails(t.Context(), "registry.example/web", []string{"1"}); !errors.Is(err, ErrRefused) {
		t.Errorf("%v", err)
	}
}

// TestDockerConfig holds whose credentials a file has, and that no error shows one.
func TestDockerConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, host string
		want       Credentials
		err        string
	}{
		"auth":         {`{"auths":{"registry.example:5000":{"auth":"YW5uOnNlOmNyZXQ="}}}`, "registry.example:5000", Credentials{Username: "ann", Password: "se:cret"}, ""},
		"Docker Hub":   {`{"auths":{"https://index.docker.io/v1/":{"username":"ann","password":"secret"}}}`, "docker.io", Credentials{Username: "ann", Password: "secret"}, ""},
		"a token":      {`{"auths":{"acme.azurecr.io":{"auth":"MDAwOg==","identitytoken":"t"}}}`, "acme.azurecr.io", Credentials{Username: "000", IdentityToken: "t"}, ""},
		"a program":    {`{"auths":{"ghcr.io":{}},"credsStore":"desktop"}`, "ghcr.io", Credentials{}, ""},
		"another":      {`{"auths":{"ghcr.io":{"username":"ann","password":"secret"}}}`, "registry.example", Credentials{}, ""},
		"nothing":      {`{}`, "ghcr.io", Credentials{}, ""},
		"no JSON":      {`secret`, "", Credentials{}, "it is no JSON as docker login writes it"},
		"no base64":    {`{"auths":{"ghcr.io":{"auth":"secret!"}}}`, "", Credentials{}, "the auth of ghcr.io can't be read"},
		"too large":    {strings.Repeat(" ", MaxDockerConfig+1), "", Credentials{}, "it has more than 1048576 bytes"},
		"another type": {`{"auths":["secret"]}`, "", Credentials{}, "it is no JSON as docker login writes it"},
	} {
		all, err := ParseDockerConfig([]byte(c.text))
		got, ok := CredentialsOf(all, c.host)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != c.want || ok != (c.want != Credentials{}) || text != c.err {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// FuzzListing holds that no answer of a registry does harm: a list is whole, or none.
func FuzzListing(f *testing.F) {
	f.Add(`{"tags":["1","2"]}`, `<?last=2>; rel="next"`, "100;w=21600", "3", `"e"`)
	f.Add(`{"tags":null}`, "", "", "", "")
	f.Add(`[`, "<", ";;", "99999999999999999999", "")
	f.Fuzz(func(t *testing.T, body, link, limit, retry, etag string) {
		now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
		calls := 0
		next := roundTripper(func(req *http.Request) (*http.Response, error) {
			calls++
			res := &http.Response{StatusCode: 200, Header: http.Header{}, Request: req, Body: http.NoBody}
			if req.URL.Path != "/v2/" {
				res.Body = readCloser{strings.NewReader(body)}
				for key, value := range map[string]string{"Link": link, "RateLimit-Limit": limit, "RateLimit-Remaining": "0", "Retry-After": retry, "ETag": etag} {
					res.Header.Set(key, value)
				}
			}
			return res, nil
		})
		i := New([]Host{{Name: "registry.example", Transport: next}}, func() time.Time { return now }, nil)
		got, err := i.ListTags(t.Context(), "registry.example/web", 0)
		if err != nil && got != nil || calls > maxPages+2 {
			t.Fatalf("%d tags, %v after %d calls", len(got), err, calls)
		}
		if h := i.hosts["registry.example"]; h.until.After(now.Add(maxRest)) {
			t.Fatalf("it is left alone until %s", h.until)
		}
	})
}

type roundTripper func(req *http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }
